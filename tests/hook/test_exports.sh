# What the library shows to a program is what it means to put in front of it: a function that src/hook/runtime.c declares, and
# cmake/hook.map does not name, would stand in front of nothing.
set -u
if [ ! -f "${NEAP_HOOK_LIBRARY:-}" ]; then
    echo "skipped: the hook is not built"
    exit 77
fi
meant=$({
    sed -n 's/^int \(cu[A-Za-z0-9_]*\)(.*);$/\1/p' "$NEAP_SOURCE_DIR/src/hook/runtime.c"
    echo InitializeInjection
    echo __cudaRegisterFatBinary
    echo neap_hook_stats
    printf '%s\n' _exit _Exit # of src/hook/nothing.c
} | sort)
shown=$(nm -D --defined-only "$NEAP_HOOK_LIBRARY" | awk '$2 == "T" { print $3 }' | sed 's/@.*//' | sort)
[ "$(wc -l <<<"$meant")" -gt 8 ] || { echo "what runtime.c declares was not found"; exit 1; }
if [ -n "${NEAP_SANITIZE:-}" ]; then # it shows some of its own
    shown=$(grep -v '^__[a-z]*san\|^__sanitizer\|^__ubsan' <<<"$shown")
fi
diff <(echo "$meant") <(echo "$shown") && echo "$(wc -l <<<"$shown") functions"
