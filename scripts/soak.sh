#!/bin/sh
# soak.sh: first the tests of `make test` with all the rounds that are too many for it (NEAP_SOAK), in each build. Then
# random programs (tests/run/test_random.c) by the million, under the address and undefined-behaviour sanitizers. Those of
# `make test` are the first of them; each is known by its number, its seed.
#
#   NEAP_SOAK_N      how many, 1000000 unless told
#   NEAP_SOAK_FROM   so many were done before: a soak that was interrupted goes on where it says it was
#   NEAP_SOAK_JOBS   processes, one for each core unless told
set -eu
cd "$(dirname "$0")/.."
n=${NEAP_SOAK_N:-1000000}
past=${NEAP_SOAK_FROM:-0}
jobs=${NEAP_SOAK_JOBS:-$(nproc 2>/dev/null || echo 2)}
batch=5000

if [ "$past" -eq 0 ]; then
    NEAP_SOAK=1 scripts/test.sh release asan tsan
fi

scripts/build.sh asan test_run_random
program=$(scripts/build.sh asan --path)/tests/run/test_random
log=$(mktemp)
trap 'rm -f "$log"' EXIT
begin=$(date +%s)
first=$past
while [ "$past" -lt "$n" ]; do
    [ $((n - past)) -lt $batch ] && batch=$((n - past))
    if ! NEAP_RANDOM_SEED=$((past + 1)) NEAP_RANDOM_N=$batch NEAP_RANDOM_JOBS=$jobs "$program" >"$log" 2>&1; then
        cat "$log"
        echo "soak: failed between programs $past and $((past + batch)); NEAP_SOAK_FROM=$past begins there again" >&2
        exit 1
    fi
    past=$((past + batch))
    seconds=$(($(date +%s) - begin))
    left=$((seconds * (n - past) / (past - first)))
    echo "$past of $n programs, $seconds s, $left s to go: $(grep ' programs, ' "$log")"
done
