#!/usr/bin/env bash
# tests_expected.sh PRESET FOLDER RESULTS, in the tree: every test that the tree has a file for must have run. A line of results (as of
# test_results.awk) for each that did not: failed, or skipped where the build says why it has none (FOLDER/tests/left_out,
# which CMake writes: test, a tab, and a reason; without a reason the test is not meant for this preset). Leaves with 1 if
# one failed, or if the stage ran nothing. The list comes from the files alone: a build that has lost its tests cannot
# vouch for itself.
set -u
preset=$1 folder=$2 results=$3

if [ "$preset" = fuzz ]; then
    files=(tests/fuzz/fuzz_*.c)
else
    files=(tests/*/test_*.c tests/*/test_*.sh)
    [ "$preset" = tsan ] || files+=(examples/*.c)
fi
left_out=$folder/tests/left_out
[ -f "$left_out" ] || left_out=/dev/null

printf '%s\n' "${files[@]}" | sed -n 's,^tests/\([^*/]*\)/\(test\|fuzz\)_\([^*/]*\)\.[a-z]*$,\1/\3,p; s,^\(examples/[^*/]*\)\.c$,\1,p' | sort -u |
    awk -F '\t' -v OFS='\t' -v stage="$preset" -v left_out="$left_out" -v results="$results" '
        function line(program, outcome, why) { print stage, program, "", outcome, why }
        BEGIN {
            while ((getline < left_out) > 0) {
                is_out[$1] = 1
                reason[$1] = $2
            }
            while ((getline < results) > 0) {
                if ($1 == stage) {
                    ran[$2] = 1
                    n_run++
                }
            }
            if (!n_run) {
                line("(all)", "failed", "the stage ran no test")
                n_failed++
            }
        }
        $1 in ran { next }
        !($1 in is_out) { line($1, "failed", "the tree has a file for it, and it never ran"); n_failed++; next }
        reason[$1] != "" { line($1, "skipped", reason[$1]) }
        END { exit n_failed > 0 }
    '
