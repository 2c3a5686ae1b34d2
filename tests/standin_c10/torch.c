/* torch.c: a library by the name of PyTorch's kernels, libtorch_cuda.so: it shows by their names the functions of an allocator of the
 * same interface as those of c10.c, and registers its kernels when it is loaded. */
#include <stdint.h>

#include "standin_c10/c10.h"

#define SHOWN(name, mangled)                                                                           \
    void name(void) __asm__("_ZN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator" mangled); \
    void name(void)                                                                                    \
    {                                                                                                  \
    }
SHOWN(allocate, "8allocateEm")
SHOWN(init, "4initEi")
SHOWN(limit, "17setMemoryFractionEda")
SHOWN(begin, "19beginAllocateToPoolEaSt4pairIyyESt8functionIFbP11CUstream_stEE")
SHOWN(end, "17endAllocateToPoolEaSt4pairIyyE")
SHOWN(release, "11releasePoolEaSt4pairIyyE")
SHOWN(raw_alloc, "9raw_allocEm")
SHOWN(raw_alloc_with_stream, "21raw_alloc_with_streamEmP11CUstream_st")
SHOWN(raw_delete, "10raw_deleteEPv")
SHOWN(snapshot, "8snapshotESt4pairIyyEb")
SHOWN(history, "13recordHistoryEbPFvvEm")
SHOWN(observer, "25attachOutOfMemoryObserverESt8functionIFvlmmmEE")
SHOWN(tracker, "27attachAllocatorTraceTrackerESt8functionIFvvEE")
SHOWN(share, "14shareIpcHandleEPv")
SHOWN(get_checkpoint, "18getCheckpointStateEaSt4pairIyyE")
SHOWN(set_checkpoint, "22setCheckpointPoolStateEaSt10shared_ptrIvE")
SHOWN(initialized, "11initializedEv")
static void hidden(void)
{
}

extern void *const standin_torch_table[] __asm__("_ZTVN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocatorE");
#define F(function) ((void *)(uintptr_t)(function))
void *const standin_torch_table[] = {
    0,
    0,
    F(hidden),
    F(hidden),
    F(allocate),
    F(init),
    F(limit),
    F(begin),
    F(end),
    F(release),
    F(hidden),
    F(raw_alloc),
    F(raw_alloc_with_stream),
    F(raw_delete),
    F(snapshot),
    F(history),
    F(observer),
    F(tracker),
    F(share),
    F(get_checkpoint),
    F(set_checkpoint),
    F(initialized),
    F(hidden),
    0,
};

extern void **__cudaRegisterFatBinary(void *binary) __attribute__((weak));

extern void **standin_torch_handle;
void **standin_torch_handle;

__attribute__((constructor)) static void load(void)
{
    if (__cudaRegisterFatBinary) {
        standin_torch_handle = __cudaRegisterFatBinary(0); /* kept, as nvcc has it: the call comes from here */
    }
}
