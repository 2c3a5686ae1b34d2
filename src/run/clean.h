/* clean.h: which of a block's bytes the host has as they are. What is clean can leave without a copy. */
#ifndef NP_RUN_CLEAN_H
#define NP_RUN_CLEAN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct np_clean {
    uint64_t n_writes;      /* pieces of work that may have changed the block */
    uint64_t copied_writes; /* n_writes when bytes [begin, end) were copied */
    uint64_t begin;
    uint64_t end;
    bool on_host; /* anything was ever copied */
} np_clean;

static inline bool np_clean_has(const np_clean *clean, uint64_t begin, uint64_t end)
{
    return clean->on_host && clean->copied_writes == clean->n_writes && clean->begin <= begin && end <= clean->end;
}

/* Bytes [begin, end) were copied. Joined with what was clean where the two touch. */
static inline void np_clean_note(np_clean *clean, uint64_t begin, uint64_t end)
{
    bool joins =
        clean->on_host && clean->copied_writes == clean->n_writes && begin <= clean->end && clean->begin <= end;
    clean->begin = joins && clean->begin < begin ? clean->begin : begin;
    clean->end = joins && clean->end > end ? clean->end : end;
    clean->copied_writes = clean->n_writes;
    clean->on_host = true;
}

#endif
