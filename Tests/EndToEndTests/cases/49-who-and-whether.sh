# about: the journal names who gave an order; a hopd that stands still is told as such, and no command waits for it
# needs: systemd
export RESCAN=1h
configure
start
S=/run/hopd/control.sock
wait_for 20 'the socket' test -S "$S"
useradd -M -G hopd alice
as() { # USER COMMAND...
    local user=$1; shift
    setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups "$@"
}
# Who: by name, also one who is neither root nor hopd.
chmod 755 "$ROOM"
as alice hopctl pause test >"$ROOM/out" 2>&1 || fail "pause by alice: $(cat "$ROOM/out")"
hopctl resume test >/dev/null || fail 'resume by root'
said orderGiven '' HOPD_ASKER='user alice' || fail "no order of alice: $(values HOPD_ASKER)"
said orderGiven '' HOPD_ASKER='user root' || fail "no order of root: $(values HOPD_ASKER)"
matches 'the text' 'user alice orders: pause test' "$(values MESSAGE MESSAGE_ID="$(message_id orderGiven)")"
same 'the unit has no users of its own' no "$(show PrivateUsers)"
systemd-analyze security hopd --no-pager --threshold=5 >"$ROOM/security" \
    || fail "exposure over 0.5: $(tail -n 1 "$ROOM/security")"

# Whether it answers: every order ends soon, with 75 and what to type.
kill -STOP "$(main_pid)"
for words in 'pause test' 'resume' 'retry --failed' 'set jobs 2' 'reload' 'top --once'; do
    rc=0
    # shellcheck disable=SC2086
    timeout 30 hopctl $words >"$ROOM/out" 2>"$ROOM/err" || rc=$?
    same "status of $words while hopd stands still" 75 "$rc"
    matches "$words" 'hopd does not answer' "$(cat "$ROOM/err")"
    matches "hint of $words" 'systemctl status hopd' "$(cat "$ROOM/err")"
done
rc=0; timeout 30 hopctl status >"$ROOM/out" 2>&1 || rc=$?
same 'status of status while hopd stands still' 75 "$rc"
matches 'status' 'hopd does not answer' "$(cat "$ROOM/out")"
kill -CONT "$(main_pid)"
wait_for 20 'orders again' hopctl resume
wait_for 20 'status again' hopctl status
