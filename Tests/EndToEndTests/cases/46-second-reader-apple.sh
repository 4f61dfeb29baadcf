# about: a second reader finds in stores that Apple's software made what dump says
# needs: hopctl
[ -d "$FIXTURES/stores" ] || skip 'no fixtures: set HOPD_FIXTURES to their folder'
# A store without a copy of its model has the model beside it.
own=() others=()
while IFS= read -r -d '' store; do
    model=$(find "$(dirname "$store")/model" -name '*.xcdatamodel' -print -quit 2>/dev/null || true)
    if hopctl model list "$store" >/dev/null 2>&1; then own+=("$store"); else others+=("$store" "$model"); fi
done < <(find "$FIXTURES/stores" "$FIXTURES/apple" "$FIXTURES/swiftdata" -type f -size +0 \
    \( -name '*.sqlite' -o -name '*.moody' -o -name '*.original' \) -print0 2>/dev/null)
compare() { "$PY" -I "$TOOLS/dump-compare" "$@" >>"$ROOM/compared" 2>&1 || fail "$(cat "$ROOM/compared")"; }
compare "${own[@]}"
for ((i = 0; i < ${#others[@]}; i += 2)); do
    [ -n "${others[i + 1]}" ] || fail "no model for ${others[i]}"
    compare --models "${others[i + 1]}" "${others[i]}"
done
cat "$ROOM/compared"
