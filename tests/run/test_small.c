/* test_small.c: blocks smaller than a page, many to a view. */
#include "run/small.h"

#include <string.h>

#include "base/rng.h"
#include "testing.h"

enum { PAGE = 4096, MOST = 400 };

typedef struct scene {
    np_device *device;
    np_pages pages;
    np_small small;
} scene;

static void open_scene(scene *s, const char *name)
{
    ASSERT_OK(np_device_open(name, NULL, NULL, &s->device));
    np_pages_init(&s->pages, s->device);
    np_small_init(&s->small, &s->pages);
}

static void close_scene(scene *s)
{
    ASSERT_TRUE(np_small_is_valid(&s->small));
    np_small_free(&s->small);
    ASSERT_EQ(s->pages.n_held, 0);
    np_pages_free(&s->pages);
    s->device->api->free(s->device);
}

static void take(scene *s, uint64_t bytes, neap_block *block)
{
    uint32_t n = np_small_pages_needed(&s->small, bytes);
    *block = (neap_block){.bytes = bytes, .kind = NP_BLOCK_SMALL};
    if (n > 0) {
        uint32_t numbers[64];
        ASSERT_LE(n, 64);
        ASSERT_OK(np_pages_take(&s->pages, n, numbers));
        ASSERT_OK(np_small_grow(&s->small, numbers));
        ASSERT_EQ(np_small_pages_needed(&s->small, bytes), 0);
    }
    ASSERT_OK(np_small_take(&s->small, bytes, block));
}

static void give(scene *s, neap_block *block)
{
    np_small_give(&s->small, block);
    np_memory_free(s->device->memory, block->after, s->device->n_streams, sizeof *block->after);
    block->address = NULL;
}

/* Best fit, and neighbours melt together. */
static void test_chunks(void **state)
{
    scene s;
    neap_block a;
    neap_block b;
    neap_block c;
    neap_block d;
    (void)state;
    open_scene(&s, "sim:page=4096,memory=1MiB");
    take(&s, 100, &a);
    take(&s, 1500, &b);
    take(&s, 512, &c);
    ASSERT_EQ(b.address - a.address, 512);
    ASSERT_EQ(c.address - b.address, 1536);
    give(&s, &b);
    ASSERT_EQ(s.small.slabs.items[0]->chunks.n, 2);
    take(&s, 700, &d); /* into the hole, not the large rest */
    ASSERT_EQ(d.address - a.address, 512);
    give(&s, &d);
    give(&s, &a);
    ASSERT_EQ(s.small.slabs.items[0]->chunks.n, 2);
    give(&s, &c);
    ASSERT_EQ(s.small.slabs.n, 1); /* the last slab is kept */
    ASSERT_EQ(s.small.slabs.items[0]->chunks.n, 1);
    close_scene(&s);
}

/* A slab that work may still use is not given up. */
static void test_slabs(void **state)
{
    scene s;
    neap_block blocks[40];
    np_task task = {.duration_ns = 1000000};
    uint64_t mark;
    (void)state;
    open_scene(&s, "sim:page=4096,memory=1MiB");
    for (int i = 0; i < 40; i++) {
        take(&s, 4000, &blocks[i]);
    }
    ASSERT_EQ(s.small.slabs.n, 3); /* of 64 KiB, 16 blocks each */
    for (int i = 0; i < 16; i++) {
        give(&s, &blocks[i]);
    }
    ASSERT_EQ(s.small.slabs.n, 2);
    ASSERT_OK(s.device->api->launch(s.device, 0, &task, &mark));
    for (int i = 16; i < 32; i++) {
        give(&s, &blocks[i]);
    }
    ASSERT_EQ(s.small.slabs.n, 2);
    ASSERT_OK(s.device->api->sync(s.device, 0, mark));
    for (int i = 32; i < 40; i++) {
        give(&s, &blocks[i]);
    }
    ASSERT_EQ(s.small.slabs.n, 1);
    close_scene(&s);
}

/* Bytes that were used before are waited for by other streams; with one stream, its order does. */
static void test_after(void **state)
{
    scene s;
    neap_block a;
    neap_block b;
    np_task task = {.duration_ns = 10};
    uint64_t mark;
    (void)state;
    open_scene(&s, "sim:page=4096,memory=1MiB,streams=3");
    take(&s, 100, &a);
    ASSERT_TRUE(a.after == NULL);
    ASSERT_OK(s.device->api->launch(s.device, 1, &task, &mark));
    give(&s, &a);
    take(&s, 100, &b);
    ASSERT_EQ(b.after_left, 7);
    ASSERT_EQ(b.after[1], mark);
    ASSERT_EQ(b.after[0], 0);
    give(&s, &b);
    close_scene(&s);
    open_scene(&s, "sim:page=4096,memory=1MiB");
    take(&s, 100, &a);
    give(&s, &a);
    take(&s, 100, &b);
    ASSERT_TRUE(b.after == NULL);
    give(&s, &b);
    close_scene(&s);
}

/* No two blocks share a byte. */
static void test_random(void **state)
{
    np_rng rng = np_rng_make(3);
    static neap_block blocks[MOST];
    scene s;
    uint32_t n = 0;
    (void)state;
    open_scene(&s, "sim:page=4096,memory=8MiB");
    for (int round = 0; round < 6000; round++) {
        bool grows = np_rng_below(&rng, 1000) < (round / 1000 % 2 == 0 ? 700u : 300u);
        if (grows && n < MOST) {
            neap_block *block = &blocks[n++];
            take(&s, 1 + np_rng_below(&rng, PAGE - 1), block);
            ASSERT_EQ((uintptr_t)block->address % NP_SMALL_UNIT, 0);
            for (uint32_t i = 0; i + 1 < n; i++) {
                ASSERT_TRUE(blocks[i].address + blocks[i].bytes <= block->address ||
                            block->address + block->bytes <= blocks[i].address);
            }
        } else if (n > 0) {
            uint32_t i = (uint32_t)np_rng_below(&rng, n);
            give(&s, &blocks[i]);
            blocks[i] = blocks[--n];
        }
        if (round % 16 == 0) {
            ASSERT_TRUE(np_small_is_valid(&s.small));
            ASSERT_TRUE(np_pages_is_valid(&s.pages));
        }
    }
    while (n > 0) {
        give(&s, &blocks[--n]);
    }
    ASSERT_EQ(s.small.slabs.n, 1);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_slabs),
        cmocka_unit_test(test_after),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
