# about: the commands of the installed README, docs and examples, as written, those that change the machine included
# needs: systemd
mkdir -p /srv/library
"$PY" -I /opt/hopd-tools/doc-commands --system --tree "$DOCS" >"$ROOM/commands" 2>&1 || fail "$(cat "$ROOM/commands")"
matches 'commands were run' '^[1-9][0-9]+ commands were run, ' "$(cat "$ROOM/commands")"
# A system of its own leaves out only what says so.
! grep 'needs a system' "$ROOM/commands" || fail 'system commands were left out'
tail -n 12 "$ROOM/commands"
