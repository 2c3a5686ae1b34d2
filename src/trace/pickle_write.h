/* pickle_write.h: plain data as a Python pickle, protocol 2, put as it is told.
 *
 * Only opcodes that PyTorch's own viewer knows (it has a reader of its own, for fewer of them than Python's): no
 * protocol above 4, no integer beyond 64 bits, and lists in batches, since it hands each batch to one call.
 *
 *     np_pickle_put_begin(&w, NP_PICKLE_DICT);
 *     np_pickle_put_text(&w, "size", 4);
 *     np_pickle_put_uint(&w, 512);
 *     np_pickle_put_end(&w);
 *
 * The first failure ends the writing: nothing is put after it, and np_pickle_put_finish returns it. */
#ifndef NP_TRACE_PICKLE_WRITE_H
#define NP_TRACE_PICKLE_WRITE_H

#include "trace/pickle.h"
#include "trace/write.h"

#define NP_PICKLE_NO_MEMO UINT32_MAX
enum { NP_PICKLE_NEST_MAX = 16, NP_PICKLE_PAGE_BYTES = 64 << 10 };

typedef struct np_pickle_writer {
    np_sink *sink;
    void *user;
    neap_error *error;
    neap_status status; /* the first failure */
    uint32_t n_memo;    /* numbers given out */
    unsigned depth;
    np_pickle_kind kinds[NP_PICKLE_NEST_MAX]; /* what is open, */
    uint32_t n_items[NP_PICKLE_NEST_MAX];     /* and how many items its batch has */
    size_t n;                                 /* bytes in the page */
    unsigned char page[NP_PICKLE_PAGE_BYTES];
} np_pickle_writer;

void np_pickle_put_start(np_pickle_writer *w, np_sink *sink, void *user, neap_error *error);
neap_status np_pickle_put_finish(np_pickle_writer *w); /* everything must be closed, one value put */

void np_pickle_put_begin(np_pickle_writer *w, np_pickle_kind kind); /* a list or a dict */
void np_pickle_put_end(np_pickle_writer *w);

void np_pickle_put_uint(np_pickle_writer *w, uint64_t number); /* below 2^63 */
void np_pickle_put_bool(np_pickle_writer *w, bool truth);
void np_pickle_put_text(np_pickle_writer *w, const char *text, size_t n);           /* UTF-8 */
void np_pickle_put_uint_pair(np_pickle_writer *w, uint64_t first, uint64_t second); /* a tuple */

/* The value put last under a number, to be put again for a few bytes. A list or dict: right after its begin. */
uint32_t np_pickle_put_memo(np_pickle_writer *w);
void np_pickle_put_again(np_pickle_writer *w, uint32_t memo);

#endif
