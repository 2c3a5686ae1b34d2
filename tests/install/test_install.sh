# What `make install` leaves can be used: through pkg-config, shared and static, through find_package, and from another
# place than it was installed to. The shared library exports what neap.h declares, and nothing else.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc=${CC:-cc}

# A DESTDIR as packagers use it, then moved: no path may have been baked in.
DESTDIR=$work/stage cmake --install "$NEAP_BUILD_DIR" --prefix /opt/first >"$work/log" || { cat "$work/log"; exit 1; }
mv "$work/stage/opt/first" "$work/moved"
lib=$(dirname "$(find "$work/moved" -name libneap.a)")

cat >"$work/program.c" <<'END'
#include <neap.h>
#include <string.h>
int main(void)
{
    neap_trace *trace;
    const char *text = "neap-trace 1\nmalloc 1 512\nfree 1\n";
    if (neap_trace_parse(text, strlen(text), "text", NULL, NULL, &trace) != NEAP_OK) {
        return 1;
    }
    neap_trace_free(trace);
    return strcmp(neap_version(), NEAP_VERSION_STRING) != 0;
}
END

export PKG_CONFIG_PATH=$lib/pkgconfig
# shellcheck disable=SC2046  # lists of flags
$cc "$work/program.c" -o "$work/shared" $(pkg-config --cflags --libs neap)
LD_LIBRARY_PATH=$lib "$work/shared"
# shellcheck disable=SC2046
$cc -static "$work/program.c" -o "$work/static" $(pkg-config --static --cflags --libs neap)
"$work/static"
version=$(sed -n 's/^#define NEAP_VERSION_STRING "\(.*\)"$/\1/p' "$NEAP_SOURCE_DIR/include/neap.h")
[ "$(pkg-config --modversion neap)" = "$version" ] || { echo "neap.pc has another version than $version"; exit 1; }

cat >"$work/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.21)
project(user C)
find_package(neap 0.1 REQUIRED CONFIG)
add_executable(with_shared program.c)
target_link_libraries(with_shared PRIVATE neap::neap)
add_executable(with_static program.c)
target_link_libraries(with_static PRIVATE neap::neap_static)
END
cmake -S "$work" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/moved" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cmake --build "$work/build" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$work/build/with_shared"
"$work/build/with_static"

# Declared and exported are the same set.
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
