/* limit.c: how much may be held: what was asked for, and where it has to be more.
 *
 * A limit in bytes holds from the first malloc on. One in per cent is a share of the program's highest load so far, whatever
 * plan is followed, and holds from the third iteration on: iterations are known by the load, which rises to its height and
 * falls again. (Or, for programs that are told so and for those of the C interface, from the first plan with swaps on.)
 *
 * What one piece of work needs at once may be more, and so may a plan where no lower one was found. The limit is raised
 * then, for just as long. */
#include "base/real.h"
#include "run/manager.h"

enum { HEIGHTS_BEFORE = 2 }; /* times that the load has risen and fallen before a share of it is a limit */

#define HIGH_SHARE 0.9 /* of the highest load so far */
#define LOW_SHARE 0.75

void np_limit_begin(neap_device *m)
{
    m->asked_pages = m->options.mode == NEAP_MODE_PLAIN ? UINT32_MAX : np_pages_within(m, m->options.limit);
    m->limit_pages = m->asked_pages;
}

uint32_t np_limit_with(const neap_device *m, const np_pattern *pattern)
{
    bool is_other = pattern->limit_pages > 0 && (m->asked_pages == UINT32_MAX || pattern->limit_pages > m->asked_pages);
    return is_other ? pattern->limit_pages : m->asked_pages;
}

void np_limit_update(neap_device *m)
{
    uint32_t limit = m->pattern ? np_limit_with(m, m->pattern) : m->asked_pages;
    if (m->is_raised && m->state == NEAP_STATE_RUN && m->pages.n_held > limit) {
        return; /* what needs more stands beside the plan */
    }
    m->limit_pages = limit;
    m->is_raised = false;
}

/* A share of the highest load so far. */
static void take_share(neap_device *m)
{
    m->asked_pages = np_pages_within(m, (uint64_t)(m->options.limit_share * (double)m->stats.peak_live));
    np_limit_update(m);
}

void np_limit_put_in_force(neap_device *m)
{
    if (m->is_share_in_force || m->options.limit_share <= 0 || !m->is_beneath || m->is_limit_late ||
        (m->state == NEAP_STATE_RUN && m->cursor < m->pattern->program.events.n)) { /* a plan ends its lap first */
        return;
    }
    m->is_share_in_force = true;
    m->is_limited_anew = true;
    take_share(m);
    np_log(m, NEAP_LOG_INFO, "the limit of %s %% is in force: %llu bytes, of a load of %llu so far",
           np_real_fixed(100 * m->options.limit_share, 1).text,
           (unsigned long long)m->limit_pages * m->device->page_bytes, (unsigned long long)m->stats.peak_live);
}

void np_limit_note_load(neap_device *m)
{
    double live = (double)m->stats.live;
    double peak = (double)m->stats.peak_live;
    if (m->options.limit_share <= 0 || !m->is_beneath) {
        return;
    }
    if (m->is_share_in_force) {
        if (m->stats.live == m->stats.peak_live) {
            take_share(m);
        }
        return;
    }
    if (m->is_load_high && live < LOW_SHARE * peak) {
        m->is_load_high = false;
        m->n_heights++;
    }
    if (m->n_heights >= HEIGHTS_BEFORE) {
        np_limit_put_in_force(m);
    } else if (live > HIGH_SHARE * peak) {
        m->is_load_high = true;
    }
}

void np_limit_raise(neap_device *m, uint32_t n_pages)
{
    uint64_t page = m->device->page_bytes;
    if (n_pages > m->most_raised) { /* said once for so much */
        m->most_raised = n_pages;
        np_log(m, NEAP_LOG_WARN, "%s needs %llu bytes of device memory at once: the limit of %llu is raised for it",
               m->exec_name ? m->exec_name : "the program", (unsigned long long)n_pages * page,
               (unsigned long long)m->asked_pages * page);
    }
    m->limit_pages = n_pages;
    m->is_raised = true;
}
