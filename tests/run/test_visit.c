/* test_visit.c: on the plan, blocks that are away come for the work that uses them all the same.
 *
 * Each test looks for moments of one kind (visit_watch.h), has the work use the block, and compares: what was copied, what
 * was mapped, that the plan goes on. That no byte is wrong, then or later, is the shadow's to find (shadow.h), and that
 * nothing is unordered the simulated device's. */
#include <string.h>

#include "run/visit_watch.h"
#include "testing.h"

enum { MANY_LAPS = 12, FEW_LAPS = 4 };

/* What the seekers look for. */
static struct {
    visit_place place;
    bool is_weight;
    bool is_planned;
    bool is_partly_here;
} wanted;

static bool is_of_kind(little_program *p, const visit_chance *chance)
{
    (void)p;
    return chance->is_quiet && chance->place == wanted.place && chance->is_weight == wanted.is_weight &&
           chance->is_planned == wanted.is_planned && (!wanted.is_partly_here || chance->is_partly_here);
}

static const shadow_kind kinds[] = {SHADOW_READ, SHADOW_UPDATE, SHADOW_PART, SHADOW_WRITE};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static uint32_t seek_all_kinds(little_program *p, uint32_t n)
{
    uint32_t n_made = 0;
    for (uint32_t i = 0; i < N_KINDS; i++) {
        visit_seeker s = {.is_wanted = is_of_kind, .kind = kinds[i], .n_wanted = n};
        (void)visit_seek(p, &s, FEW_LAPS);
        n_made += s.n_made;
        little_laps(p, 1); /* what was written is looked at where the plan has it used */
        little_check(p);
    }
    return n_made;
}

static void start(little_program *p, double limit_share)
{
    visit_start(p, &(little_options){.device = {.limit_share = limit_share}});
}

/* ---- in its own place ---- */

static void test_in_place(void **state)
{
    static little_program p;
    (void)state;
    start(&p, 0.6);
    for (int is_weight = 0; is_weight < 2; is_weight++) {
        for (int place = VISIT_EMPTY; place <= VISIT_OCCUPIED; place++) {
            memset(&wanted, 0, sizeof wanted);
            wanted.place = (visit_place)place;
            wanted.is_weight = is_weight;
            ASSERT_GE(seek_all_kinds(&p, 3), place == VISIT_OCCUPIED ? 12 : 0);
        }
    }
    ASSERT_GE(little_stats(&p).n_visits, 24);
    ASSERT_EQ(little_stats(&p).n_visits, p.device->stats.n_visits);
    little_end(&p);
}

/* Its copy out may be under way; what is written then must be copied once more. Planned work that is to read it, and writes
 * it, is another such use. */
static void test_still_there(void **state)
{
    static little_program p;
    uint32_t n_made[2] = {0};
    (void)state;
    for (int share = 5; share <= 6; share++) {
        start(&p, 0.1 * share);
        for (int is_planned = 0; is_planned < 2; is_planned++) {
            memset(&wanted, 0, sizeof wanted);
            wanted.place = VISIT_STILL_THERE;
            wanted.is_planned = is_planned;
            n_made[is_planned] += seek_all_kinds(&p, 2);
            wanted.is_weight = true;
            n_made[is_planned] += seek_all_kinds(&p, 2);
        }
        little_end(&p);
    }
    ASSERT_GE(n_made[0], 4);
    ASSERT_GE(n_made[1], 4);
}

/* Some of its pages are here, and what is in them is not on the host. */
static void test_partly_here(void **state)
{
    static little_program p;
    (void)state;
    start(&p, 0.6);
    for (int place = VISIT_EMPTY; place <= VISIT_IN_USE; place++) {
        memset(&wanted, 0, sizeof wanted);
        wanted.place = (visit_place)place;
        wanted.is_partly_here = true;
        ASSERT_GE(seek_all_kinds(&p, 3), place >= VISIT_OCCUPIED ? 6 : 0);
    }
    little_end(&p);
}

/* ---- elsewhere ---- */

static void test_place_in_use(void **state)
{
    static little_program p;
    (void)state;
    for (unsigned stream = 0; stream < 2; stream++) {
        visit_start(&p, &(little_options){.shares_pages = stream == 1,
                                          .weight_bytes = stream == 1 ? 7 * LITTLE_PAGE + 1536 : 0,
                                          .update_stream = stream});
        for (int is_weight = 0; is_weight < 2; is_weight++) {
            memset(&wanted, 0, sizeof wanted);
            wanted.place = VISIT_IN_USE;
            wanted.is_weight = is_weight;
            ASSERT_GE(seek_all_kinds(&p, 8), 16);
        }
        little_end(&p);
    }
}

/* The block that stands in the place, or on the pages, of who visits. */
typedef struct bystander {
    shadow_block *visitor;
    shadow_block *block;
    bool is_fixed;   /* or used as planned, and not seen to be, */
    bool is_late;    /* or used though it is not planned to be */
    uint32_t n_seen; /* works that read it without being seen to */
    uint32_t n_wanted;
    uint64_t n_maps;
    uint64_t n_visits;
} bystander;

static bool stands_in_place(little_program *p, const neap_block *block, const neap_block *visitor)
{
    const np_program *program = &p->device->pattern->program;
    const np_program_life *own = &program->lives.items[block->life];
    const np_program_life *of = &program->lives.items[visitor->life];
    for (uint32_t i = 0; i < own->n_placed; i++) {
        for (uint32_t k = 0; k < of->n_placed; k++) {
            const np_placed *a = &program->placed.items[own->first_placed + i];
            const np_placed *b = &program->placed.items[of->first_placed + k];
            if (a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes) {
                return true;
            }
        }
    }
    return false;
}

static bool is_away(const little_program *p, const neap_block *block)
{
    const np_pattern *pattern = p->device->pattern;
    for (uint32_t i = 0; i < pattern->program.swaps.n; i++) {
        if (pattern->program.swaps.items[i].life == block->life && pattern->is_out[i]) {
            return true;
        }
    }
    return false;
}

static bool is_named(const shadow_use *uses, uint32_t n_uses, const shadow_block *block)
{
    for (uint32_t i = 0; i < n_uses; i++) {
        if (uses[i].block == block) {
            return true;
        }
    }
    return false;
}

/* A block that could be the one beside the visitor, for this work. */
static bool suits(little_program *p, const bystander *b, const shadow_use *uses, uint32_t n_uses, shadow_block *block)
{
    bool is_planned = is_named(uses, n_uses, block);
    if (!block->block || block->block->life == NP_NO_LIFE || is_away(p, block->block) || block == b->visitor ||
        (b->is_fixed && p->device->pattern->program.lives.items[block->block->life].swapped)) {
        return false;
    }
    for (uint32_t i = 0; i < n_uses && !b->is_fixed && !b->is_late; i++) {
        if (uses[i].block == block && uses[i].kind != SHADOW_READ) {
            return false;
        }
    }
    return is_planned == (!b->is_fixed && !b->is_late) && stands_in_place(p, block->block, b->visitor->block);
}

/* Of the blocks that stay where they are and that the work does not name, the one in front. */
static shadow_block *first_to_fix(little_program *p, const shadow_use *uses, uint32_t n_uses)
{
    const np_program *program = &p->device->pattern->program;
    shadow_block *first = NULL;
    shadow_block *block;
    uint64_t least = UINT64_MAX;
    for (uint32_t k = 0; (block = visit_candidate(p, k)) != NULL; k++) {
        const np_program_life *life =
            block->block && block->block->life != NP_NO_LIFE ? &program->lives.items[block->block->life] : NULL;
        if (life && life->n_placed > 0 && !life->swapped && !block->block->is_fixed && !is_named(uses, n_uses, block) &&
            program->placed.items[life->first_placed].offset < least) {
            least = program->placed.items[life->first_placed].offset;
            first = block;
        }
    }
    return first;
}

static uint32_t use_beside(little_program *p, shadow_use *uses, uint32_t n_uses)
{
    bystander *b = p->user;
    visit_chance chance;
    b->block = NULL;
    for (uint32_t v = 0; b->n_wanted > 0 && !b->block && visit_candidate(p, v) != NULL; v++) {
        b->visitor = visit_candidate(p, (v + b->n_seen) % (2 * p->options.n_layers + 2)); /* not always the same */
        for (uint32_t k = 0; visit_look(p, uses, n_uses, b->visitor, &chance) && chance.place >= VISIT_OCCUPIED &&
                             !chance.is_planned && !b->block && visit_candidate(p, k);
             k++) {
            b->block = suits(p, b, uses, n_uses, visit_candidate(p, k)) ? visit_candidate(p, k) : NULL;
        }
    }
    if (!b->block) {
        return n_uses;
    }
    b->n_wanted--;
    b->n_seen++;
    if (b->is_fixed) { /* and one more, where pages are looked for first */
        shadow_block *other = first_to_fix(p, uses, n_uses);
        ASSERT_OK(np_beneath_fix(p->device, b->block->block, false));
        ASSERT_OK(other ? np_beneath_fix(p->device, other->block, false) : NEAP_OK);
        ASSERT_EQ(p->device->state, NEAP_STATE_RUN);
    }
    for (uint32_t i = 0; i < n_uses && !b->is_fixed && !b->is_late; i++) { /* the more of them, the fewer free pages */
        uses[i].kind = uses[i].kind == SHADOW_READ ? SHADOW_UNSEEN : uses[i].kind;
    }
    b->n_maps = faulty_n_calls(p->faulty, FAULTY_MAP);
    b->n_visits = p->device->stats.n_visits;
    for (uint32_t k = 0; b->is_fixed && n_uses < SHADOW_USES - 2 && visit_candidate(p, k); k++) {
        shadow_block *other = visit_candidate(p, k);
        if (other->block && other->block->is_fixed && !is_named(uses, n_uses, other)) {
            n_uses = visit_add(uses, n_uses, other, SHADOW_UNSEEN);
        }
    }
    n_uses = visit_add(uses, n_uses, b->block, b->is_late ? SHADOW_READ : SHADOW_UNSEEN);
    return visit_add(uses, n_uses, b->visitor, b->n_seen % 2 ? SHADOW_READ : SHADOW_UPDATE);
}

static void seen_beside(little_program *p)
{
    const bystander *b = p->user;
    if (b->block) {
        ASSERT_EQ(p->device->stats.n_visits, b->n_visits + 1);
        ASSERT_GT(faulty_n_calls(p->faulty, FAULTY_MAP), b->n_maps);
        ASSERT_EQ(p->device->state, NEAP_STATE_RUN);
    }
}

/* Somebody is in the visitor's place whom the work may read: fixed, or planned and not seen, or seen and not planned. */
static void test_bystanders(void **state)
{
    static little_program p;
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        bystander b = {.is_fixed = kind == 0, .is_late = kind == 1, .n_wanted = 60};
        start(&p, 0.6);
        p.user = &b;
        p.change_uses = use_beside;
        p.after_event = seen_beside;
        little_laps(&p, MANY_LAPS);
        p.change_uses = NULL;
        p.after_event = NULL;
        ASSERT_GE(b.n_seen, kind == 0 ? 12 : 40);
        little_laps(&p, 1);
        little_end(&p);
    }
}

/* ---- several at once ---- */

typedef struct crowd {
    uint32_t n_each;
    bool has_overlap; /* two of them have the same place */
    uint64_t n_visits;
    uint32_t n_works;
    uint32_t n_overlaps;
    uint32_t n_blocks; /* of the work that is being given */
} crowd;

static uint32_t use_crowd(little_program *p, shadow_use *uses, uint32_t n_uses)
{
    crowd *c = p->user;
    shadow_block *block;
    visit_chance chance;
    uint32_t first = n_uses;
    c->n_visits = p->device->stats.n_visits;
    for (uint32_t k = 0; (block = visit_candidate(p, k)) != NULL && n_uses < SHADOW_USES; k++) {
        if (n_uses - first < c->n_each && visit_look(p, uses, n_uses, block, &chance) && !chance.is_planned) {
            bool overlaps = false;
            for (uint32_t i = first; i < n_uses; i++) {
                overlaps |= stands_in_place(p, block->block, uses[i].block->block);
            }
            if (c->has_overlap && n_uses > first && !overlaps) {
                continue;
            }
            c->n_overlaps += overlaps;
            n_uses = visit_add(uses, n_uses, block, kinds[(k + c->n_works) % N_KINDS]);
        }
    }
    c->n_blocks = n_uses - first;
    c->n_works += c->n_blocks > 1;
    return n_uses;
}

static void seen_crowd(little_program *p)
{
    crowd *c = p->user;
    if (c->n_blocks > 0 && p->device->state == NEAP_STATE_RUN) {
        ASSERT_EQ(p->device->stats.n_visits, c->n_visits + 1);
    }
    c->n_blocks = 0;
}

/* Two, and as many as there can be. Where there are too few pages for all of them the plan is left, and entered again. */
static void test_crowds(void **state)
{
    static little_program p;
    (void)state;
    for (uint32_t n_each = 2; n_each <= SHADOW_USES; n_each += 3) {
        crowd c = {.n_each = n_each};
        start(&p, 0.5);
        for (int i = 0; i < 6; i++) {
            c.has_overlap = i % 2;
            p.user = &c;
            p.change_uses = use_crowd;
            p.after_event = seen_crowd;
            little_laps(&p, 1);
            p.change_uses = NULL;
            p.after_event = NULL;
            little_laps(&p, 2);
        }
        ASSERT_GE(c.n_works, 10);
        ASSERT_GE(c.n_overlaps, 1);
        ASSERT_GE(p.device->stats.n_visits, 10);
        little_end(&p);
    }
}

static bool is_any(little_program *p, const visit_chance *chance)
{
    (void)p;
    return !chance->is_planned;
}

/* A block of each iteration lives on into the next: it has two places, and stands in one of them in turn. */
static void test_turns(void **state)
{
    static little_program p;
    (void)state;
    for (int share = 4; share <= 6; share++) {
        const np_program *program;
        bool has_turns = false;
        visit_start(&p, &(little_options){.device = {.limit_share = 0.1 * share}, .has_crossing = true});
        program = &p.device->pattern->program;
        for (uint32_t i = 0; i < program->lives.n; i++) {
            has_turns |= program->lives.items[i].n_places > 1;
        }
        ASSERT_TRUE(has_turns);
        for (int lap = 0; lap < 16; lap++) {
            visit_seeker s = {
                .is_wanted = is_any, .kind = kinds[lap % N_KINDS], .n_wanted = 100, .may_be_refused = true};
            (void)visit_seek(&p, &s, 1);
            ASSERT_GE(s.n_made, 5);
            little_check(&p);
        }
        little_end(&p);
    }
}

/* ---- streams ---- */

/* Work on another stream than planned is visited too; updates are on a stream of their own. */
static void test_streams(void **state)
{
    static little_program p;
    uint64_t n_visits;
    (void)state;
    visit_start(&p, &(little_options){.update_stream = 1});
    for (uint32_t layer = 1; layer < p.options.n_layers; layer++) {
        visit_seeker s = {.kind = kinds[layer % N_KINDS], .n_wanted = 40};
        (void)visit_seek(&p, &s, 1);
        p.user = &(crowd){.n_each = 1};
        p.change_uses = use_crowd;
        little_lap(&p, (little_twist){LITTLE_OTHER_STREAM, layer});
        p.change_uses = NULL;
        little_check(&p);
    }
    n_visits = p.device->stats.n_visits;
    ASSERT_GE(n_visits, 30);
    little_end(&p);
}

/* ---- what comes after ---- */

static void go_home(little_program *p, const visit_chance *chance)
{
    (void)chance;
    ASSERT_OK(np_beneath_home(p->device, "a test"));
    ASSERT_TRUE(p->device->visit.scratch.host == NULL); /* host memory is for others */
}

/* The plan is left right after the visit. What was written is there, and so is what stood in its place. */
static void test_left_right_after(void **state)
{
    static little_program p;
    (void)state;
    start(&p, 0.6);
    for (int place = VISIT_STILL_THERE; place <= VISIT_IN_USE; place++) {
        for (int is_weight = 0; is_weight < 2; is_weight++) {
            memset(&wanted, 0, sizeof wanted);
            wanted.place = (visit_place)place;
            wanted.is_weight = is_weight;
            for (uint32_t i = 0; i < N_KINDS; i++) {
                visit_seeker s = {.is_wanted = is_of_kind, .after = go_home, .kind = kinds[i], .n_wanted = 1};
                bool is_made = visit_seek(&p, &s, 3);
                ASSERT_TRUE(is_made || place < VISIT_OCCUPIED);
                little_laps(&p, 2);
                little_check(&p);
                ASSERT_EQ(p.device->state, NEAP_STATE_RUN);
            }
        }
    }
    little_end(&p);
}

/* ---- refused ---- */

static bool is_large(little_program *p, const visit_chance *chance)
{
    uint64_t bytes = chance->bytes_there + chance->bytes_empty + chance->bytes_taken;
    return !chance->is_planned && bytes > p->device->visit.bytes_max;
}

static uint32_t use_two(little_program *p, shadow_use *uses, uint32_t n_uses)
{
    crowd *c = p->user;
    shadow_use both[SHADOW_USES];
    uint32_t n;
    memcpy(both, uses, n_uses * sizeof *uses);
    n = c->n_works == 0 ? use_crowd(p, both, n_uses) : n_uses;
    if (n < n_uses + 2) {
        c->n_works = 0;
        return n_uses;
    }
    memcpy(uses, both, n * sizeof *uses);
    return n;
}

/* More than may come, of one block or of two together: as without visits. */
static void test_too_large(void **state)
{
    static little_program p;
    visit_seeker s = {.is_wanted = is_large, .n_wanted = 1, .may_be_refused = true};
    crowd c = {.n_each = 2};
    (void)state;
    start(&p, 0.6);
    p.device->visit.bytes_max = LITTLE_PAGE - 1;
    ASSERT_TRUE(visit_seek(&p, &s, 1));
    ASSERT_EQ(s.n_refused, 1);
    ASSERT_GE(little_count(&p, "were used while they were away") + p.device->pattern->doubts.n, 1);
    little_end(&p);
    start(&p, 0.6);
    p.device->visit.bytes_max = p.options.act_bytes; /* each of them may */
    p.user = &c;
    p.change_uses = use_two;
    for (int i = 0; i < 4 && p.device->stats.n_departures == 0; i++) {
        little_laps(&p, 1);
    }
    p.change_uses = NULL;
    ASSERT_EQ(p.device->stats.departures[NEAP_DEPARTURE_ABSENT], 1);
    little_laps(&p, 3);
    little_end(&p);
}

typedef struct rush {
    uint32_t n_refused;
    uint64_t n_departures;
    bool is_made;
} rush;

/* The work uses what it can of what is here, and then one more that is away. */
static uint32_t use_all(little_program *p, shadow_use *uses, uint32_t n_uses)
{
    rush *r = p->user;
    shadow_use all[SHADOW_USES];
    shadow_block *block;
    visit_chance chance;
    uint32_t n = n_uses;
    r->is_made = false;
    memcpy(all, uses, n_uses * sizeof *uses);
    for (uint32_t k = 0; p->device->state == NEAP_STATE_RUN && (block = visit_candidate(p, k)) != NULL; k++) {
        if (n < SHADOW_USES - 1 && block->block && block->block->life != NP_NO_LIFE && !is_away(p, block->block) &&
            !is_named(all, n, block)) {
            n = visit_add(all, n, block, SHADOW_READ);
        }
    }
    for (uint32_t k = 0; (block = visit_candidate(p, k)) != NULL && r->n_refused < 3; k++) {
        if (visit_look(p, all, n, block, &chance) && !chance.is_planned && chance.place == VISIT_IN_USE &&
            chance.n_free < chance.n_pages) {
            n = visit_add(all, n, block, SHADOW_UPDATE);
            memcpy(uses, all, n * sizeof *uses);
            r->is_made = true;
            r->n_departures = p->device->stats.departures[NEAP_DEPARTURE_ABSENT];
            return n;
        }
    }
    return n_uses;
}

static void seen_rush(little_program *p)
{
    rush *r = p->user;
    if (r->is_made) {
        ASSERT_EQ(p->device->stats.departures[NEAP_DEPARTURE_ABSENT], r->n_departures + 1);
        ASSERT_TRUE(p->device->pattern->has_doubts); /* the next plan has it there */
        r->n_refused++;
    }
    r->is_made = false;
}

/* The arena has too few pages that the work does not use. */
static void test_no_room_elsewhere(void **state)
{
    static little_program p;
    rush r = {0};
    (void)state;
    visit_start(&p, &(little_options){.device = {.limit_share = 0.4}, .n_layers = 6});
    p.user = &r;
    p.change_uses = use_all;
    p.after_event = seen_rush;
    little_laps(&p, MANY_LAPS);
    p.change_uses = NULL;
    p.after_event = NULL;
    ASSERT_EQ(r.n_refused, 3);
    little_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_still_there),
        cmocka_unit_test(test_partly_here),
        cmocka_unit_test(test_place_in_use),
        cmocka_unit_test(test_bystanders),
        cmocka_unit_test(test_crowds),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_left_right_after),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_no_room_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
