/* Copies that a struct describes: which words of host memory are looked at, and which are not even touched. Plain copies are in
 * test_sight.c. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <string.h>
#include <sys/mman.h>

#include "hook/core.h"
#include "testing.h"

#if __has_include(<cuda.h>)
#include <cuda.h>
#define HAS_REAL 1
#else
#define HAS_REAL 0
#endif

enum { PAGE = 4096, HOST = 1, DEVICE = 2, ARRAY = 3, UNIFIED = 4, MIB = 1 << 20 };

np_hook np_the_hook; /* core.c's is left out */

const char np_hook_peers[] = "peers";

void np_hook_step_aside(const char *why)
{
    (void)why;
}

/* CUDA_MEMCPY2D and CUDA_MEMCPY3D. */
typedef struct place_2d {
    size_t x;
    size_t y;
    int type;
    const void *host;
    uint64_t device;
    void *array;
    size_t pitch;
} place_2d;

typedef struct rectangle {
    place_2d from;
    place_2d to;
    size_t width;
    size_t height;
} rectangle;

typedef struct place_3d {
    size_t x;
    size_t y;
    size_t z;
    size_t lod;
    int type;
    const void *host;
    uint64_t device;
    void *array;
    void *reserved;
    size_t pitch;
    size_t height;
} place_3d;

typedef struct box {
    place_3d from;
    place_3d to;
    size_t width;
    size_t height;
    size_t depth;
} box;

typedef struct scene {
    np_device *raw;
    np_hook_device device;
    neap_block *block; /* the one that is named */
} scene;

static np_cu_result asked_result;
static unsigned int asked_type;

static np_cu_result pointer_attribute(void *data, np_cu_pointer_attribute attribute, np_cu_address address)
{
    ASSERT_EQ(attribute, NP_CU_POINTER_MEMORY_TYPE);
    ASSERT_TRUE(address != 0);
    memcpy(data, &asked_type, sizeof asked_type);
    return asked_result;
}

static void open_scene(scene *s)
{
    neap_device_options options = {.min_block = PAGE};
    np_hook_entry entry = {0};
    memset(s, 0, sizeof *s);
    ASSERT_OK(np_device_open("sim:page=4096,memory=4MiB,streams=2", NULL, NULL, &s->raw));
    ASSERT_OK(np_manager_open(s->raw, &options, NULL, &s->device.manager));
    np_beneath_begin(s->device.manager, 0, 0);
    np_hook_index_init(&s->device.index, &np_memory_default);
    ASSERT_OK(np_malloc_locked(s->device.manager, 3 * PAGE, &s->block));
    entry = (np_hook_entry){.begin = s->block->address, .end = s->block->address + 3 * PAGE, .block = s->block};
    ASSERT_OK(np_hook_index_add(&s->device.index, &entry));
    np_the_hook.driver.pointer_attribute = pointer_attribute;
    asked_result = NP_CU_INVALID_VALUE; /* memory that nobody has registered */
}

static void close_scene(scene *s)
{
    np_hook_index_free(&s->device.index);
    neap_close(s->device.manager);
}

/* Does the copy fix the block? It is as any other then. */
static bool fixes(scene *s, const char *name, const void *given)
{
    bool per_thread;
    const np_hook_call *call = np_hook_call_find(name, &per_thread);
    np_hook_sight sight = {.device = &s->device};
    bool is_fixed;
    ASSERT_EQ(call->kind, NP_CALL_DESCRIBED);
    np_hook_scan_described(&sight, call, given);
    ASSERT_FALSE(sight.is_blind);
    is_fixed = s->block->is_fixed;
    s->block->is_fixed = false;
    return is_fixed;
}

static uint64_t word_in(const scene *s)
{
    return (uint64_t)(uintptr_t)(s->block->address + PAGE);
}

/* ---- rectangles ---- */

enum { PITCH = 8, ROWS = 6 }; /* in words */

/* Each word of a host array in turn is the address: those of the rectangle are found, and no others. */
static void test_rectangle(void **state)
{
    scene s;
    uint64_t words[ROWS][PITCH];
    rectangle copied = {.from = {.x = 16, .y = 2, .type = HOST, .host = words, .pitch = sizeof *words},
                        .to = {.type = DEVICE},
                        .width = 24,
                        .height = 3};
    (void)state;
    open_scene(&s);
    for (size_t y = 0; y < ROWS; y++) {
        for (size_t x = 0; x < PITCH; x++) {
            bool is_copied = y >= 2 && y < 5 && x >= 2 && x < 5;
            memset(words, 0, sizeof words);
            words[y][x] = word_in(&s);
            ASSERT_EQ(fixes(&s, "cuMemcpy2DAsync_v2", &copied), is_copied);
        }
    }
    close_scene(&s);
}

/* A word may be in two rows, where one ends and the next begins at once. */
static void test_rows_without_gaps(void **state)
{
    scene s;
    uint64_t words[3] = {0};
    rectangle copied = {
        .from = {.type = HOST, .host = words, .pitch = 12}, .to = {.type = DEVICE}, .width = 12, .height = 2};
    (void)state;
    open_scene(&s);
    words[1] = word_in(&s);
    ASSERT_TRUE(fixes(&s, "cuMemcpy2D_v2", &copied));
    copied.height = 1;
    ASSERT_FALSE(fixes(&s, "cuMemcpy2D_v2", &copied));
    close_scene(&s);
}

static void test_whose_memory(void **state)
{
    scene s;
    uint64_t words[2] = {0};
    rectangle copied = {
        .from = {.type = HOST, .host = words, .pitch = 16}, .to = {.type = DEVICE}, .width = 16, .height = 1};
    (void)state;
    open_scene(&s);
    words[1] = word_in(&s);
    ASSERT_TRUE(fixes(&s, "cuMemcpy2DUnaligned_v2", &copied));
    copied.from.type = UNIFIED;
    copied.from.host = NULL;
    copied.from.device = (uint64_t)(uintptr_t)words;
    ASSERT_TRUE(fixes(&s, "cuMemcpy2DUnaligned_v2", &copied)); /* nobody knows it */
    asked_result = NP_CU_SUCCESS;
    asked_type = HOST;
    ASSERT_TRUE(fixes(&s, "cuMemcpy2DUnaligned_v2", &copied));
    asked_type = DEVICE; /* the host could not read it */
    ASSERT_FALSE(fixes(&s, "cuMemcpy2DUnaligned_v2", &copied));
    copied.from.type = DEVICE;
    ASSERT_FALSE(fixes(&s, "cuMemcpy2DUnaligned_v2", &copied));
    copied.from.type = ARRAY;
    ASSERT_FALSE(fixes(&s, "cuMemcpy2DUnaligned_v2", &copied));
    close_scene(&s);
}

/* Up to a MiB, of which the last word counts; a size that cannot be is none. */
static void test_sizes(void **state)
{
    static uint64_t words[MIB / 8 + 2];
    scene s;
    rectangle copied = {.from = {.type = HOST, .host = words, .pitch = MIB / 4 + 8},
                        .to = {.type = DEVICE},
                        .width = MIB / 4,
                        .height = 4};
    (void)state;
    open_scene(&s);
    words[3 * (MIB / 32 + 1) + MIB / 32 - 1 - 2] = word_in(&s); /* in the last row */
    copied.width -= 16;
    ASSERT_TRUE(fixes(&s, "cuMemcpy2D_v2", &copied));
    words[0] = word_in(&s);
    copied.from.pitch = copied.width = MIB;
    copied.height = 1;
    ASSERT_TRUE(fixes(&s, "cuMemcpy2D_v2", &copied));
    copied.width += 8;
    ASSERT_FALSE(fixes(&s, "cuMemcpy2D_v2", &copied)); /* data, not a table */
    copied.width = SIZE_MAX / 2;
    copied.height = 4;
    ASSERT_FALSE(fixes(&s, "cuMemcpy2D_v2", &copied));
    copied.height = 0;
    ASSERT_FALSE(fixes(&s, "cuMemcpy2D_v2", &copied));
    close_scene(&s);
}

/* ---- boxes ---- */

static void test_box(void **state)
{
    enum { SLICES = 4 };
    scene s;
    uint64_t words[SLICES][ROWS][PITCH];
    box copied = {
        .from = {.x = 8, .y = 1, .z = 1, .type = HOST, .host = words, .pitch = sizeof **words, .height = ROWS},
        .to = {.type = DEVICE},
        .width = 16,
        .height = 3,
        .depth = 2};
    (void)state;
    open_scene(&s);
    for (size_t i = 0; i < (size_t)SLICES * ROWS * PITCH; i++) {
        size_t x = i % PITCH;
        size_t y = i / PITCH % ROWS;
        size_t z = i / PITCH / ROWS;
        memset(words, 0, sizeof words);
        words[z][y][x] = word_in(&s);
        ASSERT_EQ(fixes(&s, "cuMemcpy3DAsync_v2", &copied), z >= 1 && z < 3 && y >= 1 && y < 4 && x >= 1 && x < 3);
    }
    close_scene(&s);
}

/* ---- what is not copied ---- */

/* Between two rows there is memory that nobody may read. */
static void test_gaps_are_not_touched(void **state)
{
    scene s;
    char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t word;
    rectangle copied = {
        .from = {.type = HOST, .host = pages, .pitch = 2 * PAGE}, .to = {.type = DEVICE}, .width = 24, .height = 2};
    (void)state;
    open_scene(&s);
    ASSERT_TRUE(pages != MAP_FAILED);
    ASSERT_EQ(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
    ASSERT_FALSE(fixes(&s, "cuMemcpy2D_v2", &copied));
    word = word_in(&s);
    memcpy(pages + 2 * PAGE + 16, &word, sizeof word);
    ASSERT_TRUE(fixes(&s, "cuMemcpy2D_v2", &copied));
    ASSERT_EQ(munmap(pages, 3 * PAGE), 0);
    close_scene(&s);
}

static void test_real_layouts(void **state)
{
    (void)state;
    ASSERT_EQ(sizeof(rectangle), 128);
    ASSERT_EQ(sizeof(box), 200);
#if HAS_REAL
#define SAME(own, field, real, real_field) ASSERT_EQ(offsetof(own, field), offsetof(real, real_field))
    SAME(rectangle, from.x, CUDA_MEMCPY2D, srcXInBytes);
    SAME(rectangle, from.y, CUDA_MEMCPY2D, srcY);
    SAME(rectangle, from.type, CUDA_MEMCPY2D, srcMemoryType);
    SAME(rectangle, from.host, CUDA_MEMCPY2D, srcHost);
    SAME(rectangle, from.device, CUDA_MEMCPY2D, srcDevice);
    SAME(rectangle, from.pitch, CUDA_MEMCPY2D, srcPitch);
    SAME(rectangle, width, CUDA_MEMCPY2D, WidthInBytes);
    SAME(rectangle, height, CUDA_MEMCPY2D, Height);
    SAME(box, from.x, CUDA_MEMCPY3D, srcXInBytes);
    SAME(box, from.z, CUDA_MEMCPY3D, srcZ);
    SAME(box, from.type, CUDA_MEMCPY3D, srcMemoryType);
    SAME(box, from.host, CUDA_MEMCPY3D, srcHost);
    SAME(box, from.device, CUDA_MEMCPY3D, srcDevice);
    SAME(box, from.pitch, CUDA_MEMCPY3D, srcPitch);
    SAME(box, from.height, CUDA_MEMCPY3D, srcHeight);
    SAME(box, width, CUDA_MEMCPY3D, WidthInBytes);
    SAME(box, height, CUDA_MEMCPY3D, Height);
    SAME(box, depth, CUDA_MEMCPY3D, Depth);
    ASSERT_EQ(HOST, CU_MEMORYTYPE_HOST);
    ASSERT_EQ(UNIFIED, CU_MEMORYTYPE_UNIFIED);
#else
    SKIP("there are no headers of CUDA");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rectangle),    cmocka_unit_test(test_rows_without_gaps),
        cmocka_unit_test(test_whose_memory), cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_box),          cmocka_unit_test(test_gaps_are_not_touched),
        cmocka_unit_test(test_real_layouts),
    };
    return cmocka_run_group_tests_name("hook_parts/tables", tests, NULL, NULL);
}
