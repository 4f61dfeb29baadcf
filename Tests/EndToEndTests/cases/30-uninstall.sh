# about: make uninstall stops and disables the running service before its files go, and leaves configuration and stores
# needs: systemd
configure
make_store "$STORES/a.sqlite" "$OLD" 20 1
systemctl enable --now hopd
wait_migrated "$STORES/a.sqlite"
make -s -f /opt/hopd-makefile uninstall >"$ROOM/uninstall" 2>&1 || fail "$(cat "$ROOM/uninstall")"
same 'the service' inactive "$(systemctl is-active hopd || true)"
same 'links in wants' '' "$(find /etc/systemd/system -name hopd.service)"
[ ! -e /usr/bin/hopd ] && [ ! -e /usr/lib/systemd/system/hopd.service ] || fail 'installed files are left'
[ -e /etc/hopd/hopd.toml ] && [ -e "$STORES/a.sqlite" ] || fail 'something of the operator is gone'
