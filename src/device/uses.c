#include "device/uses.h"

#include <string.h>

enum { FORGET_MIN = 64 };

void np_uses_init(np_uses *uses, const neap_memory *memory)
{
    *uses = (np_uses){.memory = memory, .forget_at = FORGET_MIN};
}

void np_uses_free(np_uses *uses)
{
    np_array_free(uses->memory, &uses->spans);
}

/* Index of the first span that ends after `at`. */
static size_t first_after(const np_uses *uses, uint64_t at)
{
    size_t low = 0;
    size_t high = uses->spans.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (uses->spans.items[middle].end <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- what is in the way ---- */

/* A use of the span, other than by `stream`, that the clock does not hold: a write, or any. */
static bool find_open(const np_byte_uses *span, np_stream stream, bool writes_only, const np_clock *clock,
                      np_byte_use *open)
{
    if (span->write > 0 && span->writer != stream && span->write > clock->marks[span->writer]) {
        *open = (np_byte_use){(np_stream)span->writer, span->write, true};
        return true;
    }
    for (np_stream i = 0; i < NP_N_STREAMS && !writes_only; i++) {
        if (i != stream && span->reads[i] > clock->marks[i]) {
            *open = (np_byte_use){i, span->reads[i], false};
            return true;
        }
    }
    return false;
}

static bool find_conflict(const np_uses *uses, uint64_t begin, uint64_t end, np_stream stream, bool writes_only,
                          const np_clock *clock, np_conflict *conflict)
{
    for (size_t i = first_after(uses, begin); i < uses->spans.n && uses->spans.items[i].begin < end; i++) {
        const np_byte_uses *span = &uses->spans.items[i];
        np_byte_use open;
        if (find_open(span, stream, writes_only, clock, &open)) {
            *conflict =
                (np_conflict){span->begin > begin ? span->begin : begin, span->end < end ? span->end : end, open};
            return true;
        }
    }
    return false;
}

bool np_uses_are_done(const np_uses *uses, uint64_t begin, uint64_t end, const np_clock *host, np_conflict *conflict)
{
    return !find_conflict(uses, begin, end, NP_N_STREAMS, false, host, conflict);
}

/* ---- room ---- */

/* Drops spans whose uses are all known to be done: no work to come can be in conflict with them. */
static void forget(np_uses *uses, const np_clock *host)
{
    size_t n = 0;
    for (size_t i = 0; i < uses->spans.n; i++) {
        np_byte_use open;
        if (find_open(&uses->spans.items[i], NP_N_STREAMS, false, host, &open)) {
            uses->spans.items[n++] = uses->spans.items[i];
        }
    }
    uses->spans.n = n;
    uses->forget_at = 2 * n > FORGET_MIN ? 2 * n : FORGET_MIN;
}

neap_status np_uses_reserve(np_uses *uses, size_t n, const np_clock *host)
{
    if (uses->spans.n > uses->forget_at) {
        forget(uses, host);
    }
    /* Spans begin and end where one did before, or where a new use does. */
    return np_array_reserve(uses->memory, &uses->spans, 2 * (uses->spans.n + n) + 1);
}

/* ---- adding ---- */

static void insert(np_uses *uses, size_t at, np_byte_uses span)
{
    memmove(&uses->spans.items[at + 1], &uses->spans.items[at], (uses->spans.n - at) * sizeof span);
    uses->spans.items[at] = span;
    uses->spans.n++;
}

static void erase(np_uses *uses, size_t from, size_t to)
{
    memmove(&uses->spans.items[from], &uses->spans.items[to], (uses->spans.n - to) * sizeof *uses->spans.items);
    uses->spans.n -= to - from;
}

/* Makes a border at `at`; returns the index of the first span behind it. */
static size_t split(np_uses *uses, uint64_t at)
{
    size_t i = first_after(uses, at);
    if (i < uses->spans.n && uses->spans.items[i].begin < at) {
        np_byte_uses right = uses->spans.items[i];
        right.begin = at;
        uses->spans.items[i].end = at;
        insert(uses, ++i, right);
    }
    return i;
}

/* Melts neighbours that have the same uses together, from span `from` on, until one begins after `end`. */
static void merge(np_uses *uses, size_t from, uint64_t end)
{
    size_t i = from > 0 ? from - 1 : 0;
    while (i + 1 < uses->spans.n && uses->spans.items[i + 1].begin <= end) {
        np_byte_uses *span = &uses->spans.items[i];
        if (span->end == span[1].begin && span->writer == span[1].writer && span->write == span[1].write &&
            memcmp(span->reads, span[1].reads, sizeof span->reads) == 0) {
            span->end = span[1].end;
            erase(uses, i + 1, i + 2);
        } else {
            i++;
        }
    }
}

static void add_read(np_byte_uses *span, np_byte_use use, const np_clock *clock)
{
    for (np_stream i = 0; i < NP_N_STREAMS; i++) {
        if (span->reads[i] <= clock->marks[i]) {
            span->reads[i] = 0; /* whoever follows this read follows that one */
        }
    }
    span->reads[use.stream] = use.mark;
}

bool np_uses_add(np_uses *uses, uint64_t begin, uint64_t end, np_byte_use use, const np_clock *clock,
                 np_conflict *conflict)
{
    bool is_ordered = !find_conflict(uses, begin, end, use.stream, !use.writes, clock, conflict);
    size_t first = split(uses, begin);
    size_t past = split(uses, end);
    if (use.writes) {
        erase(uses, first, past);
        insert(uses, first, (np_byte_uses){.begin = begin, .end = end, .writer = use.stream, .write = use.mark});
    } else {
        uint64_t at = begin;
        for (size_t i = first; at < end; i++) {
            bool is_gap = i == uses->spans.n || uses->spans.items[i].begin > at;
            if (is_gap) {
                uint64_t gap_end =
                    i < uses->spans.n && uses->spans.items[i].begin < end ? uses->spans.items[i].begin : end;
                insert(uses, i, (np_byte_uses){.begin = at, .end = gap_end});
            }
            add_read(&uses->spans.items[i], use, clock);
            at = uses->spans.items[i].end;
        }
    }
    merge(uses, first, end);
    return is_ordered;
}

bool np_uses_is_valid(const np_uses *uses)
{
    for (size_t i = 0; i < uses->spans.n; i++) {
        const np_byte_uses *span = &uses->spans.items[i];
        bool used = span->write > 0;
        for (np_stream k = 0; k < NP_N_STREAMS; k++) {
            used = used || span->reads[k] > 0;
        }
        if (!used || span->begin >= span->end || span->writer >= NP_N_STREAMS ||
            (i > 0 && span[-1].end > span->begin)) {
            return false;
        }
    }
    return uses->spans.n <= uses->spans.capacity;
}
