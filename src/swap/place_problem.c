#include "swap/place_problem.h"

#include <stdlib.h>

#include "base/checked.h"

enum {
    MAX_CUTS = 600,   /* pieces that all swapped blocks together are cut into, about, */
    LARGE_CUTS = 128, /* and all large ones, */
    CUT_CUTS = 600,   /* more of them where they are to be cut up */
    LARGE_PART = 32,  /* of the peak load, */
    LARGE_PAGES = 4,  /* and so many pages at least: the last one may be lost; */
    CUT_PAGES = 8,    /* and where they are to be cut up, */
    MAX_PAGES = 8192, /* as many blocks as have this many pages: mapping each takes time when a plan is entered */
};

/* A block as it is placed. */
typedef struct stay {
    uint64_t bytes;
    uint64_t lead;       /* where in a page it begins */
    const np_home *home; /* NULL: of no block that stands already */
    uint32_t life;
    uint32_t begin; /* times of the round, counted on */
    uint32_t end;
    uint32_t first_exec; /* that uses it, counted on */
    const np_absent_part *parts;
    uint32_t n_parts;
    bool is_view; /* it must be one, since it lives across the period's end, say */
} stay;

static int compare_u32(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_parts(const void *left, const void *right)
{
    const np_absent_part *a = left;
    const np_absent_part *b = right;
    if (a->block != b->block) {
        return compare_u32(a->block, b->block);
    }
    if (a->gap != b->gap) {
        return compare_u32(a->gap, b->gap);
    }
    if (a->odd != b->odd) {
        return a->odd ? 1 : -1;
    }
    if (a->from != b->from) {
        return compare_u32(a->from, b->from);
    }
    return a->to != b->to ? compare_u32(b->to, a->to) : compare_u32(a->swap, b->swap);
}

static int compare_bytes(const void *left, const void *right)
{
    const uint64_t *a = left;
    const uint64_t *b = right;
    return *a < *b ? -1 : *a > *b;
}

static int compare_pieces(const void *left, const void *right)
{
    const np_piece *a = left;
    const np_piece *b = right;
    return compare_u32(a->begin, b->begin);
}

static uint64_t lead_of(const np_place_problem *p, uint32_t block)
{
    return p->options->homes ? p->options->homes[p->timeline->blocks.items[block].life].lead : 0;
}

/* In each gap parts of whole pages are stacked from the block's first byte on, so that the same bytes leave in all gaps. One
 * that is not of whole pages must be the block's end, which is not either: then every part begins at a page. One that
 * cannot be does not leave: a page that is half away could not be left alone when a program leaves its plan. Where the
 * block does not begin at a page, the cuts between parts are moved back to where pages begin. */
static void stack_parts(np_place_problem *p)
{
    uint64_t page = p->options->page;
    uint64_t top = 0;     /* of what is stacked in the gap at hand, */
    uint64_t ceiling = 0; /* and where its end part begins */
    uint32_t gap = UINT32_MAX;
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < p->n_parts; i++) {
        np_absent_part part = p->parts[i];
        uint64_t bytes = p->timeline->blocks.items[part.block].bytes;
        uint64_t size = part.end;
        if (part.gap != gap) {
            gap = part.gap;
            top = 0;
            ceiling = bytes;
        }
        if (part.odd && ceiling == bytes && size % page == bytes % page && bytes - size >= top) {
            part.begin = ceiling = bytes - size;
        } else if (part.odd && p->options->held) {
            continue;
        } else {
            part.begin = top;
            top += size;
        }
        part.end = part.begin + size;
        part.begin -= part.begin > 0 ? lead_of(p, part.block) : 0;
        part.end -= part.end < bytes ? lead_of(p, part.block) : 0;
        p->parts[n_kept++] = part;
    }
    p->n_parts = n_kept;
}

static void collect_parts(np_place_problem *p, const np_simulator *simulator, const np_swap *swaps, uint32_t n_swaps)
{
    for (uint32_t i = 0; i < n_swaps; i++) {
        const np_gap *gap = &p->timeline->gaps.items[swaps[i].gap];
        np_absence absence = np_simulator_absence(simulator, i);
        np_absent_part part = {.block = gap->block, .gap = swaps[i].gap, .swap = i, .end = swaps[i].bytes};
        part.from = absence.absent_from;
        part.to = absence.back_from < gap->to ? absence.back_from : gap->to;
        part.odd = swaps[i].bytes % p->options->page != 0;
        if (part.from < part.to) {
            p->parts[p->n_parts++] = part;
        }
    }
    if (p->n_parts > 0) {
        qsort(p->parts, p->n_parts, sizeof *p->parts, compare_parts);
    }
    stack_parts(p);
}

/* Small enough to fit in anywhere, large enough to stay few. */
static uint64_t choose_piece(const np_place_problem *p)
{
    uint64_t page = p->options->page;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->n_parts; i++) {
        if (i == 0 || p->parts[i].block != p->parts[i - 1].block) {
            bytes += p->timeline->blocks.items[p->parts[i].block].bytes;
        }
    }
    return (bytes / MAX_CUTS / page + 1) * page;
}

/* Bytes of all blocks that are as large. */
static uint64_t bytes_from(const np_place_problem *p, uint64_t least)
{
    const np_period *period = p->timeline->period;
    uint64_t bytes = 0;
    for (size_t i = 0; i < period->lives.n; i++) {
        uint64_t of_block = period->trace->blocks.items[period->lives.items[i].block].bytes;
        bytes += of_block >= least ? of_block : 0;
    }
    return bytes;
}

/* The same for those that are large, which are cut no finer. */
static uint64_t choose_large_piece(const np_place_problem *p)
{
    uint64_t page = p->options->page;
    uint64_t piece;
    if (p->large == UINT64_MAX) {
        return p->piece;
    }
    piece = (bytes_from(p, p->large) / (p->options->cuts ? CUT_CUTS : LARGE_CUTS) / page + 1) * page;
    return piece > p->piece ? piece : p->piece;
}

static uint64_t choose_large(const np_place_problem *p)
{
    uint64_t page = p->options->page;
    uint64_t part = p->timeline->peak_load / LARGE_PART;
    uint64_t cut = CUT_PAGES * page;
    part = part > LARGE_PAGES * page ? part : LARGE_PAGES * page;
    while (p->options->cuts && cut < part && bytes_from(p, cut) > MAX_PAGES * page) {
        cut *= 2;
    }
    return p->options->cuts && cut < part ? cut : part;
}

/* ---- the problem ---- */

/* The event of an exec that is counted on. */
static uint32_t event_of(const np_place_problem *p, uint32_t exec)
{
    uint32_t laps = exec / p->timeline->n_execs;
    return p->timeline->times.items[exec - laps * p->timeline->n_execs] + laps * p->round;
}

static void add_piece(np_place_problem *p, uint32_t *n_pieces, uint32_t begin, uint32_t end)
{
    uint32_t laps = begin / p->round;
    begin -= laps * p->round;
    end -= laps * p->round;
    if (begin >= end) {
        return;
    }
    if (end > p->round) {
        p->pieces[(*n_pieces)++] = (np_piece){0, end - p->round};
        end = p->round;
    }
    p->pieces[(*n_pieces)++] = (np_piece){begin, end};
}

/* When all of the bytes [at, past) are away in the gap of parts[*i], in times; *i moves on to the next gap's. False: they
 * never are. */
static bool find_hole(const np_place_problem *p, const stay *block, uint32_t *i, uint64_t at, uint64_t past,
                      np_piece *hole)
{
    const np_absent_part *parts = block->parts;
    uint32_t gap = parts[*i].gap;
    uint32_t from = 0;
    uint32_t to = UINT32_MAX;
    uint32_t shift = p->timeline->gaps.items[gap].from < block->first_exec ? p->timeline->n_execs : 0;
    uint64_t covered = 0;
    for (; *i < block->n_parts && parts[*i].gap == gap; (*i)++) {
        if (parts[*i].begin < past && at < parts[*i].end) {
            uint64_t first = parts[*i].begin > at ? parts[*i].begin : at;
            uint64_t last = parts[*i].end < past ? parts[*i].end : past;
            covered += last - first;
            from = parts[*i].from > from ? parts[*i].from : from;
            to = parts[*i].to < to ? parts[*i].to : to;
        }
    }
    if (covered < past - at || from >= to) {
        return false;
    }
    from += shift; /* gaps after the period's end are numbered from its start */
    to += shift;
    *hole = p->options->held ? (np_piece){event_of(p, from - 1) + 1, event_of(p, to)} : (np_piece){from, to};
    return true;
}

static bool is_standing(const stay *block)
{
    return block->home && block->home->pages;
}

/* Cut into pieces? What leaves; and, beside such, what is large: among blocks that must return to their places, and stand
 * there from malloc to free, it would hardly find room in one piece. These are few, so that it does not matter that views
 * have to be mapped. */
static bool is_cut(const np_place_problem *p, const stay *block)
{
    return !is_standing(block) && (block->n_parts > 0 || (!block->home && block->bytes >= p->large));
}

static uint64_t offset_of(const np_place_problem *p, const stay *block, uint64_t at)
{
    uint64_t page = p->options->page;
    uint64_t in_view = at + block->lead;
    return is_standing(block) ? block->home->pages[in_view / page] * page + in_view % page : NEAP_NO_OFFSET;
}

/* How many bytes from `at` on stand in one. */
static uint64_t run_of(const np_place_problem *p, const stay *block, uint64_t at)
{
    uint64_t page = p->options->page;
    uint64_t past = ((at + block->lead) / page + 1) * page; /* in bytes of the view */
    while (past < block->lead + block->bytes &&
           block->home->pages[past / page] == block->home->pages[past / page - 1] + 1) {
        past += page;
    }
    return past - block->lead - at;
}

static neap_status add_placed(np_place_problem *p, const np_placed *placed, const np_spot *spot)
{
    neap_status status = np_array_push(p->timeline->memory, &p->placed, *placed);
    if (status == NEAP_OK) {
        status = np_array_push(p->timeline->memory, &p->spots, *spot);
    }
    return status;
}

/* The bytes [at, past) of a block: there from begin to end, but in holes. */
static neap_status add_segment(np_place_problem *p, const stay *block, uint64_t at, uint64_t past)
{
    np_placed placed = {.at = at, .bytes = past - at, .life = block->life};
    bool paged = is_cut(p, block) || block->is_view || (block->home && !block->home->pages);
    np_spot spot = {(uint32_t)p->problem.buffers.n, 0};
    uint64_t align = paged ? p->options->page : p->problem.unit;
    uint32_t n_pieces = 0;
    uint32_t now = block->begin;
    neap_status status;
    for (uint32_t i = 0; i < block->n_parts;) {
        np_piece hole;
        if (find_hole(p, block, &i, at, past, &hole)) {
            add_piece(p, &n_pieces, now, hole.begin);
            now = hole.end;
        }
    }
    add_piece(p, &n_pieces, now, block->end);
    qsort(p->pieces, n_pieces, sizeof *p->pieces, compare_pieces);
    status = np_problem_add_aligned(&p->problem, past - at, align, paged && at == 0 ? block->lead : 0,
                                    offset_of(p, block, at), p->pieces, n_pieces);
    return status == NEAP_OK ? add_placed(p, &placed, &spot) : status;
}

/* Cut where the parts that leave end, at the next page; and into pieces. */
static neap_status add_stay(np_place_problem *p, const stay *block)
{
    uint64_t grain = p->options->page;
    uint32_t n_cuts = 0;
    uint64_t at = 0;
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < block->n_parts; i++) {
        uint64_t end;
        if (np_round_up(block->parts[i].end + block->lead, grain, &end) && end - block->lead < block->bytes) {
            p->cuts[n_cuts++] = end - block->lead;
        }
        if ((block->parts[i].begin + block->lead) % grain == 0) {
            p->cuts[n_cuts++] = block->parts[i].begin;
        }
    }
    p->cuts[n_cuts++] = block->bytes;
    qsort(p->cuts, n_cuts, sizeof *p->cuts, compare_bytes);
    for (uint32_t i = 0; i < n_cuts && status == NEAP_OK; i++) {
        while (p->cuts[i] > at && status == NEAP_OK) {
            uint64_t piece = (block->n_parts > 0 ? p->piece : p->large_piece) - (at == 0 ? block->lead : 0);
            uint64_t most = is_standing(block) ? run_of(p, block, at) : is_cut(p, block) ? piece : UINT64_MAX;
            uint64_t past = p->cuts[i] - at > most ? at + most : p->cuts[i];
            status = add_segment(p, block, at, past);
            at = past;
        }
    }
    return status;
}

/* Lives longer than a period: its blocks take turns in places that are never free. What is run with the plan are views, as
 * those of all blocks that live across the period's end: another plan may come to be followed while they live. */
static neap_status add_places(np_place_problem *p, const np_life *life, uint32_t life_index, uint64_t bytes)
{
    uint32_t n_places = (life->end - life->begin) / p->timeline->period->length + 1;
    np_piece all = {0, p->round};
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < n_places && status == NEAP_OK; i++) {
        np_placed placed = {.bytes = bytes, .life = life_index, .place = i};
        np_spot spot = {(uint32_t)p->problem.buffers.n, 0};
        status = np_problem_add_aligned(&p->problem, bytes, p->options->homes ? p->options->page : p->problem.unit, 0,
                                        NEAP_NO_OFFSET, &all, 1);
        if (status == NEAP_OK) {
            status = add_placed(p, &placed, &spot);
        }
    }
    return status;
}

/* From first to last use; a persistent block is there all round, from its first use to the next period's. */
static neap_status add_used(np_place_problem *p, const np_swap_block *block, const np_absent_part *parts,
                            uint32_t n_parts)
{
    const np_use *uses = &p->timeline->uses.items[block->first_use];
    stay used = {.bytes = block->bytes,
                 .life = block->life,
                 .begin = uses[0].exec,
                 .first_exec = uses[0].exec,
                 .parts = parts,
                 .n_parts = n_parts};
    if (block->pinned) {
        return add_places(p, &p->timeline->period->lives.items[block->life], block->life, block->bytes);
    }
    used.end = block->persistent ? used.begin + p->round : uses[block->n_uses - 1].exec + 1;
    return add_stay(p, &used);
}

/* From malloc to free. `block` is NULL where no exec falls into its life. */
static neap_status add_held(np_place_problem *p, uint32_t life_index, const np_swap_block *block,
                            const np_absent_part *parts, uint32_t n_parts)
{
    const np_life *life = &p->timeline->period->lives.items[life_index];
    const np_home *home = p->options->homes ? &p->options->homes[life_index] : NULL;
    stay held = {.home = life->persistent ? home : NULL,
                 .lead = home && life->persistent ? home->lead : 0,
                 .life = life_index,
                 .begin = life->begin,
                 .end = life->end,
                 .is_view = home && !life->persistent && (life->end >= p->round || home->is_view),
                 .parts = parts,
                 .n_parts = n_parts};
    if (home && (home->is_outside || home->pages) && (!life->persistent || (home->is_outside && n_parts > 0))) {
        return NEAP_BAD_ARGUMENT;
    }
    if (home && home->is_outside) {
        return NEAP_OK;
    }
    if (!np_round_up(p->timeline->period->trace->blocks.items[life->block].bytes, p->problem.unit, &held.bytes)) {
        return NEAP_TOO_LARGE;
    }
    if (p->rods && p->rods[life_index].buffer != NP_NO_HOME) {
        np_placed placed = {.bytes = held.bytes, .life = life_index};
        return add_placed(p, &placed, &p->rods[life_index]);
    }
    if (!life->persistent && life->end - life->begin >= p->round) {
        return add_places(p, life, life_index, held.bytes);
    }
    if (n_parts > 0) {
        held.first_exec = p->timeline->uses.items[block->first_use].exec;
    }
    if (n_parts > 0 && life->persistent) { /* all round, from a use on */
        held.begin = event_of(p, held.first_exec);
        held.end = held.begin + p->round;
    }
    return add_stay(p, &held);
}

/* The parts of a block; *at moves on to the next one's. */
static uint32_t take_parts(const np_place_problem *p, uint32_t block, uint32_t *at)
{
    uint32_t first = *at;
    while (*at < p->n_parts && p->parts[*at].block == block) {
        (*at)++;
    }
    return *at - first;
}

/* Blocks of the timeline are in the order of the period's lives. */
static neap_status make_problem(np_place_problem *p)
{
    const np_timeline *timeline = p->timeline;
    uint32_t n_lives = p->options->held ? (uint32_t)timeline->period->lives.n : 0;
    uint32_t life = 0;
    uint32_t at = 0;
    neap_status status = NEAP_OK;
    for (uint32_t b = 0; b < timeline->blocks.n && status == NEAP_OK; b++) {
        const np_swap_block *block = &timeline->blocks.items[b];
        const np_absent_part *parts = &p->parts[at];
        uint32_t n_parts = take_parts(p, b, &at);
        while (p->options->held && life < block->life && status == NEAP_OK) {
            status = add_held(p, life++, NULL, NULL, 0);
        }
        if (status == NEAP_OK) {
            status = p->options->held ? add_held(p, life++, block, parts, n_parts) : add_used(p, block, parts, n_parts);
        }
    }
    while (life < n_lives && status == NEAP_OK) {
        status = add_held(p, life++, NULL, NULL, 0);
    }
    return status;
}

neap_status np_place_problem_make(const np_timeline *timeline, const np_simulator *simulator, const np_swap *swaps,
                                  uint32_t n_swaps, const np_place_options *options, np_place_problem *problem)
{
    const neap_memory *memory = timeline->memory;
    np_place_problem p = {.timeline = timeline, .options = options, .capacity = (size_t)n_swaps + 2};
    neap_status status;
    p.round = options->held ? timeline->period->length : timeline->n_execs;
    np_problem_init(&p.problem, memory, timeline->alignment, p.round);
    p.parts = np_memory_alloc(memory, p.capacity, sizeof *p.parts);
    p.cuts = np_memory_alloc(memory, 2 * p.capacity, sizeof *p.cuts);
    p.pieces = np_memory_alloc(memory, 2 * p.capacity, sizeof *p.pieces);
    status = p.parts && p.cuts && p.pieces ? NEAP_OK : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        collect_parts(&p, simulator, swaps, n_swaps);
        p.piece = choose_piece(&p);
        p.large = options->held && p.n_parts > 0 ? choose_large(&p) : UINT64_MAX;
        p.large_piece = choose_large_piece(&p);
        status = options->homes ? np_place_rods_add(&p) : NEAP_OK;
    }
    if (status == NEAP_OK) {
        status = make_problem(&p);
    }
    if (status != NEAP_OK) {
        np_place_problem_free(&p);
        return status;
    }
    *problem = p;
    return NEAP_OK;
}

void np_place_problem_free(np_place_problem *problem)
{
    const neap_memory *memory = problem->timeline->memory;
    np_problem_free(&problem->problem);
    np_array_free(memory, &problem->placed);
    np_array_free(memory, &problem->spots);
    if (problem->rods) {
        np_memory_free(memory, problem->rods, problem->timeline->period->lives.n, sizeof *problem->rods);
    }
    np_memory_free(memory, problem->parts, problem->capacity, sizeof *problem->parts);
    np_memory_free(memory, problem->cuts, 2 * problem->capacity, sizeof *problem->cuts);
    np_memory_free(memory, problem->pieces, 2 * problem->capacity, sizeof *problem->pieces);
}
