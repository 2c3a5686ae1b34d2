/* Which driver calls matter, and where their arguments are: against the structs that CUDA itself ships; and what becomes
 * of each of the names that CUPTI tells: nobody has listed a call as harmless, or left one out, by mistake. */
#include <stdio.h>
#include <string.h>

#include "hook/core.h"
#include "standin_cupti/names.h"
#include "testing.h"

#if __has_include(<generated_cuda_meta.h>) && __has_include(<cuda.h>)
#define __CUDA_API_VERSION_INTERNAL /* NOLINT: with the older types, which the other needs */
#include <cuda.h>
#include <generated_cuda_meta.h>
#define HAS_REAL 1
#else
#define HAS_REAL 0
#endif

enum {
    NO = NP_CALL_NOWHERE,
    N_LISTED = 68, /* calls in the table of calls.c */
};

/* ---- offsets ---- */

#if HAS_REAL

#define AT(call, field) offsetof(call##_params, field)

typedef struct place {
    const char *name;
    size_t to, from, bytes, stream;
} place;

static void test_offsets(void **state)
{
    /* clang-format off */
    static const place places[] = {
        {"cuLaunchKernel", AT(cuLaunchKernel, kernelParams), AT(cuLaunchKernel, extra), AT(cuLaunchKernel, f), AT(cuLaunchKernel, hStream)},
        {"cuLaunchKernel_ptsz", AT(cuLaunchKernel_ptsz, kernelParams), AT(cuLaunchKernel_ptsz, extra), AT(cuLaunchKernel_ptsz, f), AT(cuLaunchKernel_ptsz, hStream)},
        {"cuLaunchCooperativeKernel", AT(cuLaunchCooperativeKernel, kernelParams), NO, AT(cuLaunchCooperativeKernel, f), AT(cuLaunchCooperativeKernel, hStream)},
        {"cuLaunchCooperativeKernel_ptsz", AT(cuLaunchCooperativeKernel_ptsz, kernelParams), NO, AT(cuLaunchCooperativeKernel_ptsz, f), AT(cuLaunchCooperativeKernel_ptsz, hStream)},
        {"cuLaunchKernelEx", AT(cuLaunchKernelEx, kernelParams), AT(cuLaunchKernelEx, extra), AT(cuLaunchKernelEx, f), NO},
        {"cuLaunchKernelEx_ptsz", AT(cuLaunchKernelEx_ptsz, kernelParams), AT(cuLaunchKernelEx_ptsz, extra), AT(cuLaunchKernelEx_ptsz, f), NO},
        {"cuMemcpy", AT(cuMemcpy, dst), AT(cuMemcpy, src), AT(cuMemcpy, ByteCount), NO},
        {"cuMemcpy_ptds", AT(cuMemcpy_ptds, dst), AT(cuMemcpy_ptds, src), AT(cuMemcpy_ptds, ByteCount), NO},
        {"cuMemcpyAsync", AT(cuMemcpyAsync, dst), AT(cuMemcpyAsync, src), AT(cuMemcpyAsync, ByteCount), AT(cuMemcpyAsync, hStream)},
        {"cuMemcpyAsync_ptsz", AT(cuMemcpyAsync_ptsz, dst), AT(cuMemcpyAsync_ptsz, src), AT(cuMemcpyAsync_ptsz, ByteCount), AT(cuMemcpyAsync_ptsz, hStream)},
        {"cuMemcpyHtoD_v2", AT(cuMemcpyHtoD_v2, dstDevice), AT(cuMemcpyHtoD_v2, srcHost), AT(cuMemcpyHtoD_v2, ByteCount), NO},
        {"cuMemcpyHtoD_v2_ptds", AT(cuMemcpyHtoD_v2_ptds, dstDevice), AT(cuMemcpyHtoD_v2_ptds, srcHost), AT(cuMemcpyHtoD_v2_ptds, ByteCount), NO},
        {"cuMemcpyHtoDAsync_v2", AT(cuMemcpyHtoDAsync_v2, dstDevice), AT(cuMemcpyHtoDAsync_v2, srcHost), AT(cuMemcpyHtoDAsync_v2, ByteCount), AT(cuMemcpyHtoDAsync_v2, hStream)},
        {"cuMemcpyHtoDAsync_v2_ptsz", AT(cuMemcpyHtoDAsync_v2_ptsz, dstDevice), AT(cuMemcpyHtoDAsync_v2_ptsz, srcHost), AT(cuMemcpyHtoDAsync_v2_ptsz, ByteCount), AT(cuMemcpyHtoDAsync_v2_ptsz, hStream)},
        {"cuMemcpyDtoH_v2", AT(cuMemcpyDtoH_v2, dstHost), AT(cuMemcpyDtoH_v2, srcDevice), AT(cuMemcpyDtoH_v2, ByteCount), NO},
        {"cuMemcpyDtoH_v2_ptds", AT(cuMemcpyDtoH_v2_ptds, dstHost), AT(cuMemcpyDtoH_v2_ptds, srcDevice), AT(cuMemcpyDtoH_v2_ptds, ByteCount), NO},
        {"cuMemcpyDtoHAsync_v2", AT(cuMemcpyDtoHAsync_v2, dstHost), AT(cuMemcpyDtoHAsync_v2, srcDevice), AT(cuMemcpyDtoHAsync_v2, ByteCount), AT(cuMemcpyDtoHAsync_v2, hStream)},
        {"cuMemcpyDtoHAsync_v2_ptsz", AT(cuMemcpyDtoHAsync_v2_ptsz, dstHost), AT(cuMemcpyDtoHAsync_v2_ptsz, srcDevice), AT(cuMemcpyDtoHAsync_v2_ptsz, ByteCount), AT(cuMemcpyDtoHAsync_v2_ptsz, hStream)},
        {"cuMemcpyDtoD_v2", AT(cuMemcpyDtoD_v2, dstDevice), AT(cuMemcpyDtoD_v2, srcDevice), AT(cuMemcpyDtoD_v2, ByteCount), NO},
        {"cuMemcpyDtoD_v2_ptds", AT(cuMemcpyDtoD_v2_ptds, dstDevice), AT(cuMemcpyDtoD_v2_ptds, srcDevice), AT(cuMemcpyDtoD_v2_ptds, ByteCount), NO},
        {"cuMemcpyDtoDAsync_v2", AT(cuMemcpyDtoDAsync_v2, dstDevice), AT(cuMemcpyDtoDAsync_v2, srcDevice), AT(cuMemcpyDtoDAsync_v2, ByteCount), AT(cuMemcpyDtoDAsync_v2, hStream)},
        {"cuMemcpyDtoDAsync_v2_ptsz", AT(cuMemcpyDtoDAsync_v2_ptsz, dstDevice), AT(cuMemcpyDtoDAsync_v2_ptsz, srcDevice), AT(cuMemcpyDtoDAsync_v2_ptsz, ByteCount), AT(cuMemcpyDtoDAsync_v2_ptsz, hStream)},
        {"cuMemsetD8_v2", AT(cuMemsetD8_v2, dstDevice), NO, AT(cuMemsetD8_v2, N), NO},
        {"cuMemsetD8_v2_ptds", AT(cuMemsetD8_v2_ptds, dstDevice), NO, AT(cuMemsetD8_v2_ptds, N), NO},
        {"cuMemsetD16_v2", AT(cuMemsetD16_v2, dstDevice), NO, NO, NO},
        {"cuMemsetD16_v2_ptds", AT(cuMemsetD16_v2_ptds, dstDevice), NO, NO, NO},
        {"cuMemsetD32_v2", AT(cuMemsetD32_v2, dstDevice), NO, NO, NO},
        {"cuMemsetD32_v2_ptds", AT(cuMemsetD32_v2_ptds, dstDevice), NO, NO, NO},
        {"cuMemsetD8Async", AT(cuMemsetD8Async, dstDevice), NO, AT(cuMemsetD8Async, N), AT(cuMemsetD8Async, hStream)},
        {"cuMemsetD8Async_ptsz", AT(cuMemsetD8Async_ptsz, dstDevice), NO, AT(cuMemsetD8Async_ptsz, N), AT(cuMemsetD8Async_ptsz, hStream)},
        {"cuMemsetD16Async", AT(cuMemsetD16Async, dstDevice), NO, NO, AT(cuMemsetD16Async, hStream)},
        {"cuMemsetD16Async_ptsz", AT(cuMemsetD16Async_ptsz, dstDevice), NO, NO, AT(cuMemsetD16Async_ptsz, hStream)},
        {"cuMemsetD32Async", AT(cuMemsetD32Async, dstDevice), NO, NO, AT(cuMemsetD32Async, hStream)},
        {"cuMemsetD32Async_ptsz", AT(cuMemsetD32Async_ptsz, dstDevice), NO, NO, AT(cuMemsetD32Async_ptsz, hStream)},
        {"cuMemsetD2D8Async", AT(cuMemsetD2D8Async, dstDevice), NO, NO, AT(cuMemsetD2D8Async, hStream)},
        {"cuMemsetD2D8Async_ptsz", AT(cuMemsetD2D8Async_ptsz, dstDevice), NO, NO, AT(cuMemsetD2D8Async_ptsz, hStream)},
        {"cuMemsetD2D16Async", AT(cuMemsetD2D16Async, dstDevice), NO, NO, AT(cuMemsetD2D16Async, hStream)},
        {"cuMemsetD2D16Async_ptsz", AT(cuMemsetD2D16Async_ptsz, dstDevice), NO, NO, AT(cuMemsetD2D16Async_ptsz, hStream)},
        {"cuMemsetD2D32Async", AT(cuMemsetD2D32Async, dstDevice), NO, NO, AT(cuMemsetD2D32Async, hStream)},
        {"cuMemsetD2D32Async_ptsz", AT(cuMemsetD2D32Async_ptsz, dstDevice), NO, NO, AT(cuMemsetD2D32Async_ptsz, hStream)},
        {"cuGraphLaunch", AT(cuGraphLaunch, hGraph), NO, NO, AT(cuGraphLaunch, hStream)},
        {"cuGraphLaunch_ptsz", AT(cuGraphLaunch_ptsz, hGraphExec), NO, NO, AT(cuGraphLaunch_ptsz, hStream)},
        {"cuStreamDestroy", NO, NO, NO, AT(cuStreamDestroy, hStream)},
        {"cuStreamDestroy_v2", NO, NO, NO, AT(cuStreamDestroy_v2, hStream)},
        {"cuStreamBeginCapture", NO, NO, NO, AT(cuStreamBeginCapture, hStream)},
        {"cuStreamBeginCapture_ptsz", NO, NO, NO, AT(cuStreamBeginCapture_ptsz, hStream)},
        {"cuStreamBeginCapture_v2", NO, NO, NO, AT(cuStreamBeginCapture_v2, hStream)},
        {"cuStreamBeginCapture_v2_ptsz", NO, NO, NO, AT(cuStreamBeginCapture_v2_ptsz, hStream)},
        {"cuStreamBeginCaptureToGraph", NO, NO, NO, AT(cuStreamBeginCaptureToGraph, hStream)},
        {"cuStreamBeginCaptureToGraph_ptsz", NO, NO, NO, AT(cuStreamBeginCaptureToGraph_ptsz, hStream)},
        {"cuStreamEndCapture", AT(cuStreamEndCapture, phGraph), NO, NO, AT(cuStreamEndCapture, hStream)},
        {"cuStreamEndCapture_ptsz", AT(cuStreamEndCapture_ptsz, phGraph), NO, NO, AT(cuStreamEndCapture_ptsz, hStream)},
        {"cuGraphInstantiate", AT(cuGraphInstantiate, phGraphExec), AT(cuGraphInstantiate, hGraph), NO, NO},
        {"cuGraphInstantiate_v2", AT(cuGraphInstantiate_v2, phGraphExec), AT(cuGraphInstantiate_v2, hGraph), NO, NO},
        {"cuGraphInstantiateWithFlags", AT(cuGraphInstantiateWithFlags, phGraphExec), AT(cuGraphInstantiateWithFlags, hGraph), NO, NO},
        {"cuGraphInstantiateWithParams", AT(cuGraphInstantiateWithParams, phGraphExec), AT(cuGraphInstantiateWithParams, hGraph), NO, NO},
        {"cuGraphInstantiateWithParams_ptsz", AT(cuGraphInstantiateWithParams_ptsz, phGraphExec), AT(cuGraphInstantiateWithParams_ptsz, hGraph), NO, NO},
        {"cuGraphExecDestroy", AT(cuGraphExecDestroy, hGraphExec), NO, NO, NO},
        {"cuGraphDestroy", AT(cuGraphDestroy, hGraph), NO, NO, NO},
        {"cuIpcGetMemHandle", AT(cuIpcGetMemHandle, dptr), NO, NO, NO},
        {"cuMemRetainAllocationHandle", AT(cuMemRetainAllocationHandle, addr), NO, NO, NO},
        {"cuMemGetHandleForAddressRange", AT(cuMemGetHandleForAddressRange, dptr), NO, NO, NO},
        {"cuTexObjectCreate", AT(cuTexObjectCreate, pResDesc), NO, sizeof(CUDA_RESOURCE_DESC), NO},
        {"cuSurfObjectCreate", AT(cuSurfObjectCreate, pResDesc), NO, sizeof(CUDA_RESOURCE_DESC), NO},
        {"cuTexRefSetAddress_v2", AT(cuTexRefSetAddress_v2, dptr), NO, NO, NO},
        {"cuTexRefSetAddress2D_v2", AT(cuTexRefSetAddress2D_v2, dptr), NO, NO, NO},
        {"cuTexRefSetAddress2D_v3", AT(cuTexRefSetAddress2D_v3, dptr), NO, NO, NO},
        {"cuMemPoolSetAccess", NO, NO, NO, NO},
        {"cuMulticastBindAddr", AT(cuMulticastBindAddr, memptr), NO, NO, NO},
        {"cuGraphClone", AT(cuGraphClone, phGraphClone), AT(cuGraphClone, originalGraph), NO, NO},
        {"cuGraphCreate", AT(cuGraphCreate, phGraph), NO, NO, NO},
        {"cuGraphAddChildGraphNode", AT(cuGraphAddChildGraphNode, hGraph), AT(cuGraphAddChildGraphNode, childGraph), NO, NO},
        {"cuGraphAddKernelNode", AT(cuGraphAddKernelNode, hGraph), NO, NO, NO},
        {"cuGraphAddKernelNode_v2", AT(cuGraphAddKernelNode_v2, hGraph), NO, NO, NO},
        {"cuGraphAddMemcpyNode", AT(cuGraphAddMemcpyNode, hGraph), NO, NO, NO},
        {"cuGraphAddMemsetNode", AT(cuGraphAddMemsetNode, hGraph), NO, NO, NO},
        {"cuGraphAddNode", AT(cuGraphAddNode, hGraph), NO, NO, NO},
        {"cuGraphAddNode_v2", AT(cuGraphAddNode_v2, hGraph), NO, NO, NO},
        {"cuGraphExecUpdate", AT(cuGraphExecUpdate, hGraphExec), AT(cuGraphExecUpdate, hGraph), NO, NO},
        {"cuGraphExecUpdate_v2", AT(cuGraphExecUpdate_v2, hGraphExec), AT(cuGraphExecUpdate_v2, hGraph), NO, NO},
        {"cuGraphExecChildGraphNodeSetParams", AT(cuGraphExecChildGraphNodeSetParams, hGraphExec), AT(cuGraphExecChildGraphNodeSetParams, childGraph), NO, NO},
        {"cuGraphExecKernelNodeSetParams", AT(cuGraphExecKernelNodeSetParams, hGraphExec), NO, NO, NO},
        {"cuGraphExecKernelNodeSetParams_v2", AT(cuGraphExecKernelNodeSetParams_v2, hGraphExec), NO, NO, NO},
        {"cuGraphExecMemcpyNodeSetParams", AT(cuGraphExecMemcpyNodeSetParams, hGraphExec), NO, NO, NO},
        {"cuGraphExecMemsetNodeSetParams", AT(cuGraphExecMemsetNodeSetParams, hGraphExec), NO, NO, NO},
        {"cuGraphExecNodeSetParams", AT(cuGraphExecNodeSetParams, hGraphExec), NO, NO, NO},
        {"cuMemcpy2D_v2", AT(cuMemcpy2D_v2, pCopy), NO, sizeof(CUDA_MEMCPY2D), NO},
        {"cuMemcpy2D_v2_ptds", AT(cuMemcpy2D_v2_ptds, pCopy), NO, sizeof(CUDA_MEMCPY2D), NO},
        {"cuMemcpy2DUnaligned_v2", AT(cuMemcpy2DUnaligned_v2, pCopy), NO, sizeof(CUDA_MEMCPY2D), NO},
        {"cuMemcpy2DUnaligned_v2_ptds", AT(cuMemcpy2DUnaligned_v2_ptds, pCopy), NO, sizeof(CUDA_MEMCPY2D), NO},
        {"cuMemcpy2DAsync_v2", AT(cuMemcpy2DAsync_v2, pCopy), NO, sizeof(CUDA_MEMCPY2D), AT(cuMemcpy2DAsync_v2, hStream)},
        {"cuMemcpy2DAsync_v2_ptsz", AT(cuMemcpy2DAsync_v2_ptsz, pCopy), NO, sizeof(CUDA_MEMCPY2D), AT(cuMemcpy2DAsync_v2_ptsz, hStream)},
        {"cuMemcpy3D_v2", AT(cuMemcpy3D_v2, pCopy), NO, sizeof(CUDA_MEMCPY3D), NO},
        {"cuMemcpy3D_v2_ptds", AT(cuMemcpy3D_v2_ptds, pCopy), NO, sizeof(CUDA_MEMCPY3D), NO},
        {"cuMemcpy3DAsync_v2", AT(cuMemcpy3DAsync_v2, pCopy), NO, sizeof(CUDA_MEMCPY3D), AT(cuMemcpy3DAsync_v2, hStream)},
        {"cuMemcpy3DAsync_v2_ptsz", AT(cuMemcpy3DAsync_v2_ptsz, pCopy), NO, sizeof(CUDA_MEMCPY3D), AT(cuMemcpy3DAsync_v2_ptsz, hStream)},    };
    /* clang-format on */
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const place *p = &places[i];
        bool per_thread;
        const np_hook_call *call = np_hook_call_find(p->name, &per_thread);
        if (!call || call->kind == NP_CALL_UNKNOWN) {
            test_fail(__FILE__, __LINE__, "%s is not listed", p->name);
        }
        if (call->to != p->to || call->from != p->from || call->bytes != p->bytes || call->stream != p->stream) {
            test_fail(__FILE__, __LINE__, "%s: %u %u %u %u, and not %zu %zu %zu %zu", p->name, call->to, call->from,
                      call->bytes, call->stream, p->to, p->from, p->bytes, p->stream);
        }
        ASSERT_EQ(per_thread, strstr(p->name, "_pt") != NULL);
    }
}

/* What sight.c reads of a launch's description. */
static void test_launch_description(void **state)
{
    (void)state;
    ASSERT_EQ(offsetof(CUlaunchConfig, hStream), 32);
    ASSERT_EQ(offsetof(CUlaunchConfig, attrs), 40);
    ASSERT_EQ(offsetof(CUlaunchConfig, numAttrs), 48);
    ASSERT_EQ(sizeof(CUlaunchAttribute), 72);
    ASSERT_EQ(offsetof(CUlaunchAttribute, value), 8);
    ASSERT_EQ(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6);
    ASSERT_EQ((uintptr_t)CU_LAUNCH_PARAM_END, 0);
    ASSERT_EQ((uintptr_t)CU_LAUNCH_PARAM_BUFFER_POINTER, 1);
    ASSERT_EQ((uintptr_t)CU_LAUNCH_PARAM_BUFFER_SIZE, 2);
    ASSERT_EQ((uintptr_t)CU_STREAM_LEGACY, (uintptr_t)NP_HOOK_LEGACY);
    ASSERT_EQ((uintptr_t)CU_STREAM_PER_THREAD, 2);
}

#else

static void test_offsets(void **state)
{
    (void)state;
    SKIP("there is no generated_cuda_meta.h to compare with");
}

static void test_launch_description(void **state)
{
    (void)state;
    SKIP("there is no cuda.h to compare with");
}

#endif

/* ---- names ---- */

static const np_hook_call *find(const char *name)
{
    bool per_thread;
    return np_hook_call_find(name, &per_thread);
}

static bool begins_like(const char *name, const char *begin)
{
    return strncmp(name, begin, strlen(begin)) == 0;
}

/* What is neither listed nor harmless, and is to be so: everything comes home before it. Old interfaces, graphics, copies of
 * arrays and between devices, nodes put into graphs by hand, writes to memory by streams, and what is to come. */
static const char *const expected_unknown[] = {
    "cu64",
    "cuBinaryFree",
    "cuCheckpoint",
    "cuCompilePtx",
    "cuD3D",
    "cuDevResource",
    "cuDevSmResource",
    "cuEGL",
    "cuFlushGPUDirect",
    "cuFutureGather",
    "cuGL",
    "cuGraphAdd",
    "cuGraphBatchMemOp",
    "cuGraphChildGraph",
    "cuGraphConditional",
    "cuGraphDestroyNode",
    "cuGraphEvent",
    "cuGraphExec",
    "cuGraphExternal",
    "cuGraphHost",
    "cuGraphKernelNode",
    "cuGraphMem",
    "cuGraphNodeSet",
    "cuGraphics",
    "cuLaunch",
    "cuMemBatch",
    "cuMemDiscard",
    "cuMemPeer",
    "cuMemPrefetch",
    "cuMemSetMemPool",
    "cuMemcpy",
    "cuMemset",
    "cuMultiKernel",
    "cuNN",
    "cuNVN",
    "cuParam",
    "cuSemaphore",
    "cuStreamAttach",
    "cuStreamBatch",
    "cuStreamWaitValue",
    "cuStreamWriteValue",
    "cuSurfRef",
    "cuTexRef",
    "cuVDPAU",
    "cuWGL",
};

static bool is_expected_unknown(const char *name)
{
    for (size_t i = 0; i < sizeof expected_unknown / sizeof *expected_unknown; i++) {
        if (begins_like(name, expected_unknown[i])) {
            return true;
        }
    }
    return false;
}

static void test_unknown_names(void **state)
{
    size_t n_unknown = 0;
    size_t n_listed = 0;
    (void)state;
    ASSERT_GT(n_driver_names, 700);
    for (size_t i = 0; i < n_driver_names; i++) {
        const np_hook_call *call = find(driver_names[i]);
        bool is_unknown = call && call->kind == NP_CALL_UNKNOWN;
        if (is_unknown && !is_expected_unknown(driver_names[i])) {
            test_fail(__FILE__, __LINE__, "%s is unknown, and was not expected to be", driver_names[i]);
        }
        n_unknown += is_unknown;
        n_listed += call && !is_unknown;
    }
    ASSERT_GT(n_unknown, 300);
    ASSERT_GT(n_listed, 70);
}

/* Each of the listed ones has a name that CUPTI knows: one that was misspelt would never be seen. */
static void test_listed_names(void **state)
{
    size_t n_found = 0;
    const np_hook_call *last = NULL;
    (void)state;
    for (size_t i = 0; i < n_driver_names; i++) {
        const np_hook_call *call = find(driver_names[i]);
        if (call && call->kind != NP_CALL_UNKNOWN && call != last) {
            ASSERT_TRUE(begins_like(driver_names[i], call->name));
            n_found += strcmp(driver_names[i], call->name) == 0;
            last = call;
        }
    }
    ASSERT_EQ(n_found, N_LISTED);
}

/* What touches memory, gives work, or makes others hold pages, is not harmless, whatever its name begins with. */
static void test_never_harmless(void **state)
{
    static const char *const parts[] = {
        "Memcpy",     "Memset",          "MemPrefetch",   "MemDiscard",    "MemOp",           "WriteValue",
        "WaitValue",  "cuLaunch",        "GraphLaunch",   "SetParams",     "ExecUpdate",      "MulticastBindAddr",
        "GraphClone", "AddKernelNode",   "AddMemcpyNode", "AddMemsetNode", "AddChildGraph",   "AddNode",
        "SetAddress", "TexObjectCreate", "BatchAsync",    "GetMemHandle",  "ForAddressRange", "RetainAllocation",
        "EnablePeer", "BeginCapture",    "EndCapture",    "StreamDestroy", "GraphDestroy",    "GraphExecDestroy",
        "Unload",     "Instantiate",
    };
    static const char *const except[] = {"cuLaunchHostFunc", "cuMemcpyGetAttr", "cuGraphMemcpyNodeGet",
                                         "cuGraphMemsetNodeGet"};
    (void)state;
    for (size_t i = 0; i < n_driver_names; i++) {
        const char *name = driver_names[i];
        bool is_excepted = false;
        for (size_t k = 0; k < sizeof except / sizeof *except; k++) {
            is_excepted |= begins_like(name, except[k]);
        }
        for (size_t k = 0; k < sizeof parts / sizeof *parts && !is_excepted; k++) {
            if (strstr(name, parts[k]) && !find(name)) {
                test_fail(__FILE__, __LINE__, "%s counts as harmless", name);
            }
        }
    }
}

/* Names that no list has: those to come are unknown until somebody has looked at them. */
static void test_new_names(void **state)
{
    bool per_thread = false;
    const np_hook_call *call = np_hook_call_find("cuNobodyKnows_ptsz", &per_thread);
    (void)state;
    ASSERT_TRUE(call && call->kind == NP_CALL_UNKNOWN);
    ASSERT_TRUE(per_thread);
    call = np_hook_call_find("cuMemcpyAsync_v3", &per_thread);
    ASSERT_TRUE(call && call->kind == NP_CALL_UNKNOWN);
    ASSERT_FALSE(per_thread);
    call = np_hook_call_find("cuLaunchKernel_ptsz", &per_thread);
    ASSERT_TRUE(call && call->kind == NP_CALL_LAUNCH);
    ASSERT_TRUE(per_thread);
    ASSERT_TRUE(np_hook_call_find("_ptsz", &per_thread) != NULL);
    ASSERT_TRUE(np_hook_call_find("", &per_thread) != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offsets),        cmocka_unit_test(test_launch_description),
        cmocka_unit_test(test_unknown_names),  cmocka_unit_test(test_listed_names),
        cmocka_unit_test(test_never_harmless), cmocka_unit_test(test_new_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
