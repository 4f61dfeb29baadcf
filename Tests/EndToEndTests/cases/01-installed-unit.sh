# about: the installed unit starts: READY, its user and folders, a status line, a small exposure
# needs: systemd
configure
start
same ActiveState active "$(show ActiveState)"
same Type notify "$(show Type)"
same User hopd "$(ps -o user= -p "$(main_pid)" | tr -d ' ')"
getent passwd hopd >/dev/null || fail 'sysusers made no user hopd'
same 'state directory' 'hopd hopd 750' "$(stat -c '%U %G %a' /var/lib/hopd)"
[ ! -e /var/cache/hopd ] || fail 'a folder for a cache that nothing uses'
wait_for 10 'a status that says what it watches' idle
matches 'systemctl status' 'Status: ".*watching' "$(systemctl status hopd --no-pager -n 0)"
said serviceStarted || fail 'no entry serviceStarted'
said serviceReady || fail 'no entry serviceReady'
systemd-analyze security --no-pager --threshold=10 hopd.service >"$ROOM/security" \
    || fail "exposure over 1.0: $(tail -n 1 "$ROOM/security")"
timeout 30 systemctl stop hopd
same Result success "$(show Result)"
said serviceStopping || fail 'no entry serviceStopping'
