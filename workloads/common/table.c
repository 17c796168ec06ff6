/* The table printer; see table.h. A cell that does not fit in memory or columns is left out: a
 * table is the end of a measurement, not worth failing for. */
#include "workloads/common/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void table_row(struct table *table)
{
    if (table->rows == table->capacity) {
        size_t capacity = table->capacity ? 2 * table->capacity : 16;
        void *cells = realloc(table->cells, capacity * sizeof table->cells[0]);

        if (!cells)
            return;
        table->cells = cells;
        table->capacity = capacity;
    }
    memset(table->cells[table->rows++], 0, sizeof table->cells[0]);
    table->at = 0;
}

void table_cell(struct table *table, const char *format, ...)
{
    va_list ap;

    if (table->rows == 0 || table->at == table->columns)
        return;
    va_start(ap, format);
    vsnprintf(table->cells[table->rows - 1][table->at++], TABLE_CELL_BYTES, format, ap);
    va_end(ap);
}

void table_begin(struct table *table, const char *const *header)
{
    *table = (struct table){0};
    while (header[table->columns] && table->columns < TABLE_COLUMNS)
        table->columns++;
    table_row(table);
    for (size_t i = 0; i < table->columns; i++)
        table_cell(table, "%s", header[i]);
}

void table_duration(struct table *table, double ns)
{
    if (isnan(ns))
        table_cell(table, "n/a");
    else if (ns < 1e4)
        table_cell(table, "%.0f ns", ns);
    else if (ns < 1e7)
        table_cell(table, "%.1f us", ns / 1e3);
    else
        table_cell(table, "%.2f ms", ns / 1e6);
}

void table_end(struct table *table)
{
    int width[TABLE_COLUMNS] = {0};
    bool left[TABLE_COLUMNS] = {0};

    for (size_t c = 0; c < table->columns && table->rows > 0; c++) {
        char *name = table->cells[0][c];

        left[c] = name[0] == '<';
        if (left[c])
            memmove(name, name + 1, strlen(name));
        for (size_t r = 0; r < table->rows; r++) {
            int length = (int)strlen(table->cells[r][c]);

            width[c] = length > width[c] ? length : width[c];
        }
    }
    for (size_t r = 0; r < table->rows; r++) {
        for (size_t c = 0; c < table->columns; c++) {
            const char *gap = c ? "  " : "";

            if (left[c] && c + 1 == table->columns)
                printf("%s%s", gap, table->cells[r][c]); /* no trailing blanks */
            else
                printf("%s%*s", gap, left[c] ? -width[c] : width[c], table->cells[r][c]);
        }
        putchar('\n');
    }
    free(table->cells);
    *table = (struct table){0};
}
