#include "swap/simplex.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "testing.h"

void simplex_clear(simplex *program)
{
    program->n_columns = program->n_rows = 0;
}

uint32_t simplex_add_column(simplex *program, double gain)
{
    uint32_t column = program->n_columns++;
    ASSERT_LT(column, SIMPLEX_COLUMNS_MAX);
    program->gain[column] = gain;
    for (uint32_t row = 0; row < program->n_rows; row++) {
        program->a[row][column] = 0;
    }
    return column;
}

uint32_t simplex_add_row(simplex *program, double b)
{
    uint32_t row = program->n_rows++;
    ASSERT_LT(row, SIMPLEX_ROWS_MAX);
    memset(program->a[row], 0, program->n_columns * sizeof program->a[row][0]);
    program->b[row] = b;
    return row;
}

/* Exchanges the variable of a column with that of a row: x_row = b - a * x becomes x_column = .... */
static void pivot(simplex *program, uint32_t row, uint32_t column)
{
    uint32_t n = program->n_columns;
    double *chosen = program->a[row];
    double scale = 1 / chosen[column];
    chosen[column] = 1;
    for (uint32_t c = 0; c < n; c++) {
        chosen[c] *= scale;
    }
    program->b[row] *= scale;
    for (uint32_t r = 0; r < program->n_rows; r++) {
        double factor = program->a[r][column];
        if (r == row || factor == 0) {
            continue;
        }
        program->a[r][column] = 0;
        for (uint32_t c = 0; c < n; c++) {
            program->a[r][c] -= factor * chosen[c];
        }
        program->b[r] -= factor * program->b[row];
    }
    double factor = program->gain[column];
    program->gain[column] = 0;
    for (uint32_t c = 0; c < n; c++) {
        program->gain[c] -= factor * chosen[c];
    }
}

/* The row that stops the variable of this column first; UINT32_MAX: none. */
static uint32_t find_row(const simplex *program, uint32_t column)
{
    uint32_t best = UINT32_MAX;
    double least = INFINITY;
    for (uint32_t r = 0; r < program->n_rows; r++) {
        double slope = program->a[r][column];
        if (slope > 1e-9 && program->b[r] / slope < least) {
            least = program->b[r] / slope;
            best = r;
        }
    }
    return best;
}

bool simplex_solve(simplex *program)
{
    static uint32_t of_column[SIMPLEX_COLUMNS_MAX]; /* which variable: columns first, then the slacks of rows */
    static uint32_t of_row[SIMPLEX_ROWS_MAX];
    np_rng rng = np_rng_make(1);
    double scale = 1;
    double gain_scale = 1e-300;
    for (uint32_t r = 0; r < program->n_rows; r++) {
        scale = fmax(scale, program->b[r]);
        of_row[r] = program->n_columns + r;
    }
    for (uint32_t r = 0; r < program->n_rows; r++) {
        program->b[r] += scale * 1e-9 * (1 + np_rng_unit(&rng));
    }
    for (uint32_t c = 0; c < program->n_columns; c++) {
        of_column[c] = c;
        gain_scale = fmax(gain_scale, fabs(program->gain[c]));
    }
    for (uint32_t steps = 0;; steps++) {
        uint32_t column = 0;
        uint32_t row;
        uint32_t variable;
        for (uint32_t c = 1; c < program->n_columns; c++) {
            column = program->gain[c] > program->gain[column] ? c : column;
        }
        if (program->gain[column] <= 1e-10 * gain_scale) {
            break;
        }
        row = find_row(program, column);
        if (row == UINT32_MAX || steps > 20000) {
            return false;
        }
        pivot(program, row, column);
        variable = of_row[row];
        of_row[row] = of_column[column];
        of_column[column] = variable;
    }
    memset(program->x, 0, sizeof program->x);
    for (uint32_t r = 0; r < program->n_rows; r++) {
        if (of_row[r] < program->n_columns) {
            program->x[of_row[r]] = program->b[r];
        }
    }
    return true;
}
