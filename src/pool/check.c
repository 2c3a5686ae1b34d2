/* A sweep over time. A treap holds the buffers that live now, sorted by offset; a buffer that begins must end by the
 * start of its upper neighbour and begin at or after the end of its lower one. Frees come before mallocs of the same
 * time, since lifetimes are half-open. */
#include "pool/check.h"

#include <stdlib.h>

#define NONE UINT32_MAX

typedef struct change {
    uint32_t time;
    uint32_t buffer;
    bool begins;
} change;

typedef struct tree {
    const uint64_t *offsets;
    uint32_t *left; /* by buffer */
    uint32_t *right;
    uint32_t root;
} tree;

/* Heap order by a scrambled number, so that the tree stays shallow. */
static uint32_t priority(uint32_t buffer)
{
    uint32_t x = buffer * 2654435761u;
    x ^= x >> 15;
    return x * 2246822519u;
}

static bool comes_before(const tree *t, uint32_t a, uint32_t b)
{
    return t->offsets[a] != t->offsets[b] ? t->offsets[a] < t->offsets[b] : a < b;
}

/* Everything before `buffer` goes to *low, the rest to *high. */
static void split(tree *t, uint32_t node, uint32_t buffer, uint32_t *low, uint32_t *high)
{
    while (node != NONE) {
        if (comes_before(t, node, buffer)) {
            *low = node;
            low = &t->right[node];
            node = *low;
        } else {
            *high = node;
            high = &t->left[node];
            node = *high;
        }
    }
    *low = NONE;
    *high = NONE;
}

static void insert(tree *t, uint32_t buffer)
{
    uint32_t *link = &t->root;
    while (*link != NONE && priority(*link) >= priority(buffer)) {
        link = comes_before(t, *link, buffer) ? &t->right[*link] : &t->left[*link];
    }
    split(t, *link, buffer, &t->left[buffer], &t->right[buffer]);
    *link = buffer;
}

static void erase(tree *t, uint32_t buffer)
{
    uint32_t *link = &t->root;
    uint32_t low = t->left[buffer];
    uint32_t high = t->right[buffer];
    while (*link != buffer) {
        link = comes_before(t, *link, buffer) ? &t->right[*link] : &t->left[*link];
    }
    while (low != NONE && high != NONE) { /* join the two subtrees */
        if (priority(low) >= priority(high)) {
            *link = low;
            link = &t->right[low];
            low = *link;
        } else {
            *link = high;
            link = &t->left[high];
            high = *link;
        }
    }
    *link = low != NONE ? low : high;
}

/* The neighbours of a buffer that is not in the tree; NONE where there is none. */
static void neighbours(const tree *t, uint32_t buffer, uint32_t *below, uint32_t *above)
{
    uint32_t node = t->root;
    *below = NONE;
    *above = NONE;
    while (node != NONE) {
        if (comes_before(t, node, buffer)) {
            *below = node;
            node = t->right[node];
        } else {
            *above = node;
            node = t->left[node];
        }
    }
}

static int compare_changes(const void *left, const void *right)
{
    const change *a = left;
    const change *b = right;
    if (a->time != b->time) {
        return a->time < b->time ? -1 : 1;
    }
    if (a->begins != b->begins) {
        return a->begins ? 1 : -1;
    }
    return a->buffer < b->buffer ? -1 : a->buffer > b->buffer;
}

static bool check_places(const np_problem *problem, const uint64_t *offsets, uint64_t height, np_check_result *result)
{
    for (uint32_t i = 0; i < problem->buffers.n; i++) {
        const np_buffer *buffer = &problem->buffers.items[i];
        if (buffer->fixed != NEAP_NO_OFFSET && buffer->fixed != offsets[i]) {
            *result = (np_check_result){.verdict = NP_CHECK_FIXED, .buffer = i};
            return false;
        }
        if (offsets[i] % buffer->align != buffer->lead) {
            *result = (np_check_result){.verdict = NP_CHECK_ALIGN, .buffer = i};
            return false;
        }
        if (offsets[i] > height || buffer->size > height - offsets[i]) {
            *result = (np_check_result){.verdict = NP_CHECK_TOO_HIGH, .buffer = i};
            return false;
        }
    }
    return true;
}

static void check_times(const np_problem *problem, tree *t, const change *changes, size_t n, np_check_result *result)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t buffer = changes[i].buffer;
        uint32_t below;
        uint32_t above;
        uint32_t other = NONE;
        if (!changes[i].begins) {
            erase(t, buffer);
            continue;
        }
        neighbours(t, buffer, &below, &above);
        if (below != NONE && t->offsets[below] + problem->buffers.items[below].size > t->offsets[buffer]) {
            other = below;
        } else if (above != NONE && t->offsets[buffer] + problem->buffers.items[buffer].size > t->offsets[above]) {
            other = above;
        }
        if (other != NONE) {
            *result = (np_check_result){NP_CHECK_OVERLAP, buffer, other, changes[i].time};
            return;
        }
        insert(t, buffer);
    }
}

neap_status np_check(const np_problem *problem, const uint64_t *offsets, uint64_t height, np_check_result *result)
{
    const neap_memory *memory = problem->memory;
    size_t n = problem->buffers.n;
    size_t n_changes = 2 * problem->pieces.n;
    tree t = {.offsets = offsets, .root = NONE};
    change *changes;
    neap_status status = NEAP_OK;

    *result = (np_check_result){.verdict = NP_CHECK_RIGHT};
    if (!check_places(problem, offsets, height, result)) {
        return NEAP_OK;
    }
    changes = np_memory_alloc(memory, n_changes, sizeof *changes);
    t.left = np_memory_alloc(memory, n, sizeof *t.left);
    t.right = np_memory_alloc(memory, n, sizeof *t.right);
    if (!changes || !t.left || !t.right) {
        status = NEAP_NO_MEMORY;
    } else {
        size_t at = 0;
        for (uint32_t i = 0; i < n; i++) {
            const np_buffer *buffer = &problem->buffers.items[i];
            for (uint32_t k = 0; k < buffer->n_pieces; k++) {
                const np_piece *piece = &problem->pieces.items[buffer->first_piece + k];
                changes[at++] = (change){piece->begin, i, true};
                changes[at++] = (change){piece->end, i, false};
            }
        }
        qsort(changes, n_changes, sizeof *changes, compare_changes);
        check_times(problem, &t, changes, n_changes, result);
    }
    np_memory_free(memory, changes, n_changes, sizeof *changes);
    np_memory_free(memory, t.left, n, sizeof *t.left);
    np_memory_free(memory, t.right, n, sizeof *t.right);
    return status;
}
