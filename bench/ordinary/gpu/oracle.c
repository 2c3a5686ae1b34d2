/* oracle.c: preloaded in front of all: what the program itself asks for and gives back, told to driver.c. */
#include "fk.h"
#include <dlfcn.h>
#define NEXT(type, name)                  \
    static __typeof__(type) *f;           \
    if (!f) {                             \
        void *g = dlsym(RTLD_NEXT, name); \
        f = (__typeof__(f))g;             \
    }
static __thread int within;
int cudaMallocAsync(void **p, size_t n, void *s)
{
    NEXT(int(void **, size_t, void *), "cudaMallocAsync")
    if (!within)
        fk_block_expect((long long)n);
    within++;
    int r = f(p, n, s);
    within--;
    if (r == 0 && !within)
        fk_block_begin(*p, n);
    if (!within)
        fk_block_expect(-(long long)n);
    return r;
}
int cudaFreeAsync(void *p, void *s)
{
    NEXT(int(void *, void *), "cudaFreeAsync")
    if (!within)
        fk_block_end(p);
    within++;
    int r = f(p, s);
    within--;
    return r;
}
int cudaMalloc(void **p, size_t n)
{
    NEXT(int(void **, size_t), "cudaMalloc")
    if (!within)
        fk_block_expect((long long)n);
    within++;
    int r = f(p, n);
    within--;
    if (r == 0 && !within)
        fk_block_begin(*p, n);
    if (!within)
        fk_block_expect(-(long long)n);
    return r;
}
int cudaFree(void *p)
{
    NEXT(int(void *), "cudaFree")
    if (!within)
        fk_block_end(p);
    within++;
    int r = f(p);
    within--;
    return r;
}
