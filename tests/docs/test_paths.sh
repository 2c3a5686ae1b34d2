# Every file that a page names is there, and so is every heading that a link leads to.
#
# A name is a link's target, or a word of inline code that begins with one of this tree's folders. A page may name what a
# build or a program makes; those begin otherwise.
set -u
cd "$NEAP_SOURCE_DIR" || exit 2
bad=0 n=0

wrong() {
    echo "$1"
    bad=$((bad + 1))
}

# anchors PAGE: of its headings, as GitHub makes them
anchors() {
    grep '^#' "$1" | sed -E 's/^#+ //; s/`//g' | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}

check_link() { # check_link PAGE TARGET
    local file=${2%%#*} anchor=
    case $2 in *'#'*) anchor=${2#*#} ;; esac
    [ -z "$file" ] && file=$1 || file=$(dirname "$1")/$file
    [ -e "$file" ] || { wrong "$1: links to $2, which is not there"; return; }
    [ -z "$anchor" ] || anchors "$file" | grep -qxF -- "$anchor" || wrong "$1: links to $2: there is no such heading"
}

for page in README.md CONTRIBUTING.md docs/*.md; do
    for target in $(grep -o '](\([^)]*\))' "$page" | sed 's/^](//; s/)$//' | grep -v '^https\?:'); do
        n=$((n + 1))
        check_link "$page" "$target"
    done
    for path in $(grep -oE '`[^`]+`' "$page" | tr -d '`' | tr ' ' '\n' |
        grep -E '^(src|include|cli|nets|python|tests|bench|docs|examples|scripts|cmake)/[A-Za-z0-9_./*-]*$' | sort -u); do
        n=$((n + 1))
        compgen -G "$path" >/dev/null || wrong "$page: names $path, which is not there"
    done
done

# `tests/pool/test_fit.c` (`test_a`, `test_b`): functions of that file.
while IFS= read -r named; do
    file=$(printf '%s' "$named" | sed 's/^`\([^`]*\)`.*/\1/')
    for name in $(printf '%s' "$named" | sed 's/^`[^`]*` (//; s/[`,)]//g'); do
        n=$((n + 1))
        grep -qw -- "$name" "$file" || wrong "a page names $name of $file, which is not there"
    done
done < <(grep -ohE '`(src|tests)/[^`]+\.[ch]` \((`[a-z_0-9]+`(, )?)+\)' docs/*.md)

# Pictures are small, and shown somewhere.
for image in docs/img/*; do
    n=$((n + 1))
    [ "$(wc -c <"$image")" -le 204800 ] || wrong "$image has more than 200 KiB"
    grep -qF "img/$(basename "$image")" README.md docs/*.md || wrong "$image is on no page"
done

[ $n -gt 100 ] || wrong "only $n names were found: the test looks in the wrong way"
[ $bad -eq 0 ] && echo "$n names are right"
[ $bad -eq 0 ]
