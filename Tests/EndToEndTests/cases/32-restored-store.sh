# about: a store restored under a running hopd is held back and told once, released by command, and no row of it is ever gone; old backups go by keep_for
# needs: systemd
configure
start
S=$STORES/a.sqlite
make_store "$S" "$OLD" 200 1
wait_migrated "$S"
M=MESSAGE_ID=$(message_id storeMigrated)
sqlite3 -batch "$S" "UPDATE ZBOOK SET ZTITLE = 'WRITTEN AFTER' WHERE Z_PK = 1"
hopctl restore "$S" --yes >"$ROOM/out"
matches 'restore says that it pins' 'pinned: restored to Library' "$(cat "$ROOM/out")"
wait_for 30 'held back' said storePinned "$S"
matches 'identify' 'pinned: restored to Library' "$(hopctl identify "$S" --models "$MODEL")"
same 'holds back' True "$(hopctl plan "$S" --models "$MODEL" --json \
    | "$PY" -c 'import json, sys; print(json.load(sys.stdin)["pin"]["isInEffect"])')"
# Three rescans later nothing has happened, and nothing more was told.
sleep 10
same 'version of the restored store' "$OLD" "$(version_of "$S")"
same 'entries' 1 "$(count MESSAGE_ID="$(message_id storePinned)" HOPD_STORE="$S")"
same 'result' pinned "$(values HOPD_RESULT MESSAGE_ID="$(message_id storePinned)" HOPD_STORE="$S")"
hopctl resume "$S" >/dev/null
wait_for 60 'migrated again' is_version "$S" "$NEW"
twice() { [ "$(count "$M" HOPD_STORE="$S")" = 2 ]; }
wait_for 15 "journal: migrated twice" twice
kept=$(hopctl backups "$S" --json | "$PY" -c 'import json, sys
made = (b for s in json.load(sys.stdin)["stores"] for b in s["backups"] if b["createdBy"] == "restore")
print("\n".join(b["backup"] for b in made))')
same 'what was written before the restore' 'WRITTEN AFTER' \
    "$(sqlite3 -batch "$kept" 'SELECT ZTITLE FROM ZBOOK WHERE Z_PK = 1')"
said backupPruned "$S" || fail 'the older backup went without a word'
# The same command by hand
hopctl restore "$S" --yes >/dev/null
matches 'migrate unpins' 'unpinned: the store was restored' "$(hopctl migrate "$S" --models "$MODEL" --no-progress)"
# Backups of a deleted store stay until somebody says for how long
make_store "$STORES/gone.sqlite" "$OLD" 50 2
wait_migrated "$STORES/gone.sqlite"
rm "$STORES/gone.sqlite"
sleep 8
[ -d "$STORES/.gone.sqlite.hopd-backups" ] || fail 'the backups of a deleted store went without a rule'
matches 'backups' 'gone.sqlite \(deleted\)' "$(hopctl backups "$STORES")"
printf '\n[watch.backup]\nkeep_for = "1s"\n' >>/etc/hopd/hopd.toml
systemctl reload hopd
swept() { [ ! -e "$STORES/.gone.sqlite.hopd-backups" ]; }
wait_for 30 'swept' swept
said backupExpired "$STORES/gone.sqlite" || fail 'a backup was swept without a word'
plain_check "$S"
