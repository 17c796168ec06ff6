/* The tables of a report, in their order. Each is described, with its columns, in the file of its
 * family (tables_*.c); the list itself is in columns.h, and this file makes the array that the
 * formats walk. */
#include <stdio.h>

#include "report/columns.h"

#define ADDRESS(name) &prof_report_##name##_table,
const struct prof_report_table *const prof_report_tables[] = {PROF_REPORT_TABLES(ADDRESS) NULL};

void prof_report_append_wall(const struct prof_report_data *data, char *out, size_t size,
                             size_t used)
{
    if (data->utilisation.count > 1 && used < size)
        snprintf(out + used, size - used, "; of wall: 100 %% is one of %s devices",
                 prof_count((int64_t)data->utilisation.count).text);
}
