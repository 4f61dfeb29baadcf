# about: hopctl status, list and history name each store with its state, reason and next command, with the daemon up and down
# needs: systemd
export RESCAN=2s
configure
make_store "$STORES/old.sqlite" "$OLD" 20 1
make_store "$STORES/cur rent.sqlite" "$NEW" 20 2
head -c 20000 /dev/urandom >"$ROOM/making/noise.sqlite"; chown hopd: "$ROOM/making/noise.sqlite"
mv "$ROOM/making/noise.sqlite" "$STORES/"
make_store "$ROOM/making/mine.sqlite" "$OLD" 20 3
chown root:root "$ROOM/making/mine.sqlite"; chmod 600 "$ROOM/making/mine.sqlite"
mv "$ROOM/making/mine.sqlite" "$STORES/"
make_store "$STORES/held.sqlite" "$OLD" 20 4
hold "$STORES/held.sqlite" 'BEGIN IMMEDIATE;'
rc=0; hopctl status >"$ROOM/out" 2>&1 || rc=$?
same 'status before the first start' 7 "$rc"
start
state() { hopctl status "$STORES/$1" --json 2>/dev/null | json store.state; }
has_state() { [ "$(state "$1")" = "$2" ]; }
wait_for 60 'old.sqlite current' has_state old.sqlite current
wait_for 30 'current' has_state 'cur rent.sqlite' current
wait_for 30 'failed' has_state noise.sqlite failed
wait_for 30 'retrying' has_state mine.sqlite retrying
wait_for 30 'busy' has_state held.sqlite busy
hopctl status >"$ROOM/out" || fail 'status while hopd runs'
matches 'status' '5 stores: 2 current, 1 busy, 1 retrying, 1 failed' "$(cat "$ROOM/out")"
matches 'process' "PID $(main_pid)" "$(cat "$ROOM/out")"
# Which, why, since when, and what to type: and what is to be typed works.
matches 'reason' 'not-a-store' "$(cat "$ROOM/out")"
next=$(hopctl status "$STORES/noise.sqlite" --json | json store.problem.command)
matches 'next command' '^hopctl identify' "$next"
rc=0; sh -c "$next" >"$ROOM/next" 2>&1 || rc=$?
same 'status of the next command' 65 "$rc"
matches 'next attempt' '^20[0-9-]+T[0-9:]+Z$' "$(hopctl status "$STORES/mine.sqlite" --json \
    | json store.problem.nextAttempt)"
same 'failed' "$STORES/noise.sqlite" "$(hopctl list --failed --json | json stores.0.store)"
same 'stores of the watch' 5 "$(hopctl list --watch test --json \
    | "$PY" -c 'import json,sys; print(len(json.load(sys.stdin)["stores"]))')"
# A store that was named alone has the models and rules of its watch.
same 'models of the watch' watch "$(hopctl identify "$STORES/mine.sqlite" --json 2>/dev/null | json models.from)"
# A store is found whatever way it is named.
(cd "$STORES" && hopctl status ./held.sqlite >/dev/null) || fail 'a relative name'
ln -s "$STORES" "$ROOM/link"
hopctl status "$ROOM/link/held.sqlite" >/dev/null || fail 'a name through a link'
rc=0; hopctl status "$STORES/nothing.sqlite" >/dev/null 2>&1 || rc=$?
same 'status of an unknown store' 66 "$rc"
# History, with the backup.
same 'result' migrated "$(hopctl history "$STORES/old.sqlite" --json | json jobs.0.result)"
same 'asker' hopd "$(hopctl history "$STORES/old.sqlite" --json | json jobs.0.requestedBy)"
[ -f "$(hopctl history "$STORES/old.sqlite" --json | json jobs.0.backup)" ] \
    || fail 'the backup of the history is not there'
# A member of the group may ask, anybody else not.
useradd -M -G hopd asker; useradd -M stranger
setpriv --reuid asker --regid "$(id -g asker)" --init-groups hopctl list >/dev/null || fail 'a member of the group'
rc=0; setpriv --reuid stranger --regid "$(id -g stranger)" --init-groups hopctl list >/dev/null 2>&1 || rc=$?
same 'a stranger' 77 "$rc"
# Mended, it is current; gone, it is forgotten; its history stays.
let_go
wait_for 60 'held.sqlite current' has_state held.sqlite current
rm "$STORES/noise.sqlite"
gone() { ! hopctl status "$STORES/noise.sqlite" >/dev/null 2>&1; }
wait_for 30 'noise.sqlite forgotten' gone
same 'history of a store that is gone' refused "$(hopctl history "$STORES/noise.sqlite" --json | json jobs.0.result)"
# Down: the same answers, and 7 says so.
systemctl stop hopd
rc=0; hopctl status >"$ROOM/out" || rc=$?
same 'status of status with the daemon down' 7 "$rc"
matches 'status' 'not running: it was stopped at 20' "$(cat "$ROOM/out")"
same 'list with the daemon down' "$STORES/mine.sqlite" "$(hopctl list --state retrying --json | json stores.0.store)"
same 'history with the daemon down' migrated "$(hopctl history "$STORES/old.sqlite" --json | json jobs.0.result)"
# Lost or damaged, it is made anew and said once; nothing else happens.
head -c 30000 /dev/urandom >/var/lib/hopd/state.sqlite
start
wait_for 30 'known again' has_state old.sqlite current
[ "$(count MESSAGE_ID="$(message_id stateReplaced)")" = 1 ] || fail 'the loss is not told once'
# No value of an attribute is in it.
same 'values' 0 "$(sqlite3 /var/lib/hopd/state.sqlite .dump | grep -c 'ZTITLE\|ZNAME' || true)"
# A record of a newer hopd is left alone.
systemctl stop hopd
sqlite3 /var/lib/hopd/state.sqlite 'PRAGMA user_version = 99'
rc=0; systemctl start hopd 2>/dev/null || rc=$?
same 'exit status with a newer record' 78 "$(show ExecMainStatus)"
