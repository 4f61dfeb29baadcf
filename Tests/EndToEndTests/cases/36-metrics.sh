# about: the metrics of [daemon] metrics_file: what they say, how they are written, and that promtool takes them and the alerts
# first: metrics are written once a minute
# needs: systemd
mkdir -p "$ROOM/prom"; chown hopd: "$ROOM/prom"
unit_setting "ReadWritePaths=$ROOM/prom"
export RESCAN=1h
configure
sed -i "s#^jobs = .*#&\nmetrics_file = \"$ROOM/prom/hopd.prom\"#" /etc/hopd/hopd.toml
make_store "$STORES/a.sqlite" "$OLD" 20 1
make_store "$STORES/b.sqlite" "$NEW" 20 2
head -c 20000 /dev/urandom >"$ROOM/making/noise.sqlite"; chown hopd: "$ROOM/making/noise.sqlite"
mv "$ROOM/making/noise.sqlite" "$STORES/"
F=$ROOM/prom/hopd.prom
start
value() { sed -nE "s/^$1 (.*)/\1/p" "$F"; }
is() { [ "$(value "$1")" = "$2" ]; }
wait_for 60 'one migration' is 'hopd_store_migrations_total\{result="migrated"\}' 1
wait_for 60 'two current stores' is "hopd_stores\\{version=\"$NEW\",state=\"current\"\\}" 2
wait_for 60 'one failed store' is 'hopd_stores\{version="",state="failed"\}' 1
same 'hops' 3 "$(value hopd_hop_seconds_count)"
same 'queue' 0 "$(value hopd_queue_depth)"
same 'unavailable' 0 "$(value hopd_watches_unavailable)"
matches 'rows' '^[1-9][0-9]*$' "$(value hopd_rows_total)"
matches 'last success' '^1[0-9]{9}$|^2[0-9]{9}$' "$(value hopd_last_success_timestamp_seconds)"
same 'mode' 644 "$(stat -c %a "$F")"
same 'drafts' '' "$(find "$ROOM/prom" -name '*.tmp')"
# No series for a store, and none for an entity.
[ "$(grep -c "$STORES\|a\.sqlite\|Book" "$F")" = 0 ] || fail 'a name in the metrics'
hopctl pause >/dev/null
wait_for 70 'the pause' is hopd_paused 1
PATH=$PATH:/opt/hopd-promtool
if command -v promtool >/dev/null; then
    promtool check metrics <"$F" >"$ROOM/out" 2>&1 || fail "promtool check metrics: $(cat "$ROOM/out")"
    promtool check rules "$DOCS/Examples/Monitoring/hopd.rules.yml" >"$ROOM/out" 2>&1 \
        || fail "promtool check rules: $(cat "$ROOM/out")"
else
    note 'SKIPPED: no promtool (package prometheus): metrics and alerts were not checked with it'
fi
more() { [ "$(value hopd_backup_bytes)" -gt 0 ]; }
wait_for 70 'the backup of the migration is counted' more
# A folder that cannot be written to is told once, and stops nothing.
chmod 555 "$ROOM/prom"; chown root: "$ROOM/prom"
hopctl resume >/dev/null
make_store "$STORES/c.sqlite" "$OLD" 20 3
wait_migrated "$STORES/c.sqlite"
wait_for 70 'the warning' said metricsUnwritable
