/* swap.h: what the files behind `neap swap` share: what was asked, and the
 * parts of the answer. */
#ifndef CLI_SWAP_H
#define CLI_SWAP_H

#include <stdbool.h>

#include "json.h"
#include "neap.h"
#include "options.h"

#define SWAP_DEFAULT_LINK "h200-pcie5"
#define SWAP_LINK_HELP "the trace's own, else h200-pcie5; or a100-pcie4, 1080ti-pcie3, 50GB/s, 55/50GB/s out and in"

typedef struct swap_request {
    const char *path;
    const char *link_name; /* of a known link, or as it was given */
    neap_swap_options options;
    bool json;
    bool as_run; /* as neap run plans, with this margin; min_block is set then */
    uint32_t margin;
    bool zero_overhead; /* no limit: the lowest one is asked for */
    size_t n_largest;   /* swaps in the list for people */
    size_t n_steps;     /* of the sweep */
    const char *svg;    /* NULL: none */
    const char *list;   /* the file for every swap; NULL: none */
} swap_request;

/* The name of a known link, or speeds. False, after one line on stderr about
 * --link of the verb, where it is neither. */
bool swap_parse_link(const verb *v, const char *text, neap_link *link);

/* Where none was given (NULL), that of the machine the trace was recorded on, if the trace says: every verb that plans
 * swaps on a trace takes its link so. */
void swap_take_link(const neap_trace *trace, const char *given, const char **name, neap_link *link);

/* "link": its name and its speeds, as a member of an object. */
void swap_put_link(json *out, const char *name, const neap_link *link);

/* What was asked, as members of the document's object. */
void swap_put_request(json *out, const swap_request *request);

/* "55/55 GB/s, 100 together, 10 us a copy": at least 100 bytes. */
const char *swap_link_text(const neap_link *link, char *text, size_t n);

/* The whole answer but for the list of swaps, as a document or as a table. */
void swap_print_json(const swap_request *request, const neap_trace *trace, const neap_swap_summary *summary);
void swap_print_summary(const swap_request *request, const neap_trace *trace, const neap_swap_summary *summary);

/* One line more below a table, where no exec of the trace takes any time: overheads mean nothing then. */
void swap_note_times(const neap_trace *trace);

/* A table of the largest swaps: which block, when it leaves and returns, and
 * what that takes. False, after a line on stderr, where it cannot be made. */
bool swap_print_largest(const swap_request *request, const neap_trace *trace, const neap_swap_plan *plan);

/* Every swap as CSV. False, after one line on stderr, where it could not be
 * written. */
bool swap_write_list(const char *path, const neap_trace *trace, const neap_swap_plan *plan);

/* `neap swap --run`: what neap run would plan for the trace's program. Returns the exit code. */
int swap_foresee(const swap_request *request, const neap_trace *trace);

/* The answer is no. Returns the exit code. `trace`: NULL, or where there is no plan, its floor is told. */
int swap_print_no_plan(const swap_request *request, const neap_trace *trace, neap_status status,
                       const neap_error *error);

#endif
