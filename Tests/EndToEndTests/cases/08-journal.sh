# about: the journal tells one store's whole life by HOPD_STORE=, with documented fields and catalog texts
# needs: systemd
configure
start
# At the level of every day one store is one entry.
make_store "$STORES/one.sqlite" "$OLD" 30 3
wait_migrated "$STORES/one.sqlite"
same 'entries of one store' 1 "$(count HOPD_STORE="$STORES/one.sqlite")"
LOG_LEVEL=debug configure
systemctl restart hopd
make_store "$STORES/life.sqlite" "$OLD" 300 1
make_store "$STORES/other.sqlite" "$OLD" 30 2
wait_migrated "$STORES/life.sqlite"
S=HOPD_STORE=$STORES/life.sqlite
for kind in storeQueued migrationStarted hopFinished storeMigrated; do
    said "$kind" "$STORES/life.sqlite" || fail "no entry $kind for the store"
done
same 'hops told' '1 2 3' "$(values HOPD_HOP MESSAGE_ID="$(message_id hopFinished)" "$S" | paste -sd ' ')"
M=MESSAGE_ID=$(message_id storeMigrated)
same HOPD_FROM "$OLD" "$(values HOPD_FROM "$M" "$S")"
same HOPD_TO "$NEW" "$(values HOPD_TO "$M" "$S")"
same HOPD_HOPS 3 "$(values HOPD_HOPS "$M" "$S")"
same HOPD_RESULT migrated "$(values HOPD_RESULT "$M" "$S")"
same PRIORITY 5 "$(values PRIORITY "$M" "$S")"
matches HOPD_ROWS '^[1-9][0-9]*$' "$(values HOPD_ROWS "$M" "$S")"
matches HOPD_USEC '^[1-9][0-9]*$' "$(values HOPD_USEC "$M" "$S")"
uuid=$(sqlite3 -batch "$STORES/life.sqlite" 'SELECT Z_UUID FROM Z_METADATA')
same HOPD_STORE_UUID "$uuid" "$(values HOPD_STORE_UUID "$M" "$S")"
same 'jobs of one migration' 1 "$(values HOPD_JOB "$S" MESSAGE_ID="$(message_id migrationStarted)" \
    MESSAGE_ID="$(message_id hopFinished)" "$M" | sort -u | wc -l)"
same 'other stores under this store' "$STORES/life.sqlite" "$(values HOPD_STORE "$S" | sort -u)"
# The catalog: every field in the text is filled in
text=$(journalctl -q --no-pager -x "$M" "$S")
matches 'journalctl -x' "hopctl restore .*life\.sqlite" "$text"
if grep -qE '@HOPD_[A-Z_]+@' <<<"$text"; then fail "a field is not filled in: $text"; fi
# Fields are only those that are documented
entries | "$PY" -I -S -c 'import json, sys
seen = {k for l in sys.stdin for k in json.loads(l) if k.startswith("HOPD_")}
known = open(sys.argv[1]).read()
bad = sorted(k for k in seen if "`%s`" % k not in known)
sys.exit("undocumented fields: " + " ".join(bad) if bad else 0)' "$DOCS/docs/JOURNAL-FIELDS.md" || fail 'fields'
# For debugging one line per step of each hop, not per chunk
[ "$(count "$S")" -le 30 ] || fail "$(count "$S") entries for one small store"
