/* pickle_machine.h: the stack machine that pickles are programs for, shared by its loop and its opcodes. */
#ifndef NP_TRACE_PICKLE_MACHINE_H
#define NP_TRACE_PICKLE_MACHINE_H

#include "trace/pickle.h"

typedef struct np_pickle_machine np_pickle_machine;

typedef struct np_pickle_opcode {
    const char *name;                                                            /* NULL: there is no such opcode */
    neap_status (*run)(np_pickle_machine *m, const struct np_pickle_opcode *op); /* NULL: refused */
    uint8_t kind;                                                                /* of what it makes or fills */
    uint8_t n;           /* bytes of its number or length; items of a tuple */
    const char *refusal; /* why */
} np_pickle_opcode;

extern const np_pickle_opcode np_pickle_opcodes[256];

struct np_pickle_machine {
    np_pickle_input *input;
    neap_error *error;
    np_pickle *pickle;
    const neap_memory *memory;  /* bounded */
    const np_pickle_opcode *op; /* under way, for messages; NULL: none yet */
    uint64_t op_at;             /* its byte */
    np_array(np_pickle_value) stack;
    np_array(np_pickle_value) memo;
    np_array(size_t) marks; /* heights of the stack, rising */
    bool is_stopped;
};

/* "FILE: byte N: OPCODE: text". */
neap_status np_pickle_fail(const np_pickle_machine *m, neap_status status, const char *text);

#endif
