/* figures_overhead.c: overhead by limit for every method, with the bound: `neap swap --sweep`, into files. */
#include <stdlib.h>

#include "figures.h"
#include "sweep.h"

typedef struct curves {
    const neap_sweep_row *rows;
    size_t n_rows;
} curves;

static void write_csv(FILE *out, const void *what)
{
    const curves *c = what;
    sweep_put_csv(out, c->rows, c->n_rows);
}

static bool write_both(const figures_request *request, const figures_subject *subject, const curves *c,
                       figures_list *made)
{
    char *path = figures_path(request, subject, "overhead.svg");
    const swap_request sweep = {
        .path = subject->path, .link_name = request->link_name, .options = request->options, .svg = path};
    if (!path || !sweep_write_svg(&sweep, c->rows, c->n_rows)) {
        free(path);
        return false;
    }
    return figures_note(made, path) && figures_write(request, subject, "overhead.csv", write_csv, c, made);
}

int figures_overhead(const figures_request *request, const figures_subject *subject, figures_list *made,
                     neap_error *why)
{
    neap_sweep_row *rows = calloc(request->n_steps, sizeof *rows);
    if (!rows) {
        return figures_no_memory(why);
    }
    neap_status status = neap_swap_sweep(subject->trace, &request->options, request->n_steps, NULL, why, rows);
    int code = EXIT_GOOD;
    if (status != NEAP_OK) {
        code = figures_failed(subject, status, why);
    } else if (!write_both(request, subject, &(curves){rows, request->n_steps}, made)) {
        code = EXIT_BAD;
    }
    free(rows);
    return code;
}
