# What a test needs that puts the hook in front of the trainer, on the stand-in driver, runtime and CUPTI: an environment,
# and $work, a folder that goes. Sets $runtime: the sanitizer's library, empty where there is none.
set -u
if [ ! -f "${NEAP_HOOK_LIBRARY:-}" ]; then
    echo "skipped: the hook is not built"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

case ${NEAP_SANITIZE:-} in
*address*) runtime=libasan.so ;;
*thread*) runtime=libtsan.so ;;
*) runtime= ;;
esac
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 # the program ends with the driver in use, as programs do
export TSAN_OPTIONS=${TSAN_OPTIONS:-}:die_after_fork=0
export LD_LIBRARY_PATH=$NEAP_STANDIN_DIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} # a sanitizer's dlopen knows no RPATH
export NEAP_CUDA_DRIVER=$NEAP_STANDIN_DIR/libcuda.so.1 NEAP_CUPTI=$NEAP_STANDIN_DIR/libcupti.so.13
export STANDIN_GRANULARITY=16384 STANDIN_MEMORY=33554432 # small pages, and a small device
export XDG_RUNTIME_DIR=$work # sockets of these programs are in nobody's way
unset NEAP_LIMIT NEAP_HOOK
