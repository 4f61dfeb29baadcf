# about: a second reader finds in stores of hopctl what dump says, migrated ones too, and finds every fault of a toy dump
# needs: hopctl
compare() { "$PY" -I "$TOOLS/dump-compare" "$@" >"$ROOM/compared" 2>&1; }
toy() { "$PY" -I "$TOOLS/toys/dumptoy.py" "$@"; }
toy setup "$ROOM/toy"
version=$ROOM/toy/Toy.xcdatamodel
for seed in 1 2 3; do
    hopctl create "$ROOM/toy/c$seed.sqlite" --models "$version" --model-version Toy --rows 300 --seed "$seed" >/dev/null
done
compare "$ROOM"/toy/c?.sqlite || fail "created stores: $(cat "$ROOM/compared")"
matches 'rows of created stores' '^3 stores, 0 with differences: 900 rows, [0-9]+ values' "$(cat "$ROOM/compared")"

make_store "$STORES/old.sqlite" "$OLD" 200 1
hopctl migrate "$STORES/old.sqlite" --models "$MODEL" --output "$ROOM/new.sqlite" --no-progress >/dev/null 2>&1
compare --models "$MODEL/$NEW.xcdatamodel" "$ROOM/new.sqlite" || fail "a migrated store: $(cat "$ROOM/compared")"

# The control: each fault is one that a dump could have.
for fault in $(toy list); do
    rc=0
    compare --program "$PY $TOOLS/toys/dumptoy.py $fault" --models "$version" "$ROOM/toy/toy.sqlite" || rc=$?
    if [ "$fault" = none ]; then want=0; else want=1; fi
    same "status with the fault $fault" "$want" "$rc"
done
rc=0
compare --program "$PY $TOOLS/toys/dumptoy.py none" --models "$version" "$ROOM/toy/empty.sqlite" || rc=$?
same 'status of an empty store' 3 "$rc"
