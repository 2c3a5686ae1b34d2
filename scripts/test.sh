#!/usr/bin/env bash
# All that `make test` does, a line a stage: what it was, green or red, and its seconds. A red stage shows its output;
# the later ones run all the same. A summary counts every test at the end. Names of stages as arguments run those alone.
set -u
cd "$(dirname "$0")/.." || exit 2

all_stages=(format includes tidy release asan tsan fuzz)
stages=("${@:-${all_stages[@]}}")
jobs=$(nproc 2>/dev/null || echo 2)
out=build/report
mkdir -p "$out"
rm -f "$out"/*
results=$out/results.tsv
: >"$results"
red=()

if [ -t 1 ]; then
    green_mark=$'\e[32mok\e[0m' red_mark=$'\e[31mFAILED\e[0m' skip_mark=$'\e[33mSKIPPED\e[0m'
else
    green_mark=ok red_mark=FAILED skip_mark=SKIPPED
fi

sources() { # sources FOLDER...: every C file below
    find "$@" -name '*.[ch]' -type f 2>/dev/null | sort
}

skip_stage() { # skip_stage NAME WHY: counted, like a skipped test
    printf '%s\t%s\t\tskipped\t%s\n' "$1" "$1" "$2" >>"$results"
    return 77
}

stage_format() {
    # Other versions format a little differently, and would find fault with good files.
    clang-format --version | grep -q ' 14\.' || { skip_stage format "clang-format is not version 14"; return; }
    sources include src cli nets examples tests bench >"$out/format.files"
    [ -s "$out/format.files" ] || { echo "there is no file to look at"; return 1; }
    xargs clang-format --dry-run -Werror <"$out/format.files" 2>"$out/format.full" &&
        return
    grep -a '^[^ ].*: error:' "$out/format.full" | cut -d : -f 1 | uniq -c | sed 's/^ *\([0-9]*\) \(.*\)/\2: \1 places/'
    echo "'make format' puts them right"
    return 1
}

stage_includes() { scripts/check_includes.sh; }

stage_tidy() { scripts/tidy.sh "$jobs"; }

# build_and_test PRESET: the build, its CTest run, and the results of every test in it.
build_and_test() {
    local preset=$1 dir status
    dir=$(scripts/build.sh "$preset" --path)
    scripts/build.sh "$preset" all || return 1
    rm -f "$dir/Testing/Temporary/LastTest.log"
    "${quiet_addresses[@]}" ctest --test-dir "$dir" -j "$jobs" >"$out/$preset.ctest" 2>&1
    status=$?
    awk -v stage="$preset" -v failures="$out/$preset.failures" -f scripts/test_results.awk \
        "$dir/Testing/Temporary/LastTest.log" >>"$results" || status=1
    scripts/tests_expected.sh "$preset" "$dir" "$results" >"$out/$preset.missing" || status=1
    cat "$out/$preset.missing" >>"$results"
    awk -F '\t' '$4 == "failed" { print $2 ": " $5 }' "$out/$preset.missing"
    if [ -s "$out/$preset.failures" ]; then
        cat "$out/$preset.failures"
    elif [ $status -ne 0 ]; then
        tail -n 20 "$out/$preset.ctest"
    fi
    return $status
}

# The thread sanitizer of gcc 12 cannot start where the kernel scatters addresses too widely.
quiet_addresses=()
stage_tsan() {
    setarch -R true 2>/dev/null && quiet_addresses=(setarch -R)
    TSAN_OPTIONS="halt_on_error=1 ${TSAN_OPTIONS:-}" build_and_test tsan
    local status=$?
    quiet_addresses=()
    return $status
}

stage_release() { build_and_test release; }
stage_asan() {
    ASAN_OPTIONS="detect_stack_use_after_return=1 allocator_may_return_null=1 ${ASAN_OPTIONS:-}" \
        UBSAN_OPTIONS="print_stacktrace=1 ${UBSAN_OPTIONS:-}" build_and_test asan
}
stage_fuzz() { build_and_test fuzz; }

for stage in "${stages[@]}"; do
    printf '%-9s' "$stage"
    began=$SECONDS
    if [ "$(type -t "stage_$stage")" != function ]; then
        echo "no such stage (there are: ${all_stages[*]})"
        exit 2
    fi
    "stage_$stage" >"$out/$stage.log" 2>&1
    case $? in
        0) mark=$green_mark ;;
        77) mark=$skip_mark ;;
        *) mark=$red_mark red+=("$stage") ;;
    esac
    printf '%s  %d s\n' "$mark" $((SECONDS - began))
    if [ "$mark" = "$red_mark" ]; then
        tail -n 200 "$out/$stage.log" | sed 's/^/    /'
    fi
done

echo
if [ -s "$results" ]; then
    scripts/test_summary.sh "$results" || [ ${#red[@]} -gt 0 ] || red+=(summary)
fi
if [ ${#red[@]} -gt 0 ]; then
    echo "RED after $SECONDS s: ${red[*]} (full output in $out/)"
    exit 1
fi
echo "GREEN after $SECONDS s"
