/* recorded.h: timelines of the recordings in tests/data/traces. */
#ifndef NEAP_RECORDED_H
#define NEAP_RECORDED_H

#include "swap/timeline.h"

enum { N_RECORDED = 6 };

typedef struct recorded {
    neap_trace *trace;
    np_period period;
    np_timeline timeline;
} recorded;

const char *recorded_name(uint32_t index); /* below N_RECORDED, the small ones first */

/* As plans see it: unknown directions are writes, sizes are rounded up to 512 bytes. */
void recorded_open(recorded *r, const char *name);
void recorded_close(recorded *r);

#endif
