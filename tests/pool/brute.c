#include "pool/brute.h"

#include "pool/make_problem.h"
#include "testing.h"

typedef struct brute {
    uint32_t n;
    uint64_t size[BRUTE_MAX];
    uint64_t align[BRUTE_MAX];
    uint64_t lead[BRUTE_MAX];
    uint64_t base; /* multiples count from so far below 0 */
    uint64_t offset[BRUTE_MAX];
    bool placed[BRUTE_MAX]; /* the fixed ones from the start */
    bool meets[BRUTE_MAX][BRUTE_MAX];
    uint64_t best;
    uint64_t enough; /* a height that cannot be beaten */
} brute;

static uint64_t lowest_free(const brute *b, uint32_t item)
{
    uint64_t at = 0;
    bool moved = true;
    while (moved) {
        moved = false;
        while ((at + b->base) % b->align[item] != b->lead[item]) {
            at++;
        }
        for (uint32_t i = 0; i < b->n; i++) {
            if (b->placed[i] && b->meets[item][i] && at < b->offset[i] + b->size[i] &&
                b->offset[i] < at + b->size[item]) {
                at = b->offset[i] + b->size[i];
                moved = true;
            }
        }
    }
    return at;
}

/* Puts the rest, none lower than `floor`; `height` is that of what stands. */
static void put_rest(brute *b, uint32_t n_left, uint64_t floor, uint64_t height)
{
    if (n_left == 0) {
        b->best = height;
        return;
    }
    for (uint32_t i = 0; i < b->n && b->best > b->enough; i++) {
        uint64_t at;
        uint64_t end;
        if (b->placed[i]) {
            continue;
        }
        at = lowest_free(b, i);
        end = at + b->size[i] > height ? at + b->size[i] : height;
        if (at < floor || end >= b->best) {
            continue;
        }
        b->placed[i] = true;
        b->offset[i] = at;
        put_rest(b, n_left - 1, at, end);
        b->placed[i] = false;
    }
}

/* Begins with the fixed ones; `enough` is known. */
static uint64_t put_all(brute *b)
{
    uint64_t height = 0;
    uint32_t n_left = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        n_left += !b->placed[i];
        if (b->placed[i] && b->offset[i] + b->size[i] > height) {
            height = b->offset[i] + b->size[i];
        }
    }
    b->best = UINT64_MAX;
    b->enough = b->enough > height ? b->enough : height;
    put_rest(b, n_left, 0, height);
    return b->best;
}

uint64_t brute_optimum(const np_problem *problem)
{
    brute b = {.n = (uint32_t)problem->buffers.n, .enough = load_by_hand(problem)};
    ASSERT_LE(problem->buffers.n, BRUTE_MAX);
    for (uint32_t i = 0; i < b.n; i++) {
        const np_buffer *buffer = &problem->buffers.items[i];
        b.size[i] = buffer->size;
        b.align[i] = buffer->align;
        b.lead[i] = buffer->lead;
        b.placed[i] = buffer->fixed != NEAP_NO_OFFSET;
        b.offset[i] = b.placed[i] ? buffer->fixed : 0;
        for (uint32_t k = 0; k < b.n; k++) {
            b.meets[i][k] = i != k && buffers_meet(problem, i, k);
        }
    }
    return put_all(&b);
}

static bool items_meet(const np_sections *sections, const np_item *a, const np_item *b)
{
    for (uint32_t i = 0; i < a->n_ranges; i++) {
        for (uint32_t k = 0; k < b->n_ranges; k++) {
            np_range p = sections->ranges.items[a->first_range + i];
            np_range q = sections->ranges.items[b->first_range + k];
            if (p.begin < q.end && q.begin < p.end) {
                return true;
            }
        }
    }
    return false;
}

uint64_t brute_part_optimum(const np_sections *sections, const np_part *part)
{
    const np_item *items = &sections->items.items[part->first_item];
    brute b = {.n = part->n_items, .enough = part->load, .base = sections->base};
    ASSERT_LE(part->n_items, BRUTE_MAX);
    for (uint32_t i = 0; i < b.n; i++) {
        b.size[i] = items[i].size;
        b.align[i] = items[i].align;
        b.lead[i] = items[i].lead;
        b.placed[i] = items[i].fixed != NEAP_NO_OFFSET;
        b.offset[i] = b.placed[i] ? items[i].fixed : 0;
        for (uint32_t k = 0; k < b.n; k++) {
            b.meets[i][k] = i != k && items_meet(sections, &items[i], &items[k]);
        }
    }
    return put_all(&b);
}
