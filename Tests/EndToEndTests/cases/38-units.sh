# about: check-config --drop-in makes odd paths writable, hopd@ has its own state, hopd-batch@ migrates a list in the same sandbox
# needs: systemd
rm -f /etc/systemd/system/hopd.service.d/10-test.conf
odd="$ROOM/st ores 100% \"q\" 'it' %h"
backups="$ROOM/back ups"
mkdir -p "$odd" "$backups" && chown hopd:hopd "$odd" "$backups"
mkdir -p /etc/hopd/batch
# quoted as TOML
toml() { printf '"%s"' "$(sed 's/\\/\\\\/g; s/"/\\"/g' <<<"$1")"; }
cat >/etc/hopd/hopd.toml <<TOML
[[watch]]
name = "odd"
directory = $(toml "$odd")
models = ["$MODELS"]
settle = "300ms"
rescan = "3s"
[watch.backup]
directory = $(toml "$backups")
TOML
if hopctl check-config >"$ROOM/check" 2>&1; then fail 'check-config does not see that the unit may not write'; fi
matches 'the hint' 'hopctl check-config --drop-in' "$(cat "$ROOM/check")"
hopctl check-config --drop-in --install >"$ROOM/out" || fail 'check-config --drop-in --install'
matches 'where it is' '^installed: /etc/systemd/system/hopd.service.d/watches.conf' "$(cat "$ROOM/out")"
matches 'what to type next' '^next: systemctl restart hopd' "$(cat "$ROOM/out")"
same 'the printed one' "$(hopctl check-config --drop-in)" "$(cat /etc/systemd/system/hopd.service.d/watches.conf)"
same 'its mode' 644 "$(stat -c %a /etc/systemd/system/hopd.service.d/watches.conf)"
systemctl daemon-reload
# systemd reads the paths as they are.
same 'systemd complains' '' "$(journalctl -q --no-pager -b -o cat _PID=1 -g 'watches.conf' || true)"
matches 'ReadWritePaths=' 'st ores 100% .*%h' "$(show ReadWritePaths)"
matches 'RequiresMountsFor=' 'back ups' "$(systemctl show hopd --property=RequiresMountsFor --value)"
hopctl check-config >"$ROOM/check" 2>&1 || fail "with the drop-in: $(cat "$ROOM/check")"
start
make_store "$odd/a.sqlite" "$OLD" 20 1
wait_migrated "$odd/a.sqlite"
[ -n "$(find "$backups" -name a.sqlite)" ] || fail 'no backup in its directory'
systemctl stop hopd

# A batch: one store that is old, one that is current, one that is none.
install -d -o hopd -g hopd "$ROOM/batch"
make_store "$ROOM/batch/old.sqlite" "$OLD" 20 2
make_store "$ROOM/batch/current.sqlite" "$NEW" 20 3
printf '[[watch]]\nname = "batch"\ndirectory = "%s"\nmodels = ["%s"]\n' "$ROOM/batch" "$MODELS" >/etc/hopd/hopd.toml
printf '# two stores\n%s\n\n%s\n' "$ROOM/batch/old.sqlite" "$ROOM/batch/current.sqlite" >/etc/hopd/batch/night.list
mkdir -p /etc/systemd/system/hopd-batch@.service.d
hopctl check-config --drop-in >/etc/systemd/system/hopd-batch@.service.d/watches.conf
systemctl daemon-reload
systemctl start hopd-batch@night || fail "the batch: $(journalctl -q --no-pager -o cat -u hopd-batch@night | tail -n 5)"
is_version "$ROOM/batch/old.sqlite" "$NEW" || fail 'the batch did not migrate the old store'
matches 'what it says at the end' 'done: 1 migrated, 1 already current' \
    "$(journalctl -q --no-pager -o cat -u hopd-batch@night)"
same 'its records' 'hopd' "$(stat -c %U /var/lib/hopd)"
head -c 9000 /dev/urandom >"$ROOM/bad" && install -o hopd -g hopd "$ROOM/bad" "$ROOM/batch/bad.sqlite"
make_store "$ROOM/batch/more.sqlite" "$OLD" 20 4
printf '%s\n' "$ROOM/batch/bad.sqlite" "$ROOM/batch/more.sqlite" >/etc/hopd/batch/night.list
! systemctl start hopd-batch@night 2>/dev/null || fail 'a store that is none is not a failure'
same 'its exit status' 65 "$(systemctl show hopd-batch@night --property=ExecMainStatus --value)"
same 'not started again' failed "$(systemctl is-active hopd-batch@night || true)"
is_version "$ROOM/batch/more.sqlite" "$NEW" || fail 'the store after the bad one was left out'
# Busy: another attempt follows by itself.
make_store "$ROOM/batch/busy.sqlite" "$OLD" 20 5
echo "$ROOM/batch/busy.sqlite" >/etc/hopd/batch/night.list
mkdir -p /etc/systemd/system/hopd-batch@night.service.d
printf '[Service]\nRestartSec=200ms\n' >/etc/systemd/system/hopd-batch@night.service.d/quick.conf
systemctl daemon-reload
hold "$ROOM/batch/busy.sqlite" 'BEGIN EXCLUSIVE;'
systemctl start --no-block hopd-batch@night
wait_for 20 'it ends with 75 and is started again' sh -c \
    'journalctl -q --no-pager -o cat -u hopd-batch@night | grep -q "Scheduled restart job"'
let_go
wait_for 20 'the busy store is migrated' is_version "$ROOM/batch/busy.sqlite" "$NEW"

# An instance: its own configuration, state and socket.
install -d -o hopd -g hopd "$ROOM/tenant"
printf '[[watch]]\nname = "tenant"\ndirectory = "%s"\nmodels = ["%s"]\nsettle = "300ms"\n' \
    "$ROOM/tenant" "$MODELS" >/etc/hopd/tenant.toml
if hopctl check-config /etc/hopd/tenant.toml >"$ROOM/check" 2>&1; then fail 'an instance without its drop-in is ok'; fi
matches 'the hint for an instance' 'hopd@tenant.service.d' "$(cat "$ROOM/check")"
hopctl check-config --drop-in --install /etc/hopd/tenant.toml >"$ROOM/out" || fail 'the drop-in of an instance'
matches 'the unit to restart' '^next: systemctl restart hopd@tenant' "$(cat "$ROOM/out")"
cp /etc/hopd/tenant.toml "$ROOM/elsewhere.toml"
rc=0; hopctl check-config --drop-in --install "$ROOM/elsewhere.toml" >/dev/null 2>&1 || rc=$?
same 'a configuration of no unit' 64 "$rc"
systemctl daemon-reload
hopctl check-config /etc/hopd/tenant.toml >"$ROOM/check" 2>&1 || fail "the instance: $(cat "$ROOM/check")"
install -d -m 700 /root/models && cp -R "$MODEL" /root/models/
sed "s|models = .*|models = [\"/root/models\"]|" /etc/hopd/tenant.toml >/etc/hopd/hidden.toml
rc=0; hopctl check-config /etc/hopd/hidden.toml >"$ROOM/check" 2>&1 || rc=$?
same 'models in /root' 78 "$rc"
matches 'models in /root' '/root/models is hidden from hopd@hidden.service by ProtectHome=' "$(cat "$ROOM/check")"
rm -r /root/models /etc/hopd/hidden.toml
systemctl start hopd@tenant
make_store "$ROOM/tenant/t.sqlite" "$OLD" 20 6
wait_migrated "$ROOM/tenant/t.sqlite"
its_list() { hopctl list --state-directory /var/lib/hopd-tenant | grep -q 'current .*t.sqlite'; }
wait_for 20 'the store in its list' its_list
hopctl pause tenant --state-directory /var/lib/hopd-tenant >/dev/null || fail 'no order reaches the instance'
[ -S /run/hopd-tenant/control.sock ] || fail 'the instance has no socket of its own'
systemctl reload hopd@tenant || fail 'no reload of the instance'
for unit in hopd hopd@tenant hopd-batch@night; do
    systemd-analyze security --no-pager --threshold=4 "$unit.service" >"$ROOM/security" ||
        fail "exposure of $unit over 0.4: $(tail -n 1 "$ROOM/security")"
done
