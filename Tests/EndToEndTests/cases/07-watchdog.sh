# about: a process that hangs in the middle of a migration is killed by the watchdog, restarted, and finishes
# needs: systemd
export CHUNK_ROWS=2000 CHUNK_TIME=50ms
configure
unit_setting WatchdogSec=2s TimeoutAbortSec=2s
big_store "$STORES/big.sqlite"
start
wait_for 60 'the middle of the migration' in_the_middle
sleep 3
same 'restarts while it works for longer than the watchdog allows' 0 "$(show NRestarts)"
pid=$(main_pid)
kill -STOP "$pid"
another() { [ "$(main_pid)" != "$pid" ] && [ "$(show ActiveState)" = active ]; }
wait_for 30 'another main process' another
matches 'what systemd says' 'watchdog' "$(journalctl -q -o cat -u hopd)"
[ "$(show NRestarts)" -ge 1 ] || fail "NRestarts=$(show NRestarts)"
wait_migrated "$STORES/big.sqlite" 150
plain_check "$STORES/big.sqlite"
# Idle for longer than the watchdog allows is no hang.
again=$(main_pid)
sleep 5
same 'main process after idling' "$again" "$(main_pid)"
