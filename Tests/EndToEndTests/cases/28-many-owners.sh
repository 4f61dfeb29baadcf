# about: stores of many owners, as the example sets the unit up: the owner stays; without CAP_LEASE the store is replaced in place, and that is told
# needs: systemd
configure
mapfile -t lines < <(sed -nE 's/^#((User|CapabilityBoundingSet|SystemCallFilter)=.*)/\1/p' \
    "$DOCS/stores.conf.example")
[ ${#lines[@]} = 3 ] || fail "the example has ${#lines[@]} lines for stores of many owners"
matches 'the example' CAP_LEASE "${lines[*]}"
chmod 1777 "$STORES"
owned() { # NAME
    make_store "$ROOM/making/$1" "$OLD" 30 1
    chown 20001:20001 "$ROOM/making/$1"
    mv "$ROOM/making/$1" "$STORES/"
}
inode() { stat -c %i "$STORES/$1"; }
owned a.sqlite
before=$(inode a.sqlite)
unit_setting "${lines[@]}"
start
wait_migrated "$STORES/a.sqlite"
same 'owner' 20001:20001 "$(stat -c %u:%g "$STORES/a.sqlite")"
[ "$(inode a.sqlite)" != "$before" ] || fail 'with CAP_LEASE the store is renamed over'
same 'warnings' 0 "$(count HOPD_ERROR=no-lease)"
systemctl stop hopd
unit_setting CapabilityBoundingSet= 'CapabilityBoundingSet=CAP_CHOWN CAP_FOWNER CAP_DAC_OVERRIDE'
owned b.sqlite
before=$(inode b.sqlite)
start
wait_migrated "$STORES/b.sqlite"
same 'owner' 20001:20001 "$(stat -c %u:%g "$STORES/b.sqlite")"
same 'inode without CAP_LEASE' "$before" "$(inode b.sqlite)"
plain_check "$STORES/b.sqlite"
told() { [ "$(count HOPD_ERROR=no-lease)" -gt 0 ]; }
wait_for 10 'a warning at the start' told
