/* history.c: the kind is expected that came after the longest run of iterations like the last ones.
 *
 * A program that does something every fifty iterations is told by the fifty before. Until it has done so twice all
 * runs of the usual kind look alike, and the few that ended with the other kind must not win: of those equally long
 * the most frequent follower is taken, and of equally frequent ones the latest.
 *
 * How long the runs are is found for all places at once, by matching the history, read backwards, with itself (the Z
 * algorithm). */
#include "run/history.h"

void np_history_add(np_history *history, uint64_t kind)
{
    history->kinds[history->next] = kind;
    history->next = (history->next + 1) % NP_HISTORY;
    history->n += history->n < NP_HISTORY;
}

/* The i-th last iteration. */
static uint64_t ago(const np_history *history, uint32_t i)
{
    return history->kinds[(history->next + NP_HISTORY - 1 - i) % NP_HISTORY];
}

uint32_t np_history_age(const np_history *history, uint64_t kind)
{
    for (uint32_t i = 0; i < history->n; i++) {
        if (ago(history, i) == kind) {
            return i;
        }
    }
    return NP_HISTORY;
}

/* lengths[i]: so many iterations before the last i ones are like the last ones of all. */
static uint32_t match(const np_history *history, uint16_t lengths[NP_HISTORY])
{
    uint32_t longest = 0;
    uint32_t begin = 0; /* of the match that reaches furthest back, */
    uint32_t end = 0;   /* and its end */
    for (uint32_t i = 1; i < history->n; i++) {
        uint32_t length = 0;
        if (i < end) {
            length = lengths[i - begin] < end - i ? lengths[i - begin] : end - i;
        }
        while (i + length < history->n && ago(history, length) == ago(history, i + length)) {
            length++;
        }
        if (i + length > end) {
            begin = i;
            end = i + length;
        }
        lengths[i] = (uint16_t)length;
        longest = length > longest ? length : longest;
    }
    return longest;
}

bool np_history_predict(const np_history *history, uint64_t *kind)
{
    uint16_t lengths[NP_HISTORY];
    uint32_t longest = match(history, lengths);
    uint64_t kinds[NP_HISTORY];
    uint32_t n_times[NP_HISTORY];
    uint32_t n = 0;
    uint32_t best = 0;
    for (uint32_t i = 1; i < history->n && longest > 0; i++) {
        uint64_t follower = ago(history, i - 1);
        uint32_t k = 0;
        if (lengths[i] != longest) {
            continue;
        }
        while (k < n && kinds[k] != follower) {
            k++;
        }
        if (k == n) {
            kinds[n] = follower;
            n_times[n++] = 0;
        }
        n_times[k]++;
        best = n_times[k] > n_times[best] ? k : best;
    }
    if (n == 0) {
        return false;
    }
    *kind = kinds[best];
    return true;
}
