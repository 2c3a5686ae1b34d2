#!/bin/sh
# fuzz.sh PROGRAM SEEDS WORK: one bounded run of a libFuzzer program. It starts from the inputs in SEEDS (where there
# are any) and from those that earlier runs kept in WORK; an input that breaks it is left in WORK-found.
# NEAP_FUZZ_SECONDS says how long. Where it does not, 6 seconds of always the same inputs, as far as they get: what was
# green stays green, and new ones are for `make fuzz`.
set -eu
program=$1 seeds=$2 work=$3

mkdir -p "$work" "$work-found"
[ -d "$seeds" ] || seeds=
if [ -n "${NEAP_FUZZ_SECONDS:-}" ]; then
    seconds=$NEAP_FUZZ_SECONDS seed=0 # a new one each time
else
    seconds=6 seed=1
fi
# A timeout is an input that is stuck, not a machine that is busy.
exec "$program" -max_total_time="$seconds" -seed=$seed -rss_limit_mb=1024 -malloc_limit_mb=512 -timeout=60 \
    -max_len=65536 -verbosity=1 -artifact_prefix="$work-found/" "$work" ${seeds:+"$seeds"}
