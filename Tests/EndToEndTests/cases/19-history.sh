# about: a store with persistent history is migrated: its rows go along with one transaction more, and no journal entry has a value of them
# needs: systemd
configure
mkdir -p "$ROOM/out"
make_store "$ROOM/out/history.sqlite" "$OLD" 40 7
"$PY" - "$ROOM/out/history.sqlite" <<'PY'
import sqlite3, sys
store = sqlite3.connect(sys.argv[1])
# The layout of framework 1344, as Core Data makes it.
for table, columns in {
    "ACHANGE": "Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZCHANGETYPE INTEGER, ZENTITY INTEGER, "
               "ZENTITYPK INTEGER, ZTRANSACTIONID INTEGER, ZCOLUMNS BLOB",
    "ATRANSACTION": "Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZAUTHORTS INTEGER, ZBUNDLEIDTS INTEGER, "
                    "ZCONTEXTNAMETS INTEGER, ZPROCESSIDTS INTEGER, ZTIMESTAMP FLOAT, ZAUTHOR VARCHAR, "
                    "ZBUNDLEID VARCHAR, ZCONTEXTNAME VARCHAR, ZPROCESSID VARCHAR, ZQUERYGEN BLOB",
    "ATRANSACTIONSTRING": "Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR",
}.items():
    store.execute(f"CREATE TABLE {table} ( {columns} )")
store.execute("CREATE INDEX ACHANGE_ZTRANSACTIONID_INDEX ON ACHANGE (ZTRANSACTIONID)")
for number, name, mark in [(16001, "CHANGE", 3), (16002, "TRANSACTION", 1), (16003, "TRANSACTIONSTRING", 2)]:
    store.execute("INSERT INTO Z_PRIMARYKEY VALUES (?, ?, 0, ?)", (number, name, mark))
for key in (1, 2, 3):
    store.execute("INSERT INTO ACHANGE VALUES (?, 16001, NULL, 0, 1, ?, 1, NULL)", (key, key))
store.execute("INSERT INTO ATRANSACTION (Z_PK, Z_ENT, ZTIMESTAMP) VALUES (1, 16002, 700000000.5)")
for key in (1, 2):
    store.execute("INSERT INTO ATRANSACTIONSTRING VALUES (?, 16003, NULL, ?)", (key, f"secret name {key}"))
store.commit()
store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
store.close()
PY
cp "$ROOM/out/history.sqlite" "$ROOM/refused.sqlite"
hopctl migrate "$ROOM/refused.sqlite" --models "$MODEL" --history refuse --no-progress >"$ROOM/refusal" 2>&1 \
    && fail 'not refused'
matches 'the refusal' 'history' "$(cat "$ROOM/refusal")"
move_in "$ROOM/out" "$STORES"
start
wait_migrated "$STORES/history.sqlite" 60
same 'rows of history' '3 2 4' "$(sqlite3 -batch "$STORES/history.sqlite" \
    "SELECT (SELECT count(*) FROM ACHANGE) || ' ' || (SELECT count(*) FROM ATRANSACTION) || ' '
    || (SELECT count(*) FROM ATRANSACTIONSTRING)")"
same 'marks of history' '3 2 4' "$(sqlite3 -batch "$STORES/history.sqlite" \
    "SELECT group_concat(Z_MAX, ' ') FROM (SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT > 16000 ORDER BY Z_ENT)")"
journal=$(journalctl -q -u hopd --no-pager -o cat)
grep -q 'secret name' <<<"$journal" && fail 'the journal holds a value of the store'
plain_check "$STORES/history.sqlite"
