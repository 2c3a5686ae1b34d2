# scripts/test_results.awk and test_summary.sh on a log of every kind of outcome: none may be counted as another.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

program() { # program NAME STATUS LINE...: as CTest writes it
    printf '1/9 Testing: %s\n1/9 Test: %s\nCommand: "x"\nOutput:\n-----\n' "$1" "$1"
    [ $# -eq 2 ] || printf '%s\n' "${@:3}"
    printf '<end of output>\nTest time =   0.01 sec\n-----\nTest %s.\n"%s" end time: now\n\n' "$2" "$1"
}
{
    program pool/good Passed '[ RUN      ] a' '[       OK ] a' '[ RUN      ] b' '[       OK ] b'
    program pool/skips Passed '[ RUN      ] a' '[  REASON  ] shared/x is not there' '[  SKIPPED ] a' \
        '[ RUN      ] b' '[  SKIPPED ] b' '[  SKIPPED ] 2 test(s), listed below:' '[  SKIPPED ] a'
    program pool/fails Failed '[ RUN      ] a' '1 == 2' '[  FAILED  ] a' '[ RUN      ] b' '[       OK ] b' \
        '[  FAILED  ] 1 test(s), listed below:' '[  FAILED  ] a'
    program pool/crashes Failed '[ RUN      ] a' 'Segmentation fault'
    program pool/leaks Failed '[ RUN      ] a' '[       OK ] a' 'ERROR: LeakSanitizer: detected memory leaks'
    program cli/script Passed
    program cli/needs Skipped 'there is no compiler'
    program fuzz/slow Timeout
    program hook/late Passed 'two of them' '[  RETRIED ] a plan: try 1 of 5' '[  RETRIED ] a plan: try 2 of 5'
    program pool/unbuilt Passed | sed 's/^Command: .*/Command: ""/'
} >"$work/log"

awk -v stage=s -v failures="$work/failures" -f "$NEAP_SOURCE_DIR/scripts/test_results.awk" "$work/log" >"$work/results"
cut -f 2,3,4,5 "$work/results" | tr '\t' '|' >"$work/got"
cat >"$work/expected" <<'END'
pool/good|a|passed|
pool/good|b|passed|
pool/skips|a|skipped|shared/x is not there
pool/skips|b|skipped|
pool/fails|a|failed|
pool/fails|b|passed|
pool/crashes|a|failed|
pool/leaks|a|passed|
pool/leaks||failed|
cli/script||passed|
cli/needs||skipped|there is no compiler
fuzz/slow||failed|
hook/late||retried|a plan: try 1 of 5
hook/late||retried|a plan: try 2 of 5
hook/late||passed|
pool/unbuilt||failed|
END
diff "$work/expected" "$work/got" || bad=1
grep -q 'Segmentation fault' "$work/failures" || { echo "the output of a failed program is lost"; bad=1; }
grep -q 'not there' "$work/failures" && { echo "the output of a program that passed is shown"; bad=1; }

summary() { "$NEAP_SOURCE_DIR/scripts/test_summary.sh" "$1" >"$work/summary"; }
summary "$work/results" && { echo "a failure was called green"; bad=1; }
grep -q '  RETRIED, 2 times: s: hook/late, a plan$' "$work/summary" || { echo "a retry is hidden"; bad=1; }
grep -q ' 14 tests: 6 passed, 5 failed, 3 skipped' "$work/summary" || { cat "$work/summary"; bad=1; }
grep -q 'SKIPPED, no reason was given' "$work/summary" || { echo "a skip without a reason is hidden"; bad=1; }
grep -v failed "$work/results" >"$work/green"
summary "$work/green" || { echo "a green run was called red"; bad=1; }
: >"$work/empty"
summary "$work/empty" && { echo "a run without tests was called green"; bad=1; }
exit $bad
