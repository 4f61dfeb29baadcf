# about: a member of the group who holds the record stalls nothing; a stranger's file in /dev/shm lets no second daemon in; the collector's user gets no private file through the draft of the metrics
# needs: systemd
export RESCAN=1h
mkdir -p "$ROOM/prom"; useradd -M -G hopd member; useradd -M collector; useradd -M stranger
chown collector:hopd "$ROOM/prom"; chmod 2775 "$ROOM/prom"
unit_setting "ReadWritePaths=$ROOM/prom"
configure
sed -i "s#^jobs = .*#&\nmetrics_file = \"$ROOM/prom/hopd.prom\"#" /etc/hopd/hopd.toml
as() { # USER COMMAND...
    local user=$1; shift
    setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups "$@"
}
start
make_store "$STORES/a.sqlite" "$OLD" 20 1
wait_migrated "$STORES/a.sqlite"
knows() { [ "$(hopctl status "$STORES/$1" --json | json store.state)" = "$2" ]; }
wait_for 20 'a in the record' knows a.sqlite current

# The record: a member holds a read transaction for as long as it likes.
cat >"$ROOM/hold.py" <<'PY'
import sqlite3, sys, time
record = sqlite3.connect('file:/var/lib/hopd/state.sqlite?mode=ro', uri=True, isolation_level=None)
record.execute('BEGIN')
record.execute('SELECT count(*) FROM stores').fetchall()
print('held', flush=True)
time.sleep(600)
PY
chmod 644 "$ROOM/hold.py"; chmod 755 "$ROOM"
as member "$PY" -I -S "$ROOM/hold.py" >"$ROOM/held" 2>&1 &
reader=$!
wait_for 20 'the member holds the record' grep -q held "$ROOM/held"
quick() { # WHAT COMMAND...: it ends although the record is held for ten minutes
    local what=$1; shift
    timeout 60 "$@" >"$ROOM/out" 2>&1 || fail "$what: $(cat "$ROOM/out")"
}
member_lists() { as member timeout 60 hopctl list >"$ROOM/out" 2>&1 || fail "list $1: $(cat "$ROOM/out")"; }
make_store "$STORES/b.sqlite" "$OLD" 20 2
wait_migrated "$STORES/b.sqlite"
wait_for 5 'b in the record' knows b.sqlite current
quick 'list' hopctl list
member_lists 'while another member holds the record'
quick 'pause' hopctl pause
matches 'pause in the record' 'paused' "$(hopctl status)"
quick 'resume' hopctl resume
quick 'retry' hopctl retry --failed
timeout 60 systemctl restart hopd || fail 'restart'
wait_for 20 'known after the restart' knows b.sqlite current
same 'warnings of the record' 0 "$(count MESSAGE_ID="$(message_id stateUnwritable)")"
kill "$reader"; wait "$reader" 2>/dev/null || true

# Members read it while nobody has it open, after a kill, with the daemon down, and without log and index.
member_lists 'while nothing happens'
systemctl kill --signal=KILL hopd
wait_for 20 'the restart by systemd' systemctl is-active --quiet hopd
member_lists 'after a kill'
systemctl stop hopd
member_lists 'with the daemon down'
sqlite3 -batch /var/lib/hopd/state.sqlite .dump >/dev/null
member_lists 'after another program had it open'

# /dev/shm: a file of a stranger under the name of a claim.
read -r device inode <<<"$(stat -c '%d %i' "$STORES")"
planted=/dev/shm/$(printf 'hopd-watch-%x-%x-%s' "$device" "$inode" "$(id -u hopd)")
as stranger touch "$planted"
start
told() { said configurationWarning '' HOPD_ERROR=claim-problem; }
wait_for 20 'the file of a stranger is told' told
mkdir "$ROOM/second"; chown hopd: "$ROOM/second"
rc=0
as hopd timeout 20 "$(dirname "$(command -v hopctl)")/hopd" --config /etc/hopd/hopd.toml \
    --state-directory "$ROOM/second" >"$ROOM/out" 2>&1 || rc=$?
same "status of a second daemon: $(cat "$ROOM/out")" 69 "$rc"
rm "$planted"

# The metrics: as soon as there is a draft, the collector's user puts a link to a private file in its place.
install -o hopd -g hopd -m 600 /dev/null "$ROOM/prom/../private"
cat >"$ROOM/swap.py" <<'PY'
import os, stat, sys, time
folder, private, seconds = sys.argv[1:]
os.chdir(folder)
os.symlink(private, 'link')
end = time.time() + float(seconds)
while time.time() < end:
    try:
        if stat.S_ISREG(os.lstat('hopd.prom.tmp').st_mode):
            os.rename('link', 'hopd.prom.tmp')
            os.symlink(private, 'link')
    except OSError:
        pass
PY
chmod 644 "$ROOM/swap.py"
as collector "$PY" -I -S "$ROOM/swap.py" "$ROOM/prom" "$ROOM/private" 20 &
swapper=$!
for number in 3 4 5; do
    make_store "$STORES/m$number.sqlite" "$OLD" 20 "$number"
    wait_migrated "$STORES/m$number.sqlite"
done
wait "$swapper" || true
same 'mode of a private file' 600 "$(stat -c %a "$ROOM/private")"
# The collector owns the folder and may put anything there itself, so what is there now proves nothing.
