# `neap verify` of the trainer, on the stand-in driver, runtime and CUPTI: whatever it does that `neap run` sees, or knows not
# to see, is verified; a block that a kernel uses unseen is found, and the kernel.
. "$(dirname "$0")/standin.sh"
export XDG_CACHE_HOME=$work/cache LC_ALL=C TERM=dumb
export ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 # the command puts the library before all others
export TSAN_OPTIONS=$TSAN_OPTIONS:atexit_sleep_ms=0 # which every run would take
cd "$work" || exit 2
n=0 bad=0

verify() { # verify OPTION...
    timeout 300 "$NEAP_COMMAND" verify --json --keep kept -- "$NEAP_HOOK_TRAINER" --scale=4 --iterations=3 "$@" \
        >answer 2>said
    code=$?
}
value() { sed -n "s/^ *\"$1\": \(.*[^,]\),*\$/\1/p" answer; }
is() { # is OPTIONS GOT EXPECTED
    n=$((n + 1))
    if [ "$2" != "$3" ]; then
        bad=$((bad + 1))
        printf 'FAILED: trainer %s\n  got      %s\n  expected %s\n' "$1" "$2" "$3"
        cat answer said
        [ ! -d kept ] || grep -h -A 20 Sanitizer kept/*.err
    fi
    rm -rf kept
}

good() { # good OPTION...
    verify "$@"
    is "$*" "$code $(value verdict) $(value remembered)" '0 "verified" true'
}

roomy() { # what is freed while another thread captures is held for a while
    STANDIN_MEMORY=134217728 good "$@"
}

found() { # found KERNEL OPTION...: the block is the trainer's secret one
    verify --iterations=2 "${@:2}"
    is "${*:2}" "$code $(value verdict) $(value kernel) $(value block_bytes) $(value alone)" "1 \"differs\" \"$1\" 24576 true"
}

by_table=_ZN5train8by_tableEPjPK11table_entrym

threaded_cases() {
    good --table --grouped --side --extra=4
    roomy --threads --graph=2 --regraph=2
    good --threads --helper=2 --fork=1
}

few_cases() { # of each kind
    threaded_cases
    found $by_table --hidden=2 --side
    found graph --hidden=3 --graph
}

all_cases() {
    good
    good --side --clip --checkpoint=2 --evaluate=2 --alternate
    good --stale=3 --extra=4 --info --oom=2
    good --table
    good --table --iterations=20 # what is freed goes, or the device would be full
    good --grouped
    good --grouped=2 --side
    good --graph
    good --graph=2 --regraph=4 --iterations=20
    good --graph=2 --child --regraph=2
    good --graph=2 --reuse --regraph=2 --grouped
    good --graph --byhand
    good --graph=2 --child --byhand --table
    good --plain
    good --plain --graph
    good --ipc
    good --plain --ipc
    good --helper=2
    good --fork=1 --spawn=2
    good --unknown=2 --future=3
    good --reload=1 --copies --buffer
    good --programmatic --side
    good --cooperative --profiler=1
    good --teardown=1
    for delay in 0 300; do # streams that are fast, and streams that are slow
        export STANDIN_DELAY_US=$delay
        good --threads
        good --threads --helper --side --table --grouped
        roomy --threads --graph=2 --regraph=2
    done
    unset STANDIN_DELAY_US

    found $by_table --hidden
    found $by_table --hidden --plain
    found $by_table --hidden --table --graph
    found $by_table --hidden=2 --side
    found graph --hidden=3 --graph
    found graph --hidden=3 --graph=2 --child
    found _ZN5train14write_by_tableEPK11table_entryj --hidden=4
    good --hidden=3 --graph --byhand # everything is home for such a graph
}

# The blocks are told apart by the order they came in, the launches by theirs: the 14th block, and the first use of it.
in_words() {
    "$NEAP_COMMAND" verify -- "$NEAP_HOOK_TRAINER" --scale=4 --iterations=2 --hidden >answer 2>said
    is "--hidden, in words" "$? $(head -n 2 answer | tr '\n' ' ')" "1 not verified: launch 36 of 130, $by_table, \
uses block 13 (24.6 kB) in a way that neap does not see. "
}

# What cannot be taken away was not tested.
stuck() {
    export STANDIN_FAIL=cuMemsetD8Async:50:999 # the program itself has three
    verify
    is "with a memset that fails" "$code $(value verdict)" '2 "blocks cannot be taken away"'
    unset STANDIN_FAIL
}

if [ "$runtime" = libtsan.so ] && [ -z "${NEAP_SOAK:-}" ]; then
    threaded_cases
elif [ -n "$runtime" ] && [ -z "${NEAP_SOAK:-}" ]; then
    few_cases
    stuck
else
    all_cases
    in_words
    stuck
fi
echo "$n programs"
exit $((bad > 0))
