# about: hopctl migrate and restore: there and back again, to the same content
# needs: hopctl
make_store "$STORES/a.sqlite" "$OLD" 200 1
S=$STORES/a.sqlite
before=$(content_of "$S")
titles() { sqlite3 -batch "$1" 'SELECT group_concat(ZTITLE) FROM (SELECT ZTITLE FROM ZBOOK ORDER BY Z_PK)' \
    | sha256sum; }
old_titles=$(titles "$S")
hopctl migrate "$S" --models "$MODEL" --no-progress --json >"$ROOM/report"
same result migrated "$(json result <"$ROOM/report")"
same from "$OLD" "$(json from <"$ROOM/report")"
same to "$NEW" "$(json to <"$ROOM/report")"
[ -s "$(json backup <"$ROOM/report")" ] || fail "no backup: $(json backup <"$ROOM/report")"
same 'version' "$NEW" "$(version_of "$S")"
same 'titles after the migration' "$old_titles" "$(titles "$S")"
plain_check "$S"
# A second run has nothing to do
hopctl migrate "$S" --models "$MODEL" --no-progress --json >"$ROOM/report2"
same 'second run' current "$(json result <"$ROOM/report2")"
hopctl restore "$S" --yes >/dev/null
same 'version after restore' "$OLD" "$(version_of "$S")"
same 'content after restore' "$before" "$(content_of "$S")"
plain_check "$S"
