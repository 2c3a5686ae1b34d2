/* fit.h: one buffer after the other, each where it fits.
 *
 * The paper's pool is the order "largest first" with the best-fit rule (or first-fit). Other orders are cheap to try,
 * and none is the best everywhere. */
#ifndef NP_POOL_FIT_H
#define NP_POOL_FIT_H

#include "base/stop.h"
#include "pool/occupied.h"

typedef enum np_fit_rule { NP_FIT_FIRST, NP_FIT_BEST } np_fit_rule;

/*  name                  in words         rank, highest first */
#define NP_ORDER_MAP(X)                                                                 \
    X(NP_ORDER_SIZE, "size")                   /* the paper's */                        \
    X(NP_ORDER_AREA, "area")                   /* size times sections lived in */       \
    X(NP_ORDER_LENGTH, "length")               /* sections lived in */                  \
    X(NP_ORDER_LENGTH_SIZE, "length and size") /* length squared times size */          \
    X(NP_ORDER_SIZE_LENGTH, "size and length") /* size squared times length */          \
    X(NP_ORDER_LOAD, "load")                   /* the highest load met in its life */   \
    X(NP_ORDER_LOAD_LENGTH, "load and length") /* the same, ties by length, not size */ \
    X(NP_ORDER_BEGIN, "begin")                 /* as they are malloc'd */               \
    X(NP_ORDER_HOLES, "holes and begin")       /* the same, those with holes first */   \
    X(NP_ORDER_END, "end")                     /* what is freed last first */

typedef enum np_order {
#define NP_ORDER_ENUM(name, text) name,
    NP_ORDER_MAP(NP_ORDER_ENUM)
#undef NP_ORDER_ENUM
        NP_N_ORDERS
} np_order;

const char *np_order_name(np_order order);

/* What the order goes by, for each item of the part, highest first; ties not broken. */
neap_status np_fit_ranks(const np_sections *sections, const np_part *part, np_order order, double *ranks);

/* The items of a part in that order (indices into sections->items); ties by size (but for the last but one), then in the problem's order. */
neap_status np_fit_order(const np_sections *sections, const np_part *part, np_order order, uint32_t *items);

/* Places the items of a part in the given order; fixed ones come first whatever their rank. `occupied` is empty before,
 * and is what it works on where there are many items. Offsets are indexed from the part's first item. A *height of UINT64_MAX says that it was
 * told to stop; the offsets mean nothing then. */
neap_status np_fit_place(const np_sections *sections, const np_part *part, const uint32_t *items, np_fit_rule rule,
                         const np_stop *stop, np_occupied *occupied, uint64_t *offsets, uint64_t *height);

#endif
