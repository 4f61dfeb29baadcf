# about: pressure, the pause file and hopctl pause halt a migration in its middle; hours and priorities decide what begins; new models need no reload
# needs: systemd
export RESCAN=2s CHUNK_TIME=20ms CHUNK_ROWS=500 JOBS=1
mkdir -p "$ROOM/psi" "$ROOM/night" "$ROOM/first"; chown hopd: "$ROOM/night" "$ROOM/first"
psi() {
    printf 'some avg10=%s.00 avg60=0.00 avg300=0.00 total=0\n' "$1" >"$ROOM/psi/new"
    mv "$ROOM/psi/new" "$ROOM/psi/io"
}
psi 1
# Half an hour that was twelve hours ago, in UTC.
from=$(date -u -d '+11 hours 30 minutes' +%H:%M) to=$(date -u -d '+12 hours' +%H:%M)
configure
{
    printf '[throttle]\nio_pressure = 40\n'
    cat /etc/hopd/hopd.toml
    watch_section night "$ROOM/night"
    watch_section first "$ROOM/first"
} >"$ROOM/toml"
sed -i -e "/^name = \"night\"/a window = \"$from-$to\"\ntime_zone = \"UTC\"" \
    -e '/^name = "first"/a priority = 5' "$ROOM/toml"
cp "$ROOM/toml" /etc/hopd/hopd.toml
unit_setting ReadWritePaths="$ROOM" BindReadOnlyPaths="$ROOM/psi:/proc/pressure"
hopctl check-config >/dev/null || fail 'check-config'
start
progress_of() { hopctl top --once --json | json work.0.rows; }
activity_of() { [ "$(hopctl top --once --json | json work.0.activity)" = "$1" ]; }
goes_on() { ! activity_of paused; }
halts() { # WHAT: the migration halts and shows it
    wait_for 20 "halted by $1" activity_of paused
    local rows; rows=$(progress_of); sleep 1
    same "rows while halted by $1" "$rows" "$(progress_of)"
}
before=$(content_of /opt/hopd-cache/big.sqlite)
big_store "$STORES/big.sqlite"
wait_for 60 'big.sqlite at work' in_the_middle
# pressure
if systemctl show hopd --property=BindReadOnlyPaths | grep -q psi &&
    nsenter -t "$(main_pid)" -m test -e /proc/pressure/io; then
    psi 77
    halts 'the pressure'
    matches 'status' 'throttled: I/O pressure 77%, limit 40%' "$(status_text)"
    matches 'hopctl status' 'waits: I/O pressure above 40%' "$(hopctl status)"
    hopctl set throttle off >/dev/null || fail 'set throttle off'
    wait_for 20 'goes on without limits' goes_on
    same 'told once' 1 "$(count MESSAGE_ID="$(message_id workThrottled)")"
    hopctl set throttle on >/dev/null; psi 1
else
    note 'no pressure of its own for the service here'
fi
# the pause file, and the orders
wait_migrated "$STORES/big.sqlite" 120
big_store "$STORES/big2.sqlite"
wait_for 60 'big2.sqlite at work' in_the_middle
touch /run/hopd/pause; halts 'the pause file'
hopctl pause test >/dev/null; rm /run/hopd/pause; halts 'hopctl pause WATCH'
# a stop ends a halt at once, and the next start finishes
t0=$SECONDS; systemctl stop hopd; [ $((SECONDS - t0)) -le 10 ] || fail "the stop took $((SECONDS - t0)) s"
[ "$(content_of "$STORES/big2.sqlite")" = "$before" ] || fail 'the store has changed'
start
hopctl resume >/dev/null
wait_migrated "$STORES/big2.sqlite" 120
# hours: the store of the night waits, the others do not
make_store "$ROOM/night/n.sqlite" "$OLD" 20 1
waits() { hopctl status | grep -q "waits: night until $from UTC"; }
wait_for 30 'waits for its hour' waits
told_so() { [[ $(status_text) == *"waiting night until $from UTC"* ]]; }
wait_for 10 'the status says so' told_so
# priorities: with one job, the watch of the higher one is first, whoever came first
touch /run/hopd/pause
for i in 1 2 3; do make_store "$STORES/p$i.sqlite" "$OLD" 20 "$i"; done
for i in 1 2; do make_store "$ROOM/first/f$i.sqlite" "$OLD" 20 "$i"; done
listed() { hopctl list "$@" --json | "$PY" -c 'import json,sys; print(len(json.load(sys.stdin)["stores"]))'; }
six() { [ "$(listed --state waiting)" = 6 ]; }
wait_for 30 'all wait' six
rm /run/hopd/pause
for f in "$STORES"/p?.sqlite "$ROOM"/first/f?.sqlite; do wait_migrated "$f"; done
first=$(values HOPD_STORE MESSAGE_ID="$(message_id storeMigrated)" | grep -v big | head -n 2 | sort | tr '\n' ' ')
same 'the first two' "$ROOM/first/f1.sqlite $ROOM/first/f2.sqlite " "$first"
is_version "$ROOM/night/n.sqlite" "$OLD" || fail 'a store was migrated outside its hours'
# models: a store of a version that nobody knows is tried again when the version is there
mv "$MODEL" "$ROOM/whole"; cp -R "$ROOM/whole" "$ROOM/less"; rm -r "$ROOM/less/Library 4.xcdatamodel"
sed -i 's/Library 4.xcdatamodel/Library 3.xcdatamodel/' "$ROOM/less/.xccurrentversion"
cp -R "$ROOM/less" "$MODEL"
changed() { [ "$(count MESSAGE_ID="$(message_id modelsChanged)")" -ge "$1" ]; }
wait_for 60 'fewer versions are in force' changed 1
failed() { [ "$(hopctl status "$STORES/p1.sqlite" --json 2>/dev/null | json store.state)" = "$1" ]; }
wait_for 30 'stores of the version that is gone' failed failed
mkdir "$MODEL/Library 4.xcdatamodel"
head -c 300 "$ROOM/whole/Library 4.xcdatamodel/contents" >"$MODEL/Library 4.xcdatamodel/contents"
refused() { [ "$(count HOPD_WATCH=test MESSAGE_ID="$(message_id modelsRefused)")" = 1 ]; }
wait_for 60 'half a version is refused, once' refused
cp "$ROOM/whole/Library 4.xcdatamodel/contents" "$MODEL/Library 4.xcdatamodel/contents"
cp "$ROOM/whole/.xccurrentversion" "$MODEL/"
wait_for 60 'current again without a reload' failed current
same 'reloads' 0 "$(count MESSAGE_ID="$(message_id configurationReloaded)")"
same 'told once' 1 "$(count HOPD_WATCH=test MESSAGE_ID="$(message_id modelsRefused)")"
