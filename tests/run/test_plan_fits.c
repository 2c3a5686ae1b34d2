/* test_plan_fits.c: programs that are valid, or nearly, and would lead the manager astray. Each is a learned one with one
 * thing changed; np_plan_fits must see it, and the reader must refuse it. */
#include <string.h>

#include "run/learned.h"
#include "run/plan_code.h"
#include "testing.h"

/* What is changed, in a pattern that can be changed so; false: this one cannot. */
typedef bool change(np_pattern *pattern, np_plan_origin *device);

static np_program_life *find_life(np_pattern *pattern, bool persistent, bool swapped, bool placed)
{
    for (size_t i = 0; i < pattern->program.lives.n; i++) {
        np_program_life *life = &pattern->program.lives.items[i];
        if (life->persistent == persistent && life->swapped == swapped && (life->n_placed > 0) == placed) {
            return life;
        }
    }
    return NULL;
}

static uint32_t index_of(const np_pattern *pattern, const np_program_life *life)
{
    return (uint32_t)(life - pattern->program.lives.items);
}

/* ---- changes ---- */

static bool shrink_device(np_pattern *pattern, np_plan_origin *device)
{
    uint64_t footprint = pattern->program.footprint;
    device->n_pages = footprint > 0 ? (uint32_t)((footprint - 1) / device->page_bytes) : 0;
    return footprint > 0;
}

static bool huge_footprint(np_pattern *pattern, np_plan_origin *device)
{
    (void)device;
    pattern->program.footprint = UINT64_MAX;
    return true;
}

static bool odd_pages(np_pattern *pattern, np_plan_origin *device)
{
    (void)pattern;
    device->page_bytes = 0;
    return true;
}

static bool fewer_streams(np_pattern *pattern, np_plan_origin *device)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < pattern->program.n_execs; i++) {
        most = pattern->exec_streams[i] > most ? pattern->exec_streams[i] : most;
    }
    device->n_streams = most;
    return most > 0;
}

static bool wait_of_other_stream(np_pattern *pattern, np_plan_origin *device)
{
    for (size_t i = 0; i < pattern->program.ops.n; i++) {
        np_op *op = &pattern->program.ops.items[i];
        if (op->kind < NP_OP_OUT) {
            op->stream = (uint8_t)device->n_streams;
            return true;
        }
    }
    return false;
}

/* The first event of a kind gets the life. */
static bool set_subject(np_pattern *pattern, neap_event_kind kind, const np_program_life *life)
{
    for (size_t i = 0; i < pattern->program.events.n && life; i++) {
        np_program_event *event = &pattern->program.events.items[i];
        if (event->kind == kind && event->subject != index_of(pattern, life)) {
            event->subject = index_of(pattern, life);
            return true;
        }
    }
    return false;
}

/* A malloc of what is never malloc'd has no planned block. */
static bool malloc_of_persistent(np_pattern *pattern, np_plan_origin *device)
{
    (void)device;
    return set_subject(pattern, NEAP_EVENT_MALLOC, find_life(pattern, true, false, false));
}

static bool free_of_other(np_pattern *pattern, np_plan_origin *device)
{
    (void)device;
    return set_subject(pattern, NEAP_EVENT_FREE, find_life(pattern, false, false, true));
}

/* Blocks begin at multiples of 512. */
static bool other_home(np_pattern *pattern, np_plan_origin *device)
{
    np_program_life *life = find_life(pattern, true, false, true);
    (void)device;
    if (life) {
        pattern->program.placed.items[life->first_placed].offset += 256;
    }
    return life != NULL;
}

/* A place in more pages than the block's view has. */
static bool home_of_less(np_pattern *pattern, np_plan_origin *device)
{
    np_program_life *life = find_life(pattern, true, false, true);
    if (!life || pattern->program.placed.items[life->first_placed].bytes <= device->page_bytes) {
        return false;
    }
    life->bytes = 1;
    return true;
}

/* A place larger than the block: a swap of it would copy over the end of the view. */
static bool place_too_large(np_pattern *pattern, np_plan_origin *device)
{
    for (size_t i = 0; i < pattern->program.swaps.n; i++) {
        np_program_life *life = &pattern->program.lives.items[pattern->program.swaps.items[i].life];
        np_placed *last = &pattern->program.placed.items[life->first_placed + life->n_placed - 1];
        if (last->at > 0 && !life->persistent) {
            life->bytes = last->at / 2;
            pattern->program.events.items[life->begin].key = life->bytes;
            (void)device;
            return true;
        }
    }
    return false;
}

static bool block_too_large(np_pattern *pattern, np_plan_origin *device)
{
    np_program_life *life = find_life(pattern, true, false, false);
    if (life) {
        life->bytes = device->page_bytes * device->n_pages + 1;
    }
    return life != NULL;
}

static bool odd_offset(np_pattern *pattern, np_plan_origin *device)
{
    np_program_life *life = find_life(pattern, false, false, true);
    (void)device;
    if (!life || pattern->program.placed.items[life->first_placed].offset == 0) {
        return false;
    }
    pattern->program.placed.items[life->first_placed].offset -= 256;
    return true;
}

static bool odd_view(np_pattern *pattern, np_plan_origin *device)
{
    np_program_life *life = find_life(pattern, false, true, true);
    (void)device;
    if (!life || pattern->program.placed.items[life->first_placed].offset == 0) {
        return false;
    }
    pattern->program.placed.items[life->first_placed].offset -= 512;
    return true;
}

/* Only what is persistent may have a view that does not begin with the block. */
static bool view_in_a_page(np_pattern *pattern, np_plan_origin *device)
{
    for (size_t i = 0; i < pattern->program.lives.n; i++) {
        np_program_life *life = &pattern->program.lives.items[i];
        if (!life->persistent && !life->swapped && life->n_places == 1 &&
            pattern->program.placed.items[life->first_placed].offset % device->page_bytes == 512) {
            life->swapped = true;
            return true;
        }
    }
    return false;
}

/* The blocks that take turns each have an address in the arena: they cannot be in pieces. */
static bool turns_in_pieces(np_pattern *pattern, np_plan_origin *device)
{
    np_program_life *life = find_life(pattern, false, true, true);
    (void)device;
    if (!life || life->n_placed < 2) {
        return false;
    }
    life->n_places = 2;
    life->n_placed /= 2;
    life->swapped = false;
    return life->n_placed > 1;
}

static bool part_of_a_page(np_pattern *pattern, np_plan_origin *device)
{
    if (pattern->program.swaps.n == 0 ||
        pattern->program.swaps.items[0].end - pattern->program.swaps.items[0].begin <= device->page_bytes / 4) {
        return false;
    }
    pattern->program.swaps.items[0].begin += device->page_bytes / 4; /* its first page may be half its own */
    return true;
}

static bool part_of_the_last_page(np_pattern *pattern, np_plan_origin *device)
{
    (void)device;
    if (pattern->program.swaps.n == 0) {
        return false;
    }
    pattern->program.swaps.items[0].end--;
    return true;
}

static const struct {
    change *change;
    const char *why;
} cases[] = {
    {shrink_device, "the device has less than "},
    {huge_footprint, "the device has less than "},
    {odd_pages, "the device has less than "},
    {fewer_streams, "streams"},
    {wait_of_other_stream, "streams"},
    {malloc_of_persistent, "is not its block's own"},
    {free_of_other, "is not its block's own"},
    {other_home, "does not fit its place"},
    {home_of_less, "does not fit its place"},
    {place_too_large, "does not fit its place"},
    {block_too_large, "does not fit its place"},
    {odd_offset, "does not fit its place"},
    {odd_view, "does not fit its place"},
    {view_in_a_page, "does not fit its place"},
    {turns_in_pieces, "does not fit its place"},
    {part_of_a_page, "is not of whole pages"},
    {part_of_the_last_page, "is not of whole pages"},
};

enum { N_CASES = sizeof cases / sizeof *cases };

/* As bytes, and read back. */
static neap_status read_back(const np_pattern *pattern, const np_plan_origin *device, neap_error *error)
{
    np_plan_writer w = {.memory = &np_memory_default};
    np_plan_reader r;
    np_pattern *again = NULL;
    neap_status status;
    np_plan_put_pattern(&w, pattern);
    ASSERT_OK(w.status);
    r = (np_plan_reader){.at = w.bytes.items, .end = w.bytes.items + w.bytes.n};
    status = np_plan_get_pattern(&r, device, NULL, error, &again);
    np_pattern_free(again);
    np_array_free(w.memory, &w.bytes);
    return status;
}

static np_pattern *copy_pattern(const np_pattern *pattern, const np_plan_origin *device)
{
    np_plan_writer w = {.memory = &np_memory_default};
    np_plan_reader r;
    np_pattern *again = NULL;
    neap_error error;
    np_plan_put_pattern(&w, pattern);
    r = (np_plan_reader){.at = w.bytes.items, .end = w.bytes.items + w.bytes.n};
    ASSERT_OK(np_plan_get_pattern(&r, device, NULL, &error, &again));
    np_array_free(w.memory, &w.bytes);
    return again;
}

static void test_changes(void **state)
{
    const np_plan_origin origin = learned_origin(LEARNED_PAGE);
    size_t n_seen[N_CASES] = {0};
    uint64_t seed = 1;
    (void)state;
    for (int round = 0; round < 20; round++) {
        np_pattern *pattern = learn_random_pattern(&seed);
        for (size_t i = 0; i < N_CASES; i++) {
            np_plan_origin device = origin;
            np_pattern *changed = copy_pattern(pattern, &origin);
            neap_error error = {""};
            ASSERT_OK(np_plan_fits(&changed->program, &device, NULL, &error));
            if (cases[i].change(changed, &device)) {
                ASSERT_STATUS(NEAP_BAD_INPUT, np_plan_fits(&changed->program, &device, NULL, &error));
                ASSERT_CONTAINS(error.text, cases[i].why);
                ASSERT_STATUS(NEAP_BAD_INPUT, read_back(changed, &device, &error));
                n_seen[i]++;
            }
            np_pattern_free(changed);
        }
        np_pattern_free(pattern);
    }
    for (size_t i = 0; i < N_CASES; i++) {
        if (n_seen[i] == 0) {
            test_fail(__FILE__, __LINE__, "case %zu (%s) was never met", i, cases[i].why);
        }
    }
}

/* A wait less, where it was needed, is for program_check.c to see: the reader asks it. */
static void test_wrong_order(void **state)
{
    const np_plan_origin origin = learned_origin(LEARNED_PAGE);
    uint64_t seed = 1;
    size_t n_refused = 0;
    (void)state;
    for (int round = 0; round < 20; round++) {
        np_pattern *pattern = learn_random_pattern(&seed);
        np_program *program = &pattern->program;
        for (size_t t = program->events.n; t-- > 0;) {
            np_program_event *event = &program->events.items[t];
            if (event->n_after > 0 && event->first_op + event->n_before + event->n_after == program->ops.n) {
                neap_error error;
                event->n_after--;
                program->ops.n--;
                n_refused += read_back(pattern, &origin, &error) == NEAP_BAD_INPUT;
                break;
            }
        }
        np_pattern_free(pattern);
    }
    ASSERT_GT(n_refused, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_wrong_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
