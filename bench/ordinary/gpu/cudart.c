/* cudart.c: libcudart.so.13 over driver.c: what PyTorch asks of the runtime. */
#include "fk.h"
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern int fk_attribute(int a);
extern CUresult cuDeviceGetUuid_v2(CUuuid *, CUdevice);

static __thread int device;
static __thread cudaError_t last;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void begin_once(void)
{
    cuInit(0);
}
static void begin(void)
{
    static __thread int bound = -1;
    pthread_once(&once, begin_once);
    CUcontext c = NULL;
    if (bound != device || (cuCtxGetCurrent(&c), !c)) {
        cuDevicePrimaryCtxRetain(&c, device);
        cuCtxSetCurrent(c);
        bound = device;
    }
}
static cudaError_t told(int r)
{
    if (r != 0 && r != 600)
        last = (cudaError_t)r;
    return (cudaError_t)r;
}
#define DO(call)                    \
    do {                            \
        begin();                    \
        int was_ = fk_from_runtime; \
        fk_from_runtime = 1;        \
        int r_ = (int)(call);       \
        fk_from_runtime = was_;     \
        return told(r_);            \
    } while (0)
#define D(p) ((CUdeviceptr)(uintptr_t)(p))

/* ---- kernels ---- */
typedef struct {
    int magic, version;
    const void *data;
    void *more;
} wrapper;
typedef struct fat {
    const void *data;
} fat;
void **__cudaRegisterFatBinary(void *w)
{
    fat *f = malloc(sizeof *f);
    f->data = ((wrapper *)w)->data;
    return (void **)f;
}
void __cudaRegisterFatBinaryEnd(void **h)
{
    (void)h;
}
void __cudaUnregisterFatBinary(void **h)
{
    (void)h;
}
char __cudaInitModule(void **h)
{
    (void)h;
    return 1;
}
static struct {
    const void *host;
    fk_kernel *k;
} * table;
static size_t n_slots, n_kernels;
static pthread_mutex_t tlock = PTHREAD_MUTEX_INITIALIZER;
static size_t where(const void *host)
{
    size_t i = ((uintptr_t)host * 0x9e3779b97f4a7c15u >> 20) & (n_slots - 1);
    while (table[i].host && table[i].host != host)
        i = (i + 1) & (n_slots - 1);
    return i;
}
void __cudaRegisterFunction(void **h, const char *host, char *dev, const char *name, int tl, uint3 *tid, uint3 *bid,
                            dim3 *bd, dim3 *gd, int *ws)
{
    (void)dev;
    (void)tl;
    (void)tid;
    (void)bid;
    (void)bd;
    (void)gd;
    (void)ws;
    pthread_mutex_lock(&tlock);
    if (2 * (n_kernels + 1) > n_slots) {
        size_t was = n_slots;
        __typeof__(table) old = table;
        n_slots = n_slots ? 2 * n_slots : 1 << 16;
        table = calloc(n_slots, sizeof *table);
        for (size_t i = 0; i < was; i++)
            if (old[i].host)
                table[where(old[i].host)] = old[i];
        free(old);
    }
    size_t i = where(host);
    if (!table[i].host)
        n_kernels++;
    table[i].host = host;
    table[i].k = fk_kernel_make(name, (void *)((fat *)h)->data, host);
    pthread_mutex_unlock(&tlock);
}
static struct {
    const void *host;
    size_t bytes;
    void *at;
} vars[4096];
static int n_vars;
void __cudaRegisterVar(void **h, char *host, char *dev, const char *name, int ext, size_t bytes, int constant,
                       int global)
{
    (void)h;
    (void)dev;
    (void)name;
    (void)ext;
    (void)constant;
    (void)global;
    if (n_vars < 4096) {
        vars[n_vars].host = host;
        vars[n_vars].bytes = bytes;
        n_vars++;
    }
}
void __cudaRegisterManagedVar(void **h, void **host, char *dev, const char *name, int ext, size_t bytes, int constant,
                              int global)
{
    (void)h;
    (void)host;
    (void)dev;
    (void)name;
    (void)ext;
    (void)bytes;
    (void)constant;
    (void)global;
}
static fk_kernel *find(const void *host)
{
    if (host && ((const fk_kernel *)host)->magic == FK_KERNEL)
        return (fk_kernel *)host; /* a cudaKernel_t */
    if (!n_slots)
        return NULL;
    return table[where(host)].k;
}
cudaError_t __cudaGetKernel(cudaKernel_t *k, const void *f)
{
    *k = (cudaKernel_t)find(f);
    return *k ? 0 : cudaErrorInvalidDeviceFunction;
}
static __thread struct {
    dim3 g, b;
    size_t sh;
    void *s;
} config[8];
static __thread int n_config;
unsigned __cudaPushCallConfiguration(dim3 g, dim3 b, size_t sh, struct CUstream_st *s)
{
    config[n_config].g = g;
    config[n_config].b = b;
    config[n_config].sh = sh;
    config[n_config].s = s;
    n_config++;
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *g, dim3 *b, size_t *sh, void *s)
{
    if (!n_config)
        return 1;
    n_config--;
    *g = config[n_config].g;
    *b = config[n_config].b;
    *sh = config[n_config].sh;
    *(void **)s = config[n_config].s;
    return 0;
}
static CUresult launch(const void *f, dim3 g, dim3 b, void **args, size_t sh, cudaStream_t s)
{
    fk_kernel *k = find(f);
    if (!k)
        return (CUresult)98;
    return cuLaunchKernel((CUfunction)k, g.x, g.y, g.z, b.x, b.y, b.z, (unsigned)sh, s, args, NULL);
}
cudaError_t cudaLaunchKernel(const void *f, dim3 g, dim3 b, void **args, size_t sh, cudaStream_t s)
{
    DO(launch(f, g, b, args, sh, s));
}
cudaError_t __cudaLaunchKernel(cudaKernel_t f, dim3 g, dim3 b, void **args, size_t sh, cudaStream_t s)
{
    DO(launch(f, g, b, args, sh, s));
}
cudaError_t cudaLaunchCooperativeKernel(const void *f, dim3 g, dim3 b, void **args, size_t sh, cudaStream_t s)
{
    fk_kernel *k = find(f);
    if (!k)
        return told(98);
    DO(cuLaunchCooperativeKernel((CUfunction)k, g.x, g.y, g.z, b.x, b.y, b.z, (unsigned)sh, s, args));
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *f, void **args)
{
    fk_kernel *k = find(f);
    if (!k)
        return told(98);
    CUlaunchConfig l = {.gridDimX = c->gridDim.x,
                        .gridDimY = c->gridDim.y,
                        .gridDimZ = c->gridDim.z,
                        .blockDimX = c->blockDim.x,
                        .blockDimY = c->blockDim.y,
                        .blockDimZ = c->blockDim.z,
                        .sharedMemBytes = (unsigned)c->dynamicSmemBytes,
                        .hStream = c->stream,
                        .attrs = (CUlaunchAttribute *)c->attrs,
                        .numAttrs = c->numAttrs};
    DO(cuLaunchKernelEx(&l, (CUfunction)k, args, NULL));
}
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void *a)
{
    DO(cuLaunchHostFunc(s, f, a));
}
cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t f, void *a, unsigned fl)
{
    DO(cuStreamAddCallback(s, (CUstreamCallback)f, a, fl));
}
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *f)
{
    begin();
    (void)f;
    memset(a, 0, sizeof *a);
    a->maxThreadsPerBlock = 1024;
    a->numRegs = 64;
    a->ptxVersion = a->binaryVersion = fk_arch;
    a->maxDynamicSharedSizeBytes = 163840;
    return 0;
}
cudaError_t cudaFuncSetAttribute(const void *f, enum cudaFuncAttribute a, int v)
{
    (void)f;
    (void)a;
    (void)v;
    return 0;
}
cudaError_t cudaFuncSetCacheConfig(const void *f, enum cudaFuncCache c)
{
    (void)f;
    (void)c;
    return 0;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *f, int b, size_t s)
{
    (void)f;
    (void)b;
    (void)s;
    *n = 2;
    return 0;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *f, int b, size_t s, unsigned fl)
{
    (void)f;
    (void)b;
    (void)s;
    (void)fl;
    *n = 2;
    return 0;
}
static int symbol(void **p, const void *host)
{
    for (int i = 0; i < n_vars; i++)
        if (vars[i].host == host) {
            if (!vars[i].at) {
                CUdeviceptr d = 0;
                int r = cuMemAlloc_v2(&d, vars[i].bytes ? vars[i].bytes : 8);
                if (r)
                    return r;
                vars[i].at = (void *)(uintptr_t)d;
            }
            *p = vars[i].at;
            return 0;
        }
    return 13;
}
cudaError_t cudaGetSymbolAddress(void **p, const void *s)
{
    DO(symbol(p, s));
}
cudaError_t cudaMemcpyToSymbol(const void *s, const void *from, size_t n, size_t off, enum cudaMemcpyKind k)
{
    void *p;
    (void)k;
    begin();
    int r = symbol(&p, s);
    if (r)
        return told(r);
    DO(cuMemcpyHtoD_v2(D(p) + off, from, n));
}
/* ---- errors ---- */
cudaError_t cudaGetLastError(void)
{
    cudaError_t e = last;
    last = 0;
    return e;
}
cudaError_t cudaPeekAtLastError(void)
{
    return last;
}
const char *cudaGetErrorName(cudaError_t e)
{
    const char *n;
    cuGetErrorName((CUresult)e, &n);
    return n;
}
const char *cudaGetErrorString(cudaError_t e)
{
    return e == 2 ? "out of memory" : cudaGetErrorName(e);
}
/* ---- devices ---- */
cudaError_t cudaGetDeviceCount(int *n)
{
    begin();
    return told(cuDeviceGetCount(n));
}
cudaError_t cudaGetDevice(int *d)
{
    *d = device;
    return 0;
}
cudaError_t cudaSetDevice(int d)
{
    int n = 0;
    begin();
    cuDeviceGetCount(&n);
    if (d < 0 || d >= n)
        return told(101);
    device = d;
    begin();
    return 0;
}
cudaError_t cudaDeviceGetAttribute(int *v, enum cudaDeviceAttr a, int d)
{
    (void)d;
    *v = fk_attribute((int)a);
    return 0;
}
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int d)
{
    size_t t = 0;
    begin();
    memset(p, 0, sizeof *p);
    cuDeviceGetName(p->name, 256, d);
    cuDeviceGetUuid_v2((CUuuid *)&p->uuid, d);
    cuDeviceTotalMem_v2(&t, d);
    p->totalGlobalMem = t;
    p->sharedMemPerBlock = 49152;
    p->regsPerBlock = 65536;
    p->warpSize = 32;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 2147483647;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->totalConstMem = 65536;
    p->major = fk_arch / 10;
    p->minor = fk_arch % 10;
    p->multiProcessorCount = 108;
    p->canMapHostMemory = 1;
    p->concurrentKernels = 1;
    p->asyncEngineCount = 3;
    p->unifiedAddressing = 1;
    p->memoryBusWidth = 5120;
    p->l2CacheSize = 41943040;
    p->maxThreadsPerMultiProcessor = 2048;
    p->streamPrioritiesSupported = 1;
    p->sharedMemPerMultiprocessor = 167936;
    p->regsPerMultiprocessor = 65536;
    p->managedMemory = 1;
    p->concurrentManagedAccess = 1;
    p->cooperativeLaunch = 1;
    p->sharedMemPerBlockOptin = 166912;
    p->maxBlocksPerMultiProcessor = 32;
    p->memoryPoolsSupported = 1;
    p->textureAlignment = 512;
    p->pciBusID = d + 1;
    return 0;
}
cudaError_t cudaDeviceCanAccessPeer(int *c, int a, int b)
{
    (void)a;
    (void)b;
    *c = 0;
    return 0;
}
cudaError_t cudaDeviceEnablePeerAccess(int a, unsigned f)
{
    (void)a;
    (void)f;
    return told(217);
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *p, int d)
{
    DO(cuDeviceGetDefaultMemPool(p, d));
}
cudaError_t cudaDeviceGetPCIBusId(char *s, int n, int d)
{
    return told(cuDeviceGetPCIBusId(s, n, d));
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *l, int *g)
{
    if (l)
        *l = 0;
    if (g)
        *g = -5;
    return 0;
}
cudaError_t cudaDeviceSynchronize(void)
{
    DO(cuCtxSynchronize());
}
cudaError_t cudaDriverGetVersion(int *v)
{
    *v = 13000;
    return 0;
}
cudaError_t cudaRuntimeGetVersion(int *v)
{
    *v = 13000;
    return 0;
}
cudaError_t cudaProfilerStart(void)
{
    return 0;
}
cudaError_t cudaProfilerStop(void)
{
    return 0;
}
/* ---- memory ---- */
cudaError_t cudaMalloc(void **p, size_t n)
{
    if (n == 0) {
        *p = NULL;
        return 0;
    }
    DO(cuMemAlloc_v2((CUdeviceptr *)p, n));
}
cudaError_t cudaFree(void *p)
{
    if (!p) {
        begin();
        return 0;
    }
    DO(cuMemFree_v2(D(p)));
}
cudaError_t cudaMallocAsync(void **p, size_t n, cudaStream_t s)
{
    if (n == 0) {
        *p = NULL;
        return 0;
    }
    DO(cuMemAllocAsync((CUdeviceptr *)p, n, s));
}
cudaError_t cudaFreeAsync(void *p, cudaStream_t s)
{
    if (!p)
        return 0;
    DO(cuMemFreeAsync(D(p), s));
}
cudaError_t cudaHostAlloc(void **p, size_t n, unsigned f)
{
    DO(cuMemHostAlloc(p, n, f));
}
cudaError_t cudaMallocHost(void **p, size_t n)
{
    DO(cuMemHostAlloc(p, n, 0));
}
cudaError_t cudaFreeHost(void *p)
{
    if (!p)
        return 0;
    DO(cuMemFreeHost(p));
}
cudaError_t cudaHostRegister(void *p, size_t n, unsigned f)
{
    DO(cuMemHostRegister_v2(p, n, f));
}
cudaError_t cudaHostUnregister(void *p)
{
    DO(cuMemHostUnregister(p));
}
cudaError_t cudaHostGetDevicePointer(void **d, void *h, unsigned f)
{
    (void)f;
    *d = h;
    return 0;
}
cudaError_t cudaMemGetInfo(size_t *f, size_t *t)
{
    DO(cuMemGetInfo_v2(f, t));
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t p, enum cudaMemPoolAttr a, void *v)
{
    DO(cuMemPoolGetAttribute(p, (CUmemPool_attribute)a, v));
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t p, enum cudaMemPoolAttr a, void *v)
{
    DO(cuMemPoolSetAttribute(p, (CUmemPool_attribute)a, v));
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t p, size_t n)
{
    DO(cuMemPoolTrimTo(p, n));
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t p, const struct cudaMemAccessDesc *d, size_t n)
{
    DO(cuMemPoolSetAccess(p, (const CUmemAccessDesc *)d, n));
}
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *p)
{
    unsigned type = 0;
    int dev = 0;
    begin();
    memset(a, 0, sizeof *a);
    if (cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, D(p)) != 0) {
        a->type = cudaMemoryTypeUnregistered;
        a->device = -2;
        a->hostPointer = (void *)p;
        return 0;
    }
    cuPointerGetAttribute(&dev, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, D(p));
    a->type = type == 2 ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
    a->device = dev;
    a->devicePointer = (void *)p;
    a->hostPointer = type == 2 ? NULL : (void *)p;
    return 0;
}
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *h, void *p)
{
    DO(cuIpcGetMemHandle((CUipcMemHandle *)h, D(p)));
}
cudaError_t cudaIpcOpenMemHandle(void **p, cudaIpcMemHandle_t h, unsigned f)
{
    (void)p;
    (void)h;
    (void)f;
    return told(801);
}
cudaError_t cudaIpcCloseMemHandle(void *p)
{
    (void)p;
    return told(801);
}
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *h, cudaEvent_t e)
{
    (void)h;
    (void)e;
    return told(801);
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *e, cudaIpcEventHandle_t h)
{
    (void)h;
    (void)e;
    return told(801);
}
static CUresult copy(void *to, const void *from, size_t n, enum cudaMemcpyKind k, cudaStream_t s, int async)
{
    if (n == 0)
        return 0;
    switch (k) {
    case cudaMemcpyHostToDevice:
        return async ? cuMemcpyHtoDAsync_v2(D(to), from, n, s) : cuMemcpyHtoD_v2(D(to), from, n);
    case cudaMemcpyDeviceToHost:
        return async ? cuMemcpyDtoHAsync_v2(to, D(from), n, s) : cuMemcpyDtoH_v2(to, D(from), n);
    case cudaMemcpyDeviceToDevice:
        return async ? cuMemcpyDtoDAsync_v2(D(to), D(from), n, s) : cuMemcpyDtoD_v2(D(to), D(from), n);
    default:
        return async ? cuMemcpyAsync(D(to), D(from), n, s) : cuMemcpy(D(to), D(from), n);
    }
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t n, enum cudaMemcpyKind k)
{
    DO(copy(to, from, n, k, 0, 0));
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind k, cudaStream_t s)
{
    DO(copy(to, from, n, k, s, 1));
}
cudaError_t cudaMemcpyPeerAsync(void *to, int dt, const void *from, int df, size_t n, cudaStream_t s)
{
    (void)dt;
    (void)df;
    DO(copy(to, from, n, cudaMemcpyDeviceToDevice, s, 1));
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t tp, const void *from, size_t fp, size_t w, size_t h,
                              enum cudaMemcpyKind k, cudaStream_t s)
{
    CUDA_MEMCPY2D m = {.WidthInBytes = w, .Height = h, .srcPitch = fp, .dstPitch = tp};
    m.srcMemoryType =
        k == cudaMemcpyHostToDevice || k == cudaMemcpyHostToHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    m.dstMemoryType =
        k == cudaMemcpyDeviceToHost || k == cudaMemcpyHostToHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    m.srcHost = from;
    m.srcDevice = D(from);
    m.dstHost = to;
    m.dstDevice = D(to);
    DO(cuMemcpy2DAsync_v2(&m, s));
}
cudaError_t cudaMemset(void *p, int v, size_t n)
{
    DO(cuMemsetD8_v2(D(p), (unsigned char)v, n));
}
cudaError_t cudaMemsetAsync(void *p, int v, size_t n, cudaStream_t s)
{
    DO(cuMemsetD8Async(D(p), (unsigned char)v, n, s));
}
/* ---- streams and events ---- */
cudaError_t cudaStreamCreate(cudaStream_t *s)
{
    DO(cuStreamCreate(s, 0));
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned f)
{
    DO(cuStreamCreate(s, f));
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned f, int p)
{
    DO(cuStreamCreateWithPriority(s, f, p));
}
cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    DO(cuStreamDestroy_v2(s));
}
cudaError_t cudaStreamGetPriority(cudaStream_t s, int *p)
{
    DO(cuStreamGetPriority(s, p));
}
cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    DO(cuStreamSynchronize(s));
}
cudaError_t cudaStreamQuery(cudaStream_t s)
{
    DO(cuStreamQuery(s));
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned f)
{
    DO(cuStreamWaitEvent(s, e, f));
}
cudaError_t cudaEventCreate(cudaEvent_t *e)
{
    DO(cuEventCreate(e, 0));
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned f)
{
    DO(cuEventCreate(e, f));
}
cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    DO(cuEventDestroy_v2(e));
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    DO(cuEventRecord(e, s));
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned f)
{
    DO(cuEventRecordWithFlags(e, s, f));
}
cudaError_t cudaEventQuery(cudaEvent_t e)
{
    DO(cuEventQuery(e));
}
cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    DO(cuEventSynchronize(e));
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b)
{
    DO(cuEventElapsedTime_v2(ms, a, b));
}
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *m)
{
    return told(cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)m));
}
cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode m)
{
    DO(cuStreamBeginCapture_v2(s, (CUstreamCaptureMode)m));
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g)
{
    DO(cuStreamEndCapture(s, g));
}
cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *st)
{
    begin();
    return told(cuStreamIsCapturing(s, (CUstreamCaptureStatus *)st));
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, enum cudaStreamCaptureStatus *st, unsigned long long *id,
                                     cudaGraph_t *g, const cudaGraphNode_t **d, const cudaGraphEdgeData **ed, size_t *n)
{
    begin();
    return told(cuStreamGetCaptureInfo_v3(s, (CUstreamCaptureStatus *)st, (cuuint64_t *)id, g, d,
                                          (const CUgraphEdgeData **)ed, n));
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *x, cudaGraph_t g, unsigned long long f)
{
    DO(cuGraphInstantiateWithFlags(x, g, f));
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *x, cudaGraph_t g, unsigned long long f)
{
    DO(cuGraphInstantiateWithFlags(x, g, f));
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t x, cudaGraph_t g, cudaGraphExecUpdateResultInfo *i)
{
    DO(cuGraphExecUpdate_v2(x, g, (CUgraphExecUpdateResultInfo *)i));
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s)
{
    DO(cuGraphLaunch(x, s));
}
cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
    DO(cuGraphDestroy(g));
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t x)
{
    DO(cuGraphExecDestroy(x));
}
cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t *n, size_t *c)
{
    DO(cuGraphGetNodes(g, n, c));
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t n, cudaGraphNode_t *d, cudaGraphEdgeData *e, size_t *c)
{
    (void)n;
    (void)d;
    (void)e;
    *c = 0;
    return 0;
}
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t g, const char *p, unsigned f)
{
    (void)g;
    (void)p;
    (void)f;
    return 0;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **f, unsigned version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *q)
{
    begin();
    CUresult r = cuGetProcAddress_v2(name, f, (int)version, flags, NULL);
    if (q)
        *q = r == 0 ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return 0;
}
