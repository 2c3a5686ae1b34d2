#!/bin/sh
# Finds what is missing to build (setup.sh build), to make Debian packages (setup.sh deb) or to build and test (setup.sh
# test), and installs it from Debian where it may. Elsewhere it prints the one command to run, and leaves with 1. When all
# is there it says nothing, and takes a fraction of a second.
set -u

goal=${1:-test}
missing=

need() { # need PACKAGE COMMAND...: the package is missing unless the command succeeds
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}

has_program() { command -v "$1"; }
has_header() { echo "#include <$1>" | gcc -x c -E -; }
has_openblas() { has_header cblas.h && gcc -x c -shared -o /dev/null /dev/null -lopenblas; } # others have that header, too
has_cmocka() { has_header cmocka.h && gcc -x c -shared -o /dev/null /dev/null -lcmocka; }
has_build_tool() { command -v ninja || command -v make; }
has_venv() { python3 -c 'import ensurepip, venv'; }
has_fuzzer() { ls "$(clang -print-resource-dir)"/lib/linux/libclang_rt.fuzzer-*.a; }

look() {
    missing=
    need gcc has_program gcc
    need libc6-dev has_header stdio.h
    need make has_program make
    need cmake has_program cmake
    need ninja-build has_build_tool
    need zlib1g-dev has_header zlib.h
    need libopenblas-dev has_openblas
    [ "$goal" = build ] && return
    need dpkg-dev has_program dpkg-shlibdeps
    [ "$goal" = deb ] && return
    need libcmocka-dev has_cmocka
    need pkg-config has_program pkg-config
    need clang has_program clang
    need libclang-rt-dev has_fuzzer
    need clang-format has_program clang-format
    need clang-tidy has_program clang-tidy
    need python3-venv has_venv
}

# Some tests skip themselves without these: they are installed where that can be, and not asked for.
look_for_extras() {
    missing=
    [ "$goal" = test ] || return
    need chromium has_program chromium
    need zsh has_program zsh
    need fish has_program fish
    need groff-base has_program groff
}

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

install_extras() {
    look_for_extras
    if [ -n "$missing" ] && can_install; then
        echo "setup: installing$missing, for tests that do without them too"
        for package in $missing; do
            DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$package" >/dev/null 2>&1
        done
    fi
    exit 0
}

look
[ -z "$missing" ] && install_extras

# shellcheck disable=SC2086  # $missing is a list of words
if can_install; then
    echo "setup: installing$missing"
    export DEBIAN_FRONTEND=noninteractive
    log=$(mktemp)
    apt-get install -y --no-install-recommends $missing >"$log" 2>&1 ||
        { apt-get update && apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1 ||
        tail -n 20 "$log" >&2
    rm -f "$log"
    look
    [ -z "$missing" ] && install_extras
fi
{
    echo "setup: missing:$missing"
    echo "On Debian, run this as root, then try again:"
    echo "    apt-get install -y --no-install-recommends$missing"
} >&2
exit 1
