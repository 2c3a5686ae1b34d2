/* detect_short.c: periods below NP_SHORT, counted one by one.
 *
 * For each of them a counter holds how many keys in a row were equal to the one a period before: the period holds at
 * present when the counter reaches it. All counters move at every event, sixteen or more of them in one instruction, so
 * they are bytes and see a byte of each key, and may count too many. Nothing is missed by that: below its period a
 * counter is at least what it should be; when it reaches the period the keys themselves are compared; and above it there
 * is a track, of this period or of a part of it, at whose end it is set back. */
#include <string.h>

#include "trace/detect_state.h"

/* A counter has just reached its period: by equal keys, or by keys that agree in the part the counters see. In the first
 * case the key before those was not equal, or else it would have been counted: the run is two periods long. */
static void propose_counted(np_detector *d, uint32_t period)
{
    const uint64_t *end = d->keys.items + d->n;
    uint32_t equal = 0;
    while (equal < period && equal + period < d->n &&
           end[-1 - (ptrdiff_t)equal] == end[-1 - (ptrdiff_t)(equal + period)]) {
        equal++;
    }
    d->work += equal;
    d->matches[NP_SHORT - period] = (uint8_t)equal;
    if (equal == period) {
        np_detector_track(d, period, d->n - 2 * period);
    }
}

void np_detector_end_short(np_detector *d, const np_run *run)
{
    uint32_t length = run->end - run->begin;
    for (uint32_t period = run->period; period < NP_SHORT && 2 * period <= length; period += run->period) {
        d->matches[NP_SHORT - period] = 0;
    }
}

/* Eight flags as one number, the first of them lowest. */
static uint64_t load_flags(const uint8_t flags[8])
{
    return (uint64_t)flags[0] | (uint64_t)flags[1] << 8 | (uint64_t)flags[2] << 16 | (uint64_t)flags[3] << 24 |
           (uint64_t)flags[4] << 32 | (uint64_t)flags[5] << 40 | (uint64_t)flags[6] << 48 | (uint64_t)flags[7] << 56;
}

/* The smallest periods first, since multiples of a tracked one are not tracked. (Not inlined: most events do not come
 * here, and should not pay for its registers.) */
static __attribute__((noinline)) void propose_reached(np_detector *d, const uint8_t reached[NP_SHORT])
{
    for (uint32_t group = NP_SHORT; group > 0; group -= 8) {
        uint64_t flags = load_flags(reached + group - 8);
        while (flags) {
            uint32_t highest = 7 - (uint32_t)__builtin_clzll(flags) / 8;
            uint32_t period = NP_SHORT - (group - 8 + highest);
            flags ^= (uint64_t)1 << 8 * highest;
            if (period < NP_SHORT) {
                propose_counted(d, period);
            }
        }
    }
}

void np_detector_propose_short(np_detector *d)
{
    uint8_t letter = (uint8_t)(d->keys.items[d->n - 1] >> 56);
    uint32_t at = (d->n - 1) % NP_SHORT;
    uint8_t window[NP_SHORT]; /* the last NP_SHORT letters, oldest first; a copy, so that the loop can be vectorised */
    uint8_t reached[NP_SHORT];
    uint8_t any = 0;
    memcpy(window, d->recent + at, sizeof window);
    for (uint32_t i = 0; i < NP_SHORT; i++) {
        uint8_t before = d->matches[i];
        uint8_t longer = before == UINT8_MAX ? before : (uint8_t)(before + 1);
        uint8_t now = window[i] == letter ? longer : 0;
        d->matches[i] = now;
        reached[i] = now == d->short_periods[i];
        any |= reached[i];
    }
    d->recent[at] = d->recent[at + NP_SHORT] = letter;
    d->work++;
    if (any) {
        propose_reached(d, reached);
    }
}
