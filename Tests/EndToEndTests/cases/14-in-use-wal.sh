# about: a WAL store that another process merely has open is deferred; rows only in its log are in the new store
# needs: systemd
configure
make_store "$ROOM/making/a.sqlite" "$OLD" 100 1
S=$STORES/a.sqlite
mv "$ROOM/making/a.sqlite" "$S"
sqlite3 -batch "$S" 'PRAGMA journal_mode=WAL;' >/dev/null
rows=$(sqlite3 -batch "$S" 'SELECT count(*) FROM ZAUTHOR')
hold "$S" "PRAGMA wal_autocheckpoint=0;
INSERT INTO ZAUTHOR (Z_PK, Z_ENT, Z_OPT, ZNAME) SELECT max(Z_PK) + 1, max(Z_ENT), 1, 'from the log' FROM ZAUTHOR;
UPDATE Z_PRIMARYKEY SET Z_MAX = (SELECT max(Z_PK) FROM ZAUTHOR) WHERE Z_NAME = 'Author';"
chown hopd: "$S"*
[ -s "$S-wal" ] || fail 'there is no log: the case proves nothing'
before=$(snapshot "$STORES")
start
wait_for 30 'entry storeDeferred' said storeDeferred "$S"
sleep 4
unchanged "$STORES" "$before"
same 'identify reads past the log' "$OLD" "$(version_of "$S")"
let_go KILL
wait_migrated "$S"
same 'authors' $((rows + 1)) "$(sqlite3 -batch "$S" 'SELECT count(*) FROM ZAUTHOR')"
same 'the row that was only in the log' 1 \
    "$(sqlite3 -batch "$S" "SELECT count(*) FROM ZAUTHOR WHERE ZNAME = 'from the log'")"
plain_check "$S"
