# lib.sh - what the cases share. Sourced by inside.sh, which sets ROOM, STORES, MODELS (a folder), MODEL (the example's
# bundle) and DOCS. A case is a plain script under `set -e`: the first thing that does not hold ends it.
# shellcheck shell=bash

OLD=Library NEW='Library 4'
PY=${PY:-python3}

# --- verdicts -----------------------------------------------------------------------------------------------------
fail() {
    local i where=''
    for i in "${!BASH_SOURCE[@]}"; do
        case ${BASH_SOURCE[i]} in */cases/*) where=${BASH_SOURCE[i]##*/}:${BASH_LINENO[i - 1]}; break ;; esac
    done
    echo "FAIL: ${where:+$where: }$*"
    exit 1
}
skip() { echo "SKIP: $*"; exit 77; }
note() { echo "note: $*"; }
# same WHAT EXPECTED FOUND
same() { [ "$2" = "$3" ] || fail "$1: expected '$2', found '$3'"; }
# matches WHAT PATTERN TEXT (extended regular expression, anywhere in the text)
matches() { grep -qiE -e "$2" <<<"$3" || fail "$1: nothing like '$2' in: $3"; }
# wait_for SECONDS WHAT COMMAND...
wait_for() {
    local limit=$1 what=$2 end; shift 2
    end=$((SECONDS + limit))
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || fail "after ${limit}s still not: $what"
        sleep 0.05
    done
}
# At the end of a case that failed: what a person would look at first.
explain_failure() {
    let_go || true
    [ "$1" = 0 ] || [ "$1" = 77 ] && return
    if [ -z "${direct-}" ]; then
        systemctl status hopd --no-pager -l -n 0 2>&1 | head -n 20
        echo '--- journal'; journalctl -q -u hopd -t systemd -t hopd --no-pager -o short-monotonic -n 30 2>&1
    fi
    echo '--- files'; find "$STORES" -printf '%M %u %10s %P\n' 2>/dev/null | head -n 40
}

# --- the service ----------------------------------------------------------------------------------------------------
# unit_setting KEY=VALUE...: one more drop-in of [Service] settings
drop_ins=10
unit_setting() {
    mkdir -p /etc/systemd/system/hopd.service.d
    { echo '[Service]'; printf '%s\n' "$@"; } >"/etc/systemd/system/hopd.service.d/$drop_ins-test.conf"
    drop_ins=$((drop_ins + 1))
    systemctl daemon-reload
}
# watch_section NAME DIRECTORY: one [[watch]]; variables in the caller's environment change it
watch_section() {
    cat <<EOF
[[watch]]
name = "$1"
directory = "$2"
models = ["$MODELS"]
settle = "${SETTLE:-300ms}"
rescan = "${RESCAN:-3s}"

[watch.migration]
chunk_time = "${CHUNK_TIME:-250ms}"
chunk_rows_max = ${CHUNK_ROWS:-50000}
retry = { attempts = 1000, backoff = "1s", max = "2s" }
EOF
}
configure() {
    mkdir -p /etc/hopd
    { printf '[daemon]\njobs = %s\nlog_level = "%s"\n\n' "${JOBS:-2}" "${LOG_LEVEL:-info}"
      watch_section test "$STORES"; } \
        >/etc/hopd/hopd.toml
}
start()       { timeout 60 systemctl start hopd || fail 'systemctl start hopd'; }
show()        { systemctl show hopd --property="$1" --value; }
status_text() { show StatusText; }
main_pid()    { show MainPID; }
idle()        { [[ $(status_text) == *watching* ]]; }

# --- stores -------------------------------------------------------------------------------------------------------
# make_store PATH VERSION ROWS SEED: made out of sight, then moved in as one rename, as a careful program would
made=0
make_store() {
    local room=$ROOM/making/$((made += 1))
    mkdir -p "$room"
    hopctl create "$room/${1##*/}" --models "$MODEL" --model-version "$2" --rows "$3" --seed "$4" >"$room.log" 2>&1 ||
        fail "hopctl create: $(cat "$room.log")"
    move_in "$room" "$(dirname "$1")"
}
# move_in FOLDER DIRECTORY: everything in FOLDER, with the service's owner; the database comes last
move_in() {
    [ -n "${direct-}" ] || chown -R hopd:hopd "$1"
    find "$1" -mindepth 1 -maxdepth 1 -name '.*' -exec mv -t "$2" -- {} +
    find "$1" -mindepth 1 -maxdepth 1 ! -name '.*' -exec mv -t "$2" -- {} +
}
# big_store PATH: the prepared big store of version Library
big_store() {
    local room=$ROOM/making/big$((made += 1))
    mkdir -p "$room"
    cp --reflink=auto /opt/hopd-cache/big.sqlite "$room/${1##*/}"
    move_in "$room" "$(dirname "$1")"
}
# json KEY.KEY...: one value of the JSON object on standard input; empty if it is not there
json() {
    "$PY" -I -S -c '
import json, sys
try:
    v = json.load(sys.stdin)
except ValueError:
    sys.exit("not JSON where JSON was expected")
for k in sys.argv[1].split("."):
    v = v[int(k)] if isinstance(v, list) else v.get(k) if isinstance(v, dict) else None
print("" if v is None else v)' "$1"
}
identify()   { hopctl identify "$1" --models "$MODEL" --json; }
state_of()   { identify "$1" 2>/dev/null | json state; }
version_of() { identify "$1" 2>/dev/null | json version; }
is_version() { [ "$(version_of "$1" 2>/dev/null)" = "$2" ]; }
# wait_migrated STORE [SECONDS]: waits for the journal first, because a look with hopctl opens the store, and hopd puts
# off a migration while another program has the store open.
wait_migrated() {
    wait_for "${2:-60}" "journal: $1 migrated" said storeMigrated "$1"
    wait_for "${2:-60}" "$1 is $NEW" is_version "$1" "$NEW"
}
# content_of STORE: a digest of all objects with their values and relationships
content_of() { hopctl dump "$1" --models "$MODEL" | sha256sum | cut -d' ' -f1; }
# plain_check STORE: by SQLite alone
plain_check() { same "integrity of $1" ok "$(sqlite3 -batch "$1" 'PRAGMA integrity_check')"; }
# snapshot DIRECTORY: name, mode, size and content of everything in it. The shared-memory index of a write-ahead log is
# not content, and hopd's own lock file may appear.
snapshot() {
    (cd "$1" && find . ! -name '*-shm' ! -name '.hopd*' ! -name . -printf '%p %y %m %u %s ' \
        \( -type f -exec sh -c 'sha256sum <"$1"' sh {} \; -o -printf '\n' \) | sort)
}
unchanged() { # DIRECTORY SNAPSHOT
    local now; now=$(snapshot "$1")
    [ "$now" = "$2" ] || fail "$1 has changed: $(diff <(echo "$2") <(echo "$now"))"
}
staged_files() { find "$STORES" -name '.*.hop-*' -size "${1:-+0}"; }
in_the_middle() { [ -n "$(staged_files +512k)" ]; }
# hold STORE SQL: another process does SQL on the store and keeps its connection; PID in $holder
holder=''
hold() {
    local pipe=$ROOM/hold.$RANDOM
    mkfifo "$pipe"
    sqlite3 -batch "$1" <"$pipe" >/dev/null 2>&1 &
    holder=$!
    exec {held}>"$pipe"
    printf '%s\n.shell touch %s.ready\n' "$2" "$pipe" >&"$held"
    wait_for 10 "another process holds $1" test -e "$pipe.ready"
}
# let_go [SIGNAL]: by default as a program that ends; KILL as one that dies
let_go() {
    [ -n "$holder" ] || return 0
    [ $# -eq 0 ] || kill -"$1" "$holder"
    exec {held}>&-
    wait "$holder" 2>/dev/null || true
    holder=''
}

# --- the journal ----------------------------------------------------------------------------------------------------
# message_id KIND: its MESSAGE_ID, as documented
message_id() { sed -nE "s/^- \`([0-9a-f]{32})\` $1 .*/\1/p" "$DOCS/docs/JOURNAL-FIELDS.md" | grep . \
    || fail "no message id for $1"; }
entries() { journalctl -q --no-pager -o json SYSLOG_IDENTIFIER=hopd "$@"; }
# values FIELD MATCH...: that field of each entry, a line each
values() {
    local field=$1; shift
    entries "$@" | "$PY" -I -S -c '
import json, sys
for line in sys.stdin:
    v = json.loads(line).get(sys.argv[1])
    if v is not None:
        print(bytes(v).decode(errors="replace") if isinstance(v, list) else v)' "$field"
}
count() { entries "$@" | wc -l; }
# said KIND [STORE] [MATCH...]: is there such an entry?
said() {
    local kind=$1 store=${2-}; shift; [ $# -eq 0 ] || shift
    [ "$(count MESSAGE_ID="$(message_id "$kind")" ${store:+HOPD_STORE="$store"} "$@")" -gt 0 ]
}
# refused_with STORE CODE: refused, failed or deferred with this code, with a hint
refused_with() { [ "$(count HOPD_STORE="$1" HOPD_ERROR="$2")" -gt 0 ]; }
