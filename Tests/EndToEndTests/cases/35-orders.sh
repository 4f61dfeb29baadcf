# about: orders over the control socket: retry, pause, resume, set, reload, top, doctor; a foreign Varlink client; hostile ones
# needs: systemd
export RESCAN=1h CHUNK_TIME=20ms CHUNK_ROWS=2000
export JOBS=1
configure
sed -i 's/retry = .*/retry = { attempts = 2, backoff = "1h", max = "1h" }/' /etc/hopd/hopd.toml
S=/run/hopd/control.sock
start
wait_for 20 'the socket' test -S "$S"
same 'rights of the socket' '660 hopd hopd' "$(stat -c '%a %U %G' "$S")"
state() { hopctl status "$STORES/$1" --json 2>/dev/null | json store.state; }
has_state() { [ "$(state "$1")" = "$2" ]; }

# pause and resume a watch; the pause outlives a restart
hopctl pause test >"$ROOM/out" || fail 'pause of a watch'
matches 'pause' 'paused: test' "$(cat "$ROOM/out")"
make_store "$STORES/a.sqlite" "$OLD" 20 1
make_store "$STORES/b.sqlite" "$OLD" 20 2
wait_for 30 'a paused' has_state a.sqlite paused
wait_for 30 'b paused' has_state b.sqlite paused
systemctl restart hopd
wait_for 30 'a paused after a restart' has_state a.sqlite paused
is_version "$STORES/a.sqlite" "$OLD" || fail 'a paused store was migrated'
matches 'status' 'paused: test' "$(hopctl status)"
# retry --first: the later one goes first
# (after a start a store is known once it has been quiet)
wait_for 20 first hopctl retry "$STORES/b.sqlite" --first
hopctl resume test >/dev/null || fail resume
wait_migrated "$STORES/a.sqlite"; wait_migrated "$STORES/b.sqlite"
same 'the first of the two' "$STORES/b.sqlite" "$(values HOPD_STORE MESSAGE_ID="$(message_id storeMigrated)" \
    | head -n 1)"
same 'who asked for b' 'user root' "$(hopctl history "$STORES/b.sqlite" --json | json jobs.0.requestedBy)"

# retry: a store that would wait for an hour, and one that was refused
make_store "$ROOM/making/r.sqlite" "$OLD" 20 3
cp -a "$ROOM/making/r.sqlite" "$ROOM/making/good"
make_store "$STORES/busy.sqlite" "$OLD" 20 4
hold "$STORES/busy.sqlite" 'BEGIN IMMEDIATE;'
wait_for 30 'busy' has_state busy.sqlite busy
let_go
hopctl retry --failed --json >"$ROOM/out" || fail 'retry --failed'
same 'tried again' "$STORES/busy.sqlite" "$(json stores.0 <"$ROOM/out")"
wait_migrated "$STORES/busy.sqlite"
matches 'retry of a current store' 'already at the target version' "$(hopctl retry "$STORES/a.sqlite")"
rc=0; hopctl retry "$STORES/nothing.sqlite" >/dev/null 2>"$ROOM/out" || rc=$?
same 'status of retry of an unknown store' 66 "$rc"
said commandReceived '' HOPD_REQUESTER='user root' || fail 'orders are not in the journal'

# pause --now: stops at a checkpoint, resume goes on
hopctl set jobs 2 >"$ROOM/out" || fail set
matches 'set' 'jobs = 2 until hopd restarts .was 1.' "$(cat "$ROOM/out")"
matches 'status' 'jobs = 2 .configured: 1.' "$(hopctl status)"
rc=0; hopctl set job 2 2>"$ROOM/out" || rc=$?
[ "$rc" -ne 0 ] || fail 'set of an unknown key'
matches 'suggestion' 'use .jobs.' "$(cat "$ROOM/out")"
before=$(content_of /opt/hopd-cache/big.sqlite)
big_store "$STORES/big.sqlite"
wait_for 60 'big.sqlite at work' in_the_middle
hopctl top --once >"$ROOM/out" || fail top
matches 'top' "big\.sqlite" "$(cat "$ROOM/out")"
hopctl pause "$STORES/big.sqlite" --now >"$ROOM/out" || fail 'pause --now'
matches 'pause --now' 'stops at the next checkpoint' "$(cat "$ROOM/out")"
wait_for 30 'cancelled' has_state big.sqlite paused
same 'result of the job' interrupted "$(hopctl history "$STORES/big.sqlite" --json | json jobs.0.result)"
[ "$(content_of "$STORES/big.sqlite")" = "$before" ] || fail 'the cancelled store has changed'
hopctl resume "$STORES/big.sqlite" >/dev/null || fail 'resume of a store'
wait_migrated "$STORES/big.sqlite" 120
matches 'entry of the resumption' 'resum' "$(values MESSAGE MESSAGE_ID="$(message_id migrationStarted)" \
    HOPD_STORE="$STORES/big.sqlite")"

# pause of everything, and the flag file
hopctl pause >/dev/null; matches 'status' 'paused: everything' "$(hopctl status)"
hopctl resume >/dev/null
touch /run/hopd/pause
make_store "$STORES/c.sqlite" "$OLD" 20 5
flagged() { hopctl status | grep -q 'paused: /run/hopd/pause'; }
wait_for 20 'the flag file in status' flagged
rm /run/hopd/pause
wait_migrated "$STORES/c.sqlite"

# reload: waits, and says what is wrong
hopctl reload >/dev/null || fail reload
cp /etc/hopd/hopd.toml "$ROOM/good.toml"; echo 'jobs = "many"' >/etc/hopd/hopd.toml
rc=0; hopctl reload 2>"$ROOM/out" || rc=$?
same 'status of a reload of a broken file' 78 "$rc"
matches 'reload' 'old configuration remains' "$(cat "$ROOM/out")"
cp "$ROOM/good.toml" /etc/hopd/hopd.toml; hopctl reload >/dev/null
matches 'check-config --print' '^# /etc/hopd/hopd.toml' "$(hopctl check-config --print)"
rc=0; hopctl doctor >"$ROOM/doctor" || rc=$?
case $rc in 0|1) ;; *) fail "doctor: $rc" ;; esac
grep -qF -e "$STORES" -e test -e sqlite "$ROOM/doctor" && fail "doctor names things: $(cat "$ROOM/doctor")"
matches 'doctor' 'control socket +present' "$(cat "$ROOM/doctor")"

# A client that is not ours, by the description that the service gives.
if "$PY" -c 'import varlink' 2>/dev/null; then
    "$PY" - "$S" "$STORES/a.sqlite" <<'END' >"$ROOM/varlink" 2>&1 || fail "the varlink client: $(cat "$ROOM/varlink")"
import sys, varlink
with varlink.Client(address="unix:" + sys.argv[1]) as client:
    info = client.get_interfaces()
    assert "io.hopd.Control" in info, info
    with client.open("io.hopd.Control") as hopd:
        status = hopd.GetStatus()["status"]
        assert status["counts"]["failed"] == 0, status
        store = hopd.GetStore(sys.argv[2])["store"]
        assert store["state"] == "current", store
        page = hopd.ListStores(["current"], None, None, 2)
        assert len(page["stores"]) == 2 and page["next"], page
        assert hopd.ListJobs(None, None)["jobs"]
        assert hopd.Pause("test")["paused"] == ["test"]
        assert hopd.Resume("test")["paused"] == []
        try:
            hopd.GetStore("/nothing")
            raise AssertionError("no error for an unknown store")
        except varlink.VarlinkError as error:
            assert error.error() == "io.hopd.Control.NotFound", error
    with client.open("io.hopd.Control") as watcher:
        seen = 0
        for answer in watcher.Monitor(_more=True):
            assert answer["status"]["phase"] == "ready", answer
            seen += 1
            if seen == 2:
                break
END
else
    note 'SKIPPED: no Python module varlink (tools/bootstrap installs it): the foreign client was not tried'
fi

# Hostile clients: nothing changes, each kind is told once, and no others get in.
cpu() { ps -o cputimes= -p "$(main_pid)"; }
pid=$(main_pid)
"$PY" - "$S" <<'END' || fail 'the hostile clients'
import os, socket, sys
def client():
    s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(sys.argv[1]); return s
for data in [b"garbage\0", b"\0", os.urandom(5000) + b"\0", b"[" * 60000 + b"\0", b"x" * 70000, b'{"method":1}\0'] * 3:
    s = client()
    try:
        s.sendall(data)
        while s.recv(4096): pass
    except OSError: pass
    s.close()
half = [client() for _ in range(3)]
for s in half: s.sendall(b'{"method":"io.hopd')
slow = client(); slow.sendall(b'{"method":"io.hopd.Control.Monitor","more":true}\0')
many = []
for _ in range(10000):
    try: many.append(client())
    except OSError: pass
    if len(many) > 500: [s.close() for s in many[:400]]; del many[:400]
for s in many: s.close()
for s in half:  # put out after five seconds
    assert s.recv(100) == b""
END
same 'main process' "$pid" "$(main_pid)"
wait_for 15 'hopctl is served again' hopctl top --once
told=$(count MESSAGE_ID="$(message_id controlProblem)")
[ "$told" -ge 3 ] && [ "$told" -le 5 ] || fail "$told entries about hostile clients"
useradd -M stranger
rc=0; setpriv --reuid stranger --regid "$(id -g stranger)" --init-groups hopctl pause --socket "$S" 2>"$ROOM/out" \
    || rc=$?
same 'a user outside the group' 77 "$rc"
same 'nothing is paused' '' "$(hopctl status --json | json daemon.paused)"

# Down: an order says so, and starts nothing.
systemctl stop hopd
rc=0; hopctl pause 2>/dev/null || rc=$?
same 'status of an order with hopd down' 7 "$rc"
# Socket activation: systemd makes the socket, and an order of another client starts the service.
systemctl start hopd.socket
same 'rights of the activated socket' '660 hopd hopd' "$(stat -c '%a %U %G' "$S")"
rc=0; hopctl status >/dev/null || rc=$?
same 'a question starts nothing' 7 "$rc"
same 'state' inactive "$(show ActiveState)"
rc=0; hopctl resume --socket "$S" >"$ROOM/out" 2>&1 || rc=$?
same 'state after a call' active "$(show ActiveState)"
wait_for 30 'orders over the activated socket' hopctl pause
hopctl resume >/dev/null
systemctl stop hopd.socket hopd
same 'exposure' 0 "$(systemd-analyze security hopd --no-pager --threshold=4 >/dev/null 2>&1; echo $?)"
