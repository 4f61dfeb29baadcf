# about: policies in Python inside the hardened unit: authors made, lines in the journal, untitled books in quarantine; a policy that fails, hangs, dies, floods or babbles costs its store's migration and nothing else
# first: six migrations by Python programs
# needs: systemd
cp -R "$DOCS/Examples/Books" "$MODELS/Books"
rm -r "$MODEL"
MODEL=$MODELS/Books NEW='Books 2'
mkdir -p /usr/lib/hopd/policies
# The example's own program, and behind it what a store's first title asks for.
{
    sed '/^run(/d' "$MODEL/book_to_book.py"
    cat <<'P'

import os, signal, subprocess, sys, time

class TestedPolicy(BookToBookPolicy):
    count = 0

    def begin(self, mapping, manager):
        print("begins with", mapping.name)

    def create_destination_instances(self, source, mapping, manager):
        self.count += 1
        wish = source["title"]
        if wish == "please fail":
            raise ValueError("no such shelf")
        if wish == "please hang":
            subprocess.Popen(["sleep", "1000"])
            time.sleep(1000)
        if wish == "please die":
            sys.stderr.write("last words\n")
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGSEGV)
        if wish == "please flood":
            while True:
                os.write(2, b"x" * 65536)
        if wish == "please babble":
            os.write(self.wire, b"hello, world; this is no message")
            time.sleep(1000)
        if wish == "please eat":
            self.eaten = [bytearray(1 << 20) for _ in range(4096)]
        super().create_destination_instances(source, mapping, manager)

    def end(self, mapping, manager):
        manager.log(f"{self.count} books seen")

TestedPolicy.wire = os.dup(1)
TestedPolicy.__name__ = "BookToBookPolicy"
run(TestedPolicy)
P
} >/usr/lib/hopd/policies/book-to-book
chmod 755 /usr/lib/hopd/policies/book-to-book
LOG_LEVEL=trace configure
mkdir -p /etc/hopd/hopd.toml.d
cat >/etc/hopd/hopd.toml.d/policies.toml <<'C'
[[watch]]
name = "test"

[watch.migration]
invalid_rows = { Author = "fail", "*" = "quarantine" }

[policies]
BookToBookPolicy = { command = ["/usr/lib/hopd/policies/book-to-book"], timeout = "3s", memory = "256MiB" }
C
hopctl check-config || fail 'check-config'
start

# books NAME ROWS WISH
books() {
    local room=$ROOM/making/$1
    mkdir "$room"
    hopctl create "$room/$1.sqlite" --models "$MODEL" --model-version Books --rows "$2" --seed 7 >/dev/null
    sqlite3 -batch "$room/$1.sqlite" "UPDATE ZBOOK
        SET ZTITLE = 'Marjoram ' || Z_PK, ZAUTHORNAME = CASE WHEN Z_PK % 10 THEN 'Tarragon ' || (Z_PK % 7) END;
        UPDATE ZBOOK SET ZTITLE = NULL WHERE Z_PK IN (3, 30, 33); ${3:+UPDATE ZBOOK SET ZTITLE = '$3' WHERE Z_PK = 40;}"
    move_in "$room" "$STORES"
}
books good 500
S=$STORES/good.sqlite
wait_migrated "$S"
plain_check "$S"
same 'books and authors' '497|7|448' "$(sqlite3 -batch -separator '|' "$S" \
    'SELECT (SELECT count(*) FROM ZBOOK), (SELECT count(*) FROM ZAUTHOR), (SELECT count(ZAUTHOR) FROM ZBOOK)')"
same 'primary keys' '1 2 4' "$(sqlite3 -batch "$S" 'SELECT Z_PK FROM ZBOOK ORDER BY 1 LIMIT 3' | paste -sd ' ')"
# The policy's lines: what it prints and what it logs, under its name
L=MESSAGE_ID=$(message_id policyOutput)
matches 'what the policy printed' 'begins with BookToBook' "$(values MESSAGE "$L" HOPD_STORE="$S" \
    HOPD_POLICY=BookToBookPolicy HOPD_MAPPING=BookToBook)"
matches 'what the policy logged' '500 books seen' "$(values MESSAGE "$L" HOPD_STORE="$S" HOPD_POLICY=BookToBookPolicy \
    HOPD_MAPPING=BookToBook)"
# The quarantine: told with rule, entity and number, and a file that SQLite reads
I=MESSAGE_ID=$(message_id invalidRows)
same 'quarantine told' 'Book 3 quarantine 4' "$(for f in HOPD_ENTITY HOPD_COUNT HOPD_RESULT PRIORITY; do \
    values $f "$I" HOPD_STORE="$S"; done | paste -sd ' ')"
side=$(echo "$S".quarantine-*)
[ -f "$side" ] || fail "no file of the quarantine: $(ls -A "$STORES")"
matches 'the entry of the migration' "${side##*/}" \
    "$(values MESSAGE MESSAGE_ID="$(message_id storeMigrated)" HOPD_STORE="$S")"
same 'owner and mode of the quarantine' "$(stat -c '%U %a' "$S")" "$(stat -c '%U %a' "$side")"
same 'rows in quarantine' '3 30 33' "$(sqlite3 -batch "$side" 'SELECT Z_PK FROM "hop 1 ZBOOK" ORDER BY 1' \
    | paste -sd ' ')"
same 'why' 'Book|title|1570' \
    "$(sqlite3 -batch "$side" 'SELECT DISTINCT entity, property, code FROM "hop 1 VIOLATIONS"')"
matches 'the decision of the hop' 'by the policy BookToBookPolicy' "$(values MESSAGE HOPD_STORE="$S" PRIORITY=7)"
if journalctl -q -o cat SYSLOG_IDENTIFIER=hopd | grep -qE 'Marjoram|Tarragon'; then fail 'the journal has a value'; fi

# One policy after the other misbehaves; every store stays as it was, and the next one gets done.
sums=()
sum() { sha256sum <"$1" | cut -d' ' -f1; }
for wish in fail hang die flood babble eat; do
    books "$wish" 60 "please $wish"
    sums+=("$wish $(sum "$STORES/$wish.sqlite")")
done
F=MESSAGE_ID=$(message_id migrationFailed)
for wish in fail hang die flood babble eat; do
    wait_for 60 "the migration of $wish.sqlite has failed" said migrationFailed "$STORES/$wish.sqlite"
    note "$wish: $(values HOPD_ERROR "$F" HOPD_STORE="$STORES/$wish.sqlite" | sort -u | paste -sd ' ')"
    text=$(values MESSAGE "$F" HOPD_STORE="$STORES/$wish.sqlite" | head -n 40)
    matches "$wish: the error names the policy" 'BookToBookPolicy' "$text"
    same "$wish: told once" 1 "$(count "$F" HOPD_STORE="$STORES/$wish.sqlite")"
    matches "$wish: hint" . "$(values HOPD_HINT "$F" HOPD_STORE="$STORES/$wish.sqlite")"
done
same 'codes' 'policy-failed policy-limit policy-failed' "$(for w in fail hang die; do \
    values HOPD_ERROR "$F" HOPD_STORE="$STORES/$w.sqlite"; done | paste -sd ' ')"
matches 'what the policy threw' 'no such shelf' "$(values MESSAGE HOPD_STORE="$STORES/fail.sqlite")"
matches 'what the policy wrote last' 'last words' "$(values MESSAGE "$L" HOPD_STORE="$STORES/die.sqlite")"
for line in "${sums[@]}"; do
    same "${line% *}.sqlite is as it was" "${line#* }" "$(sum "$STORES/${line% *}.sqlite")"
done
same 'staged files left' '' "$(find "$STORES" -name '.*.hop-*')"
[ "$(find "$STORES" -name '*quarantine-*' | wc -l)" = 1 ] || fail "a quarantine without its store: $(ls -A "$STORES")"
if pgrep -u hopd -f 'book-to-book|sleep 1000'; then fail 'a program of a policy is still there'; fi
same 'restarts' 0 "$(show NRestarts)"
books late 200
wait_migrated "$STORES/late.sqlite"
# A class without a program is a reason to refuse, and its program a reason to try again.
sed -i '/^BookToBookPolicy/d' /etc/hopd/hopd.toml.d/policies.toml
systemctl reload hopd
books unbound 20
wait_for 30 'refused for want of a program' refused_with "$STORES/unbound.sqlite" policy-not-bound
printf 'BookToBookPolicy = { command = ["/usr/lib/hopd/policies/book-to-book"] }\n' \
    >>/etc/hopd/hopd.toml.d/policies.toml
systemctl reload hopd
wait_migrated "$STORES/unbound.sqlite"
