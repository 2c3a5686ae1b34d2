/* Greedy from several starts: the buffers that live at the highest moments in turn, or a large buffer, then the largest
 * of the others that meet all chosen so far. */
#include "pool/clique.h"

#include <stdlib.h>
#include <string.h>

enum { N_STARTS = 64, MAX_BUFFERS = 5000 };

/* Sets of buffers are bits, by rank: the largest is bit 0. */
typedef struct clique {
    const np_problem *problem;
    const uint32_t *by_size; /* rank -> buffer, largest first */
    size_t n_words;          /* of a set */
    uint64_t *meeting;       /* by rank: the set of those it meets */
    uint64_t *left;          /* those that meet all chosen so far */
} clique;

static bool meet(const np_problem *problem, uint32_t a, uint32_t b)
{
    const np_buffer *x = &problem->buffers.items[a];
    const np_buffer *y = &problem->buffers.items[b];
    const np_piece *p = &problem->pieces.items[x->first_piece];
    const np_piece *q = &problem->pieces.items[y->first_piece];
    const np_piece *p_end = p + x->n_pieces;
    const np_piece *q_end = q + y->n_pieces;
    while (p < p_end && q < q_end) {
        if (p->begin < q->end && q->begin < p->end) {
            return true;
        }
        if (p->end <= q->end) {
            p++;
        } else {
            q++;
        }
    }
    return false;
}

static void find_meeting(clique *c)
{
    size_t n = c->problem->buffers.n;
    for (size_t a = 0; a < n; a++) {
        for (size_t b = 0; b < a; b++) {
            if (meet(c->problem, c->by_size[a], c->by_size[b])) {
                c->meeting[a * c->n_words + b / 64] |= (uint64_t)1 << b % 64;
                c->meeting[b * c->n_words + a / 64] |= (uint64_t)1 << a % 64;
            }
        }
    }
}

/* The weight of a clique that begins with one buffer: always the largest of those left comes next. */
static uint64_t grow(clique *c, size_t start)
{
    uint64_t weight = c->problem->buffers.items[c->by_size[start]].size;
    memcpy(c->left, &c->meeting[start * c->n_words], c->n_words * sizeof *c->left);
    for (size_t word = 0; word < c->n_words; word++) {
        while (c->left[word] != 0) {
            size_t next = word * 64 + (size_t)__builtin_ctzll(c->left[word]);
            weight += c->problem->buffers.items[c->by_size[next]].size;
            for (size_t w = word; w < c->n_words; w++) { /* itself it does not meet */
                c->left[w] &= c->meeting[next * c->n_words + w];
            }
        }
    }
    return weight;
}

typedef struct sized {
    uint64_t size;
    uint32_t buffer;
} sized;

static int compare_sized(const void *left, const void *right)
{
    const sized *a = left;
    const sized *b = right;
    if (a->size != b->size) {
        return a->size > b->size ? -1 : 1;
    }
    return a->buffer < b->buffer ? -1 : a->buffer > b->buffer;
}

static uint64_t search(clique *c)
{
    uint64_t heaviest = 0;
    find_meeting(c);
    for (size_t start = 0; start < N_STARTS && start < c->problem->buffers.n; start++) {
        uint64_t weight = grow(c, start);
        heaviest = weight > heaviest ? weight : heaviest;
    }
    return heaviest;
}

static neap_status sort_by_size(const np_problem *problem, uint32_t *by_size)
{
    size_t n = problem->buffers.n;
    sized *sorted = np_memory_alloc(problem->memory, n, sizeof *sorted);
    if (!sorted) {
        return NEAP_NO_MEMORY;
    }
    for (uint32_t i = 0; i < n; i++) {
        sorted[i] = (sized){problem->buffers.items[i].size, i};
    }
    qsort(sorted, n, sizeof *sorted, compare_sized);
    for (size_t i = 0; i < n; i++) {
        by_size[i] = sorted[i].buffer;
    }
    np_memory_free(problem->memory, sorted, n, sizeof *sorted);
    return NEAP_OK;
}

neap_status np_clique_bound(const np_problem *problem, uint64_t *bound)
{
    const neap_memory *memory = problem->memory;
    size_t n = problem->buffers.n;
    clique c = {.problem = problem, .n_words = n / 64 + 1};
    uint32_t *by_size;
    uint64_t load;
    neap_status status = np_problem_load(problem, &load);
    if (status != NEAP_OK) {
        return status;
    }
    if (n > MAX_BUFFERS) { /* too many to compare */
        *bound = load;
        return NEAP_OK;
    }
    by_size = np_memory_alloc(memory, n, sizeof *by_size);
    c.meeting = np_memory_alloc_zero(memory, n * c.n_words, sizeof *c.meeting);
    c.left = np_memory_alloc(memory, c.n_words, sizeof *c.left);
    status = by_size && c.meeting && c.left ? sort_by_size(problem, by_size) : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        uint64_t weight;
        c.by_size = by_size;
        weight = search(&c);
        *bound = weight > load ? weight : load;
    }
    np_memory_free(memory, by_size, n, sizeof *by_size);
    np_memory_free(memory, c.meeting, n * c.n_words, sizeof *c.meeting);
    np_memory_free(memory, c.left, c.n_words, sizeof *c.left);
    return status;
}
