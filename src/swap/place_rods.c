/* place_rods.c: persistent blocks that share pages and never leave, as one buffer each group.
 *
 * Each begins in the page in which its neighbour ends, so their places follow from the first one's: page by page, since a
 * page of a view is a page of the device. What the first block of a rod leaves free of its page, others must fill; so one
 * whose neighbour has gone, or leaves now and then, gets another: the block that ends last before it begins. The two have
 * no page in common yet: that one page is moved when the plan is entered. */
#include "base/checked.h"
#include "swap/place_problem.h"

typedef struct rods {
    np_place_problem *p;
    bool *is_member;  /* by life: it can be in one */
    bool *has_before; /* it is behind another that can */
    uint32_t *next;   /* the one behind it, or NP_NO_HOME */
    uint32_t *head;   /* the first of its rod */
    size_t n_lives;
} rods;

/* The last byte of its last page that a life has. */
static uint64_t last_byte(const np_place_problem *p, uint32_t life)
{
    const np_life *l = &p->timeline->period->lives.items[life];
    uint64_t bytes = p->timeline->period->trace->blocks.items[l->block].bytes;
    uint64_t rounded;
    return (p->options->homes[life].lead + (np_round_up(bytes, p->problem.unit, &rounded) ? rounded : bytes) - 1) %
           p->options->page;
}

static void link(rods *r, uint32_t before, uint32_t life)
{
    r->next[before] = life;
    r->has_before[life] = true;
    for (uint32_t i = life; i != NP_NO_HOME && r->head[i] != r->head[before]; i = r->next[i]) {
        r->head[i] = r->head[before];
    }
}

/* Could a life stand right behind another? Not where a rod would become a ring. */
static bool can_link(const rods *r, uint32_t before, uint32_t life)
{
    return r->is_member[before] && r->next[before] == NP_NO_HOME && r->head[before] != r->head[life] &&
           last_byte(r->p, before) < r->p->options->homes[life].lead;
}

/* The one that ends last before the life begins, within a page. */
static uint32_t find_before(const rods *r, uint32_t life)
{
    uint32_t best = NP_NO_HOME;
    for (uint32_t i = 0; i < r->n_lives; i++) {
        if (can_link(r, i, life) && (best == NP_NO_HOME || last_byte(r->p, i) > last_byte(r->p, best))) {
            best = i;
        }
    }
    return best;
}

/* A block that leaves now and then, or that stands already, has a place of its own. */
static void find_rods(rods *r)
{
    const np_place_problem *p = r->p;
    for (uint32_t i = 0; i < r->n_lives; i++) {
        const np_home *home = &p->options->homes[i];
        r->is_member[i] = p->timeline->period->lives.items[i].persistent && !home->is_outside && !home->pages;
        r->next[i] = NP_NO_HOME;
        r->head[i] = i;
    }
    for (uint32_t i = 0; i < p->n_parts; i++) {
        r->is_member[p->timeline->blocks.items[p->parts[i].block].life] = false;
    }
    for (uint32_t i = 0; i < r->n_lives; i++) {
        uint32_t before = p->options->homes[i].neighbour;
        if (r->is_member[i] && before < r->n_lives && can_link(r, before, i)) {
            link(r, before, i);
        }
    }
    for (uint32_t i = 0; i < r->n_lives; i++) {
        if (r->is_member[i] && !r->has_before[i] && p->options->homes[i].lead > 0) {
            uint32_t before = find_before(r, i);
            if (before != NP_NO_HOME) {
                link(r, before, i);
            }
        }
    }
}

/* Lays the rod out that begins with a life, and adds its buffer. */
static neap_status add_rod(rods *r, uint32_t first)
{
    np_place_problem *p = r->p;
    uint64_t page = p->options->page;
    uint32_t buffer = (uint32_t)p->problem.buffers.n;
    uint64_t lead = p->options->homes[first].lead;
    uint64_t base = 0; /* of the page in which the next one begins */
    uint64_t end = 0;
    np_piece all = {0, p->round};
    for (uint32_t i = first; i != NP_NO_HOME; i = r->next[i]) {
        const np_life *life = &p->timeline->period->lives.items[i];
        uint64_t begin = base + p->options->homes[i].lead;
        uint64_t bytes;
        if (!np_round_up(p->timeline->period->trace->blocks.items[life->block].bytes, p->problem.unit, &bytes) ||
            !np_add_u64(begin, bytes, &end)) {
            return NEAP_TOO_LARGE;
        }
        p->rods[i] = (np_spot){buffer, begin - lead};
        base = (end - 1) / page * page;
    }
    return np_problem_add_aligned(&p->problem, end - lead, page, lead, NEAP_NO_OFFSET, &all, 1);
}

neap_status np_place_rods_add(np_place_problem *problem)
{
    const neap_memory *memory = problem->timeline->memory;
    rods r = {.p = problem, .n_lives = problem->timeline->period->lives.n};
    neap_status status;
    r.is_member = np_memory_alloc_zero(memory, r.n_lives, sizeof *r.is_member);
    r.has_before = np_memory_alloc_zero(memory, r.n_lives, sizeof *r.has_before);
    r.next = np_memory_alloc(memory, r.n_lives, sizeof *r.next);
    r.head = np_memory_alloc(memory, r.n_lives, sizeof *r.head);
    problem->rods = np_memory_alloc(memory, r.n_lives, sizeof *problem->rods);
    status = r.is_member && r.has_before && r.next && r.head && problem->rods ? NEAP_OK : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        find_rods(&r);
    }
    for (uint32_t i = 0; i < r.n_lives && status == NEAP_OK; i++) {
        problem->rods[i].buffer = NP_NO_HOME;
    }
    for (uint32_t i = 0; i < r.n_lives && status == NEAP_OK; i++) {
        if (r.is_member[i] && !r.has_before[i]) {
            status = add_rod(&r, i);
        }
    }
    np_memory_free(memory, r.is_member, r.n_lives, sizeof *r.is_member);
    np_memory_free(memory, r.has_before, r.n_lives, sizeof *r.has_before);
    np_memory_free(memory, r.next, r.n_lives, sizeof *r.next);
    np_memory_free(memory, r.head, r.n_lives, sizeof *r.head);
    return status;
}
