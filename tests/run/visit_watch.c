#include "run/visit_watch.h"

#include <string.h>

#include "testing.h"

enum { UNIT = 64, MAX_UNITS = 1 << 16 }; /* bytes; blocks stand at multiples of it */

enum { LIVE = 1, USED = 2, FIXED = 4, VITAL = 8 }; /* what is in a unit of the arena */

static uint8_t map[MAX_UNITS];

static void paint(const np_placed *placed, uint8_t colour)
{
    uint64_t past = (placed->offset + placed->bytes + UNIT - 1) / UNIT;
    ASSERT_LE(past, MAX_UNITS);
    for (uint64_t at = placed->offset / UNIT; at < past; at++) {
        map[at] |= colour;
    }
}

static bool is_planned_for(const np_program *program, const np_program_event *event, uint32_t life)
{
    for (uint32_t i = 0; i < event->n_uses; i++) {
        if (program->uses.items[event->first_use + i].life == life) {
            return true;
        }
    }
    return false;
}

static bool is_seen(const shadow_use *uses, uint32_t n_uses, uint32_t life)
{
    for (uint32_t i = 0; i < n_uses; i++) {
        if (uses[i].block->block->life == life && uses[i].kind != SHADOW_UNSEEN) {
            return true;
        }
    }
    return false;
}

static uint64_t bytes_away(const np_pattern *pattern, uint32_t life)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < pattern->program.swaps.n; i++) {
        const np_program_swap *swap = &pattern->program.swaps.items[i];
        bytes += swap->life == life && pattern->is_out[i] ? swap->end - swap->begin : 0;
    }
    return bytes;
}

/* Are its bytes here, and looked at by the next work that is planned to use it? */
static bool is_vital(const np_pattern *pattern, const np_program_event *event, uint32_t life)
{
    const np_program *program = &pattern->program;
    size_t n = program->events.n;
    size_t at = (size_t)(event - program->events.items);
    bool is_here = bytes_away(pattern, life) == 0;
    for (size_t i = 1; i < n && is_here; i++) {
        const np_program_event *next = &program->events.items[(at + i) % n];
        for (uint32_t k = 0; next->kind == NEAP_EVENT_EXEC && k < next->n_uses; k++) {
            const np_program_use *use = &program->uses.items[next->first_use + k];
            if (use->life == life) {
                return use->kind != NEAP_ACCESS_WRITE;
            }
        }
    }
    return false;
}

/* All lives but one. */
static void paint_all(const np_pattern *pattern, const np_program_event *event, const shadow_use *uses, uint32_t n_uses,
                      uint32_t but)
{
    const np_program *program = &pattern->program;
    ASSERT_LE(program->footprint / UNIT, MAX_UNITS);
    memset(map, 0, program->footprint / UNIT + 1 < MAX_UNITS ? program->footprint / UNIT + 1 : MAX_UNITS);
    for (uint32_t life = 0; life < program->lives.n; life++) {
        const np_program_life *l = &program->lives.items[life];
        bool is_used = is_planned_for(program, event, life) || is_seen(uses, n_uses, life);
        bool has_vital_bytes = is_vital(pattern, event, life);
        for (uint32_t i = 0; i < l->n_placed * l->n_places && life != but; i++) {
            const np_placed *placed = &program->placed.items[l->first_placed + i];
            const neap_block *block = pattern->actors[life].now[placed->place];
            paint(placed, (uint8_t)((block ? LIVE : 0) | (block && has_vital_bytes ? VITAL : 0) | (is_used ? USED : 0) |
                                    (block && (block->is_fixed || block->is_exported) ? FIXED : 0)));
        }
    }
}

static uint8_t colours_of(const np_pattern *pattern, const np_program_swap *swap)
{
    const np_program_life *life = &pattern->program.lives.items[swap->life];
    uint8_t found = 0;
    for (uint64_t byte = swap->begin; byte < swap->end; byte += UNIT) {
        for (uint32_t i = 0; i < life->n_placed; i++) {
            const np_placed *placed = &pattern->program.placed.items[life->first_placed + i];
            if (placed->at <= byte && byte < placed->at + placed->bytes) {
                found |= map[(placed->offset + byte - placed->at) / UNIT];
            }
        }
    }
    return found;
}

/* Events from now to the next planned use of the life, and to the copy in of the swap. */
static bool is_still_there(const np_pattern *pattern, uint32_t at, uint32_t swap)
{
    const np_program *program = &pattern->program;
    size_t n = program->events.n;
    size_t to_use = SIZE_MAX;
    size_t to_in = SIZE_MAX;
    for (size_t i = n; i-- > 0;) {
        const np_program_event *event = &program->events.items[(at + i) % n];
        to_use = event->kind == NEAP_EVENT_EXEC && is_planned_for(program, event, program->swaps.items[swap].life)
                     ? i
                     : to_use;
        for (uint32_t k = event->first_op; k < event->first_op + event->n_before + event->n_after; k++) {
            to_in = program->ops.items[k].kind == NP_OP_IN && program->ops.items[k].index == swap ? i : to_in;
        }
    }
    return to_use <= to_in;
}

static bool has_copies(const np_program *program, const np_program_event *event)
{
    for (uint32_t k = event->first_op; k < event->first_op + event->n_before + event->n_after; k++) {
        if (program->ops.items[k].kind == NP_OP_IN || program->ops.items[k].kind == NP_OP_OUT) {
            return true;
        }
    }
    return false;
}

/* Pages of the arena that hold nothing that the work uses, nor what is fixed, nor the block's own place. */
static uint32_t count_free(const little_program *p, uint32_t life)
{
    const np_program *program = &p->device->pattern->program;
    const np_program_life *l = &program->lives.items[life];
    uint64_t page = p->raw->page_bytes;
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->n_placed; i++) {
        paint(&program->placed.items[l->first_placed + i], USED);
    }
    for (uint64_t k = 0; k * page < program->footprint; k++) {
        uint8_t found = 0;
        for (uint64_t at = k * page / UNIT; at < (k + 1) * page / UNIT; at++) {
            found |= map[at];
        }
        n += !(found & (USED | FIXED));
    }
    return n;
}

static void look_at_part(little_program *p, uint32_t swap, uint32_t at, visit_chance *chance)
{
    const np_pattern *pattern = p->device->pattern;
    const np_program_swap *s = &pattern->program.swaps.items[swap];
    uint8_t colours = colours_of(pattern, s);
    uint64_t page = p->raw->page_bytes;
    uint64_t lead = chance->block->block->view.lead;
    visit_place place = is_still_there(pattern, at, swap) ? VISIT_STILL_THERE
                        : colours & (USED | FIXED)        ? VISIT_IN_USE
                        : colours & LIVE                  ? VISIT_OCCUPIED
                                                          : VISIT_EMPTY;
    chance->n_parts++;
    chance->place = place > chance->place ? place : chance->place;
    chance->is_vital |= place > VISIT_STILL_THERE && (colours & VITAL);
    chance->bytes_there += place == VISIT_STILL_THERE ? s->end - s->begin : 0;
    chance->bytes_empty += place == VISIT_EMPTY ? s->end - s->begin : 0;
    chance->bytes_taken += place >= VISIT_OCCUPIED ? s->end - s->begin : 0;
    if (place == VISIT_IN_USE) {
        chance->n_pages += (uint32_t)((lead + s->end + page - 1) / page - (lead + s->begin) / page);
    }
}

bool visit_look(little_program *p, const shadow_use *uses, uint32_t n_uses, shadow_block *block, visit_chance *chance)
{
    const np_pattern *pattern = p->device->pattern;
    const np_program *program;
    const np_program_event *event;
    uint32_t at;
    uint32_t life;
    uint64_t bytes;
    if (p->device->state != NEAP_STATE_RUN || !block->block || block->block->life == NP_NO_LIFE) {
        return false;
    }
    bytes = bytes_away(pattern, block->block->life);
    program = &pattern->program;
    at = p->device->cursor % (uint32_t)program->events.n;
    event = &program->events.items[at];
    life = block->block->life;
    if (event->kind != NEAP_EVENT_EXEC || bytes == 0) {
        return false;
    }
    *chance = (visit_chance){.block = block, .is_quiet = !has_copies(program, event)};
    for (uint32_t i = 0; i < n_uses; i++) {
        if (uses[i].block == block && uses[i].kind != SHADOW_READ) {
            return false;
        }
        chance->is_planned |= uses[i].block == block;
    }
    if (is_planned_for(program, event, life) && !chance->is_planned) {
        return false;
    }
    paint_all(pattern, event, uses, n_uses, life);
    for (uint32_t i = 0; i < program->swaps.n; i++) {
        if (program->swaps.items[i].life == life && pattern->is_out[i]) {
            look_at_part(p, i, at, chance);
        }
    }
    chance->n_free = count_free(p, life);
    chance->is_weight = program->lives.items[life].persistent;
    chance->is_partly_here = bytes < block->bytes;
    return true;
}

shadow_block *visit_candidate(little_program *p, uint32_t k)
{
    uint32_t n = p->options.n_layers;
    return k < n ? &p->weights[k] : k < 2 * n + 1 ? &p->acts[k - n] : k == 2 * n + 1 ? &p->gradient : NULL;
}

/* ---- a seeker ---- */

uint32_t visit_add(shadow_use *uses, uint32_t n_uses, shadow_block *block, shadow_kind kind)
{
    for (uint32_t i = 0; i < n_uses; i++) {
        if (uses[i].block == block) {
            uses[i].kind = kind;
            return n_uses;
        }
    }
    uses[n_uses] = (shadow_use){block, kind};
    return n_uses + 1;
}

static bool find(little_program *p, const shadow_use *uses, uint32_t n_uses, visit_chance *found)
{
    const visit_seeker *s = p->user;
    shadow_block *block;
    for (uint32_t k = 0; (block = visit_candidate(p, k)) != NULL; k++) {
        if (visit_look(p, uses, n_uses, block, found) && (!found->is_planned || s->kind != SHADOW_READ) &&
            (s->is_wanted ? s->is_wanted(p, found) : found->is_quiet && !found->is_planned)) {
            return true;
        }
    }
    return false;
}

static uint32_t seek_use(little_program *p, shadow_use *uses, uint32_t n_uses)
{
    visit_seeker *s = p->user;
    s->made.block = NULL;
    if (s->n_wanted > 0 && n_uses < SHADOW_USES && find(p, uses, n_uses, &s->made)) {
        s->n_wanted--;
        s->n_made++;
        s->stats = p->device->stats;
        s->n_maps = p->faulty ? faulty_n_calls(p->faulty, FAULTY_MAP) : 0;
        if (s->before) {
            s->before(p, &s->made);
        }
        return visit_add(uses, n_uses, s->made.block, s->kind);
    }
    s->made.block = NULL;
    return n_uses;
}

static void check_visit(little_program *p)
{
    visit_seeker *s = p->user;
    const visit_chance *made = &s->made;
    const neap_stats *now = &p->device->stats;
    uint64_t written = s->kind == SHADOW_READ ? 0 : made->bytes_there + made->bytes_empty + made->bytes_taken;
    uint64_t n_maps = (p->faulty ? faulty_n_calls(p->faulty, FAULTY_MAP) : 0) - s->n_maps;
    if (s->may_be_refused && now->n_departures > s->stats.n_departures) {
        ASSERT_EQ(now->n_departures, s->stats.n_departures + 1);
        ASSERT_EQ(now->n_visits, s->stats.n_visits);
        ASSERT_EQ(now->departures[NEAP_DEPARTURE_ABSENT], s->stats.departures[NEAP_DEPARTURE_ABSENT] + 1);
        s->n_refused++;
        return;
    }
    ASSERT_EQ(p->device->state, NEAP_STATE_RUN);
    ASSERT_EQ(now->n_departures, s->stats.n_departures);
    ASSERT_EQ(now->n_visits, s->stats.n_visits + 1);
    if (made->is_quiet && written > 0) { /* what was copied out is clean, and no more than that */
        const np_clean *clean = &made->block->block->clean;
        ASSERT_TRUE(np_clean_has(clean, clean->begin, clean->end) && clean->begin < clean->end);
        ASSERT_LE(clean->end - clean->begin, written);
    }
    if (made->is_quiet) {
        ASSERT_EQ(now->bytes_in - s->stats.bytes_in, made->bytes_empty + 2 * made->bytes_taken);
        ASSERT_EQ(now->bytes_out - s->stats.bytes_out, made->bytes_taken + written);
    }
    if (p->faulty) {
        ASSERT_EQ(n_maps > 0, made->place == VISIT_IN_USE);
    }
}

static void seen_event(little_program *p)
{
    visit_seeker *s = p->user;
    visit_chance made = s->made;
    if (made.block) {
        if (!s->after) {
            check_visit(p);
        }
        s->made.block = NULL; /* what `after` does is no visit */
        if (s->after) {
            s->after(p, &made);
        }
        ASSERT_TRUE(np_manager_is_valid(p->device));
    }
}

bool visit_seek(little_program *p, visit_seeker *seeker, uint32_t most)
{
    p->user = seeker;
    p->change_uses = seek_use;
    p->after_event = seen_event;
    for (uint32_t i = 0; i < most && seeker->n_wanted > 0; i++) {
        little_laps(p, 1);
    }
    p->change_uses = NULL;
    p->after_event = NULL;
    p->user = NULL;
    return seeker->n_wanted == 0;
}

void visit_start(little_program *p, const little_options *options)
{
    little_options o = *options;
    o.name = o.name ? o.name : "sim:page=4KiB,memory=64MiB,streams=2,link=4GB/s";
    o.device.limit_share = o.device.limit_share > 0 ? o.device.limit_share : 0.6;
    o.n_layers = o.n_layers ? o.n_layers : 10;
    o.weight_bytes = o.weight_bytes ? o.weight_bytes : 8 * (uint64_t)LITTLE_PAGE;
    o.is_faulty = true;
    little_start(p, &o);
    (void)little_run_until_plan(p, 20);
    np_beneath_begin(p->device, 0, 0);
    little_laps(p, 2);
    ASSERT_EQ(p->device->state, NEAP_STATE_RUN);
    ASSERT_TRUE(p->device->pattern->program.swaps.n > 0);
}
