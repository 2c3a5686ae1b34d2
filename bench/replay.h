/* replay.h: the period of a recorded training loop as a program: its mallocs, frees and execs, again and again.
 *
 * All sizes can be divided by one number. Mallocs that leak are left out. Beneath a program (run/beneath.c) blocks below
 * `side_below` stand aside, as the hook has it (hook/blocks.c). */
#ifndef NEAP_BENCH_REPLAY_H
#define NEAP_BENCH_REPLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "neap.h"
#include "run/manager.h"
#include "trace/period.h"

/* A block, or what stands aside. */
typedef struct replay_block {
    neap_block *block;
    char *aside;
} replay_block;

/* A life's blocks: the one malloc'd in lap k stands at k modulo n. */
typedef struct replay_place {
    replay_block *blocks;
    uint32_t n;
} replay_place;

typedef struct replay {
    char name[64];
    neap_trace *trace;
    np_period period;
    uint64_t peak_load;
    uint64_t divisor;
    double period_ns;     /* of all execs, one after the other */
    uint32_t *life_of;    /* by time: the life that is malloc'd or freed then; NEAP_NEVER: none, or it leaks */
    replay_place *places; /* by life */
    uint64_t side_below;  /* 0: nothing stands aside */
    neap_use *uses;       /* of an exec */
    neap_device *device;  /* while it runs */
    int64_t lap;
} replay;

static replay_block *block_at(const replay *r, uint32_t life, int64_t lap)
{
    const replay_place *p = &r->places[life];
    return &p->blocks[((lap % p->n) + p->n) % p->n];
}

static bool read_replay(const char *path, replay *r)
{
    neap_error error = {""};
    neap_info *info;
    (void)snprintf(r->name, sizeof r->name, "%.*s", (int)strcspn(bench_name(path), "."), bench_name(path));
    if (neap_trace_read(path, NULL, &error, &r->trace) != NEAP_OK ||
        neap_info_make(r->trace, 0, NULL, &error, &info) != NEAP_OK) {
        (void)fprintf(stderr, "%s: %s\n", path, error.text);
        return false;
    }
    r->peak_load = info->peak_load;
    neap_info_free(info);
    if (np_period_find(r->trace, np_memory_or_default(NULL), &r->period) != NEAP_OK || r->period.length == 0) {
        (void)fprintf(stderr, "%s: no period\n", path);
        return false;
    }
    return true;
}

/* `most`: bytes of load of the program as it is run. */
static void replay_make(replay *r, uint64_t most)
{
    const np_period *period = &r->period;
    size_t most_uses = 0;
    r->life_of = bench_allocate(period->length, sizeof *r->life_of);
    r->places = bench_allocate(period->lives.n, sizeof *r->places);
    for (r->divisor = 1; r->peak_load / r->divisor > most;) {
        r->divisor *= 2;
    }
    for (uint32_t t = 0; t < period->length; t++) {
        const neap_event *event = &r->trace->events.items[period->origin + t];
        size_t n_uses = period->access_at.items[t + 1] - period->access_at.items[t];
        r->life_of[t] = NEAP_NEVER;
        r->period_ns += event->kind == NEAP_EVENT_EXEC ? (double)event->duration_ns : 0;
        most_uses = n_uses > most_uses ? n_uses : most_uses;
    }
    for (uint32_t i = 0; i < period->lives.n; i++) {
        const np_life *life = &period->lives.items[i];
        r->places[i].n = life->persistent ? 1 : life->end / period->length + 1;
        r->places[i].blocks = bench_allocate(r->places[i].n, sizeof *r->places[i].blocks);
        if (!life->persistent) {
            r->life_of[life->begin] = i;
            r->life_of[life->end % period->length] = i;
        }
    }
    r->uses = bench_allocate(most_uses, sizeof *r->uses);
}

static void replay_free(replay *r)
{
    for (size_t i = 0; i < r->period.lives.n; i++) {
        free(r->places[i].blocks);
    }
    free(r->places);
    free(r->life_of);
    free(r->uses);
    np_period_free(&r->period);
    neap_trace_free(r->trace);
}

/* ---- running it ---- */

static neap_status malloc_life(replay *r, uint32_t life, int64_t lap)
{
    uint64_t bytes = r->trace->blocks.items[r->period.lives.items[life].block].bytes / r->divisor;
    replay_block *block = block_at(r, life, lap);
    if (bytes < r->side_below) {
        return np_side_malloc(r->device, bytes > 0 ? bytes : 1, 0, &block->aside);
    }
    return neap_malloc(r->device, bytes > 0 ? bytes : 1, &block->block);
}

static neap_status free_life(replay *r, uint32_t life, int64_t lap)
{
    replay_block *block = block_at(r, life, lap);
    neap_status status = block->aside ? np_side_free(r->device, block->aside, 0) : neap_free(r->device, block->block);
    *block = (replay_block){0};
    return status;
}

static const neap_trace *sorted_trace;
static const np_period *sorted_period;

static uint64_t id_of_life(uint32_t life)
{
    return sorted_trace->blocks.items[sorted_period->lives.items[life].block].id;
}

static int compare_ids(const void *left, const void *right)
{
    uint64_t a = id_of_life(*(const uint32_t *)left);
    uint64_t b = id_of_life(*(const uint32_t *)right);
    return a < b ? -1 : a > b;
}

/* What is live when a period begins, in the order in which it was malloc'd. */
static bool begin_replay(replay *r)
{
    neap_status status = NEAP_OK;
    uint32_t *order = bench_allocate(r->period.lives.n, sizeof *order);
    for (uint32_t i = 0; i < r->period.lives.n; i++) {
        order[i] = i;
    }
    sorted_trace = r->trace;
    sorted_period = &r->period;
    qsort(order, r->period.lives.n, sizeof *order, compare_ids);
    for (uint32_t i = 0; i < r->period.lives.n; i++) {
        const np_life *life = &r->period.lives.items[order[i]];
        int64_t n_before = life->persistent ? 1 : life->end / r->period.length;
        for (int64_t lap = -n_before; lap < 0 && status == NEAP_OK; lap++) {
            status = malloc_life(r, order[i], lap);
        }
    }
    free(order);
    r->lap = 0;
    return status == NEAP_OK;
}

static neap_status exec_at(replay *r, uint32_t t, const neap_event *event)
{
    const np_period *period = &r->period;
    size_t n = 0;
    for (uint32_t i = period->access_at.items[t]; i < period->access_at.items[t + 1]; i++) {
        const neap_access *access = &period->accesses.items[i];
        const np_life *life = &period->lives.items[access->block];
        int64_t lap = life->persistent || life->begin > t ? r->lap - 1 : r->lap; /* the youngest */
        neap_block *block = block_at(r, access->block, lap)->block;
        if (block) {
            r->uses[n++] = (neap_use){.block = block, .kind = access->kind};
        }
    }
    neap_work work = {.name = neap_trace_exec_name(r->trace, event->subject), .duration_ns = event->duration_ns};
    return neap_exec(r->device, &work, r->uses, n);
}

static bool run_lap(void *user)
{
    replay *r = user;
    neap_status status = NEAP_OK;
    for (uint32_t t = 0; t < r->period.length && status == NEAP_OK; t++) {
        const neap_event *event = &r->trace->events.items[r->period.origin + t];
        uint32_t life = r->life_of[t];
        if (event->kind == NEAP_EVENT_EXEC) {
            status = exec_at(r, t, event);
        } else if (life != NEAP_NEVER && event->kind == NEAP_EVENT_MALLOC) {
            status = malloc_life(r, life, r->lap);
        } else if (life != NEAP_NEVER) {
            int64_t lap = r->lap - r->period.lives.items[life].end / r->period.length;
            status = free_life(r, life, lap);
        }
    }
    r->lap++;
    return status == NEAP_OK;
}

#endif
