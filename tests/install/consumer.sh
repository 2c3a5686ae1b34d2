# consumer.sh, for the other scripts here: programs that use an installed libneap, made as others would make them.
# They leave with 0 where the library works and is of the header's version.

say_log() { # say_log LOG COMMAND...: its output only where it fails
    local log=$1
    shift
    "$@" >"$log" 2>&1 || { cat "$log"; return 1; }
}

# build_consumers PREFIX WORK: WORK/{pkg,pkg-static,cmake,cmake-static} from what is installed in PREFIX; by pkg-config
# and by find_package, each with the shared and with the static library.
build_consumers() {
    local prefix=$1 work=$2 cc=${CC:-cc} lib
    lib=$(dirname "$(find "$prefix" -name libneap.a)")
    mkdir -p "$work"
    cat >"$work/program.c" <<'EOF'
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
EOF
    # shellcheck disable=SC2046  # lists of flags
    PKG_CONFIG_PATH=$lib/pkgconfig $cc "$work/program.c" -o "$work/pkg" \
        $(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs neap) || return 1
    # shellcheck disable=SC2046
    $cc -static "$work/program.c" -o "$work/pkg-static" \
        $(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --static --cflags --libs neap) || return 1

    cat >"$work/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.21)
project(user C)
find_package(neap 0.1 REQUIRED CONFIG)
add_executable(cmake program.c)
target_link_libraries(cmake PRIVATE neap::neap)
add_executable(cmake-static program.c)
target_link_libraries(cmake-static PRIVATE neap::neap_static)
set_target_properties(cmake cmake-static PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_SOURCE_DIR})
EOF
    say_log "$work/log" cmake -S "$work" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" || return 1
    say_log "$work/log" cmake --build "$work/build" || return 1
}
