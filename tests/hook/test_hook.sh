# The hook in front of a program that knows nothing of it: trainer, on the stand-in driver, runtime and CUPTI. What it
# prints must be what it prints alone, with every option at every limit. NEAP_HOOK_SOAK=N: that many random runs more;
# NEAP_HOOK_SOAK_FROM=K goes on after the K-th. NEAP_HOOK_JOBS: how many at once.
. "$(dirname "$0")/in_front.sh"

compare() { # compare 'LIMIT...' OPTION...: at these limits, "-" for none
    alone 1 "${@:2}" || return
    for limit in $1; do
        hooked 1 "${limit#-}" "${@:2}"
    done
}
n_each=0
each() { # nothing where there is no limit to compare at; with a sanitizer every third is left to soak, and to the release
    n_each=$((n_each + 1))
    [ -n "$runtime" ] && [ -z "${NEAP_SOAK:-}" ] && [ $((n_each % 3)) -eq 0 ] && return
    [ -z "$1" ] || begin compare "$@"
}

# Children are forked from a program on its plan: that goes on to the end, which alone is not planned, and none of them says
# anything of its own.
is_early() { # is_early ITERATION OPTION...: the plan was there before the fork
    hooked 1 4194304 "${@:2}"
    if [ "$(grep -c ': peak load' got.err)" -ne 1 ]; then
        echo "there is not one report: trainer --scale=4 --pause=20 ${*:2}"
        cat got.err
        touch wrong
    fi
    active=$(sed -n 's/.*: plan .*active after \([0-9]*\) iteration.*/\1/p' got.err)
    [ -n "$active" ] && [ "$active" -lt "$1" ]
}
forked() { # forked ITERATION OPTION...
    local options=(--fork="$1" --spawn="$(($1 + 1))" --iterations="$(($1 + 8))" "${@:2}") active
    alone 1 "${options[@]}" || return
    tries "hook/hook: a fork on the plan" is_early "$1" "${options[@]}"
    if [ -n "$active" ] && [ "$active" -lt "$1" ] && ! grep -qE ': left plan 1 time: (work|a free) that was not planned' got.err; then
        echo "the plan was left: trainer --scale=4 --pause=20 ${options[*]}"
        cat got.err
        touch wrong
    fi
}

# Stale words name blocks that are away: they come for the kernel, the plan is not left over them, and the weights are right
# (that is compared).
has_visits() {
    hooked 1 4194304 "$@"
    grep -q ': visits  *[1-9]' got.err && ! grep -q ': left plan .*work on a block that is not there' got.err
}
visited() { # visited OPTION...
    alone 1 "$@" || return
    tries "hook/hook: visits" has_visits "$@" && return
    echo "no block came for a kernel, or the plan was left: trainer --scale=4 --pause=20 $*"
    cat got.err
    touch wrong
}

# reported WHAT CHECK LIMIT OPTION...: its bytes are right (that is compared), and CHECK finds in its report what is to be
# there.
has_reported() { # has_reported CHECK LIMIT OPTION...
    on=(NEAP_HOOK=run NEAP_REPORT=report NEAP_REPORT_JSON=1)
    hooked 1 "$2" "${@:3}"
    "$1"
}
reported() {
    local what=$1 check=$2 limit=$3
    shift 3
    alone 1 "$@" || return
    tries "hook/hook: not yet: $what" has_reported "$check" "$limit" "$@" && return
    echo "$what: trainer $*"
    cat report
    touch wrong
}

# Without a limit nobody looks at the work of a program that is PyTorch, once it has been on its plan for a while.
has_rests() { grep -q '"n_rests": [1-9]' report; }
rested() { # rested OPTION...
    reported "work was looked at all the time" has_rests "" --torch "$@"
}

# Under a limit in per cent nobody looks for some iterations, to measure what looking costs; then blocks are swapped.
has_measured() { grep -q '"n_rests": [1-9]' report && grep -q '"bytes_out": [1-9]' report; }
measured() { # measured LIMIT OPTION...
    NEAP_LIMIT_LATE=1 reported "looking was not measured, or nothing was swapped" has_measured "$1" --torch "${@:2}"
}

# A thread that does nothing but copy comes between others' events at any time: a plan is found all the same, and followed
# to the end.
has_strays() {
    grep -q '"n_strays": [1-9]' report && grep -q '"n_departures": [01],' report &&
        grep -q '"n_iterations": [1-9]' report
}
helped() { # helped LIMIT OPTION...
    reported "a copy that came when it liked was in the way" has_strays "$1" --helper "${@:2}"
}

# The N-th copy to the host fails: nothing is wrong but that. The program asks again for memory; where it cannot go on
# with the right bytes, neap says so and ends it; or the copy was the program's own.
failing() { # failing N OPTION...
    local status
    alone 1 "${@:2}" || return
    export STANDIN_FAIL="cuMemcpyDtoHAsync_v2:$1:719"
    hooked 1 4194304 "${@:2}" >said.failing
    status=$(sed -n 's/^wrong, status \([0-9]*\):.*/\1/p' said.failing)
    if { [ "$status" = 134 ] && grep -q 'the blocks of .* could not be brought to the device: the device failed' got.err; } ||
        { [ "$status" = 1 ] && grep -q 'trainer: cudaMemcpy' got.err; }; then
        rm -f wrong
    elif [ -n "$status" ]; then
        cat said.failing
    fi
}

# A process that uses a second device: neap says so, once, and steps aside, with everything home.
several() { # several LIMIT OPTION...
    alone 1 "${@:2}" || return
    hooked 1 "$1" "${@:2}"
    if [ "$(grep -c 'work in a second CUDA context.*neap steps aside' got.err)" -ne 1 ]; then
        echo "that there are several devices was not said, or more than once: trainer ${*:2}"
        cat got.err
        touch wrong
    fi
}

# ---- the cases ----

# Iterations: plans, and swaps, are there after ten of them. NEAP_SOAK: more of them, and all cases whatever the build.
usual='- 4194304'
few='60%'
long=16 late=12 rests=75 measures=180
[ -n "$runtime" ] && usual=4194304 few=4194304 # slow, and without it all was compared already
[ -n "${NEAP_SOAK:-}" ] && long=40 late=30 rests=120

all_cases() { # the longest first
    begin measured 60% --iterations=$measures --stale=20 --checkpoint=25 --helper
    [ -n "$runtime" ] || begin measured 70% --iterations=$measures --evaluate=$((measures - 20)) --clip --copies
    each "$usual 60% 90% 1000000" --iterations=$long
    each "$usual" --iterations=$long --evaluate=9
    each "$usual" --iterations=$long --alternate
    each "$few" --iterations=15 --grow
    each - --iterations=15 --grow --trim=3
    each "$usual" --iterations=$long --side
    each "$usual" --iterations=$long --clip --checkpoint=10
    each "$few" --iterations=$long --stale
    each "$usual" --iterations=$long --stale=50
    begin visited --iterations=$long --stale=50
    each "$usual" --iterations=$long --table
    each 4194304 --iterations=$long --table=2
    each "$usual" --iterations=$long --grouped
    each "$few" --iterations=$long --grouped=2 --side
    each "$usual" --iterations=$long --graph
    each "$few" --iterations=$long --graph=2
    each "$few" --iterations=$long --graph --regraph=12
    each "$few" --iterations=20 --graph=2 --regraph=4 --grouped
    each "$usual" --iterations=$long --graph=2 --child --regraph=7
    each "$few" --iterations=$long --graph=2 --reuse --regraph=6
    each "$few" --iterations=$long --graph=2 --reuse --regraph=4 --teardown=$late
    each "$usual" --iterations=$long --graph --byhand
    each "$few" --iterations=$long --graph=2 --child --byhand --regraph=5
    each "$usual" --iterations=$long --fork=$late
    each "$few" --iterations=$long --spawn=$late
    begin forked $late
    for n in 3 40 300; do
        begin failing $n --iterations=12
    done
    begin helped "" --iterations=$long
    begin helped "" --iterations=$long --helper=2
    begin helped 4194304 --iterations=$long --helper=2
    begin helped 4194304 --iterations=$long --clip --copies
    begin rested --iterations=$rests
    begin rested --iterations=$rests --helper
    begin rested --iterations=$rests --evaluate=$((rests - 6)) --clip --checkpoint=$((rests - 5)) --copies
    begin rested --iterations=$rests --unknown=$((rests - 5)) --reload=30 --buffer --info
    begin rested --iterations=$rests --stale=20 --table --grouped --ask=$((rests - 4))
    begin rested --iterations=$rests --fork=$((rests - 6)) --spawn=$((rests - 4)) --ipc
    begin rested --iterations=$rests --teardown=$((rests - 4))
    each "$usual" --iterations=$long --unknown=9
    each "$few" --iterations=$long --future=11
    each "$usual" --iterations=$long --extra=60
    each "$few" --iterations=20 --extra=4
    each "$usual" --iterations=$long --oom=13
    each "$usual" --iterations=$long --ask=5
    each "$usual" --iterations=$long --plain
    each "$usual" --iterations=$long --programmatic
    each "$few" --iterations=$long --reload=7
    each "$usual" --iterations=$long --copies
    each "$few" --iterations=$long --buffer
    each "$few" --iterations=$long --cooperative
    each "$usual" --iterations=$long --info
    each "$few" --iterations=$long --profiler=$late
    each "$few" --iterations=$long --teardown=$late
    each "$usual" --iterations=$long --threads
    each "$few" --iterations=$long --ipc
    STANDIN_DEVICES=2 begin several 4194304 --iterations=$long --devices=$late
    STANDIN_MEMORY=134217728 STANDIN_DEVICES=2 begin several 60% --iterations=$long --devices=$late --threads
    STANDIN_DEVICES=2 each 4194304 --iterations=$long # two that it could use, and one that it does
}

# The thread sanitizer looks for races, which are the same at every option: a few programs, each with many.
threaded_cases() {
    begin measured 70% --iterations=$measures --evaluate=$((measures - 20)) --clip # the longest first
    begin rested --iterations=$rests --evaluate=$((rests - 6)) --clip --fork=$((rests - 4))
    each '4194304 1000000' --iterations=$long
    each 4194304 --iterations=$long --evaluate=9 --alternate --side --clip --checkpoint=10 --info
    each 4194304 --iterations=$long --stale=50 --table --grouped --copies --fork=$late
    each 4194304 --iterations=$long --graph --unknown=9 --extra=60 --oom=13 --ask=5
    each 4194304 --iterations=$long --plain --programmatic
    each 4194304 --iterations=$long --threads
    STANDIN_MEMORY=134217728 STANDIN_DEVICES=2 begin several 4194304 --iterations=$long --devices=$late --threads
    begin helped 4194304 --iterations=$long
}

if [ "$runtime" = libtsan.so ] && [ -z "${NEAP_SOAK:-}" ]; then
    few=
    threaded_cases
else
    all_cases
fi

at_seed() { # at_seed SEED LIMIT OPTION...
    alone "$1" "${@:3}" && hooked "$1" "${2#-}" "${@:3}"
}
# A kernel that begins early must not write where the one in front of it still reads what was freed meanwhile.
export STANDIN_DELAY_US=0
for limit in - 7829000; do
    begin at_seed 127 $limit --seed=127 --iterations=9 --layers=8 --programmatic --copies --unknown=2
done

for delay in 0 1000; do # streams that are fast, and streams that are slow
    export STANDIN_DELAY_US=$delay
    each "$few" --iterations=$long --side --stale=20 --clip
done
export NEAP_MIN_BLOCK=1048576 # small blocks, freed by a call that names no stream, while streams of their own use them
each - --iterations=20 --plain --threads
each - --iterations=20 --graph=2 --reuse --regraph=6
export NEAP_MIN_BLOCK=16384
unset STANDIN_DELAY_US STANDIN_MEMORY
[ "$runtime" = libtsan.so ] || each 4194304 --iterations=$long --ask=5
on=()
each - --iterations=5 # without the verb nothing happens, whatever is loaded
recorded() { # small blocks are not in the trace, but what was held for them is
    alone 1 --iterations=5 || return
    hooked 1 "" --iterations=5
    RANK=1 hooked 1 "" --iterations=5
    cmp -s <(grep -c . t.neap) <(grep -c . t.neap.rank1) || { echo "a rank has no trace of its own"; touch wrong; }
    grep -q '^meta.* beside_bytes=[1-9]' t.neap || { echo "the trace does not say what was held beside it"; touch wrong; }
}
on=(NEAP_HOOK=record NEAP_RECORD=t.neap)
begin recorded
on=(NEAP_HOOK=run)

# ---- random runs ----

soak() { # soak SEED
    RANDOM=$1
    local options=(--iterations=$((RANDOM % 40 + 8)) --layers=$((RANDOM % 15 + 4)) --seed="$1") limit has_graph
    has_graph=$((RANDOM % 4))
    [ "$has_graph" -eq 1 ] && options+=(--graph)
    [ "$has_graph" -eq 2 ] && options+=(--graph=2 --regraph=5)
    [ "$has_graph" -gt 0 ] && [ "$has_graph" -lt 3 ] && [ $((RANDOM % 2)) -eq 0 ] && options+=(--child)
    [ "$has_graph" -gt 0 ] && [ "$has_graph" -lt 3 ] && [ $((RANDOM % 3)) -eq 0 ] && options+=(--byhand)
    [ "$has_graph" -eq 2 ] && [ $((RANDOM % 2)) -eq 0 ] && options+=(--reuse)
    [ "$has_graph" -eq 3 ] && [ $((RANDOM % 4)) -eq 0 ] && options+=(--plain)
    [ $(($1 % 5)) -eq 0 ] && options+=(--torch) # by the seed, so that those of old are what they were
    for option in --evaluate=$((RANDOM % 6 + 2)) --alternate --grow --side --clip --checkpoint=4 --stale=9 --table \
        --grouped --grouped=2 --fork=7 --spawn=9 --unknown=$((RANDOM % 5 + 2)) --future=6 --extra=$((RANDOM % 60 + 2)) \
        --oom=4 --ask=6 --programmatic --reload=2 --copies --buffer --info --cooperative --threads; do
        if [ $((RANDOM % 7)) -eq 0 ] && ! { [ "$option" = --programmatic ] && [ $(($1 % 5)) -eq 0 ]; }; then
            options+=("$option")
        fi
    done
    case " ${options[*]} " in # how much is free depends on what the other thread holds just then; graphs fill the device
    *" --threads "* | *" --graph=2 "*) options=("${options[@]/#--ask=*/--ask=0}") ;;
    esac
    limit=$((RANDOM % 70 + 30))%
    [ $((RANDOM % 2)) -eq 0 ] && limit=$((RANDOM * 250 + 500000))
    [ $((RANDOM % 8)) -eq 0 ] && limit=
    [ $(($1 % 6)) -eq 1 ] && options+=(--helper=$(($1 / 6 % 2 + 1)))
    [ $(($1 % 5)) -eq 0 ] && limit= && options+=(--iterations=$((RANDOM % 60 + 20)))
    [ $(($1 % 10)) -eq 5 ] && limit=$((RANDOM % 55 + 40))%
    [ $(($1 % 10)) -eq 5 ] && [ "$has_graph" -ne 2 ] && options+=(--iterations=$((RANDOM % 80 + 60)))
    export STANDIN_DELAY_US=$((RANDOM % 3 * 100))
    case "${options[1]}" in # what grows, is captured or has two threads would not fit, even without neap
    --layers=1[3-8]) export STANDIN_MEMORY=134217728 ;;
    esac
    alone "$1" "${options[@]}" && hooked "$1" "$limit" "${options[@]}"
}
from=${NEAP_HOOK_SOAK_FROM:-0}
for ((i = from + 1; i <= from + ${NEAP_HOOK_SOAK:-0}; i++)); do
    begin soak "$i"
done

wait
say_retries
count() { cat "$work"/*/"$1" 2>/dev/null | wc -l; }
echo "$(count runs) runs, $(count planned) on a plan, $(count swapped) with swaps"
if [ "$(count planned)" -eq 0 ] || [ "$(count swapped)" -eq 0 ]; then
    echo "no run had a plan, or none had swaps: nothing was tested"
    exit 1
fi
! ls "$work"/*/wrong >/dev/null 2>&1
