# A stage that ran fewer tests than the tree has files for is red, and so is one that ran none: `make demo` configures a build
# before cmocka is installed, and `make test` once ran the 3 tests of that build and ended green. And the cause: a build
# that lacked cmocka is configured again once it is there.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
fail() { echo "$*"; bad=1; }

# A little tree: three tests, an example, a fuzz target, and the results of stages that ran some of them.
mkdir -p "$work/tree/tests/pool" "$work/tree/tests/fuzz" "$work/tree/examples" "$work/build/tests"
cd "$work/tree" || exit 1
mkdir tests/nets
touch tests/pool/test_fit.c tests/pool/test_all.sh tests/nets/test_net.c tests/pool/helper.c examples/first.c \
    tests/fuzz/fuzz_trace.c
expected() { # expected STATUS PRESET LINES: what is said of the results on standard input
    local status=0
    cat >"$work/results"
    "$NEAP_SOURCE_DIR/scripts/tests_expected.sh" "$2" "$work/build" "$work/results" >"$work/got" || status=1
    [ $status -eq "$1" ] || fail "$2: left with $status, not $1"
    cut -f 2,4 "$work/got" | tr '\t\n' ': ' >"$work/line"
    [ "$(cat "$work/line")" = "$3" ] || fail "$2: expected '$3', got '$(cat "$work/line")'"
}
ran() { printf "$1\t%s\tx\tpassed\t\n" "${@:2}"; }
expected 0 release '' < <(ran release pool/fit pool/all nets/net examples/first)
expected 1 release 'pool/all:failed ' < <(ran release pool/fit nets/net examples/first)
expected 1 release 'nets/net:failed pool/all:failed pool/fit:failed ' < <(ran release examples/first)
expected 1 release \
    '(all):failed examples/first:failed nets/net:failed pool/all:failed pool/fit:failed ' < <(ran asan pool/fit pool/all nets/net examples/first)
expected 0 fuzz '' < <(ran fuzz fuzz/trace)
expected 1 fuzz '(all):failed fuzz/trace:failed ' </dev/null
expected 0 tsan '' < <(ran tsan pool/fit pool/all nets/net)
printf 'nets/net\tOpenBLAS was not found\npool/all\t\n' >"$work/build/tests/left_out"
expected 0 release 'nets/net:skipped ' < <(ran release pool/fit examples/first)
printf 'pool/all\t\npool/fit\t\n' >"$work/build/tests/left_out"
expected 0 release '' < <(ran release nets/net examples/first)
printf 'pool/all\t\npool/fit\t\nnets/net\t\nexamples/first\t\n' >"$work/build/tests/left_out"
expected 1 release '(all):failed ' </dev/null

# This tree, as a fresh copy on a machine where cmocka comes later: the tool chain's file hides it for as long as a file is there.
command -v cmake >/dev/null || { [ $bad -eq 0 ] && echo "cmake is not there" && exit 77; exit 1; }
mkdir "$work/clone"
(cd "$NEAP_SOURCE_DIR" && tar -cf - --exclude=./build --exclude=./.git .) | tar -xf - -C "$work/clone"
cd "$work/clone" || exit 1
cat >"$work/late.cmake" <<'TOOLCHAIN'
if(NOT COMMAND _find_library) # the file is read more than once
    function(find_library variable)
        if(variable STREQUAL CMOCKA_LIBRARY AND EXISTS "@WORK@/no-cmocka")
            set(CMOCKA_LIBRARY CMOCKA_LIBRARY-NOTFOUND CACHE FILEPATH "" FORCE)
        else()
            _find_library(${variable} ${ARGN})
        endif()
    endfunction()
endif()
TOOLCHAIN
sed -i "s,@WORK@,$work," "$work/late.cmake"
export CMAKE_TOOLCHAIN_FILE=$work/late.cmake
touch "$work/no-cmocka"
scripts/build.sh release --configure || fail "the build could not be configured"
n_before=$(ctest --test-dir build -N | sed -n 's/^Total Tests: //p')
rm "$work/no-cmocka"
scripts/build.sh release --configure || fail "the build could not be configured again"
n_after=$(ctest --test-dir build -N | sed -n 's/^Total Tests: //p')
[ "$n_before" -lt 10 ] || fail "cmocka was not hidden: $n_before tests"
[ "$n_after" -gt 100 ] || fail "with cmocka there are $n_after tests: the build was not configured again"
exit $bad
