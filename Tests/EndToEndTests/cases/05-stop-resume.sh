# about: systemctl stop in the middle of a migration ends in time; the next start resumes to the same content
# needs: systemd
export CHUNK_ROWS=2000 CHUNK_TIME=50ms
configure
big_store "$STORES/big.sqlite"
cp "$STORES/big.sqlite" "$ROOM/copy.sqlite"
before=$(content_of "$STORES/big.sqlite")
start
wait_for 60 'the middle of the migration' in_the_middle
t0=$SECONDS
timeout 130 systemctl stop hopd
[ $((SECONDS - t0)) -le 20 ] || fail "the stop took $((SECONDS - t0)) s"
same Result success "$(show Result)"
same 'version after the stop (raise HOPD_E2E_ROWS if the machine is too quick)' "$OLD" \
    "$(version_of "$STORES/big.sqlite")"
same 'content after the stop' "$before" "$(content_of "$STORES/big.sqlite")"
said migrationInterrupted "$STORES/big.sqlite" || fail 'no entry migrationInterrupted'
start
wait_migrated "$STORES/big.sqlite" 150
matches 'entry of the second start' 'resum' "$(values MESSAGE MESSAGE_ID="$(message_id migrationStarted)" \
    HOPD_STORE="$STORES/big.sqlite")"
hopctl migrate "$ROOM/copy.sqlite" --models "$MODEL" --output "$ROOM/reference.sqlite" --no-progress >/dev/null
same 'content against an uninterrupted migration' "$(content_of "$ROOM/reference.sqlite")" \
    "$(content_of "$STORES/big.sqlite")"
plain_check "$STORES/big.sqlite"
same 'staged files left' '' "$(staged_files)"
