# What bash completes, asked as bash asks: COMP_WORDS in, COMPREPLY out.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$NEAP_COMMAND" help --completion bash > "$work/script" || exit 1
bash -n "$work/script" || exit 1
touch "$work/a trace.neap"
mkdir "$work/folder"
cd "$work" || exit 1
bad=0

# expect 'ANSWER' WORD...: the last word is the one under the cursor
expect() {
    local wanted=$1 got
    shift
    got=$(bash --norc -c 'source ./script; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _neap; echo "${COMPREPLY[*]}"' bash "$@")
    if [ "$got" != "$wanted" ]; then
        echo "after '$*': expected '$wanted', got '$got'"
        bad=1
    fi
}

expect 'plan' neap pl
expect '--version' neap --v
expect '--solver' neap plan --sol
expect 'search bestfit firstfit' neap plan --solver ''
expect 'bestfit' neap plan --solver = b
expect 'search bestfit firstfit' neap plan --solver =
expect '' neap plan --seed ''
expect 'a trace.neap' neap plan a
expect 'a trace.neap' neap plan --svg a
expect 'folder' neap figures --output f
expect 'folder' neap figures -o f
expect 'departures' neap help dep
expect 'swap' neap help sw
expect '' neap nonsense ''

# Every verb, and every option of each, whatever verbs there are.
for verb in $("$NEAP_COMMAND" help --json | sed -n 's/^ *"verb": "\(.*\)",$/\1/p'); do
    expect "$verb" neap "$verb"
    for option in $("$NEAP_COMMAND" help "$verb" --json | sed -n 's/^ *"name": "\(.*\)",$/\1/p'); do
        got=$(bash --norc -c 'source ./script; COMP_WORDS=("$@"); COMP_CWORD=2; _neap; printf "%s\n" "${COMPREPLY[@]}"' \
            bash neap "$verb" "--$option")
        printf '%s\n' "$got" | grep -qxe "--$option" || { echo "neap $verb does not complete --$option"; bad=1; }
    done
done

# Behind a verb that runs a program, its own words.
if "$NEAP_COMMAND" help run > /dev/null 2>&1; then
    expect 'a trace.neap' neap run --limit 70% -- cat a
    expect 'a trace.neap' neap run --limit = 70% cat a
    expect 'a trace.neap' neap run cat --limit a
fi
exit $bad
