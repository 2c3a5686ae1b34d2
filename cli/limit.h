/* limit.h: --limit SIZE|SHARE, the same for every verb that has it. */
#ifndef CLI_LIMIT_H
#define CLI_LIMIT_H

#include "options.h"

typedef struct limit {
    double share;   /* of the peak load; 0: bytes */
    uint64_t bytes; /* 0: a share */
} limit;

typedef enum limit_says { LIMIT_SILENT, LIMIT_DOUBTS, LIMIT_ALL } limit_says;

/* False, after one line on stderr, where the text is neither, or 0. Where it could have been meant otherwise (8G: 10^9 or
 * 2^30; 8: bytes; 0.7: a share) one line on stderr says how it was understood; with LIMIT_ALL in any case. */
bool limit_parse(const verb *v, const char *text, limit_says says, limit *parsed);

#endif
