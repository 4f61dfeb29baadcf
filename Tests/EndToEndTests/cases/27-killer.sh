# about: a store at which the daemon is killed comes last, and is left alone after the third time; the others are served, a reload releases it
# needs: systemd
export CHUNK_ROWS=2000 CHUNK_TIME=50ms
LOG_LEVEL=debug configure
S=$STORES/big.sqlite
big_store "$S"
before=$(sha256sum <"$S")
start
for round in 1 2 3; do
    begun() { [ "$(count MESSAGE_ID="$(message_id migrationStarted)" HOPD_STORE="$S")" -ge "$round" ]; }
    wait_for 60 "the migration begins, round $round" begun
    pid=$(main_pid)
    kill -KILL "$pid"
    restarted() { [ "$(main_pid)" != "$pid" ] && [ "$(main_pid)" != 0 ] && [ "$(show ActiveState)" = active ]; }
    wait_for 30 'a restart' restarted
done
refused() { refused_with "$S" store-ends-service; }
wait_for 30 'the refusal' refused
matches 'the refusal' 'killed 3 times' "$(values MESSAGE HOPD_STORE="$S" HOPD_ERROR=store-ends-service)"
same 'the store' "$before" "$(sha256sum <"$S")"
make_store "$STORES/other.sqlite" "$OLD" 20 1
wait_migrated "$STORES/other.sqlite"
systemctl reload hopd
wait_migrated "$S" 150
plain_check "$S"
same 'staged files left' '' "$(staged_files)"
[ ! -e /var/lib/hopd/suspects.json ] || fail 'suspects that have come through stay'
