#!/bin/bash
# inside.sh [--direct] CASE - one case. Runs inside the sandbox as root, where it first installs the staged programs;
# with --direct on the machine itself, for cases that need hopctl alone.
# Exit status: 0 passed, 77 skipped (the reason in a line "SKIP: …"), anything else failed.
set -u
HERE=$(dirname "$(realpath -- "$0")")
direct=''
[ "${1-}" = --direct ] && { direct=1; shift; }
case_name=${1:?inside.sh wants a case}

if [ -n "$direct" ]; then
    ROOM=${HOPD_E2E_ROOM:?} DOCS=${HOPD_E2E_STAGE:?}/usr/share/doc/hopd
    PATH=$HOPD_E2E_STAGE/usr/bin:$PATH
    export STATE_DIRECTORY=$ROOM/state
    mkdir -p "$ROOM/state"
elif grep -q '^# needs: deb$' "$HERE/cases/$case_name.sh"; then
    # Such a case installs the package by itself.
    ROOM=/srv/hopd-test DOCS=/usr/share/doc/hopd package=1
else
    ROOM=/srv/hopd-test DOCS=/usr/share/doc/hopd
    PATH=/usr/bin:/usr/sbin:/bin:/sbin:$PATH
    # --no-overwrite-dir: the folders that exist keep their owner and mode.
    tar -C /opt/hopd-stage -c . | tar -C / -x --no-overwrite-dir --no-same-owner || exit 1
    systemd-sysusers 2>"$ROOM/sysusers" || { cat "$ROOM/sysusers"; exit 1; }
    systemd-tmpfiles --create hopd.conf && journalctl --quiet --update-catalog &&
        systemctl daemon-reload || exit 1
fi
# In the sandbox the tools, and the stores of others where this machine has them, are bound here.
: "${TOOLS:=/opt/hopd-tools}" "${FIXTURES:=/opt/hopd-fixtures}" "${FIELD:=/opt/hopd-field}"
STORES=$ROOM/stores MODELS=$ROOM/models MODEL=$ROOM/models/Library.xcdatamodeld
mkdir -p -m 755 "$STORES" "$MODELS" "$ROOM/making"
[ -n "${package-}" ] || cp -R "$DOCS/Examples/Library/Library.xcdatamodeld" "$MODELS/"
[ -n "$direct" ] || [ -n "${package-}" ] || chown hopd:hopd "$STORES"

# shellcheck source=lib.sh
. "$HERE/lib.sh"
[ -n "${package-}" ] || message_id storeMigrated >/dev/null || exit 1
[ -n "$direct" ] || [ -n "${package-}" ] || unit_setting ReadWritePaths="$STORES" RestartSec=100ms
set -e
trap 'explain_failure $?' EXIT
trap 'echo "FAIL: exit status $? at ${BASH_SOURCE[0]##*/}:$LINENO: $BASH_COMMAND"' ERR
# shellcheck disable=SC1090
. "$HERE/cases/$case_name.sh"
