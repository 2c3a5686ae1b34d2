# `pip install .` into a fresh virtual environment brings the command, the library it loads, and the module: without
# compiler flags, without a CUDA toolkit, with nothing but zlib to run. It goes as it came. The source package has what
# is needed to build, and nothing else.
set -eu
python3 -c 'import ensurepip, venv' 2>/dev/null || { echo "python3 has no venv module (python3-venv)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset CFLAGS CPPFLAGS LDFLAGS CUDA_HOME CUDA_PATH CMAKE_PREFIX_PATH PYTHONPATH
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
fail() { echo "$*"; exit 1; }

python3 -m venv "$work/venv" >"$work/log" 2>&1 || { cat "$work/log"; fail "no virtual environment could be made"; }
bin=$work/venv/bin
need=$(sed -n 's/^requires = \["\(.*\)"\]$/\1/p' "$NEAP_SOURCE_DIR/pyproject.toml")
PIP_DEFAULT_TIMEOUT=20 "$bin/pip" install -q --retries 1 --target "$work/backend" "$need" >"$work/log" 2>&1 ||
    { cat "$work/log"; echo "pip cannot get $need: no registry within reach"; exit 77; }

# It gets what it builds with once more.
if ! "$bin/pip" install "$NEAP_SOURCE_DIR" >"$work/log" 2>&1; then
    cat "$work/log"
    if grep -qE 'Retrying \(|NewConnectionError|ReadTimeoutError' "$work/log"; then
        echo "pip cannot get $need: the registry was within reach, and is no longer"
        exit 77
    fi
    fail "pip install failed"
fi
cd "$work"
version=$(sed -n 's/^#define NEAP_VERSION_STRING "\(.*\)"$/\1/p' "$NEAP_SOURCE_DIR/include/neap.h")
"$bin/neap" --version | grep -qF "$version" || fail "neap --version does not say $version"
"$bin/neap" plan "$NEAP_SOURCE_DIR/tests/data/traces/vgg16-100-32.neap.gz" --no-baselines --json >plan.json
"$bin/python" -W error -c '
import json, sys
import neap
assert neap.__version__ == sys.argv[1], neap.__version__
assert neap.stats() is None and "not run under neap" in neap.summary()
with open("plan.json") as file:
    plan = json.load(file)
assert plan["footprint"] == plan["load"] > 0, plan' "$version" || fail "the module does not work"
[ "$("$bin/python" -m neap --version)" = "$("$bin/neap" --version)" ] || fail "python -m neap is not the command"

# Of libraries, the system's and zlib.
needed=$(for file in "$bin/neap" "$work"/venv/lib/neap/*.so; do
    [ ! -e "$file" ] || readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
done | sort -u | grep -vE '^(libc|libm|libz|libdl|libpthread|librt|ld-linux.*)\.so' || true)
[ -z "$needed" ] || fail "a wheel must not need $needed"

# Under the command, the module speaks to the library that came with it.
if [ -n "${NEAP_HOOK_LIBRARY:-}" ]; then
    [ -e "$bin/../lib/neap/libneap_hook.so" ] || fail "libneap_hook.so was not brought"
    "$bin/neap" run -- "$bin/python" -c 'import neap; assert neap.stats() == [], neap.stats()' || fail "neap run"
fi

"$bin/pip" uninstall -q -y neap >"$work/log" 2>&1 || { cat "$work/log"; fail "pip uninstall failed"; }
left=$(find "$work/venv" -name '*neap*')
[ -z "$left" ] || fail "pip uninstall left $left"

# The source package.
(cd "$NEAP_SOURCE_DIR" && PYTHONPATH=$work/backend PYTHONDONTWRITEBYTECODE=1 "$bin/python" -c '
import sys
from scikit_build_core.build import build_sdist
build_sdist(sys.argv[1])' "$work/sdist") >"$work/log" 2>&1 || { cat "$work/log"; fail "no source package could be made"; }
tar -tzf sdist/*.tar.gz | sed 's,^[^/]*/,,' | grep -vx PKG-INFO | LC_ALL=C sort >packed
(cd "$NEAP_SOURCE_DIR" && find CMakeLists.txt LICENSE README.md pyproject.toml cli cmake include nets python src -type f \
    ! -path '*/__pycache__/*' ! -name '*~' ! -name '*.swp') | LC_ALL=C sort >wanted
diff wanted packed || fail "what the tree has (<) and the source package (>) differ"
