/* pool.c: memory for a program that neap cannot help: blocks that were freed are kept, by stream and size, for the next of the
 * same. Sizes are rounded up, finely for small ones; what the device has no room for is tried once more with all that is
 * kept given back. Reuse is in the order of one stream. */
#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "hook/core.h"

enum { N_BUCKETS = 4096, SMALL_UNIT = 512, LARGE_UNIT = 2 << 20, LARGE = 1 << 20, ERROR_MEMORY = 2 };

typedef struct pooled {
    struct pooled *next;
    void *address;
    uint64_t bytes;
    void *stream;
} pooled;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pooled *live[N_BUCKETS]; /* by address */
static pooled *idle[N_BUCKETS]; /* by stream and size */

static pooled **bucket_of(pooled **table, uint64_t a, uint64_t b)
{
    return &table[np_hash_combine(a, b) % N_BUCKETS];
}

static uint64_t round_size(uint64_t bytes)
{
    uint64_t unit = bytes < LARGE ? SMALL_UNIT : LARGE_UNIT;
    return (bytes + unit - 1) / unit * unit;
}

static pooled *take_idle(uint64_t bytes, const void *stream)
{
    pooled **at = bucket_of(idle, (uint64_t)(uintptr_t)stream, bytes);
    while (*at && ((*at)->bytes != bytes || (*at)->stream != stream)) {
        at = &(*at)->next;
    }
    pooled *found = *at;
    if (found) {
        *at = found->next;
    }
    return found;
}

static void give_back_all(void)
{
    for (size_t i = 0; i < N_BUCKETS; i++) {
        while (idle[i]) {
            pooled *p = idle[i];
            idle[i] = p->next;
            (void)np_hook_real_free(p->address);
            np_memory_free(&np_memory_default, p, 1, sizeof *p);
        }
    }
}

static int make(uint64_t bytes, void *stream, pooled **made)
{
    pooled *p = np_memory_alloc_zero(&np_memory_default, 1, sizeof *p);
    int result = p ? np_hook_real_malloc(&p->address, bytes) : ERROR_MEMORY;
    if (result == ERROR_MEMORY && p) {
        give_back_all();
        result = np_hook_real_malloc(&p->address, bytes);
    }
    if (result != 0) {
        np_memory_free(&np_memory_default, p, 1, sizeof *p);
        return result;
    }
    p->bytes = bytes;
    p->stream = stream;
    *made = p;
    return 0;
}

int np_hook_pool_malloc(uint64_t bytes, void *stream, void **address)
{
    uint64_t size = round_size(bytes);
    pooled *p;
    int result = 0;
    (void)pthread_mutex_lock(&lock);
    p = take_idle(size, stream);
    if (!p) {
        result = make(size, stream, &p);
    }
    if (result == 0) {
        pooled **at = bucket_of(live, (uint64_t)(uintptr_t)p->address, 0);
        p->next = *at;
        *at = p;
        *address = p->address;
    }
    (void)pthread_mutex_unlock(&lock);
    return result;
}

/* Freed on another stream than it was asked for on: that it is idle on its own is not known before all work is done. */
bool np_hook_pool_free(void *address, void *stream)
{
    pooled **at;
    pooled *p;
    (void)pthread_mutex_lock(&lock);
    at = bucket_of(live, (uint64_t)(uintptr_t)address, 0);
    while (*at && (*at)->address != address) {
        at = &(*at)->next;
    }
    p = *at;
    if (p) {
        *at = p->next;
        if (stream == NP_HOOK_NO_STREAM && np_the_hook.driver.context_sync) {
            (void)np_the_hook.driver.context_sync(); /* as cudaFree does */
        }
        if (p->stream == stream && (stream != NP_HOOK_NO_STREAM || np_the_hook.driver.context_sync)) {
            at = bucket_of(idle, (uint64_t)(uintptr_t)p->stream, p->bytes);
            p->next = *at;
            *at = p;
        } else {
            (void)np_hook_real_free(p->address);
            np_memory_free(&np_memory_default, p, 1, sizeof *p);
        }
    }
    (void)pthread_mutex_unlock(&lock);
    return p != NULL;
}
