# about: a current version that breaks a rule: named with file and line; no store is touched; repaired, the store gets done
# needs: systemd
configure
make_store "$STORES/a.sqlite" "$OLD" 20 1
cp -R "$MODEL" "$ROOM/good.xcdatamodeld"
sed -i 's#attributeType="Date"#attributeType="Datum"#' "$MODEL/Library 4.xcdatamodel/contents"
before=$(snapshot "$STORES")
# Whether the service starts and says it, or ends with a status that systemd does not restart, it must name the file.
systemctl start hopd || true
named() { journalctl -q -o cat SYSLOG_IDENTIFIER=hopd | grep -q 'Library 4\.xcdatamodel'; }
wait_for 30 'an entry that names the model file' named
matches 'the entry' 'Datum|attributeType|attribute type' "$(journalctl -q -o cat SYSLOG_IDENTIFIER=hopd \
    | grep -A6 'Library 4\.xcdatamodel')"
sleep 2
unchanged "$STORES" "$before"
[ "$(show NRestarts)" -le 1 ] || fail "it restarts in a loop: $(show NRestarts)"
cp "$ROOM/good.xcdatamodeld/Library 4.xcdatamodel/contents" "$MODEL/Library 4.xcdatamodel/contents"
if [ "$(show ActiveState)" = active ]; then systemctl reload hopd; else systemctl reset-failed hopd || true; start; fi
wait_migrated "$STORES/a.sqlite"
