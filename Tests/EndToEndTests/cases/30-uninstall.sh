# about: make uninstall stops and disables the running service before its files go, and leaves configuration and stores
# needs: systemd
configure
make_store "$STORES/a.sqlite" "$OLD" 20 1
systemctl enable --now hopd
wait_migrated "$STORES/a.sqlite"
mkdir "$ROOM/other"
watch_section other "$ROOM/other" >/etc/hopd/other.toml
systemctl enable --now hopd@other
make -s -f /opt/hopd-makefile uninstall >"$ROOM/uninstall" 2>&1 || fail "$(cat "$ROOM/uninstall")"
same 'the service' inactive "$(systemctl is-active hopd || true)"
same 'an instance' inactive "$(systemctl is-active hopd@other || true)"
! pgrep -x hopd >/dev/null || fail 'a daemon still runs'
same 'links in wants' '' "$(find /etc/systemd/system -path '*.wants/hopd*')"
same 'man pages and completions' '' "$(find /usr/share/man /usr/share/bash-completion /usr/share/zsh /usr/share/fish \
    -name '*hopctl*' -o -name 'hop*.[0-9]')"
[ ! -e /usr/bin/hopd ] && [ ! -e /usr/lib/systemd/system/hopd.service ] || fail 'installed files are left'
[ -e /etc/hopd/hopd.toml ] && [ -e "$STORES/a.sqlite" ] || fail 'something of the operator is gone'
