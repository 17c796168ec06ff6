/* Tables for people: cells are collected, columns get the width they need, numbers stand right. */
#ifndef WORKLOADS_COMMON_TABLE_H
#define WORKLOADS_COMMON_TABLE_H

#include <stddef.h>

#define TABLE_COLUMNS 16
#define TABLE_CELL_BYTES 64

struct table {
    size_t columns;
    size_t rows; /* the header is row 0 */
    size_t capacity;
    char (*cells)[TABLE_COLUMNS][TABLE_CELL_BYTES];
    size_t at; /* next column of the last row */
};

/* Starts a table; `header` is a NULL-terminated list of column names. A name that begins with
 * '<' (left out of the output) makes a left-aligned column. */
void table_begin(struct table *table, const char *const *header);
void table_row(struct table *table);
void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A duration of `ns` with a unit that keeps three or four digits; "n/a" for NaN. */
void table_duration(struct table *table, double ns);

/* Prints on stdout and frees the cells. */
void table_end(struct table *table);

#endif
