/* ranges.h: ranges of addresses in order, none over another: sorted arrays. Tests have thousands of them, not
 * millions. */
#ifndef TESTS_STANDIN_RANGES_H
#define TESTS_STANDIN_RANGES_H

#include <stdbool.h>
#include <stddef.h>

struct memory;

/* Of a reservation, a mapping, an allocation or registered host memory. */
typedef struct range {
    char *at;
    size_t bytes;
    struct memory *memory; /* mapping */
    bool can_be_used;      /* mapping */
    int device;
    bool is_own;   /* host: allocated here */
    int kind;      /* allocation: allocation_kind */
    bool is_freed; /* allocation: by work of a stream that may not be done yet */
} range;

typedef struct ranges {
    range *items;
    size_t n;
    size_t capacity;
} ranges;

size_t ranges_first_after(const ranges *r, const char *at); /* index of the first that ends after the address */
range *ranges_find(const ranges *r, const void *at);        /* the one that holds it, or NULL */
bool ranges_overlap(const ranges *r, const char *at, size_t bytes);
void ranges_add(ranges *r, range added);
void ranges_drop(ranges *r, const range *dropped);

#endif
