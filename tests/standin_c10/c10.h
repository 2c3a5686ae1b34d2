/* c10.h: what a test sees of the libraries by the names of PyTorch's. The order of the functions is their own: whoever needs one
 * asks for it by its name. */
#ifndef TESTS_STANDIN_C10_C10_H
#define TESTS_STANDIN_C10_C10_H

#include <stdbool.h>
#include <stdint.h>

typedef enum standin_c10_slot {
    C10_DESTROY,
    C10_DELETE,
    C10_ALLOCATE,
    C10_INIT,
    C10_LIMIT,
    C10_BEGIN,
    C10_END,
    C10_RELEASE,
    C10_METADATA, /* shown by no name; of the interface in one, its own in the other */
    C10_RAW_ALLOC,
    C10_RAW_ALLOC_WITH_STREAM,
    C10_RAW_DELETE,
    C10_SNAPSHOT,
    C10_HISTORY,
    C10_OBSERVER,
    C10_TRACKER,
    C10_SHARE,
    C10_GET_CHECKPOINT,
    C10_SET_CHECKPOINT,
    C10_INITIALIZED,
    C10_INHERITED, /* the same in both */
    STANDIN_C10_N_SLOTS,
} standin_c10_slot;

typedef struct standin_c10_note { /* of the last call */
    const void *self;
    const char *what;
    uint64_t arguments[3];
    uint64_t n; /* calls so far */
} standin_c10_note;

typedef struct standin_c10_answer { /* too large for registers */
    const char *by;
    uint64_t arguments[4];
} standin_c10_answer;

extern standin_c10_note standin_c10_noted;
void *standin_c10_native(void);
void *standin_c10_async(void);

#endif
