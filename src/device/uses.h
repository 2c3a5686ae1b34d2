/* uses.h: who used which bytes last, and whether the next use is ordered after them.
 *
 * Bytes are numbered; spans of them have the same uses: the last write, and the reads since then, one a stream at most.
 * Older uses need not be kept. All before the last write are ordered before it (or were found not to be), so whatever is
 * ordered after the write is ordered after them. The same holds for reads before a read that follows them. */
#ifndef NP_DEVICE_USES_H
#define NP_DEVICE_USES_H

#include "device/clocks.h"

typedef struct np_byte_use {
    np_stream stream;
    uint64_t mark;
    bool writes;
} np_byte_use;

typedef struct np_byte_uses {
    uint64_t begin;
    uint64_t end;
    uint64_t writer; /* stream */
    uint64_t write;  /* its mark; 0: none */
    uint64_t reads[NP_N_STREAMS];
} np_byte_uses;

typedef struct np_uses {
    const neap_memory *memory;
    np_array(np_byte_uses) spans; /* ascending, disjoint */
    size_t forget_at;             /* spans: time to look for those that are of no use any more */
} np_uses;

/* Two uses that nothing orders. */
typedef struct np_conflict {
    uint64_t begin; /* the bytes */
    uint64_t end;
    np_byte_use earlier;
} np_conflict;

void np_uses_init(np_uses *uses, const neap_memory *memory);
void np_uses_free(np_uses *uses);

/* Room for n more uses, which cannot fail then. What the host knows to be done may be forgotten. */
neap_status np_uses_reserve(np_uses *uses, size_t n, const np_clock *host);

/* A use of bytes [begin, end), begin < end, by work with this clock. False: it is not ordered after an earlier one, the
 * first of which is in *conflict. The use is added all the same. */
bool np_uses_add(np_uses *uses, uint64_t begin, uint64_t end, np_byte_use use, const np_clock *clock,
                 np_conflict *conflict);

/* Whether all uses of the bytes are known to be done; if not, *conflict names one. */
bool np_uses_are_done(const np_uses *uses, uint64_t begin, uint64_t end, const np_clock *host, np_conflict *conflict);

bool np_uses_is_valid(const np_uses *uses);

#endif
