/* leave.c: an event that is not the planned one.
 *
 * All work is waited for; then every copy that was given is done, and what is where is plain. Planned blocks that are live
 * become ordinary ones where they stand: their bytes count as used, and the pages of what is absent are unmapped, to be
 * found again wherever there is room. Nothing is copied. */
#include "run/manager.h"

const char *neap_departure_text(neap_departure departure)
{
    static const char *const texts[NEAP_N_DEPARTURES] = {
#define NEAP_DEPARTURE_TEXT(name, text) text,
        NEAP_DEPARTURE_MAP(NEAP_DEPARTURE_TEXT)
#undef NEAP_DEPARTURE_TEXT
    };
    return (unsigned)departure < NEAP_N_DEPARTURES ? texts[departure] : "unknown";
}

/* The pages of what was given out are no longer the block's. */
void np_unmap_absent(neap_device *m, np_pattern *pattern)
{
    uint64_t page = m->device->page_bytes;
    for (uint32_t i = 0; i < pattern->program.swaps.n; i++) {
        const np_program_swap *swap = &pattern->program.swaps.items[i];
        neap_block *block = pattern->actors[swap->life].now[0];
        if (pattern->is_out[i] && block) {
            uint32_t first = np_view_page_of(&block->view, swap->begin, page);
            uint32_t end = np_view_page_of(&block->view, swap->end + page - 1, page);
            np_view_unmap(&m->pages, &block->view, first, end - first, NP_UNCOUNTED);
            pattern->is_out[i] = false;
        }
    }
}

/* Was the block of this life malloc'd in the lap at hand? */
static bool is_of_lap(const neap_device *m, const np_program_life *life)
{
    return !life->persistent && life->begin < m->cursor;
}

/* Planned blocks get numbers in the order in which they were malloc'd: lives are in that order, and blocks of the lap before
 * come first. Blocks that the lap has freed have numbers, too: what is recorded begins with the lap. */
static void number_blocks(neap_device *m, np_pattern *pattern)
{
    for (int of_lap = 0; of_lap <= 1; of_lap++) {
        for (uint32_t i = 0; i < pattern->program.lives.n; i++) {
            const np_program_life *life = &pattern->program.lives.items[i];
            neap_block **now = pattern->actors[i].now;
            for (uint32_t j = 0; j < life->n_places && is_of_lap(m, life) == (of_lap == 1); j++) {
                uint64_t id = m->next_id++;
                pattern->ids[&now[j] - pattern->now] = id;
                if (now[j] && now[j]->pattern) {
                    now[j]->id = id;
                }
            }
        }
    }
}

/* Planned blocks join the list of live ones; what is loose and its own may leave again. */
static void list_blocks(neap_device *m, np_pattern *pattern)
{
    number_blocks(m, pattern);
    for (uint32_t i = 0; i < pattern->n_now; i++) {
        neap_block *block = pattern->now[i];
        if (block && block->pattern) {
            block->malloc_event = UINT64_MAX;
            np_live_add(m, block);
        }
        if (block && (block->kind == NP_BLOCK_FLAT || block->view.n_missing < block->view.n_pages)) {
            np_recent_touch(m, block);
        } else if (block) { /* small, or absent altogether */
            np_recent_remove(m, block);
        }
    }
}

/* Host memory of planned blocks that are not live: another plan may need it. It is taken again when this one is entered. */
static void give_slots(neap_device *m, np_pattern *pattern)
{
    for (uint32_t i = 0; i < pattern->n_blocks; i++) {
        if (!pattern->blocks[i].is_live) {
            np_host_give(&m->host, &pattern->blocks[i].slot);
        }
    }
}

void np_settle(neap_device *m)
{
    np_pattern *pattern = m->pattern;
    np_rest_end(m);
    (void)np_drain(m); /* where the device has failed, there is no work left to wait for */
    np_retired_give_back(m);
    np_follow_note_laps(m);
    np_timed_break(&pattern->timed);
    np_visit_settle(m);
    np_unmap_absent(m, pattern);
    list_blocks(m, pattern);
    give_slots(m, pattern);
    np_recount_arena(m);
    m->state = NEAP_STATE_LEAVE;
    np_replay_lap(m);
}

void np_leave_note(neap_device *m, neap_departure why, const char *what)
{
    m->stats.departures[why]++;
    m->stats.n_departures++;
    m->pattern->n_left += m->cursor > 0;
    np_log(m, NEAP_LOG_WARN, "left the plan at event %u of %zu: %s%s%s", m->cursor, m->pattern->program.events.n,
           neap_departure_text(why), what ? ": " : "", what ? what : "");
}

void np_leave(neap_device *m, neap_departure why, const char *what)
{
    np_leave_note(m, why, what);
    np_settle(m);
}
