#include "pool/search.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "pool/fit.h"
#include "pool/reorder.h"
#include "pool/skyline.h"

enum {
    N_LANES = 4, /* attempts of a round after the first; each keeps what it learned for the next */
    MAX_ATTEMPTS = 16,
    MAX_SKYLINE_WEIGHT = 1 << 21, /* words a lane */
    MANY_ITEMS = 4000,
    MANY_HOLES = 16,
    N_HOLE_FITS = 3,          /* of the first round: where there are so many */
    REORDERED_ITEMS = 200000, /* placed by one attempt, about */
    LEAST_NODES = 1000,
    FIRST_SKYLINE_ROUNDS = 3,
    ROUNDS_ON_WAY = 8,
};

#define FIRST_WAY 0.5
#define LAST_WAY 0.01

typedef enum attempt_kind { ATTEMPT_FIT, ATTEMPT_SKYLINE, ATTEMPT_REORDER } attempt_kind;

typedef struct attempt {
    attempt_kind kind;
    np_order order;
    np_fit_rule fit_rule;     /* ATTEMPT_FIT */
    np_skyline_rule sky_rule; /* ATTEMPT_SKYLINE */
    bool proves;              /* ATTEMPT_SKYLINE: a complete search */
    uint64_t capacity;        /* ATTEMPT_SKYLINE, ATTEMPT_REORDER: what to aim at */
    uint64_t max_nodes;
    double noise;       /* of the order, 0 to 1 */
    neap_status status; /* what came out */
    uint64_t height;    /* UINT64_MAX: nothing */
    bool impossible;    /* proved that the capacity is too small */
} attempt;

typedef struct lane {
    np_skyline *skyline;
    np_reorder reorder;
    bool has_reorder;
    uint64_t *offsets; /* what its last successful attempt found */
    double *preference;
    uint32_t *order;
    np_rng rng;
} lane;

struct np_search {
    const np_sections *sections;
    const np_part *part;
    np_search_options options;
    unsigned n_rounds; /* done so far */
    char found_by[48];
    uint64_t goal;
    uint64_t bound;
    uint64_t best; /* height; UINT64_MAX before the first */
    uint64_t *best_offsets;
    bool has_many_holes;
    double way; /* how far down from the best to the goal two of the lanes aim */
    unsigned n_rounds_on_way;
    unsigned first_skyline; /* lanes from here on search skylines, those before it reorder */
    attempt attempts[MAX_ATTEMPTS];
    unsigned n_attempts;
    lane lanes[MAX_ATTEMPTS];
    np_order best_orders[N_LANES];
    atomic_bool has_placement; /* some attempt has ended with one */
    atomic_uint first_success; /* the lowest attempt of the round that reached the goal; later ones stop */
};

typedef struct attempt_stop {
    np_search *search;
    unsigned index;
} attempt_stop;

static bool should_stop(void *user)
{
    const attempt_stop *stop = user;
    if (stop->index > atomic_load(&stop->search->first_success)) {
        return true;
    }
    /* Whatever the time, some attempt must come to its end: there must be a plan. */
    return atomic_load(&stop->search->has_placement) && np_clock_ns() > stop->search->options.deadline_ns;
}

/* ---- attempts ---- */

static uint64_t height_of(const np_search *s, const uint64_t *offsets)
{
    uint64_t height = 0;
    for (uint32_t i = 0; i < s->part->n_items; i++) {
        uint64_t end = offsets[i] + s->sections->items.items[s->part->first_item + i].size;
        height = end > height ? end : height;
    }
    return height;
}

static neap_status lane_scratch(const np_search *s, lane *own)
{
    const neap_memory *memory = s->sections->memory;
    size_t n = s->part->n_items;
    if (!own->offsets) {
        own->offsets = np_memory_alloc(memory, n, sizeof *own->offsets);
    }
    if (!own->order) {
        own->order = np_memory_alloc(memory, n, sizeof *own->order);
    }
    return own->offsets && own->order ? NEAP_OK : NEAP_NO_MEMORY;
}

static neap_status attempt_fit(np_search *s, attempt *try, lane *own, const np_stop *stop)
{
    np_occupied occupied;
    neap_status status = np_fit_order(s->sections, s->part, try->order, own->order);
    if (status == NEAP_OK) {
        status = np_occupied_init(&occupied, s->sections->memory, s->part->sections);
    }
    if (status != NEAP_OK) {
        return status;
    }
    status = np_fit_place(s->sections, s->part, own->order, try->fit_rule, stop, &occupied, own->offsets, &try->height);
    np_occupied_free(&occupied);
    return status;
}

/* Preferences from an order: what it goes by, disturbed by noise; ties by size. */
static neap_status prefer(const np_search *s, const attempt *try, lane *own)
{
    uint32_t n = s->part->n_items;
    double load = (double)s->part->load;
    neap_status status;
    if (!own->preference) {
        own->preference = np_memory_alloc(s->sections->memory, n, sizeof *own->preference);
        if (!own->preference) {
            return NEAP_NO_MEMORY;
        }
    }
    status = np_fit_ranks(s->sections, s->part, try->order, own->preference);
    for (uint32_t i = 0; i < n && status == NEAP_OK; i++) {
        double tie = (double)s->sections->items.items[s->part->first_item + i].size / load;
        double shift = try->noise * (np_rng_unit(&own->rng) - 0.5);
        own->preference[i] = (own->preference[i] + 0.001 * tie) * (1 + shift);
    }
    return status;
}

static neap_status attempt_skyline(np_search *s, attempt *try, lane *own, const np_stop *stop)
{
    np_skyline_query query = {.capacity = try->capacity, .rule = try->sky_rule, .leaps = !try->proves, .stop = stop};
    np_skyline_answer answer;
    neap_status status = NEAP_OK;
    if (!own->skyline) {
        status = np_skyline_create(s->sections, s->part, &own->skyline);
    }
    if (status == NEAP_OK) {
        status = prefer(s, try, own);
    }
    if (status != NEAP_OK) {
        return status;
    }
    query.preference = own->preference;
    query.max_nodes = try->max_nodes;
    status = np_skyline_search(own->skyline, &query, own->offsets, &answer);
    if (status == NEAP_OK && answer == NP_SKYLINE_PLACED) {
        try->height = height_of(s, own->offsets);
    }
    try->impossible = status == NEAP_OK && answer == NP_SKYLINE_IMPOSSIBLE;
    return status;
}

static neap_status attempt_reorder(np_search *s, attempt *try, lane *own, const np_stop *stop)
{
    uint32_t n_steps = REORDERED_ITEMS / s->part->n_items + 1;
    neap_status status = NEAP_OK;
    if (!own->has_reorder) {
        status = np_reorder_init(&own->reorder, s->sections, s->part, try->order, np_rng_next(&own->rng));
        own->has_reorder = status == NEAP_OK;
    }
    for (uint32_t i = 0; i < n_steps && status == NEAP_OK && try->height > try->capacity && !np_stop_asked(stop); i++) {
        uint64_t height;
        status = np_reorder_step(&own->reorder, try->capacity, stop, &height);
        if (status == NEAP_OK && height < try->height) {
            try->height = height;
            memcpy(own->offsets, own->reorder.offsets, s->part->n_items * sizeof *own->offsets);
        }
    }
    return status;
}

static void run_attempt(void *user, unsigned index)
{
    np_search *s = user;
    attempt *try = &s->attempts[index];
    lane *own = &s->lanes[index];
    attempt_stop stop_user = {s, index};
    np_stop stop = {should_stop, &stop_user};

    try->height = UINT64_MAX;
    try->impossible = false;
    if (should_stop(&stop_user)) {
        try->status = NEAP_OK;
        return;
    }
    try->status = lane_scratch(s, own);
    if (try->status == NEAP_OK) {
        switch (try->kind) {
        case ATTEMPT_FIT:
            try->status = attempt_fit(s, try, own, &stop);
            break;
        case ATTEMPT_SKYLINE:
            try->status = attempt_skyline(s, try, own, &stop);
            break;
        case ATTEMPT_REORDER:
            try->status = attempt_reorder(s, try, own, &stop);
            break;
        }
    }
    if (try->status == NEAP_OK && try->height != UINT64_MAX) {
        atomic_store(&s->has_placement, true);
    }
    if (try->status == NEAP_OK && try->height <= s->goal) {
        unsigned lowest = atomic_load(&s->first_success);
        while (index < lowest && !atomic_compare_exchange_weak(&s->first_success, &lowest, index)) {}
    }
}

/* ---- rounds ---- */

/* What is quick and often the best comes first: on a large part the others may not end in time. Where many buffers have
 * holes, blocks leave and return in their turn: as they come, each in the lowest bytes that are free when it is there,
 * they follow each other round. */
static void first_round(np_search *s)
{
    static const struct {
        np_order order;
        np_fit_rule rule;
    } fits[] = {
        {NP_ORDER_BEGIN, NP_FIT_FIRST},       {NP_ORDER_HOLES, NP_FIT_FIRST},       {NP_ORDER_END, NP_FIT_FIRST},
        {NP_ORDER_LOAD_LENGTH, NP_FIT_FIRST}, {NP_ORDER_SIZE, NP_FIT_FIRST},        {NP_ORDER_LOAD, NP_FIT_FIRST},
        {NP_ORDER_LENGTH, NP_FIT_FIRST},      {NP_ORDER_SIZE_LENGTH, NP_FIT_FIRST}, {NP_ORDER_AREA, NP_FIT_FIRST},
        {NP_ORDER_LENGTH_SIZE, NP_FIT_FIRST}, {NP_ORDER_SIZE, NP_FIT_BEST},         {NP_ORDER_BEGIN, NP_FIT_BEST},
    };
    unsigned first = s->has_many_holes ? 0 : N_HOLE_FITS;
    s->n_attempts = sizeof fits / sizeof *fits - first;
    for (unsigned i = 0; i < s->n_attempts; i++) {
        s->attempts[i] =
            (attempt){.kind = ATTEMPT_FIT, .order = fits[first + i].order, .fit_rule = fits[first + i].rule};
    }
}

/* 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ...: budgets for restarts when nothing is known of how long is needed. */
static uint64_t luby(uint64_t i)
{
    uint64_t k = 1;
    while (((uint64_t)1 << k) - 1 < i) {
        k++;
    }
    while (((uint64_t)1 << k) - 1 != i) {
        i -= ((uint64_t)1 << (k - 1)) - 1;
        for (k = 1; ((uint64_t)1 << k) - 1 < i; k++) {}
    }
    return (uint64_t)1 << (k - 1);
}

/* Below what was found, by a share of the way down to the goal. */
static uint64_t on_the_way(const np_search *s, double share)
{
    uint64_t step = (uint64_t)((double)(s->best - s->goal) * share);
    return s->best - (step > 0 ? step : 1);
}

/* The same aim is tried for some rounds, since what failed is remembered; then a nearer one. */
static void adjust_way(np_search *s, bool improved)
{
    s->n_rounds_on_way++;
    if (improved) {
        s->way = FIRST_WAY;
        s->n_rounds_on_way = 0;
    } else if (s->n_rounds_on_way == ROUNDS_ON_WAY) {
        s->way = s->way > LAST_WAY ? s->way / 2 : FIRST_WAY;
        s->n_rounds_on_way = 0;
    }
}

/* The rules and orders in turn that solve most in the first rounds; after those, anything goes. */
static attempt skyline_attempt(np_search *s, unsigned round, unsigned number)
{
    static const np_skyline_rule first_rules[N_LANES] = {NP_SKYLINE_LOWEST, NP_SKYLINE_FAILING, NP_SKYLINE_FEWEST,
                                                         NP_SKYLINE_TIGHTEST};
    static const np_skyline_rule rules[] = {NP_SKYLINE_FEWEST, NP_SKYLINE_FEWEST, NP_SKYLINE_LOWEST,
                                            NP_SKYLINE_TIGHTEST};
    static const np_skyline_rule later_rules[N_LANES] = {NP_SKYLINE_LOWEST, NP_SKYLINE_FAILING, NP_SKYLINE_FEWEST,
                                                         NP_SKYLINE_FAILING};
    static const np_order orders[] = {NP_ORDER_LENGTH, NP_ORDER_AREA, NP_ORDER_SIZE};
    np_rng *rng = &s->lanes[number].rng;
    uint64_t least = 2 * (uint64_t)s->part->n_items;
    attempt try = {.kind = ATTEMPT_SKYLINE, .capacity = s->goal};

    try.max_nodes = (least > LEAST_NODES ? least : LEAST_NODES) * luby(round);
    if (round <= FIRST_SKYLINE_ROUNDS) {
        try.sky_rule = first_rules[number];
        try.order = orders[(number + round - 1) % 3];
        try.noise = round == 1 ? 0 : 0.3;
        if (number == 0) {
            try.order = NP_ORDER_LENGTH;
        }
    } else {
        try.sky_rule = number == 0 ? rules[np_rng_below(rng, 4)] : later_rules[number];
        try.order = orders[np_rng_below(rng, 3)];
        try.noise = 0.1 + 0.8 * np_rng_unit(rng);
    }
    if (number == N_LANES - 1) { /* proves now and then, and goes down in smaller steps */
        try.proves = round % 4 == 1;
        try.capacity = try.proves ? s->best - 1 : on_the_way(s, s->way / 2);
    } else if (number == N_LANES - 2 && round > FIRST_SKYLINE_ROUNDS && round % 2 == 0) {
        try.capacity = on_the_way(s, s->way);
    }
    return try;
}

static void later_round(np_search *s, unsigned round)
{
    s->n_attempts = N_LANES;
    for (unsigned i = 0; i < N_LANES; i++) {
        if (i >= s->first_skyline) {
            s->attempts[i] = skyline_attempt(s, round, i);
        } else {
            s->attempts[i] = (attempt){.kind = ATTEMPT_REORDER, .order = s->best_orders[i], .capacity = s->goal};
        }
    }
}

/* The orders whose first-fits came out lowest: reordering starts from them. */
static void rank_orders(np_search *s)
{
    bool taken[MAX_ATTEMPTS] = {false};
    for (unsigned rank = 0; rank < N_LANES; rank++) {
        unsigned lowest = MAX_ATTEMPTS;
        for (unsigned i = 0; i < s->n_attempts; i++) {
            if (!taken[i] && s->attempts[i].fit_rule == NP_FIT_FIRST &&
                (lowest == MAX_ATTEMPTS || s->attempts[i].height < s->attempts[lowest].height)) {
                lowest = i;
            }
        }
        taken[lowest] = true;
        s->best_orders[rank] = s->attempts[lowest].order;
    }
}

static void name_attempt(const attempt *try, char *name, size_t n)
{
    static const char *const rules[] = {"fewest", "lowest", "tightest", "failing"};
    switch (try->kind) {
    case ATTEMPT_FIT:
        (void)snprintf(name, n, "%s-fit by %s", try->fit_rule == NP_FIT_FIRST ? "first" : "best",
                       np_order_name(try->order));
        break;
    case ATTEMPT_SKYLINE:
        (void)snprintf(name, n, "skyline, %s, by %s", rules[try->sky_rule], np_order_name(try->order));
        break;
    case ATTEMPT_REORDER:
        (void)snprintf(name, n, "reordered first-fit by %s", np_order_name(try->order));
        break;
    }
}

/* Takes what the round brought, lowest attempts first. */
static neap_status finish_round(np_search *s)
{
    for (unsigned i = 0; i < s->n_attempts; i++) {
        const attempt *try = &s->attempts[i];
        if (try->status != NEAP_OK) {
            return try->status;
        }
        if (try->impossible && try->capacity + 1 > s->bound) {
            s->bound = try->capacity + 1;
            s->goal = s->bound > s->goal ? s->bound : s->goal;
        }
        if (try->height < s->best) {
            s->best = try->height;
            memcpy(s->best_offsets, s->lanes[i].offsets, s->part->n_items * sizeof *s->best_offsets);
            name_attempt(try, s->found_by, sizeof s->found_by);
        }
        if (i == atomic_load(&s->first_success)) {
            break; /* what came after it was cut short, or would have been */
        }
    }
    return NEAP_OK;
}

static void free_lanes(np_search *s)
{
    const neap_memory *memory = s->sections->memory;
    size_t n = s->part->n_items;
    for (unsigned i = 0; i < MAX_ATTEMPTS; i++) {
        lane *own = &s->lanes[i];
        np_skyline_free(own->skyline);
        if (own->has_reorder) {
            np_reorder_free(&own->reorder);
        }
        np_memory_free(memory, own->offsets, n, sizeof *own->offsets);
        np_memory_free(memory, own->preference, n, sizeof *own->preference);
        np_memory_free(memory, own->order, n, sizeof *own->order);
        *own = (lane){.rng = own->rng};
    }
}

neap_status np_search_round(np_search *s)
{
    uint64_t best_before = s->best;
    neap_status status;
    atomic_store(&s->first_success, MAX_ATTEMPTS);
    if (s->n_rounds == 0) {
        first_round(s);
    } else {
        later_round(s, s->n_rounds);
    }
    np_parallel_for(s->options.n_threads, s->n_attempts, run_attempt, s);
    status = finish_round(s);
    if (status != NEAP_OK) {
        return status;
    }
    if (s->n_rounds == 0) {
        rank_orders(s);
        free_lanes(s); /* later rounds have fewer, and many searches never get there */
    }
    adjust_way(s, s->best < best_before);
    s->n_rounds++;
    return NEAP_OK;
}

static bool has_aligned(const np_sections *sections, const np_part *part)
{
    for (uint32_t i = 0; i < part->n_items; i++) {
        if (sections->items.items[part->first_item + i].align > 1) {
            return true;
        }
    }
    return false;
}

static bool has_many_holes(const np_sections *sections, const np_part *part)
{
    uint32_t n_holed = 0;
    for (uint32_t i = 0; i < part->n_items; i++) {
        n_holed += sections->items.items[part->first_item + i].n_ranges > 1;
    }
    return n_holed > MANY_HOLES;
}

neap_status np_search_create(const np_sections *sections, const np_part *part, const np_search_options *options,
                             uint64_t *offsets, np_search **search)
{
    np_search *s = np_memory_alloc_zero(sections->memory, 1, sizeof *s);
    if (!s) {
        return NEAP_NO_MEMORY;
    }
    s->sections = sections;
    s->part = part;
    s->options = *options;
    s->best = UINT64_MAX;
    s->best_offsets = offsets;
    s->way = FIRST_WAY;
    s->bound = part->load;
    s->goal = options->goal > part->load ? options->goal : part->load;
    s->has_many_holes = has_many_holes(sections, part);
    if (np_skyline_weight(sections, part) > MAX_SKYLINE_WEIGHT || has_aligned(sections, part)) {
        s->first_skyline = N_LANES;
    } else if (part->n_items > MANY_ITEMS || s->has_many_holes) {
        /* A skyline costs more and more, and gets lost among holes; reordering goes first and is waited for. */
        s->first_skyline = N_LANES / 2;
    }
    for (unsigned i = 0; i < MAX_ATTEMPTS; i++) {
        s->lanes[i].rng = np_rng_make(options->seed * MAX_ATTEMPTS + i);
    }
    *search = s;
    return NEAP_OK;
}

void np_search_free(np_search *search)
{
    if (search) {
        free_lanes(search);
        np_memory_free(search->sections->memory, search, 1, sizeof *search);
    }
}

uint64_t np_search_height(const np_search *search)
{
    return search->best;
}

uint64_t np_search_bound(const np_search *search)
{
    return search->bound;
}

bool np_search_is_done(const np_search *search)
{
    return search->best <= search->goal;
}

const char *np_search_found_by(const np_search *search)
{
    return search->found_by;
}
