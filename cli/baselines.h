/* baselines.h: the other allocators, once for every table, document and picture. */
#ifndef CLI_BASELINES_H
#define CLI_BASELINES_H

#include "neap.h"

enum { BASELINES_N = 6 };

typedef struct baseline {
    const char *key;  /* in documents and CSVs */
    const char *name; /* for people */
    size_t offset;    /* of its bytes in neap_baselines */
} baseline;

extern const baseline baselines_list[BASELINES_N];

/* What allocator i holds; 0 where it is not known. */
uint64_t baselines_value(const neap_baselines *baselines, size_t i);

#endif
