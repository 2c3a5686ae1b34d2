/* figures.h: what the files behind `neap figures` share: what was asked, the traces, and the figures of one or of all. */
#ifndef CLI_FIGURES_H
#define CLI_FIGURES_H

#include "neap.h"
#include "options.h"

typedef struct figures_request {
    const char *folder;
    neap_swap_options options; /* their link: of the trace at hand, where none was given */
    const char *link_name;
    size_t n_steps; /* limits in the figure of overheads */
    bool has_many;  /* several traces: their names begin those of their figures */
} figures_request;

typedef struct figures_subject {
    const char *path;
    char *stem;     /* the file's name without its folder and ".neap.gz" */
    char *network;  /* what was trained, batch size left out: traces of one network share a panel */
    uint64_t batch; /* 0: not known */
    neap_trace *trace;
    neap_info *info;
} figures_subject;

/* Files that were made, for the answer. */
typedef struct figures_list {
    char **paths;
    size_t n;
} figures_list;

/* A file of the folder: a part of "load.svg" that writes it. `subject` NULL: a figure of all traces. False, after one line
 * on stderr, where it could not be written. */
typedef void figures_part(FILE *out, const void *what);
bool figures_write(const figures_request *request, const figures_subject *subject, const char *name, figures_part *part,
                   const void *what, figures_list *made);

/* The path of such a file, for who writes it himself; to be noted once it is there. NULL, after one line on stderr: no
 * memory. The list owns it once it is noted. */
char *figures_path(const figures_request *request, const figures_subject *subject, const char *name);
bool figures_note(figures_list *made, char *path);

/* The figures. Each returns an exit code; where that is not 0, one line is on stderr, and `why` has it too. */
int figures_load(const figures_request *request, const figures_subject *subject, figures_list *made, neap_error *why);
int figures_limits(const figures_request *request, const figures_subject *subject, figures_list *made, neap_error *why);
int figures_overhead(const figures_request *request, const figures_subject *subject, figures_list *made,
                     neap_error *why);
int figures_footprint(const figures_request *request, const figures_subject *subjects, size_t n_subjects,
                      figures_list *made, neap_error *why);

/* The load after every event of [begin, begin + n), n > 0; beyond the run of periods it goes on as in them. NULL, after one
 * line on stderr: no memory. To be freed. */
uint64_t *figures_load_of(const figures_subject *subject, uint32_t begin, size_t n);

/* "host memory is exhausted" on stderr and in `why`. */
int figures_no_memory(neap_error *why);

/* A call of the library failed: on stderr and in `why`. */
int figures_failed(const figures_subject *subject, neap_status status, neap_error *why);

#endif
