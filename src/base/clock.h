/* clock.h: time that only goes forward. */
#ifndef NP_BASE_CLOCK_H
#define NP_BASE_CLOCK_H

#include <stdint.h>

uint64_t np_clock_ns(void);

#endif
