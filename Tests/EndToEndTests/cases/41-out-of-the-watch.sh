# about: a depositor exchanges folders for links while stores wait: no other tenant's store, backup or folder is touched
# needs: systemd
export RECURSIVE=true RESCAN=1s
ROOT=$ROOM/tenants
mkdir -p "$ROOT/bob" "$ROOT/alice/in/sub" && chmod 755 "$ROOT" && chmod 700 "$ROOT/bob"
make_store "$ROOT/bob/bob.sqlite" "$OLD" 300 7
make_store "$ROOT/alice/alice.sqlite" "$OLD" 300 8
cp -a "$ROOT/bob/bob.sqlite" "$ROOT/old"
# A backup of bob's, whose rows exist nowhere else.
hopctl migrate "$ROOT/bob/bob.sqlite" --models "$MODEL" -q --state-directory "$ROOM/bob-state" ||
    fail 'the backup of bob'
generation=$(find "$ROOT/bob" -path '*hopd-backups/*/bob.sqlite' -printf '%h\n')
[ -n "$generation" ] || fail 'bob has no backup'
cp -a "$ROOT/old" "$ROOT/bob/bob.sqlite"
chown -R hopd:hopd "$ROOT"
witness() { (cd "$ROOT/bob" && find . -printf '%P %m %U %s\n' | sort && find . -type f -exec sha256sum {} + | sort); }
before=$(witness)
untouched() {
    [ "$(witness)" = "$before" ] || fail "$1: bob's folder has changed: $(diff <(echo "$before") <(witness))"
}

configure_watch() { # DIRECTORY: alice's rules, under which no backup is kept
    cat >/etc/hopd/hopd.toml <<END
[daemon]
jobs = 2
[[watch]]
name = "alice"
directory = "$1"
models = ["$MODELS"]
settle = "1ms"
rescan = "1s"
recursive = true
[watch.migration]
retry = { attempts = 1000, backoff = "1s", max = "1s" }
[watch.backup]
keep = 0
END
}
unit_setting "ReadWritePaths=$ROOT"
mkdir -p /etc/hopd
configure_watch "$ROOT/alice/in"
start

# The queue is held; the folder of a store that waits is exchanged for a link to bob's, then to his backup.
for target in "$ROOT/bob" "$generation"; do
    hopctl pause >/dev/null || fail pause
    cp -a "$ROOT/alice/alice.sqlite" "$ROOT/alice/in/sub/bob.sqlite"
    waits() { [ "$(hopctl status "$ROOT/alice/in/sub/bob.sqlite" --json | json store.state)" = paused ]; }
    wait_for 30 'the store waits' waits
    mv "$ROOT/alice/in/sub" "$ROOT/alice/in/.sub" && ln -s "$target" "$ROOT/alice/in/sub"
    hopctl resume >/dev/null || fail resume
    sleep 3
    untouched "a held queue, with a link to $target"
    rm "$ROOT/alice/in/sub" && mv "$ROOT/alice/in/.sub" "$ROOT/alice/in/sub"
    wait_migrated "$ROOT/alice/in/sub/bob.sqlite"
    rm -rf "$ROOT"/alice/in/sub/bob.sqlite "$ROOT"/alice/in/sub/.bob*
    sleep 2
done

# In a loop, without any pause.
cd "$ROOT/alice/in/sub"     # stays in the folder, whatever its name is
ln -s "$ROOT/bob" "$ROOT/alice/in/link"
"$PY" - "$ROOT/alice/in/sub" "$ROOT/alice/in/link" <<'END' &
import ctypes, random, sys, time
libc, end = ctypes.CDLL(None), time.monotonic() + 12
def exchange():
    libc.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2)
while time.monotonic() < end:
    exchange(); time.sleep(random.random() / 5000)
    exchange(); time.sleep(random.random() / 500)
END
loop=$!
for i in 1 2 3 4 5 6 7; do
    cp -a "$ROOT/alice/alice.sqlite" .n && mv .n bob.sqlite
    sleep 1.5
done
wait "$loop"
[ -L "$ROOT/alice/in/sub" ] && { rm "$ROOT/alice/in/sub"; mv "$ROOT/alice/in/link" "$ROOT/alice/in/sub"; }
rm -f "$ROOT/alice/in/link"
cd /
untouched 'a loop of exchanges'

# The watched directory itself, whose parent belongs to alice: it is not served before a reload.
matches 'the warning' "can write to $ROOT/alice" "$(chown 20001 "$ROOT/alice"; hopctl check-config 2>&1)"
mv "$ROOT/alice/in" "$ROOT/alice/real" && ln -s "$ROOT/bob" "$ROOT/alice/in"
moved() { values MESSAGE MESSAGE_ID="$(message_id watchDegraded)" | grep -q "now resolves to $ROOT/bob"; }
wait_for 30 "the watch is not served" moved
sleep 2
untouched 'the root as a link'
rm "$ROOT/alice/in" && mv "$ROOT/alice/real" "$ROOT/alice/in"
restored() { said watchRestored '' HOPD_WATCH=alice; }
wait_for 30 'the watch is served again' restored
cp -a "$ROOT/alice/alice.sqlite" "$ROOT/alice/in/last.sqlite"
wait_migrated "$ROOT/alice/in/last.sqlite"

# hopctl fleet run, by root, over the tenant's folder.
for i in 1 2 3 4 5 6; do
    cp "$ROOT/old" "$ROOT/alice/in/sub/bob.sqlite"
    for k in 1 2 3 4; do cp "$ROOT/old" "$ROOT/alice/in/a$k.sqlite"; done
    ln -s "$ROOT/bob" "$ROOT/alice/in/link"
    "$PY" - "$ROOT/alice/in/sub" "$ROOT/alice/in/link" <<'END' &
import ctypes, sys, time
libc, end = ctypes.CDLL(None), time.monotonic() + 3
while time.monotonic() < end:
    libc.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2); time.sleep(0.0003)
END
    loop=$!
    systemctl stop hopd
    hopctl fleet run "$ROOT/alice/in" --models "$MODEL" -q --backup none --state-directory "$ROOM/work-state" \
        >/dev/null 2>&1 || true
    kill "$loop"; wait "$loop" 2>/dev/null || true
    [ -L "$ROOT/alice/in/sub" ] && { rm "$ROOT/alice/in/sub"; mv "$ROOT/alice/in/link" "$ROOT/alice/in/sub"; }
    rm -rf "$ROOT/alice/in/link" "$ROOT"/alice/in/sub/bob.sqlite "$ROOT"/alice/in/sub/.bob* "$ROOT"/alice/in/a?.sqlite
    untouched "hopctl fleet run, round $i"
done
