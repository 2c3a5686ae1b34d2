/* fill.c: memsets, copies of rectangles, and calls of a driver to come. */
#include <stdlib.h>
#include <string.h>

#include "standin/standin_state.h"

static char *pointer(np_cu_address address)
{
    return (char *)(uintptr_t)address;
}

static np_cu_result give_fill(np_cu_address to, uint32_t pattern, unsigned pattern_bytes, size_t n, np_cu_stream on,
                              const char *symbol)
{
    stream *s = stream_of(on, symbol);
    item *work;
    if (n == 0) {
        return NP_CU_SUCCESS;
    }
    check_device(pointer(to), n * pattern_bytes, symbol);
    work = item_make(ITEM_FILL, 0);
    work->to = pointer(to);
    work->bytes = n * pattern_bytes;
    work->pattern = pattern;
    work->pattern_bytes = pattern_bytes;
    return stream_give(s, work);
}

np_cu_result cuMemsetD8Async(np_cu_address to, unsigned char value, size_t n, np_cu_stream on)
{
    BEGIN(NEEDS_CONTEXT, to, value, n, on);
    return end(give_fill(to, value, 1, n, on, __func__));
}

np_cu_result cuMemsetD8_v2(np_cu_address to, unsigned char value, size_t n)
{
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE, to, value, n);
    return end(give_fill(to, value, 1, n, NULL, __func__));
}

np_cu_result cuMemsetD16Async(np_cu_address to, unsigned short value, size_t n, np_cu_stream on)
{
    BEGIN(NEEDS_CONTEXT, to, value, n, on);
    return end(give_fill(to, value, 2, n, on, __func__));
}

np_cu_result cuMemsetD16_v2(np_cu_address to, unsigned short value, size_t n)
{
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE, to, value, n);
    return end(give_fill(to, value, 2, n, NULL, __func__));
}

np_cu_result cuMemsetD32Async(np_cu_address to, unsigned int value, size_t n, np_cu_stream on)
{
    BEGIN(NEEDS_CONTEXT, to, value, n, on);
    return end(give_fill(to, value, 4, n, on, __func__));
}

np_cu_result cuMemsetD32_v2(np_cu_address to, unsigned int value, size_t n)
{
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE, to, value, n);
    return end(give_fill(to, value, 4, n, NULL, __func__));
}

/* ---- rectangles ---- */

enum { FROM_HOST = 1, FROM_DEVICE = 2 }; /* CUmemorytype */

typedef struct place { /* CUDA_MEMCPY2D: one side */
    size_t x;          /* bytes */
    size_t y;
    int type;
    void *host;
    np_cu_address device;
    void *array;
    size_t pitch;
} place;

typedef struct rectangle {
    place from;
    place to;
    size_t width; /* bytes */
    size_t height;
} rectangle;

typedef struct rectangle_copy {
    char *to;
    const char *from;
    size_t to_pitch;
    size_t from_pitch;
    size_t width;
    size_t height;
} rectangle_copy;

static void run_rectangle(void *data)
{
    const rectangle_copy *c = data;
    for (size_t row = 0; row < c->height; row++) {
        memmove(c->to + row * c->to_pitch, c->from + row * c->from_pitch, c->width);
    }
}

static char *corner_of(const place *p, size_t width, size_t height, const char *symbol)
{
    char *base = p->type == FROM_DEVICE ? pointer(p->device) : p->host;
    char *corner = base + p->y * p->pitch + p->x;
    if (p->type == FROM_DEVICE) {
        check_device(corner, (height - 1) * p->pitch + width, symbol);
    } else if (p->type == FROM_HOST) {
        check_host(corner, symbol);
    } else {
        misuse("%s: a kind of memory that is not known here: %d", symbol, p->type);
    }
    return corner;
}

static np_cu_result give_rectangle(const rectangle *r, np_cu_stream on, bool waits, const char *symbol)
{
    stream *s = stream_of(on, symbol);
    rectangle_copy c = {.to_pitch = r->to.pitch, .from_pitch = r->from.pitch, .width = r->width, .height = r->height};
    np_cu_result result;
    item *work;
    if (r->width == 0 || r->height == 0) {
        return NP_CU_SUCCESS;
    }
    if (r->width > r->to.pitch || r->width > r->from.pitch) {
        return NP_CU_INVALID_VALUE;
    }
    c.to = corner_of(&r->to, r->width, r->height, symbol);
    c.from = corner_of(&r->from, r->width, r->height, symbol);
    work = item_make(ITEM_CALL, sizeof c);
    work->run = run_rectangle;
    memcpy(work->data, &c, sizeof c);
    result = stream_give(s, work);
    if (result == NP_CU_SUCCESS && !s->capture && (waits || r->to.type == FROM_HOST || r->from.type == FROM_HOST)) {
        stream_drain(s);
    }
    return result;
}

np_cu_result cuMemcpy2DAsync_v2(const rectangle *copied, np_cu_stream on)
{
    BEGIN(NEEDS_CONTEXT, copied, on);
    return end(give_rectangle(copied, on, false, __func__));
}

np_cu_result cuMemcpy2D_v2(const rectangle *copied)
{
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE, copied);
    return end(give_rectangle(copied, NULL, true, __func__));
}

/* ---- a driver to come ---- */

typedef struct gathering {
    char *to;
    size_t n;
    size_t bytes;
    const char *from[];
} gathering;

static void run_gathering(void *data)
{
    const gathering *g = data;
    for (size_t i = 0; i < g->n; i++) {
        memcpy(g->to + i * g->bytes, g->from[i], g->bytes);
    }
}

static np_cu_result gather(np_cu_address to, const np_cu_address *from, size_t n, size_t bytes, np_cu_stream on,
                           const char *symbol)
{
    gathering *g;
    item *work = item_make(ITEM_CALL, sizeof *g + n * sizeof *g->from);
    g = (gathering *)(void *)work->data;
    g->to = pointer(to);
    g->n = n;
    g->bytes = bytes;
    for (size_t i = 0; i < n; i++) {
        g->from[i] = pointer(from[i]);
    }
    work->run = run_gathering;
    return stream_give(stream_of(on, symbol), work);
}

/* No driver has them: nobody can know what they use, though the first one's name tells something. They copy pieces,
 * whose addresses lie in host memory, one after the other. */
np_cu_result cuMemcpyFutureAsync(np_cu_address to, const np_cu_address *from, size_t n, size_t bytes, np_cu_stream on)
{
    BEGIN(NEEDS_CONTEXT, to, from, n, bytes, on);
    return end(gather(to, from, n, bytes, on, __func__));
}

np_cu_result cuFutureGatherAsync(np_cu_address to, const np_cu_address *from, size_t n, size_t bytes, np_cu_stream on)
{
    BEGIN(NEEDS_CONTEXT, to, from, n, bytes, on);
    return end(gather(to, from, n, bytes, on, __func__));
}
