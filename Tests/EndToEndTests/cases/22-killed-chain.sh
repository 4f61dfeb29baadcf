# about: SIGKILL at random chunks of a chain of hops, through the daemon and hopctl: both reach what a run without a stop gives
# first: it is killed again and again
# needs: systemd
export CHUNK_ROWS=2000 CHUNK_TIME=50ms
RANDOM=${HOPD_SEED:-$$}; note "HOPD_SEED=${HOPD_SEED:-$$}"
pause() { sleep "0.$((RANDOM % 4))$((RANDOM % 10))"; }
LOG_LEVEL=debug configure
big_store "$STORES/big.sqlite"
mkdir -p "$ROOM/hand" "$ROOM/state"
cp "$STORES/big.sqlite" "$ROOM/hand/big.sqlite"
hopctl migrate "$ROOM/hand/big.sqlite" --models "$MODEL" --output "$ROOM/reference.sqlite" \
    --no-progress >/dev/null
reference=$(content_of "$ROOM/reference.sqlite")
# The daemon.
start
rounds=0
for round in 1 2 3; do
    wait_for 60 "the middle of the migration, round $round" in_the_middle
    # A hop that writes has the store that it reads beside the one that it makes.
    staged=$(staged_files | grep -c 'tmp$')
    [ "$staged" = 1 ] || [ "$staged" = 2 ] || fail "staged stores in round $round: $staged"
    pause
    is_version "$STORES/big.sqlite" "$OLD" || break
    pid=$(main_pid)
    systemctl kill -s KILL hopd
    restarted() { [ "$(main_pid)" != "$pid" ] && [ "$(show ActiveState)" = active ]; }
    wait_for 30 'a restart' restarted
    rounds=$round
    is_version "$STORES/big.sqlite" "$OLD" || break
done
[ "$rounds" -ge 1 ] || fail 'never killed in the middle (raise HOPD_E2E_ROWS if the machine is too quick)'
wait_migrated "$STORES/big.sqlite" 150
same 'content by the daemon' "$reference" "$(content_of "$STORES/big.sqlite")"
plain_check "$STORES/big.sqlite"
same 'staged files left' '' "$(staged_files)"
same 'hops told' '1 2 3' "$(values HOPD_HOP MESSAGE_ID="$(message_id hopFinished)" HOPD_STORE="$STORES/big.sqlite" \
    | sort -u | paste -sd ' ')"
# hopctl.
printf '[[watch]]\nname = "hand"\ndirectory = "%s"\nmodels = ["%s"]\n[watch.migration]\nchunk_rows_max = 500\n' \
    "$ROOM/hand" "$MODELS" >"$ROOM/hand.toml"
migrate() { HOPD_STATE_DIRECTORY=$ROOM/state hopctl migrate "$ROOM/hand/big.sqlite" --config "$ROOM/hand.toml" \
    --no-progress "$@"; }
rounds=0
for round in 1 2 3 4; do
    # In the shell's own place, so that the kill meets hopctl itself.
    (HOPD_STATE_DIRECTORY=$ROOM/state exec hopctl migrate "$ROOM/hand/big.sqlite" --config "$ROOM/hand.toml" \
        --no-progress) >/dev/null 2>&1 & runner=$!
    staged_by_hand() { [ -n "$(find "$ROOM/hand" -name '.*.hop-*' -size +512k)" ] || ! kill -0 $runner; }
    wait_for 60 "the middle by hand, round $round" staged_by_hand
    pause
    kill -KILL $runner 2>/dev/null && rounds=$((rounds + 1))
    wait $runner 2>/dev/null || true
    is_version "$ROOM/hand/big.sqlite" "$OLD" || break
done
[ $rounds -ge 1 ] || fail 'hopctl was never killed (raise HOPD_E2E_ROWS if the machine is too quick)'
migrate >/dev/null
same 'content by hopctl' "$reference" "$(content_of "$ROOM/hand/big.sqlite")"
plain_check "$ROOM/hand/big.sqlite"
same 'files left by hand' '' "$(find "$ROOM/hand" -name '.*.hop-*')"
