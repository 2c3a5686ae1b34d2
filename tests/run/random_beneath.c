#include "run/random_beneath.h"

#include <string.h>

enum { MAX_TRIES = 400 };

static bool chance(np_rng *rng, uint32_t per_mille)
{
    return np_rng_below(rng, 1000) < per_mille;
}

/* ---- uses ---- */

/* The actor's own note of a block, or NULL. */
static shadow_block *find_note(actor *a, const neap_block *block)
{
    for (uint32_t i = 0; i < LOOP_SLOTS; i++) {
        for (uint32_t k = 0; k < a->slots[i].n; k++) {
            if (a->slots[i].blocks[k].block == block) {
                return &a->slots[i].blocks[k];
            }
        }
    }
    return NULL;
}

/* Any block of the actor's that a plan has away now, or NULL. */
static shadow_block *away_block(actor *a)
{
    const neap_device *m = a->device;
    shadow_block *found = NULL;
    (void)pthread_mutex_lock(&a->device->lock);
    if (m->state == NEAP_STATE_RUN && m->pattern->program.swaps.n > 0) {
        size_t n = m->pattern->program.swaps.n;
        size_t first = (size_t)np_rng_below(&a->rng, n);
        for (size_t i = 0; i < n && !found; i++) {
            size_t at = (first + i) % n;
            const neap_block *block = m->pattern->actors[m->pattern->program.swaps.items[at].life].now[0];
            found = m->pattern->is_out[at] && block ? find_note(a, block) : NULL;
        }
    }
    (void)pthread_mutex_unlock(&a->device->lock);
    return found;
}

/* A use more of a block, if there is one and it is not among them. */
static uint32_t add_use(actor *a, shadow_use *uses, uint32_t n, shadow_block *block)
{
    if (block && n < SHADOW_USES && !actor_is_named(uses, n, block)) {
        uses[n++] = (shadow_use){block, later_kind(&a->rng)};
        a->n_blurred++;
    }
    return n;
}

uint32_t actor_blur_uses(actor *a, shadow_use *uses, uint32_t n)
{
    if (n > 0 && chance(&a->rng, a->blur_share)) {
        uint32_t at = (uint32_t)np_rng_below(&a->rng, n--);
        memmove(&uses[at], &uses[at + 1], (n - at) * sizeof *uses);
    }
    if (chance(&a->rng, a->blur_share)) {
        n = add_use(a, uses, n, actor_any_block(a));
    }
    for (uint32_t share = a->away_share; chance(&a->rng, share); share = share / 2) {
        n = add_use(a, uses, n, away_block(a));
    }
    return n;
}

void actor_go_beneath(actor *a)
{
    (void)pthread_mutex_lock(&a->device->lock);
    np_beneath_begin(a->device, a->settings->margin, a->settings->overhead);
    (void)pthread_mutex_unlock(&a->device->lock);
}

/* ---- pages ---- */

/* A number for the physical pages that the block stands on: the same as long as these are the same. */
static uint64_t pages_of(const neap_device *m, const neap_block *block)
{
    uint64_t sum = block->view.n_pages;
    if (block->kind == NP_BLOCK_FLAT) {
        uint32_t first;
        uint32_t end;
        np_block_arena_pages(m, block, &first, &end);
        for (uint32_t i = first; i < end; i++) {
            sum = sum * 1000003u + m->arena.numbers[i];
        }
    }
    for (uint32_t i = 0; i < block->view.n_pages; i++) {
        sum = sum * 1000003u + block->view.numbers[i];
    }
    return sum;
}

/* Is no other block on its pages? Planned ones are where they are. */
static bool has_own_pages(const neap_device *m, const neap_block *block)
{
    for (uint32_t i = 0; i < block->view.n_pages && block->kind == NP_BLOCK_LOOSE; i++) {
        const np_page *page = &m->pages.pages.items[block->view.numbers[i]];
        if (page->is_arena || page->n_users != 1) {
            return false;
        }
    }
    return true;
}

/* All of its bytes are on the device, now and not on their way out. */
static bool is_here(const neap_device *m, const neap_block *block)
{
    const np_pattern *pattern = m->pattern;
    if (!np_block_is_here(block)) {
        return false;
    }
    if (m->state != NEAP_STATE_RUN || block->life == NP_NO_LIFE) {
        return true;
    }
    for (uint32_t i = 0; i < pattern->program.swaps.n; i++) {
        if (pattern->program.swaps.items[i].life == block->life && pattern->is_out[i]) {
            return false;
        }
    }
    return true;
}

/* ---- home, and what stays ---- */

/* As shadow.h does: what failed for a fault may not fail again. */
static bool tries_again(actor *a, neap_status status, int *n_tries)
{
    return status != NEAP_OK && a->streams.retry && ++*n_tries < MAX_TRIES &&
           a->streams.retry(a->streams.retry_user, status) == NEAP_OK;
}

static void go_home(actor *a)
{
    neap_device *m = a->device;
    neap_status status;
    int n_tries = 0;
    const neap_block *away = NULL;
    (void)pthread_mutex_lock(&m->lock);
    do {
        status = np_beneath_home(m, "a test");
    } while (tries_again(a, status, &n_tries));
    if (status == NEAP_OK && chance(&a->rng, 500)) {
        status = np_drain(m);
    }
    for (const neap_block *block = m->live; block && !away; block = block->next) {
        away = np_block_is_here(block) ? NULL : block;
    }
    if (status == NEAP_OK && (away || m->state == NEAP_STATE_RUN)) {
        shadow_say(a->report, "iteration %u: not everything is home: a block of kind %d", a->iteration,
                   away ? away->kind : -1);
    }
    (void)pthread_mutex_unlock(&m->lock);
    actor_say(a, "home", 0, 0);
    (void)actor_passed(a, status, "np_beneath_home");
    a->n_home += status == NEAP_OK;
}

static void fix(actor *a, const shadow_block *block)
{
    neap_device *m = a->device;
    bool is_exported = chance(&a->rng, 300);
    neap_status status;
    int n_tries = 0;
    actor_fixed *fixed = NULL;
    for (uint32_t i = 0; i < a->n_fixed; i++) {
        fixed = a->fixed[i].block == block->block ? &a->fixed[i] : fixed;
    }
    if (!fixed && a->n_fixed == ACTOR_FIXED) {
        return;
    }
    actor_say(a, is_exported ? "export" : "fix", block->serial, 0);
    (void)pthread_mutex_lock(&m->lock);
    do {
        status = np_beneath_fix(m, block->block, is_exported);
    } while (tries_again(a, status, &n_tries));
    if (status == NEAP_OK) {
        is_exported = is_exported || (fixed && fixed->is_exported);
        fixed = fixed ? fixed : &a->fixed[a->n_fixed++];
        *fixed = (actor_fixed){block->block, block->serial, is_exported, pages_of(m, block->block)};
    }
    (void)pthread_mutex_unlock(&m->lock);
    (void)actor_passed(a, status, "np_beneath_fix");
}

/* Mostly on a block that lasts, for which the plan need not be left. */
static void stray(actor *a)
{
    actor_slot *lasting = &a->slots[np_rng_below(&a->rng, a->n_lasting)];
    shadow_block *block = lasting->n > 0 && chance(&a->rng, 800) ? &lasting->blocks[0] : actor_any_block(a);
    if (block) {
        shadow_use use = {block, later_kind(&a->rng)};
        uint32_t stream = (uint32_t)np_rng_below(&a->rng, a->streams.n_streams);
        actor_say(a, "stray", block->serial, stream);
        (void)actor_passed(a, shadow_stray(&a->streams, "stray", stream, 1000, &use), "np_stray_ready");
        a->n_strays += a->device->state == NEAP_STATE_RUN;
    }
}

void actor_disturb(actor *a)
{
    shadow_block *block;
    if (chance(&a->rng, a->stray_share)) {
        stray(a);
        actor_look_at_fixed(a);
    }
    if (chance(&a->rng, a->home_share)) {
        go_home(a);
        actor_look_at_fixed(a);
    }
    block = chance(&a->rng, a->fix_share) ? actor_any_block(a) : NULL;
    if (block) {
        fix(a, block);
        actor_look_at_fixed(a);
    }
}

void actor_look_at_fixed(actor *a)
{
    neap_device *m = a->device;
    bool has_faults = a->settings->faults.calls || a->settings->memory_fails_at;
    (void)pthread_mutex_lock(&m->lock);
    for (uint32_t i = 0; i < a->n_fixed && !actor_is_bad(a); i++) {
        const actor_fixed *fixed = &a->fixed[i];
        if (!is_here(m, fixed->block) && has_faults) {
            continue; /* it could not be brought back: work that names it tries again */
        }
        if (!is_here(m, fixed->block)) {
            shadow_say(a->report, "iteration %u: block %u, of kind %d, is fixed, and away", a->iteration, fixed->serial,
                       fixed->block->kind);
        } else if (fixed->is_exported && pages_of(m, fixed->block) != fixed->pages) {
            shadow_say(a->report, "iteration %u: block %u, of kind %d, is others' too, and has other pages",
                       a->iteration, fixed->serial, fixed->block->kind);
        } else if (fixed->is_exported && !has_own_pages(m, fixed->block)) {
            shadow_say(a->report, "iteration %u: block %u is others' too, and so are blocks beside it", a->iteration,
                       fixed->serial);
        }
    }
    (void)pthread_mutex_unlock(&m->lock);
}

void actor_forget_fixed(actor *a, const neap_block *block)
{
    for (uint32_t i = 0; i < a->n_fixed; i++) {
        if (a->fixed[i].block == block) {
            a->fixed[i] = a->fixed[--a->n_fixed];
            return;
        }
    }
}
