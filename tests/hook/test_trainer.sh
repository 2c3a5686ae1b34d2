# The program that test_hook.sh puts the hook in front of, alone: it must print the same whatever the driver's threads do,
# or the comparison says nothing.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
export STANDIN_GRANULARITY=16384
export LD_LIBRARY_PATH=$NEAP_STANDIN_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} # a sanitizer's dlopen knows no RPATH
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 # the program ends with the driver in use, as programs do
export TSAN_OPTIONS=${TSAN_OPTIONS:-}:die_after_fork=0

seeds='1 2'
case ${NEAP_SANITIZE:-} in *thread*) seeds=1 ;; esac # races are found in one run; two were compared without

same() { # same OPTION...
    for seed in $seeds; do
        STANDIN_SEED=$seed STANDIN_DELAY_US=$((seed * 100 - 100)) timeout 120 "$NEAP_HOOK_TRAINER" \
            --scale=4 --iterations=5 "$@" >"$work/$seed" 2>"$work/err" || { echo "failed: $*"; cat "$work/err"; bad=1; }
        sort "$work/$seed" -o "$work/$seed"
    done
    [ "$seeds" = 1 ] || cmp -s "$work/1" "$work/2" || { echo "differs: $*"; bad=1; }
}

same --evaluate=2 --alternate --clip --checkpoint=2
same --side --stale --table --grouped --copies --buffer --reload=2
same --graph --regraph=2
same --graph=2 --unknown=2 --future=3 --info
same --fork=2 --spawn=3 --ipc --oom=2 --extra=4 --trim=2
same --plain --programmatic --threads
same --cooperative --teardown=2 --profiler=3 --profiled --nic --table=2
[ $bad -eq 0 ] && echo "the same each time"
exit $bad
