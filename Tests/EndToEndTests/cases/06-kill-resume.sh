# about: SIGKILL in the middle of a migration, twice: systemd restarts it, it resumes to the same content
# needs: systemd
export CHUNK_ROWS=2000 CHUNK_TIME=50ms
configure
big_store "$STORES/big.sqlite"
cp "$STORES/big.sqlite" "$ROOM/copy.sqlite"
start
for round in 1 2; do
    wait_for 60 "the middle of the migration, round $round" in_the_middle
    sleep 0.3 # some chunks of 50 ms: without a checkpoint there is nothing to resume
    pid=$(main_pid)
    systemctl kill -s KILL hopd
    restarted() { [ "$(main_pid)" != "$pid" ] && [ "$(show ActiveState)" = active ]; }
    wait_for 30 'a restart' restarted
    if [ $round = 1 ]; then
        same 'version after the kill (raise HOPD_E2E_ROWS if the machine is too quick)' "$OLD" \
            "$(version_of "$STORES/big.sqlite")"
        sleep 0.3
    fi
done
[ "$(show NRestarts)" -ge 2 ] || fail "NRestarts=$(show NRestarts)"
wait_migrated "$STORES/big.sqlite" 150
matches 'entry after the restart' 'resum' "$(values MESSAGE MESSAGE_ID="$(message_id migrationStarted)" \
    HOPD_STORE="$STORES/big.sqlite")"
hopctl migrate "$ROOM/copy.sqlite" --models "$MODEL" --output "$ROOM/reference.sqlite" --no-progress >/dev/null
same 'content against an uninterrupted migration' "$(content_of "$ROOM/reference.sqlite")" \
    "$(content_of "$STORES/big.sqlite")"
plain_check "$STORES/big.sqlite"
same 'staged files left' '' "$(staged_files)"
