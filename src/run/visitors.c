/* visitors.c: uses that no plan knew of, again and again.
 *
 * A chance word is another one in the next iteration; a true use comes again, and so do some old addresses that a program
 * never clears. Where the block was away and had to visit (visit.h), a plan that knows is asked for: with all uses that
 * were seen twice, also of blocks that were there, since the next plan has others away. The first plan with swaps is
 * made with what was seen on the one before it. All at once, and after some visits: a plan costs time to make and to enter, as
 * visits do, so each time four times as many are waited for, and a few laps at least, in which most are seen twice. An old
 * address that every layer names costs as much in five laps as one visit a lap does in a hundred. Laps count on whatever
 * plan: a program that changes plans often is no reason to wait for ever. */
#include "run/manager.h"

enum { VISITS_FACTOR = 4, LEAST_LAPS = 3, TWICE = 2 };

/* There are more and more of those that were seen once, where it was by chance. */
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

static np_visitor *find(np_pattern *pattern, np_doubt use)
{
    for (size_t i = 0; i < pattern->visitors.n; i++) {
        np_visitor *known = &pattern->visitors.items[i];
        if (known->use.life == use.life && known->use.exec == use.exec) {
            return known;
        }
    }
    return NULL;
}

static bool has_come_again(const np_visitor *visitor)
{
    return visitor->came && visitor->n >= TWICE;
}

void np_visit_note(neap_device *m, uint32_t life, uint32_t exec, bool came)
{
    np_pattern *pattern = m->pattern;
    np_visitor visitor = {.use = {.life = life, .exec = exec}, .n = 1, .came = came};
    np_visitor *known = find(pattern, visitor.use);
    if (came && pattern->n_come == 0) {
        m->visit.since_lap = m->stats.n_iterations;
    }
    pattern->n_come += came;
    if (known) {
        bool was_again = has_come_again(known);
        known->n++;
        known->came |= came;
        pattern->n_come_again += has_come_again(known) && !was_again;
        return;
    }
    if (pattern->visitors.n >= NP_MANY_VISITORS) {
        forget_strangers(pattern);
    }
    if (pattern->visitors.n < NP_MANY_VISITORS) {
        (void)np_array_push(m->memory, &pattern->visitors, visitor); /* or it is new the next time, too */
    }
}

void np_visit_expect(neap_device *m, np_pattern *pattern)
{
    for (size_t i = 0; i < pattern->visitors.n; i++) {
        const np_visitor *visitor = &pattern->visitors.items[i];
        if (has_come_again(visitor)) {
            np_beneath_doubt_life(m, pattern, visitor->use.life, visitor->use.exec);
        } else if (visitor->n >= TWICE && np_heed_takes_all(pattern)) {
            (void)np_array_push(m->memory, &pattern->doubts, visitor->use); /* or it is seen once more */
        }
    }
    pattern->visitors.n = 0;
    pattern->n_come = pattern->n_come_again = 0;
}

void np_visit_heed(neap_device *m, np_pattern *pattern)
{
    if (pattern->n_come_again == 0 || pattern->n_come < m->visit.wait_visits ||
        m->stats.n_iterations - m->visit.since_lap < LEAST_LAPS || atomic_load(&m->learner.is_busy)) {
        return;
    }
    np_visit_expect(m, pattern);
    m->visit.wait_visits *= VISITS_FACTOR;
}
