#include "run/random_loop.h"

#include "testing.h"

/* A block of the iteration before it is a step: execs it lives from and to, counted on over the iteration's end. */
typedef struct life {
    uint32_t begin;
    uint32_t end;
    uint64_t bytes;
    bool leaks;
} life;

static bool chance(np_rng *rng, uint32_t per_cent)
{
    return np_rng_below(rng, 100) < per_cent;
}

static uint32_t between(np_rng *rng, uint32_t low, uint32_t high)
{
    return low + (uint32_t)np_rng_below(rng, high - low + 1);
}

/* Whole pages now and then, a few bytes now and then. */
uint64_t random_bytes(np_rng *rng, const loop_form *form)
{
    uint32_t most = form->max_pages;
    uint32_t pages = chance(rng, 50) ? between(rng, 1, (most + 3) / 4) : between(rng, 1, most);
    if (chance(rng, form->small_share)) {
        return 1 + np_rng_below(rng, form->page_bytes - 1);
    }
    if (pages == 1 || chance(rng, 40)) {
        return pages * form->page_bytes;
    }
    return pages * form->page_bytes - np_rng_below(rng, form->page_bytes);
}

static void make_lives(np_rng *rng, const loop_form *form, uint32_t n_execs, life *lives, uint32_t n)
{
    bool is_training = chance(rng, 65);
    uint64_t sizes[4];
    for (uint32_t i = 0; i < 4; i++) {
        sizes[i] = random_bytes(rng, form);
    }
    for (uint32_t i = 0; i < n; i++) {
        life *l = &lives[i];
        *l = (life){.bytes = chance(rng, 60) ? sizes[np_rng_below(rng, 4)] : random_bytes(rng, form)};
        if (is_training && i < n_execs / 2) {
            l->begin = i;
            l->end = n_execs - 1 - i;
        } else {
            l->begin = between(rng, 0, n_execs - 1);
            l->end = l->begin + between(rng, 0, chance(rng, 70) ? 3 : n_execs - 1 - l->begin);
            l->end = l->end < n_execs ? l->end : n_execs - 1;
        }
        if (chance(rng, 6)) {
            l->end = n_execs + between(rng, 0, chance(rng, 80) ? l->begin : n_execs + l->begin);
        }
        if (form->may_leak && chance(rng, 5)) { /* what leaks is small, or the loop is none */
            l->leaks = true;
            l->bytes = 1 + np_rng_below(rng, chance(rng, 70) ? 1000 : form->page_bytes + 1000);
        }
    }
}

/* ---- steps ---- */

static step *add_step(loop *made, step_kind kind, uint32_t slot)
{
    step *s = &made->steps[made->n_steps];
    ASSERT_LT(made->n_steps, LOOP_STEPS);
    made->n_steps++;
    *s = (step){.kind = kind, .slot = slot};
    return s;
}

static void add_use(step *s, uint32_t slot, shadow_kind kind, bool is_oldest)
{
    if (s->n_uses < LOOP_USES) {
        s->uses[s->n_uses++] = (step_use){.slot = (uint8_t)slot, .kind = (uint8_t)kind, .is_oldest = is_oldest};
    }
}

shadow_kind later_kind(np_rng *rng)
{
    uint64_t dice = np_rng_below(rng, 10);
    return dice < 6 ? SHADOW_READ : dice < 8 ? SHADOW_UPDATE : dice < 9 ? SHADOW_PART : SHADOW_WRITE;
}

static void add_exec(np_rng *rng, const loop_form *form, const life *lives, uint32_t n_lives, uint32_t n_execs,
                     uint32_t e, loop *made)
{
    step *s = add_step(made, STEP_EXEC, 0);
    s->name = form->first_name + (chance(rng, 80) ? e : between(rng, 0, e));
    s->stream = chance(rng, 60) ? 0 : (uint32_t)np_rng_below(rng, form->n_streams);
    s->duration_ns = 1000 * between(rng, 1, 60);
    for (uint32_t i = 0; i < n_lives; i++) {
        const life *l = &lives[i];
        bool crosses = l->end >= n_execs;
        bool is_here = (l->begin <= e && e <= l->end) || (crosses && e + n_execs <= l->end);
        bool is_edge = e == l->begin || e == l->begin + 1 || e + 1 == l->end || e == l->end;
        if (e == l->begin) {
            add_use(s, form->first_slot + i, chance(rng, 90) ? SHADOW_WRITE : SHADOW_UPDATE, false);
        } else if (is_here && !l->leaks && chance(rng, is_edge ? 60 : 12)) {
            add_use(s, form->first_slot + i, later_kind(rng), crosses && chance(rng, 30));
        }
    }
    for (uint32_t i = 0; i < form->n_lasting; i++) {
        if (chance(rng, 80 / form->n_lasting)) {
            add_use(s, i, chance(rng, 75) ? SHADOW_READ : SHADOW_UPDATE, false);
        }
    }
    if (s->n_uses > 0 && chance(rng, 2)) { /* named twice */
        add_use(s, s->uses[0].slot, SHADOW_READ, s->uses[0].is_oldest);
    }
}

static void add_frees(const life *lives, uint32_t n_lives, uint32_t n_execs, uint32_t e, uint32_t first_slot,
                      loop *made)
{
    for (uint32_t i = 0; i < n_lives; i++) {
        uint32_t n_laps = lives[i].end / n_execs;
        if (lives[i].end % n_execs == e && !lives[i].leaks) {
            step *s = add_step(made, STEP_FREE, first_slot + i);
            s->min_length = n_laps + (e >= lives[i].begin ? 1 : 0);
        }
    }
}

static void add_host_step(np_rng *rng, const loop_form *form, loop *made)
{
    if (form->n_lasting > 0 && chance(rng, 3)) {
        (void)add_step(made, chance(rng, 50) ? STEP_HOST_WRITE : STEP_HOST_READ,
                       (uint32_t)np_rng_below(rng, form->n_lasting));
    } else if (chance(rng, 1)) {
        (void)add_step(made, STEP_SYNC, 0);
    }
}

void make_loop(np_rng *rng, const loop_form *form, loop *made)
{
    life lives[LOOP_LIVES];
    uint32_t n_execs = between(rng, 4, form->max_execs);
    uint32_t n_lives = between(rng, chance(rng, 80) ? form->max_lives / 2 : 2, form->max_lives);
    ASSERT_LE(n_lives, LOOP_LIVES);
    ASSERT_LE(form->first_slot + n_lives, LOOP_SLOTS);
    make_lives(rng, form, n_execs, lives, n_lives);
    made->first_slot = form->first_slot;
    made->end_slot = form->first_slot + n_lives;
    made->n_steps = 0;
    for (uint32_t e = 0; e < n_execs; e++) {
        for (uint32_t i = 0; i < n_lives; i++) {
            if (lives[i].begin == e) {
                step *s = add_step(made, STEP_MALLOC, form->first_slot + i);
                s->bytes = lives[i].bytes;
                s->leaks = lives[i].leaks;
            }
        }
        add_exec(rng, form, lives, n_lives, n_execs, e, made);
        add_host_step(rng, form, made);
        add_frees(lives, n_lives, n_execs, e, form->first_slot, made);
    }
}

/* ---- variations ---- */

static void drop_execs(np_rng *rng, loop *l)
{
    uint32_t from = (uint32_t)np_rng_below(rng, l->n_steps);
    uint32_t end = chance(rng, 50) ? l->n_steps : from + between(rng, 1, 12);
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->n_steps; i++) {
        if (i < from || i >= end || l->steps[i].kind != STEP_EXEC) {
            l->steps[n++] = l->steps[i];
        }
    }
    l->n_steps = n;
}

void vary_loop(np_rng *rng, const loop_form *form, loop *l)
{
    if (chance(rng, 40)) {
        drop_execs(rng, l);
        return;
    }
    for (uint32_t n = between(rng, 1, 6); n > 0; n--) {
        step *s = &l->steps[np_rng_below(rng, l->n_steps)];
        if (s->kind == STEP_MALLOC) {
            s->bytes = random_bytes(rng, form);
        }
    }
}

uint32_t loop_peak_pages(const loop *l, uint64_t page_bytes)
{
    uint64_t pages[LOOP_SLOTS] = {0};
    uint64_t now = 0;
    uint64_t peak = 0;
    for (uint32_t i = 0; i < l->n_steps; i++) {
        const step *s = &l->steps[i];
        if (s->kind == STEP_MALLOC) {
            pages[s->slot] = (s->bytes + page_bytes - 1) / page_bytes;
            now += pages[s->slot];
        } else if (s->kind == STEP_FREE) {
            now -= pages[s->slot];
            pages[s->slot] = 0;
        }
        peak = now > peak ? now : peak;
    }
    return (uint32_t)peak;
}
