/* trace.h: a recorded program in memory. Filled by one of the readers, then never changed. */
#ifndef NP_TRACE_TRACE_H
#define NP_TRACE_TRACE_H

#include "base/map.h"
#include "base/memory.h"
#include "neap.h"

typedef np_array(neap_event) np_event_array;
typedef np_array(neap_trace_block) np_block_array;
typedef np_array(neap_access) np_access_array;
typedef np_array(uint32_t) np_u32_array;
typedef np_array(char) np_char_array;

#define NP_TRACE_MAX (UINT32_MAX - 1u)           /* the most events, blocks or names */
#define NP_TRACE_BYTES_MAX ((uint64_t)INT64_MAX) /* the most bytes live at once, so that loads can be subtracted */
#define NP_TRACE_RECENT 4096                     /* a power of two */

/* Blocks stand in the order of their appearance: first the ones that are live before the first event, then by malloc
 * event. This holds for placement CSVs too. */
struct neap_trace {
    const neap_memory *memory;
    bool is_csv; /* a placement problem: mallocs and frees only, one period by definition */
    bool is_cut; /* its first event is the first of an iteration: so is the period's */
    np_event_array events;
    np_block_array blocks;
    np_access_array accesses; /* of all execs, in order; an event names its range */
    np_u32_array marks;       /* `iteration` marks: each the index of the event it precedes. For people only */
    np_char_array names;      /* the exec names, each ended by '\0' */
    np_u32_array name_at;     /* name index -> its start in `names` */
    np_char_array meta;       /* "key\0value\0key\0value\0..." */
    np_map block_of_id;       /* the file's block number -> index into blocks */
    np_map
        name_of_hash; /* hash of a name, by the map's seed -> its index; on a collision the next name is at hash + 1, and so on */
    uint64_t live_bytes; /* of the blocks live after the last event; at most NP_TRACE_BYTES_MAX at any time */
    uint32_t
        recent[NP_TRACE_RECENT]; /* by the low bits of a block number: an index into blocks to try before the map */
};

/* An empty trace. */
neap_status np_trace_create(const neap_memory *memory, neap_trace **trace);

/* Appending, as a reader or a recorder does. Each fails without changing the trace.
 * NEAP_BAD_INPUT: the block is unknown, already known, or already freed, its size is 0, or a name, key or value cannot
 * be written as one field (it is empty, or has a blank or a control character).
 * NEAP_TOO_LARGE: more than NP_TRACE_MAX of them, or more than NP_TRACE_BYTES_MAX bytes live at once. */
neap_status np_trace_add_live(neap_trace *trace, uint64_t id, uint64_t bytes); /* before the first event only */
neap_status np_trace_add_malloc(neap_trace *trace, uint64_t id, uint64_t bytes);
neap_status np_trace_add_free(neap_trace *trace, uint64_t id);
neap_status np_trace_add_exec(neap_trace *trace, const char *name, size_t name_bytes, uint64_t start_ns,
                              uint64_t duration_ns);
/* An access of the exec added last (NEAP_BAD_ARGUMENT: there is none). The block must be live. */
neap_status np_trace_add_access(neap_trace *trace, uint64_t id, neap_access_kind kind);
neap_status np_trace_add_mark(neap_trace *trace);
/* A key given again: its last value counts. A value may be empty, a key has no '='. */
neap_status np_trace_add_meta(neap_trace *trace, const char *key, size_t key_bytes, const char *value,
                              size_t value_bytes);

/* The index of the block with this number, or NP_MAP_NONE. */
uint32_t np_trace_find_block(const neap_trace *trace, uint64_t id);

/* Equal events, blocks, accesses, names, marks and meta, in equal order. */
bool np_trace_is_equal(const neap_trace *a, const neap_trace *b);

bool np_trace_is_valid(const neap_trace *trace);

#endif
