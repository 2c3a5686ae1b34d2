/* table.c: rows are kept as copies until the widest cell of every column is known. */
#include "table.h"

#include "printable.h"
#include "units.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

table table_begin(const char *alignment)
{
    return (table){.alignment = alignment, .n_columns = strlen(alignment)};
}

static void *grown(void *block, size_t n, size_t bytes)
{
    void *moved = n > SIZE_MAX / bytes ? NULL : realloc(block, n * bytes);
    if (!moved) {
        (void)fputs("neap: host memory is exhausted\n", stderr);
        exit(2);
    }
    return moved;
}

void table_row(table *t, term_style style, const char *const *cells)
{
    t->cells = grown(t->cells, (t->n_rows + 1) * t->n_columns, sizeof *t->cells);
    t->styles = grown(t->styles, t->n_rows + 1, sizeof *t->styles);
    for (size_t i = 0; i < t->n_columns; i++) {
        size_t bytes = 4 * strlen(cells[i]) + 1;
        char *copy = grown(NULL, bytes, 1);
        (void)printable(cells[i], copy, bytes);
        t->cells[t->n_rows * t->n_columns + i] = copy;
    }
    t->styles[t->n_rows++] = style;
}

/* Columns on the screen: bytes that do not continue a UTF-8 sequence. */
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text; text++) {
        width += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return width;
}

/* A row's cells, padded but for what would only be spaces at the line's end. */
static void print_row(const table *t, size_t row, const size_t *widths, unsigned indent, FILE *file)
{
    char *const *cells = &t->cells[row * t->n_columns];
    size_t pad = indent;
    (void)fputs(term_on(t->styles[row]), file);
    for (size_t i = 0; i < t->n_columns; i++) {
        size_t free_columns = widths[i] - width_of(cells[i]);
        if (t->alignment[i] == 'r') {
            pad += free_columns;
            free_columns = 0;
        }
        if (*cells[i]) {
            (void)fprintf(file, "%*s%s", (int)pad, "", cells[i]);
            pad = 0;
        }
        pad += free_columns + 2;
    }
    (void)fprintf(file, "%s\n", term_off(t->styles[row]));
}

void table_row_of_bytes(table *t, term_style style, const char *name, uint64_t bytes, const char *note)
{
    char rounded[UNITS_CHARS];
    char exact[UNITS_CHARS + 8];
    char count[UNITS_CHARS];
    (void)snprintf(exact, sizeof exact, "%s bytes", units_count(bytes, count));
    TABLE_ROW(t, style, name, units_bytes(bytes, rounded), exact, note);
}

void table_end(table *t, unsigned indent, FILE *file)
{
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        size_t width = width_of(t->cells[i]);
        size_t *widest = &widths[i % t->n_columns];
        *widest = width > *widest ? width : *widest;
    }
    for (size_t row = 0; row < t->n_rows; row++) {
        print_row(t, row, widths, indent, file);
    }
    table_drop(t);
}

void table_drop(table *t)
{
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        free(t->cells[i]);
    }
    free(t->cells);
    free(t->styles);
    *t = (table){0};
}
