/* Memory for a program that neap cannot help: what is kept, for whom, and what is given back. The CUDA runtime behind it is
 * a double with a little memory. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "hook/core.h"
#include "testing.h"

enum { MIB = 1 << 20, NO_MEMORY = 2, OTHER_ERROR = 999, MOST = 64 };

/* ---- the runtime ---- */

typedef struct device {
    uint64_t bytes; /* that it has */
    uint64_t held;
    uint32_t n_mallocs;
    uint32_t n_frees;
    int fails_with; /* 0: not */
    struct {
        void *address;
        uint64_t bytes;
    } blocks[4 * MOST];
    uint32_t n;
} device;

static device the_device;
static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;

int np_hook_real_malloc(void **address, size_t bytes)
{
    int result = 0;
    (void)pthread_mutex_lock(&device_lock);
    the_device.n_mallocs++;
    if (the_device.fails_with) {
        result = the_device.fails_with;
    } else if (the_device.held + bytes > the_device.bytes || the_device.n == 4 * MOST) {
        result = NO_MEMORY;
    } else {
        *address = malloc(16);
        the_device.held += bytes;
        the_device.blocks[the_device.n].address = *address;
        the_device.blocks[the_device.n++].bytes = bytes;
    }
    (void)pthread_mutex_unlock(&device_lock);
    return result;
}

int np_hook_real_free(void *address)
{
    int result = 1;
    (void)pthread_mutex_lock(&device_lock);
    the_device.n_frees++;
    for (uint32_t i = 0; i < the_device.n; i++) {
        if (the_device.blocks[i].address == address) {
            the_device.held -= the_device.blocks[i].bytes;
            the_device.blocks[i] = the_device.blocks[--the_device.n];
            free(address);
            result = 0;
            break;
        }
    }
    (void)pthread_mutex_unlock(&device_lock);
    return result;
}

static int current; /* device of the program */
static uint32_t n_syncs;

int np_hook_real_get_device(int *ordinal)
{
    *ordinal = current;
    return 0;
}

static np_cu_result sync_context(void)
{
    n_syncs++;
    return NP_CU_SUCCESS;
}

np_hook np_the_hook; /* core.c is left out */

static np_hook_device served;
static bool is_served;
static uint32_t n_given_back;
static uint32_t n_forgotten;

np_hook_device *np_hook_first_device(void)
{
    return is_served ? &served : NULL;
}

void np_hook_give_back(np_hook_device *given)
{
    ASSERT_TRUE(given == &served);
    the_device.bytes += 4 * MIB;
    n_given_back++;
}

int np_hook_real_forget_error(void)
{
    n_forgotten++;
    return 0;
}

/* Everything that tests before this one have left idle goes back: nothing fits any more. */
static void start(uint64_t bytes)
{
    void *address;
    the_device.bytes = 0;
    the_device.fails_with = 0;
    ASSERT_EQ(np_hook_pool_malloc(0, 1, &the_device, &address), NO_MEMORY);
    ASSERT_EQ(the_device.held, 0);
    the_device = (device){.bytes = bytes};
}

static void *take(uint64_t bytes, void *stream)
{
    void *address = NULL;
    ASSERT_EQ(np_hook_pool_malloc(current, bytes, stream, &address), 0);
    ASSERT_TRUE(address != NULL);
    return address;
}

static void *stream_of(uintptr_t number)
{
    return (void *)(0x1000 + number);
}

/* ---- reuse ---- */

static void test_reuse(void **state)
{
    void *a;
    void *b;
    void *c;
    (void)state;
    start(64 * MIB);
    a = take(1000, stream_of(1));
    ASSERT_EQ(the_device.held, 1024);
    ASSERT_TRUE(np_hook_pool_free(a, stream_of(1)));
    ASSERT_EQ(the_device.n_frees, 0);
    b = take(1024, stream_of(2)); /* another stream: other bytes */
    ASSERT_TRUE(a != b);
    ASSERT_TRUE(take(513, stream_of(1)) == a); /* the same size, rounded up */
    ASSERT_TRUE(np_hook_pool_free(a, stream_of(1)));
    c = take(1025, stream_of(1));
    ASSERT_TRUE(c != a);
    ASSERT_EQ(the_device.held, 1024 + 1024 + 1536);
    ASSERT_EQ(the_device.n_mallocs, 3);
    ASSERT_FALSE(np_hook_pool_free(&a, stream_of(1))); /* none of its own */
    ASSERT_FALSE(np_hook_pool_free(a, stream_of(1)));  /* idle: no longer the program's */
    ASSERT_TRUE(np_hook_pool_free(b, stream_of(2)));
    ASSERT_TRUE(np_hook_pool_free(c, stream_of(1)));
}

static void test_large_sizes(void **state)
{
    void *a;
    (void)state;
    start(64 * MIB);
    a = take(MIB + 1, NULL);
    ASSERT_EQ(the_device.held, 2 * MIB);
    ASSERT_TRUE(np_hook_pool_free(a, NULL));
    a = take(3 * MIB, stream_of(1));
    ASSERT_EQ(the_device.held, (2 + 4) * MIB);
    ASSERT_TRUE(np_hook_pool_free(a, stream_of(1)));
}

/* Freed on another stream: when its own is done with it is not known. The runtime's own free waits. */
static void test_freed_elsewhere(void **state)
{
    void *a;
    (void)state;
    start(64 * MIB);
    a = take(4096, stream_of(1));
    ASSERT_TRUE(np_hook_pool_free(a, stream_of(2)));
    ASSERT_EQ(the_device.n_frees, 1);
    ASSERT_EQ(the_device.held, 0);
    a = take(4096, stream_of(1));
    ASSERT_EQ(the_device.n_mallocs, 2);
    ASSERT_TRUE(np_hook_pool_free(a, stream_of(1)));
}

/* The default stream is called the same on every device. */
static void test_two_devices(void **state)
{
    void *a;
    void *b;
    (void)state;
    start(64 * MIB);
    a = take(4096, NULL);
    ASSERT_TRUE(np_hook_pool_free(a, NULL));
    current = 1;
    b = take(4096, NULL);
    ASSERT_EQ(the_device.n_mallocs, 2);
    ASSERT_TRUE(a != b);
    current = 0;
    ASSERT_TRUE(take(4096, NULL) == a);
    ASSERT_TRUE(np_hook_pool_free(b, NULL)); /* on that of the other device: the runtime's free waits */
    ASSERT_EQ(the_device.n_frees, 1);
    ASSERT_TRUE(np_hook_pool_free(a, NULL));
}

/* Freed on no stream: as by cudaFree, which waits for its own device. */
static void test_freed_on_none(void **state)
{
    void *a;
    (void)state;
    start(64 * MIB);
    n_syncs = 0;
    a = take(4096, NP_HOOK_NO_STREAM);
    ASSERT_TRUE(np_hook_pool_free(a, NP_HOOK_NO_STREAM)); /* nobody can wait but the runtime */
    ASSERT_EQ(the_device.n_frees, 1);
    np_the_hook.driver.context_sync = sync_context;
    a = take(4096, NP_HOOK_NO_STREAM);
    ASSERT_TRUE(np_hook_pool_free(a, NP_HOOK_NO_STREAM));
    ASSERT_EQ(n_syncs, 1);
    ASSERT_TRUE(take(4096, NP_HOOK_NO_STREAM) == a);
    current = 1; /* whose work would be waited for */
    ASSERT_TRUE(np_hook_pool_free(a, NP_HOOK_NO_STREAM));
    ASSERT_EQ(n_syncs, 1);
    ASSERT_EQ(the_device.n_frees, 2);
    current = 0;
    np_the_hook.driver.context_sync = NULL;
}

/* So is a thread's own one in every thread: what one has freed may be under way there, and another asks for it. */
static void test_own_streams(void **state)
{
    void *a;
    (void)state;
    start(64 * MIB);
    a = take(4096, NP_HOOK_OWN);
    ASSERT_TRUE(np_hook_pool_free(a, NP_HOOK_OWN));
    ASSERT_EQ(the_device.n_frees, 1);
    np_the_hook.driver.context_sync = sync_context;
    n_syncs = 0;
    a = take(4096, NP_HOOK_OWN);
    ASSERT_TRUE(np_hook_pool_free(a, NP_HOOK_OWN));
    ASSERT_EQ(n_syncs, 1);
    ASSERT_TRUE(take(4096, NP_HOOK_OWN) == a);
    ASSERT_TRUE(np_hook_pool_free(a, NP_HOOK_OWN));
    np_the_hook.driver.context_sync = NULL;
}

/* ---- when there is no more ---- */

static void test_full(void **state)
{
    void *a;
    void *b;
    void *c = NULL;
    (void)state;
    start(8 * MIB);
    a = take(4 * MIB, stream_of(1));
    b = take(4 * MIB, stream_of(2));
    ASSERT_EQ(np_hook_pool_malloc(0, 1, stream_of(1), &c), NO_MEMORY);
    ASSERT_TRUE(c == NULL);
    ASSERT_TRUE(np_hook_pool_free(a, stream_of(1)));
    a = take(2 * MIB, stream_of(2)); /* what is idle goes back for it */
    ASSERT_EQ(the_device.held, 6 * MIB);
    the_device.fails_with = OTHER_ERROR;
    ASSERT_EQ(np_hook_pool_malloc(0, 1, stream_of(1), &c), OTHER_ERROR); /* as the runtime says it */
    the_device.fails_with = 0;
    ASSERT_TRUE(np_hook_pool_free(a, stream_of(2)));
    ASSERT_TRUE(np_hook_pool_free(b, stream_of(2)));
}

/* What neap has kept is in the way until everything is home. */
static void test_neap_makes_room(void **state)
{
    void *a;
    (void)state;
    start(1 * MIB);
    is_served = true;
    n_forgotten = 0;
    a = take(2 * MIB, stream_of(1));
    ASSERT_EQ(n_given_back, 1);
    ASSERT_EQ(n_forgotten, 1); /* the program is not to hear of it later */
    ASSERT_TRUE(np_hook_pool_free(a, stream_of(1)));
    is_served = false;
}

/* ---- random ---- */

typedef struct owner {
    uint64_t seed;
    void *blocks[MOST / 4];
    uint32_t n;
    bool is_bad;
} owner;

static void *run_owner(void *user)
{
    owner *o = user;
    np_rng rng = np_rng_make(o->seed);
    for (int i = 0; i < 4000; i++) {
        void *stream = stream_of(np_rng_below(&rng, 3));
        if (o->n < MOST / 4 && np_rng_below(&rng, 2)) {
            uint64_t bytes = 1 + np_rng_below(&rng, 3000);
            if (np_hook_pool_malloc(0, bytes, stream, &o->blocks[o->n]) == 0) {
                memset(o->blocks[o->n++], (int)o->seed, 16); /* a foreign byte shows who shares it */
            }
        } else if (o->n > 0) {
            uint32_t k = (uint32_t)np_rng_below(&rng, o->n);
            unsigned char *bytes = o->blocks[k];
            for (int b = 0; b < 16; b++) {
                o->is_bad |= bytes[b] != (unsigned char)o->seed;
            }
            o->is_bad |= !np_hook_pool_free(bytes, stream);
            o->blocks[k] = o->blocks[--o->n];
        }
    }
    while (o->n > 0) {
        o->is_bad |= !np_hook_pool_free(o->blocks[--o->n], stream_of(0));
    }
    return NULL;
}

static void test_threads(void **state)
{
    owner owners[3] = {{.seed = 1}, {.seed = 2}, {.seed = 3}};
    pthread_t threads[3];
    (void)state;
    start(100000);
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(pthread_create(&threads[i], NULL, run_owner, &owners[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(pthread_join(threads[i], NULL), 0);
        ASSERT_FALSE(owners[i].is_bad);
    }
    start(0); /* nothing of it is lost */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reuse),           cmocka_unit_test(test_large_sizes),
        cmocka_unit_test(test_freed_elsewhere), cmocka_unit_test(test_full),
        cmocka_unit_test(test_threads),         cmocka_unit_test(test_two_devices),
        cmocka_unit_test(test_neap_makes_room), cmocka_unit_test(test_freed_on_none),
        cmocka_unit_test(test_own_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
