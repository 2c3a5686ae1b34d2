/* queue.h: entries of any size from one thread to another, in order.
 *
 * A ring of chunks: the writer fills one after the other, the reader empties them behind it. Where the ring is full, a
 * chunk is added to it: an entry never moves, and the reader never waits for the writer's memory. The ring stays as large
 * as it once had to be.
 *
 * It says nothing about how many entries there are. The writer tells the reader by a counter (counter.h), which also
 * makes the entries visible: the reader takes only what it was told of. */
#ifndef NP_DEVICE_QUEUE_H
#define NP_DEVICE_QUEUE_H

#include <stdatomic.h>

#include "base/memory.h"

#define NP_QUEUE_ENTRY_MAX 4096 /* bytes */

typedef struct np_chunk np_chunk;

typedef struct np_queue {
    const neap_memory *memory;
    np_chunk *written;        /* the chunk being filled */
    size_t n_written;         /* bytes of it */
    _Atomic(np_chunk *) read; /* the chunk being emptied */
    size_t n_read;            /* bytes of it; the reader's own */
} np_queue;

neap_status np_queue_init(np_queue *queue, const neap_memory *memory);
void np_queue_free(np_queue *queue); /* nobody reads any more */

/* The writer: room for an entry of `bytes`, at most NP_QUEUE_ENTRY_MAX, aligned for any type. It is to be filled before
 * the reader is told. */
neap_status np_queue_add(np_queue *queue, size_t bytes, void **entry);
void np_queue_end(np_queue *queue); /* the last entry; there is always room for it */

/* The reader: the next entry, valid until the one after it is taken; NULL: the end. */
void *np_queue_take(np_queue *queue);

bool np_queue_is_valid(const np_queue *queue); /* nobody else uses it meanwhile */

#endif
