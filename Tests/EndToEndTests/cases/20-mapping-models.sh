# about: text mappings beside the models: stores dropped in go the mapped hops; debug shows SQL with times, trace decisions, neither a value
# needs: systemd
cp -R "$DOCS/Examples/Mappings/normalise" "$MODELS/normalise"
rm -r "$MODEL"
MODEL=$MODELS/normalise NEW='Recipes 3'
LOG_LEVEL=trace CHUNK_ROWS=2 configure
start
mkdir "$ROOM/making/r"
hopctl create "$ROOM/making/r/recipes.sqlite" --models "$MODEL" --model-version Recipes --rows 0 >/dev/null
sqlite3 -batch "$ROOM/making/r/recipes.sqlite" <"$MODEL/source.sql"
sqlite3 -batch "$ROOM/making/r/recipes.sqlite" "UPDATE ZRECIPE SET ZTITLE = 'Marjoram' || Z_PK"
move_in "$ROOM/making/r" "$STORES"
S=$STORES/recipes.sqlite
wait_migrated "$S"
plain_check "$S"
same 'cooks' $'Ada\nBo' "$(sqlite3 -batch "$S" 'SELECT ZNAME FROM ZCOOK ORDER BY 1')"
objects() { "$PY" -I -S -c '
import json, sys
for line in sys.stdin:
    thing = json.loads(line)
    thing["attributes"].pop("title", None)
    print(json.dumps(thing, sort_keys=True))'; }
same 'objects' "$(objects <"$MODEL/expected.ndjson")" "$(hopctl dump "$S" --models "$MODEL" | objects)"
same 'hops told' '1 2' "$(values HOPD_HOP MESSAGE_ID="$(message_id hopFinished)" HOPD_STORE="$S" | paste -sd ' ')"
journal=$(values MESSAGE HOPD_STORE="$S")
matches 'statements with times and rows' '[0-9]+ µs, [0-9]+ rows: INSERT INTO .*ZCOOK' "$journal"
matches 'the decision which mapping model serves' 'follows .*1 to 2' "$journal"
matches 'the decision how a mapping is carried out' 'Cooks' "$journal"
same 'levels of statements and decisions' 7 "$(values PRIORITY HOPD_STORE="$S" | sort -n | tail -n 1)"
if grep -qE 'Marjoram|Ada' <<<"$journal"; then fail 'the journal has a value'; fi
# At info neither is there.
sed -i 's/"trace"/"info"/' /etc/hopd/hopd.toml
systemctl reload hopd
mkdir "$ROOM/making/r2"
hopctl create "$ROOM/making/r2/quiet.sqlite" --models "$MODEL" --model-version Recipes --rows 50 --seed 3 >/dev/null
move_in "$ROOM/making/r2" "$STORES"
wait_migrated "$STORES/quiet.sqlite"
same 'entries below info' 0 "$(values PRIORITY HOPD_STORE="$STORES/quiet.sqlite" | grep -c 7 || true)"
# A mapping that cannot be read: named with file, line and key; nothing is inferred over it, the store stays.
before=$(sha256sum <"$STORES/quiet.sqlite")
sed -i 's/^distinct_by/distinct_bye/' "$MODEL/1 to 2.hopmap.toml"
systemctl reload hopd || true
mkdir "$ROOM/making/r3"
hopctl create "$ROOM/making/r3/later.sqlite" --models "$DOCS/Examples/Mappings/normalise/Recipes.xcdatamodeld" \
    --model-version Recipes --rows 5 --seed 4 >/dev/null
old=$(sha256sum <"$ROOM/making/r3/later.sqlite")
move_in "$ROOM/making/r3" "$STORES"
named() { journalctl -q -o cat SYSLOG_IDENTIFIER=hopd \
    | grep -q '1 to 2.hopmap.toml.*distinct_bye\|distinct_bye.*1 to 2.hopmap.toml'; }
wait_for 30 'an entry that names the key' named
sleep 2
same 'the new store' "$old" "$(sha256sum <"$STORES/later.sqlite")"
same 'the migrated store' "$before" "$(sha256sum <"$STORES/quiet.sqlite")"
