#include "run/shadow.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "run/stray.h"

enum { UNIT = 512, WORD = 8, MAX_TRIES = 400 };

/* ---- the report ---- */

void shadow_report_init(shadow_report *report, bool all_words)
{
    *report = (shadow_report){.all_words = all_words};
    (void)pthread_mutex_init(&report->lock, NULL);
}

void shadow_report_free(shadow_report *report)
{
    (void)pthread_mutex_destroy(&report->lock);
}

void shadow_say(shadow_report *report, const char *format, ...)
{
    (void)pthread_mutex_lock(&report->lock);
    if (!atomic_load(&report->is_bad)) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(report->text, sizeof report->text, format, args);
        va_end(args);
        atomic_store(&report->is_bad, true);
    }
    (void)pthread_mutex_unlock(&report->lock);
}

/* ---- contents ---- */

static uint64_t word_of(uint32_t serial, uint32_t version, uint64_t index)
{
    return np_mix64((uint64_t)serial << 32 | version) + index * 0x9e3779b97f4a7c15u;
}

/* Where the second half begins. */
static uint64_t split_of(uint64_t bytes)
{
    return bytes / 2 / WORD * WORD;
}

/* The next word that counts after the one at `at`: all do, or the first and last of each unit. */
static uint64_t next_word(uint64_t at, bool all_words)
{
    return all_words ? at + WORD : at % UNIT == UNIT - WORD ? at + WORD : at + (UNIT - WORD) - at % UNIT;
}

static uint64_t first_word(uint64_t begin, bool all_words)
{
    return all_words || begin % UNIT == 0 || begin % UNIT == UNIT - WORD ? begin : next_word(begin, false);
}

/* Bytes [begin, end) of a block at `data`, which need not hold whole words. */
static void write_bytes(unsigned char *data, uint64_t begin, uint64_t end, uint32_t serial, uint32_t version,
                        bool all_words)
{
    for (uint64_t at = first_word(begin, all_words); at < end; at = next_word(at, all_words)) {
        uint64_t word = word_of(serial, version, at / WORD);
        memcpy(data + at, &word, end - at < WORD ? end - at : WORD);
    }
}

/* Where it differs; `end` where it does not. */
static uint64_t find_difference(const unsigned char *data, uint64_t begin, uint64_t end, uint32_t serial,
                                uint32_t version, bool all_words, uint64_t *found)
{
    for (uint64_t at = first_word(begin, all_words); at < end; at = next_word(at, all_words)) {
        uint64_t word = word_of(serial, version, at / WORD);
        uint64_t is = 0;
        if (end - at >= WORD) {
            memcpy(&is, data + at, WORD);
        } else { /* the first bytes of a word: the others count as they should be */
            is = word;
            memcpy(&is, data + at, end - at);
        }
        if (is != word) {
            *found = is;
            return at;
        }
    }
    return end;
}

/* ---- the work ---- */

typedef struct task_use {
    unsigned char *data;
    uint64_t bytes;
    uint32_t serial;
    uint32_t expected[2]; /* 0: anything */
    uint32_t next[2];     /* 0: not written */
} task_use;

typedef struct task {
    shadow_report *report;
    uint64_t number; /* of the stream's work */
    uint32_t stream;
    uint32_t n_uses;
    task_use uses[SHADOW_USES];
} task;

_Static_assert(sizeof(task) <= NEAP_ARG_MAX, "a task is an argument");

/* Which version of this block would have that word there? For the text only. */
static uint32_t guess_version(uint32_t serial, uint64_t at, uint64_t found)
{
    for (uint32_t version = 1; version < 5000; version++) {
        if (word_of(serial, version, at / WORD) == found) {
            return version;
        }
    }
    return 0;
}

static void check_half(const task *t, const task_use *use, int half, uint64_t begin, uint64_t end)
{
    uint64_t found;
    uint64_t at =
        find_difference(use->data, begin, end, use->serial, use->expected[half], t->report->all_words, &found);
    if (at < end) {
        shadow_say(
            t->report,
            "work %llu of stream %u: byte %llu of block %u (%llu bytes at %p) should be of version %u and is %llx "
            "(version %u of it, 0: of none)",
            (unsigned long long)t->number, t->stream, (unsigned long long)at, use->serial,
            (unsigned long long)use->bytes, (void *)use->data, use->expected[half], (unsigned long long)found,
            guess_version(use->serial, at, found));
    }
}

static void run_task(void *arg)
{
    const task *t = arg;
    for (uint32_t i = 0; i < t->n_uses; i++) {
        const task_use *use = &t->uses[i];
        uint64_t bounds[3] = {0, split_of(use->bytes), use->bytes};
        for (int half = 0; half < 2; half++) {
            if (use->expected[half] != 0) {
                check_half(t, use, half, bounds[half], bounds[half + 1]);
            }
            if (use->next[half] != 0) {
                write_bytes(use->data, bounds[half], bounds[half + 1], use->serial, use->next[half],
                            t->report->all_words);
            }
        }
    }
}

/* ---- order ---- */

void shadow_streams_init(shadow_streams *streams, neap_device *device, shadow_report *report, uint32_t n_streams,
                         uint32_t first_serial)
{
    *streams =
        (shadow_streams){.device = device, .report = report, .n_streams = n_streams, .next_serial = first_serial};
}

static bool tries_again(shadow_streams *streams, neap_status status, int *n_tries)
{
    return status != NEAP_OK && streams->retry && ++*n_tries < MAX_TRIES &&
           streams->retry(streams->retry_user, status) == NEAP_OK;
}

neap_status shadow_wait(shadow_streams *streams, unsigned stream, unsigned other)
{
    neap_status status;
    int n_tries = 0;
    do {
        status = neap_stream_wait(streams->device, stream, other);
    } while (tries_again(streams, status, &n_tries));
    if (status == NEAP_OK && stream != other) {
        for (uint32_t s = 0; s < streams->n_streams; s++) {
            uint64_t known = streams->work_knows[other][s];
            streams->known[stream][s] = known > streams->known[stream][s] ? known : streams->known[stream][s];
        }
        streams->known[stream][other] = streams->n_given[other];
    }
    return status;
}

static neap_status wait_for_block(shadow_streams *streams, const shadow_block *block, unsigned stream, bool writes)
{
    neap_status status = NEAP_OK;
    for (uint32_t other = 0; other < streams->n_streams && status == NEAP_OK; other++) {
        uint64_t needed = writes ? block->last_use[other] : block->last_write[other];
        if (other != stream && needed > streams->known[stream][other]) {
            status = shadow_wait(streams, stream, other);
        }
    }
    return status;
}

neap_status shadow_sync(shadow_streams *streams)
{
    neap_status status = neap_sync(streams->device);
    for (uint32_t a = 0; a < streams->n_streams && status == NEAP_OK; a++) {
        for (uint32_t b = 0; b < streams->n_streams; b++) {
            streams->known[a][b] = streams->n_given[b];
        }
    }
    return status;
}

static void note_work(shadow_streams *streams, unsigned stream)
{
    streams->n_given[stream]++;
    memcpy(streams->work_knows[stream], streams->known[stream], sizeof streams->known[stream]);
}

static void note_use(shadow_streams *streams, shadow_block *block, unsigned stream, bool writes)
{
    block->last_use[stream] = streams->n_given[stream];
    if (writes) {
        block->last_write[stream] = streams->n_given[stream];
    }
}

/* ---- what a program does ---- */

neap_status shadow_malloc(shadow_streams *streams, uint64_t bytes, shadow_block *block)
{
    neap_block *made;
    neap_status status;
    int n_tries = 0;
    do {
        status = neap_malloc(streams->device, bytes, &made);
    } while (tries_again(streams, status, &n_tries));
    if (status == NEAP_OK) {
        *block = (shadow_block){.block = made, .bytes = bytes, .serial = streams->next_serial++};
        if ((uintptr_t)neap_data(made) % UNIT != 0 || neap_block_bytes(made) != bytes) {
            shadow_say(streams->report, "block %u of %llu bytes is at %p and has %llu", block->serial,
                       (unsigned long long)bytes, neap_data(made), (unsigned long long)neap_block_bytes(made));
        }
    }
    return status;
}

neap_status shadow_free(shadow_streams *streams, shadow_block *block)
{
    neap_status status = neap_free(streams->device, block->block);
    block->block = NULL;
    return status;
}

static neap_access_kind access_of(shadow_kind kind)
{
    return kind == SHADOW_READ ? NEAP_ACCESS_READ : kind == SHADOW_WRITE ? NEAP_ACCESS_WRITE : NEAP_ACCESS_UNKNOWN;
}

static bool writes(shadow_kind kind)
{
    return kind != SHADOW_READ && kind != SHADOW_UNSEEN;
}

/* The versions before and after a use. */
static void plan_use(const shadow_use *use, task_use *planned)
{
    const shadow_block *block = use->block;
    uint32_t newest = block->versions[0] > block->versions[1] ? block->versions[0] : block->versions[1];
    bool is_second = (newest & 1) != 0; /* the half that SHADOW_PART writes */
    *planned = (task_use){.data = neap_data(block->block), .bytes = block->bytes, .serial = block->serial};
    for (int half = 0; half < 2; half++) {
        bool is_new = use->kind == SHADOW_WRITE || use->kind == SHADOW_UPDATE ||
                      (use->kind == SHADOW_PART && is_second == (half == 1));
        planned->expected[half] = use->kind == SHADOW_WRITE ? 0 : block->versions[half];
        planned->next[half] = is_new ? newest + 1 : 0;
    }
}

static void keep_versions(shadow_block *block, const uint32_t next[2])
{
    for (int half = 0; half < 2; half++) {
        block->versions[half] = next[half] ? next[half] : block->versions[half];
    }
}

/* As neap_exec, for what the hook takes for strays. */
static neap_status exec_stray(neap_device *device, const neap_work *work, const neap_use *uses, size_t n_uses)
{
    np_given given;
    uint64_t mark;
    neap_status status;
    (void)pthread_mutex_lock(&device->lock);
    status = np_stray_ready(device, work, uses, n_uses, &given);
    if (status == NEAP_OK) {
        status = np_launch(device, &given, &mark);
    }
    if (status == NEAP_OK) {
        np_exec_given(device, &given, mark);
    }
    (void)pthread_mutex_unlock(&device->lock);
    return status;
}

typedef neap_status (*exec_function)(neap_device *device, const neap_work *work, const neap_use *uses, size_t n_uses);

static neap_status exec_by(exec_function function, shadow_streams *streams, const char *name, unsigned stream,
                           uint64_t duration_ns, const shadow_use *uses, uint32_t n_uses)
{
    task t = {.report = streams->report, .number = streams->n_given[stream] + 1, .stream = stream, .n_uses = n_uses};
    neap_work work = {
        .name = name, .stream = stream, .run = run_task, .arg = &t, .arg_bytes = sizeof t, .duration_ns = duration_ns};
    neap_use given[SHADOW_USES];
    uint32_t before[SHADOW_USES][2];
    uint32_t n_given = 0;
    neap_status status = NEAP_OK;
    int n_tries = 0;
    for (uint32_t i = 0; i < n_uses && status == NEAP_OK; i++) {
        status = wait_for_block(streams, uses[i].block, stream, writes(uses[i].kind));
    }
    if (status != NEAP_OK) {
        return status;
    }
    for (uint32_t i = 0; i < n_uses; i++) {
        if (uses[i].kind != SHADOW_UNSEEN) {
            given[n_given++] = (neap_use){.block = uses[i].block->block, .kind = access_of(uses[i].kind)};
        }
        memcpy(before[i], uses[i].block->versions, sizeof before[i]);
        plan_use(&uses[i], &t.uses[i]);
        keep_versions(uses[i].block, t.uses[i].next);
    }
    do {
        status = function(streams->device, &work, given, n_given);
    } while (tries_again(streams, status, &n_tries));
    if (status != NEAP_OK) { /* as if it had not been asked for */
        for (uint32_t i = n_uses; i-- > 0;) {
            memcpy(uses[i].block->versions, before[i], sizeof before[i]);
        }
        return status;
    }
    note_work(streams, stream);
    for (uint32_t i = 0; i < n_uses; i++) {
        note_use(streams, uses[i].block, stream, writes(uses[i].kind));
    }
    return NEAP_OK;
}

neap_status shadow_exec(shadow_streams *streams, const char *name, unsigned stream, uint64_t duration_ns,
                        const shadow_use *uses, uint32_t n_uses)
{
    return exec_by(neap_exec, streams, name, stream, duration_ns, uses, n_uses);
}

neap_status shadow_stray(shadow_streams *streams, const char *name, unsigned stream, uint64_t duration_ns,
                         const shadow_use *use)
{
    return exec_by(exec_stray, streams, name, stream, duration_ns, use, 1);
}

neap_status shadow_host_write(shadow_streams *streams, shadow_block *block, bool is_whole)
{
    uint64_t split = split_of(block->bytes);
    shadow_use use = {.block = block, .kind = is_whole || split == 0 ? SHADOW_WRITE : SHADOW_PART};
    unsigned char *bytes = calloc(block->bytes, 1);
    neap_status status = bytes ? wait_for_block(streams, block, 0, true) : NEAP_NO_MEMORY;
    int n_tries = 0;
    if (status == NEAP_OK) {
        task_use planned;
        uint64_t begin;
        uint64_t end;
        plan_use(&use, &planned);
        begin = planned.next[0] ? 0 : split;
        end = planned.next[1] ? block->bytes : split;
        write_bytes(bytes, 0, split, block->serial, planned.next[0], streams->report->all_words);
        write_bytes(bytes, split, block->bytes, block->serial, planned.next[1], streams->report->all_words);
        do {
            status = neap_write(streams->device, block->block, begin, bytes + begin, end - begin);
        } while (tries_again(streams, status, &n_tries));
        if (status == NEAP_OK) {
            keep_versions(block, planned.next);
            note_work(streams, 0);
            note_use(streams, block, 0, true);
        }
    }
    free(bytes);
    return status;
}

neap_status shadow_host_read(shadow_streams *streams, const shadow_block *block, uint64_t offset, uint64_t n_bytes)
{
    unsigned char *bytes = malloc(block->bytes);
    neap_status status = bytes ? wait_for_block(streams, block, 0, false) : NEAP_NO_MEMORY;
    int n_tries = 0;
    if (status == NEAP_OK) {
        do {
            status = neap_read(streams->device, block->block, offset, bytes + offset, n_bytes);
        } while (tries_again(streams, status, &n_tries));
    }
    if (status == NEAP_OK) {
        task t = {.report = streams->report, .number = streams->n_given[0], .stream = 0};
        task_use use = {.data = bytes,
                        .bytes = block->bytes,
                        .serial = block->serial,
                        .expected = {block->versions[0], block->versions[1]}};
        uint64_t bounds[3] = {0, split_of(block->bytes), block->bytes};
        for (int half = 0; half < 2; half++) {
            uint64_t begin = bounds[half] > offset ? bounds[half] : offset;
            uint64_t end = bounds[half + 1] < offset + n_bytes ? bounds[half + 1] : offset + n_bytes;
            if (use.expected[half] != 0 && begin < end) {
                check_half(&t, &use, half, (begin + WORD - 1) / WORD * WORD, end);
            }
        }
    }
    free(bytes);
    return status;
}
