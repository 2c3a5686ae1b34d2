/* verbs.h: what `neap` can do, and what the verbs share. */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include "neap.h"
#include "options.h"

extern const verb verb_run;
extern const verb verb_record;
extern const verb verb_verify;
extern const verb verb_top;
extern const verb verb_info;
extern const verb verb_plan;
extern const verb verb_swap;
extern const verb verb_figures;
extern const verb verb_report;
extern const verb verb_export;
extern const verb verb_import;
extern const verb verb_train; /* only where the networks are built */
extern const verb verb_help;

extern const verb *const all_verbs[]; /* NULL at the end */

const verb *verb_find(const char *name); /* NULL: there is none */

/* One line on stderr about a name that does not exist, and the one that was meant; NULL: nobody knows. `dashes` stands
 * before that one. Returns the exit code. */
int report_unknown(const char *what, const char *given, const char *dashes, const char *nearest);

/* One line on stderr about a call that failed: its own text, or the status's. Returns the exit code. */
int report_failure(const char *path, neap_status status, const neap_error *error);

/* The last part of a path: what tables and pictures are titled with. */
const char *file_name(const char *path);

#endif
