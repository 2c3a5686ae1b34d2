/* dnn.c: libcudnn: convolutions (the older interface: TORCH_CUDNN_V8_API_DISABLED=1) and batch normalisation, a launch or
 * two each, with the real operands and a workspace; RNNs as one launch. The rest is stubs that return 0. */
#include "fk.h"
#include <cudnn.h>
#include <stdlib.h>
#include <string.h>
typedef struct {
    cudaStream_t stream;
} handle;
typedef struct {
    cudnnDataType_t type;
    cudnnTensorFormat_t format;
    int n, dims[8], strides[8];
} desc;
typedef struct {
    int n, groups;
    cudnnMathType_t math;
} conv;
static size_t width_of(cudnnDataType_t t)
{
    return t == CUDNN_DATA_FLOAT || t == CUDNN_DATA_INT32 ? 4
           : t == CUDNN_DATA_DOUBLE                       ? 8
           : t == CUDNN_DATA_INT8                         ? 1
                                                          : 2;
}
static double size_of(const desc *d)
{
    double n = 1;
    for (int i = 0; i < d->n; i++)
        n *= d->dims[i];
    return n;
}
static int give(void *h, const char *name, double ns, int n, const void *const *p)
{
    int was = fk_from_runtime;
    fk_from_runtime = 1;
    int r = fk_launch(((handle *)h)->stream, name, ns, n, p);
    fk_from_runtime = was;
    return r ? 8 : 0;
}
size_t cudnnGetVersion(void)
{
    return 91900;
}
size_t cudnnGetCudartVersion(void)
{
    return 13000;
}
const char *cudnnGetErrorString(cudnnStatus_t s)
{
    (void)s;
    return "status";
}
void cudnnGetLastErrorString(char *m, size_t n)
{
    if (n)
        m[0] = 0;
}
cudnnStatus_t cudnnCreate(cudnnHandle_t *h)
{
    *h = calloc(1, sizeof(handle));
    return 0;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t h)
{
    free(h);
    return 0;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t h, cudaStream_t s)
{
    ((handle *)h)->stream = s;
    return 0;
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t h, cudaStream_t *s)
{
    *s = ((handle *)h)->stream;
    return 0;
}
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *d)
{
    *d = calloc(1, sizeof(desc));
    return 0;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t d)
{
    free(d);
    return 0;
}
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t t, cudnnDataType_t y, int n, const int *dims,
                                         const int *strides)
{
    desc *d = (desc *)t;
    d->type = y;
    d->n = n;
    for (int i = 0; i < n && i < 8; i++) {
        d->dims[i] = dims[i];
        d->strides[i] = strides[i];
    }
    return 0;
}
cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t t, int max, cudnnDataType_t *y, int *n,
                                         int *dims, int *strides)
{
    const desc *d = (const desc *)t;
    *y = d->type;
    *n = d->n;
    for (int i = 0; i < d->n && i < max; i++) {
        dims[i] = d->dims[i];
        strides[i] = d->strides[i];
    }
    return 0;
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *d)
{
    *d = calloc(1, sizeof(desc));
    return 0;
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t d)
{
    free(d);
    return 0;
}
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t t, cudnnDataType_t y, cudnnTensorFormat_t f, int n,
                                         const int *dims)
{
    desc *d = (desc *)t;
    d->type = y;
    d->n = n;
    d->format = f;
    for (int i = 0; i < n && i < 8; i++)
        d->dims[i] = dims[i];
    return 0;
}
cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t t, int max, cudnnDataType_t *y,
                                         cudnnTensorFormat_t *f, int *n, int *dims)
{
    const desc *d = (const desc *)t;
    *y = d->type;
    *n = d->n;
    *f = d->format;
    for (int i = 0; i < d->n && i < max; i++)
        dims[i] = d->dims[i];
    return 0;
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *c)
{
    *c = calloc(1, sizeof(conv));
    return 0;
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t c)
{
    free(c);
    return 0;
}
/* what an algorithm needs beside its operands: some MB, by the output */
static size_t workspace(const void *y)
{
    double b = size_of(y) * (double)width_of(((const desc *)y)->type) / 8;
    return (size_t)(b < 1 << 16 ? 0 : b > 64e6 ? 64e6 : b) & ~(size_t)511;
}
#define PERF(type, best)                              \
    memset(p, 0, sizeof *p *(size_t)(n < 1 ? 0 : n)); \
    if (n > 0) {                                      \
        p[0].algo = best;                             \
        p[0].status = 0;                              \
        p[0].time = 1;                                \
        p[0].memory = workspace(y);                   \
        p[0].mathType = CUDNN_TENSOR_OP_MATH;         \
    }                                                 \
    *got = n > 0;                                     \
    return 0;
#define NOT_USED(x) (void)(x)
cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t h, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t w,
                                                     const cudnnConvolutionDescriptor_t c,
                                                     const cudnnTensorDescriptor_t y, const int n, int *got,
                                                     cudnnConvolutionFwdAlgoPerf_t *p)
{
    NOT_USED(h);
    NOT_USED(x);
    NOT_USED(w);
    NOT_USED(c);
    PERF(, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM)
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t h, const cudnnFilterDescriptor_t w,
                                                          const cudnnTensorDescriptor_t dy,
                                                          const cudnnConvolutionDescriptor_t c,
                                                          const cudnnTensorDescriptor_t y, const int n, int *got,
                                                          cudnnConvolutionBwdDataAlgoPerf_t *p)
{
    NOT_USED(h);
    NOT_USED(dy);
    NOT_USED(w);
    NOT_USED(c);
    PERF(, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1)
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t h, const cudnnTensorDescriptor_t x,
                                                            const cudnnTensorDescriptor_t y,
                                                            const cudnnConvolutionDescriptor_t c,
                                                            const cudnnFilterDescriptor_t w, const int n, int *got,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t *p)
{
    NOT_USED(h);
    NOT_USED(x);
    NOT_USED(w);
    NOT_USED(c);
    PERF(, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1)
}
cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t h, const cudnnTensorDescriptor_t xd, const void *x,
                                                     const cudnnFilterDescriptor_t wd, const void *w,
                                                     const cudnnConvolutionDescriptor_t c,
                                                     const cudnnTensorDescriptor_t y, void *yp, const int n, int *got,
                                                     cudnnConvolutionFwdAlgoPerf_t *p, void *ws, size_t wn)
{
    const void *a[4] = {x, w, yp, ws};
    for (int i = 0; i < 6; i++)
        give(h, "cudnn_find_fwd", 20000, 4, a);
    PERF(, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM)
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(cudnnHandle_t h, const cudnnFilterDescriptor_t wd,
                                                          const void *w, const cudnnTensorDescriptor_t dyd,
                                                          const void *dy, const cudnnConvolutionDescriptor_t c,
                                                          const cudnnTensorDescriptor_t y, void *dx, const int n,
                                                          int *got, cudnnConvolutionBwdDataAlgoPerf_t *p, void *ws,
                                                          size_t wn)
{
    const void *a[4] = {w, dy, dx, ws};
    for (int i = 0; i < 6; i++)
        give(h, "cudnn_find_dgrad", 20000, 4, a);
    PERF(, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1)
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(cudnnHandle_t h, const cudnnTensorDescriptor_t xd,
                                                            const void *x, const cudnnTensorDescriptor_t y,
                                                            const void *dy, const cudnnConvolutionDescriptor_t c,
                                                            const cudnnFilterDescriptor_t wd, void *dw, const int n,
                                                            int *got, cudnnConvolutionBwdFilterAlgoPerf_t *p, void *ws,
                                                            size_t wn)
{
    const void *a[4] = {x, dy, dw, ws};
    for (int i = 0; i < 6; i++)
        give(h, "cudnn_find_wgrad", 20000, 4, a);
    PERF(, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1)
}
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t h, const cudnnTensorDescriptor_t x,
                                                      const cudnnFilterDescriptor_t w,
                                                      const cudnnConvolutionDescriptor_t c,
                                                      const cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t g,
                                                      size_t *n)
{
    *n = workspace(y);
    return 0;
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t h, const cudnnFilterDescriptor_t w,
                                                           const cudnnTensorDescriptor_t dy,
                                                           const cudnnConvolutionDescriptor_t c,
                                                           const cudnnTensorDescriptor_t dx,
                                                           cudnnConvolutionBwdDataAlgo_t g, size_t *n)
{
    *n = workspace(dx);
    return 0;
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t h, const cudnnTensorDescriptor_t x,
                                                             const cudnnTensorDescriptor_t dy,
                                                             const cudnnConvolutionDescriptor_t c,
                                                             const cudnnFilterDescriptor_t dw,
                                                             cudnnConvolutionBwdFilterAlgo_t g, size_t *n)
{
    *n = workspace(dy);
    return 0;
}
static double conv_ns(const void *y, const void *w)
{
    const desc *d = w;
    return 2 * size_of(y) * size_of(w) / (d->dims[0] ? d->dims[0] : 1) / (d->type == CUDNN_DATA_FLOAT ? 60e3 : 150e3);
}
cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t h, const void *al, const cudnnTensorDescriptor_t xd, const void *x,
                                      const cudnnFilterDescriptor_t wd, const void *w,
                                      const cudnnConvolutionDescriptor_t c, cudnnConvolutionFwdAlgo_t g, void *ws,
                                      size_t n, const void *be, const cudnnTensorDescriptor_t yd, void *y)
{
    const void *p[4] = {x, w, y, n ? ws : NULL};
    return give(h, "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32", conv_ns(yd, wd), 4, p);
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t h, const void *al, const cudnnFilterDescriptor_t wd,
                                           const void *w, const cudnnTensorDescriptor_t dyd, const void *dy,
                                           const cudnnConvolutionDescriptor_t c, cudnnConvolutionBwdDataAlgo_t g,
                                           void *ws, size_t n, const void *be, const cudnnTensorDescriptor_t dxd,
                                           void *dx)
{
    const void *p[4] = {w, dy, dx, n ? ws : NULL};
    return give(h, "sm80_xmma_dgrad_implicit_gemm_indexed_tf32f32", conv_ns(dyd, wd), 4, p);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t h, const void *al, const cudnnTensorDescriptor_t xd,
                                             const void *x, const cudnnTensorDescriptor_t dyd, const void *dy,
                                             const cudnnConvolutionDescriptor_t c, cudnnConvolutionBwdFilterAlgo_t g,
                                             void *ws, size_t n, const void *be, const cudnnFilterDescriptor_t wd,
                                             void *dw)
{
    const void *p[4] = {x, dy, dw, n ? ws : NULL};
    return give(h, "sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32", conv_ns(dyd, wd), 4, p);
}
cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t h, cudnnBatchNormMode_t m, cudnnBatchNormOps_t o, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t z, const cudnnTensorDescriptor_t y, const cudnnTensorDescriptor_t s,
    const cudnnActivationDescriptor_t a, size_t *n)
{
    *n = 0;
    return 0;
}
cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t h, cudnnBatchNormMode_t m, cudnnBatchNormOps_t o, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t y, const cudnnTensorDescriptor_t dy, const cudnnTensorDescriptor_t dz,
    const cudnnTensorDescriptor_t dx, const cudnnTensorDescriptor_t s, const cudnnActivationDescriptor_t a, size_t *n)
{
    *n = 0;
    return 0;
}
cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(cudnnHandle_t h, cudnnBatchNormMode_t m,
                                                                   cudnnBatchNormOps_t o,
                                                                   const cudnnActivationDescriptor_t a,
                                                                   const cudnnTensorDescriptor_t x, size_t *n)
{
    *n = 0;
    return 0;
}
cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(cudnnHandle_t h, cudnnBatchNormMode_t m, cudnnBatchNormOps_t o,
                                                       const void *al, const void *be, const cudnnTensorDescriptor_t xd,
                                                       const void *x, const cudnnTensorDescriptor_t zd, const void *z,
                                                       const cudnnTensorDescriptor_t yd, void *y,
                                                       const cudnnTensorDescriptor_t sd, const void *s, const void *b,
                                                       double f, void *rm, void *rv, double e, void *sm, void *sv,
                                                       cudnnActivationDescriptor_t ad, void *ws, size_t wn, void *rs,
                                                       size_t rn)
{
    const void *p[9] = {x, y, s, b, rm, rv, sm, sv, NULL};
    return give(h, "cudnn_bn_fw_tr_1C11_kernel_NCHW", size_of((const desc *)xd) * 8 / 1500, 9, p);
}
cudnnStatus_t cudnnBatchNormalizationForwardInference(cudnnHandle_t h, cudnnBatchNormMode_t m, const void *al,
                                                      const void *be, const cudnnTensorDescriptor_t xd, const void *x,
                                                      const cudnnTensorDescriptor_t yd, void *y,
                                                      const cudnnTensorDescriptor_t sd, const void *s, const void *b,
                                                      const void *rm, const void *rv, double e)
{
    const void *p[6] = {x, y, s, b, rm, rv};
    return give(h, "cudnn_bn_fw_inf", size_of((const desc *)xd) * 8 / 1500, 6, p);
}
cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t h, cudnnBatchNormMode_t m, cudnnBatchNormOps_t o, const void *a1, const void *b1, const void *a2,
    const void *b2, const cudnnTensorDescriptor_t xd, const void *x, const cudnnTensorDescriptor_t yd, const void *y,
    const cudnnTensorDescriptor_t dyd, const void *dy, const cudnnTensorDescriptor_t dzd, void *dz,
    const cudnnTensorDescriptor_t dxd, void *dx, const cudnnTensorDescriptor_t sd, const void *s, const void *b,
    void *ds, void *db, double e, const void *sm, const void *sv, cudnnActivationDescriptor_t ad, void *ws, size_t wn,
    void *rs, size_t rn)
{
    const void *p[8] = {x, dy, dx, s, ds, db, sm, sv};
    return give(h, "cudnn_bn_bw_1C11_kernel_new", size_of((const desc *)xd) * 12 / 1500, 8, p);
}
