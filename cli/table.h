/* table.h: columns of text for people. Widths are found when it is printed, so rows may come in any size. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdint.h>
#include <stdio.h>

#include "term.h"

#define TABLE_COLUMNS_MAX 8

typedef struct table {
    const char *alignment; /* a letter a column: 'l' or 'r' */
    char **cells;          /* row by row */
    term_style *styles;    /* a row's */
    size_t n_rows;
    size_t n_columns;
} table;

/* `alignment`, a letter a column, must outlive the table. */
table table_begin(const char *alignment);

/* One text a column, all copied. Ends the program with a line on stderr if host memory is exhausted. */
void table_row(table *t, term_style style, const char *const *cells);
#define TABLE_ROW(t, style, ...) table_row((t), (style), (const char *const[]){__VA_ARGS__})

/* A name, a size rounded and in full, and a note. */
void table_row_of_bytes(table *t, term_style style, const char *name, uint64_t bytes, const char *note);

void table_drop(table *t); /* unprinted */

/* Prints with `indent` spaces before and two between columns, then frees the table. */
void table_end(table *t, unsigned indent, FILE *file);

#endif
