# about: an external file of 30 GB with holes and one that takes its time are copied to another disk under a watchdog of seconds, holes kept
# needs: systemd
backups=/var/lib/hopd/kept        # on the sandbox's own file system: nothing can be linked there
mkdir -p "$backups" && chown hopd: "$backups"
configure
printf '\n[watch.backup]\ndirectory = "%s"\n' "$backups" >>/etc/hopd/hopd.toml
unit_setting WatchdogSec=5s ReadWritePaths="$backups"
mkdir "$ROOM/making/x"
hopctl create "$ROOM/making/x/a.sqlite" --models "$MODEL" --model-version "$OLD" --rows 20 --seed 1 >/dev/null
mkdir -p "$ROOM/making/x/.a_SUPPORT/_EXTERNAL_DATA"
external=$ROOM/making/x/.a_SUPPORT/_EXTERNAL_DATA
truncate -s 30G "$external/HOLES"
printf end >>"$external/HOLES"
head -c 200M /dev/urandom >"$external/DATA"
start
for mode in rename in-place; do
    [ $mode = rename ] || { sed -i 's/^\[watch.migration\]$/&\nreplace = "in-place"/' /etc/hopd/hopd.toml
        systemctl restart hopd; }
    rm -rf -- "$STORES"/* "$STORES"/.[!.]* "${backups:?}"/*
    cp -a --sparse=always "$ROOM/making/x" "$ROOM/making/$mode"
    since=$(date +%s)
    move_in "$ROOM/making/$mode" "$STORES"
    wait_for 120 "$mode: migrated" is_version "$STORES/a.sqlite" "$NEW"
    wait_for 120 "$mode: the backup is complete" sh -c "find $backups -name backup.json ! -path '*.part/*' | grep -q ."
    same "$mode: restarts" 0 "$(show NRestarts)"
    kept=$(find "$backups" -name HOLES)
    same "$mode: size of the copy" "$(stat -c %s "$external/HOLES")" "$(stat -c %s "$kept")"
    [ "$(stat -c %b "$kept")" -lt 2048 ] || fail "$mode: the holes became data: $(stat -c '%b blocks' "$kept")"
    same "$mode: its end" end "$(tail -c 3 "$kept")"
    cmp -s "$external/DATA" "$(find "$backups" -name DATA)" || fail "$mode: DATA differs"
    same "$mode: no watchdog" 0 "$(journalctl -q --since "@$since" -u hopd -g 'watchdog' --no-pager | wc -l)"
done
