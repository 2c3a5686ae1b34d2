/* fit.h: one buffer after the other, each where it fits.
 *
 * The paper's pool is the order "largest first" with the best-fit rule (or first-fit). Other orders are cheap to try,
 * and none is the best everywhere. */
#ifndef NP_POOL_FIT_H
#define NP_POOL_FIT_H

#include "pool/occupied.h"

typedef enum np_fit_rule { NP_FIT_FIRST, NP_FIT_BEST } np_fit_rule;

#define NP_ORDER_MAP(X)                                                              \
    X(NP_ORDER_SIZE, "size")          /* largest first: the paper's */               \
    X(NP_ORDER_AREA, "area")          /* size times sections lived in */             \
    X(NP_ORDER_LENGTH, "length")      /* longest life first */                       \
    X(NP_ORDER_LENGTH_SIZE, "length2size") /* length squared times size */           \
    X(NP_ORDER_SIZE_LENGTH, "size2length") /* size squared times length */           \
    X(NP_ORDER_LOAD, "load")          /* highest load met in its life first, then area */ \
    X(NP_ORDER_BEGIN, "begin")        /* as they are malloc'd */

typedef enum np_order {
#define NP_ORDER_ENUM(name, text) name,
    NP_ORDER_MAP(NP_ORDER_ENUM)
#undef NP_ORDER_ENUM
    NP_N_ORDERS
} np_order;

const char *np_order_name(np_order order);

/* The items of a part in that order (indices into sections->items); ties by size, then in the problem's order. */
neap_status np_fit_order(const np_sections *sections, const np_part *part, np_order order, uint32_t *items);

/* Places the items of a part in the given order; fixed ones come first whatever their rank. `occupied` is empty before
 * and holds the part after. Offsets are written at the items' indices. Stops early once the height passes `give_up`,
 * which is then the height reported. */
neap_status np_fit_place(const np_sections *sections, const uint32_t *items, uint32_t n_items, np_fit_rule rule,
                         uint64_t give_up, np_occupied *occupied, uint64_t *offsets, uint64_t *height);

#endif
