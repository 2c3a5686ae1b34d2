/* sweep.h: `neap swap --sweep`: the overhead of every method over a range of
 * limits. */
#ifndef CLI_SWEEP_H
#define CLI_SWEEP_H

#include <stdio.h>

#include "swap.h"

/* Plans, prints, and draws where asked to. Returns the exit code. */
int sweep_run(const swap_request *request, const neap_trace *trace);

/* The curves as numbers, a line a limit. */
void sweep_put_csv(FILE *out, const neap_sweep_row *rows, size_t n_rows);

/* The curves as a picture: limits across, overhead up. False, after one line on
 * stderr, where it could not be written; then no file is left behind. */
bool sweep_write_svg(const swap_request *request, const neap_sweep_row *rows, size_t n_rows);

#endif
