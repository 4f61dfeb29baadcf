# about: a store moved or written into the directory is migrated, with a backup; other files are left alone
# needs: systemd
configure
echo 'not a store' >"$STORES/notes.txt"
start
make_store "$STORES/a.sqlite" "$OLD" 200 1
make_store "$STORES/b.sqlite" 'Library 2' 200 2
make_store "$STORES/c.sqlite" "$NEW" 50 3
before=$(sha256sum <"$STORES/c.sqlite")
wait_migrated "$STORES/a.sqlite"
wait_migrated "$STORES/b.sqlite"
plain_check "$STORES/a.sqlite"
same 'rows of Book' 1 "$(sqlite3 -batch "$STORES/a.sqlite" 'SELECT count(*) > 0 FROM ZBOOK')"
# Written in place by a program that takes its time, as sqlite3 would: only a quiet file is taken.
make_store "$ROOM/making/slow.sqlite" "$OLD" 50 4
head -c 4096 "$ROOM/making/slow.sqlite" >"$STORES/slow.sqlite"; chown hopd: "$STORES/slow.sqlite"
sleep 0.1; tail -c +4097 "$ROOM/making/slow.sqlite" >>"$STORES/slow.sqlite"
wait_migrated "$STORES/slow.sqlite"
backup=$(values HOPD_BACKUP MESSAGE_ID="$(message_id storeMigrated)" HOPD_STORE="$STORES/a.sqlite")
[ -d "$backup" ] && backup=$backup/a.sqlite
[ -s "$backup" ] || fail "no backup at '$backup'"
same 'version of the backup' "$OLD" "$(version_of "$backup")"
same 'a current store' "$before" "$(sha256sum <"$STORES/c.sqlite")"
same 'a text file' 'not a store' "$(cat "$STORES/notes.txt")"
same 'staged files left' '' "$(staged_files)"
same 'owner of the new store' hopd "$(stat -c %U "$STORES/a.sqlite")"
