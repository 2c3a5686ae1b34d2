# Where neap cannot help, or can help less: the program prints what it prints alone, one line says why, once, and memory is
# served plainly, or what must stay stays.
set -u
. "$(dirname "$0")/in_front.sh"
limit=4194304

complain() { # complain WHAT OPTION...
    echo "$1: trainer --scale=4 --pause=20 ${*:2}"
    cat got.err
    touch wrong
}

# once LINE OPTION...: that line is on stderr, one time
once() {
    [ "$(grep -c -- "$1" got.err)" -eq 1 ] || complain "there is not one line '$1'" "${@:2}"
}
never() { # never LINE OPTION...
    ! grep -q -- "$1" got.err || complain "there is a line '$1'" "${@:2}"
}

# steps_aside LINE OPTION...: from the start. No device is neap's, or there would be a report of it, and more lines.
steps_aside() {
    alone 1 "${@:2}" || return
    hooked 1 $limit "${@:2}"
    once "^neap: $1.*; neap steps aside, and the program runs as it would without it\$" "${@:2}"
    [ "$(grep -c '^neap:' got.err)" -eq 1 ] || complain "there are more lines than one" "${@:2}"
}

# goes_aside LINE OPTION...: in the middle of it. From then on nothing is seen, and there are no plans.
goes_aside() {
    alone 1 "${@:2}" || return
    hooked 1 $limit "${@:2}"
    once "^neap: $1.*; neap steps aside, and the program runs as it would without it\$" "${@:2}"
    once "^neap: cuda:0: aside  *$1" "${@:2}"
}
goes_aside_early() { # before there is a plan
    goes_aside "$@"
    once '^neap: cuda:0: no plan' "${@:2}"
}

# stays LINE OPTION...: neap goes on, and blocks that others have are counted
stays() {
    alone 1 "${@:2}" || return
    hooked 1 $limit "${@:2}"
    once "^neap: cuda:0: $1\$" "${@:2}"
    once '^neap: cuda:0: fixed  *[0-9].* that never leave' "${@:2}"
    never 'steps aside' "${@:2}"
}

# A program that neap cannot be put in front of: it makes many calls before that is sure.
orphaned() {
    program=$NEAP_HOOK_TRAINER_STATIC
    export STANDIN_DELAY_US=0
    alone 1 --iterations=500 --scale=1 || return
    hooked 1 $limit --iterations=500 --scale=1 --pause=0
    once '^neap: the program allocates by a CUDA runtime of its own .*; neap steps aside' --iterations=500
    [ "$(grep -c '^neap:' got.err)" -eq 1 ] || complain "there are more lines than one" --iterations=500
}

# One that ends before: it says so where it is the one that neap run became, which a shell is that makes way for it.
unseen() {
    program=$NEAP_HOOK_TRAINER_STATIC
    alone 1 --iterations=3 "$@" || return
    on+=(bash -c 'NEAP_PID=$$ exec "$0" "$@"')
    hooked 1 $limit --iterations=3 "$@"
    once '^neap: process [0-9]* used no CUDA memory that neap can see$' --iterations=3 "$@"
}

# A driver of before CUDA 12.4.
old_driver() {
    export LD_LIBRARY_PATH=$NEAP_STANDIN_DIR/before_12_4:$LD_LIBRARY_PATH
    on+=(NEAP_CUDA_DRIVER="$NEAP_STANDIN_DIR/before_12_4/libcuda.so.1")
    steps_aside 'the driver is too old (before CUDA 12.4)' "$@"
}

# Others that see what neap sees, where CUPTI can have several.
beside() {
    alone 1 "$@" || return
    hooked 1 $limit "$@"
    never 'steps aside' "$@"
    once '^neap: cuda:0: swapped  *[1-9]' "$@"
}
one_alone() {
    on+=(NEAP_CUPTI_ALONE=1)
    steps_aside 'CUPTI has another subscriber already' "$@"
}
older_cupti() { # one that has one alone, and is as good
    on+=(NEAP_CUPTI="$NEAP_STANDIN_DIR/cupti_13_0/libcupti.so.13")
    beside "$@"
}

no_cupti() {
    on+=(NEAP_CUPTI=/nowhere/libcupti.so)
    steps_aside 'CUPTI was not found' "$@"
}

# PyTorch's allocator is left as it is: neap goes on.
backend_kept() {
    alone 1 "$@" || return
    on+=(NEAP_KEEP_BACKEND=1)
    hooked 1 $limit "$@"
    never 'steps aside' "$@"
}

# What neap makes fail the program is told of: memory that neap serves cannot be shared with another process.
refused() {
    alone 1 --plain --ipc "$@" || return
    hooked 1 $limit --plain --ipc "$@"
    once '^neap: cuda:0: cuIpcGetMemHandle was refused: what neap serves is mapped page by page' "$@"
    never 'stay where they are' "$@"
    never 'steps aside' "$@"
}
# And where that is the runtime's own, nothing is said.
shared() {
    alone 1 --ipc "$@" || return
    hooked 1 $limit --ipc "$@"
    never 'was refused' "$@"
    never 'stay where they are' "$@"
}

more() { # where there is no sanitizer: they see nothing new in these
    [ -n "$runtime" ] && [ -z "${NEAP_SOAK:-}" ] || begin "$@"
}

begin no_cupti --iterations=8
begin old_driver --iterations=8
more old_driver --iterations=8 --plain --side
more steps_aside 'CUPTI has another subscriber already (a profiler?), and kernels cannot be seen (CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)' \
    --iterations=8 --profiled
more beside --iterations=24 --profiled=2
begin beside --iterations=24 --tool=8
more one_alone --iterations=8 --profiled=2
more older_cupti --iterations=24
more orphaned
begin unseen --threads
export STANDIN_DEVICES=2
begin goes_aside 'peer access was enabled' --iterations=16 --peer=12
more goes_aside_early 'peer access was enabled' --iterations=16 --peer=2 --side --plain
unset STANDIN_DEVICES
begin goes_aside 'CUPTI was ended for the whole process' --iterations=16 --teardown=12
more goes_aside_early 'CUPTI was ended for the whole process' --iterations=16 --teardown=2
begin goes_aside "the program looks at PyTorch's memory block by block (torch.cuda.memory_snapshot)" --iterations=24 --torch \
    --snapshot=12
more goes_aside_early "the program looks at PyTorch's memory block by block (torch.cuda.memory_snapshot)" --iterations=16 --torch \
    --snapshot=2 --side --graph --regraph=4
more backend_kept --iterations=16 --torch --snapshot=8
more refused --iterations=8
more shared --iterations=8
begin stays 'blocks that are exported or registered for others stay where they are' --iterations=16 --nic
more stays 'blocks that a CUDA graph names stay where they are' --iterations=16 --graph
more stays 'blocks whose addresses the program copies to the device stay where they are' --iterations=16 --table
more stays 'blocks that are given to kernels which keep addresses (collectives, makers of tables) stay where they are' \
    --iterations=16 --grouped=2
wait
echo "$(cat "$work"/*/runs 2>/dev/null | wc -l) runs"
! ls "$work"/*/wrong >/dev/null 2>&1
