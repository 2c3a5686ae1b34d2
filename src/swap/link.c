/* link.c: known links by name. Speeds as measured with pinned memory; a sum below the two speeds is what both directions
 * reached together. */
#include "swap/link.h"

#include <string.h>

static const struct {
    const char *name;
    neap_link link;
} known_links[] = {
    {"h200-pcie5", {.out_gbs = 55, .in_gbs = 55, .both_gbs = 100, .latency_us = 2}},
    {"a100-pcie4", {.out_gbs = 26, .in_gbs = 26, .both_gbs = 48, .latency_us = 2}},
    {"1080ti-pcie3", {.out_gbs = 13.2, .in_gbs = 12.1, .both_gbs = 0, .latency_us = 5}},
};

enum { N_KNOWN = sizeof known_links / sizeof *known_links };

neap_status neap_link_find(const char *name, neap_link *link)
{
    for (size_t i = 0; i < N_KNOWN; i++) {
        if (strcmp(known_links[i].name, name) == 0) {
            *link = known_links[i].link;
            return NEAP_OK;
        }
    }
    return NEAP_BAD_ARGUMENT;
}

const char *neap_link_name(size_t index)
{
    return index < N_KNOWN ? known_links[index].name : NULL;
}

np_link np_link_from(const neap_link *link)
{
    return (np_link){link->out_gbs, link->in_gbs, link->both_gbs, link->latency_us * 1e3};
}

np_link np_link_busy(const neap_link *link)
{
    double share = link->busy_share > 0 ? link->busy_share : 1;
    return (np_link){share * link->out_gbs, share * link->in_gbs, link->both_gbs, link->latency_us * 1e3};
}
