/* baseline_heap.c: chunks, neighbours, and a treap of free blocks.
 *
 * The treap's priorities are a hash of the entry's number: deterministic, and balanced in expectation whatever the
 * order of the requests. All walks are loops; depth is never a question of stack. */
#include "pool/baseline_heap.h"

#include "base/checked.h"
#include "base/hash.h"

void np_heap_init(np_heap *heap, const neap_memory *memory)
{
    *heap = (np_heap){
        .memory = np_memory_or_default(memory), .root = NP_HEAP_NONE, .recycled = NP_HEAP_NONE, .last = NP_HEAP_NONE};
}

void np_heap_free(np_heap *heap)
{
    np_array_free(heap->memory, &heap->blocks);
    np_heap_init(heap, heap->memory);
}

/* ---- the treap of free blocks ---- */

static bool is_less(const np_heap_block *a, const np_heap_block *b)
{
    return a->size != b->size ? a->size < b->size : a->address < b->address;
}

static void treap_insert(np_heap *heap, uint32_t block)
{
    np_heap_block *blocks = heap->blocks.items;
    np_heap_block *inserted = &blocks[block];
    uint64_t priority = np_mix64(block);
    uint32_t *link = &heap->root;
    while (*link != NP_HEAP_NONE && np_mix64(*link) > priority) {
        link = is_less(inserted, &blocks[*link]) ? &blocks[*link].left : &blocks[*link].right;
    }
    /* Split the subtree that stands here into what is less and what is greater. */
    uint32_t rest = *link;
    *link = block;
    uint32_t *less = &inserted->left;
    uint32_t *greater = &inserted->right;
    while (rest != NP_HEAP_NONE) {
        if (is_less(&blocks[rest], inserted)) {
            *less = rest;
            less = &blocks[rest].right;
            rest = *less;
        } else {
            *greater = rest;
            greater = &blocks[rest].left;
            rest = *greater;
        }
    }
    *less = NP_HEAP_NONE;
    *greater = NP_HEAP_NONE;
}

static void treap_remove(np_heap *heap, uint32_t block)
{
    np_heap_block *blocks = heap->blocks.items;
    uint32_t *link = &heap->root;
    while (*link != block) {
        link = is_less(&blocks[block], &blocks[*link]) ? &blocks[*link].left : &blocks[*link].right;
    }
    uint32_t less = blocks[block].left;
    uint32_t greater = blocks[block].right;
    while (less != NP_HEAP_NONE && greater != NP_HEAP_NONE) {
        if (np_mix64(less) > np_mix64(greater)) {
            *link = less;
            link = &blocks[less].right;
            less = *link;
        } else {
            *link = greater;
            link = &blocks[greater].left;
            greater = *link;
        }
    }
    *link = less != NP_HEAP_NONE ? less : greater;
}

/* The first free block that is not less than (size, address). */
static uint32_t lower_bound(const np_heap *heap, uint64_t size, uint64_t address)
{
    const np_heap_block key = {.size = size, .address = address};
    uint32_t best = NP_HEAP_NONE;
    uint32_t at = heap->root;
    while (at != NP_HEAP_NONE) {
        const np_heap_block *block = &heap->blocks.items[at];
        if (is_less(block, &key)) {
            at = block->right;
        } else {
            best = at;
            at = block->left;
        }
    }
    return best;
}

uint32_t np_heap_best_fit(const np_heap *heap, uint64_t size)
{
    return lower_bound(heap, size, 0);
}

uint32_t np_heap_following(const np_heap *heap, uint32_t block)
{
    const np_heap_block *of = &heap->blocks.items[block];
    return lower_bound(heap, of->size, of->address + 1);
}

/* ---- entries ---- */

/* An entry to fill; may move the array, so take no pointers across it. */
static neap_status entry_new(np_heap *heap, uint32_t *entry)
{
    if (heap->recycled != NP_HEAP_NONE) {
        *entry = heap->recycled;
        heap->recycled = heap->blocks.items[*entry].next;
        return NEAP_OK;
    }
    if (heap->blocks.n >= NP_HEAP_NONE) {
        return NEAP_TOO_LARGE;
    }
    neap_status status = np_array_push(heap->memory, &heap->blocks, (np_heap_block){0});
    if (status == NEAP_OK) {
        *entry = (uint32_t)(heap->blocks.n - 1);
    }
    return status;
}

static void entry_recycle(np_heap *heap, uint32_t entry)
{
    heap->blocks.items[entry] = (np_heap_block){.next = heap->recycled, .recycled = true};
    heap->recycled = entry;
}

/* ---- chunks and blocks ---- */

neap_status np_heap_add_chunk(np_heap *heap, uint64_t bytes, uint32_t *block)
{
    uint64_t held;
    if (!np_add_u64(heap->held, bytes, &held)) {
        return NEAP_TOO_LARGE;
    }
    uint32_t entry;
    neap_status status = entry_new(heap, &entry);
    if (status != NEAP_OK) {
        return status;
    }
    heap->blocks.items[entry] =
        (np_heap_block){.address = heap->held, .size = bytes, .prev = NP_HEAP_NONE, .next = NP_HEAP_NONE};
    treap_insert(heap, entry);
    heap->held = held;
    heap->last = entry;
    *block = entry;
    return NEAP_OK;
}

neap_status np_heap_extend(np_heap *heap, uint64_t bytes, uint32_t *block)
{
    uint64_t held;
    if (!np_add_u64(heap->held, bytes, &held)) {
        return NEAP_TOO_LARGE;
    }
    uint32_t before = heap->last;
    if (before == NP_HEAP_NONE || heap->blocks.items[before].used) {
        neap_status status = np_heap_add_chunk(heap, bytes, block);
        if (status == NEAP_OK && before != NP_HEAP_NONE) {
            heap->blocks.items[*block].prev = before;
            heap->blocks.items[before].next = *block;
        }
        return status;
    }
    treap_remove(heap, before);
    heap->blocks.items[before].size += bytes;
    treap_insert(heap, before);
    heap->held = held;
    *block = before;
    return NEAP_OK;
}

neap_status np_heap_take(np_heap *heap, uint32_t block, uint64_t size)
{
    uint64_t whole = heap->blocks.items[block].size;
    if (size < whole) {
        uint32_t rest;
        neap_status status = entry_new(heap, &rest);
        if (status != NEAP_OK) {
            return status;
        }
        treap_remove(heap, block);
        np_heap_block *taken = &heap->blocks.items[block];
        heap->blocks.items[rest] =
            (np_heap_block){.address = taken->address + size, .size = whole - size, .prev = block, .next = taken->next};
        if (taken->next != NP_HEAP_NONE) {
            heap->blocks.items[taken->next].prev = rest;
        }
        taken->next = rest;
        taken->size = size;
        if (heap->last == block) {
            heap->last = rest;
        }
        treap_insert(heap, rest);
    } else {
        treap_remove(heap, block);
    }
    heap->blocks.items[block].used = true;
    return NEAP_OK;
}

/* Lets `block`, which is not in the treap, swallow the free block that follows it. */
static void swallow_next(np_heap *heap, uint32_t block)
{
    np_heap_block *into = &heap->blocks.items[block];
    uint32_t next = into->next;
    into->size += heap->blocks.items[next].size;
    into->next = heap->blocks.items[next].next;
    if (into->next != NP_HEAP_NONE) {
        heap->blocks.items[into->next].prev = block;
    }
    if (heap->last == next) {
        heap->last = block;
    }
    entry_recycle(heap, next);
}

void np_heap_give(np_heap *heap, uint32_t block)
{
    np_heap_block *blocks = heap->blocks.items;
    blocks[block].used = false;
    uint32_t next = blocks[block].next;
    if (next != NP_HEAP_NONE && !blocks[next].used) {
        treap_remove(heap, next);
        swallow_next(heap, block);
    }
    uint32_t prev = blocks[block].prev;
    if (prev != NP_HEAP_NONE && !blocks[prev].used) {
        treap_remove(heap, prev);
        swallow_next(heap, prev);
        block = prev;
    }
    treap_insert(heap, block);
}

/* ---- the walk ---- */

static bool block_is_valid(const np_heap *heap, uint32_t at)
{
    const np_heap_block *block = &heap->blocks.items[at];
    uint64_t end;
    if (block->size == 0 || !np_add_u64(block->address, block->size, &end) || end > heap->held) {
        return false;
    }
    if (block->next != NP_HEAP_NONE) {
        const np_heap_block *next = &heap->blocks.items[block->next];
        if (next->recycled || next->prev != at || next->address != end || (!block->used && !next->used)) {
            return false;
        }
    }
    /* A free block must be found where its key says. */
    return block->used || lower_bound(heap, block->size, block->address) == at;
}

bool np_heap_is_valid(const np_heap *heap)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < heap->blocks.n; i++) {
        if (heap->blocks.items[i].recycled) {
            continue;
        }
        if (!block_is_valid(heap, (uint32_t)i)) {
            return false;
        }
        sum += heap->blocks.items[i].size;
    }
    if (heap->last == NP_HEAP_NONE) {
        return sum == 0 && heap->held == 0;
    }
    const np_heap_block *last = &heap->blocks.items[heap->last];
    return sum == heap->held && last->address + last->size == heap->held;
}
