# about: a second daemon on a directory is refused with who has it, whatever its state directory; a store in the hands of one is left to it
# needs: hopctl
config() { # DIRECTORY [recursive]
    printf '[daemon]\nlog_level = "info"\n\n'
    watch_section test "$1" | sed "s/^models/recursive = ${2:-false}\nmodels/"
}
S=$STORES/a.sqlite
mkdir -p "$STORES/below" "$ROOM/other" "$ROOM/one" "$ROOM/two"
config "$STORES" true >"$ROOM/first.toml"
config "$ROOM/link" >"$ROOM/second.toml"; ln -s "$STORES" "$ROOM/link"
config "$STORES/below" >"$ROOM/third.toml"
config "$ROOM/other" >"$ROOM/fourth.toml"
hopd=$(dirname "$(command -v hopctl)")/hopd
# daemon NAME CONFIG STATE: runs in the background until it says it is ready
daemon() {
    "$hopd" --config "$2" --state-directory "$3" >"$ROOM/$1.log" 2>&1 &
    pids+=($!)
    wait_for 20 "$1 is ready" grep -q 'ready:' "$ROOM/$1.log"
}
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait; explain_failure $?' EXIT
refused() { # WHAT STATUS PATTERN ARGUMENTS...
    local rc=0 what=$1 wanted=$2 pattern=$3; shift 3
    timeout 60 "$hopd" "$@" >"$ROOM/out" 2>&1 || rc=$?
    same "status of $what" "$wanted" "$rc"
    matches "$what" "$pattern" "$(cat "$ROOM/out")"
}
daemon first "$ROOM/first.toml" "$ROOM/one"
first=${pids[0]}
refused 'the second daemon by another name of the directory' 69 "process $first, state directory $ROOM/one.* watches" \
    --config "$ROOM/second.toml" --state-directory "$ROOM/two"
matches 'what to do' "kill $first" "$(cat "$ROOM/out")"
refused 'a daemon below a watch that goes below' 69 "and its subdirectories" --config "$ROOM/third.toml" \
    --state-directory "$ROOM/two"
refused 'the same state directory' 69 "another hopd is running with this state directory .process $first" \
    --config "$ROOM/fourth.toml" --state-directory "$ROOM/one"
daemon fourth "$ROOM/fourth.toml" "$ROOM/two"
# The first goes on as if nothing had been.
make_store "$S" "$OLD" 50 1
wait_for 30 'the store is migrated' is_version "$S" "$NEW"
# A store that hopctl has in its hands, with another state directory, is left to it by daemons and by hopctl.
mkdir "$ROOM/late"
L=$ROOM/late/l.sqlite
make_store "$L" "$OLD" 250000 3
hopctl migrate "$L" --models "$MODEL" --no-progress --state-directory "$ROOM/three" >"$ROOM/hopctl.log" 2>&1 &
tool=$!; pids+=("$tool")
at_work() { compgen -G "$ROOM/late/.l.sqlite.hop-*.tmp" >/dev/null; }
wait_for 20 'hopctl is at work' at_work
kill -STOP "$tool"
rc=0; hopctl migrate "$L" --models "$MODEL" --no-progress --state-directory "$ROOM/four" >"$ROOM/out" 2>&1 || rc=$?
same 'status of the second hopctl' 69 "$rc"
matches 'who has it' "hopctl .process $tool" "$(cat "$ROOM/out")"
config "$ROOM/late" >"$ROOM/fifth.toml"
daemon fifth "$ROOM/fifth.toml" "$ROOM/five"
wait_for 20 'the daemon defers the store' grep -q "hopctl .process $tool" "$ROOM/fifth.log"
kill -CONT "$tool"
wait "$tool" || fail "hopctl: $(cat "$ROOM/hopctl.log")"
same 'version' "$NEW" "$(version_of "$L")"
same 'told once' 1 "$(grep -c "hopctl .process $tool" "$ROOM/fifth.log")"
# And what a killed daemon claimed is free at once.
kill -KILL "$first"
wait "$first" 2>/dev/null || true
daemon second "$ROOM/second.toml" "$ROOM/one"
