# about: a Photos library that Apple migrated from macOS 15.4 to 26.1 comes out of hopctl with the same rows
# needs: hopctl
photos=$FIELD/stores/photos
[ -d "$photos" ] || skip 'no stores of Photos beside the fixtures'
mkdir -p "$ROOM/versions"
cp "$photos"/Photos-1*.sqlite* "$photos/Photos-26.1.sqlite" "$ROOM/versions/"
cp "$photos"/Photos-15.4.1.sqlite* "$ROOM/"
# Without its log, the newer store is the older one right after Apple's migration.
cp "$photos/Photos-26.1.sqlite" "$ROOM/apple.sqlite"
hopctl migrate "$ROOM/Photos-15.4.1.sqlite" --models "$ROOM/versions" --output "$ROOM/ours.sqlite" --quiet
hopctl verify "$ROOM/ours.sqlite" --verify full --quiet || fail 'the result has mistakes'
"$PY" -I "$TOOLS/dump-compare" "$ROOM/ours.sqlite" || fail 'the second reader finds something else'
"$PY" -I - "$ROOM/ours.sqlite" "$ROOM/apple.sqlite" <<'PY' || fail 'the rows are not those of Apple'
import collections, sqlite3, sys
ours, apple = (sqlite3.connect(path) for path in sys.argv[1:])
# Which to-many a change names cannot be told apart; the mark of the migration names its program and its time.
known = {('ACHANGE', 'ZCOLUMNS'): 59}
known |= {('ATRANSACTION', name): 1 for name in ('ZAUTHORTS', 'ZBUNDLEIDTS', 'ZPROCESSIDTS', 'ZTIMESTAMP')}
compared, wrong = 0, []
names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'Z_RT%' ORDER BY 1"
for table, in apple.execute(names):
    if table in ('Z_METADATA', 'Z_MODELCACHE', 'ATRANSACTIONSTRING'):
        continue
    columns = [row[1] for row in apple.execute(f'PRAGMA table_info("{table}")')]
    listed = ', '.join(f'"{column}"' for column in columns)
    read = lambda store: store.execute(f'SELECT {listed} FROM "{table}" ORDER BY {listed}').fetchall()
    left, right = read(ours), read(apple)
    if table == 'Z_PRIMARYKEY':
        left, right = ([row for row in rows if row[1] != 'TRANSACTIONSTRING'] for rows in (left, right))
    if len(left) != len(right):
        wrong.append(f'{table}: {len(left)} rows, and {len(right)}')
        continue
    different = collections.Counter(
        columns[place] for pair in zip(left, right) for place, (x, y) in enumerate(zip(*pair)) if x != y)
    wrong += [f'{table}.{name}: {count} values' for name, count in different.items()
              if count > known.get((table, name), 0)]
    compared += len(left)
print(f'{compared} rows compared')
sys.exit('\n'.join(wrong) or (compared < 3000 and 'too few rows'))
PY
