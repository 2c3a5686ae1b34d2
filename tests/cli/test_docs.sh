# The documents and the man pages agree with the command.
set -u
bad=0
NEAP=$NEAP_COMMAND bash "$NEAP_SOURCE_DIR/scripts/docs.sh" --check || bad=1

# A page that says something else is noticed.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed 's/^| `--seed N`/| `--sed N`/' "$NEAP_SOURCE_DIR/docs/cli.md" > "$work/cli.md"
NEAP=$NEAP_COMMAND NEAP_PAGE=$work/cli.md bash "$NEAP_SOURCE_DIR/scripts/docs.sh" --check > /dev/null 2>&1 &&
    { echo "docs.sh --check passes a page with a wrong option"; bad=1; }

# Every variable that is read is explained.
cd "$NEAP_SOURCE_DIR" || exit 1
"$NEAP_COMMAND" help environment > "$work/environment"
for name in $({
    grep -oh '^ \*     NEAP_[A-Z_]*\(, NEAP_[A-Z_]*\)*' src/hook/settings.h
    grep -oh 'getenv("[A-Z_]*")' cli/*.c src/*/*.c
} | grep -o '[A-Z][A-Z_]*' | grep '^NEAP_\|^XDG_\|^NO_COLOR' | sort -u); do
    grep -qw "$name" "$work/environment" || { echo "neap help environment lacks $name"; bad=1; }
done
exit $bad
