# about: a store that another process has locked is deferred, unchanged, and done when it is let go
# needs: systemd
configure
make_store "$ROOM/making/a.sqlite" "$OLD" 100 1
sqlite3 -batch "$ROOM/making/a.sqlite" 'PRAGMA journal_mode=DELETE' >/dev/null
mv "$ROOM/making/a.sqlite" "$STORES/a.sqlite"
S=$STORES/a.sqlite
hold "$S" 'BEGIN EXCLUSIVE;'
before=$(snapshot "$STORES")
start
wait_for 30 'entry storeDeferred' said storeDeferred "$S"
same 'result' deferred "$(values HOPD_RESULT MESSAGE_ID="$(message_id storeDeferred)" HOPD_STORE="$S" | tail -n 1)"
matches 'message' 'use|busy|lock' "$(values MESSAGE MESSAGE_ID="$(message_id storeDeferred)" HOPD_STORE="$S" \
    | tail -n 1)"
sleep 6
unchanged "$STORES" "$before"
[ "$(count HOPD_STORE="$S")" -le 20 ] || fail "$(count HOPD_STORE="$S") entries while it waits"
rc=0; hopctl migrate "$S" --models "$MODEL" --no-progress >"$ROOM/out" 2>&1 || rc=$?
case $rc in 69|75) ;; *) fail "hopctl migrate: exit status $rc: $(cat "$ROOM/out")" ;; esac
unchanged "$STORES" "$before"
let_go
wait_migrated "$S"
