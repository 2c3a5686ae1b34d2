/* test_meet.c: whose bytes touch whose, and which copies a use of them comes after. What is expected is found by painting
 * a map of the arena, in another way than the library does it. */
#include <string.h>

#include "run/meet.h"
#include "run/visit_watch.h"
#include "testing.h"

enum { MAP_BYTES = 1 << 20 };

static uint8_t map[MAP_BYTES];

static void paint_life(const np_pattern *pattern, uint32_t life)
{
    const np_program_life *of = &pattern->program.lives.items[life];
    memset(map, 0, sizeof map);
    for (uint32_t i = 0; i < of->n_placed * of->n_places; i++) {
        const np_placed *placed = &pattern->program.placed.items[of->first_placed + i];
        ASSERT_LE(placed->offset + placed->bytes, MAP_BYTES);
        memset(map + placed->offset, 1, placed->bytes);
    }
}

static bool is_on_paint(const np_pattern *pattern, uint32_t life)
{
    const np_program_life *of = &pattern->program.lives.items[life];
    for (uint32_t i = 0; i < of->n_placed * of->n_places; i++) {
        const np_placed *placed = &pattern->program.placed.items[of->first_placed + i];
        if (memchr(map + placed->offset, 1, placed->bytes)) {
            return true;
        }
    }
    return false;
}

static np_copy_marks later(np_copy_marks a, np_copy_marks b)
{
    return (np_copy_marks){a.out > b.out ? a.out : b.out, a.in > b.in ? a.in : b.in};
}

static np_copy_marks copies_of(const np_pattern *pattern, uint32_t life)
{
    np_copy_marks marks = {0};
    for (size_t i = 0; i < pattern->program.swaps.n; i++) {
        if (pattern->program.swaps.items[i].life == life) {
            marks = later(marks, (np_copy_marks){pattern->out_marks[i], pattern->in_marks[i]});
        }
    }
    return marks;
}

/* How often there were later copies than those that a use has to wait for. */
static uint32_t n_spared;

static void compare(little_program *p)
{
    const np_pattern *pattern = p->device->pattern;
    uint32_t n = (uint32_t)pattern->program.lives.n;
    np_copy_marks all = {0};
    if (p->device->state != NEAP_STATE_RUN) {
        return;
    }
    for (uint32_t life = 0; life < n; life++) {
        all = later(all, copies_of(pattern, life));
    }
    for (uint32_t life = 0; life < n; life++) {
        np_copy_marks found = np_meet_copies(pattern, life);
        np_copy_marks expected = copies_of(pattern, life);
        paint_life(pattern, life);
        for (uint32_t other = 0; other < n; other++) {
            bool is_met = is_on_paint(pattern, other);
            ASSERT_EQ(np_meet_life(pattern, life, 0, UINT64_MAX, other).any, is_met);
            expected = is_met ? later(expected, copies_of(pattern, other)) : expected;
        }
        ASSERT_EQ(found.out, expected.out);
        ASSERT_EQ(found.in, expected.in);
        n_spared += expected.out < all.out || expected.in < all.in;
    }
}

static void check(const little_options *options)
{
    static little_program p;
    visit_start(&p, options);
    p.after_event = compare;
    little_laps(&p, 2);
    ASSERT_EQ(p.device->state, NEAP_STATE_RUN);
    p.after_event = NULL;
    little_end(&p);
}

static void test_copies(void **state)
{
    (void)state;
    n_spared = 0;
    check(&(little_options){.device = {.limit_share = 0.6}});
    ASSERT_GT(n_spared, 0);
    check(&(little_options){.device = {.limit_share = 0.6}, .shares_pages = true});
    check(&(little_options){.device = {.limit_share = 0.7}, .has_crossing = true});
}

/* Only those bytes that are asked for count. */
static void test_bytes(void **state)
{
    static little_program p;
    const np_pattern *pattern;
    uint32_t n_met = 0;
    (void)state;
    visit_start(&p, &(little_options){.device = {.limit_share = 0.6}});
    pattern = p.device->pattern;
    for (uint32_t life = 0; life < pattern->program.lives.n; life++) {
        for (uint32_t other = 0; other < pattern->program.lives.n; other++) {
            ASSERT_FALSE(np_meet_life(pattern, life, 0, 0, other).any);
            n_met += np_meet_life(pattern, life, 0, 1, other).any;
        }
    }
    ASSERT_GE(n_met, pattern->program.lives.n); /* each meets itself */
    little_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
