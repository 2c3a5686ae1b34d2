#!/bin/sh
# test_summary.sh RESULTS: what the lines of test_results.awk add up to. Every skipped test is counted and said why, and
# so is every further try of one that depends on time.
# Leaves with 1 if a test failed, or none ran.
set -u
awk -F '\t' '
    !($1 in n_run) { stages[++n_stages] = $1 }
    $4 == "retried" {
        key = $1 ": " $2 ($5 == "" ? "" : ", " $5)
        sub(/: try [0-9]+ of [0-9]+$/, "", key)
        if (!retried[key]++) {
            retries[++n_retries] = key
        }
        next
    }
    { n_run[$1]++; n[$1, $4]++; total[$4]++ }
    $4 == "skipped" {
        why = $5 == "" ? "no reason was given" : $5
        where = $2 ($3 == "" ? "" : ": " $3)
        if (!seen[why, where]++) {
            if (!(why in list)) {
                whys[++n_whys] = why
            }
            list[why] = list[why] "\n      " where
        }
    }
    $4 == "failed" { failed = failed sprintf("  FAILED %s: %s%s\n", $1, $2, $3 == "" ? "" : ": " $3) }
    END {
        for (i = 1; i <= n_stages; i++) {
            s = stages[i]
            printf "  %-8s %5d tests: %d passed, %d failed, %d skipped\n", s, n_run[s], n[s, "passed"], n[s, "failed"],
                n[s, "skipped"]
        }
        for (i = 1; i <= n_whys; i++) {
            printf "  SKIPPED, %s:%s\n", whys[i], list[whys[i]]
        }
        for (i = 1; i <= n_retries; i++) {
            printf "  RETRIED, %d time%s: %s\n", retried[retries[i]], retried[retries[i]] == 1 ? "" : "s", retries[i]
        }
        printf "%s", failed
        exit total["failed"] > 0 || NR == 0
    }
' "$1"
