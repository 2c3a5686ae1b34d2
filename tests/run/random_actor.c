#include "run/random_beneath.h"
#include "run/random_depart.h"

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
    a->n_iterations = a->policy == ACTOR_ONE ? between(&a->rng, 7, 13) : between(&a->rng, 12, 19);
    if (a->settings->refines) { /* laps are measured before another plan is tried */
        a->n_iterations = is_one && chance(&a->rng, 15) ? 70 : 2 * a->n_iterations;
    }
    a->n_alone = chance(&a->rng, 70) ? between(&a->rng, 4, 7) : 0;
    a->n_quiet = chance(&a->rng, 75) ? between(&a->rng, 4, 7) : 0;
    a->every = a->policy == ACTOR_FOR_GOOD ? between(&a->rng, 5, 9) : between(&a->rng, 2, 5);
    a->departure_share = a->settings->is_steady || chance(&a->rng, 20) ? 0 : between(&a->rng, 8, 45);
    if (a->settings->is_beneath) { /* the first plan is a quick one; a better one follows once laps were measured */
        a->n_iterations = between(&a->rng, 20, 34);
        a->n_quiet = chance(&a->rng, 60) ? between(&a->rng, 10, 18) : a->n_quiet;
        a->blur_share = chance(&a->rng, 20) ? 0 : between(&a->rng, 1, 60);
        a->away_share = chance(&a->rng, 20) ? 0 : between(&a->rng, 10, 300);
        a->stray_share = chance(&a->rng, 50) ? 0 : between(&a->rng, 5, 100);
        a->home_share = chance(&a->rng, 50) ? 0 : between(&a->rng, 1, 10);
        a->fix_share = chance(&a->rng, 60) ? 0 : between(&a->rng, 1, 10);
    }
}

/* Of what lasts: where it is built, seldom a whole number of pages. */
static uint64_t lasting_bytes(actor *a)
{
    uint64_t page = a->form.page_bytes;
    uint64_t whole = page * between(&a->rng, chance(&a->rng, 20) ? 0 : 1, chance(&a->rng, 70) ? 3 : 10);
    uint64_t odd = chance(&a->rng, 70) ? 512 * np_rng_below(&a->rng, page / 512) : np_rng_below(&a->rng, page);
    if (!a->settings->builds) {
        return random_bytes(&a->rng, &a->form);
    }
    return whole + odd > 0 ? whole + odd : 1;
}

void actor_make(actor *a, const random_settings *settings, uint64_t seed)
{
    loop_form *form = &a->form;
    *a = (actor){.settings = settings, .rng = np_rng_make(seed)};
    make_policy(a);
    a->n_lasting = settings->builds ? between(&a->rng, 4, LOOP_SLOTS - 2 * LOOP_LIVES) : between(&a->rng, 1, 8);
    *form = (loop_form){.n_streams = settings->n_streams,
                        .page_bytes = settings->page_bytes,
                        .n_lasting = a->n_lasting,
                        .first_slot = a->n_lasting,
                        .max_pages = chance(&a->rng, 70) ? 12 : 40,
                        .max_execs = chance(&a->rng, 70) ? 16 : 36,
                        .max_lives = chance(&a->rng, 60) ? 14 : LOOP_LIVES,
                        .small_share = chance(&a->rng, 60)   ? 0
                                       : chance(&a->rng, 90) ? 15
                                                             : 90,
                        .may_leak = chance(&a->rng, 12)};
    for (uint32_t i = 0; i < a->n_lasting; i++) {
        a->lasting_bytes[i] = lasting_bytes(a);
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

/* ---- blocks ---- */

void actor_free(actor *a, shadow_block *block)
{
    actor_say(a, "free", block->serial, block->bytes);
    actor_forget_fixed(a, block->block);
    (void)actor_passed(a, shadow_free(&a->streams, block), "neap_free");
    actor_look(a, a->settings->is_valid_each_event);
}

bool actor_malloc(actor *a, uint64_t bytes, shadow_block *block)
{
    bool is_made = actor_passed(a, shadow_malloc(&a->streams, bytes, block), "neap_malloc");
    actor_say(a, is_made ? "malloc" : "failed malloc", is_made ? block->serial : 0, bytes);
    actor_look(a, a->settings->is_valid_each_event);
    return is_made;
}

void actor_keep(actor *a, shadow_block block)
{
    if (a->n_kept < ACTOR_KEPT) {
        a->kept[a->n_kept++] = block;
    } else {
        actor_free(a, &block);
    }
}

shadow_block actor_take_oldest(actor_slot *slot)
{
    shadow_block block = slot->blocks[0];
    slot->n--;
    memmove(&slot->blocks[0], &slot->blocks[1], slot->n * sizeof block);
    return block;
}

void actor_free_late(actor *a, shadow_block block, uint32_t n_steps)
{
    if (a->n_late < ACTOR_LATE) {
        a->late[a->n_late++] = (actor_late){block, n_steps};
    } else {
        actor_free(a, &block);
    }
}

/* A step has passed. */
static void count_late(actor *a)
{
    for (uint32_t i = 0; i < a->n_late;) {
        if (a->late[i].n_steps-- == 0) {
            shadow_block block = a->late[i].block;
            a->late[i] = a->late[--a->n_late];
            actor_free(a, &block);
        } else {
            i++;
        }
    }
}

/* Any live block, or NULL. */
shadow_block *actor_any_block(actor *a)
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

void actor_exec(actor *a, uint32_t name, uint32_t stream, uint64_t duration_ns, const shadow_use *uses, uint32_t n)
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
    (void)actor_passed(a, status, "neap_exec");
    actor_look(a, a->settings->is_valid_each_event);
}

/* The block of a use, where there is one. */
static shadow_block *block_of(actor *a, const step_use *use)
{
    actor_slot *slot = &a->slots[use->slot];
    return slot->n == 0 ? NULL : &slot->blocks[use->is_oldest ? 0 : slot->n - 1];
}

bool actor_is_named(const shadow_use *uses, uint32_t n, const shadow_block *block)
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
            kind = kind == SHADOW_WRITE && actor_is_named(uses, n, block) ? SHADOW_READ : kind;
            uses[n++] = (shadow_use){block, kind};
        }
    }
    if (a->extra.block && !actor_is_named(uses, n, a->extra.block)) {
        uses[n++] = a->extra;
    }
    a->extra.block = NULL;
    if (a->has_shared && chance(&a->rng, 50)) {
        uses[n++] = (shadow_use){&a->shared[np_rng_below(&a->rng, ACTOR_SHARED)], SHADOW_READ};
    }
    if (a->settings->is_beneath && a->iteration >= a->n_quiet) {
        n = actor_blur_uses(a, uses, n);
    }
    actor_exec(a, s->name, s->stream, s->duration_ns, uses, n);
}

static void do_malloc(actor *a, const step *s)
{
    actor_slot *slot = &a->slots[s->slot];
    shadow_block block;
    if (s->leaks && slot->n > 0) {
        actor_keep(a, actor_take_oldest(slot));
    }
    if (slot->n == ACTOR_QUEUE) {
        block = actor_take_oldest(slot);
        actor_free(a, &block);
    }
    if (actor_malloc(a, s->bytes, &block)) {
        slot->blocks[slot->n++] = block;
    }
}

static void do_free(actor *a, const step *s)
{
    actor_slot *slot = &a->slots[s->slot];
    if (slot->n >= s->min_length && slot->n > 0) {
        shadow_block block = actor_take_oldest(slot);
        actor_free(a, &block);
    }
}

void actor_host_read(actor *a, const shadow_block *block)
{
    uint64_t offset = chance(&a->rng, 70) ? 0 : np_rng_below(&a->rng, block->bytes);
    uint64_t bytes = chance(&a->rng, 70) ? block->bytes - offset : np_rng_below(&a->rng, block->bytes - offset + 1);
    actor_say(a, "read", block->serial, bytes);
    (void)actor_passed(a, shadow_host_read(&a->streams, block, offset, bytes), "neap_read");
    actor_look(a, a->settings->is_valid_each_event);
}

void actor_step(actor *a, const step *s)
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
            actor_say(a, "write", slot->blocks[0].serial, slot->blocks[0].bytes);
            (void)actor_passed(a, shadow_host_write(&a->streams, &slot->blocks[0], chance(&a->rng, 50)), "neap_write");
        }
        break;
    case STEP_HOST_READ:
        if (slot->n > 0) {
            actor_host_read(a, &slot->blocks[0]);
        }
        break;
    case STEP_SYNC:
        (void)actor_passed(a, shadow_sync(&a->streams), "neap_sync");
        break;
    }
}

/* ---- iterations ---- */

static void free_slots(actor *a, const loop *l)
{
    for (uint32_t i = l->first_slot; i < l->end_slot; i++) {
        while (a->slots[i].n > 0) {
            shadow_block block = actor_take_oldest(&a->slots[i]);
            actor_free(a, &block);
        }
    }
}

static void run_iteration(actor *a, const loop *l)
{
    bool departs = a->iteration >= a->n_quiet && chance(&a->rng, a->departure_share);
    departure d = (departure)np_rng_below(&a->rng, DEPART_N);
    uint32_t from = (uint32_t)np_rng_below(&a->rng, l->n_steps);
    uint32_t skipped = UINT32_MAX; /* the step that was done before its turn */
    for (uint32_t i = 0; i < l->n_steps && !actor_is_bad(a); i++) {
        step s = l->steps[i];
        bool skip = i == skipped;
        if (departs && i >= from && !skip) {
            if (d == DEPART_CUT_SHORT) {
                break;
            }
            if (actor_depart(a, l, i, d, &s, &skip)) {
                actor_say(a, "departed", d, i);
                departs = false;
                skipped = d == DEPART_EXCHANGE ? i + 1 : UINT32_MAX;
            }
        }
        if (!skip) {
            actor_step(a, &s);
        }
        if (a->settings->is_beneath && a->iteration >= a->n_quiet && a->iteration >= a->settings->beneath_from) {
            actor_disturb(a);
            actor_look_at_fixed(a);
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
    bool is_second = i >= a->n_alone &&
                     ((a->policy == ACTOR_NOW_AND_THEN && i % a->every == a->every - 1) ||
                      (a->policy == ACTOR_IN_TURN && i % 2 == 1) || (a->policy == ACTOR_FOR_GOOD && i >= a->every));
    if (a->policy == ACTOR_FOR_GOOD && i == a->every && chance(&a->rng, 70)) {
        free_slots(a, &a->loops[0]);
        if (a->slots[0].n > 0 && chance(&a->rng, 50)) { /* what lasted is replaced by others */
            shadow_block block = actor_take_oldest(&a->slots[0]);
            actor_free(a, &block);
            if (actor_malloc(a, a->lasting_bytes[0] + 4096, &block)) {
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

static void fill(actor *a, actor_slot *slot)
{
    shadow_use use = {&slot->blocks[0], SHADOW_WRITE};
    if (chance(&a->rng, 50)) {
        (void)actor_passed(a, shadow_host_write(&a->streams, &slot->blocks[0], true), "neap_write");
    } else if (chance(&a->rng, 90)) {
        uint32_t stream = a->settings->builds ? (uint32_t)np_rng_below(&a->rng, a->settings->n_streams) : 0;
        actor_exec(a, 990, stream, 1000, &use, 1);
    }
}

/* Some of what lasts is freed, and malloc'd again in a row: as large as before, or another size. Before the last free there
 * may be work in it that is not done when it is over. */
static void build_again(actor *a, uint32_t n_built)
{
    uint32_t first = (uint32_t)np_rng_below(&a->rng, n_built);
    uint32_t end = first + between(&a->rng, 1, 4);
    bool is_same = chance(&a->rng, 60);
    bool are_filled = chance(&a->rng, 70);
    end = end < n_built ? end : n_built;
    for (uint32_t i = first; i < end; i++) {
        if (a->slots[i].n > 0) {
            shadow_block block = actor_take_oldest(&a->slots[i]);
            shadow_use use = {&block, SHADOW_WRITE};
            if (chance(&a->rng, 50)) {
                actor_exec(a, 992, (uint32_t)np_rng_below(&a->rng, a->settings->n_streams), 20000, &use, 1);
            }
            actor_free(a, &block);
        }
    }
    for (uint32_t i = first; i < end; i++) {
        actor_slot *slot = &a->slots[i];
        uint64_t bytes = a->lasting_bytes[i];
        bytes = is_same ? bytes : chance(&a->rng, 50) ? lasting_bytes(a) : bytes - np_rng_below(&a->rng, bytes);
        if (slot->n == 0 && actor_malloc(a, bytes, &slot->blocks[0])) {
            slot->n = 1;
            if (are_filled) {
                fill(a, slot);
            }
        }
    }
}

static void run_begin(actor *a)
{
    bool are_filled = !a->settings->builds || chance(&a->rng, 50);
    for (uint32_t i = 0; i < a->n_lasting; i++) {
        actor_slot *slot = &a->slots[i];
        if (actor_malloc(a, a->lasting_bytes[i], &slot->blocks[0])) {
            slot->n = 1;
            if (are_filled) {
                fill(a, slot);
            }
        }
        if (a->settings->builds && chance(&a->rng, 10)) {
            build_again(a, i + 1);
        }
    }
    for (uint32_t i = 0; i < a->n_lasting && !are_filled; i++) {
        if (a->slots[i].n > 0) {
            fill(a, &a->slots[i]);
        }
    }
}

static void run_end(actor *a)
{
    bool frees = chance(&a->rng, 50);
    for (uint32_t i = 0; i < LOOP_SLOTS; i++) {
        for (uint32_t j = 0; j < a->slots[i].n && !actor_is_bad(a); j++) {
            shadow_use use = {&a->slots[i].blocks[j], SHADOW_READ};
            if (chance(&a->rng, 50)) {
                actor_host_read(a, use.block);
            }
            actor_exec(a, 991, (uint32_t)np_rng_below(&a->rng, a->settings->n_streams), 1000, &use, 1);
        }
    }
    for (uint32_t i = 0; i < a->n_kept && !actor_is_bad(a); i++) {
        shadow_use use = {&a->kept[i], SHADOW_READ};
        actor_exec(a, 991, 0, 1000, &use, 1);
    }
    for (uint32_t i = 0; i < LOOP_SLOTS && frees && !actor_is_bad(a); i++) {
        while (a->slots[i].n > 0) {
            shadow_block block = actor_take_oldest(&a->slots[i]);
            actor_free(a, &block);
        }
    }
    (void)actor_passed(a, shadow_sync(&a->streams), "neap_sync");
}

void actor_run(actor *a)
{
    run_begin(a);
    for (a->iteration = 0; a->iteration < a->n_iterations && !actor_is_bad(a); a->iteration++) {
        if (a->settings->is_beneath && a->iteration == a->settings->beneath_from) {
            actor_go_beneath(a);
        }
        run_iteration(a, choose_loop(a));
        if (!a->settings->learns_at_once) {
            wait_for_planner(a);
        }
        if (a->settings->builds && a->iteration >= a->n_quiet && chance(&a->rng, 8)) {
            build_again(a, a->n_lasting);
        }
        actor_look(a, a->settings->is_valid_each_lap);
        actor_look_at_device(a);
    }
    if (!actor_is_bad(a)) {
        run_end(a);
        actor_look(a, true);
        actor_look_at_device(a);
    }
}
