# about: a broken file fails the reload, one broken watch degrades alone, a cure of rights is noticed, and nothing is left when the queue is empty
# needs: systemd
export RESCAN=1s
configure
mkdir -p "$ROOM/late" /etc/hopd/hopd.toml.d
watch_section late "$ROOM/late/stores" >/etc/hopd/hopd.toml.d/20-late.toml
sed -i "s#^models = .*#models = [\"$ROOM/late/Library.xcdatamodeld\"]#" /etc/hopd/hopd.toml.d/20-late.toml
unit_setting "ReadWritePaths=-$ROOM/late"
# check-config opens what is named, and says where.
rc=0; hopctl check-config >"$ROOM/out" 2>&1 || rc=$?
same 'status of check-config' 78 "$rc"
matches 'check-config' '20-late\.toml:4' "$(cat "$ROOM/out")"
# The mount is late: the other watch is served.
make_store "$STORES/a.sqlite" "$OLD" 20 1
start
wait_migrated "$STORES/a.sqlite"
names_it() { [[ $(status_text) == *'unavailable: late'* ]]; }
wait_for 10 'a status that names the watch' names_it
pid=$(main_pid)
cp -R "$MODEL" "$ROOM/late/"; mkdir "$ROOM/late/stores"; chown -R hopd: "$ROOM/late"
make_store "$ROOM/late/stores/b.sqlite" "$OLD" 20 2
wait_migrated "$ROOM/late/stores/b.sqlite"
same 'main process' "$pid" "$(main_pid)"
hopctl check-config >/dev/null || fail 'check-config of a good configuration'
# A broken file fails the reload, and the daemon goes on.
cp /etc/hopd/hopd.toml.d/20-late.toml "$ROOM/good.toml"
printf '[[watch]]\nname = "bad"\ndirectory = 7\n' >>/etc/hopd/hopd.toml.d/20-late.toml
if systemctl reload hopd 2>/dev/null; then fail 'reload of a broken file succeeds'; fi
same 'state' active "$(show ActiveState)"
same 'main process' "$pid" "$(main_pid)"
cp "$ROOM/good.toml" /etc/hopd/hopd.toml.d/20-late.toml
systemctl reload hopd
# A right is given: chown changes neither size nor time nor inode of the store.
make_store "$ROOM/making/c.sqlite" "$OLD" 20 3
chown root:root "$ROOM/making/c.sqlite"; chmod 600 "$ROOM/making/c.sqlite"
mv "$ROOM/making/c.sqlite" "$STORES/c.sqlite"
refused() { refused_with "$STORES/c.sqlite" no-permission; }
wait_for 30 'the refusal' refused
[ -n "$(values HOPD_NEXT_ATTEMPT HOPD_STORE="$STORES/c.sqlite")" ] || fail 'no time of the next attempt'
told() {
    hopctl status "$STORES/c.sqlite" >"$ROOM/told"
    grep -q "hint: chown hopd $STORES/c.sqlite gives it" "$ROOM/told" &&
        grep -q "next attempt at .* (now: hopctl retry $STORES/c.sqlite)" "$ROOM/told"
}
wait_for 10 'status has both remedies' told
chown hopd: "$STORES/c.sqlite"
wait_migrated "$STORES/c.sqlite"
wait_for 20 'an empty queue' idle
# Nothing is left: no lock, no claim but the daemon's own, no journal, no staged file.
same 'locks' '' "$(ls -A /var/lib/hopd/locks)"
same 'staged files' '' "$(find "$STORES" "$ROOM/late/stores" -name '.*.hop-*')"
same 'side files' '' "$(find "$STORES" "$ROOM/late/stores" -maxdepth 1 -name '*-journal')"
same 'records' '' "$(ls -A /var/lib/hopd/intents)"
systemctl stop hopd
same 'claims' '' "$(find /dev/shm -name 'hopd-watch-*')"
same 'locks and notes' '' "$(ls -A /var/lib/hopd | grep -vx -e locks -e intents -e 'state.sqlite.*' || true)"
# The thread pool does not complain.
same 'noise of the thread pool' 0 "$(journalctl -q -u hopd -o cat | grep -c 'thread priority' || true)"
