# about: a second reader finds in stores of Photos and other apps what dump says
# needs: hopctl
[ -d "$FIELD/stores" ] || skip 'no stores of the field beside the fixtures'
find "$FIELD/stores" -type f \( -name '*.sqlite' -o -name '*.db' \) -print0 |
    xargs -0 "$PY" -I "$TOOLS/dump-compare" >"$ROOM/compared" 2>&1 || fail "$(cat "$ROOM/compared")"
cat "$ROOM/compared"
