# What `make install` leaves can be used: through pkg-config, shared and static, through find_package, and from another
# place than it was installed to. The shared library exports what neap.h declares, and nothing else.
set -eu
. "$NEAP_SOURCE_DIR/tests/install/consumer.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc=${CC:-cc}

# A DESTDIR as packagers use it, then moved: no path may have been baked in.
DESTDIR=$work/stage cmake --install "$NEAP_BUILD_DIR" --prefix /opt/first >"$work/log" || { cat "$work/log"; exit 1; }
mv "$work/stage/opt/first" "$work/moved"
lib=$(dirname "$(find "$work/moved" -name libneap.a)")

build_consumers "$work/moved" "$work/user"
for program in pkg pkg-static cmake cmake-static; do
    LD_LIBRARY_PATH=$lib "$work/user/$program" || { echo "the program made by $program does not work"; exit 1; }
done
version=$(sed -n 's/^#define NEAP_VERSION_STRING "\(.*\)"$/\1/p' "$NEAP_SOURCE_DIR/include/neap.h")
[ "$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --modversion neap)" = "$version" ] ||
    { echo "neap.pc has another version than $version"; exit 1; }

# Declared and exported are the same set.
# Before 1.0 each minor version is an interface of its own: a program linked to one must not get another.
soname=$(objdump -p "$lib/libneap.so" | awk '$1 == "SONAME" { print $2 }')
version=$(sed -n 's/^#define NEAP_VERSION_STRING "\(0\.[0-9]*\)\..*/\1/p' "$NEAP_SOURCE_DIR/include/neap.h")
[ -n "$version" ] && [ "$soname" != "libneap.so.$version" ] && { echo "the library is $soname, not libneap.so.$version"; exit 1; }
nm -D --defined-only "$lib/libneap.so" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort >"$work/exported"
$cc -E -P "$work/moved/include/neap.h" | grep -v '^typedef' | grep -o '\bneap_[a-z0-9_]*(' | tr -d '(' | sort -u \
    >"$work/declared"
diff "$work/declared" "$work/exported" || { echo "what neap.h declares (<) and libneap.so exports (>) differ"; exit 1; }

# The header stands alone, in C++ too.
if command -v clang >/dev/null; then
    clang -x c++ -std=c++11 -fsyntax-only -Wall -Wextra -Wpedantic -Werror "$work/moved/include/neap.h"
fi
if [ -x "$NEAP_COMMAND" ]; then
    "$work/moved/bin/neap" --version | grep -qF "$version"
fi
# Where the command looks for it, seen from its own place.
if [ -n "${NEAP_HOOK_LIBRARY:-}" ]; then
    [ -e "$work/moved/bin/../lib/neap/libneap_hook.so" ] || { echo "libneap_hook.so was not installed"; exit 1; }
fi
