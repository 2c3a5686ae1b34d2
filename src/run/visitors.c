/* visitors.c: blocks that visit (visit.h) again and again.
 *
 * A chance word is another one in the next iteration; a true use comes again. Those that came for the same exec twice are
 * planned for, all at once, after some laps: a plan costs time to make and to enter, so each time four times as many laps
 * are waited for. Laps count on whatever plan: a program that changes plans often is no reason to wait for ever. */
#include "run/manager.h"

enum { LAPS_FACTOR = 4, TWICE = 2 };

/* There are more and more of those that came once, where it was by chance. */
static void forget_strangers(np_pattern *pattern)
{
    size_t n = 0;
    for (size_t i = 0; i < pattern->visitors.n; i++) {
        if (pattern->visitors.items[i].n >= TWICE) {
            pattern->visitors.items[n++] = pattern->visitors.items[i];
        }
    }
    pattern->visitors.n = n;
}

void np_visit_note(neap_device *m, uint32_t life, uint32_t exec)
{
    np_pattern *pattern = m->pattern;
    np_visitor visitor = {.use = {.life = life, .exec = exec}, .n = 1};
    for (size_t i = 0; i < pattern->visitors.n; i++) {
        np_visitor *known = &pattern->visitors.items[i];
        if (known->use.life == life && known->use.exec == exec) {
            known->n++;
            pattern->n_come_again += known->n == TWICE;
            return;
        }
    }
    if (pattern->visitors.n == 0) {
        m->visit.since_lap = m->stats.n_iterations;
    }
    if (pattern->visitors.n >= NP_MANY_VISITORS) {
        forget_strangers(pattern);
    }
    if (pattern->visitors.n < NP_MANY_VISITORS) {
        (void)np_array_push(m->memory, &pattern->visitors, visitor); /* or it is new the next time, too */
    }
}

void np_visit_heed(neap_device *m, np_pattern *pattern)
{
    if (pattern->n_come_again == 0 || m->stats.n_iterations - m->visit.since_lap < m->visit.wait_laps ||
        atomic_load(&m->learner.is_busy)) {
        return;
    }
    for (size_t i = 0; i < pattern->visitors.n; i++) {
        const np_visitor *visitor = &pattern->visitors.items[i];
        if (visitor->n >= TWICE) {
            np_beneath_doubt_life(m, pattern, visitor->use.life, visitor->use.exec);
        }
    }
    pattern->visitors.n = 0;
    pattern->n_come_again = 0;
    m->visit.wait_laps *= LAPS_FACTOR;
}
