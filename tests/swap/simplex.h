/* simplex.h: small linear programs, for tests. */
#ifndef TESTS_SWAP_SIMPLEX_H
#define TESTS_SWAP_SIMPLEX_H

#include <stdbool.h>
#include <stdint.h>

#define SIMPLEX_COLUMNS_MAX 640
#define SIMPLEX_ROWS_MAX 640

/* Maximise gain * x under rows of a * x <= b, x >= 0, where every b is at least 0 (so that x = 0 is a start). Large:
 * keep it in static memory. */
typedef struct simplex {
    uint32_t n_columns;
    uint32_t n_rows;
    double gain[SIMPLEX_COLUMNS_MAX];
    double a[SIMPLEX_ROWS_MAX][SIMPLEX_COLUMNS_MAX];
    double b[SIMPLEX_ROWS_MAX];
    double x[SIMPLEX_COLUMNS_MAX]; /* the answer */
} simplex;

void simplex_clear(simplex *program);
uint32_t simplex_add_column(simplex *program, double gain);
uint32_t simplex_add_row(simplex *program, double b); /* its coefficients, 0 so far, are a[row][column] */

/* Fills x. False: unbounded, or no end in sight. Right to about 1e-6 of the largest b: each b is made a little larger,
 * in a different amount, so that no step stands still. */
bool simplex_solve(simplex *program);

#endif
