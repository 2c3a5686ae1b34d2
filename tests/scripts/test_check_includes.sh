# scripts/check_includes.sh on small trees: what it must let pass, and what it must name with file and line.
set -u
check=$NEAP_SOURCE_DIR/scripts/check_includes.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
bad=0

file() { # file PATH LINE...
    mkdir -p "$tree/$(dirname "$1")"
    printf '%s\n' "${@:2}" >"$tree/$1"
}
good_tree() {
    rm -rf "${tree:?}"/*
    file src/base/status.c '#include "base/status.h"' '#include <stdio.h>' '#include "neap.h"'
    file src/pool/fit.c '#include "trace/trace.h"' '#  include "pool/fit.h" // why'
    file src/run/run.c '#include "device/device.h"' '#include "swap/score.h"'
    file src/hook/hook.c '#include "run/run.h"'
    file cli/main.c '#include <neap_not_ours.h>' '#include "neap.h"' '#include "table.h"'
    file cli/table.h '/* #include "base/map.h" in a comment */'
}
expect_good() {
    good_tree
    "$check" "$tree" || { echo "a good tree was refused"; bad=1; }
}
expect_bad() { # expect_bad WHERE PATH LINE...: the tree with this file added is refused, and WHERE is named
    good_tree
    file "${@:2}"
    local output
    if output=$("$check" "$tree"); then
        echo "accepted: $2: ${*:3}"
        bad=1
    elif ! grep -qF "$1: " <<<"$output"; then
        echo "refused, but $1 is not named: $output"
        bad=1
    fi
}

expect_good
expect_bad src/base/x.c:2 src/base/x.c '' '#include "trace/trace.h"'
expect_bad src/trace/x.h:1 src/trace/x.h '#include "pool/problem.h"'
expect_bad src/pool/x.c:1 src/pool/x.c '#include "swap/score.h"'
expect_bad src/device/x.c:1 src/device/x.c '#include "trace/trace.h"'
expect_bad src/swap/x.c:1 src/swap/x.c '#include "device/device.h"'
expect_bad src/run/x.c:1 src/run/x.c '#include "hook/hook.h"'
expect_bad src/pool/x.c:3 src/pool/x.c '' '' '  #include "fit.h"'
expect_bad src/pool/x.c:1 src/pool/x.c '#include "../hook/hook.h"'
expect_bad src/pool/x.c:1 src/pool/x.c '#include <hook/hook.h>'
expect_bad src/pool/x.c:1 src/pool/x.c '#include"swap/score.h"'
expect_bad src/pool/x.c:1 src/pool/x.c '#include HEADER'
expect_bad src/other/x.c:1 src/other/x.c 'int x;'
expect_bad cli/x.c:1 cli/x.c '#include "base/map.h"'
expect_bad cli/x.c:1 cli/x.c '#include "../src/base/map.h"'
expect_bad nets/x.c:1 nets/x.c '#include "base/map.h"'
expect_bad examples/x.c:1 examples/x.c '#include <base/map.h>'
exit $bad
