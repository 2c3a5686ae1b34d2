#!/usr/bin/env bash
# tidy.sh [JOBS]: clang-tidy over the library and the command, with the flags of the debug preset (assertions tell the
# analyzer what holds). A file that was clean and has not changed since, nor any header, is not looked at again.
set -u
cd "$(dirname "$0")/.." || exit 2
jobs=${1:-2}

scripts/build.sh debug --configure || exit 1
# New files must be in the list of compile commands.
cmake --build build/debug --target rebuild_cache >/dev/null || exit 1

stamps=build/debug/tidy
mkdir -p "$stamps"
newest=$(find include src cli .clang-tidy -name '*.h' -printf '%T@ %p\n' -o -name .clang-tidy -printf '%T@ %p\n' |
    sort -n | tail -n 1 | cut -d ' ' -f 2-)

todo=()
for file in $(find src cli -name '*.c' -type f | sort); do
    stamp=$stamps/${file//\//_}
    if ! [ "$stamp" -nt "$file" ] || ! [ "$stamp" -nt "$newest" ]; then
        todo+=("$file")
    fi
done
[ ${#todo[@]} -gt 0 ] || exit 0

# The analyzer gives a function up after so many steps; its usual 225,000 take a third longer, for nothing found so far.
steps=(--extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=100000)

one() { # one FILE: its stamp, as old as the beginning of the look, is made only where there was nothing to say
    local began output
    began=$(mktemp -p "$stamps")
    if output=$(clang-tidy --quiet -p build/debug "${@:2}" "$1" 2>&1); then
        mv "$began" "$stamps/${1//\//_}"
    else
        rm -f "$began"
        printf '%s\n' "$output"
        return 1
    fi
}
export -f one
export stamps
printf '%s\0' "${todo[@]}" | xargs -0 -n 1 -P "$jobs" bash -c 'one "${@: -1}" "${@:1:$#-1}"' one "${steps[@]}"
