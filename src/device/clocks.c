#include "device/clocks.h"

#include <string.h>

void np_clocks_init(np_clocks *clocks, const neap_memory *memory)
{
    *clocks = (np_clocks){.memory = memory};
}

void np_clocks_free(np_clocks *clocks)
{
    for (np_stream i = 0; i < NP_N_STREAMS; i++) {
        np_array_free(clocks->memory, &clocks->streams[i].history);
    }
}

static void join(np_clock *clock, const np_clock *other)
{
    for (np_stream i = 0; i < NP_N_STREAMS; i++) {
        clock->marks[i] = other->marks[i] > clock->marks[i] ? other->marks[i] : clock->marks[i];
    }
}

/* Index of the entry that holds for the mark; SIZE_MAX: none does, there was nothing before that work. */
static size_t entry_of(const np_stream_clock *s, uint64_t mark)
{
    size_t low = 0;
    size_t high = s->history.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->history.items[middle].mark <= mark) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low - 1;
}

/* Adds the work `mark` of a stream, and all that is before it. */
static void join_mark(np_clocks *clocks, np_clock *clock, np_stream stream, uint64_t mark)
{
    const np_stream_clock *s = &clocks->streams[stream];
    size_t entry = entry_of(s, mark);
    if (entry != SIZE_MAX) {
        join(clock, &s->history.items[entry].clock);
    }
    clock->marks[stream] = mark;
}

void np_clocks_wait(np_clocks *clocks, np_stream stream, np_stream other, uint64_t mark)
{
    np_stream_clock *s = &clocks->streams[stream];
    if (stream != other && mark > s->now.marks[other] && mark > clocks->host.marks[other]) {
        join_mark(clocks, &s->now, other, mark);
        s->changed = true;
    }
}

void np_clocks_host_knows(np_clocks *clocks, np_stream stream, uint64_t mark)
{
    if (mark > clocks->host.marks[stream]) {
        join_mark(clocks, &clocks->host, stream, mark);
        clocks->host_version++;
    }
}

/* Drops entries that hold for known work alone. */
static void forget(np_clocks *clocks, np_stream stream)
{
    np_stream_clock *s = &clocks->streams[stream];
    size_t entry = entry_of(s, clocks->host.marks[stream] + 1);
    if (entry != SIZE_MAX && entry > 0) {
        s->history.n -= entry;
        memmove(s->history.items, s->history.items + entry, s->history.n * sizeof *s->history.items);
    }
}

neap_status np_clocks_reserve(np_clocks *clocks, np_stream stream)
{
    np_stream_clock *s = &clocks->streams[stream];
    if (s->history.n == s->history.capacity) {
        forget(clocks, stream);
    }
    return np_array_reserve(clocks->memory, &s->history, s->history.n + 1);
}

const np_clock *np_clocks_give(np_clocks *clocks, np_stream stream, uint64_t mark)
{
    np_stream_clock *s = &clocks->streams[stream];
    if (s->host_version != clocks->host_version) {
        join(&s->now, &clocks->host);
        s->host_version = clocks->host_version;
        s->changed = true;
    }
    if (s->changed) {
        s->history.items[s->history.n++] = (np_clock_since){mark, s->now};
        s->changed = false;
    }
    return &s->now;
}

bool np_clocks_is_valid(const np_clocks *clocks)
{
    for (np_stream i = 0; i < NP_N_STREAMS; i++) {
        const np_stream_clock *s = &clocks->streams[i];
        for (size_t k = 0; k < s->history.n; k++) {
            const np_clock_since *entry = &s->history.items[k];
            for (np_stream t = 0; t < NP_N_STREAMS; t++) { /* clocks only grow */
                uint64_t next = k + 1 < s->history.n ? entry[1].clock.marks[t] : s->now.marks[t];
                if (entry->clock.marks[t] > next) {
                    return false;
                }
            }
            if (entry->mark == 0 || (k > 0 && entry[-1].mark >= entry->mark)) {
                return false;
            }
        }
        if (s->history.n > s->history.capacity || s->host_version > clocks->host_version) {
            return false;
        }
    }
    return true;
}
