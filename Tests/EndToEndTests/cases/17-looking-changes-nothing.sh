# about: identify, plan, verify and dump change nothing in the folder, also beside a cleanly closed WAL store
# needs: hopctl
make_store "$STORES/a.sqlite" "$OLD" 100 1
make_store "$STORES/w.sqlite" "$OLD" 100 2
sqlite3 -batch "$STORES/w.sqlite" 'PRAGMA journal_mode=WAL' >/dev/null
snap() { (cd "$STORES" && find . -printf '%p %i %m %s %T@\n' | sort; find . -type f -exec sha256sum {} + | sort); }
before=$(snap)
for s in a w; do
    identify "$STORES/$s.sqlite" >/dev/null
    hopctl plan "$STORES/$s.sqlite" --models "$MODEL" --json >"$ROOM/plan"
    same "hops of $s" 3 "$("$PY" -I -S -c 'import json, sys; print(len(json.load(sys.stdin)["hops"]))' <"$ROOM/plan")"
    hopctl verify "$STORES/$s.sqlite" --models "$MODEL" >/dev/null
    hopctl dump "$STORES/$s.sqlite" --models "$MODEL" >/dev/null
done
[ "$before" = "$(snap)" ] || fail "the folder has changed: $(diff <(echo "$before") <(snap))"
matches 'warning of the dropped column' 'shelfMark' "$(cat "$ROOM/plan")"
# --output reads only
hopctl migrate "$STORES/a.sqlite" --models "$MODEL" --output "$ROOM/out.sqlite" --no-progress >/dev/null
same 'version of the copy' "$NEW" "$(version_of "$ROOM/out.sqlite")"
[ "$before" = "$(snap)" ] || fail "migrate --output has changed the folder: $(diff <(echo "$before") <(snap))"
