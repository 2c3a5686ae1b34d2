# Completion scripts and man pages are installed where shells and man look, one page for every verb.
set -eu
[ -x "$NEAP_COMMAND" ] || { echo "skipped: the command is not built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
DESTDIR=$work cmake --install "$NEAP_BUILD_DIR" --prefix /usr >"$work/log" || { cat "$work/log"; exit 1; }
share=$work/usr/share
for file in bash-completion/completions/neap zsh/site-functions/_neap fish/vendor_completions.d/neap.fish man/man1/neap.1; do
    [ -s "$share/$file" ] || { echo "$file is not installed"; exit 1; }
done
verbs=$("$NEAP_COMMAND" help --json | sed -n 's/^ *"verb": "\(.*\)",$/\1/p')
for verb in $verbs; do
    [ -s "$share/man/man1/neap-$verb.1" ] || { echo "there is no page for neap $verb"; exit 1; }
done
pages=$(ls "$share/man/man1" | wc -l)
[ "$pages" = $(($(echo "$verbs" | wc -w) + 1)) ] || { echo "there are $pages pages for:" $verbs; exit 1; }
