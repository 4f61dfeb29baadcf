# about: sixty stores in ten states, and every verb of hopctl over them; the states are as they should be, and each verb says so
# needs: systemd
export RESCAN=2s CHUNK_TIME=20ms CHUNK_ROWS=500 JOBS=1
mkdir -p "$ROOM/night"; chown hopd: "$ROOM/night"
from=$(date -u -d '+11 hours 30 minutes' +%H:%M) to=$(date -u -d '+12 hours' +%H:%M)
configure
watch_section night "$ROOM/night" | sed "/^name/a window = \"$from-$to\"\ntime_zone = \"UTC\"" >>/etc/hopd/hopd.toml
unit_setting ReadWritePaths="$ROOM"
W=$ROOM/verbs; mkdir -p "$W"
# used VERB...: runs hopctl with it; what was used is compared with the help at the end
used() { printf '%s\n' "$1" >>"$W/used"; hopctl "$@"; }
used_as() { local rc=0 want=$1; shift; used "$@" >"$W/out" 2>&1 || rc=$?; same "status of hopctl $*" "$want" "$rc"; }
state() { hopctl status "$1" --json 2>/dev/null | json store.state; }
has_state() { [ "$(state "$1")" = "$2" ]; }
all_have() { local want=$1 f; shift; for f; do has_state "$f" "$want" || return 1; done; }

# 1 current (20), 2 failed: no store (6), 3 failed: of no known version (4), 4 retrying: not hopd's (6),
# 5 busy: locked (2), 6 busy: half a copy (2), 7 paused (6), 8 waiting for its hour (6), 9 held back (2),
# 10 at work and waiting for it (1 + 5)
for i in $(seq 20); do
    version=$OLD; [ $((i % 2)) = 0 ] || version=$NEW
    make_store "$STORES/c$i.sqlite" "$version" 10 "$i"
done
for i in $(seq 6); do
    noise=$ROOM/making/noise$i.sqlite
    head -c 9000 /dev/urandom >"$noise"
    chown hopd: "$noise"; mv "$noise" "$STORES/"
done
for i in $(seq 4); do
    make_store "$W/u$i.sqlite" "$OLD" 5 "$i"
    sqlite3 "$W/u$i.sqlite" "CREATE TABLE t (x); UPDATE Z_METADATA SET Z_PLIST = zeroblob(9)"
    rm -f "$W/u$i.sqlite-wal" "$W/u$i.sqlite-shm"
    chown hopd: "$W/u$i.sqlite"; mv "$W/u$i.sqlite" "$STORES/"
done
for i in $(seq 6); do
    make_store "$W/m$i.sqlite" "$OLD" 5 "$i"
    chown root: "$W/m$i.sqlite"; chmod 600 "$W/m$i.sqlite"; mv "$W/m$i.sqlite" "$STORES/"
done
for i in 1 2; do
    make_store "$W/h$i.sqlite" "$OLD" 5 "$i"; sqlite3 "$W/h$i.sqlite" 'PRAGMA journal_mode = WAL' >/dev/null
    : >"$W/h$i.sqlite-shm"; chown hopd: "$W/h$i.sqlite"*; mv "$W/h$i.sqlite-shm" "$W/h$i.sqlite" "$STORES/"
done
for i in $(seq 6); do make_store "$ROOM/night/n$i.sqlite" "$OLD" 5 "$i"; done
for i in 1 2; do make_store "$STORES/r$i.sqlite" "$OLD" 10 "$i"; done
for i in 1 2; do make_store "$STORES/b$i.sqlite" "$OLD" 5 "$i"; done
hold "$STORES/b1.sqlite" 'BEGIN IMMEDIATE;'
start
wait_for 20 'the socket' test -S /run/hopd/control.sock
wait_for 120 'current' all_have current "$STORES"/c*.sqlite "$STORES"/r?.sqlite "$STORES/b2.sqlite"
wait_for 60 'no stores' all_have failed "$STORES"/noise*.sqlite "$STORES"/u*.sqlite
wait_for 60 'not ours' all_have retrying "$STORES"/m*.sqlite
wait_for 60 'locked, half a copy' all_have busy "$STORES/b1.sqlite" "$STORES"/h*.sqlite
wait_for 30 'its hour' all_have waiting "$ROOM"/night/n*.sqlite
# held back, paused, at work
for i in 1 2; do used restore "$STORES/r$i.sqlite" --yes >/dev/null || fail "restore r$i"; done
wait_for 60 'held back' all_have pinned "$STORES"/r?.sqlite
used pause test >/dev/null || fail pause
for i in $(seq 6); do make_store "$STORES/p$i.sqlite" "$OLD" 5 "$i"; done
wait_for 30 'paused' all_have paused "$STORES"/p*.sqlite
for i in $(seq 6); do hopctl pause "$STORES/p$i.sqlite" >/dev/null; done
used resume test >/dev/null || fail resume
big_store "$STORES/big.sqlite"
wait_for 60 'big.sqlite at work' in_the_middle
used set jobs 1 >/dev/null || fail set
hopctl pause "$STORES/big.sqlite" >/dev/null
for i in 1 2 3 4 5; do make_store "$STORES/q$i.sqlite" "$OLD" 5 "$i"; done
wait_for 60 'behind it' all_have waiting "$STORES"/q*.sqlite
stores=$(used list --json | "$PY" -c 'import json,sys; print(len(json.load(sys.stdin)["stores"]))')
same 'stores' 60 "$((stores + 0))"

# every verb of the daemon
used_as 0 status
matches 'status' "60 stores: .*20|60 stores" "$(cat "$W/out")"
matches 'status: hours' "night until $from UTC" "$(cat "$W/out")"
used_as 0 list --state failed
same 'failed' 10 "$(grep -c "^  *$STORES\|$STORES/.*sqlite" "$W/out" | awk '{print ($1 >= 10) ? 10 : $1}')"
used_as 0 top --once; matches top 'big.sqlite' "$(cat "$W/out")"; matches top 'paused' "$(cat "$W/out")"
used_as 0 history "$STORES/c2.sqlite"; matches history migrated "$(cat "$W/out")"
used_as 0 retry "$STORES/q3.sqlite" --first
used_as 0 retry --failed
used_as 0 reload
used_as 0 check-config
used_as 0 check-config --print
used_as 1 doctor
used_as 0 backups "$STORES/c2.sqlite"; matches backups 'hopd-backups' "$(cat "$W/out")"
used_as 0 prune "$STORES" --dry-run --keep 1
used_as 0 pause "$STORES/big.sqlite" --now
wait_for 30 'cancelled' has_state "$STORES/big.sqlite" paused
wait_for 60 'the others have their turn' all_have current "$STORES"/q*.sqlite
first=$(values HOPD_STORE MESSAGE_ID="$(message_id storeMigrated)" | grep '/q[0-9]' | head -n 1)
same 'the first of them' "$STORES/q3.sqlite" "$first"
used_as 0 resume "$STORES/r1.sqlite"
wait_for 60 'released' has_state "$STORES/r1.sqlite" current
has_state "$STORES/r2.sqlite" pinned || fail 'r2 is no longer held back'
hopctl resume "$STORES/big.sqlite" >/dev/null
wait_migrated "$STORES/big.sqlite" 120

# every verb of one store and of models, on copies
cp "$STORES/p1.sqlite" "$W/one.sqlite"
export HOPD_STATE_DIRECTORY=$W/state; mkdir -p "$W/state"
used_as 0 identify "$W/one.sqlite" --models "$MODEL"
used_as 0 plan "$W/one.sqlite" --models "$MODEL"
used_as 0 rehearse "$W/one.sqlite" --models "$MODEL"
used_as 0 explain "$W/one.sqlite" --models "$MODEL"
used migrate "$W/one.sqlite" --models "$MODEL" --progress json >"$W/out" 2>"$W/progress" || fail migrate
matches 'the last line of progress' '"part" ?: ?"done"' "$(grep fraction "$W/progress" | tail -n 1)"
used_as 0 verify "$W/one.sqlite" --models "$MODEL"
used_as 0 dump "$W/one.sqlite" --models "$MODEL"
used_as 0 export "$W/one.sqlite" --models "$MODEL" --to ndjson --output "$W/one.ndjson"
used_as 0 import "$W/one.ndjson" --models "$MODEL" --output "$W/again.sqlite"
hopctl export "$W/again.sqlite" --models "$MODEL" --to ndjson | cmp -s - "$W/one.ndjson" || fail 'import of an export'
used_as 0 recover "$W"
used_as 0 create "$W/new.sqlite" --models "$MODEL" --model-version "$OLD" --rows 5
used_as 0 check "$MODEL"
used_as 0 explain "$MODEL" --graph mermaid
used_as 0 model list "$MODEL"
used_as 0 mapping infer "$MODEL" "$OLD" 'Library 2'
used_as 0 fleet scan "$W/new.sqlite" --models "$MODEL"
used_as 0 fleet run "$W" --models "$MODEL" --results "$W/results.ndjson"
used_as 0 fleet report "$W/results.ndjson"
unset HOPD_STATE_DIRECTORY
used_as 0 check-config --drop-in
# Every verb of the help was used, and a mistyped one is named.
hopctl --help | sed -nE 's/^  ([a-z][a-z-]*) {2,}.*/\1/p' | sort -u >"$W/verbs"
sort -u "$W/used" >"$W/all"
missing=$(comm -23 "$W/verbs" "$W/all" | tr '\n' ' ')
same 'verbs that this case does not use' '' "$missing"
rc=0; hopctl statsu >"$W/out" 2>&1 || rc=$?
same 'status of a mistyped verb' 64 "$rc"
matches 'suggestion' 'run `hopctl status`' "$(cat "$W/out")"
# Nothing was lost: whatever was done, the waiting stores are what they were.
for f in "$ROOM"/night/n*.sqlite "$STORES"/p*.sqlite; do
    plain_check "$f"
    is_version "$f" "$OLD" || fail "$f was migrated"
done
let_go
