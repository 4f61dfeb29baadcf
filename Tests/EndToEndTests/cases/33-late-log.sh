# about: a log that arrives after hopd has migrated its database is set aside and told, and whoever opens the store next finds it whole
# needs: systemd
configure
make_store "$ROOM/making/a.sqlite" "$OLD" 100 1
S=$STORES/a.sqlite
M=$ROOM/making/a.sqlite
# A store as rsync would send it: the database first, and its log, which has a row that nothing else has, seconds later.
$PY - "$M" <<'PY'
import os, sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute('PRAGMA journal_mode=WAL')
c.execute('PRAGMA wal_autocheckpoint=0')
c.execute("INSERT INTO ZAUTHOR (Z_PK, Z_ENT, Z_OPT, ZNAME) "
          "SELECT max(Z_PK) + 1, max(Z_ENT), 1, 'from the log' FROM ZAUTHOR")
c.execute("UPDATE ZBOOK SET ZTITLE = ZTITLE || ' again'")
os._exit(0)
PY
[ -s "$M-wal" ] || fail 'there is no log: the case proves nothing'
mv "$M-wal" "$ROOM/late"
rm -f "$M-shm"
chown hopd: "$M" "$ROOM/late"
start
mv "$M" "$S"
wait_migrated "$S"
dump=$(sqlite3 -batch "$S" .dump | sha256sum)
mv "$ROOM/late" "$S-wal"
late() { compgen -G "$S.late-*-wal"; }
wait_for 30 'the log set aside' late
[ ! -e "$S-wal" ] || fail 'the log still lies beside the store'
plain_check "$S"
same 'the new store' "$dump" "$(sqlite3 -batch "$S" .dump | sha256sum)"
said_late() { journalctl -q -t hopd HOPD_STORE="$S" -o cat \
    | grep -q 'arrived after the store was migrated and was set aside'; }
wait_for 10 'an entry that says so' said_late
# As the entry says: the backup and the log are the store that was sent.
old=$(compgen -G "$STORES/.a.sqlite.hopd-backups/*/a.sqlite" | head -n 1)
mkdir "$ROOM/joined"
cp "$old" "$ROOM/joined/a.sqlite"
cp "$(late)" "$ROOM/joined/a.sqlite-wal"
same 'the row of the log' 1 "$(sqlite3 -batch "$ROOM/joined/a.sqlite" \
    "SELECT count(*) FROM ZAUTHOR WHERE ZNAME = 'from the log'")"
