/* report.h: what the files behind `neap report` share: what was asked, what was planned for it, and its parts.
 *
 * A *subject* is one trace with everything the page shows of it: the pool's plan (no limit), the lowest limit that
 * costs no time, and a plan of swaps for each of a row of limits. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "json.h"
#include "neap.h"

enum { REPORT_SUBJECTS_MAX = 2, REPORT_LIMITS_MAX = 99 };

typedef struct report_request {
    const char *output;
    const char *link;          /* as it was given; NULL: each trace's own */
    neap_swap_options options; /* their link: as given, or for traces that have none */
    size_t n_limits;
} report_request;

/* What came of one limit. */
typedef struct report_limit {
    unsigned percent; /* of the peak load; 0: the lowest limit that costs no time */
    neap_status status;
    neap_error error;           /* why there is no plan */
    neap_swap_plan *made;       /* for this limit; NULL: none was found */
    const neap_swap_plan *plan; /* the cheapest that holds it, of all that were made; NULL: there is none */
    uint64_t limit;             /* bytes */
    double bound_overhead;      /* at this limit */
} report_limit;

typedef struct report_subject {
    const char *path;
    neap_trace *trace;
    const char *link_name; /* of a known link, as it was given, or as the trace has it */
    neap_link link;
    neap_plan *pool;
    report_limit *limits; /* from the highest down, the one that costs no time first; none of a placement CSV */
    size_t n_limits;
} report_subject;

/* ---- planning (report_plan.c) ---- */

/* Reads and plans. Returns an exit code; where that is not 0, one line is on stderr, `status` and `error` say why, and
 * the subject must be freed all the same. */
int report_plan_pool(const report_request *request, const char *path, report_subject *subject, neap_status *status,
                     neap_error *error);

/* Plans for a row of limits, the same in per cent for all subjects: from the peak load down to the lowest floor. */
int report_plan_limits(const report_request *request, report_subject *subjects, size_t n_subjects, neap_status *status,
                       neap_error *error);
void report_subject_free(report_subject *subject);

/* ---- the page (report_data.c, report_data_plans.c, report_page.c) ---- */

/* All that the page shows of a subject, as one object. False: out of memory. */
bool report_put_subject(json *out, const report_request *request, const report_subject *subject);

/* The figures of a plan, as members of an object: `neap report --json` and the page have them from here. */
void report_put_pool(json *out, const neap_plan_summary *summary);
void report_put_limit(json *out, const report_limit *limit);

/* Writes the page. `panes` are indices into the subjects, one for each pane. False, after one line on stderr, where it
 * could not be written: then no file is left behind. */
bool report_write_page(const report_request *request, const report_subject *subjects, size_t n_subjects,
                       const size_t *panes, size_t n_panes, uint64_t *n_bytes);

#endif
