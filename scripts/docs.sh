#!/usr/bin/env bash
# docs.sh [--check]: puts the options of every verb into docs/cli.md, between the marks for it, as the command has them.
# With --check nothing is written; what differs is shown, and it leaves with 1. NEAP names the command: build/neap.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
neap=${NEAP:-$root/build/neap}
page=${NEAP_PAGE:-$root/docs/cli.md}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

verbs=$("$neap" help --json | sed -n 's/^ *"verb": "\(.*\)",$/\1/p')
for verb in $verbs; do
    "$neap" help --markdown "$verb" > "$work/$verb.md"
    grep -qxF "<!-- options of $verb -->" "$page" || { echo "docs/cli.md has no options of neap $verb"; exit 1; }
done

# A verb that this build does not have (train, without OpenBLAS) keeps what is there.
awk -v folder="$work" '
    /^<!-- end of options -->$/ { inside = 0 }
    !inside { print }
    /^<!-- options of .* -->$/ {
        file = folder "/" $4 ".md"
        while ((getline line < file) > 0) {
            print line
            inside = 1
        }
    }
    END {
        if (inside) {
            print "docs/cli.md: options without an end" > "/dev/stderr"
            exit 1
        }
    }' "$page" > "$work/page"

if [ "${1:-}" = --check ]; then
    diff -u --label docs/cli.md --label "what neap help says" "$page" "$work/page" ||
        { echo "docs/cli.md differs from the command: 'make docs' puts it right"; exit 1; }
elif ! cmp -s "$page" "$work/page"; then
    cat "$work/page" > "$page"
fi
