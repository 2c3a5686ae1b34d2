#include "hook/recall.h"

#include <string.h>

void np_hook_recall_init(np_hook_recall *recall, const neap_memory *memory)
{
    *recall = (np_hook_recall){.memory = memory, .epoch = 1};
}

static void forget_event(const np_hook_recall *recall, np_hook_memory *event)
{
    np_memory_free(recall->memory, event->bytes, event->n_bytes, 1);
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

/* Another plan: its events are others. */
static void begin(np_hook_recall *recall, const void *plan, size_t n_events)
{
    np_hook_recall_free(recall);
    recall->events = np_memory_alloc_zero(recall->memory, n_events, sizeof *recall->events);
    recall->n_events = recall->events ? n_events : 0;
    recall->plan = plan;
}

static bool is_equal(const np_hook_memory *event, const np_hook_kernel *kernel, void *const *parameters)
{
    size_t at = 0;
    for (uint32_t i = 0; i < kernel->n_parameters; i++) {
        if (kernel->sizes[i] > event->n_bytes - at || memcmp(event->bytes + at, parameters[i], kernel->sizes[i]) != 0) {
            return false;
        }
        at += kernel->sizes[i];
    }
    return at == event->n_bytes;
}

const np_hook_memory *np_hook_recall_find(np_hook_recall *recall, const void *plan, size_t n_events, size_t event,
                                          const np_hook_kernel *kernel, void *const *parameters)
{
    const np_hook_memory *found;
    if (recall->plan != plan) {
        begin(recall, plan, n_events);
    }
    if (event >= recall->n_events) {
        return NULL;
    }
    found = &recall->events[event];
    return found->function == kernel->function && found->epoch == recall->epoch && is_equal(found, kernel, parameters)
               ? found
               : NULL;
}

void np_hook_recall_keep(np_hook_recall *recall, size_t event, const np_hook_kernel *kernel, void *const *parameters,
                         const neap_use *uses, size_t n_uses)
{
    np_hook_memory made = {.function = kernel->function, .epoch = recall->epoch, .n_uses = n_uses};
    size_t at = 0;
    if (event >= recall->n_events) {
        return;
    }
    for (uint32_t i = 0; i < kernel->n_parameters; i++) {
        made.n_bytes += kernel->sizes[i];
    }
    forget_event(recall, &recall->events[event]);
    made.bytes = np_memory_alloc(recall->memory, made.n_bytes, 1);
    made.uses = np_memory_alloc(recall->memory, n_uses, sizeof *made.uses);
    if (!made.bytes || !made.uses) {
        forget_event(recall, &made);
        return;
    }
    for (uint32_t i = 0; i < kernel->n_parameters; i++) {
        memcpy(made.bytes + at, parameters[i], kernel->sizes[i]);
        at += kernel->sizes[i];
    }
    if (n_uses > 0) {
        memcpy(made.uses, uses, n_uses * sizeof *uses);
    }
    recall->events[event] = made;
}
