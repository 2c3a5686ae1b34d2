# Every man page: no warning from groff, every option on it, and the words of the command.
set -u
command -v groff > /dev/null || { echo "skipped: there is no groff"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
fail() {
    echo "$*"
    bad=1
}

# page NAME ARGUMENT...: as text, in one line
page() {
    local name=$1
    shift
    "$NEAP_COMMAND" help --man "$@" > "$work/$name.1" || fail "no page $name"
    groff -man -ww -Tascii -P-cbou -rLL=200n "$work/$name.1" > "$work/text" 2> "$work/warnings" || fail "groff fails on $name"
    [ -s "$work/warnings" ] && fail "$name: $(cat "$work/warnings")"
    tr -s ' \n' ' ' < "$work/text" > "$work/line"
}

page neap
for verb in $("$NEAP_COMMAND" help --json | sed -n 's/^ *"verb": "\(.*\)",$/\1/p'); do
    grep -q "neap $verb \[options\]" "$work/line" || fail "neap(1) does not name $verb"
done
for topic in $("$NEAP_COMMAND" help --json | sed -n 's/^ *"topic": "\(.*\)",$/\1/p'); do
    title=$(printf '%s' "$topic" | tr 'a-z-' 'A-Z ')
    grep -qx "$title" "$work/text" || fail "neap(1) has no section $title"
done

for verb in $("$NEAP_COMMAND" help --json | sed -n 's/^ *"verb": "\(.*\)",$/\1/p'); do
    page "neap-$verb" "$verb"
    summary=$("$NEAP_COMMAND" help "$verb" --json | sed -n '0,/"summary"/s/^ *"summary": "\(.*\)",$/\1/p')
    grep -qF "neap-$verb - $summary" "$work/line" || fail "neap-$verb(1) has another summary"
    for option in $("$NEAP_COMMAND" help "$verb" --json | sed -n 's/^ *"name": "\(.*\)",$/\1/p'); do
        grep -qe "--$option\( \|\$\)" "$work/text" || fail "neap-$verb(1) lacks --$option"
    done
done

# What the build has made is what the command says.
if [ -d "$NEAP_BUILD_DIR/share/man" ]; then
    for file in "$NEAP_BUILD_DIR"/share/man/man1/*.1; do
        cmp -s "$file" "$work/$(basename "$file")" || fail "$file is not what neap help --man prints"
    done
    for shell in bash-completion/completions/neap:bash zsh/site-functions/_neap:zsh fish/vendor_completions.d/neap.fish:fish; do
        "$NEAP_COMMAND" help --completion "${shell#*:}" | cmp -s - "$NEAP_BUILD_DIR/share/${shell%:*}" ||
            fail "share/${shell%:*} is not what neap help --completion prints"
    done
fi
exit $bad
