/* The table printer; see table.h. A cell that does not fit in memory or columns is left out: a
 * table is the end of a measurement, not worth failing for. */
#include "workloads/common/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void table_begin(struct table *table, const char *const *header)
{
    *table = (struct table){0};
    while (header[table->columns] && table->columns < TABLE_COLUMNS) {
        table->header[table->columns] = header[table->columns];
        table->columns++;
    }
}

static struct table_row *last_row(struct table *table)
{
    return table->rows ? &table->row[table->rows - 1] : NULL;
}

void table_column(struct table *table, const char *header)
{
    struct table_row *row = last_row(table);

    if (row && row->used == table->columns && table->columns < TABLE_COLUMNS)
        table->header[table->columns++] = header;
}

void table_row(struct table *table)
{
    if (table->rows == table->capacity) {
        size_t capacity = table->capacity ? 2 * table->capacity : 16;
        struct table_row *row = realloc(table->row, capacity * sizeof row[0]);

        if (!row)
            return;
        table->row = row;
        table->capacity = capacity;
    }
    memset(&table->row[table->rows++], 0, sizeof table->row[0]);
}

void table_cell(struct table *table, const char *format, ...)
{
    struct table_row *row = last_row(table);
    va_list ap;

    if (!row || row->used == table->columns)
        return;
    va_start(ap, format);
    vsnprintf(row->cells[row->used++], TABLE_CELL_BYTES, format, ap);
    va_end(ap);
}

void table_skip(struct table *table)
{
    if (table->rows)
        last_row(table)->skipped = true;
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

static void print_cell(const struct table *table, size_t column, int width, const char *text)
{
    const char *gap = column ? "  " : "";
    bool left = table->header[column][0] == '<';

    if (left && column + 1 == table->columns)
        printf("%s%s", gap, text); /* no trailing blanks */
    else
        printf("%s%*s", gap, left ? -width : width, text);
}

void table_end(struct table *table, const char *title)
{
    int width[TABLE_COLUMNS];
    bool filled = false;

    for (size_t c = 0; c < table->columns; c++)
        width[c] = (int)strlen(table->header[c]) - (table->header[c][0] == '<');
    for (size_t r = 0; r < table->rows; r++) {
        struct table_row *row = &table->row[r];

        filled |= row->used > 0;
        for (size_t c = 0; c < table->columns; c++) {
            int length;

            if (row->skipped && c >= row->used)
                snprintf(row->cells[c], TABLE_CELL_BYTES, "n/a");
            length = (int)strlen(row->cells[c]);
            width[c] = length > width[c] ? length : width[c];
        }
    }
    if (filled) {
        fputs(title ? title : "", stdout);
        for (size_t c = 0; c < table->columns; c++)
            print_cell(table, c, width[c], table->header[c] + (table->header[c][0] == '<'));
        putchar('\n');
    }
    for (size_t r = 0; r < table->rows; r++) {
        for (size_t c = 0; c < table->columns && table->row[r].used; c++)
            print_cell(table, c, width[c], table->row[r].cells[c]);
        if (table->row[r].used)
            putchar('\n');
    }
    free(table->row);
    *table = (struct table){0};
}
