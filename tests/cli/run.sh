#!/bin/bash
# Golden tests of the command: what it prints, on which stream, and how it leaves.
#
#   NEAP=build/neap tests/cli/run.sh             compares with golden/
#   NEAP=build/neap tests/cli/run.sh --accept    writes golden/ anew; look at the difference before you commit it
#
# NEAP_GOLDEN_ONLY, where it is set, is an expression that names of cases must match.
#
# Each case runs in data/ (so that no path of this machine appears) with the C locale and no terminal. Times are masked.
set -u
here=$(cd "$(dirname "$0")" && pwd)
case ${NEAP:=$here/../../build/neap} in /*) ;; *) NEAP=$PWD/$NEAP ;; esac
accept=false
[ "${1:-}" = --accept ] && accept=true
[ -x "$NEAP" ] || { echo "run.sh: no command at $NEAP; set NEAP" >&2; exit 2; }
export LC_ALL=C TERM=dumb
unset NO_COLOR
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
export OUT=$work/out
mkdir "$OUT"
cd "$here/data" || exit 2
n=0 bad=0

mask() {
    sed -E -e 's/("seconds": )[0-9.e+-]+/\1<seconds>/' -e 's/^(  (solver|method) .* in )[0-9.]+ (us|ms|s)$/\1<time>/' \
        -e "s|$OUT|<out>|g"
}

compare() { # NAME: the file $work/got against its golden one
    n=$((n + 1))
    local golden=$here/golden/$1
    if $accept; then
        cp "$work/got" "$golden"
    elif ! diff -u --label "golden/$1" --label "now" "$golden" "$work/got" > "$work/diff" 2>&1; then
        bad=$((bad + 1))
        echo "FAILED: $1"
        cat "$work/diff"
    fi
}

# check NAME 'COMMAND LINE': run by the shell, with `neap` standing for the command.
neap() { "$NEAP" "$@"; }
check() {
    [[ $1 =~ ${NEAP_GOLDEN_ONLY:-.} ]] || return 0
    (eval "$2") > "$work/stdout" 2> "$work/stderr" < /dev/null
    local code=$?
    {
        echo "\$ $2"
        cat "$work/stdout"
        echo "--- stderr"
        cat "$work/stderr"
        echo "--- exit code $code"
    } | mask > "$work/got"
    compare "$1"
}

# holds NAME 'COMMAND LINE': must leave with 0 and print nothing; for what is true but not to be read.
holds() {
    [[ $1 =~ ${NEAP_GOLDEN_ONLY:-.} ]] || return 0
    n=$((n + 1))
    if ! (eval "$2") > "$work/stdout" 2>&1 < /dev/null || [ -s "$work/stdout" ]; then
        bad=$((bad + 1))
        echo "FAILED: $1: $2"
        cat "$work/stdout"
    fi
}

. "$here/cases.sh"

if [ "$bad" -gt 0 ]; then
    echo "$bad of $n command-line cases failed"
    exit 1
fi
$accept && echo "$n command-line cases accepted" || echo "$n command-line cases passed"
