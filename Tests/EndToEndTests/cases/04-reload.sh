# about: reload keeps the running job, picks up a new drop-in, and refuses a broken one with file and line
# needs: systemd
export CHUNK_ROWS=2000 CHUNK_TIME=50ms
LOG_LEVEL=debug configure
mkdir "$STORES/more"; chown hopd: "$STORES/more"
big_store "$STORES/big.sqlite"
start
wait_for 60 'the middle of the big migration' in_the_middle
pid=$(main_pid)
mkdir -p /etc/hopd/hopd.toml.d
watch_section more "$STORES/more" >/etc/hopd/hopd.toml.d/20-more.toml
systemctl reload hopd
wait_for 20 'entry configurationReloaded' said configurationReloaded
make_store "$STORES/more/x.sqlite" "$OLD" 20 1
wait_migrated "$STORES/more/x.sqlite"
# A broken one: the old configuration stays in force, and the status says so.
printf '[[watch]]\nname = "bad"\ndirectory = 7\n' >/etc/hopd/hopd.toml.d/30-bad.toml
if systemctl reload hopd 2>/dev/null; then fail 'a reload with a broken file succeeds'; fi
same 'state after the failed reload' active "$(show ActiveState)"
wait_for 20 'entry reloadFailed' said reloadFailed
matches 'text of reloadFailed' '30-bad\.toml:3' "$(values MESSAGE \
    MESSAGE_ID="$(message_id reloadFailed)") $(values HOPD_CONFIG MESSAGE_ID="$(message_id reloadFailed)")"
# Whoever sends the signal himself finds it in the status.
kill -HUP "$pid"
says_so() { [[ $(status_text) == *onfiguration* ]]; }
wait_for 10 'a status line that says so' says_so
make_store "$STORES/more/y.sqlite" "$OLD" 20 2
wait_migrated "$STORES/more/y.sqlite"
wait_migrated "$STORES/big.sqlite" 150
same 'main process' "$pid" "$(main_pid)"
same 'starts of the big migration' 1 \
    "$(count MESSAGE_ID="$(message_id migrationStarted)" HOPD_STORE="$STORES/big.sqlite")"
# Put right again
rm /etc/hopd/hopd.toml.d/30-bad.toml
systemctl reload hopd
twice() { [ "$(count MESSAGE_ID="$(message_id configurationReloaded)")" -ge 2 ]; }
wait_for 20 'the repaired configuration in force' twice
