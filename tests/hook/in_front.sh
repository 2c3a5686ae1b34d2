# The hook in front of the trainer, compared with the trainer alone: what the tests of it have in common.
. "$(dirname "$0")/standin.sh"
jobs=${NEAP_HOOK_JOBS:-3} # they pause more than they work

# A sanitizer's runtime must be loaded before all else. Clang's is in the program itself.
preload=$NEAP_HOOK_LIBRARY
if [ -n "$runtime" ]; then
    found=$("$NEAP_C_COMPILER" -print-file-name=$runtime)
    [ -f "$found" ] && preload="$(readlink -f "$found") $preload"
fi
# Blocks from an eighth of a page on as on a GPU, no margin: everything that may leave leaves at once, and plans come
# quickly. How fast the link is, is measured with copies that the device has room for. One program has a large one, below.
export NEAP_MIN_BLOCK=2048 NEAP_MARGIN=0 NEAP_PLAN_SECONDS=0.1
on=(NEAP_HOOK=run)
# After each iteration the trainer waits until the planner has no work (--await): when a plan is there is told by iterations,
# whatever else the machine does. What is measured in time has that beside it: ms after each iteration.
pause=20
program=$NEAP_HOOK_TRAINER

# ---- one comparison: in a process and a folder of its own ----

alone() { # alone SEED OPTION...
    timeout 200 env STANDIN_SEED="$1" "$program" --scale=4 "${@:2}" >expected 2>expected.err ||
        { echo "the program alone failed: trainer --scale=4 ${*:2}"; cat expected.err; touch wrong; return 1; }
    sort -o expected expected # two threads print in any order
}

hooked() { # hooked SEED LIMIT OPTION...
    timeout 400 env ${2:+NEAP_LIMIT="$2"} STANDIN_SEED="$1" LD_PRELOAD="$preload" \
        CUDA_INJECTION64_PATH="$NEAP_HOOK_LIBRARY" "${on[@]}" \
        "$program" --scale=4 --pause=$pause --await "${@:3}" >got 2>got.err
    local status=$?
    sort -o got got
    grep -q ': plan  *[1-9]' got.err && echo >>planned
    grep -q ': swapped  *[1-9]' got.err && echo >>swapped
    echo >>runs
    if [ $status -ne 0 ] || ! cmp -s expected got; then
        echo "wrong, status $status: STANDIN_SEED=$1 ${STANDIN_DELAY_US:+STANDIN_DELAY_US=$STANDIN_DELAY_US }NEAP_LIMIT=$2" \
            "trainer --scale=4 --pause=$pause ${*:3}"
        diff expected got | head -4
        grep -A 20 'Sanitizer' got.err || tail -12 got.err
        touch wrong
    fi
}

# The rule for what depends on time even so (a measurement that a busy machine disturbs, threads that race): it is tried
# again, up to TRIES times in all, its bytes compared each time. Every further try is counted and named in the summary of
# `make test`; tries NAME COMMAND...: until the command, which looks at what came of it, leaves with 0.
TRIES=5
tries() {
    local name=$1 n
    shift
    for ((n = 1; ; n++)); do
        "$@" && return
        [ $n -lt $TRIES ] || return 1
        echo "[  RETRIED ] $name: try $n of $TRIES" >>retries
    done
}
say_retries() { cat "$work"/*/retries 2>/dev/null || true; } # before the end of a test

# begin FUNCTION ARGUMENT...: beside the others
n_begun=0
begin() {
    n_begun=$((n_begun + 1))
    mkdir "$work/$n_begun"
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
        wait -n
    done
    (cd "$work/$n_begun" && "$@" >said 2>&1; if [ -e wrong ]; then cat said; fi) &
}
