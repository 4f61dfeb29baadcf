# about: on_failure and on_migrated run in the hardened unit, once for each cause, with the exact path; one that fails is a warning with its status, one that is missing is found; hopd-failed@ of the examples mails what status says
# needs: systemd
export RESCAN=1h
T=$ROOM/told
mkdir -p "$T"; chown hopd:hopd "$T"; chmod 755 "$ROOM"
unit_setting "ReadWritePaths=$T"
mkdir -p /usr/local/bin
cat >/usr/local/bin/tell <<'P'
#!/bin/sh
set -eu
env -0 >"/srv/hopd-test/told/$1.$$"
echo "told $1"
echo "seen $1" >&2
P
chmod 755 /usr/local/bin/tell
configure
for key in failure migrated; do
    sed -i "s#^jobs = .*#&\non_$key = [\"/usr/local/bin/tell\", \"$key\"]#" /etc/hopd/hopd.toml
done
start
ran() { [ "$(find "$T" -name "$1.*" | wc -l)" = "$2" ]; }
value() { # KIND FIELD: in the first run
    tr '\0' '\n' <"$(find "$T" -name "$1.*" | sort | head -n 1)" | sed -n "s/^$2=//p"
}

# A migration, of a store with a name that a shell would take apart.
S="$STORES/it's \$HOME (1).sqlite"
make_store "$S" "$OLD" 20 1
wait_migrated "$S"
wait_for 20 'on_migrated ran' ran migrated 1
same 'HOPD_STORE' "$S" "$(value migrated HOPD_STORE)"
same 'HOPD_RESULT' migrated "$(value migrated HOPD_RESULT)"
same 'HOPD_FROM and HOPD_TO' "$OLD, $NEW" "$(value migrated HOPD_FROM), $(value migrated HOPD_TO)"
same 'HOPD_WATCH' test "$(value migrated HOPD_WATCH)"
[ -e "$(value migrated HOPD_BACKUP)" ] || fail "no backup at $(value migrated HOPD_BACKUP)"

# A failure: once, whatever the retries, reloads and restarts.
bad_store() { # NAME
    head -c 9000 /dev/urandom >"$ROOM/making/$1"
    chown hopd:hopd "$ROOM/making/$1"
    mv "$ROOM/making/$1" "$STORES/"
}
bad_store bad.sqlite
B=$STORES/bad.sqlite
wait_for 30 'on_failure ran' ran failure 1
same 'HOPD_STORE' "$B" "$(value failure HOPD_STORE)"
same 'HOPD_RESULT' refused "$(value failure HOPD_RESULT)"
code=$(value failure HOPD_ERROR)
refused_with "$B" "$code" || fail "HOPD_ERROR=$code is not that of the journal"
tries() { [ "$(hopctl status "$B" --json | json store.problem.attempts)" = "$1" ]; }
wait_for 20 'one attempt' tries 1
hopctl retry "$B" >/dev/null
wait_for 20 'two attempts' tries 2
hopctl reload >/dev/null 2>&1
wait_for 20 'three attempts' tries 3
same 'refusals in the journal' 1 "$(count MESSAGE_ID="$(message_id storeRefused)" HOPD_STORE="$B")"
systemctl restart hopd
wait_for 30 'an attempt after the restart' tries 1
sleep 1
ran failure 1 || fail "on_failure ran again: $(ls "$T")"
ran migrated 1 || fail "on_migrated ran again: $(ls "$T")"
# What a command writes: standard error at notice, standard output for debugging only.
same 'level of its output' 5 "$(values PRIORITY MESSAGE_ID="$(message_id commandOutput)" HOPD_STORE="$B")"
matches 'its output' 'on_failure: seen failure' "$(values MESSAGE MESSAGE_ID="$(message_id commandOutput)")"
same 'warnings' 0 "$(count MESSAGE_ID="$(message_id commandFailed)")"

# One that fails, in the sandbox of the unit: it has no network, and cannot write the system.
sed -i 's#^on_failure = .*#on_failure = ["/bin/sh", "-c", "touch /etc/x || echo read-only >\&2; exit 7"]#' \
    /etc/hopd/hopd.toml
hopctl reload >/dev/null || fail 'reload with another command'
bad_store bad2.sqlite
wait_for 30 'a warning' said commandFailed "$STORES/bad2.sqlite"
matches 'its status' 'on_failure exited with status 7' "$(values MESSAGE MESSAGE_ID="$(message_id commandFailed)")"
same 'its level' 4 "$(values PRIORITY MESSAGE_ID="$(message_id commandFailed)")"
matches 'read-only' 'on_failure: read-only' "$(values MESSAGE HOPD_STORE="$STORES/bad2.sqlite")"
[ ! -e /etc/x ] || fail 'a command wrote the system'
same 'hopd' active "$(show ActiveState)"

# One that is missing: check-config and a reload of the unit refuse it with file and line, hopctl reload warns.
sed -i 's#^on_failure = .*#on_failure = ["/nowhere/tell"]#' /etc/hopd/hopd.toml
rc=0; hopctl check-config >"$ROOM/out" 2>&1 || rc=$?
same 'status of check-config' 78 "$rc"
matches 'check-config' 'hopd\.toml:4.*on_failure' "$(cat "$ROOM/out")"
matches 'check-config' 'does not exist: /nowhere/tell' "$(cat "$ROOM/out")"
! systemctl reload hopd 2>/dev/null || fail 'a reload with a missing command'
hopctl reload >/dev/null 2>"$ROOM/err" || fail 'hopctl reload'
matches 'hopctl reload' 'warning.*does not exist: /nowhere/tell' "$(cat "$ROOM/err")"

has_failed() { [ "$(hopctl status "$B" --json | json store.state)" = failed ]; }
wait_for 20 'failed after the reload too' has_failed

# The example: the unit mails, and the script starts it for any path. (hopd itself needs the rule for polkit.)
N=$DOCS/Examples/Notifications
cp "$N/hopd-failed@.service" "$N/hopd-down.service" /etc/systemd/system/
cat >/usr/local/bin/mail <<'P'
#!/bin/sh
{ echo "to: $*"; cat; } >>/srv/hopd-test/told/mail
P
chmod 755 /usr/local/bin/mail
systemctl daemon-reload
systemctl start "$(systemd-escape --path --template=hopd-failed@.service -- "$B")" || fail 'hopd-failed@'
matches 'subject' 'to: -s hopd: a store on .* needs you root' "$(cat "$T/mail")"
matches 'mail' 'no retry until the store' "$(cat "$T/mail")"
rm "$T/mail"
HOPD_STORE=$S "$N/on-failure" || fail 'on-failure of the examples'
mailed() { grep -qF "$S" "$T/mail"; }
wait_for 20 'a mail about the migrated store' mailed
systemctl start hopd-down.service || fail 'hopd-down'
