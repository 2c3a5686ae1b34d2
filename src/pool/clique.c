/* Greedy from several starts: the buffers that live at the highest moments in turn, or a large buffer, then the largest
 * of the others that meet all chosen so far. */
#include "pool/clique.h"

#include <stdlib.h>

enum { N_STARTS = 64, MAX_BUFFERS = 5000 };

typedef struct clique {
    const np_problem *problem;
    const uint32_t *by_size; /* largest first */
    uint32_t *members;
    uint32_t n_members;
    uint64_t weight;
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

static bool meets_all(const clique *c, uint32_t buffer)
{
    for (uint32_t i = 0; i < c->n_members; i++) {
        if (c->members[i] == buffer || !meet(c->problem, c->members[i], buffer)) {
            return false;
        }
    }
    return true;
}

static void add(clique *c, uint32_t buffer)
{
    c->members[c->n_members++] = buffer;
    c->weight += c->problem->buffers.items[buffer].size;
}

static void grow(clique *c)
{
    for (size_t i = 0; i < c->problem->buffers.n; i++) {
        if (meets_all(c, c->by_size[i])) {
            add(c, c->by_size[i]);
        }
    }
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
    for (size_t start = 0; start < N_STARTS && start < c->problem->buffers.n; start++) {
        c->n_members = 0;
        c->weight = 0;
        add(c, c->by_size[start]);
        grow(c);
        heaviest = c->weight > heaviest ? c->weight : heaviest;
    }
    return heaviest;
}

neap_status np_clique_bound(const np_problem *problem, uint64_t *bound)
{
    const neap_memory *memory = problem->memory;
    size_t n = problem->buffers.n;
    sized *sorted;
    uint32_t *by_size;
    uint32_t *members;
    uint64_t load;
    neap_status status = np_problem_load(problem, &load);
    if (status != NEAP_OK) {
        return status;
    }
    if (n > MAX_BUFFERS) { /* too many to compare */
        *bound = load;
        return NEAP_OK;
    }
    sorted = np_memory_alloc(memory, n, sizeof *sorted);
    by_size = np_memory_alloc(memory, n, sizeof *by_size);
    members = np_memory_alloc(memory, n, sizeof *members);
    status = sorted && by_size && members ? NEAP_OK : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        clique c = {.problem = problem, .by_size = by_size, .members = members};
        uint64_t weight;
        for (uint32_t i = 0; i < n; i++) {
            sorted[i] = (sized){problem->buffers.items[i].size, i};
        }
        qsort(sorted, n, sizeof *sorted, compare_sized);
        for (size_t i = 0; i < n; i++) {
            by_size[i] = sorted[i].buffer;
        }
        weight = search(&c);
        *bound = weight > load ? weight : load;
    }
    np_memory_free(memory, sorted, n, sizeof *sorted);
    np_memory_free(memory, by_size, n, sizeof *by_size);
    np_memory_free(memory, members, n, sizeof *members);
    return status;
}
