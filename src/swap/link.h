/* link.h: the way between device and host: one queue out, one queue in. */
#ifndef NP_SWAP_LINK_H
#define NP_SWAP_LINK_H

#include "neap.h"

typedef struct np_link {
    double out;        /* bytes a ns, device to host: GB/s in other words */
    double in;         /* host to device */
    double both;       /* the two together when both are busy; 0: they do not disturb each other */
    double latency_ns; /* of every copy, before its bytes flow */
} np_link;

/* 10^9 bytes a second are a byte a ns. */
np_link np_link_from(const neap_link *link);
/* As it is while the program's work runs. */
np_link np_link_busy(const neap_link *link);

#endif
