# about: 200 stores of three versions, there before the start and arriving later, are all migrated
# needs: systemd
configure
versions=("$OLD" 'Library 2' 'Library 3')
for i in $(seq 1 120); do make_store "$STORES/s$i.sqlite" "${versions[i % 3]}" 20 "$i"; done
start
for i in $(seq 121 200); do make_store "$STORES/s$i.sqlite" "${versions[i % 3]}" 20 "$i"; done
all_done() { [ "$(count MESSAGE_ID="$(message_id storeMigrated)")" -ge 200 ]; }
wait_for 150 '200 stores migrated' all_done
same 'entries of migrated stores' 200 "$(values HOPD_STORE MESSAGE_ID="$(message_id storeMigrated)" | sort -u | wc -l)"
for i in $(seq 1 200); do
    is_version "$STORES/s$i.sqlite" "$NEW" || fail "s$i.sqlite is $(version_of "$STORES/s$i.sqlite")"
done
same 'errors in the journal' 0 "$(journalctl -q -p err SYSLOG_IDENTIFIER=hopd -o cat | wc -l)"
same 'staged files left' '' "$(staged_files)"
wait_for 15 'a status that says it waits' idle
