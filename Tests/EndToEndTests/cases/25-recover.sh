# about: hopctl recover explains what a kill left, changes nothing without --yes, mends with it, and has nothing to do then
# needs: hopctl
S=$STORES/a.sqlite
make_store "$S" "$OLD" 250000 1
titles() { sqlite3 -batch "$1" 'SELECT count(*), sum(length(ZTITLE)) FROM ZBOOK'; }
before=$(titles "$S")
recover() { # STATUS ARGUMENTS...
    local rc=0 wanted=$1; shift
    hopctl recover "$@" >"$ROOM/out" 2>&1 || rc=$?
    same "status of recover $*: $(cat "$ROOM/out")" "$wanted" "$rc"
}
recover 0 "$STORES"
matches 'nothing found' 'nothing to recover' "$(cat "$ROOM/out")"
# Killed in the middle: there is nothing to mend, and the next migration goes on, which is work that is left.
hopctl migrate "$S" --models "$MODEL" --no-progress >/dev/null 2>&1 &
tool=$!
wait_for 20 'hopctl is at work' in_the_middle
kill -KILL "$tool"; wait "$tool" 2>/dev/null || true
found=$(snapshot "$STORES")
recover 10 "$STORES" --json
same state resumes "$(json stores.0.state <"$ROOM/out")"
same content old "$(json stores.0.content <"$ROOM/out")"
recover 10 "$STORES"
matches 'what is staged' 'staged: .*/\.a\.sqlite\.hop-' "$(cat "$ROOM/out")"
recover 10 "$STORES" --discard
matches 'what would go' 'to do: remove staged files' "$(cat "$ROOM/out")"
unchanged "$STORES" "$found"
# The app has written since: what was staged is of no use any more, and of another state directory anyway.
sqlite3 -batch "$S" 'UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 1 WHERE Z_ENT = 1'
found=$(snapshot "$STORES")
recover 10 "$STORES"
matches 'why' 'the old store is in place' "$(cat "$ROOM/out")"
matches 'what' 'to do: remove staged files' "$(cat "$ROOM/out")"
recover 10 "$S" --json
same state needs-repair "$(json stores.0.state <"$ROOM/out")"
unchanged "$STORES" "$found"
recover 0 "$STORES" --yes
matches 'done' 'done: remove staged files' "$(cat "$ROOM/out")"
[ -z "$(find "$STORES" -name '.*hop-*')" ] || fail "left: $(find "$STORES" -name '.*hop-*')"
same 'rows' "$before" "$(titles "$S")"
recover 0 "$STORES" --yes
matches 'nothing left' 'nothing to recover' "$(cat "$ROOM/out")"
# A store that is missing is not made again: its record and its staged store stay, and a person is needed.
hopctl migrate "$S" --models "$MODEL" --no-progress >/dev/null 2>&1 &
tool=$!
wait_for 20 'hopctl is at work' in_the_middle
kill -KILL "$tool"; wait "$tool" 2>/dev/null || true
mv "$S" "$ROOM/kept.sqlite"
found=$(snapshot "$STORES")
recover 65 "$STORES" --yes
matches 'why' 'missing' "$(cat "$ROOM/out")"
unchanged "$STORES" "$found"
mv "$ROOM/kept.sqlite" "$S"
hopctl migrate "$S" --models "$MODEL" --no-progress >/dev/null
same 'rows after the migration' "$before" "$(titles "$S")"
same 'version' "$NEW" "$(version_of "$S")"
recover 0 "$STORES"
# A store that was renamed within its folder: what was staged under its old name goes with --yes, and with it alone.
R=$STORES/b.sqlite
make_store "$R" "$OLD" 250000 1
hopctl migrate "$R" --models "$MODEL" --no-progress >/dev/null 2>&1 &
tool=$!
wait_for 20 'hopctl is at work' in_the_middle
kill -KILL "$tool"; wait "$tool" 2>/dev/null || true
mv "$R" "$STORES/renamed.sqlite"
found=$(snapshot "$STORES")
recover 65 "$STORES"
matches 'its name now' 'it is .*renamed\.sqlite' "$(cat "$ROOM/out")"
unchanged "$STORES" "$found"
recover 0 "$STORES" --yes
matches 'done' 'done: remove staged files' "$(cat "$ROOM/out")"
[ -z "$(find "$STORES" -name '.b.sqlite.hop-*')" ] || fail "left: $(find "$STORES" -name '.*hop-*')"
same 'rows of the renamed store' "$before" "$(titles "$STORES/renamed.sqlite")"
# A checkpoint goes on request, and nothing else: the next migration begins again. Healthy stores are not listed.
D=$STORES/d.sqlite
make_store "$D" "$OLD" 250000 1
hopctl migrate "$D" --models "$MODEL" --no-progress >/dev/null 2>&1 &
tool=$!
wait_for 20 'hopctl is at work' in_the_middle
kill -KILL "$tool"; wait "$tool" 2>/dev/null || true
recover 10 "$STORES" --yes
matches 'it goes on' 'resumes at the last checkpoint' "$(cat "$ROOM/out")"
! grep -q 'a\.sqlite' "$ROOM/out" || fail "a store that is in order is listed: $(cat "$ROOM/out")"
recover 0 "$STORES" --discard --yes
matches 'done' 'done: remove staged files' "$(cat "$ROOM/out")"
[ -z "$(find "$STORES" -name '.d.sqlite.hop-*')" ] || fail "left: $(find "$STORES" -name '.*hop-*')"
same 'version after the discard' "$OLD" "$(version_of "$D")"
same 'rows after the discard' "$before" "$(titles "$D")"
recover 0 "$STORES"
hopctl migrate "$D" --models "$MODEL" --no-progress >/dev/null
same 'version' "$NEW" "$(version_of "$D")"
same 'rows' "$before" "$(titles "$D")"
