# fake.sh: for scripts that test verbs which run programs: a folder to work in, a library that does nothing, checks.
NEAP=${NEAP_COMMAND:?}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
export LC_ALL=C TERM=dumb XDG_CACHE_HOME=$work/cache XDG_RUNTIME_DIR=$work
for name in $(env | sed -n 's/^\(NEAP_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
unset RANK LOCAL_RANK LD_PRELOAD CUDA_INJECTION64_PATH PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 # the command itself may have a library before it
n=0 bad=0

# A sanitized library cannot be loaded into a program that is not: this one is compiled without.
echo 'int neap_fake_hook;' > "$work/fake.c"
${CC:-cc} -shared -fPIC -o "$work/libneap_hook.so" "$work/fake.c" || { echo "no C compiler for a library to load"; exit 77; }
export NEAP_HOOK_LIBRARY=$work/libneap_hook.so

neap() { "$NEAP" "$@"; }

# is NAME GOT EXPECTED
is() {
    n=$((n + 1))
    if [ "$2" != "$3" ]; then
        bad=$((bad + 1))
        printf 'FAILED: %s\n  got      %s\n  expected %s\n' "$1" "$2" "$3"
    fi
}

# fails NAME CODE TEXT COMMAND...: leaves with that code and says one line, with that text in it, on stderr alone
fails() {
    local name=$1 code=$2 text=$3 got
    shift 3
    "$@" > "$work/o" 2> "$work/e" < /dev/null
    got=$?
    is "$name: exit code" $got "$code"
    is "$name: lines" "$(wc -l < "$work/e")" 1
    is "$name: output" "$(cat "$work/o")" ""
    case $(cat "$work/e") in *"$text"*) ;; *) is "$name: text" "$(cat "$work/e")" "...$text..." ;; esac
}

finish() {
    if [ $bad -gt 0 ]; then
        echo "$bad of $n checks failed"
        exit 1
    fi
    echo "$n checks passed"
    exit 0
}
