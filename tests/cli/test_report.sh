#!/bin/bash
# `neap report` without a browser: what it writes, what it says, and that a failure leaves nothing behind.
set -u
cd "$NEAP_SOURCE_DIR/tests/cli/data" || exit 2
export LC_ALL=C TERM=dumb
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
bad=0

fail() {
    bad=$((bad + 1))
    echo "FAILED: $*"
    sed 's/^/    /' "$work/stdout" "$work/stderr"
}

# expect CODE ARGUMENT...: runs `neap report` and compares its exit code.
expect() {
    local wanted=$1
    shift
    "$NEAP_COMMAND" report "$@" > "$work/stdout" 2> "$work/stderr" < /dev/null
    local code=$?
    [ $code = "$wanted" ] || fail "neap report $*: exit code $code, not $wanted"
}
says() { grep -qF -- "$2" "$work/$1" || fail "$1 has no '$2'"; }
silent() { [ ! -s "$work/$1" ] || fail "$1 is not empty"; }
nothing_but() { # nothing_but FILE...: in $work/out
    [ "$(ls -A "$work/out")" = "$(printf '%s\n' "$@")" ] || fail "left behind: $(ls -A "$work/out")"
}
mkdir "$work/out"
page=$work/out/page.html

# ---- a page
expect 0 swap.neap -o "$page" --limits 2 --seconds 0.2
says stdout "footprint"
says stdout "page: $page"
silent stderr
nothing_but page.html
[ "$(tail -n 1 "$page")" = "</html>" ] || fail "the page is not whole"
grep -q "default-src 'none'" "$page" || fail "the page may fetch things"
! grep -qE 'src=|href=|@import|url\(|@(STYLE|SCRIPT|DATA)@' "$page" || fail "the page refers to something outside of it"

expect 0 swap.neap -o "$page" --limits 2 --seconds 0.2 --json
says stdout '"percent": null'
says stdout '"footprint": '
silent stderr

expect 0 swap.neap -o "$page" --limits 0 --seconds 0.2 --json
[ "$(grep -c '"percent"' "$work/stdout")" = 1 ] || fail "--limits 0 has more than the one that costs no time"

# ---- a limit costs no more than a lower one
expect 0 ../../data/traces/vgg16-100-32.neap.gz -o "$page" --limits 40 --seconds 0.05 --json
sed -n 's/^ *"overhead": \([0-9.e-]*\),$/\1/p' "$work/stdout" | tail -n +2 > "$work/overheads"
[ "$(wc -l < "$work/overheads")" -ge 6 ] || fail "plans for some limits are missing"
sort -c -g "$work/overheads" 2> /dev/null || fail "a limit costs more than a lower one: $(tr '\n' ' ' < "$work/overheads")"

# ---- two of them, a file twice, a CSV, standard input
expect 0 swap.neap tiny.neap -o "$page" --limits 1 --seconds 0.2 --json
[ "$(grep -c '"file": ' "$work/stdout")" = 2 ] || fail "two files are not two"
expect 0 swap.neap swap.neap -o "$page" --limits 1 --seconds 0.2 --json
[ "$(grep -c '"file": ' "$work/stdout")" = 1 ] || fail "a file that is given twice is planned twice"

# ---- each trace's own link, on which nothing can be swapped in time; another that is given
{ cat swap.neap; echo meta link=0.001/0.002GB/s link_latency_us=3; } > "$work/slow.neap"
expect 0 swap.neap "$work/slow.neap" -o "$page" --limits 0 --seconds 0.2 --json
[ "$(grep -E '"(out_gbs|latency_us)"' "$work/stdout" | tr -dc '0-9.\n' | tr '\n' ' ')" = "55 2 0.001 3 " ] || fail "links"
grep -E '"swaps": ' "$work/stdout" | tail -n 1 | grep -q ' 0,$' || fail "the trace's link is not planned for"
[ "$(grep -cE '"name": "(h200-pcie5|0.001/0.002GB/s)"' "$page")" = 2 ] || fail "the page does not name both links"
expect 0 "$work/slow.neap" -o "$page" --limits 0 --seconds 0.2 --link a100-pcie4 --json
says stdout '"name": "a100-pcie4"'
! grep -q '"swaps": 0,' "$work/stdout" || fail "the link that was given is not planned for"

expect 0 tiny.csv -o "$page"
"$NEAP_COMMAND" report - -o "$page" --limits 0 --seconds 0.2 < swap.neap > "$work/stdout" 2> "$work/stderr" ||
    fail "not from standard input"

# ---- names that HTML would read
cat > "$work/odd.neap" <<'END'
neap-trace 1
live 1 4096
END
for i in 10 20 30 40; do
    cat >> "$work/odd.neap" <<END
malloc $i 8192
exec "a'b<c>&amp;</script><script>window.hit=1</script> $i 5 r1 w$i
exec <!--<script> $i 5 r$i
free $i
END
done
expect 0 "$work/odd.neap" -o "$page" --limits 0 --seconds 0.1
[ "$(grep -c '</script>' "$page")" = 2 ] || fail "a kernel's name ends the data"
! grep -q '<!--<script' "$page" || fail "a kernel's name opens a comment"
grep -q '"a.b\\u003cc>&amp;\\u003c/script>' "$page" || fail "a kernel's name is lost"

# ---- the answer is no: nothing is written, and what was there stays
echo old > "$page"
expect 1 never.neap -o "$page"
says stderr "the trace never repeats"
silent stdout
expect 1 never.neap -o "$page" --json
says stdout '"status": "NEAP_NO_PERIOD"'
expect 1 swap.neap never.neap -o "$page"
says stderr "never.neap"

# ---- what cannot be
expect 2 bad.neap -o "$page"
says stderr "bad.neap:"
expect 2 no-such-file.neap -o "$page"
expect 2 swap.neap
says stderr "-o page.html"
expect 2 -o "$page"
says stderr "no FILE was given"
expect 2 swap.neap tiny.neap tiny.csv -o "$page"
says stderr "'tiny.csv' is too many"
expect 2 swap.neap -o "$page" --limits 100
expect 2 swap.neap -o "$page" --link nowhere
says stderr "neap report: --link"
expect 2 swap.neap -o "$page" --slower 0
[ "$(cat "$page")" = old ] || fail "a failure touched the page"
nothing_but page.html
expect 2 tiny.csv -o "$work/out"
says stderr "cannot write"
expect 2 tiny.csv -o "$work/no-such-folder/page.html"
says stderr "cannot write"
if [ -c /dev/full ]; then
    expect 2 tiny.csv -o /dev/full
    says stderr "cannot write"
fi
nothing_but page.html

[ $bad = 0 ] && echo "neap report: all as it should be"
exit $((bad > 0))
