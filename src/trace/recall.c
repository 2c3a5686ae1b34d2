#include "trace/recall.h"

void np_recall_free(np_recall *recall, const neap_memory *memory)
{
    np_memory_free(memory, recall->entries, recall->n_slots, sizeof *recall->entries);
    *recall = (np_recall){0};
}

neap_status np_recall_grow(np_recall *recall, const neap_memory *memory, size_t n_more)
{
    np_recall grown = {.n_slots = recall->n_slots ? recall->n_slots : 256};
    while (2 * (recall->n + n_more) > grown.n_slots) {
        grown.n_slots *= 2;
    }
    grown.entries = np_memory_alloc(memory, grown.n_slots, sizeof *grown.entries);
    if (!grown.entries) {
        return NEAP_NO_MEMORY;
    }
    for (size_t i = 0; i < grown.n_slots; i++) {
        grown.entries[i].at = NP_RECALL_NONE;
    }
    for (size_t i = 0; i < recall->n_slots; i++) {
        if (recall->entries[i].at != NP_RECALL_NONE) {
            np_recall_swap(&grown, recall->entries[i].tag, recall->entries[i].at);
        }
    }
    np_recall_free(recall, memory);
    *recall = grown;
    return NEAP_OK;
}

bool np_recall_is_valid(const np_recall *recall)
{
    size_t n = 0;
    if (recall->n_slots & (recall->n_slots - 1)) {
        return false;
    }
    for (size_t i = 0; i < recall->n_slots; i++) {
        const np_recall_entry *entry = &recall->entries[i];
        if (entry->at != NP_RECALL_NONE) {
            n++;
            if (np_recall_find(recall, entry->tag) != entry) {
                return false;
            }
        }
    }
    return n == recall->n && 2 * n <= recall->n_slots;
}
