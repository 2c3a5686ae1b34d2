/* retire.c: what freed blocks leave behind: views of which nothing more is wanted, spares, and idle pages.
 *
 * Unmapping under a kernel that runs would end it, so what is to be unmapped waits until the work given by then has ended.
 * Nothing here waits for work: the caller does, where it must. */
#include "run/manager.h"

/* The program's streams, and those of copies. */
static bool is_stream(const neap_device *m, np_stream s)
{
    return s < m->device->n_streams || s >= NP_MAX_STREAMS;
}

static bool is_done(const neap_device *m, const uint64_t *after, np_stream n)
{
    for (np_stream s = 0; s < n; s++) {
        if (is_stream(m, s) && !m->device->api->is_done(m->device, s, after[s])) {
            return false;
        }
    }
    return true;
}

void np_retire_view(neap_device *m, np_view *view)
{
    np_retired retired = {.view = *view};
    for (np_stream s = 0; s < NP_N_STREAMS; s++) {
        retired.after[s] = is_stream(m, s) ? m->device->api->mark(m->device, s) : 0;
    }
    if (is_done(m, retired.after, NP_N_STREAMS) ||
        np_pages_note_freed(&m->pages, view->numbers, view->n_pages) != NEAP_OK ||
        np_array_push(m->memory, &m->retired, retired) != NEAP_OK) {
        (void)np_drain(m);
        np_view_free(&m->pages, &retired.view, NP_COUNTED);
    }
    *view = (np_view){0};
}

static void free_retired(neap_device *m)
{
    for (size_t i = 0; i < m->retired.n; i++) {
        np_view_free(&m->pages, &m->retired.items[i].view, NP_COUNTED);
    }
    m->retired.n = 0;
}

void np_retired_give_back(neap_device *m)
{
    free_retired(m);
    for (int i = 0; i < NP_N_SPACES; i++) {
        np_space_drop_spares(&m->spaces[i]);
    }
    for (int i = 0; i < NP_N_SPACES; i++) {
        np_space_give_back(&m->spaces[i]);
    }
}

static bool are_spares_done(const neap_device *m, const np_space *space)
{
    for (size_t i = 0; i < space->spares.n; i++) {
        if (space->spares.items[i].view.numbers && !is_done(m, space->spares.items[i].after, NP_MAX_STREAMS)) {
            return false;
        }
    }
    return true;
}

bool np_retired_try(neap_device *m)
{
    for (int i = 0; i < NP_N_SPACES; i++) {
        if (!are_spares_done(m, &m->spaces[i])) {
            return false;
        }
    }
    if (m->retired.n > 0 && !is_done(m, m->retired.items[m->retired.n - 1].after, NP_N_STREAMS)) {
        return false;
    }
    np_retired_give_back(m);
    return true;
}
