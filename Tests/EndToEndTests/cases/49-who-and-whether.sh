# about: the journal names who gave an order; a reload prints its warnings; a hopd that stands still is told as such, and no command waits for it
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
said commandReceived '' HOPD_REQUESTER='user alice' || fail "no order of alice: $(values HOPD_REQUESTER)"
said commandReceived '' HOPD_REQUESTER='user root' || fail "no order of root: $(values HOPD_REQUESTER)"
matches 'the text' 'command from user alice: pause test' "$(values MESSAGE MESSAGE_ID="$(message_id commandReceived)")"
same 'the unit has no users of its own' no "$(show PrivateUsers)"
systemd-analyze security hopd --no-pager --threshold=5 >"$ROOM/security" \
    || fail "exposure over 0.5: $(tail -n 1 "$ROOM/security")"

# A reload says what it noticed: a watch that the unit may not write, with what to type, and an unknown key.
mkdir -p "$ROOM/other"; chown hopd:hopd "$ROOM/other"
watch_section other "$ROOM/other" | sed 's/^rescan.*/&\nwindo = "22:00-06:00"/' >>/etc/hopd/hopd.toml
hopctl reload >"$ROOM/out" 2>"$ROOM/err" || fail "reload: $(cat "$ROOM/err")"
matches 'reload' 'in use: .*/etc/hopd/hopd.toml' "$(cat "$ROOM/out")"
matches 'unknown key' 'use `window`' "$(cat "$ROOM/err")"
matches 'the unit' "cannot write to $ROOM/other: Read-only file system" "$(cat "$ROOM/err")"
matches 'what to type' 'systemctl daemon-reload && systemctl restart hopd' "$(cat "$ROOM/err")"
# A refusal in STATUS names no line that is out of date.
cp /etc/hopd/hopd.toml "$ROOM/good.toml"; echo 'jobs = "many"' >/etc/hopd/hopd.toml
rc=0; hopctl reload >/dev/null 2>&1 || rc=$?
same 'status of a refused reload' 78 "$rc"
refused() { [[ $(status_text) == *'configuration refused, the old one remains in use (hopctl check-config)'* ]]; }
wait_for 10 'the refusal in STATUS' refused
cp "$ROOM/good.toml" /etc/hopd/hopd.toml; systemctl reload hopd
mended() { [[ $(status_text) != *refused* ]]; }
wait_for 10 'no refusal in STATUS' mended

# Whether it answers: every order ends soon, with 75 and what to type.
kill -STOP "$(main_pid)"
for words in 'pause test' 'resume' 'retry --failed' 'set jobs 2' 'reload' 'top --once'; do
    rc=0
    # shellcheck disable=SC2086
    timeout 30 hopctl $words >"$ROOM/out" 2>"$ROOM/err" || rc=$?
    same "status of $words while hopd stands still" 75 "$rc"
    matches "$words" 'hopd does not respond' "$(cat "$ROOM/err")"
    matches "hint of $words" 'systemctl status hopd' "$(cat "$ROOM/err")"
done
rc=0; timeout 30 hopctl status >"$ROOM/out" 2>&1 || rc=$?
same 'status of status while hopd stands still' 75 "$rc"
matches 'status' 'hopd does not respond' "$(cat "$ROOM/out")"
kill -CONT "$(main_pid)"
wait_for 20 'orders again' hopctl resume
wait_for 20 'status again' hopctl status
