#include "standin/ranges.h"

#include <stdlib.h>
#include <string.h>

#include "standin/standin_state.h"

size_t ranges_first_after(const ranges *r, const char *at)
{
    size_t low = 0;
    size_t high = r->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->items[middle].at + r->items[middle].bytes <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

range *ranges_find(const ranges *r, const void *at)
{
    size_t i = ranges_first_after(r, at);
    return i < r->n && r->items[i].at <= (const char *)at ? &r->items[i] : NULL;
}

bool ranges_overlap(const ranges *r, const char *at, size_t bytes)
{
    size_t i = ranges_first_after(r, at);
    return i < r->n && r->items[i].at < at + bytes;
}

void ranges_add(ranges *r, range added)
{
    size_t i = ranges_first_after(r, added.at);
    if (r->n == r->capacity) {
        r->capacity = r->capacity ? 2 * r->capacity : 64;
        r->items = realloc(r->items, r->capacity * sizeof *r->items);
        if (!r->items) {
            misuse("the machine has no memory left");
        }
    }
    memmove(&r->items[i + 1], &r->items[i], (r->n - i) * sizeof *r->items);
    r->items[i] = added;
    r->n++;
}

void ranges_drop(ranges *r, const range *dropped)
{
    size_t i = (size_t)(dropped - r->items);
    r->n--;
    memmove(&r->items[i], &r->items[i + 1], (r->n - i) * sizeof *r->items);
}
