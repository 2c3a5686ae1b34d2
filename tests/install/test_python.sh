# The Python module in the tree: it does nothing outside neap; inside, it says what the library in the process says.
# A stand-in for that library answers with $ANSWER.
set -eu
command -v python3 >/dev/null || { echo "python3 is not there"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONPATH=$NEAP_SOURCE_DIR/python PYTHONDONTWRITEBYTECODE=1
cd "$work"

cat >standin.c <<'EOF'
#include <stdlib.h>
const char *neap_hook_stats(void);
const char *neap_hook_stats(void) { return getenv("ANSWER"); }
EOF
${CC:-cc} -shared -fPIC standin.c -o standin.so
under() { ANSWER=$1 LD_PRELOAD=$work/standin.so python3 -W error -c "$2"; }
fail() { echo "$*"; exit 1; }
same() { # same EXPECTED GIVEN WHAT
    [ "$1" = "$2" ] || { printf '%s: expected\n%s\ngiven\n%s\n' "$3" "$1" "$2"; exit 1; }
}

# Outside.
given=$(python3 -W error -c '
import threading, neap
assert threading.active_count() == 1
assert neap.stats() is None, neap.stats()
print(neap.summary())')
same 'neap: this program does not run under neap (neap run -- PROGRAM)' "$given" "summary outside neap"

# Inside, before a device is used: the library may also answer NULL then.
under '[]' 'import neap; assert neap.stats() == [], neap.stats()'
same 'neap: no device has been used yet' "$(under '[]' 'import neap; print(neap.summary())')" "summary without devices"
same '[]' "$(env -u ANSWER LD_PRELOAD="$work/standin.so" python3 -c 'import neap; print(neap.stats())')" "no answer"

full='[{"device": "cuda:0", "ordinal": 0, "state": "run", "aside": null, "limit": 6000000000, "peak_load": 8000000000,
    "footprint": 5999999488, "peak_held": 8100000000, "caching_bytes": 10000000000, "bytes_out": 123456789012345,
    "bytes_in": 999960, "host_bytes": 2000000000, "n_iterations": 1240, "n_departures": 1, "overhead": 0.0042}]'
under "$full" 'import neap; (device,) = neap.stats(); assert device["limit"] == 6000000000 and device["aside"] is None'
same 'neap: cuda:0: run, 1,240 iterations on the plan, left it 1 time
  memory    held 6.0 GB, x 0.7500 of the peak load, 8.0 GB; limit 6.0 GB
  without   PyTorch'"'"'s own allocator would have held 10.0 GB: neap saves 40.0 %
  swapped   123.5 TB out, 1.0 MB in; host memory 2.0 GB
  overhead  0.42 % of an iteration' "$(under "$full" 'import neap; print(neap.summary())')" "summary"

# What is not known, or not yet known to this module, is no reason to fail.
same 'neap: cuda:1: observe
  memory    held 3.0 kB
  aside     another profiler has the driver
neap: a device: state not known' "$(under '[{"device": "cuda:1", "state": "observe", "limit": null, "overhead": null,
    "footprint": null, "peak_held": 3000, "aside": "another profiler has the driver", "new": [1]}, {}]' \
    'import neap; print(neap.summary())')" "summary of little"

# From many threads at once, as a logger and a data loader would.
under "$full" '
import threading, neap
errors = []
def ask():
    for _ in range(200):
        if neap.stats()[0]["n_iterations"] != 1240: errors.append(1)
threads = [threading.Thread(target=ask) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
assert not errors'

# Under the command itself, on stand-ins for the driver, its profiling library and the CUDA runtime: the module names
# every field that the library gives, and no other.
if [ -n "${NEAP_HOOK_LIBRARY:-}" ]; then
    cat >program.py <<'EOF'
import ctypes
import neap

ctypes.CDLL("libcudart.so.13", ctypes.RTLD_GLOBAL)
runtime = ctypes.CDLL(None)  # as a program sees it that was linked to the runtime
assert neap.stats() == [], neap.stats()
block = ctypes.c_void_p()
assert runtime.cudaMallocAsync(ctypes.byref(block), ctypes.c_size_t(1 << 26), None) == 0
(device,) = neap.stats()
assert device["device"] == "cuda:0" and device["state"] == "observe" and device["live"] == 1 << 26, device
given, named = set(device), set(neap.DeviceStats.__annotations__)
assert given == named, f"given and not named: {sorted(given - named)}; named and not given: {sorted(named - given)}"
assert neap.summary().startswith("neap: cuda:0: observe\n  memory    held 67.1 MB"), neap.summary()
assert runtime.cudaFreeAsync(block, None) == 0
assert neap.stats()[0]["live"] == 0
EOF
    LD_LIBRARY_PATH=$NEAP_STANDIN_DIR NEAP_CUDA_DRIVER=$NEAP_STANDIN_DIR/libcuda.so.1 \
        NEAP_CUPTI=$NEAP_STANDIN_DIR/libcupti.so.13 "$NEAP_COMMAND" run -- python3 -W error program.py 2>errors ||
        fail "under neap run: $(cat errors)"
fi

# The oldest Python that is promised can read it.
python3 -c '
import ast, pathlib, sys
for path in pathlib.Path(sys.argv[1]).glob("*.py"):
    ast.parse(path.read_text(), str(path), feature_version=(3, 9))' "$PYTHONPATH/neap"

# python -m neap is the command, wherever the path has it; and says so where it is not.
if [ -x "$NEAP_COMMAND" ]; then
    mkdir bin
    ln -s "$NEAP_COMMAND" bin/neap
    same "$("$NEAP_COMMAND" --version)" "$(PATH=$work/bin:$PATH python3 -m neap --version)" "python -m neap"
fi
python=$(python3 -c 'import sys; print(sys.executable)')
status=0
PATH=/nowhere "$python" -m neap --version 2>errors || status=$?
same 127 $status "exit code without the command"
grep -q '^neap: the command is not installed' errors || fail "$(cat errors)"
