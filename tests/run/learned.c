#include "run/learned.h"

#include <stdio.h>
#include <string.h>

#include "run/learn.h"
#include "run/make_program.h"
#include "testing.h"

static const learned_options small_options = {
    .page_bytes = LEARNED_PAGE, .min_block = LEARNED_PAGE, .limit_share = 0.6, .link_gbs = 2, .seconds = 0.01};

/* Those of a page or more begin where the one before has ended, as those that were malloc'd one after the other do. */
static void list_residents(np_lesson *lesson)
{
    uint64_t end = 0; /* of the last one, in its last page */
    uint64_t last = NP_NO_NEIGHBOUR;
    for (size_t i = 0; i < lesson->trace->blocks.n; i++) {
        const neap_trace_block *block = &lesson->trace->blocks.items[i];
        np_resident resident = {.id = block->id,
                                .neighbour = NP_NO_NEIGHBOUR,
                                .life = NP_NO_LIFE,
                                .first_page = UINT32_MAX,
                                .is_outside = block->bytes < lesson->page_bytes};
        if (block->free_event != NEAP_NEVER) {
            continue;
        }
        if (!resident.is_outside) {
            resident.lead = end;
            resident.neighbour = end > 0 ? last : NP_NO_NEIGHBOUR;
            end = (end + block->bytes + 511) / 512 * 512 % lesson->page_bytes;
            last = block->id;
        }
        ASSERT_OK(np_array_push(lesson->memory, &lesson->residents, resident));
    }
}

np_pattern *learn_pattern(neap_trace *trace, const learned_options *options, neap_status *status)
{
    np_lesson *lesson = np_memory_alloc_zero(&np_memory_default, 1, sizeof *lesson);
    np_pattern *pattern = NULL;
    ASSERT_TRUE(lesson != NULL);
    lesson->memory = &np_memory_default;
    lesson->trace = trace;
    lesson->page_bytes = options->page_bytes;
    lesson->limit_share = options->limit_share;
    lesson->min_block = options->min_block;
    lesson->link = (neap_link){.out_gbs = options->link_gbs, .in_gbs = options->link_gbs};
    lesson->seconds = options->seconds;
    lesson->n_threads = 1;
    list_residents(lesson);
    np_lesson_learn(lesson);
    *status = lesson->status;
    if (lesson->status == NEAP_OK) {
        np_pattern_facts facts = {.exec_ns = lesson->exec_ns.items,
                                  .name_at = lesson->name_at.items,
                                  .names = lesson->names.items,
                                  .names_bytes = lesson->names.n};
        ASSERT_OK(np_pattern_create(&lesson->program, &facts, lesson->page_bytes, &np_memory_default, &pattern));
    }
    np_lesson_free(lesson);
    return pattern;
}

np_pattern *learn_random_pattern(uint64_t *seed)
{
    static const random_scene small = {
        .max_slots = 20, .max_lives = 16, .max_streams = 3, .max_pages = 16, .long_lives = true};
    for (;;) {
        np_rng rng = np_rng_make((*seed)++);
        learned_options options = small_options;
        np_pattern *pattern;
        neap_status status;
        neap_trace *trace;
        scene made;
        if (!make_random_scene(&small, &rng, &made)) {
            continue;
        }
        trace = made.trace;
        made.trace = NULL;
        free_scene(&made);
        options.limit_share = 0.3 + 0.7 * np_rng_unit(&rng);
        options.link_gbs = 0.5 + 10 * np_rng_unit(&rng);
        pattern = learn_pattern(trace, &options, &status);
        if (pattern) {
            return pattern;
        }
        ASSERT_TRUE(status == NEAP_NO_PLAN || status == NEAP_NO_PERIOD);
    }
}

np_plan_origin learned_origin(uint64_t page_bytes)
{
    return (np_plan_origin){.version = "1.2.3",
                            .machine = "tide",
                            .program = "/opt/train",
                            .command = 0x123456789abcdef0,
                            .device = "cpu",
                            .page_bytes = page_bytes,
                            .n_pages = 1 << 20,
                            .n_streams = 3,
                            .limit_share = 0.6,
                            .min_block = 512,
                            .seed = 7,
                            .link = {25, 24, 40, 10}};
}

/* ---- equality ---- */

static bool events_are_equal(const np_program *a, const np_program *b)
{
    for (size_t i = 0; i < a->events.n; i++) {
        const np_program_event *x = &a->events.items[i];
        const np_program_event *y = &b->events.items[i];
        if (x->key != y->key || x->subject != y->subject || x->first_use != y->first_use ||
            x->first_op != y->first_op || x->n_uses != y->n_uses || x->n_before != y->n_before ||
            x->n_after != y->n_after || x->kind != y->kind || x->stream != y->stream) {
            return false;
        }
    }
    for (size_t i = 0; i < a->uses.n; i++) {
        if (a->uses.items[i].life != b->uses.items[i].life || a->uses.items[i].kind != b->uses.items[i].kind) {
            return false;
        }
    }
    for (size_t i = 0; i < a->ops.n; i++) {
        const np_op *x = &a->ops.items[i];
        const np_op *y = &b->ops.items[i];
        if (x->index != y->index || x->kind != y->kind || x->stream != y->stream) {
            return false;
        }
    }
    return true;
}

static bool lives_are_equal(const np_program *a, const np_program *b)
{
    for (size_t i = 0; i < a->lives.n; i++) {
        const np_program_life *x = &a->lives.items[i];
        const np_program_life *y = &b->lives.items[i];
        if (x->bytes != y->bytes || x->id != y->id || x->first_placed != y->first_placed ||
            x->n_placed != y->n_placed || x->n_places != y->n_places || x->begin != y->begin || x->end != y->end ||
            x->persistent != y->persistent || x->swapped != y->swapped) {
            return false;
        }
    }
    for (size_t i = 0; i < a->placed.n; i++) {
        const np_placed *x = &a->placed.items[i];
        const np_placed *y = &b->placed.items[i];
        if (x->at != y->at || x->bytes != y->bytes || x->offset != y->offset || x->life != y->life ||
            x->place != y->place) {
            return false;
        }
    }
    for (size_t i = 0; i < a->swaps.n; i++) {
        const np_program_swap *x = &a->swaps.items[i];
        const np_program_swap *y = &b->swaps.items[i];
        if (x->begin != y->begin || x->end != y->end || x->life != y->life || x->starts_absent != y->starts_absent) {
            return false;
        }
    }
    return true;
}

bool patterns_are_equal(const np_pattern *a, const np_pattern *b)
{
    const np_program *x = &a->program;
    const np_program *y = &b->program;
    if (x->footprint != y->footprint || x->peak_load != y->peak_load || x->n_execs != y->n_execs ||
        memcmp(&x->period_ns, &y->period_ns, sizeof x->period_ns) != 0 ||
        memcmp(&x->overhead, &y->overhead, sizeof x->overhead) != 0 || x->events.n != y->events.n ||
        x->uses.n != y->uses.n || x->ops.n != y->ops.n || x->lives.n != y->lives.n || x->placed.n != y->placed.n ||
        x->swaps.n != y->swaps.n || a->hash != b->hash) {
        return false;
    }
    for (uint32_t i = 0; i < x->n_execs; i++) {
        if (a->exec_ns[i] != b->exec_ns[i] || a->exec_streams[i] != b->exec_streams[i] ||
            strcmp(a->names + a->name_at[i], b->names + b->name_at[i]) != 0) {
            return false;
        }
    }
    return events_are_equal(x, y) && lives_are_equal(x, y);
}
