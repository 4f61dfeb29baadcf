# about: the Debian package: nothing starts by itself; the first watch as hopd(8) has it; upgrade, remove and purge keep stores
# first: the package is installed, upgraded and removed
# needs: deb
export DEBIAN_FRONTEND=noninteractive
package=$(find /opt/hopd-deb -name 'hopd_*.deb' | sort | tail -n 1)
apt_get() {
    apt-get -q -y --no-install-recommends "$@" >"$ROOM/apt" 2>&1 || fail "apt-get $*: $(tail -n 15 "$ROOM/apt")"
}
# active UNIT: whether it runs, and whether it is enabled
active() { echo "$(systemctl is-active "$1" || true) $(systemctl is-enabled "$1" || true)"; }
apt_get install "$package"
! grep -iE 'warning|error' "$ROOM/apt" || fail "apt-get install: $(cat "$ROOM/apt")"

# Installed, and at rest.
same 'the service' 'inactive disabled' "$(active hopd)"
same 'the socket' 'inactive disabled' "$(active hopd.socket)"
getent passwd hopd >/dev/null || fail 'no user hopd'
same 'run directory' 'hopd hopd 750' "$(stat -c '%U %G %a' /run/hopd)"
journalctl --list-catalog 9735ed25eef641aa986fe0c248926067 | grep -q 'was migrated' ||
    fail 'the message catalog lacks the messages'
man -w hopctl-migrate hopd hopd.toml hopd-policies hopd-report >/dev/null || fail 'a man page is not found'
rc=0; hopctl check-config >"$ROOM/check" 2>&1 || rc=$?
same 'status of check-config without a watch' 6 "$rc"
matches 'check-config' 'add a \[\[watch\]\]' "$(cat "$ROOM/check")"
systemctl start hopd 2>/dev/null && fail 'hopd runs without a watch'
same 'exit status without a watch' 6 "$(show ExecMainStatus)"
sleep 0.3
same 'not started again' failed "$(systemctl is-active hopd || true)"
systemctl reset-failed hopd

# The first watch: the blocks of hopd(8), as written.
zcat /usr/share/man/man8/hopd.8.gz | awk -v room="$ROOM" '
    /^\.Sh/ { on = /FIRST WATCH/ } on && /^\.Bd/ { number++; inside = 1; next } /^\.Ed/ { inside = 0 }
    inside { print >(room "/block" number) }'
same 'blocks of hopd(8)' 4 "$(find "$ROOM" -name 'block?' | wc -l)"
block() {
    (cd "$DOCS/Examples/Library" && bash -e "$ROOM/block$1") >"$ROOM/log" 2>&1 ||
        fail "hopd(8), block $1: $(cat "$ROOM/log")"
}
block 1
cat "$ROOM/block2" >>/etc/hopd/hopd.toml
if hopctl check-config >"$ROOM/check" 2>&1; then fail 'check-config does not miss the drop-in'; fi
matches 'the hint' 'hopctl check-config --drop-in' "$(cat "$ROOM/check")"
block 3
block 4
matches 'hopctl status' 'hopd.* running since' "$(cat "$ROOM/log")"
MODEL=/srv/library/models/Library.xcdatamodeld STORES=/srv/library/stores
make_store "$STORES/a.sqlite" "$OLD" 50 1
wait_migrated "$STORES/a.sqlite"
head -c 9000 /dev/urandom >"$ROOM/bad" && install -o hopd -g hopd "$ROOM/bad" "$STORES/bad.sqlite"
wait_for 20 'the bad store is listed' sh -c 'hopctl list --failed | grep -q bad.sqlite'
hopctl pause library >/dev/null

# An instance beside it.
install -d -o hopd -g hopd /srv/tenant
sed '/^\[\[watch/,$s/library/tenant/; s#/srv/tenant/stores#/srv/tenant#; s#/srv/tenant/models#/srv/library/models#' \
    /etc/hopd/hopd.toml | sed -n '/^\[\[watch/,$p' >/etc/hopd/tenant.toml
mkdir -p /etc/systemd/system/hopd@.service.d
hopctl check-config --drop-in /etc/hopd/tenant.toml >/etc/systemd/system/hopd@.service.d/watches.conf
systemctl daemon-reload
systemctl enable --now hopd@tenant
same 'its state directory' 'hopd 750' "$(stat -c '%U %a' /var/lib/hopd-tenant)"
matches 'status of instance' 'hopd.* running since' "$(hopctl status --state-directory /var/lib/hopd-tenant || true)"

# An upgrade restarts what runs, and keeps state and configuration.
instance_pid() { systemctl show hopd@tenant --property=MainPID --value; }
before="$(main_pid) $(instance_pid)"
dpkg-deb -R "$package" "$ROOM/newer"
sed -i 's/^Version: .*/&.1/' "$ROOM/newer/DEBIAN/control"
dpkg-deb -Znone --root-owner-group -b "$ROOM/newer" "$ROOM/newer.deb" >/dev/null
apt_get install "$ROOM/newer.deb"
read -r old_pid old_instance <<<"$before"
wait_for 20 'running again' systemctl is-active hopd
[ "$(main_pid)" != "$old_pid" ] || fail 'the upgrade did not restart the daemon'
[ "$(instance_pid)" != "$old_instance" ] || fail 'the instance was not restarted'
grep -q '^name = "library"' /etc/hopd/hopd.toml || fail 'the upgrade replaced the configuration'
matches 'history is kept' 'migrated' "$(hopctl history "$STORES/a.sqlite")"
matches 'the pause is kept' 'paused' "$(hopctl status)"
systemctl stop hopd hopd@tenant
apt_get install --allow-downgrades "$package"
same 'a stopped daemon stays stopped' 'inactive enabled' "$(active hopd)"

# Removed: stopped, and only the program's own files are gone.
systemctl start hopd hopd@tenant
apt_get remove hopd
same 'the service' inactive "$(systemctl is-active hopd || true)"
same 'the instance' inactive "$(systemctl is-active hopd@tenant || true)"
! pgrep -x hopd >/dev/null || fail 'hopd still runs'
[ ! -e /usr/bin/hopd ] && [ ! -e /lib/systemd/system/hopd.service ] || fail 'files are left'
[ -e /etc/hopd/hopd.toml ] && [ -e /var/lib/hopd/state.sqlite ] || fail 'a removal took configuration or state away'

# Purged: configuration and state too, but no store, no backup, and no record of an interrupted migration.
install -d /var/lib/hopd-tenant/intents && : >/var/lib/hopd-tenant/intents/0.json
apt_get purge hopd
[ ! -e /etc/hopd/hopd.toml ] && [ ! -e /var/lib/hopd ] || fail 'a purge left configuration or state'
[ -e /var/lib/hopd-tenant/intents/0.json ] || fail 'a purge took the record of an interrupted migration away'
same 'links in wants' '' "$(find /etc/systemd/system -path '*.wants/hopd*')"
[ -e "$STORES/a.sqlite" ] && compgen -G "$STORES/.a.sqlite.hopd-backups/*/a.sqlite" >/dev/null ||
    fail 'a store or its backup is gone'
