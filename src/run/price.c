#include "run/price.h"

enum { BIN_NS = 32, FEW = 16 }; /* longer gaps than all bins: the device waited for something */

#define LEAST_SHARE 0.3

void np_price_add(np_price *price, uint64_t start_ns, uint64_t duration_ns)
{
    if (duration_ns == 0) {
        return; /* not known */
    }
    if (price->last_end_ns > 0 && start_ns >= price->last_end_ns) {
        uint64_t bin = (start_ns - price->last_end_ns) / BIN_NS;
        if (bin < NP_PRICE_BINS) {
            price->n_gaps[bin]++;
            price->n++;
        }
    }
    price->last_end_ns = start_ns + duration_ns;
}

uint64_t np_price_ns(const np_price *price)
{
    uint32_t below = 0;
    if (price->n < FEW) {
        return 0;
    }
    for (uint32_t bin = 0; bin < NP_PRICE_BINS; bin++) {
        below += price->n_gaps[bin];
        if (2 * below >= price->n) {
            return (uint64_t)bin * BIN_NS;
        }
    }
    return 0;
}

uint64_t np_price_paid(uint64_t duration_ns, uint64_t price_ns)
{
    uint64_t least = (uint64_t)(LEAST_SHARE * (double)duration_ns);
    if (price_ns == 0) {
        return duration_ns;
    }
    return duration_ns > price_ns + least ? duration_ns - price_ns : least;
}
