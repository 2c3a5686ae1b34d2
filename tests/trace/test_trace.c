/* test_trace.c: building a trace, and the walk that says whether one is valid. */
#include "trace/trace.h"

#include <string.h>

#include "base/hash.h"
#include "base/rng.h"
#include "testing.h"

static neap_trace *make_trace(void)
{
    neap_trace *trace;
    ASSERT_OK(np_trace_create(NULL, &trace));
    return trace;
}

/* live 7, malloc 8, exec k (r7 w8), free 7 */
static neap_trace *make_small_trace(void)
{
    neap_trace *trace = make_trace();
    ASSERT_OK(np_trace_add_meta(trace, "model", 5, "vgg", 3));
    ASSERT_OK(np_trace_add_live(trace, 7, 100));
    ASSERT_OK(np_trace_add_mark(trace));
    ASSERT_OK(np_trace_add_malloc(trace, 8, 200));
    ASSERT_OK(np_trace_add_exec(trace, "k", 1, 10, 20));
    ASSERT_OK(np_trace_add_access(trace, 7, NEAP_ACCESS_READ));
    ASSERT_OK(np_trace_add_access(trace, 8, NEAP_ACCESS_WRITE));
    ASSERT_OK(np_trace_add_free(trace, 7));
    ASSERT_TRUE(np_trace_is_valid(trace));
    return trace;
}

static void test_views(void **state)
{
    neap_trace *trace = make_small_trace();
    size_t n_events;
    size_t n_blocks;
    size_t n_accesses;
    const neap_event *events = neap_trace_events(trace, &n_events);
    const neap_trace_block *blocks = neap_trace_blocks(trace, &n_blocks);
    const neap_access *accesses = neap_trace_accesses(trace, &n_accesses);
    (void)state;

    ASSERT_EQ(n_events, 3);
    ASSERT_EQ(n_blocks, 2);
    ASSERT_EQ(n_accesses, 2);
    ASSERT_EQ(events[0].kind, NEAP_EVENT_MALLOC);
    ASSERT_EQ(events[0].subject, 1);
    ASSERT_EQ(events[1].kind, NEAP_EVENT_EXEC);
    ASSERT_EQ(events[1].start_ns, 10);
    ASSERT_EQ(events[1].duration_ns, 20);
    ASSERT_EQ(events[1].n_accesses, 2);
    ASSERT_EQ(events[2].kind, NEAP_EVENT_FREE);
    ASSERT_EQ(events[2].subject, 0);
    ASSERT_EQ(blocks[0].id, 7);
    ASSERT_EQ(blocks[0].malloc_event, NEAP_NEVER);
    ASSERT_EQ(blocks[0].free_event, 2);
    ASSERT_EQ(blocks[1].malloc_event, 0);
    ASSERT_EQ(blocks[1].free_event, NEAP_NEVER);
    ASSERT_EQ(blocks[1].fixed_offset, NEAP_NO_OFFSET);
    ASSERT_EQ(accesses[1].block, 1);
    ASSERT_EQ(accesses[1].kind, NEAP_ACCESS_WRITE);
    ASSERT_STR_EQ(neap_trace_exec_name(trace, 0), "k");
    ASSERT_TRUE(neap_trace_exec_name(trace, 1) == NULL);
    ASSERT_FALSE(neap_trace_is_csv(trace));
    ASSERT_EQ(trace->live_bytes, 200);
    neap_trace_free(trace);
    neap_trace_free(NULL);
}

/* What is refused leaves the trace as it was. */
static void test_refusals(void **state)
{
    neap_trace *trace = make_small_trace();
    neap_trace *same = make_small_trace();
    (void)state;

    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_trace_add_access(trace, 8, NEAP_ACCESS_READ)); /* the last event is a free */
    ASSERT_STATUS(NEAP_BAD_INPUT, np_trace_add_live(trace, 9, 1));
    ASSERT_STATUS(NEAP_BAD_INPUT, np_trace_add_malloc(trace, 7, 1));
    ASSERT_STATUS(NEAP_BAD_INPUT, np_trace_add_malloc(trace, 8, 1));
    ASSERT_STATUS(NEAP_BAD_INPUT, np_trace_add_malloc(trace, 9, 0));
    ASSERT_STATUS(NEAP_TOO_LARGE, np_trace_add_malloc(trace, 9, NP_TRACE_BYTES_MAX - 199));
    ASSERT_STATUS(NEAP_TOO_LARGE, np_trace_add_malloc(trace, 9, UINT64_MAX));
    ASSERT_STATUS(NEAP_BAD_INPUT, np_trace_add_free(trace, 7));
    ASSERT_STATUS(NEAP_BAD_INPUT, np_trace_add_free(trace, 9));
    ASSERT_STATUS(NEAP_BAD_INPUT, np_trace_add_exec(trace, "", 0, 0, 0));
    ASSERT_STATUS(NEAP_BAD_INPUT, np_trace_add_exec(trace, "a b", 3, 0, 0));
    ASSERT_STATUS(NEAP_BAD_INPUT, np_trace_add_exec(trace, "a\0b", 3, 0, 0));
    ASSERT_STATUS(NEAP_BAD_INPUT, np_trace_add_exec(trace, "a\n", 2, 0, 0));
    ASSERT_STATUS(NEAP_BAD_INPUT, np_trace_add_meta(trace, "", 0, "v", 1));
    ASSERT_STATUS(NEAP_BAD_INPUT, np_trace_add_meta(trace, "a=b", 3, "v", 1));
    ASSERT_STATUS(NEAP_BAD_INPUT, np_trace_add_meta(trace, "a", 1, "v w", 3));
    ASSERT_TRUE(np_trace_is_equal(trace, same));
    ASSERT_TRUE(np_trace_is_valid(trace));

    ASSERT_OK(np_trace_add_malloc(trace, 9, NP_TRACE_BYTES_MAX - 200));
    ASSERT_OK(np_trace_add_exec(trace, "k", 1, 0, 0));
    ASSERT_STATUS(NEAP_BAD_INPUT, np_trace_add_access(trace, 7, NEAP_ACCESS_READ));
    ASSERT_STATUS(NEAP_BAD_INPUT, np_trace_add_access(trace, 10, NEAP_ACCESS_READ));
    ASSERT_TRUE(np_trace_is_valid(trace));
    ASSERT_FALSE(np_trace_is_equal(trace, same));
    neap_trace_free(trace);
    neap_trace_free(same);
}

static void test_meta(void **state)
{
    neap_trace *trace = make_trace();
    (void)state;
    ASSERT_TRUE(neap_trace_meta(trace, "a") == NULL);
    ASSERT_OK(np_trace_add_meta(trace, "a", 1, "1", 1));
    ASSERT_OK(np_trace_add_meta(trace, "ab", 2, "x=y", 3));
    ASSERT_OK(np_trace_add_meta(trace, "empty", 5, "", 0));
    ASSERT_STR_EQ(neap_trace_meta(trace, "a"), "1");
    ASSERT_OK(np_trace_add_meta(trace, "a", 1, "22", 2));
    ASSERT_STR_EQ(neap_trace_meta(trace, "a"), "22");
    ASSERT_STR_EQ(neap_trace_meta(trace, "ab"), "x=y");
    ASSERT_STR_EQ(neap_trace_meta(trace, "empty"), "");
    ASSERT_TRUE(neap_trace_meta(trace, "x=y") == NULL);
    ASSERT_TRUE(neap_trace_meta(trace, "") == NULL);
    ASSERT_TRUE(np_trace_is_valid(trace));
    neap_trace_free(trace);
}

static void test_names_with_equal_hashes(void **state)
{
    static const char a[] = "thisnamecollides", b[] = "thatnamecollides";
    neap_trace *trace = make_trace();
    (void)state;
    /* Whoever knows the seed can make collisions: a word equal to it wipes out what came before. */
    memcpy(&trace->name_of_hash.seed, a + 8, 8);
    ASSERT_EQ(np_hash_bytes(a, 16, trace->name_of_hash.seed), np_hash_bytes(b, 16, trace->name_of_hash.seed));
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(np_trace_add_exec(trace, a, 16, 0, 0));
        ASSERT_OK(np_trace_add_exec(trace, b, 16, 0, 0));
    }
    ASSERT_EQ(trace->name_at.n, 2);
    ASSERT_EQ(trace->events.items[0].subject, 0);
    ASSERT_EQ(trace->events.items[1].subject, 1);
    ASSERT_EQ(trace->events.items[2].subject, 0);
    ASSERT_EQ(trace->events.items[3].subject, 1);
    ASSERT_TRUE(memcmp(neap_trace_exec_name(trace, 0), a, 16) == 0);
    ASSERT_TRUE(memcmp(neap_trace_exec_name(trace, 1), b, 16) == 0);
    ASSERT_TRUE(np_trace_is_valid(trace));
    neap_trace_free(trace);
}

/* The inverse of np_mix64, for which nobody needs a secret. */
static uint64_t unmix64(uint64_t x)
{
    x ^= x >> 31 ^ x >> 62;
    x *= 0x319642b2d24d8ec3u;
    x ^= x >> 27 ^ x >> 54;
    x *= 0x96de1b173f119089u;
    x ^= x >> 30 ^ x >> 60;
    return x - 0x9e3779b97f4a7c15u;
}

/* The longest row of taken slots. */
static size_t longest_row(const np_map *map)
{
    size_t longest = 0, row = 0;
    for (size_t i = 0; i < map->n_slots; i++) {
        row = map->entries[i].value == NP_MAP_NONE ? 0 : row + 1;
        longest = row > longest ? row : longest;
    }
    return longest;
}

/* A file whose block numbers all fall into one slot of a map without a seed takes no longer than any other. */
static void test_numbers_made_to_collide(void **state)
{
    (void)state;
    for (int attack = 0; attack < 2; attack++) {
        neap_trace *trace = make_trace();
        trace->block_of_id.seed = attack ? 0 : trace->block_of_id.seed; /* as if it were known */
        for (uint64_t i = 1; i <= 3000; i++) {
            ASSERT_EQ(np_mix64(unmix64(i << 40)), i << 40);
            ASSERT_OK(np_trace_add_malloc(trace, unmix64(i << 40), 512));
        }
        ASSERT_EQ(longest_row(&trace->block_of_id) >= 3000, attack);
        ASSERT_LE(attack ? 0 : longest_row(&trace->block_of_id), 300);
        ASSERT_TRUE(np_trace_is_valid(trace));
        neap_trace_free(trace);
    }
}

/* Numbers that share their low bits, so that they chase each other out of the cache before the map. */
static void test_numbers_far_apart(void **state)
{
    neap_trace *trace = make_trace();
    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        ASSERT_OK(np_trace_add_malloc(trace, i << 40, i + 1));
    }
    for (uint64_t i = 0; i < 1000; i++) {
        ASSERT_EQ(np_trace_find_block(trace, i << 40), i);
        ASSERT_EQ(np_trace_find_block(trace, (i << 40) + 1), NP_MAP_NONE);
        ASSERT_OK(np_trace_add_free(trace, i << 40));
    }
    ASSERT_EQ(trace->live_bytes, 0);
    ASSERT_TRUE(np_trace_is_valid(trace));
    neap_trace_free(trace);
}

/* Every kind of damage is seen. */
static void test_is_valid_sees_damage(void **state)
{
    neap_trace *trace = make_small_trace();
    (void)state;

#define ASSERT_DAMAGE(place, value)             \
    do {                                        \
        __typeof__(place) kept = (place);       \
        (place) = (value);                      \
        ASSERT_FALSE(np_trace_is_valid(trace)); \
        (place) = kept;                         \
        ASSERT_TRUE(np_trace_is_valid(trace));  \
    } while (0)

    ASSERT_DAMAGE(trace->events.items[0].kind, NEAP_EVENT_FREE);
    ASSERT_DAMAGE(trace->events.items[0].kind, (neap_event_kind)3);
    ASSERT_DAMAGE(trace->events.items[0].subject, 0);
    ASSERT_DAMAGE(trace->events.items[0].subject, 2);
    ASSERT_DAMAGE(trace->events.items[1].subject, 1);
    ASSERT_DAMAGE(trace->events.items[1].n_accesses, 1);
    ASSERT_DAMAGE(trace->events.items[1].n_accesses, 3);
    ASSERT_DAMAGE(trace->events.items[1].first_access, 1);
    ASSERT_DAMAGE(trace->events.items[2].subject, 1);
    ASSERT_DAMAGE(trace->accesses.items[0].block, 2);
    ASSERT_DAMAGE(trace->accesses.items[0].kind, (neap_access_kind)3);
    ASSERT_DAMAGE(trace->blocks.items[0].free_event, 0);
    ASSERT_DAMAGE(trace->blocks.items[0].free_event, NEAP_NEVER);
    ASSERT_DAMAGE(trace->blocks.items[1].free_event, 2);
    ASSERT_DAMAGE(trace->blocks.items[1].malloc_event, 1);
    ASSERT_DAMAGE(trace->blocks.items[1].malloc_event, NEAP_NEVER);
    ASSERT_DAMAGE(trace->blocks.items[0].bytes, 0);
    ASSERT_DAMAGE(trace->blocks.items[0].bytes, NP_TRACE_BYTES_MAX);
    ASSERT_DAMAGE(trace->blocks.items[0].id, 8);
    ASSERT_DAMAGE(trace->blocks.items[0].fixed_offset, 0);
    ASSERT_DAMAGE(trace->marks.items[0], 4);
    ASSERT_DAMAGE(trace->names.items[1], 'k');
    ASSERT_DAMAGE(trace->meta.items[trace->meta.n - 1], 'k');
    ASSERT_DAMAGE(trace->live_bytes, 0);
    ASSERT_DAMAGE(trace->is_csv, true);
#undef ASSERT_DAMAGE
    neap_trace_free(trace);
}

static neap_status build(const neap_memory *memory, void *user)
{
    neap_trace *trace;
    neap_status status = np_trace_create(memory, &trace);
    (void)user;
    if (status != NEAP_OK) {
        return status;
    }
    for (uint64_t i = 0; i < 200 && status == NEAP_OK; i++) {
        char name[2] = {'k', (char)('0' + i % 50)};
        neap_status (*const add)(neap_trace *, uint64_t, uint64_t) = i < 10 ? np_trace_add_live : np_trace_add_malloc;
        status = add(trace, i, i + 1);
        if (status == NEAP_OK && i >= 10) {
            status = np_trace_add_exec(trace, name, 2, i, 1);
            status = status == NEAP_OK ? np_trace_add_access(trace, i, NEAP_ACCESS_WRITE) : status;
            status = status == NEAP_OK ? np_trace_add_free(trace, i - 10) : status;
        }
        status = status == NEAP_OK ? np_trace_add_mark(trace) : status;
        status = status == NEAP_OK ? np_trace_add_meta(trace, "k", 1, "value", 5) : status;
        if (status !=
            NEAP_OK) { /* a failed call changed nothing; an exec may miss its access, which is still a trace */
            ASSERT_TRUE(np_trace_is_valid(trace));
        }
    }
    neap_trace_free(trace);
    return status;
}

static void test_no_memory(void **state)
{
    (void)state;
    ASSERT_GT(test_memory_fail_each(build, NULL), 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_meta),
        cmocka_unit_test(test_names_with_equal_hashes),
        cmocka_unit_test(test_numbers_made_to_collide),
        cmocka_unit_test(test_numbers_far_apart),
        cmocka_unit_test(test_is_valid_sees_damage),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
