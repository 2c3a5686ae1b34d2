/* trainer_memory.c: the program's allocator, and which blocks it has. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "hook/trainer.h"

enum { MAX_BLOCKS = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct live {
    char *at;
    size_t bytes;
    bool is_plain;
} live[MAX_BLOCKS];
static size_t n_live;
static atomic_bool is_plain;

void memory_is_plain(void)
{
    atomic_store(&is_plain, true);
}

static void add(void *at, size_t bytes, bool by_malloc)
{
    (void)pthread_mutex_lock(&lock);
    if (n_live == MAX_BLOCKS) {
        fail("memory", "there are too many blocks");
    }
    for (size_t i = 0; i < n_live; i++) {
        if ((char *)at < live[i].at + live[i].bytes && live[i].at < (char *)at + bytes) {
            fail("memory", "two blocks lie over each other");
        }
    }
    live[n_live++] = (struct live){at, bytes, by_malloc};
    (void)pthread_mutex_unlock(&lock);
}

/* Was it asked for by cudaMalloc? */
static bool drop(const void *at)
{
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_live; i++) {
        if (live[i].at == at) {
            bool by_malloc = live[i].is_plain;
            live[i] = live[--n_live];
            (void)pthread_mutex_unlock(&lock);
            return by_malloc;
        }
    }
    fail("memory", "no such block is freed");
}

void *get_plain(size_t bytes)
{
    void *made = NULL;
    cudaError_t error = cudaMalloc(&made, bytes);
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        CHECK(cudaDeviceSynchronize());
        error = cudaMalloc(&made, bytes);
    }
    check(error, "cudaMalloc");
    if ((uintptr_t)made % 256 != 0) {
        fail("cudaMalloc", "the address is not aligned");
    }
    add(made, bytes, true);
    return made;
}

void put_plain(void *freed)
{
    (void)drop(freed);
    CHECK(cudaFree(freed));
}

void *get(size_t bytes, cudaStream_t stream)
{
    void *made = NULL;
    cudaError_t error;
    if (option.plain || atomic_load(&is_plain)) {
        return get_plain(bytes);
    }
    error = cudaMallocAsync(&made, bytes, stream);
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        CHECK(cudaDeviceSynchronize());
        error = cudaMallocAsync(&made, bytes, stream);
    }
    check(error, "cudaMallocAsync");
    if ((uintptr_t)made % 256 != 0) {
        fail("cudaMallocAsync", "the address is not aligned");
    }
    add(made, bytes, false);
    return made;
}

void put(void *freed, cudaStream_t stream)
{
    if (drop(freed)) {
        CHECK(cudaFree(freed));
    } else {
        CHECK(cudaFreeAsync(freed, stream));
    }
}

void *some_address(uint64_t *random)
{
    char *found = NULL;
    (void)pthread_mutex_lock(&lock);
    if (n_live > 0) {
        const struct live *b = &live[random_below(random, (uint32_t)n_live)];
        found = b->at + random_below(random, (uint32_t)b->bytes);
    }
    (void)pthread_mutex_unlock(&lock);
    return found;
}

void *first_block(void)
{
    void *found;
    (void)pthread_mutex_lock(&lock);
    found = n_live > 0 ? live[0].at : NULL;
    (void)pthread_mutex_unlock(&lock);
    return found;
}
