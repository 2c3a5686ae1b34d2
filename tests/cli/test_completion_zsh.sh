# What zsh completes: keys are typed into an interactive shell on a pseudo-terminal, and the line that comes out is read.
set -u
command -v zsh > /dev/null || { echo "skipped: there is no zsh"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/functions" "$work/home" "$work/afolder"
touch "$work/a.neap"
"$NEAP_COMMAND" help --completion zsh > "$work/functions/_neap" || exit 1
zsh -n "$work/functions/_neap" || exit 1
cd "$work" || exit 1
cat > "$work/type.zsh" << 'END'
# type.zsh: reads lines, types each with a tab behind it, and prints what became of it.
zmodload zsh/zpty || exit 77
zpty shell "HOME=$PWD/home TERM=dumb zsh -f -i"
zpty -w shell "PS1= PS2= RPS1=; unsetopt zle_bracketed_paste prompt_cr prompt_sp beep; fpath=($PWD/functions \$fpath)"
zpty -w shell "autoload -Uz compinit; compinit -u -D; stty -echo"
zpty -w shell 'say() { print -r -- "<<$BUFFER>>" > answer; BUFFER=; zle .accept-line }; zle -N say; bindkey "^Xp" say'
zpty -w shell 'bindkey "^I" complete-word; touch ready'
for i in {1..300}; do [[ -e ready ]] && break; sleep 0.1; done
[[ -e ready ]] || { print -u2 'the shell did not start'; exit 1 }
while read -r line; do
    rm -f answer
    zpty -w -n shell "$line"$'\t\x18p'
    for i in {1..300}; do [[ -s answer ]] && break; sleep 0.05; done
    cat answer
done
zpty -d shell
END
bad=0
cat > typed << 'END'
neap pl
neap plan --solv
neap plan --solver=f
neap plan --solver f
neap plan --svg a.
neap info a.
neap figures -o af
neap help dep
neap swap --zero
END
cat > wanted << 'END'
<<neap plan >>
<<neap plan --solver=>>
<<neap plan --solver=firstfit >>
<<neap plan --solver firstfit >>
<<neap plan --svg a.neap >>
<<neap info a.neap >>
<<neap figures -o afolder/>>
<<neap help departures >>
<<neap swap --zero-overhead >>
END
zsh -f type.zsh < typed > got 2> error || { cat error; exit 1; }
diff wanted got || { echo "expected (<) and completed (>)"; bad=1; }

# Every option stands in the script, whatever verbs there are.
for verb in $("$NEAP_COMMAND" help --json | sed -n 's/^ *"verb": "\(.*\)",$/\1/p'); do
    sed -n "/^    $verb)\$/,/;;/p" functions/_neap > part
    for option in $("$NEAP_COMMAND" help "$verb" --json | sed -n 's/^ *"name": "\(.*\)",$/\1/p'); do
        grep -qe "--$option[=,}[]" part || { echo "neap $verb does not complete --$option"; bad=1; }
    done
done
exit $bad
