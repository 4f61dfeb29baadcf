# about: hopctl's exit statuses and JSON errors, on good, bad, missing and busy inputs; nothing is changed by a refusal
# needs: hopctl
make_store "$STORES/old.sqlite" "$OLD" 30 1
make_store "$STORES/new.sqlite" "$NEW" 30 2
sqlite3 -batch "$STORES/plain.sqlite" 'CREATE TABLE t (a)'
head -c 9000 /dev/urandom >"$STORES/noise.sqlite"
cp "$STORES/old.sqlite" "$STORES/torn.sqlite"
dd if=/dev/urandom of="$STORES/torn.sqlite" bs=1 seek=$(($(stat -c %s "$STORES/torn.sqlite") / 2)) count=3000 \
    conv=notrunc status=none
cp "$STORES/old.sqlite" "$STORES/held.sqlite"
cp -R "$MODEL" "$ROOM/Broken.xcdatamodeld"
echo '<model' >"$ROOM/Broken.xcdatamodeld/Library 2.xcdatamodel/contents"
cp -R "$MODEL" "$ROOM/Older.xcdatamodeld"
rm -r "$ROOM/Older.xcdatamodeld/Library 4.xcdatamodel"
sed -i 's/Library 4/Library 3/' "$ROOM/Older.xcdatamodeld/.xccurrentversion"
mkdir "$ROOM/nothing"
printf '[[watch]]\nname = "x"\ndirectory = 7\n' >"$ROOM/bad.toml"
hold "$STORES/held.sqlite" 'BEGIN EXCLUSIVE;'
before=$(snapshot "$STORES")

bad=0
# status EXPECTED[,EXPECTED] COMMAND...: the exit status, and an error object with code and message if it is an error
status() {
    local want=$1 rc=0; shift
    "$@" --json >"$ROOM/out" 2>"$ROOM/err" || rc=$?
    case ",$want," in *,$rc,*) ;; *) echo "WRONG: exit status $rc, expected $want: $*"
        cat "$ROOM/out" "$ROOM/err"; bad=$((bad + 1)); return 0 ;; esac
    if [ "$rc" != 0 ] && [ "$rc" != 10 ] && [ "$rc" != 64 ]; then
        [ -s "$ROOM/err" ] || { echo "WRONG: nothing on standard error: $*"; bad=$((bad + 1)); }
        if [[ $2 != identify ]] && ! "$PY" -I -S -c 'import json, sys
e = json.load(sys.stdin)["error"]; assert e["code"] and e["message"]' <"$ROOM/out" 2>/dev/null; then
            echo "WRONG: no error object: $*"; cat "$ROOM/out"; bad=$((bad + 1))
        fi
    fi
    return 0
}
m=(--models "$MODEL")
status 0   hopctl identify "$STORES/new.sqlite" "${m[@]}"
status 0   hopctl identify "$STORES/old.sqlite" "${m[@]}"
status 65  hopctl identify "$STORES/plain.sqlite" "${m[@]}"
status 65  hopctl identify "$STORES/noise.sqlite" "${m[@]}"
status 66  hopctl identify "$STORES/missing.sqlite" "${m[@]}"
status 65  hopctl identify "$STORES/old.sqlite" --models "$ROOM/Broken.xcdatamodeld"
status 6   hopctl identify "$STORES/old.sqlite" --models "$ROOM/nothing"
status 6,66 hopctl identify "$STORES/old.sqlite" --models "$ROOM/no-such-folder"
status 64  hopctl identify
status 64  hopctl no-such-command
status 64  hopd --no-such-option
status 0   hopctl plan "$STORES/old.sqlite" "${m[@]}"
status 10  hopctl plan "$STORES/old.sqlite" "${m[@]}" --check
status 0   hopctl plan "$STORES/new.sqlite" "${m[@]}" --check
status 65  hopctl plan "$STORES/noise.sqlite" "${m[@]}" --check
status 65  hopctl plan "$STORES/new.sqlite" --models "$ROOM/Older.xcdatamodeld"
status 64  hopctl plan "$STORES/old.sqlite" "${m[@]}" --to 'No such version'
status 0   hopctl migrate "$STORES/new.sqlite" "${m[@]}" --no-progress
status 65  hopctl migrate "$STORES/noise.sqlite" "${m[@]}" --no-progress
status 65  hopctl migrate "$STORES/torn.sqlite" "${m[@]}" --no-progress
status 65  hopctl migrate "$STORES/new.sqlite" --models "$ROOM/Older.xcdatamodeld" --no-progress
status 66  hopctl migrate "$STORES/missing.sqlite" "${m[@]}" --no-progress
status 69  hopctl migrate "$STORES/held.sqlite" "${m[@]}" --no-progress
status 64,73 hopctl migrate "$STORES/old.sqlite" "${m[@]}" --no-progress --output "$STORES/new.sqlite"
status 66,73 hopctl migrate "$STORES/old.sqlite" "${m[@]}" --no-progress --output "$ROOM/no/such/folder/x.sqlite"
status 0   hopctl verify "$STORES/new.sqlite" "${m[@]}"
status 65  hopctl verify "$STORES/torn.sqlite" "${m[@]}"
status 65,66 hopctl restore "$STORES/old.sqlite"
status 78  hopctl check-config "$ROOM/bad.toml"
status 66,78 hopctl check-config "$ROOM/missing.toml"
unchanged "$STORES" "$before"
# Without the right to write
if [ "$(id -u)" = 0 ]; then
    as() { setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"; }
else
    as() { "$@"; }
fi
mkdir "$ROOM/locked"; cp "$STORES/old.sqlite" "$ROOM/locked/"; chmod 444 "$ROOM/locked/old.sqlite"
chmod 555 "$ROOM/locked"
if as test -r "$ROOM/locked/old.sqlite" && as test -x "$(command -v hopctl)"; then
    rc=0; as hopctl migrate "$ROOM/locked/old.sqlite" "${m[@]}" --no-progress --json >"$ROOM/out" 2>"$ROOM/err" || rc=$?
    [ $rc = 77 ] || { echo "WRONG: exit status $rc, expected 77 in a folder that may not be written"
        cat "$ROOM/err"; bad=$((bad + 1)); }
else note 'another user cannot reach the folder: not tried without rights'; fi
let_go
[ $bad = 0 ] || fail "$bad of the table"
