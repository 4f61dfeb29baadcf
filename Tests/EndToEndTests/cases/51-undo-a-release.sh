# about: what a bad version did to the stores of a watch is undone by one command; they stay when the next version arrives, until their group is released
# needs: systemd
export RESCAN=1s
# The bad version is not there yet.
cp -R "$MODEL" "$ROOM/whole"
rm -r "$MODEL/Library 4.xcdatamodel"
current() { sed -i "s#<string>.*</string>#<string>$1.xcdatamodel</string>#" "$MODEL/.xccurrentversion"; }
current 'Library 3'
configure
all='s1 s2 s3 s4 s5'
for s in $all; do make_store "$STORES/$s.sqlite" 'Library 3' 50 "${s#s}"; done
start
known() { hopctl list --json | "$PY" -I -S -c 'import json, sys
found = [s["state"] for s in json.load(sys.stdin)["stores"]]
sys.exit(found != ["current"] * 5)'; }
wait_for 60 'five current stores' known
titles=$(sqlite3 -batch "$STORES/s1.sqlite" 'SELECT group_concat(ZTITLE) FROM (SELECT ZTITLE FROM ZBOOK ORDER BY Z_PK)')
# It arrives, and hopd does what it is told.
cp -R "$ROOM/whole/Library 4.xcdatamodel" "$MODEL/"
current 'Library 4'
for s in $all; do wait_migrated "$STORES/$s.sqlite"; done
make_store "$STORES/new.sqlite" "$NEW" 50 9
sqlite3 -batch "$STORES/s1.sqlite" "UPDATE ZBOOK SET ZTITLE = 'WRITTEN AFTER' WHERE Z_PK = 1"
# hopd looks at what was written.
sleep 2
wait_for 30 'an empty queue' idle
# Looking first
before=$(snapshot "$STORES")
hopctl restore --watch test --to-version "$NEW" --dry-run >"$ROOM/dry"
matches 'dry run' '5 to restore' "$(cat "$ROOM/dry")"
matches 'dry run' 's1\.sqlite .* Library 4 → Library 3' "$(cat "$ROOM/dry")"
unchanged "$STORES" "$before"
rc=0; hopctl restore --watch test --to-version "$NEW" </dev/null >/dev/null 2>"$ROOM/err" || rc=$?
same 'status without --yes and terminal' 64 "$rc"
unchanged "$STORES" "$before"
# One store is in use: the others are restored, and the same command continues.
outcomes() { "$PY" -I -S -c 'import json, sys
for s in json.load(open(sys.argv[1]))["stores"]: print(s["store"].rsplit("/", 1)[1], s["result"])' "$1"; }
hold "$STORES/s2.sqlite" 'BEGIN IMMEDIATE;'
rc=0; hopctl restore --watch test --since -1h --yes --json >"$ROOM/first" 2>"$ROOM/err" || rc=$?
let_go
same 'status with a store in use' 75 "$rc"
same 'results' 's1.sqlite restored s2.sqlite waiting s3.sqlite restored s4.sqlite restored s5.sqlite restored ' \
    "$(outcomes "$ROOM/first" | tr '\n' ' ')"
group=$(json group <"$ROOM/first")
hopctl restore --watch test --since -1h --yes --json >"$ROOM/second"
same 'group' "$group" "$(json group <"$ROOM/second")"
same 'results' "$(printf '%s ' 's1.sqlite already-restored' 's2.sqlite restored' 's3.sqlite already-restored' \
    's4.sqlite already-restored' 's5.sqlite already-restored')" \
    "$(outcomes "$ROOM/second" | tr '\n' ' ')"
for s in $all; do
    wait_for 30 "$s is held back" said storePinned "$STORES/$s.sqlite"
    same "version of $s" 'Library 3' "$(version_of "$STORES/$s.sqlite")"
    plain_check "$STORES/$s.sqlite"
done
same 'content' "$titles" \
    "$(sqlite3 -batch "$STORES/s1.sqlite" 'SELECT group_concat(ZTITLE) FROM (SELECT ZTITLE FROM ZBOOK ORDER BY Z_PK)')"
kept=$(json stores.0.backup <"$ROOM/first")
same 'what was written before the restore' 'WRITTEN AFTER' \
    "$(sqlite3 -batch "$kept" 'SELECT ZTITLE FROM ZBOOK WHERE Z_PK = 1')"
one_entry() { hopctl status | grep -q "5 stores of the group $group"; }
wait_for 30 'one entry for the group in status' one_entry
same 'the store that was never migrated' "$NEW" "$(version_of "$STORES/new.sqlite")"
# Also while the version that they are pinned to is the target.
current 'Library 3'
newer() { hopctl list --json | "$PY" -I -S -c 'import json, sys
sys.exit([s["state"] for s in json.load(sys.stdin)["stores"] if s["store"].endswith("/new.sqlite")] != ["failed"])'; }
wait_for 60 'the other store is newer than the target' newer
wait_for 30 'an empty queue' idle
status_of_group=$(hopctl status)
matches 'status' "5 stores of the group $group" "$status_of_group"
matches 'status' "next: hopctl resume --group $group" "$status_of_group"
# The next version arrives: other stores are migrated, the group stays.
mkdir "$ROOM/five"
fix='<entity name="Fix"><attribute name="note" optional="YES" attributeType="String"/></entity>'
sed -e 's#ModelVersionIdentifier="4"#ModelVersionIdentifier="5"#' -e "s#<entity name=\"Book\"#$fix&#" \
    "$ROOM/whole/Library 4.xcdatamodel/contents" >"$ROOM/five/contents"
mv "$ROOM/five" "$MODEL/Library 5.xcdatamodel"
current 'Library 5'
wait_for 60 'the other store gets the new version' is_version "$STORES/new.sqlite" 'Library 5'
sleep 5
for s in $all; do same "version of $s, pinned" 'Library 3' "$(version_of "$STORES/$s.sqlite")"; done
hopctl resume --group "$group" >"$ROOM/released"
matches 'resume --group' '5 stores unpinned' "$(cat "$ROOM/released")"
for s in $all; do wait_for 60 "$s gets the new version" is_version "$STORES/$s.sqlite" 'Library 5'; done
for s in $all; do plain_check "$STORES/$s.sqlite"; done
