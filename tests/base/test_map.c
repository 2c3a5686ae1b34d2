/* The map against what it must be, with keys that collide, and with every allocation failing in turn. */
#include "base/map.h"

#include "base/rng.h"
#include "testing.h"

static void put(np_map *map, uint64_t key, uint32_t value, uint32_t expected, bool expected_found)
{
    uint32_t existing = 0;
    bool found = !expected_found;
    ASSERT_OK(np_map_get_or_put(map, key, value, &existing, &found));
    ASSERT_EQ(existing, expected);
    ASSERT_EQ(found, expected_found);
}

static void test_empty_map_has_nothing(void **state)
{
    test_memory memory;
    np_map map;
    (void)state;
    test_memory_init(&memory);
    np_map_init(&map, &memory.hook);
    ASSERT_EQ(np_map_get(&map, 0), NP_MAP_NONE);
    ASSERT_TRUE(np_map_is_valid(&map));
    np_map_free(&map);
    ASSERT_EQ(memory.n_calls, 0);
    test_memory_finish(&memory);
}

static void test_first_value_stays(void **state)
{
    test_memory memory;
    np_map map;
    (void)state;
    test_memory_init(&memory);
    np_map_init(&map, &memory.hook);
    put(&map, 0, 10, 10, false);
    put(&map, UINT64_MAX, 0, 0, false);
    put(&map, 0, 11, 10, true);
    put(&map, UINT64_MAX, 12, 0, true);
    ASSERT_EQ(map.n, 2);
    ASSERT_EQ(np_map_get(&map, 0), 10);
    ASSERT_EQ(np_map_get(&map, UINT64_MAX), 0);
    ASSERT_EQ(np_map_get(&map, 1), NP_MAP_NONE);
    ASSERT_TRUE(np_map_is_valid(&map));
    np_map_free(&map);
    ASSERT_EQ(np_map_get(&map, 0), NP_MAP_NONE); /* empty again, and usable */
    put(&map, 0, 13, 13, false);
    np_map_free(&map);
    test_memory_finish(&memory);
}

/* Keys as they come in practice (small numbers in a row, multiples of a power of two, random ones), all at once. */
static void test_many_keys(void **state)
{
    enum { N = 20000 };
    test_memory memory;
    np_map map;
    np_rng rng = np_rng_make(3);
    (void)state;
    test_memory_init(&memory);
    np_map_init(&map, &memory.hook);
    for (uint32_t i = 0; i < N; i++) {
        put(&map, i, 3 * i, 3 * i, false);
        put(&map, (uint64_t)(i + 1) << 40, 3 * i + 1, 3 * i + 1, false);
        put(&map, np_rng_next(&rng) | 1u << 31, 3 * i + 2, 3 * i + 2, false);
    }
    ASSERT_EQ(map.n, 3 * N);
    ASSERT_TRUE(np_map_is_valid(&map));
    rng = np_rng_make(3);
    for (uint32_t i = 0; i < N; i++) {
        ASSERT_EQ(np_map_get(&map, i), 3 * i);
        ASSERT_EQ(np_map_get(&map, (uint64_t)(i + 1) << 40), 3 * i + 1);
        ASSERT_EQ(np_map_get(&map, np_rng_next(&rng) | 1u << 31), 3 * i + 2);
        ASSERT_EQ(np_map_get(&map, N + i), NP_MAP_NONE);
    }
    np_map_free(&map);
    test_memory_finish(&memory);
}

/* Each map has a seed of its own. It changes where keys stand and nothing else. */
static void test_seed_is_not_seen(void **state)
{
    np_map a, b;
    (void)state;
    np_map_init(&a, NULL);
    np_map_init(&b, NULL);
    ASSERT_NE(a.seed, b.seed);
    for (uint32_t i = 0; i < 1000; i++) {
        put(&a, i * UINT64_C(0x9e3779b97f4a7c15), i, i, false);
        put(&b, i * UINT64_C(0x9e3779b97f4a7c15), i, i, false);
    }
    ASSERT_EQ(a.n_slots, b.n_slots);
    for (uint32_t i = 0; i < 1000; i++) {
        ASSERT_EQ(np_map_get(&a, i * UINT64_C(0x9e3779b97f4a7c15)), np_map_get(&b, i * UINT64_C(0x9e3779b97f4a7c15)));
    }
    np_map_free(&a);
    np_map_free(&b);
}

static void test_failed_growth_changes_nothing(void **state)
{
    test_memory memory;
    np_map map;
    uint32_t existing = 77;
    bool found = true;
    uint32_t n = 0;
    (void)state;
    test_memory_init(&memory);
    np_map_init(&map, &memory.hook);
    do {
        put(&map, n, n, n, false);
        n++;
    } while (2 * (map.n + 1) <= map.n_slots);
    memory.fail_at = memory.n_calls + 1;
    ASSERT_STATUS(NEAP_NO_MEMORY, np_map_get_or_put(&map, n, n, &existing, &found));
    ASSERT_EQ(existing, 77);
    ASSERT_EQ(found, true);
    ASSERT_EQ(map.n, n);
    ASSERT_TRUE(np_map_is_valid(&map));
    ASSERT_EQ(np_map_get(&map, n), NP_MAP_NONE);
    ASSERT_EQ(np_map_get(&map, n - 1), n - 1);
    put(&map, n, n, n, false);
    np_map_free(&map);
    test_memory_finish(&memory);
}

static neap_status put_many(const neap_memory *memory, void *user)
{
    np_map map;
    neap_status status = NEAP_OK;
    (void)user;
    np_map_init(&map, memory);
    for (uint32_t i = 0; i < 1000 && status == NEAP_OK; i++) {
        uint32_t existing;
        bool found;
        status = np_map_get_or_put(&map, i, i, &existing, &found);
    }
    np_map_free(&map);
    return status;
}

static void test_every_failure_is_reported(void **state)
{
    (void)state;
    ASSERT_GE(test_memory_fail_each(put_many, NULL), 5);
}

/* The walk that guards the structure must see what is wrong with it. */
static void test_validity_sees_damage(void **state)
{
    test_memory memory;
    np_map map;
    size_t i = 0;
    size_t other;
    uint64_t key_was;
    (void)state;
    test_memory_init(&memory);
    np_map_init(&map, &memory.hook);
    for (uint32_t key = 0; key < 20; key++) {
        put(&map, key, key, key, false);
    }
    map.n++;
    ASSERT_FALSE(np_map_is_valid(&map));
    map.n--;
    while (map.entries[i].value == NP_MAP_NONE) {
        i++;
    }
    for (other = i + 1; map.entries[other].value == NP_MAP_NONE; other++) {}
    key_was = map.entries[i].key;
    map.entries[i].key = map.entries[other].key; /* twice there: whatever the seed, one of the two is never found */
    ASSERT_FALSE(np_map_is_valid(&map));
    map.entries[i].key = key_was;
    ASSERT_TRUE(np_map_is_valid(&map));
    np_map_free(&map);
    test_memory_finish(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_map_has_nothing),
        cmocka_unit_test(test_first_value_stays),
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_seed_is_not_seen),
        cmocka_unit_test(test_failed_growth_changes_nothing),
        cmocka_unit_test(test_every_failure_is_reported),
        cmocka_unit_test(test_validity_sees_damage),
    };
    return cmocka_run_group_tests_name("base/map", tests, NULL, NULL);
}
