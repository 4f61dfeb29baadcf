# about: a full disk: refused before the store is touched, retried, done when there is space
# needs: systemd
mkdir "$STORES/small"
make_store "$ROOM/making/a.sqlite" "$OLD" 5000 1
size=$(($(stat -c %s "$ROOM/making/a.sqlite") / 1024))
mount -t tmpfs -o "size=$((size + size / 4))k,mode=755" tmpfs "$STORES/small"
cp "$ROOM/making/a.sqlite" "$STORES/small/a.sqlite"; chown -R hopd: "$STORES/small"
W=$STORES; STORES=$W/small; configure
before=$(snapshot "$STORES")
start
S=$STORES/a.sqlite
wait_for 40 'an entry with the code no-space' refused_with "$S" no-space
matches 'message' 'space' "$(values MESSAGE HOPD_STORE="$S" HOPD_ERROR=no-space)"
matches 'hint' '.' "$(values HOPD_HINT HOPD_STORE="$S" HOPD_ERROR=no-space | tail -n 1)"
sleep 3
same 'version' "$OLD" "$(version_of "$S")"
systemctl stop hopd
# hopctl says the same, with the status that a scheduler retries
rc=0; hopctl migrate "$S" --models "$MODEL" --no-progress >"$ROOM/out" 2>&1 || rc=$?
same 'exit status of hopctl migrate' 75 "$rc"
unchanged "$STORES" "$before"
start
mount -o "remount,size=$((size * 8))k" "$STORES"
wait_migrated "$S"
plain_check "$S"
STORES=$W
