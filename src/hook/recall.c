#include "hook/recall.h"

#include <string.h>

void np_hook_recall_init(np_hook_recall *recall, const neap_memory *memory)
{
    *recall = (np_hook_recall){.memory = memory, .epoch = 1};
}

static void forget_event(const np_hook_recall *recall, np_hook_memory *event)
{
    if (event->n_hits > NP_HOOK_NEAR) {
        np_memory_free(recall->memory, (uint64_t *)(uintptr_t)event->hits, event->n_hits, sizeof *event->hits);
    }
    np_memory_free(recall->memory, event->uses, event->n_uses, sizeof *event->uses);
    *event = (np_hook_memory){0};
}

void np_hook_recall_free(np_hook_recall *recall)
{
    for (size_t i = 0; i < recall->n_events; i++) {
        forget_event(recall, &recall->events[i]);
    }
    np_memory_free(recall->memory, recall->events, recall->n_events, sizeof *recall->events);
    recall->events = NULL;
    recall->n_events = 0;
    recall->plan = NULL;
}

void np_hook_recall_forget(np_hook_recall *recall)
{
    recall->epoch++;
}

void np_hook_recall_follow(np_hook_recall *recall, const void *plan, size_t n_events)
{
    if (recall->plan != plan || recall->n_events != n_events) {
        np_hook_recall_free(recall);
        recall->events = np_memory_alloc_zero(recall->memory, n_events, sizeof *recall->events);
        recall->n_events = recall->events ? n_events : 0;
        recall->plan = plan;
    }
}

np_hook_memory *np_hook_recall_find(const np_hook_recall *recall, size_t event, const void *function)
{
    np_hook_memory *found = event < recall->n_events ? &recall->events[event] : NULL;
    return found && found->function == function && found->epoch == recall->epoch ? found : NULL;
}

/* From the hit number `next` on: how many hits are passed after these words; UINT32_MAX: one of them is another. */
static uint32_t compare(const np_hook_memory *memory, const np_hook_index *index, const char *words, size_t n_words,
                        uint32_t next)
{
    for (size_t i = 0; i < n_words; i++) {
        const char *word;
        memcpy(&word, words + i * sizeof word, sizeof word);
        if (!np_hook_index_may_have(index, word)) {
            continue;
        }
        if (next < memory->n_hits && memory->hits[next] == (uint64_t)(uintptr_t)word) {
            next++;
        } else if (np_hook_index_search(index, word)) {
            return UINT32_MAX;
        }
    }
    return next;
}

bool np_hook_recall_is_equal(const np_hook_memory *memory, const np_hook_index *index,
                             const np_hook_parameters *parameters)
{
    uint32_t next = 0;
    if ((parameters->each != NULL) != (memory->sizes != NULL)) {
        return false;
    }
    if (!parameters->each) {
        return parameters->packed_bytes / sizeof(uint64_t) == memory->n_words &&
               compare(memory, index, parameters->packed, memory->n_words, 0) == memory->n_hits;
    }
    for (uint32_t i = 0; i < memory->n_parameters && next != UINT32_MAX; i++) {
        next = compare(memory, index, parameters->each[i], memory->sizes[i] / sizeof(uint64_t), next);
    }
    return next == memory->n_hits;
}

/* The event's own copies; what it was is given up. */
static bool copy_all(const np_hook_recall *recall, np_hook_memory *event, const uint64_t *hits, size_t n_hits,
                     const neap_use *uses, size_t n_uses)
{
    uint64_t *far = NULL;
    forget_event(recall, event);
    event->uses = np_memory_alloc(recall->memory, n_uses, sizeof *uses);
    if (!event->uses) {
        return false;
    }
    event->n_uses = (uint32_t)n_uses;
    if (n_hits > NP_HOOK_NEAR) {
        far = np_memory_alloc(recall->memory, n_hits, sizeof *far);
        if (!far) {
            forget_event(recall, event);
            return false;
        }
    }
    event->hits = far ? far : event->near;
    event->n_hits = (uint32_t)n_hits;
    if (n_hits > 0) {
        memcpy(far ? far : event->near, hits, n_hits * sizeof *hits);
    }
    if (n_uses > 0) {
        memcpy(event->uses, uses, n_uses * sizeof *uses);
    }
    return true;
}

np_hook_memory *np_hook_recall_keep(np_hook_recall *recall, size_t event, const np_hook_kernel *kernel,
                                    const np_hook_parameters *parameters, const uint64_t *hits, size_t n_hits,
                                    const neap_use *uses, size_t n_uses)
{
    np_hook_memory *made = event < recall->n_events ? &recall->events[event] : NULL;
    size_t packed_words = parameters->each ? 0 : parameters->packed_bytes / sizeof(uint64_t);
    if (!made || n_hits >= UINT32_MAX || packed_words > UINT32_MAX || (parameters->each && !kernel->sizes) ||
        !copy_all(recall, made, hits, n_hits, uses, n_uses)) {
        return NULL;
    }
    made->function = kernel->function;
    made->epoch = recall->epoch;
    made->n_words = (uint32_t)packed_words;
    if (parameters->each) {
        made->sizes = kernel->sizes;
        made->n_parameters = kernel->n_parameters;
    }
    for (uint32_t i = 0; i < made->n_parameters; i++) {
        made->n_words += (uint32_t)(kernel->sizes[i] / sizeof(uint64_t));
    }
    return made;
}
