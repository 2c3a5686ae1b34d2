/* pool.c: memory for a program that neap cannot help: blocks that were freed are kept, by device, stream and size, for the
 * next of the same. Sizes are rounded up, finely for small ones; what the device has no room for is tried once more with all
 * that is kept given back. Reuse is in the order of one stream: the default one has the same name on every device, and
 * a thread's own one in every thread. */
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
    int ordinal; /* of its device */
} pooled;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pooled *live[N_BUCKETS]; /* by address */
static pooled *idle[N_BUCKETS]; /* by stream and size */

/* The order of threads' own streams is not known: what is freed on one is as what is freed on none. */
static void *ordered(void *stream)
{
    return stream == NP_HOOK_OWN ? NP_HOOK_NO_STREAM : stream;
}

static pooled **bucket_of(pooled **table, uint64_t a, uint64_t b)
{
    return &table[np_hash_combine(a, b) % N_BUCKETS];
}

static uint64_t round_size(uint64_t bytes)
{
    uint64_t unit = bytes < LARGE ? SMALL_UNIT : LARGE_UNIT;
    return (bytes + unit - 1) / unit * unit;
}

static pooled *take_idle(int ordinal, uint64_t bytes, const void *stream)
{
    pooled **at = bucket_of(idle, (uint64_t)(uintptr_t)stream, bytes);
    while (*at && ((*at)->bytes != bytes || (*at)->stream != stream || (*at)->ordinal != ordinal)) {
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

/* Of what neap has kept, too, which goes back when everything is home: that may be under way just now. */
static void make_room(void)
{
    np_hook_device *device = np_hook_first_device();
    give_back_all();
    if (device) {
        np_hook_give_back(device);
    }
    (void)np_hook_real_forget_error(); /* the program's request has not failed yet */
}

static int make(int ordinal, uint64_t bytes, void *stream, pooled **made)
{
    pooled *p = np_memory_alloc_zero(&np_memory_default, 1, sizeof *p);
    int result = p ? np_hook_real_malloc(&p->address, bytes) : ERROR_MEMORY;
    if (result == ERROR_MEMORY && p) {
        make_room();
        result = np_hook_real_malloc(&p->address, bytes);
    }
    if (result != 0) {
        np_memory_free(&np_memory_default, p, 1, sizeof *p);
        return result;
    }
    p->bytes = bytes;
    p->stream = stream;
    p->ordinal = ordinal;
    *made = p;
    return 0;
}

int np_hook_pool_malloc(int ordinal, uint64_t bytes, void *stream, void **address)
{
    uint64_t size = round_size(bytes);
    pooled *p;
    int result = 0;
    (void)pthread_mutex_lock(&lock);
    p = take_idle(ordinal, size, ordered(stream));
    if (!p) {
        result = make(ordinal, size, ordered(stream), &p);
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

/* Has all work of its device been waited for, as cudaFree does? */
static bool has_synced(const pooled *p)
{
    int current = -1;
    return np_the_hook.driver.context_sync && np_hook_real_get_device(&current) == 0 && current == p->ordinal &&
           np_the_hook.driver.context_sync() == 0;
}

/* May the next on its stream have it? */
static bool is_idle(const pooled *p, const void *stream)
{
    int current = -1;
    if (p->stream != stream) {
        return false;
    }
    if (stream == NP_HOOK_NO_STREAM) {
        return has_synced(p);
    }
    return np_hook_real_get_device(&current) == 0 && current == p->ordinal;
}

bool np_hook_pool_has(const void *address)
{
    const pooled *p;
    (void)pthread_mutex_lock(&lock);
    p = *bucket_of(live, (uint64_t)(uintptr_t)address, 0);
    while (p && p->address != address) {
        p = p->next;
    }
    (void)pthread_mutex_unlock(&lock);
    return p != NULL;
}

/* Freed on another stream than it was asked for on, or from another device: that it is idle on its own is not known before
 * all work is done, and that the runtime waits for. */
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
        if (is_idle(p, ordered(stream))) {
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
