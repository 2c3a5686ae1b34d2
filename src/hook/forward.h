/* forward.h: an object of C++ whose virtual functions can be answered by another of the same interface.
 *
 * Nothing is known of a function but its place in the table: what it is given is passed on as it came, `this` alone is the
 * other's. It is told from a hidden first argument (where the result goes) by its address. */
#ifndef NP_HOOK_FORWARD_H
#define NP_HOOK_FORWARD_H

#include <stdint.h>

enum { NP_FORWARD_SLOTS = 128 };

typedef struct np_forward {
    const void *from;                              /* the object that is asked, */
    const void *to;                                /* the one that answers, */
    void *const *to_slots;                         /* and its virtual functions */
    void (*asked)(unsigned slot, uint64_t second); /* before the calls of np_forward_asking */
} np_forward;

extern np_forward np_the_forward; /* there is one pair */

/* To stand in a table at that slot. NULL: not on this machine, or there are not so many. */
void *np_forward_slot(unsigned slot);
/* The same; but first `asked` is called with the slot and with the function's second argument as it is in its register. */
void *np_forward_asking(unsigned slot);

#endif
