# Every command that README.md and docs/ show is run, and what it prints compared: see commands.py.
set -u
if [ -n "${NEAP_SANITIZE:-}" ]; then
    echo "skipped: other builds print the same, and searches need their time"
    exit 77
fi
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
here=$NEAP_SOURCE_DIR/tests/docs
cd "$NEAP_SOURCE_DIR" || exit 2
bad=0
python3 "$here/commands.py" README.md CONTRIBUTING.md docs/*.md || bad=1

# A page that shows something else is noticed: each of these lines alone.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
notices() { # notices LINE...: of a page
    printf '%s\n' "A page." "" "$@" >"$work/page.md"
    python3 "$here/commands.py" "$work/page.md" >"$work/said" 2>&1 || return 0
    echo "passes a page with:"
    printf '%s\n' "$@"
    bad=1
}
passes() {
    printf '%s\n' "A page." "" "$@" >"$work/page.md"
    python3 "$here/commands.py" "$work/page.md" >"$work/said" 2>&1 || { cat "$work/said"; bad=1; }
}
notices '    $ neap plan broken.neap'                                  # it fails, and nothing is shown
notices '    $ neap plan broken.neap' '    neap: broken.neap:4: all is well'
notices '    $ neap info resnet18-100-log.neap.gz' '    ...' '      execs 4,545' '    ...'
notices '    $ neap info resnet18-100-log.neap.gz' '    resnet18-100-log.neap.gz' # and more
notices '    $ neap plan --sed 3 three.csv'
notices '    neap swap FILE --limits 70%'
notices '    neap run --limt 70% -- python train.py'
notices '    neap plam FILE'
notices 'Look at `neap swap --swep`.'
notices '    make tests'
notices '<!-- not run: needs a GPU -->' '' '    $ neap run --limt 70% -- python train.py'
notices '<!-- numbers vary: so be it -->' '' '    $ neap info resnet18-100-log.neap.gz' '    ...' '      work 4,544' '    ...'
passes '    $ neap info resnet18-100-log.neap.gz' '    ...' '      execs 4,544' '    ...'
passes '<!-- numbers vary: so be it -->' '' '    $ neap info resnet18-100-log.neap.gz' '    ...' '      execs 45' '    ...'
exit $bad
