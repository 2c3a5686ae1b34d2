/* pickle.c: a pickle as a program for a stack machine, run with its teeth drawn.
 *
 * This file has the loop and the memory; pickle_opcodes.c what each opcode does. Values are 16 bytes and name texts and
 * objects by index, so that objects which appear twice, or contain themselves, need no care when they are freed.
 *
 * Memory is counted by a hook before the caller's own: whatever a file does, no more than the bound is held. */
#include "trace/pickle.h"

#include <stdio.h>

#include "base/status.h"
#include "trace/pickle_machine.h"

enum { PROTO = 0x80, PROTOCOL_MIN = 2, PROTOCOL_MAX = 5 };

/* Host memory with a bound. */
typedef struct budget {
    neap_memory hook;
    const neap_memory *from;
    uint64_t held;
    uint64_t most;
    bool is_exceeded;
} budget;

/* The hook lives as long as what was allocated through it. */
typedef struct owned_pickle {
    np_pickle pickle; /* first: what the caller sees */
    budget budget;
} owned_pickle;

static void *resize_within(void *user, void *block, size_t old_bytes, size_t new_bytes)
{
    budget *b = user;
    void *resized;
    if (new_bytes > old_bytes && new_bytes - old_bytes > b->most - b->held) {
        b->is_exceeded = true;
        return NULL;
    }
    resized = b->from->resize(b->from->user, block, old_bytes, new_bytes);
    if (resized || new_bytes == 0) {
        b->held = b->held - old_bytes + new_bytes;
    }
    return resized;
}

/* ---------------------------------------------------------------- running ---- */

neap_status np_pickle_fail(const np_pickle_machine *m, neap_status status, const char *text)
{
    return np_fail(m->error, status, "%s: byte %llu: %s%s%s", np_pickle_input_name(m->input),
                   (unsigned long long)m->op_at, m->op ? m->op->name : "", m->op ? ": " : "", text);
}

/* Every pickle of protocol 2 or later begins with its number. */
static neap_status run_head(np_pickle_machine *m)
{
    unsigned char head[2];
    char text[80];
    neap_status status = np_pickle_input_take(m->input, m->error, head, 1);
    if (status != NEAP_OK) {
        return status;
    }
    if (head[0] != PROTO) {
        (void)snprintf(text, sizeof text, "expected a pickle of protocol 2 to 5, found byte 0x%02x", head[0]);
        return np_pickle_fail(m, NEAP_BAD_INPUT, text);
    }
    status = np_pickle_input_take(m->input, m->error, head + 1, 1);
    if (status == NEAP_OK && (head[1] < PROTOCOL_MIN || head[1] > PROTOCOL_MAX)) {
        (void)snprintf(text, sizeof text, "expected pickle protocol 2 to 5, found %u", head[1]);
        return np_pickle_fail(m, NEAP_BAD_INPUT, text);
    }
    return status;
}

static neap_status run_opcode(np_pickle_machine *m)
{
    unsigned char code;
    char text[80];
    neap_status status;
    m->op = NULL;
    m->op_at = np_pickle_input_at(m->input);
    status = np_pickle_input_take(m->input, m->error, &code, 1);
    if (status != NEAP_OK) {
        return status;
    }
    if (!np_pickle_opcodes[code].name) {
        (void)snprintf(text, sizeof text, "expected an opcode, found byte 0x%02x", code);
        return np_pickle_fail(m, NEAP_BAD_INPUT, text);
    }
    m->op = &np_pickle_opcodes[code];
    return m->op->run ? m->op->run(m, m->op) : np_pickle_fail(m, NEAP_BAD_INPUT, m->op->refusal);
}

static neap_status run(np_pickle_machine *m)
{
    neap_status status = run_head(m);
    while (status == NEAP_OK && !m->is_stopped) {
        status = run_opcode(m);
    }
    return status == NEAP_OK ? np_pickle_input_finish(m->input, m->error) : status;
}

/* ---------------------------------------------------------------- making and freeing ---- */

void np_pickle_free(np_pickle *pickle)
{
    owned_pickle *owned = (owned_pickle *)(void *)pickle;
    if (!pickle) {
        return;
    }
    for (size_t i = 0; i < pickle->objects.n; i++) {
        np_pickle_object *object = &pickle->objects.items[i];
        if (object->items) {
            (void)pickle->memory->resize(pickle->memory->user, object->items, object->capacity * sizeof *object->items,
                                         0);
        }
    }
    np_array_free(pickle->memory, &pickle->objects);
    np_array_free(pickle->memory, &pickle->texts);
    np_array_free(pickle->memory, &pickle->chars);
    np_memory_free(owned->budget.from, owned, 1, sizeof *owned);
}

/* A failure of the hook is one of memory, or of the bound. */
static neap_status explain(const np_pickle_machine *m, const budget *b, neap_status status)
{
    char text[96];
    if (status != NEAP_NO_MEMORY) {
        return status;
    }
    if (!b->is_exceeded) {
        return np_fail_memory(m->error);
    }
    (void)snprintf(text, sizeof text, "expected a pickle that fits into %llu MiB of memory, found a larger one",
                   (unsigned long long)(b->most >> 20));
    return np_pickle_fail(m, NEAP_TOO_LARGE, text);
}

neap_status np_pickle_read(np_pickle_input *input, uint64_t memory_max, const neap_memory *memory, neap_error *error,
                           np_pickle **pickle)
{
    np_pickle_machine m = {.input = input, .error = error};
    owned_pickle *made = np_memory_alloc_zero(memory, 1, sizeof *made);
    neap_status status;
    if (!made) {
        return np_fail_memory(error);
    }
    made->budget = (budget){.hook = {resize_within, &made->budget},
                            .from = np_memory_or_default(memory),
                            .most = memory_max ? memory_max : NP_PICKLE_MEMORY_MAX};
    made->pickle.memory = m.memory = &made->budget.hook;
    m.pickle = &made->pickle;
    status = explain(&m, &made->budget, run(&m));
    np_array_free(m.memory, &m.stack);
    np_array_free(m.memory, &m.memo);
    np_array_free(m.memory, &m.marks);
    if (status != NEAP_OK) {
        np_pickle_free(m.pickle);
        return status;
    }
    *pickle = m.pickle;
    return NEAP_OK;
}
