# about: replacement in place: hard links, mounts and attributes stay where a rename is refused; killed in the commit, it is old or new
# needs: hopctl
migrate() { hopctl migrate "$1" --models "$MODEL" --no-progress "${@:2}"; }
inode() { stat -c '%d:%i:%u:%g:%a' "$1"; }
# Two names of one file
make_store "$STORES/a.sqlite" "$OLD" 400 1
S=$STORES/a.sqlite
mkdir -p "$ROOM/other"; ln "$S" "$ROOM/other/name.sqlite"
chmod 664 "$S"
before=$(snapshot "$STORES") file=$(inode "$S")
rc=0; migrate "$S" >"$ROOM/out" 2>&1 || rc=$?
same 'status of a rename over two names' 73 "$rc"
matches 'refusal' 'hard link' "$(cat "$ROOM/out")"
matches 'the next thing to type' '--replace in-place' "$(cat "$ROOM/out")"
rc=0; hopctl plan "$S" --models "$MODEL" --check >"$ROOM/out" 2>&1 || rc=$?
same 'status of its plan' 73 "$rc"
rc=0; hopctl plan "$S" --models "$MODEL" --check --replace in-place >"$ROOM/out" 2>&1 || rc=$?
same 'status of the plan in place' 10 "$rc"
unchanged "$STORES" "$before"
old=$(content_of "$S")
migrate "$S" --replace in-place --json >"$ROOM/report"
same 'result' migrated "$(json result <"$ROOM/report")"
same 'file, owner and mode' "$file" "$(inode "$S")"
same 'version by the other name' "$NEW" "$(version_of "$ROOM/other/name.sqlite")"
plain_check "$S"
backup=$(json backup <"$ROOM/report")
same 'version of the backup' "$OLD" "$(version_of "$backup")"
same 'what lies about' '' "$(find "$STORES" -name '*.tmp' -o -name '*-journal' -o -name '*-wal')"
hopctl restore "$S" --yes --replace in-place >/dev/null
same 'file after the restore' "$file" "$(inode "$S")"
same 'content after the restore' "$old" "$(content_of "$S")"
# The daemon's own setting
sed 's/^\[watch.migration\]$/&\nreplace = "in-place"/' <(watch_section test "$STORES") >"$ROOM/in-place.toml"
migrate "$S" --backup none >"$ROOM/out" 2>&1 && fail 'a rename parted two names'
hopctl migrate "$S" --config "$ROOM/in-place.toml" --no-progress >/dev/null 2>&1
same 'file by the configuration' "$file" "$(inode "$S")"
same 'version by the configuration' "$NEW" "$(version_of "$S")"
# A file that is a mount of its own
if [ "$(id -u)" = 0 ] && make_store "$STORES/m.sqlite" "$OLD" 50 2 \
    && mount --bind "$STORES/m.sqlite" "$STORES/m.sqlite" 2>/dev/null; then
    M=$STORES/m.sqlite
    rc=0; migrate "$M" >"$ROOM/out" 2>&1 || rc=$?
    same 'status of a rename over a mount' 73 "$rc"
    matches 'refusal' 'mount point' "$(cat "$ROOM/out")"
    migrate "$M" --replace in-place >/dev/null 2>&1
    same 'version of the mounted file' "$NEW" "$(version_of "$M")"
    mountpoint -q "$M" || fail 'the mount is gone'
    umount "$M"
    same 'version below the mount' "$NEW" "$(version_of "$M")"
else
    note 'no mounts here: the mounted store was not tried'
fi
# A writer that waits for the lock commits into the new store. While there is a staged store the lock is held: looking
# for the lock itself would be in its way. The migration may be over before anybody has looked: then once more
locked() { compgen -G "$STORES/.w$seed.sqlite.hop-*" >/dev/null; }
seen=''
for seed in 3 13 23 33 43 53; do
    W=$STORES/w$seed.sqlite
    make_store "$W" "$OLD" 40000 "$seed"
    sqlite3 -batch "$W" 'PRAGMA journal_mode=DELETE' >/dev/null
    rows=$(sqlite3 -batch "$W" 'SELECT count(*) FROM ZBOOK')
    migrate "$W" --replace in-place >/dev/null 2>&1 & job=$!
    while kill -0 $job 2>/dev/null; do
        if locked; then seen=1; break; fi
    done
    late=0
    sqlite3 -batch -cmd '.timeout 60000' "$W" 'DELETE FROM ZBOOK WHERE Z_PK = (SELECT max(Z_PK) FROM ZBOOK)' && late=1
    wait $job || fail 'the migration beside a waiting writer'
    same 'rows after the writer' "$((rows - late))" "$(sqlite3 -batch "$W" 'SELECT count(*) FROM ZBOOK')"
    same 'version beside a writer' "$NEW" "$(version_of "$W")"
    plain_check "$W"
    [ -z "$seen" ] || break
done
[ -n "$seen" ] || fail 'the lock was never seen'
# Killed at random moments, in either journal mode: SQLite alone finds old or new, and the next run finishes
for mode in DELETE WAL; do
    make_store "$STORES/k$mode.sqlite" "$OLD" 3000 4
    K=$STORES/k$mode.sqlite
    sqlite3 -batch "$K" "PRAGMA journal_mode=$mode" >/dev/null
    file=$(inode "$K")
    for delay in 0.05 0.2 0.3 0.35 0.4 0.5; do
        timeout -s KILL $delay hopctl migrate "$K" --models "$MODEL" --no-progress --replace in-place >/dev/null 2>&1 \
            || true
        cp "$K" "$ROOM/raw"; for side in journal wal; do [ ! -e "$K-$side" ] || cp "$K-$side" "$ROOM/raw-$side"; done
        same 'integrity after a kill' ok "$(sqlite3 -batch "$ROOM/raw" 'PRAGMA integrity_check')"
        rm -f "$ROOM"/raw*
    done
    migrate "$K" --replace in-place >/dev/null 2>&1
    same 'version after kills' "$NEW" "$(version_of "$K")"
    same 'file after kills' "$file" "$(inode "$K")"
    same 'staged files left' '' "$(find "$STORES" -name '.*.hop-*')"
done
