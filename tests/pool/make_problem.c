#include "pool/make_problem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "testing.h"

enum { MAX_PIECES = 8, PACKED_MAX = 64 };

static uint32_t below(np_rng *rng, uint32_t n)
{
    return (uint32_t)np_rng_below(rng, n);
}

static int compare_times(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

/* A life across the circle's end. */
static uint32_t make_crossing(const problem_shape *shape, np_rng *rng, np_piece *pieces)
{
    uint32_t end = 1 + below(rng, shape->n_times / 2);
    uint32_t begin = end + 1 + below(rng, shape->n_times - end - 1);
    pieces[0] = (np_piece){0, end};
    pieces[1] = (np_piece){begin, shape->n_times};
    return 2;
}

/* Up to max_pieces pieces between random times; touching ones fall out as fewer. */
static uint32_t make_gapped(const problem_shape *shape, np_rng *rng, np_piece *pieces)
{
    uint32_t times[2 * MAX_PIECES];
    uint32_t n_wanted = 2 + below(rng, shape->max_pieces - 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < 2 * n_wanted; i++) {
        times[i] = below(rng, shape->n_times + 1);
    }
    qsort(times, 2 * (size_t)n_wanted, sizeof *times, compare_times);
    for (uint32_t i = 0; i < n_wanted; i++) {
        np_piece piece = {times[2 * i], times[2 * i + 1]};
        if (piece.begin < piece.end) {
            pieces[n++] = piece;
        }
    }
    return n;
}

static uint32_t make_pieces(const problem_shape *shape, np_rng *rng, np_piece *pieces)
{
    uint32_t longest = shape->longest && shape->longest < shape->n_times ? shape->longest : shape->n_times;
    uint32_t length = 1 + below(rng, longest);
    uint32_t n = 0;
    if (shape->max_pieces > 1 && shape->n_times > 3 && below(rng, 2)) {
        n = below(rng, 2) ? make_crossing(shape, rng, pieces) : make_gapped(shape, rng, pieces);
    }
    if (n == 0) {
        pieces[0].begin = below(rng, shape->n_times - length + 1);
        pieces[0].end = pieces[0].begin + length;
        n = 1;
    }
    return n;
}

/* Fixes buffers one by one, each where it is in no fixed one's way. */
static void fix_buffers(np_problem *problem, np_rng *rng, uint32_t n_fixed, uint32_t max_size)
{
    uint32_t n = (uint32_t)problem->buffers.n;
    for (uint32_t k = 0; k < 4 * n_fixed && n_fixed > 0; k++) {
        uint32_t i = below(rng, n);
        np_buffer *buffer = &problem->buffers.items[i];
        uint64_t offset = np_rng_below(rng, 3 * (uint64_t)max_size) / buffer->align * buffer->align + buffer->lead;
        bool is_free = buffer->fixed == NEAP_NO_OFFSET;
        for (uint32_t j = 0; j < n && is_free; j++) {
            const np_buffer *other = &problem->buffers.items[j];
            is_free = j == i || other->fixed == NEAP_NO_OFFSET || !buffers_meet(problem, i, j) ||
                      offset >= other->fixed + other->size || other->fixed >= offset + buffer->size;
        }
        if (is_free) {
            buffer->fixed = offset;
            n_fixed--;
        }
    }
}

void make_problem(const problem_shape *shape, np_rng *rng, const neap_memory *memory, np_problem *problem)
{
    uint64_t unit = shape->unit ? shape->unit : 1;
    np_problem_init(problem, memory, unit, shape->n_times);
    for (uint32_t i = 0; i < shape->n_buffers; i++) {
        np_piece pieces[MAX_PIECES];
        uint64_t size = 1 + np_rng_below(rng, shape->max_size);
        uint64_t align = 1;
        uint64_t lead;
        uint32_t n = make_pieces(shape, rng, pieces);
        if (i > 0 && i + shape->n_alike >= shape->n_buffers) {
            const np_buffer *like = &problem->buffers.items[below(rng, i)];
            n = like->n_pieces;
            for (uint32_t k = 0; k < n; k++) {
                pieces[k] = problem->pieces.items[like->first_piece + k];
            }
            size = like->size;
        }
        if (shape->max_align > 1 && below(rng, 2)) {
            align = 2 + below(rng, shape->max_align - 1);
        }
        lead = align > 1 && below(rng, 2) ? below(rng, (uint32_t)align) : 0;
        ASSERT_OK(np_problem_add_aligned(problem, size * unit, align * unit, lead * unit, NEAP_NO_OFFSET, pieces, n));
    }
    fix_buffers(problem, rng, shape->n_fixed, shape->max_size);
    ASSERT_TRUE(np_problem_is_valid(problem));
}

typedef struct box {
    np_piece pieces[MAX_PIECES];
    uint32_t n_pieces;
    uint64_t size;
} box;

/* Cuts a box into two, one upon the other, one after the other, or one in a gap of the other. False: it cannot. */
static bool cut(box *a, box *b, np_rng *rng, uint32_t max_pieces)
{
    uint32_t k = below(rng, a->n_pieces);
    np_piece piece = a->pieces[k];
    uint32_t length = piece.end - piece.begin;
    *b = *a;
    if (below(rng, 2)) {
        if (a->size < 2) {
            return false;
        }
        a->size = 1 + np_rng_below(rng, a->size - 1);
        b->size -= a->size;
        return true;
    }
    if (max_pieces > a->n_pieces && length > 2 && below(rng, 2)) {
        uint32_t begin = piece.begin + 1 + below(rng, length - 2);
        uint32_t end = begin + 1 + below(rng, piece.end - 1 - begin);
        for (uint32_t i = a->n_pieces++; i > k; i--) {
            a->pieces[i] = a->pieces[i - 1];
        }
        a->pieces[k].end = begin;
        a->pieces[k + 1].begin = end;
        b->pieces[0] = (np_piece){begin, end};
        b->n_pieces = 1;
        return true;
    }
    if (length < 2) {
        return false;
    }
    a->n_pieces = k + 1;
    a->pieces[k].end = piece.begin + 1 + below(rng, length - 1);
    b->n_pieces -= k;
    for (uint32_t i = 0; i < b->n_pieces; i++) {
        b->pieces[i] = b->pieces[i + k];
    }
    b->pieces[0].begin = a->pieces[k].end;
    return true;
}

void make_packed(const problem_shape *shape, uint64_t capacity, uint32_t n_shrunk, np_rng *rng, np_problem *problem)
{
    box boxes[PACKED_MAX] = {{{{0, shape->n_times}}, 1, capacity}};
    uint32_t max_pieces = shape->max_pieces < MAX_PIECES ? shape->max_pieces : MAX_PIECES;
    uint32_t n = 1;
    ASSERT_LE(shape->n_buffers, PACKED_MAX);
    for (uint32_t tries = 0; n < shape->n_buffers && tries < 100 * shape->n_buffers; tries++) {
        box *a = &boxes[below(rng, n)];
        box whole = *a;
        if (cut(a, &boxes[n], rng, max_pieces)) {
            n++;
        } else {
            *a = whole;
        }
    }
    for (uint32_t i = 0; i < n_shrunk; i++) {
        box *a = &boxes[below(rng, n)];
        a->size -= a->size > 1;
    }
    for (uint32_t i = n - 1; i > 0; i--) { /* shuffled: their order must not tell */
        uint32_t k = below(rng, i + 1);
        box other = boxes[k];
        boxes[k] = boxes[i];
        boxes[i] = other;
    }
    np_problem_init(problem, NULL, 1, shape->n_times);
    for (uint32_t i = 0; i < n; i++) {
        ASSERT_OK(np_problem_add(problem, boxes[i].size, NEAP_NO_OFFSET, boxes[i].pieces, boxes[i].n_pieces));
    }
}

problem_shape random_shape(np_rng *rng, uint32_t max_buffers)
{
    problem_shape shape = {.n_buffers = 2 + below(rng, max_buffers - 1), .n_times = 4 + below(rng, 3 * max_buffers)};
    shape.max_size = 1 + below(rng, 9);
    shape.longest = below(rng, 2) ? 0 : 1 + shape.n_times / 3;
    shape.max_pieces = 1 + below(rng, 4);
    shape.n_fixed = below(rng, 4) ? 0 : 1 + below(rng, 3);
    shape.n_alike = below(rng, 3) ? 0 : below(rng, shape.n_buffers);
    return shape;
}

bool buffers_meet(const np_problem *problem, uint32_t a, uint32_t b)
{
    const np_buffer *one = &problem->buffers.items[a];
    const np_buffer *two = &problem->buffers.items[b];
    for (uint32_t i = 0; i < one->n_pieces; i++) {
        for (uint32_t k = 0; k < two->n_pieces; k++) {
            np_piece p = problem->pieces.items[one->first_piece + i];
            np_piece q = problem->pieces.items[two->first_piece + k];
            if (p.begin < q.end && q.begin < p.end) {
                return true;
            }
        }
    }
    return false;
}

bool placement_is_right(const np_problem *problem, const uint64_t *offsets, uint64_t *height)
{
    *height = 0;
    for (uint32_t i = 0; i < problem->buffers.n; i++) {
        const np_buffer *one = &problem->buffers.items[i];
        if (one->fixed != NEAP_NO_OFFSET && one->fixed != offsets[i]) {
            return false;
        }
        if (offsets[i] % one->align != one->lead) {
            return false;
        }
        *height = offsets[i] + one->size > *height ? offsets[i] + one->size : *height;
        for (uint32_t k = 0; k < i; k++) {
            const np_buffer *two = &problem->buffers.items[k];
            if (offsets[i] < offsets[k] + two->size && offsets[k] < offsets[i] + one->size &&
                buffers_meet(problem, i, k)) {
                return false;
            }
        }
    }
    return true;
}

uint64_t load_by_hand(const np_problem *problem)
{
    uint64_t peak = 0;
    for (uint32_t t = 0; t < problem->n_times; t++) {
        uint64_t now = 0;
        for (size_t i = 0; i < problem->buffers.n; i++) {
            const np_buffer *buffer = &problem->buffers.items[i];
            for (uint32_t k = 0; k < buffer->n_pieces; k++) {
                np_piece piece = problem->pieces.items[buffer->first_piece + k];
                now += piece.begin <= t && t < piece.end ? buffer->size : 0;
            }
        }
        peak = now > peak ? now : peak;
    }
    return peak;
}

void print_problem(const np_problem *problem)
{
    (void)fprintf(stderr, "%zu buffers, %u times\n", problem->buffers.n, problem->n_times);
    for (uint32_t i = 0; i < problem->buffers.n; i++) {
        const np_buffer *buffer = &problem->buffers.items[i];
        (void)fprintf(stderr, "  %u: size %" PRIu64 ",", i, buffer->size);
        for (uint32_t k = 0; k < buffer->n_pieces; k++) {
            np_piece piece = problem->pieces.items[buffer->first_piece + k];
            (void)fprintf(stderr, " [%u, %u)", piece.begin, piece.end);
        }
        if (buffer->align > 1) {
            (void)fprintf(stderr, ", at multiples of %" PRIu64 " and %" PRIu64, buffer->align, buffer->lead);
        }
        if (buffer->fixed != NEAP_NO_OFFSET) {
            (void)fprintf(stderr, ", fixed at %" PRIu64, buffer->fixed);
        }
        (void)fprintf(stderr, "\n");
    }
}
