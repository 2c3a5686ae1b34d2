#include "run/random_actor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAIT_MS = 60 };

static bool chance(np_rng *rng, uint32_t per_cent)
{
    return np_rng_below(rng, 100) < per_cent;
}

static uint32_t between(np_rng *rng, uint32_t low, uint32_t high)
{
    return low + (uint32_t)np_rng_below(rng, high - low + 1);
}

/* ---- what it will do ---- */

static void make_policy(actor *a)
{
    bool is_one = a->settings->is_steady || chance(&a->rng, 55);
    a->policy = is_one ? ACTOR_ONE : (actor_policy)between(&a->rng, ACTOR_ONE + 1, ACTOR_N_POLICIES - 1);
    a->n_iterations = a->policy == ACTOR_ONE ? between(&a->rng, 7, 16) : between(&a->rng, 14, 24);
    a->n_alone = chance(&a->rng, 70) ? between(&a->rng, 4, 7) : 0;
    a->n_quiet = chance(&a->rng, 75) ? between(&a->rng, 4, 7) : 0;
    a->every = a->policy == ACTOR_FOR_GOOD ? between(&a->rng, 5, 9) : between(&a->rng, 2, 5);
    a->departure_share = a->settings->is_steady || chance(&a->rng, 20) ? 0 : between(&a->rng, 8, 45);
}

void actor_make(actor *a, const random_settings *settings, uint64_t seed)
{
    loop_form *form = &a->form;
    *a = (actor){.settings = settings, .rng = np_rng_make(seed)};
    make_policy(a);
    a->n_lasting = between(&a->rng, 1, 8);
    *form = (loop_form){.n_streams = settings->n_streams,
                        .page_bytes = settings->page_bytes,
                        .n_lasting = a->n_lasting,
                        .first_slot = a->n_lasting,
                        .max_pages = chance(&a->rng, 70) ? 12 : 40,
                        .max_execs = chance(&a->rng, 70) ? 16 : 36,
                        .max_lives = chance(&a->rng, 60) ? 14 : LOOP_LIVES,
                        .may_be_small = chance(&a->rng, 40),
                        .may_leak = chance(&a->rng, 6)};
    for (uint32_t i = 0; i < a->n_lasting; i++) {
        a->lasting_bytes[i] = random_bytes(&a->rng, form);
    }
    make_loop(&a->rng, form, &a->loops[0]);
    a->loops[1] = a->loops[0];
    if (chance(&a->rng, 50)) {
        vary_loop(&a->rng, form, &a->loops[1]);
    } else {
        form->first_slot += LOOP_LIVES;
        form->first_name = chance(&a->rng, 70) ? 100 : 0;
        make_loop(&a->rng, form, &a->loops[1]);
    }
}

uint32_t actor_peak_pages(const actor *a)
{
    uint64_t page = a->settings->page_bytes;
    uint32_t first = loop_peak_pages(&a->loops[0], page);
    uint32_t second = a->policy == ACTOR_ONE ? 0 : loop_peak_pages(&a->loops[1], page);
    uint32_t n = first > second ? first : second;
    for (uint32_t i = 0; i < a->n_lasting; i++) {
        n += (uint32_t)((a->lasting_bytes[i] + page - 1) / page);
    }
    return n;
}

/* ---- calls that may fail ---- */

static bool is_bad(const actor *a)
{
    return atomic_load(&a->report->is_bad);
}

/* True where the call did what it was to do. */
static bool passed(actor *a, neap_status status, const char *what)
{
    bool may_be_full = a->settings->memory_share > 0;
    if (status == NEAP_OK) {
        return true;
    }
    a->n_full += status == NEAP_DEVICE_FULL;
    if (a->settings->faults.calls && !a->settings->tries_again) {
        a->n_failed++;
    } else if (status != NEAP_DEVICE_FULL || !may_be_full) {
        shadow_say(a->report, "iteration %u: %s gave %s: %s", a->iteration, what, neap_status_name(status),
                   neap_device_error());
    }
    return false;
}

static void look(actor *a, bool is_due)
{
    if (is_due && !is_bad(a)) {
        const char *flaw;
        (void)pthread_mutex_lock(&a->device->lock);
        flaw = np_manager_find_flaw(a->device);
        (void)pthread_mutex_unlock(&a->device->lock);
        if (flaw) {
            shadow_say(a->report, "iteration %u: %s", a->iteration, flaw);
        }
    }
}

/* What the device has found, and what the manager says of itself. */
static void look_at_device(actor *a)
{
    np_device *device = a->device->device;
    neap_stats stats;
    const char *problem;
    neap_get_stats(a->device, &stats);
    (void)pthread_mutex_lock(&a->device->lock);
    problem = device->api->problem ? device->api->problem(device) : NULL;
    if (problem) {
        shadow_say(a->report, "iteration %u: %s", a->iteration, problem);
    }
    if (a->device->pattern != a->followed && a->followed) {
        a->has_several = true;
    }
    a->followed = a->device->pattern;
    a->has_swapped |= stats.n_iterations > 0 && a->followed && a->followed->program.swaps.n > 0;
    (void)pthread_mutex_unlock(&a->device->lock);
    if (stats.n_departures > 0 && a->n_on_plan_at_departure == 0) {
        a->n_on_plan_at_departure = stats.n_iterations + 1;
    }
    a->has_resumed |= a->n_on_plan_at_departure > 0 && stats.n_iterations >= a->n_on_plan_at_departure;
    if (stats.limit > 0 && stats.state == NEAP_STATE_RUN && stats.held > stats.limit) {
        shadow_say(a->report, "iteration %u: %llu bytes are held, the limit is %llu", a->iteration,
                   (unsigned long long)stats.held, (unsigned long long)stats.limit);
    }
}

static void say_loud(const actor *a, const char *what, uint64_t x, uint64_t y)
{
    if (a->settings->is_loud) {
        (void)fprintf(stderr, "  %u: %s %llu %llu\n", a->iteration, what, (unsigned long long)x,
                      (unsigned long long)y);
    }
}

/* ---- blocks ---- */

static void free_block(actor *a, shadow_block *block)
{
    say_loud(a, "free", block->serial, block->bytes);
    (void)passed(a, shadow_free(&a->streams, block), "neap_free");
    look(a, a->settings->is_valid_each_event);
}

static bool malloc_block(actor *a, uint64_t bytes, shadow_block *block)
{
    bool is_made = passed(a, shadow_malloc(&a->streams, bytes, block), "neap_malloc");
    say_loud(a, is_made ? "malloc" : "failed malloc", is_made ? block->serial : 0, bytes);
    look(a, a->settings->is_valid_each_event);
    return is_made;
}

static void keep(actor *a, shadow_block block)
{
    if (a->n_kept < ACTOR_KEPT) {
        a->kept[a->n_kept++] = block;
    } else {
        free_block(a, &block);
    }
}

static shadow_block take_oldest(actor_slot *slot)
{
    shadow_block block = slot->blocks[0];
    slot->n--;
    memmove(&slot->blocks[0], &slot->blocks[1], slot->n * sizeof block);
    return block;
}

static void free_late(actor *a, shadow_block block, uint32_t n_steps)
{
    if (a->n_late < ACTOR_LATE) {
        a->late[a->n_late++] = (actor_late){block, n_steps};
    } else {
        free_block(a, &block);
    }
}

/* A step has passed. */
static void count_late(actor *a)
{
    for (uint32_t i = 0; i < a->n_late;) {
        if (a->late[i].n_steps-- == 0) {
            shadow_block block = a->late[i].block;
            a->late[i] = a->late[--a->n_late];
            free_block(a, &block);
        } else {
            i++;
        }
    }
}

/* Any live block, or NULL. */
static shadow_block *any_block(actor *a)
{
    uint32_t n = a->n_kept + a->n_late;
    uint64_t pick;
    for (uint32_t i = 0; i < LOOP_SLOTS; i++) {
        n += a->slots[i].n;
    }
    if (n == 0) {
        return NULL;
    }
    pick = np_rng_below(&a->rng, n);
    for (uint32_t i = 0; i < LOOP_SLOTS; i++) {
        if (pick < a->slots[i].n) {
            return &a->slots[i].blocks[pick];
        }
        pick -= a->slots[i].n;
    }
    return pick < a->n_kept ? &a->kept[pick] : &a->late[pick - a->n_kept].block;
}

/* ---- steps ---- */

static void exec(actor *a, uint32_t name, uint32_t stream, uint64_t duration_ns, const shadow_use *uses, uint32_t n)
{
    char text[24];
    neap_status status;
    (void)snprintf(text, sizeof text, "work%u", name);
    if (a->settings->is_loud) {
        (void)fprintf(stderr, "  %u: exec %s on %u:", a->iteration, text, stream);
        for (uint32_t i = 0; i < n; i++) {
            (void)fprintf(stderr, " %u%c", uses[i].block->serial, "rwup"[uses[i].kind]);
        }
        (void)fprintf(stderr, "\n");
    }
    status = shadow_exec(&a->streams, text, stream, duration_ns, uses, n);
    (void)passed(a, status, "neap_exec");
    look(a, a->settings->is_valid_each_event);
}

/* The block of a use, where there is one. */
static shadow_block *block_of(actor *a, const step_use *use)
{
    actor_slot *slot = &a->slots[use->slot];
    return slot->n == 0 ? NULL : &slot->blocks[use->is_oldest ? 0 : slot->n - 1];
}

static bool is_named(const shadow_use *uses, uint32_t n, const shadow_block *block)
{
    for (uint32_t i = 0; i < n; i++) {
        if (uses[i].block == block) {
            return true;
        }
    }
    return false;
}

static void do_exec(actor *a, const step *s)
{
    shadow_use uses[SHADOW_USES];
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_uses; i++) {
        shadow_block *block = block_of(a, &s->uses[i]);
        shadow_kind kind = (shadow_kind)s->uses[i].kind;
        if (block) {
            kind = kind == SHADOW_WRITE && is_named(uses, n, block) ? SHADOW_READ : kind;
            uses[n++] = (shadow_use){block, kind};
        }
    }
    if (a->has_shared && chance(&a->rng, 50)) {
        uses[n++] = (shadow_use){&a->shared[np_rng_below(&a->rng, ACTOR_SHARED)], SHADOW_READ};
    }
    exec(a, s->name, s->stream, s->duration_ns, uses, n);
}

static void do_malloc(actor *a, const step *s)
{
    actor_slot *slot = &a->slots[s->slot];
    shadow_block block;
    if (s->leaks && slot->n > 0) {
        keep(a, take_oldest(slot));
    }
    if (slot->n == ACTOR_QUEUE) {
        block = take_oldest(slot);
        free_block(a, &block);
    }
    if (malloc_block(a, s->bytes, &block)) {
        slot->blocks[slot->n++] = block;
    }
}

static void do_free(actor *a, const step *s)
{
    actor_slot *slot = &a->slots[s->slot];
    if (slot->n >= s->min_length && slot->n > 0) {
        shadow_block block = take_oldest(slot);
        free_block(a, &block);
    }
}

static void host_read(actor *a, const shadow_block *block)
{
    uint64_t offset = chance(&a->rng, 70) ? 0 : np_rng_below(&a->rng, block->bytes);
    uint64_t bytes = chance(&a->rng, 70) ? block->bytes - offset : np_rng_below(&a->rng, block->bytes - offset + 1);
    say_loud(a, "read", block->serial, bytes);
    (void)passed(a, shadow_host_read(&a->streams, block, offset, bytes), "neap_read");
    look(a, a->settings->is_valid_each_event);
}

static void do_step(actor *a, const step *s)
{
    actor_slot *slot = &a->slots[s->slot];
    switch (s->kind) {
    case STEP_MALLOC:
        do_malloc(a, s);
        break;
    case STEP_FREE:
        do_free(a, s);
        break;
    case STEP_EXEC:
        do_exec(a, s);
        break;
    case STEP_HOST_WRITE:
        if (slot->n > 0) {
            say_loud(a, "write", slot->blocks[0].serial, slot->blocks[0].bytes);
            (void)passed(a, shadow_host_write(&a->streams, &slot->blocks[0], chance(&a->rng, 50)), "neap_write");
        }
        break;
    case STEP_HOST_READ:
        if (slot->n > 0) {
            host_read(a, &slot->blocks[0]);
        }
        break;
    case STEP_SYNC:
        (void)passed(a, shadow_sync(&a->streams), "neap_sync");
        break;
    }
}

/* ---- departures ---- */

typedef enum departure {
    DEPART_EXTRA_WORK, /* a block more, used and freed */
    DEPART_EXTRA_MALLOC, /* a block more, freed later, or kept forever */
    DEPART_SIZE,
    DEPART_LATE_FREE,
    DEPART_EARLY_FREE,
    DEPART_KEPT,
    DEPART_CUT_SHORT,
    DEPART_ACCESS, /* work on any live block */
    DEPART_MORE_USES,
    DEPART_FEWER_USES,
    DEPART_OTHER_KIND,
    DEPART_OTHER_BLOCK, /* of the same slot */
    DEPART_STREAM,
    DEPART_NAME,
    DEPART_SKIP,
    DEPART_TWICE,
    DEPART_EXCHANGE, /* with the step after it, if both are mallocs or both frees */
    DEPART_HOST_READ,
    DEPART_HOST_WRITE,
    DEPART_SYNC,
    DEPART_N,
} departure;

static void depart_with_work(actor *a, bool is_kept)
{
    shadow_block block;
    shadow_block *other = any_block(a);
    uint64_t bytes = random_bytes(&a->rng, &a->form);
    uint32_t stream = (uint32_t)np_rng_below(&a->rng, a->settings->n_streams);
    if (!malloc_block(a, bytes, &block)) {
        return;
    }
    if (chance(&a->rng, 80)) {
        shadow_use uses[2] = {{&block, SHADOW_WRITE}, {other, later_kind(&a->rng)}};
        exec(a, 900 + stream, stream, 5000, uses, other ? 2 : 1);
    }
    if (!is_kept) {
        free_block(a, &block);
    } else if (chance(&a->rng, 30)) {
        keep(a, block);
    } else {
        free_late(a, block, between(&a->rng, 0, 120));
    }
}

static void depart_with_access(actor *a)
{
    shadow_use uses[3];
    uint32_t n = 0;
    for (uint32_t wanted = between(&a->rng, 1, 3); wanted > 0; wanted--) {
        shadow_block *block = any_block(a);
        if (block && !is_named(uses, n, block)) {
            uses[n++] = (shadow_use){block, later_kind(&a->rng)};
        }
    }
    exec(a, 910, (uint32_t)np_rng_below(&a->rng, a->settings->n_streams), 3000, uses, n);
}

/* Changes an exec; false: it cannot be changed like this. */
static bool change_exec(actor *a, departure d, step *s)
{
    step_use *use = s->n_uses > 0 ? &s->uses[np_rng_below(&a->rng, s->n_uses)] : NULL;
    if (s->kind != STEP_EXEC) {
        return false;
    }
    switch (d) {
    case DEPART_MORE_USES:
        if (s->n_uses == LOOP_USES) {
            return false;
        }
        s->uses[s->n_uses++] = (step_use){.slot = (uint8_t)np_rng_below(&a->rng, LOOP_SLOTS),
                                          .kind = (uint8_t)later_kind(&a->rng),
                                          .is_oldest = chance(&a->rng, 50)};
        return true;
    case DEPART_FEWER_USES:
        s->n_uses -= s->n_uses > 0;
        return use != NULL;
    case DEPART_OTHER_KIND:
        if (use) {
            use->kind = (uint8_t)later_kind(&a->rng);
        }
        return use != NULL;
    case DEPART_OTHER_BLOCK:
        if (use && a->slots[use->slot].n > 1) {
            use->is_oldest = !use->is_oldest;
            return true;
        }
        return false;
    case DEPART_STREAM:
        s->stream = (s->stream + 1) % a->settings->n_streams;
        return a->settings->n_streams > 1;
    default:
        s->name += 500;
        return true;
    }
}

/* Changes a malloc or a free; *skip: it is done already. False: it cannot be changed like this. */
static bool change_block(actor *a, departure d, step *s, bool *skip)
{
    actor_slot *slot = &a->slots[s->slot];
    if (d == DEPART_SIZE && s->kind == STEP_MALLOC) {
        s->bytes = chance(&a->rng, 50) ? s->bytes + 1 + np_rng_below(&a->rng, 4096)
                                       : random_bytes(&a->rng, &a->form);
        return true;
    }
    if ((d == DEPART_LATE_FREE || d == DEPART_KEPT) && s->kind == STEP_FREE && slot->n >= s->min_length &&
        slot->n > 0) {
        shadow_block block = take_oldest(slot);
        *skip = true;
        if (d == DEPART_KEPT) {
            keep(a, block);
        } else {
            free_late(a, block, between(&a->rng, 0, 150));
        }
        return true;
    }
    return false;
}

/* Does it before the step, or changes the step; false: not here, perhaps later. */
static bool depart(actor *a, const loop *l, uint32_t at, departure d, step *s, bool *skip)
{
    shadow_block *block = any_block(a);
    shadow_block freed;
    uint32_t slot;
    switch (d) {
    case DEPART_EXTRA_WORK:
    case DEPART_EXTRA_MALLOC:
        depart_with_work(a, d == DEPART_EXTRA_MALLOC);
        return true;
    case DEPART_SIZE:
    case DEPART_LATE_FREE:
    case DEPART_KEPT:
        return change_block(a, d, s, skip);
    case DEPART_EARLY_FREE:
        slot = between(&a->rng, l->first_slot, l->end_slot - 1);
        if (a->slots[slot].n == 0) {
            return false;
        }
        freed = take_oldest(&a->slots[slot]);
        free_block(a, &freed);
        return true;
    case DEPART_ACCESS:
        depart_with_access(a);
        return true;
    case DEPART_SKIP:
        *skip = s->kind == STEP_EXEC || s->kind == STEP_MALLOC;
        return *skip;
    case DEPART_TWICE:
        if (s->kind == STEP_EXEC) {
            do_step(a, s);
        }
        return s->kind == STEP_EXEC;
    case DEPART_EXCHANGE:
        if (at + 1 < l->n_steps && s->kind == l->steps[at + 1].kind && s->kind != STEP_EXEC) {
            do_step(a, &l->steps[at + 1]);
            return true;
        }
        return false;
    case DEPART_HOST_READ:
        if (block) {
            host_read(a, block);
        }
        return block != NULL;
    case DEPART_HOST_WRITE:
        if (block) {
            (void)passed(a, shadow_host_write(&a->streams, block, chance(&a->rng, 50)), "neap_write");
        }
        return block != NULL;
    case DEPART_SYNC:
        (void)passed(a, shadow_sync(&a->streams), "neap_sync");
        return true;
    default:
        return change_exec(a, d, s);
    }
}

/* ---- iterations ---- */

static void free_slots(actor *a, const loop *l)
{
    for (uint32_t i = l->first_slot; i < l->end_slot; i++) {
        while (a->slots[i].n > 0) {
            shadow_block block = take_oldest(&a->slots[i]);
            free_block(a, &block);
        }
    }
}

static void run_iteration(actor *a, const loop *l)
{
    bool departs = a->iteration >= a->n_quiet && chance(&a->rng, a->departure_share);
    departure d = (departure)np_rng_below(&a->rng, DEPART_N);
    uint32_t from = (uint32_t)np_rng_below(&a->rng, l->n_steps);
    uint32_t skipped = UINT32_MAX; /* the step that was done before its turn */
    for (uint32_t i = 0; i < l->n_steps && !is_bad(a); i++) {
        step s = l->steps[i];
        bool skip = i == skipped;
        if (departs && i >= from && !skip) {
            if (d == DEPART_CUT_SHORT) {
                break;
            }
            if (depart(a, l, i, d, &s, &skip)) {
                say_loud(a, "departed", d, i);
                departs = false;
                skipped = d == DEPART_EXCHANGE ? i + 1 : UINT32_MAX;
            }
        }
        if (!skip) {
            do_step(a, &s);
        }
        count_late(a);
    }
    if (departs && d == DEPART_CUT_SHORT && chance(&a->rng, 60)) {
        free_slots(a, l);
    }
}

static const loop *choose_loop(actor *a)
{
    uint32_t i = a->iteration;
    bool is_second = i >= a->n_alone && ((a->policy == ACTOR_NOW_AND_THEN && i % a->every == a->every - 1) ||
                                         (a->policy == ACTOR_IN_TURN && i % 2 == 1) ||
                                         (a->policy == ACTOR_FOR_GOOD && i >= a->every));
    if (a->policy == ACTOR_FOR_GOOD && i == a->every && chance(&a->rng, 70)) {
        free_slots(a, &a->loops[0]);
        if (a->slots[0].n > 0 && chance(&a->rng, 50)) { /* what lasted is replaced by others */
            shadow_block block = take_oldest(&a->slots[0]);
            free_block(a, &block);
            if (malloc_block(a, a->lasting_bytes[0] + 4096, &block)) {
                a->slots[0].blocks[a->slots[0].n++] = block;
            }
        }
    }
    return &a->loops[is_second];
}

/* Gives the planner's thread a moment, so that plans are there while the program runs. */
static void wait_for_planner(actor *a)
{
    struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < WAIT_MS && atomic_load(&a->device->learner.is_busy); i++) {
        if (atomic_load(&a->device->learner.has_news)) {
            return;
        }
        (void)nanosleep(&pause, NULL);
    }
}

static void run_begin(actor *a)
{
    for (uint32_t i = 0; i < a->n_lasting; i++) {
        actor_slot *slot = &a->slots[i];
        if (malloc_block(a, a->lasting_bytes[i], &slot->blocks[0])) {
            slot->n = 1;
            if (chance(&a->rng, 50)) {
                (void)passed(a, shadow_host_write(&a->streams, &slot->blocks[0], true), "neap_write");
            } else if (chance(&a->rng, 90)) {
                shadow_use use = {&slot->blocks[0], SHADOW_WRITE};
                exec(a, 990, 0, 1000, &use, 1);
            }
        }
    }
}

static void run_end(actor *a)
{
    bool frees = chance(&a->rng, 50);
    for (uint32_t i = 0; i < LOOP_SLOTS; i++) {
        for (uint32_t j = 0; j < a->slots[i].n && !is_bad(a); j++) {
            shadow_use use = {&a->slots[i].blocks[j], SHADOW_READ};
            if (chance(&a->rng, 50)) {
                host_read(a, use.block);
            }
            exec(a, 991, (uint32_t)np_rng_below(&a->rng, a->settings->n_streams), 1000, &use, 1);
        }
    }
    for (uint32_t i = 0; i < a->n_kept && !is_bad(a); i++) {
        shadow_use use = {&a->kept[i], SHADOW_READ};
        exec(a, 991, 0, 1000, &use, 1);
    }
    for (uint32_t i = 0; i < LOOP_SLOTS && frees && !is_bad(a); i++) {
        while (a->slots[i].n > 0) {
            shadow_block block = take_oldest(&a->slots[i]);
            free_block(a, &block);
        }
    }
    (void)passed(a, shadow_sync(&a->streams), "neap_sync");
}

void actor_run(actor *a)
{
    run_begin(a);
    for (a->iteration = 0; a->iteration < a->n_iterations && !is_bad(a); a->iteration++) {
        run_iteration(a, choose_loop(a));
        if (!a->settings->learns_at_once) {
            wait_for_planner(a);
        }
        look(a, a->settings->is_valid_each_lap);
        look_at_device(a);
    }
    if (!is_bad(a)) {
        run_end(a);
        look(a, true);
        look_at_device(a);
    }
}
