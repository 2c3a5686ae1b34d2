#include "run/random_depart.h"

static bool chance(np_rng *rng, uint32_t per_cent)
{
    return np_rng_below(rng, 100) < per_cent;
}

static uint32_t between(np_rng *rng, uint32_t low, uint32_t high)
{
    return low + (uint32_t)np_rng_below(rng, high - low + 1);
}

static void depart_with_work(actor *a, bool is_kept)
{
    shadow_block block;
    shadow_block *other = actor_any_block(a);
    uint64_t bytes = random_bytes(&a->rng, &a->form);
    uint32_t stream = (uint32_t)np_rng_below(&a->rng, a->settings->n_streams);
    if (!actor_malloc(a, bytes, &block)) {
        return;
    }
    if (chance(&a->rng, 80)) {
        shadow_use uses[2] = {{&block, SHADOW_WRITE}, {other, later_kind(&a->rng)}};
        actor_exec(a, 900 + stream, stream, 5000, uses, other ? 2 : 1);
    }
    if (!is_kept) {
        actor_free(a, &block);
    } else if (chance(&a->rng, 30)) {
        actor_keep(a, block);
    } else {
        actor_free_late(a, block, between(&a->rng, 0, 120));
    }
}

static void depart_with_access(actor *a)
{
    shadow_use uses[3];
    uint32_t n = 0;
    for (uint32_t wanted = between(&a->rng, 1, 3); wanted > 0; wanted--) {
        shadow_block *block = actor_any_block(a);
        if (block && !actor_is_named(uses, n, block)) {
            uses[n++] = (shadow_use){block, later_kind(&a->rng)};
        }
    }
    actor_exec(a, 910, (uint32_t)np_rng_below(&a->rng, a->settings->n_streams), 3000, uses, n);
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
    case DEPART_KEPT_USE:
        if (a->n_kept > 0) {
            a->extra = (shadow_use){&a->kept[np_rng_below(&a->rng, a->n_kept)], later_kind(&a->rng)};
        }
        return a->n_kept > 0;
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
        s->bytes = chance(&a->rng, 50) ? s->bytes + 1 + np_rng_below(&a->rng, 4096) : random_bytes(&a->rng, &a->form);
        return true;
    }
    if ((d == DEPART_LATE_FREE || d == DEPART_KEPT) && s->kind == STEP_FREE && slot->n >= s->min_length &&
        slot->n > 0) {
        shadow_block block = actor_take_oldest(slot);
        *skip = true;
        if (d == DEPART_KEPT) {
            actor_keep(a, block);
        } else {
            actor_free_late(a, block, between(&a->rng, 0, 150));
        }
        return true;
    }
    return false;
}

bool actor_depart(actor *a, const loop *l, uint32_t at, departure d, step *s, bool *skip)
{
    shadow_block *block = actor_any_block(a);
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
        freed = actor_take_oldest(&a->slots[slot]);
        actor_free(a, &freed);
        return true;
    case DEPART_ACCESS:
        depart_with_access(a);
        return true;
    case DEPART_SKIP:
        *skip = s->kind == STEP_EXEC || s->kind == STEP_MALLOC;
        return *skip;
    case DEPART_TWICE:
        if (s->kind == STEP_EXEC) {
            actor_step(a, s);
        }
        return s->kind == STEP_EXEC;
    case DEPART_EXCHANGE:
        if (at + 1 < l->n_steps && s->kind == l->steps[at + 1].kind && s->kind != STEP_EXEC) {
            actor_step(a, &l->steps[at + 1]);
            return true;
        }
        return false;
    case DEPART_HOST_READ:
        if (block) {
            actor_host_read(a, block);
        }
        return block != NULL;
    case DEPART_HOST_WRITE:
        if (block) {
            (void)actor_passed(a, shadow_host_write(&a->streams, block, chance(&a->rng, 50)), "neap_write");
        }
        return block != NULL;
    case DEPART_SYNC:
        (void)actor_passed(a, shadow_sync(&a->streams), "neap_sync");
        return true;
    default:
        return change_exec(a, d, s);
    }
}
