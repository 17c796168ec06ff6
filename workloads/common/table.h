/* Tables for people: cells are collected, columns get the width they need, numbers stand right. */
#ifndef WORKLOADS_COMMON_TABLE_H
#define WORKLOADS_COMMON_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#define TABLE_COLUMNS 16
#define TABLE_CELL_BYTES 64

struct table_row {
    size_t used;  /* cells; a row without any is not printed */
    bool skipped; /* what follows them is "n/a" */
    char cells[TABLE_COLUMNS][TABLE_CELL_BYTES];
};

/* All zero: a table without columns, which are named as cells need them (table_column). */
struct table {
    const char *header[TABLE_COLUMNS];
    size_t columns;
    size_t rows, capacity;
    struct table_row *row;
};

/* Starts a table; `header` is a NULL-terminated list of column names. A name that begins with
 * '<' (left out of the output) makes a left-aligned column. */
void table_begin(struct table *table, const char *const *header);
/* Names the column of the next cell, unless an earlier row did. */
void table_column(struct table *table, const char *header);
void table_row(struct table *table);
void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The rest of the row has no values. */
void table_skip(struct table *table);

/* A duration of `ns` with a unit that keeps three or four digits; "n/a" for NaN. */
void table_duration(struct table *table, double ns);

/* Prints on stdout, `title` first, where there are rows; frees the cells. */
void table_end(struct table *table, const char *title);

#endif
