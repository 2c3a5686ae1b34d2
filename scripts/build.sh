#!/bin/sh
# build.sh PRESET TARGET...: configures the preset's folder once (CMake itself notices later changes of the tree) and builds
# there.
# build.sh PRESET --path prints that folder; build.sh PRESET --configure stops before building.
set -eu
cd "$(dirname "$0")/.."
preset=$1
shift

dir=build/$preset
[ "$preset" = release ] && dir=build
[ "${1:-}" = --path ] && { echo "$dir"; exit; }

# A folder that was configured for another place (a copied tree) or half-way is begun anew. One that lacked something
# (cmocka: no tests; OpenBLAS: no networks) is configured again, as it may have been installed since.
cache=$dir/CMakeCache.txt
lacks_something() { grep -qsE '^(CMOCKA|CBLAS|OPENBLAS)_[A-Z_]*:[A-Z]*=.*-NOTFOUND$' "$cache"; }
if ! grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$cache" || [ CMakePresets.json -nt "$cache" ]; then
    rm -rf "$cache" "$dir/CMakeFiles"
    generator=
    if command -v ninja >/dev/null 2>&1; then
        generator=Ninja
    fi
    log=$(mktemp)
    cmake --preset "$preset" ${generator:+-G "$generator"} >"$log" 2>&1 || { cat "$log" >&2; rm -f "$log"; exit 1; }
    rm -f "$log"
elif lacks_something; then
    log=$(mktemp)
    cmake "$dir" >"$log" 2>&1 || { cat "$log" >&2; rm -f "$log"; exit 1; }
    rm -f "$log"
fi
[ "${1:-}" = --configure ] && exit

# Ninja says nothing of what went well.
for target in "$@"; do
    set -- "$@" --target "$target"
    shift
done
if [ -f "$dir/build.ninja" ]; then
    exec cmake --build "$dir" "$@" -- --quiet
fi
exec cmake --build "$dir" -j "$(nproc 2>/dev/null || echo 2)" "$@" -- --no-print-directory -s
