/* recall.h: where a piece of text was seen last: from 32-bit tags (hashes, well mixed) to event counts.
 *
 * Open addressing, at most half full, eight bytes an entry. Pieces whose tags agree by chance share an entry: what is
 * recalled is a proposal, to be checked by whoever asked. Tags are no secret, and a file could be made in which they crowd
 * together: a tag that finds NP_RECALL_PROBES slots taken (chance needs far fewer) is not entered. */
#ifndef NP_TRACE_RECALL_H
#define NP_TRACE_RECALL_H

#include "base/memory.h"

#define NP_RECALL_NONE UINT32_MAX
#define NP_RECALL_PROBES 512

typedef struct np_recall_entry {
    uint32_t tag;
    uint32_t at; /* NP_RECALL_NONE: the slot is empty */
} np_recall_entry;

typedef struct np_recall {
    np_recall_entry *entries;
    size_t n_slots; /* a power of two, or 0 */
    size_t n;       /* tags present */
} np_recall;

void np_recall_free(np_recall *recall, const neap_memory *memory);

/* Makes room for n_more new tags. */
neap_status np_recall_grow(np_recall *recall, const neap_memory *memory, size_t n_more);

static inline bool np_recall_has_room(const np_recall *recall, size_t n_more)
{
    return 2 * (recall->n + n_more) <= recall->n_slots;
}

static inline neap_status np_recall_reserve(np_recall *recall, const neap_memory *memory, size_t n_more)
{
    return np_recall_has_room(recall, n_more) ? NEAP_OK : np_recall_grow(recall, memory, n_more);
}

/* The entry of tag, or the empty one where it would go; NULL where it is too crowded. There must be room. */
static inline np_recall_entry *np_recall_find(const np_recall *recall, uint32_t tag)
{
    size_t i = tag & (recall->n_slots - 1);
    for (unsigned n = 0; n < NP_RECALL_PROBES; n++, i = (i + 1) & (recall->n_slots - 1)) {
        if (recall->entries[i].at == NP_RECALL_NONE || recall->entries[i].tag == tag) {
            return &recall->entries[i];
        }
    }
    return NULL;
}

/* Where tag was seen last, or NP_RECALL_NONE; from now on it is `at`. Where it is too crowded to tell, `at` itself. Room
 * must have been reserved. */
static inline uint32_t np_recall_swap(np_recall *recall, uint32_t tag, uint32_t at)
{
    np_recall_entry *entry = np_recall_find(recall, tag);
    uint32_t before = entry ? entry->at : at;
    if (!entry) {
        return before;
    }
    recall->n += before == NP_RECALL_NONE;
    *entry = (np_recall_entry){tag, at};
    return before;
}

bool np_recall_is_valid(const np_recall *recall);

#endif
