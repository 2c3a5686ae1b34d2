/* calls.c: which driver calls matter.
 *
 * CUPTI gives a call's arguments as a struct in their order, each aligned to its size: the offsets below. What is
 * not listed, neither as touching memory nor as harmless, is unknown: before it everything comes home. */
#include <string.h>

#include "hook/core.h"

#define NO NP_CALL_NOWHERE

/* clang-format off */
static const np_hook_call calls[] = {
    /* of launches: `to` is where kernelParams stands, `from` where extra does, `bytes` where the function does */
    {"cuLaunchKernel",              NULL,          NP_CALL_LAUNCH,        48,  56, 0,  40},
    {"cuLaunchCooperativeKernel",   NULL,          NP_CALL_LAUNCH,        48,  NO, 0,  40},
    {"cuLaunchKernelEx",            NULL,          NP_CALL_LAUNCH_EX,     16,  24, 8,  NO},
    {"cuMemcpy",                    "memcpy",      NP_CALL_COPY,          0,   8,  16, NO},
    {"cuMemcpyAsync",               "memcpy",      NP_CALL_COPY,          0,   8,  16, 24},
    {"cuMemcpyHtoD_v2",             "memcpy.htod", NP_CALL_COPY,          0,   8,  16, NO},
    {"cuMemcpyHtoDAsync_v2",        "memcpy.htod", NP_CALL_COPY,          0,   8,  16, 24},
    {"cuMemcpyDtoH_v2",             "memcpy.dtoh", NP_CALL_COPY,          0,   8,  16, NO},
    {"cuMemcpyDtoHAsync_v2",        "memcpy.dtoh", NP_CALL_COPY,          0,   8,  16, 24},
    {"cuMemcpyDtoD_v2",             "memcpy.dtod", NP_CALL_COPY,          0,   8,  16, NO},
    {"cuMemcpyDtoDAsync_v2",        "memcpy.dtod", NP_CALL_COPY,          0,   8,  16, 24},
    {"cuMemsetD8_v2",               "memset",      NP_CALL_COPY,          0,   NO, 16, NO},
    {"cuMemsetD16_v2",              "memset",      NP_CALL_COPY,          0,   NO, NO, NO},
    {"cuMemsetD32_v2",              "memset",      NP_CALL_COPY,          0,   NO, NO, NO},
    {"cuMemsetD8Async",             "memset",      NP_CALL_COPY,          0,   NO, 16, 24},
    {"cuMemsetD16Async",            "memset",      NP_CALL_COPY,          0,   NO, NO, 24},
    {"cuMemsetD32Async",            "memset",      NP_CALL_COPY,          0,   NO, NO, 24},
    {"cuMemsetD2D8Async",           "memset.2d",   NP_CALL_COPY,          0,   NO, NO, 40},
    {"cuMemsetD2D16Async",          "memset.2d",   NP_CALL_COPY,          0,   NO, NO, 40},
    {"cuMemsetD2D32Async",          "memset.2d",   NP_CALL_COPY,          0,   NO, NO, 40},
    {"cuMemcpy2D_v2",               "memcpy.2d",   NP_CALL_DESCRIBED,     0,   NO, 128, NO},
    {"cuMemcpy2DUnaligned_v2",      "memcpy.2d",   NP_CALL_DESCRIBED,     0,   NO, 128, NO},
    {"cuMemcpy2DAsync_v2",          "memcpy.2d",   NP_CALL_DESCRIBED,     0,   NO, 128, 8},
    {"cuMemcpy3D_v2",               "memcpy.3d",   NP_CALL_DESCRIBED,     0,   NO, 200, NO},
    {"cuMemcpy3DAsync_v2",          "memcpy.3d",   NP_CALL_DESCRIBED,     0,   NO, 200, 8},
    {"cuGraphLaunch",               "graph",       NP_CALL_GRAPH_LAUNCH,  0,   NO, NO, 8},
    {"cuStreamDestroy",             NULL,          NP_CALL_STREAM_DESTROY, NO, NO, NO, 0},
    {"cuStreamDestroy_v2",          NULL,          NP_CALL_STREAM_DESTROY, NO, NO, NO, 0},
    {"cuStreamBeginCapture",        NULL,          NP_CALL_CAPTURE_BEGIN, NO,  NO, NO, 0},
    {"cuStreamBeginCapture_v2",     NULL,          NP_CALL_CAPTURE_BEGIN, NO,  NO, NO, 0},
    {"cuStreamBeginCaptureToGraph", NULL,          NP_CALL_CAPTURE_BEGIN, NO,  NO, NO, 0},
    {"cuStreamEndCapture",          NULL,          NP_CALL_CAPTURE_END,   8,   NO, NO, 0},
    {"cuGraphInstantiate",          NULL,          NP_CALL_INSTANTIATE,   0,   8,  NO, NO},
    {"cuGraphInstantiate_v2",       NULL,          NP_CALL_INSTANTIATE,   0,   8,  NO, NO},
    {"cuGraphInstantiateWithFlags", NULL,          NP_CALL_INSTANTIATE,   0,   8,  NO, NO},
    {"cuGraphInstantiateWithParams", NULL,         NP_CALL_INSTANTIATE,   0,   8,  NO, NO},
    {"cuGraphCreate",               NULL,          NP_CALL_GRAPH_CREATE,  0,   NO, NO, NO},
    /* parts that are graphs, and nodes that are not looked into: those of graphs, then those of executables */
    {"cuGraphAddChildGraphNode",    NULL,          NP_CALL_GRAPH_JOIN,    8,   32, NO, NO},
    {"cuGraphAddKernelNode",        NULL,          NP_CALL_GRAPH_JOIN,    8,   NO, NO, NO},
    {"cuGraphAddKernelNode_v2",     NULL,          NP_CALL_GRAPH_JOIN,    8,   NO, NO, NO},
    {"cuGraphAddMemcpyNode",        NULL,          NP_CALL_GRAPH_JOIN,    8,   NO, NO, NO},
    {"cuGraphAddMemsetNode",        NULL,          NP_CALL_GRAPH_JOIN,    8,   NO, NO, NO},
    {"cuGraphAddNode",              NULL,          NP_CALL_GRAPH_JOIN,    8,   NO, NO, NO},
    {"cuGraphAddNode_v2",           NULL,          NP_CALL_GRAPH_JOIN,    8,   NO, NO, NO},
    {"cuGraphExecUpdate",           NULL,          NP_CALL_GRAPH_JOIN,    0,   8,  NO, NO},
    {"cuGraphExecUpdate_v2",        NULL,          NP_CALL_GRAPH_JOIN,    0,   8,  NO, NO},
    {"cuGraphExecChildGraphNodeSetParams", NULL,   NP_CALL_GRAPH_JOIN,    0,   16, NO, NO},
    {"cuGraphExecKernelNodeSetParams", NULL,       NP_CALL_GRAPH_JOIN,    0,   NO, NO, NO},
    {"cuGraphExecKernelNodeSetParams_v2", NULL,    NP_CALL_GRAPH_JOIN,    0,   NO, NO, NO},
    {"cuGraphExecMemcpyNodeSetParams", NULL,       NP_CALL_GRAPH_JOIN,    0,   NO, NO, NO},
    {"cuGraphExecMemsetNodeSetParams", NULL,       NP_CALL_GRAPH_JOIN,    0,   NO, NO, NO},
    {"cuGraphExecNodeSetParams",    NULL,          NP_CALL_GRAPH_JOIN,    0,   NO, NO, NO},
    {"cuGraphExecDestroy",          NULL,          NP_CALL_GRAPH_DESTROY, 0,   NO, NO, NO},
    {"cuGraphDestroy",              NULL,          NP_CALL_GRAPH_DESTROY, 0,   NO, NO, NO},
    {"cuModuleUnload",              NULL,          NP_CALL_UNLOAD,        NO,  NO, NO, NO},
    {"cuLibraryUnload",             NULL,          NP_CALL_UNLOAD,        NO,  NO, NO, NO},
    {"cuIpcGetMemHandle",           NULL,          NP_CALL_EXPORT,        8,   NO, NO, NO},
    {"cuMemRetainAllocationHandle", NULL,          NP_CALL_EXPORT,        8,   NO, NO, NO},
    {"cuMemGetHandleForAddressRange", NULL,        NP_CALL_EXPORT,        8,   NO, NO, NO},
    {"cuMulticastBindAddr",         NULL,          NP_CALL_EXPORT,        16,  NO, NO, NO},
    /* textures: kernels name them by a handle. `to` is where the description stands, of so many `bytes`; or the address */
    {"cuTexObjectCreate",           NULL,          NP_CALL_HOLD,          8,   NO, 144, NO},
    {"cuSurfObjectCreate",          NULL,          NP_CALL_HOLD,          8,   NO, 144, NO},
    {"cuTexRefSetAddress_v2",       NULL,          NP_CALL_HOLD,          16,  NO, NO, NO},
    {"cuTexRefSetAddress2D_v2",     NULL,          NP_CALL_HOLD,          16,  NO, NO, NO},
    {"cuTexRefSetAddress2D_v3",     NULL,          NP_CALL_HOLD,          16,  NO, NO, NO},
    {"cuGraphClone",                NULL,          NP_CALL_INSTANTIATE,   0,   8,  NO, NO},
    {"cuCtxEnablePeerAccess",       NULL,          NP_CALL_PEER,          NO,  NO, NO, NO},
    {"cuMemPoolSetAccess",          NULL,          NP_CALL_PEER,          NO,  NO, NO, NO},
};
/* clang-format on */

static const np_hook_call unknown = {"?", "unknown", NP_CALL_UNKNOWN, NO, NO, NO, NO};

/* What begins so touches no block, and gives no work that does. Everything else that is not listed above could. */
/* clang-format off */
static const char *const harmless[] = {
    "cuInit", "cuDriverGet", "cuDevice", "cuCtx", "cuModule", "cuLibrary", "cuKernel", "cuFunc", "cuLink", "cuMemAlloc",
    "cuMemFree", "cuMemGet", "cuMemHost", "cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap", "cuMemSetAccess",
    "cuMemAddress", "cuMemExport", "cuMemImport", "cuMemPool", "cuMemAdvise", "cuMemRangeGet", "cuMemcpyGet", "cuPointer",
    "cuStreamCreate", "cuStreamGet", "cuStreamSet", "cuStreamQuery", "cuStreamSync", "cuStreamWaitE",
    "cuStreamAddC", "cuStreamIs", "cuStreamUpdate", "cuStreamCopyA", "cuEvent", "cuOccupancy", "cuTensorMap",
    "cuGraphGet", "cuGraphNodeGet", "cuGraphNodeFind", "cuGraphExecGet", "cuGraphDebug",
    "cuGraphUpload", "cuGraphRetain", "cuGraphRelease", "cuGraphAddEmpty", "cuGraphAddDep", "cuGraphAddEve",
    "cuGraphClone", "cuGraphRemove", "cuGraphKernelNodeGet", "cuGraphMemcpyNodeGet", "cuGraphMemsetNodeGet",
    "cuThreadExchange", "cuProfiler", "cuGetErr", "cuGetProc", "cuGetExport", "cuLaunchHostF", "cuUserObject",
    "cuGreenCtx", "cuMulticast", "cuCoredump", "cuChecker", "cuLogs", "cuArrayCreate", "cuArrayGet", "cuArrayDestroy",
    "cuArray3DCreate", "cuArray3DGet", "cuTexObjectGet", "cuTexObjectDes", "cuSurfObjectGet", "cuSurfObjectDes",
    "cuIpcOpen", "cuIpcClose", "cuIpcGetEvent", "cuExternal", "cuImportExternal", "cuDestroyExternal",
    "cuSignalExternal", "cuWaitExternal", "cuMipmapped",
};
/* clang-format on */

static bool begins_like_any(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strncmp(name, list[i], strlen(list[i])) == 0) {
            return true;
        }
    }
    return false;
}

const np_hook_call *np_hook_call_find(const char *name, bool *per_thread)
{
    size_t n = strlen(name);
    *per_thread = n > 5 && (strcmp(name + n - 5, "_ptsz") == 0 || strcmp(name + n - 5, "_ptds") == 0);
    n -= *per_thread ? 5 : 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (strlen(calls[i].name) == n && strncmp(calls[i].name, name, n) == 0) {
            return &calls[i];
        }
    }
    return begins_like_any(name, harmless, sizeof harmless / sizeof *harmless) ? NULL : &unknown;
}
