/* sweep.c: the curves as numbers. An overhead that is infinite (no plan of that
 * method at that limit) is an empty field, or null. */
#include "sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "term.h"
#include "verbs.h"

static double share_of_peak(const neap_sweep_row *rows, size_t i)
{
    return rows[0].limit ? (double)rows[i].limit / (double)rows[0].limit : 0;
}

static void put_number(FILE *out, double value)
{
    if (isfinite(value)) {
        (void)fprintf(out, ",%.6f", value);
    } else {
        (void)fputc(',', out);
    }
}

void sweep_put_csv(FILE *out, const neap_sweep_row *rows, size_t n_rows)
{
    (void)fputs("limit,limit_share", out);
    for (int m = 0; m < NEAP_SWAP_N_METHODS; m++) {
        (void)fprintf(out, ",%s", neap_swap_method_name((neap_swap_method)m));
    }
    (void)fputs(",bound,bound_any_directions,footprint\n", out);
    for (size_t i = 0; i < n_rows; i++) {
        (void)fprintf(out, "%" PRIu64 ",%.4f", rows[i].limit, share_of_peak(rows, i));
        for (int m = 0; m < NEAP_SWAP_N_METHODS; m++) {
            put_number(out, rows[i].overhead[m]);
        }
        put_number(out, rows[i].bound_overhead);
        put_number(out, rows[i].bound_overhead_any);
        if (rows[i].footprint > 0) {
            (void)fprintf(out, ",%" PRIu64 "\n", rows[i].footprint);
        } else {
            (void)fputs(",\n", out);
        }
    }
}

static void print_json(const swap_request *request, const neap_sweep_row *rows, size_t n_rows)
{
    json out = json_begin(stdout);
    json_object_begin(&out, NULL);
    swap_put_request(&out, request);
    json_text(&out, "on", request->options.on_load ? "load" : "footprint");
    json_uint(&out, "peak_load", rows[0].limit);
    json_uint(&out, "floor", rows[n_rows - 1].limit);
    json_array_begin(&out, "rows");
    for (size_t i = 0; i < n_rows; i++) {
        json_object_begin(&out, NULL);
        json_uint(&out, "limit", rows[i].limit);
        json_real(&out, "limit_share", share_of_peak(rows, i));
        json_object_begin(&out, "overhead");
        for (int m = 0; m < NEAP_SWAP_N_METHODS; m++) {
            json_real(&out, neap_swap_method_name((neap_swap_method)m), rows[i].overhead[m]);
        }
        json_object_end(&out);
        json_real(&out, "bound_overhead", rows[i].bound_overhead);
        json_real(&out, "bound_overhead_any_directions", rows[i].bound_overhead_any);
        if (rows[i].footprint > 0) {
            json_uint(&out, "footprint", rows[i].footprint);
        } else {
            json_null(&out, "footprint");
        }
        json_object_end(&out);
    }
    json_array_end(&out);
    json_object_end(&out);
    json_end(&out);
}

int sweep_run(const swap_request *request, const neap_trace *trace)
{
    size_t n_rows = request->n_steps;
    neap_error error = {""};
    neap_sweep_row *rows = calloc(n_rows, sizeof *rows);
    if (!rows) {
        (void)fputs("neap: host memory is exhausted\n", stderr);
        return EXIT_BAD;
    }
    term_progress("planning at %zu limits by %d methods", n_rows, (int)NEAP_SWAP_N_METHODS);
    neap_status status = neap_swap_sweep(trace, &request->options, n_rows, NULL, &error, rows);
    term_progress_clear();
    int code = EXIT_GOOD;
    if (status == NEAP_NO_PERIOD || status == NEAP_NO_PLAN) {
        code = swap_print_no_plan(request, trace, status, &error);
    } else if (status != NEAP_OK) {
        code = report_failure(request->path, status, &error);
    } else if (request->svg && !sweep_write_svg(request, rows, n_rows)) {
        code = EXIT_BAD;
    } else if (request->json) {
        print_json(request, rows, n_rows);
    } else {
        sweep_put_csv(stdout, rows, n_rows);
    }
    free(rows);
    return code;
}
