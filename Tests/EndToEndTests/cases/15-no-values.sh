# about: no value of an attribute reaches the journal, not at debug level and not in errors
# needs: systemd
export LOG_LEVEL=trace
configure
secret=XyZZy7391
make_store "$ROOM/making/a.sqlite" "$OLD" 50 1
cp "$ROOM/making/a.sqlite" "$ROOM/making/b.sqlite"
sqlite3 -batch "$ROOM/making/a.sqlite" \
    "UPDATE ZBOOK SET ZTITLE = '$secret ' || Z_PK, ZSHELFMARK = '$secret';
    UPDATE ZPERSON SET ZEMAIL = '$secret@example.org'"
# A store that cannot pass: text where a number belongs, and loans of a person who is not there.
sqlite3 -batch "$ROOM/making/b.sqlite" \
    "UPDATE ZBOOK SET ZPAGES = '$secret'; UPDATE ZLOAN SET ZBORROWER = 99999, ZDUE = '$secret'"
mv "$ROOM/making/a.sqlite" "$ROOM/making/b.sqlite" "$STORES/"; chown hopd: "$STORES"/*
start
wait_migrated "$STORES/a.sqlite"
ended() { [ "$(count HOPD_STORE="$STORES/b.sqlite" HOPD_RESULT=migrated)" -gt 0 ] \
    || [ "$(count HOPD_STORE="$STORES/b.sqlite" PRIORITY=3)" -gt 0 ]; }
wait_for 60 'an end for b.sqlite' ended
note "b.sqlite: $(values HOPD_RESULT HOPD_STORE="$STORES/b.sqlite" | tail -n 1)"
same 'titles in the new store' 1 "$(sqlite3 -batch "$STORES/a.sqlite" \
    "SELECT count(*) > 0 FROM ZBOOK WHERE ZTITLE LIKE '$secret%'")"
systemctl stop hopd
[ "$(count)" -gt 5 ] || fail 'too few entries to prove anything'
if journalctl -q -o export | grep -a -q "$secret"; then
    fail "the journal holds a value: $(journalctl -q -o cat | grep -a "$secret" | head -n 3)"
fi
if grep -r -a -q "$secret" /var/lib/hopd /run/hopd 2>/dev/null; then fail 'a value is in the state directory'; fi
if systemctl status hopd --no-pager | grep -q "$secret"; then fail 'a value is in the status'; fi
