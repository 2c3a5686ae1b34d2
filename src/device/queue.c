#include "device/queue.h"

#include <stdalign.h>

enum {
    CHUNK_BYTES = 16384,
    CHUNKS_MAX = 1 << 30, /* more is a circle that does not close */
};

/* Before every entry, and after the last one of a chunk. */
typedef struct header {
    alignas(max_align_t) size_t bytes; /* of the entry with its header; or: */
} header;

#define GO_ON 0u      /* in the next chunk */
#define ENDS SIZE_MAX /* nothing follows */

struct np_chunk {
    np_chunk *next; /* in the ring; the writer's, and the reader's once a header says GO_ON */
    alignas(max_align_t) unsigned char bytes[CHUNK_BYTES];
};

static header *header_at(np_chunk *chunk, size_t at)
{
    return (header *)(void *)&chunk->bytes[at];
}

neap_status np_queue_init(np_queue *queue, const neap_memory *memory)
{
    np_chunk *first = np_memory_alloc(memory, 1, sizeof *first);
    if (!first) {
        return NEAP_NO_MEMORY;
    }
    first->next = first;
    *queue = (np_queue){.memory = memory, .written = first};
    atomic_init(&queue->read, first);
    return NEAP_OK;
}

void np_queue_free(np_queue *queue)
{
    np_chunk *first = queue->written;
    np_chunk *chunk = first ? first->next : NULL;
    while (chunk && chunk != first) {
        np_chunk *next = chunk->next;
        np_memory_free(queue->memory, chunk, 1, sizeof *chunk);
        chunk = next;
    }
    np_memory_free(queue->memory, first, 1, sizeof *first);
    queue->written = NULL;
}

/* Moves on to a chunk that the reader has left, or adds one to the ring. */
static neap_status next_chunk(np_queue *queue)
{
    np_chunk *full = queue->written;
    np_chunk *next = full->next;
    if (next == atomic_load_explicit(&queue->read, memory_order_acquire)) {
        np_chunk *added = np_memory_alloc(queue->memory, 1, sizeof *added);
        if (!added) {
            return NEAP_NO_MEMORY;
        }
        added->next = next;
        full->next = added;
    }
    header_at(full, queue->n_written)->bytes = GO_ON;
    queue->written = full->next;
    queue->n_written = 0;
    return NEAP_OK;
}

neap_status np_queue_add(np_queue *queue, size_t bytes, void **entry)
{
    size_t with_header = (sizeof(header) + bytes + sizeof(header) - 1) / sizeof(header) * sizeof(header);
    header *at;
    if (bytes > NP_QUEUE_ENTRY_MAX) {
        return NEAP_BAD_ARGUMENT;
    }
    if (queue->n_written + with_header > CHUNK_BYTES - sizeof(header)) { /* one more header must fit behind it */
        neap_status status = next_chunk(queue);
        if (status != NEAP_OK) {
            return status;
        }
    }
    at = header_at(queue->written, queue->n_written);
    at->bytes = with_header;
    queue->n_written += with_header;
    *entry = at + 1;
    return NEAP_OK;
}

void np_queue_end(np_queue *queue)
{
    header_at(queue->written, queue->n_written)->bytes = ENDS;
}

void *np_queue_take(np_queue *queue)
{
    np_chunk *chunk = atomic_load_explicit(&queue->read, memory_order_relaxed); /* the reader alone changes it */
    header *at = header_at(chunk, queue->n_read);
    if (at->bytes == GO_ON) {
        chunk = chunk->next;
        atomic_store_explicit(&queue->read, chunk, memory_order_release); /* the writer may have the old one */
        queue->n_read = 0;
        at = header_at(chunk, 0);
    }
    if (at->bytes == ENDS) {
        return NULL;
    }
    queue->n_read += at->bytes;
    return at + 1;
}

bool np_queue_is_valid(const np_queue *queue)
{
    const np_chunk *read = atomic_load(&queue->read);
    const np_chunk *chunk = queue->written;
    bool has_read = false;
    size_t n = 0;
    do {
        has_read = has_read || chunk == read;
        chunk = chunk->next;
    } while (chunk && chunk != queue->written && ++n < CHUNKS_MAX);
    return chunk == queue->written && has_read && queue->n_written <= CHUNK_BYTES - sizeof(header) &&
           queue->n_read <= CHUNK_BYTES - sizeof(header) &&
           (read != queue->written || queue->n_read <= queue->n_written);
}
