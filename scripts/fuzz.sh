#!/bin/sh
# fuzz.sh PROGRAM SEEDS WORK: one bounded run of a libFuzzer program. It starts from the inputs in SEEDS (where there
# are any) and from those that earlier runs kept in WORK; an input that breaks it is left in WORK-found.
# NEAP_FUZZ_SECONDS says how long, 20 unless told.
set -eu
program=$1 seeds=$2 work=$3

mkdir -p "$work" "$work-found"
[ -d "$seeds" ] || seeds=
exec "$program" -max_total_time="${NEAP_FUZZ_SECONDS:-20}" -rss_limit_mb=1024 -malloc_limit_mb=512 -timeout=10 \
    -max_len=65536 -verbosity=1 -artifact_prefix="$work-found/" "$work" ${seeds:+"$seeds"}
