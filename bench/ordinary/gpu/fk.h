/* fk.h: what the parts of the fake GPU share. Device work takes time on a modelled clock and changes nothing; memory is a
 * table of pages whose bytes exist once they are written. */
#ifndef FK_H
#define FK_H
#define _GNU_SOURCE
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- told to CUPTI ---- */
typedef struct fk_call {
    int id;
    const char *name;
    const void *params;
    const char *symbol;
    uint64_t data;
    uint32_t correlation;
    int result;
    bool told;
} fk_call;
typedef void (*fk_tracer)(fk_call *c, int is_exit, void *ctx);
extern unsigned char fk_enabled[2048];
extern fk_tracer fk_trace;
void fk_enter_slow(fk_call *c);
void fk_exit_slow(fk_call *c);
static inline void fk_cleanup(fk_call *c)
{
    if (__builtin_expect(c->told, 0)) {
        fk_exit_slow(c);
    }
}
/* ---- kernels ---- */
typedef struct fk_param {
    uint32_t offset, size;
} fk_param;
typedef struct fk_kernel {
    uint32_t magic;
    char *name;
    void *image; /* fatbin, or NULL */
    const void *host;
    int known; /* 0 not looked at, 1 layout known, -1 not found */
    uint32_t n;
    fk_param *params;
    double ns; /* synthetic: how long one launch takes; 0: by its threads */
    uint64_t n_launched;
    uint64_t n_lost;
} fk_kernel;
#define FK_KERNEL 0x4b45524eu
fk_kernel *fk_kernel_make(const char *name, void *image, const void *host);
void fk_kernel_look(fk_kernel *k);
/* a kernel of n pointers, then `extra` bytes of numbers, as one struct or as single parameters */
CUfunction fk_synthetic(const char *name, int n_pointers, int extra_bytes, bool as_struct);
CUresult fk_launch(CUstream stream, const char *name, double ns, int n_pointers, const void *const *pointers);
bool fk_fatbin_layout(const void *image, const char *name, int arch, fk_param **params, uint32_t *n);

extern __thread int fk_from_runtime; /* the program's call, not neap's */
uint64_t fk_now(void);
extern int fk_arch;
/* what the program has (oracle.c tells) */
void fk_block_begin(const void *at, size_t bytes);
void fk_block_end(const void *at);
void fk_block_expect(long long bytes); /* it is asking for them; and, negative, has been answered */
#endif
