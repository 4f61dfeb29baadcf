# about: files that are no store, damaged, of an unknown or of a newer model: told apart, told once, left as they are
# needs: systemd
configure
make_store "$ROOM/making/good.sqlite" "$OLD" 400 1
G=$ROOM/making/good.sqlite
size=$(stat -c %s "$G")
head -c 20000 /dev/urandom >"$STORES/noise.sqlite"
: >"$STORES/empty.sqlite"
head -c $((size / 2)) "$G" >"$STORES/truncated.sqlite"
sqlite3 -batch "$STORES/plain.sqlite" 'CREATE TABLE t (a); INSERT INTO t VALUES (1);'
cp "$G" "$STORES/nometa.sqlite"; sqlite3 -batch "$STORES/nometa.sqlite" 'DELETE FROM Z_METADATA'
cp "$G" "$STORES/torn.sqlite"
dd if=/dev/urandom of="$STORES/torn.sqlite" bs=1 seek=$((size / 2)) count=3000 conv=notrunc status=none
mkdir "$STORES/folder.sqlite"; mkfifo "$STORES/pipe.sqlite"; ln -s "$G" "$STORES/link.sqlite"
# A store of a version that this machine's model does not have: the model loses its current version.
make_store "$STORES/newer.sqlite" "$NEW" 20 2
rm -r "$MODEL/Library 4.xcdatamodel"
sed -i 's/Library 4\.xcdatamodel/Library 3.xcdatamodel/' "$MODEL/.xccurrentversion"
NEW='Library 3'
chown -R -h hopd: "$STORES"
before=$(snapshot "$STORES")
start
for bad in noise truncated plain nometa torn newer; do
    told() { [ "$(count HOPD_STORE="$STORES/$bad.sqlite" PRIORITY=3)" -gt 0 ]; }
    wait_for 30 "an error entry for $bad.sqlite" told
    matches "result of $bad" '^(refused|failed)$' "$(values HOPD_RESULT HOPD_STORE="$STORES/$bad.sqlite" | tail -n 1)"
    matches "hint of $bad" '.' "$(values HOPD_HINT HOPD_STORE="$STORES/$bad.sqlite")"
    note "$bad: $(values HOPD_ERROR HOPD_STORE="$STORES/$bad.sqlite" | sort -u | paste -sd ' ')"
done
codes=$(for bad in noise nometa newer torn; do values HOPD_ERROR HOPD_STORE="$STORES/$bad.sqlite" | tail -n 1; done \
    | sort -u | wc -l)
[ "$codes" -ge 3 ] || fail "noise, no metadata, newer and torn are not told apart ($codes codes)"
unchanged "$STORES" "$before"
# Told once: a rescan repeats nothing while the file stays the same.
n=$(count PRIORITY=3); sleep 8
same 'error entries after two rescans' "$n" "$(count PRIORITY=3)"
# The service goes on with the rest.
make_store "$STORES/good2.sqlite" "$OLD" 20 3
wait_migrated "$STORES/good2.sqlite"
