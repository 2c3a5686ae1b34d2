/* pickle_write.c: plain data as a Python pickle, protocol 2. Bytes are collected in a page and handed to a sink. */
#include "trace/pickle_write.h"

#include <assert.h>
#include <string.h>

#define BATCH 1000 /* items of a list or dict at a time, as Python's own pickler has them */

static void flush(np_pickle_writer *w)
{
    if (w->status == NEAP_OK && w->n) {
        w->status = w->sink(w->user, w->page, w->n, w->error);
    }
    w->n = 0;
}

static void put(np_pickle_writer *w, const void *bytes, size_t n)
{
    const unsigned char *from = bytes;
    while (n) {
        size_t room = sizeof w->page - w->n;
        size_t part = n < room ? n : room;
        memcpy(w->page + w->n, from, part);
        w->n += part;
        from += part;
        n -= part;
        if (w->n == sizeof w->page) {
            flush(w);
        }
    }
}

/* An opcode and a number of n bytes, the lowest first. */
static void put_op(np_pickle_writer *w, unsigned char op, uint64_t number, size_t n)
{
    unsigned char bytes[9] = {op};
    for (size_t i = 0; i < n; i++) {
        bytes[i + 1] = (unsigned char)(number >> (8 * i));
    }
    put(w, bytes, n + 1);
}

void np_pickle_put_start(np_pickle_writer *w, np_sink *sink, void *user, neap_error *error)
{
    w->sink = sink;
    w->user = user;
    w->error = error;
    w->status = NEAP_OK;
    w->n_memo = 0;
    w->depth = 0;
    w->n = 0;
    put(w, "\x80\x02", 2);
}

neap_status np_pickle_put_finish(np_pickle_writer *w)
{
    assert(w->depth == 0);
    put(w, ".", 1);
    flush(w);
    return w->status;
}

/* ---------------------------------------------------------------- lists and dicts ---- */

static void close_batch(np_pickle_writer *w)
{
    put(w, w->kinds[w->depth - 1] == NP_PICKLE_LIST ? "e" : "u", 1);
}

/* A value is about to be put. Dicts are small: only lists are broken into batches. */
static void count_item(np_pickle_writer *w)
{
    if (w->depth == 0) {
        return;
    }
    if (w->n_items[w->depth - 1] == 0) {
        put(w, "(", 1);
    } else if (w->n_items[w->depth - 1] % BATCH == 0 && w->kinds[w->depth - 1] == NP_PICKLE_LIST) {
        close_batch(w);
        put(w, "(", 1);
    }
    w->n_items[w->depth - 1]++;
}

void np_pickle_put_begin(np_pickle_writer *w, np_pickle_kind kind)
{
    assert(w->depth < NP_PICKLE_NEST_MAX && (kind == NP_PICKLE_LIST || kind == NP_PICKLE_DICT));
    count_item(w);
    put(w, kind == NP_PICKLE_LIST ? "]" : "}", 1);
    w->kinds[w->depth] = kind;
    w->n_items[w->depth] = 0;
    w->depth++;
}

void np_pickle_put_end(np_pickle_writer *w)
{
    assert(w->depth > 0);
    if (w->n_items[w->depth - 1]) {
        close_batch(w);
    }
    w->depth--;
}

/* ---------------------------------------------------------------- single values ---- */

static void put_integer(np_pickle_writer *w, uint64_t number)
{
    size_t n = 1;
    assert(number <= INT64_MAX);
    if (number <= UINT8_MAX) {
        put_op(w, 'K', number, 1);
    } else if (number <= UINT16_MAX) {
        put_op(w, 'M', number, 2);
    } else if (number <= INT32_MAX) {
        put_op(w, 'J', number, 4);
    } else {
        while (number >> (8 * n - 1)) { /* room for the sign */
            n++;
        }
        put_op(w, 0x8a, n, 1);
        for (size_t i = 0; i < n; i++) {
            unsigned char byte = (unsigned char)(number >> (8 * i));
            put(w, &byte, 1);
        }
    }
}

void np_pickle_put_uint(np_pickle_writer *w, uint64_t number)
{
    count_item(w);
    put_integer(w, number);
}

void np_pickle_put_bool(np_pickle_writer *w, bool truth)
{
    count_item(w);
    put(w, truth ? "\x88" : "\x89", 1);
}

void np_pickle_put_text(np_pickle_writer *w, const char *text, size_t n)
{
    assert(n <= UINT32_MAX);
    count_item(w);
    put_op(w, 'X', n, 4);
    put(w, text, n);
}

void np_pickle_put_uint_pair(np_pickle_writer *w, uint64_t first, uint64_t second)
{
    count_item(w);
    put_integer(w, first);
    put_integer(w, second);
    put(w, "\x86", 1);
}

/* ---------------------------------------------------------------- the memo ---- */

uint32_t np_pickle_put_memo(np_pickle_writer *w)
{
    put_op(w, w->n_memo <= UINT8_MAX ? 'q' : 'r', w->n_memo, w->n_memo <= UINT8_MAX ? 1 : 4);
    return w->n_memo++;
}

void np_pickle_put_again(np_pickle_writer *w, uint32_t memo)
{
    assert(memo < w->n_memo);
    count_item(w);
    put_op(w, memo <= UINT8_MAX ? 'h' : 'j', memo, memo <= UINT8_MAX ? 1 : 4);
}
