# about: a directory that may not be written: refused with the remedy, nothing changed; with the right given, done
# needs: systemd
configure
make_store "$STORES/a.sqlite" "$OLD" 50 1
S=$STORES/a.sqlite
chown root:root "$STORES"; chmod 755 "$STORES"
before=$(snapshot "$STORES")
start
told() { [ "$(count HOPD_STORE="$S" PRIORITY=3)" -gt 0 ]; }
wait_for 30 'an error entry' told
same 'code' no-permission "$(values HOPD_ERROR HOPD_STORE="$S" | tail -n 1)"
matches 'hint' 'ReadWritePaths|chown|chmod|owner|right|writ' "$(values HOPD_HINT HOPD_STORE="$S" | tail -n 1)"
unchanged "$STORES" "$before"
chown hopd: "$STORES"
wait_migrated "$S"
# The same by a read-only mount, for hopctl as root
systemctl stop hopd
make_store "$ROOM/making/c.sqlite" "$OLD" 50 3
mkdir "$ROOM/ro"; mv "$ROOM/making/c.sqlite" "$ROOM/ro/"
mount --bind "$ROOM/ro" "$ROOM/ro"; mount -o remount,bind,ro "$ROOM/ro"
before=$(snapshot "$ROOM/ro")
same 'identify on a read-only mount' "$OLD" "$(version_of "$ROOM/ro/c.sqlite")"
rc=0; hopctl migrate "$ROOM/ro/c.sqlite" --models "$MODEL" --no-progress >"$ROOM/out" 2>&1 || rc=$?
case $rc in 73|74|77) ;; *) fail "exit status $rc: $(cat "$ROOM/out")" ;; esac
unchanged "$ROOM/ro" "$before"
umount "$ROOM/ro"
