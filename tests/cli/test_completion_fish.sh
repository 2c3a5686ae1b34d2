# What fish completes, asked with `complete -C`.
set -u
command -v fish > /dev/null || { echo "skipped: there is no fish"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work XDG_CONFIG_HOME=$work/config
"$NEAP_COMMAND" help --completion fish > "$work/script" || exit 1
fish -n "$work/script" || exit 1
touch "$work/a.neap"
mkdir "$work/afolder"
cd "$work" || exit 1
bad=0

expect() { # expect 'LINE' 'ANSWERS': without their descriptions
    local got
    got=$(fish --no-config -c 'source ./script; complete -C $argv[1]' "$1" | cut -f 1 | tr '\n' ' ')
    if [ "$got" != "$2 " ] && ! { [ -z "$got" ] && [ -z "$2" ]; }; then
        echo "after '$1': expected '$2', got '$got'"
        bad=1
    fi
}

expect 'neap pl' 'plan'
expect 'neap plan --sol' '--solver'
expect 'neap plan --solver f' 'firstfit'
expect 'neap plan --solver=f' '--solver=firstfit'
expect 'neap plan --seed ' ''
expect 'neap plan --svg a.' 'a.neap'
expect 'neap info a.' 'a.neap'
expect 'neap figures -o af' 'afolder/'
expect 'neap help dep' 'departures'
for verb in $("$NEAP_COMMAND" help --json | sed -n 's/^ *"verb": "\(.*\)",$/\1/p'); do
    fish --no-config -c 'source ./script; complete -C "neap $argv[1]"' "$verb" | cut -f 1 | grep -qx "$verb" ||
        { echo "the verb $verb is not completed"; bad=1; }
    for option in $("$NEAP_COMMAND" help "$verb" --json | sed -n 's/^ *"name": "\(.*\)",$/\1/p'); do
        fish --no-config -c 'source ./script; complete -C "neap $argv[1] --$argv[2]"' "$verb" "$option" |
            cut -f 1 | grep -qxe "--$option" || { echo "neap $verb does not complete --$option"; bad=1; }
    done
done
exit $bad
