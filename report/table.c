/* The tables of a report in their order, and the values of their rows by their description. Each
 * table is described, with its columns, in the file of its family (tables_*.c); the list itself is
 * in columns.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "report/columns.h"

#define ADDRESS(name) &prof_report_##name##_table,
const struct prof_report_table *const prof_report_tables[] = {PROF_REPORT_TABLES(ADDRESS) NULL};

const struct prof_report_table *prof_report_table(const char *name)
{
    for (const struct prof_report_table *const *table = prof_report_tables; *table; table++) {
        if (!strcmp((*table)->name, name))
            return *table;
    }
    return NULL;
}

bool prof_report_is_left(const struct prof_report_column *column)
{
    return column->unit == PROF_UNIT_NAME || column->unit == PROF_UNIT_WORD ||
           column->unit == PROF_UNIT_PROSE;
}

static const void *object_of_id(const struct prof_report_data *data, enum prof_report_object object,
                                int64_t id)
{
    switch (object) {
    case PROF_OBJECT_process:
        return prof_process(data->capture, id);
    case PROF_OBJECT_thread:
        return prof_thread(data->capture, id);
    case PROF_OBJECT_device:
        return prof_device(data->capture, id);
    case PROF_OBJECT_context:
        return prof_context(data->capture, id);
    case PROF_OBJECT_stream:
        return prof_stream(data->capture, id);
    case PROF_OBJECT_none:
        break;
    }
    return NULL;
}

struct prof_report_value prof_report_value(const struct prof_report_data *data,
                                           const struct prof_report_column *column, const void *row)
{
    const char *at = row;
    struct prof_report_value value = {0};
    int64_t id;
    if (column->object) {
        memcpy(&id, at + column->via - 1, sizeof id);
        at = object_of_id(data, column->object, id);
    } else if (column->via) {
        memcpy(&at, at + column->via - 1, sizeof at);
    }
    if (!at)
        return value;
    at += column->offset;
    switch (column->storage) {
    case PROF_STORED_INT64:
    case PROF_STORED_ID: {
        int64_t integer;
        memcpy(&integer, at, sizeof integer);
        return column->of_id ? column->of_id(data, integer) : prof_report_int(integer);
    }
    case PROF_STORED_INT: {
        int integer;
        memcpy(&integer, at, sizeof integer);
        return prof_report_int(integer);
    }
    case PROF_STORED_DOUBLE:
        memcpy(&value.real, at, sizeof value.real);
        value.kind = isfinite(value.real) ? PROF_VALUE_REAL : PROF_VALUE_NONE;
        return value;
    case PROF_STORED_STRING:
        memcpy(&value.text, at, sizeof value.text);
        value.kind = value.text ? PROF_VALUE_TEXT : PROF_VALUE_NONE;
        return value;
    case PROF_STORED_CHARS:
        return prof_report_text(*at ? at : NULL);
    case PROF_STORED_BOOL: {
        bool yes;
        memcpy(&yes, at, sizeof yes);
        return (struct prof_report_value){.kind = PROF_VALUE_BOOL, .integer = yes};
    }
    case PROF_STORED_XYZ:
        value.xyz = (const int64_t *)(const void *)at;
        value.kind = value.xyz[0] == PROF_UNKNOWN ? PROF_VALUE_NONE : PROF_VALUE_XYZ;
        return value;
    case PROF_STORED_VALUE:
        memcpy(&value, at, sizeof value);
        return value;
    case PROF_STORED_COMPUTED:
        return column->compute(data, row);
    }
    return value;
}

struct prof_report_value prof_report_nsys_value(const struct prof_report_data *data,
                                                const struct prof_report_column *column,
                                                const void *row)
{
    struct prof_report_value value = prof_report_value(data, column, row);
    double scale = column->unit == PROF_UNIT_SHARE   ? 100
                   : column->unit == PROF_UNIT_BYTES ? 1e-6
                   : column->unit == PROF_UNIT_RATE  ? 1e-6
                                                     : 1;
    if (scale == 1 || (value.kind != PROF_VALUE_INT && value.kind != PROF_VALUE_REAL))
        return value;
    double real = value.kind == PROF_VALUE_INT ? (double)value.integer : value.real;
    /* Dividing keeps 167772160 bytes at 167.77216 MB; 1e-6 has no exact double. */
    value.real = scale > 1 ? real * scale : real / 1e6;
    value.kind = PROF_VALUE_REAL;
    return value;
}

bool prof_report_hides_zero(const struct prof_report_column *column)
{
    return column->unit == PROF_UNIT_JOULES ||
           (column->rank >= PROF_HIDE_ZERO &&
            (column->unit == PROF_UNIT_COUNT || column->unit == PROF_UNIT_WORD ||
             column->unit == PROF_UNIT_SHARE));
}

static struct prof_text date(int64_t seconds)
{
    struct prof_text text = {"n/a"};
    time_t time = (time_t)seconds;
    struct tm parts;
    if (gmtime_r(&time, &parts))
        strftime(text.text, sizeof text.text, "%Y-%m-%d %H:%M", &parts);
    return text;
}

struct prof_text prof_report_number(enum prof_report_unit unit, struct prof_report_value value)
{
    struct prof_text text = {"n/a"};
    double real = value.kind == PROF_VALUE_INT ? (double)value.integer : value.real;
    if (value.kind == PROF_VALUE_NONE || value.kind == PROF_VALUE_TEXT)
        return text;
    if (value.kind == PROF_VALUE_BOOL) {
        strcpy(text.text, value.integer ? "yes" : "no");
        return text;
    }
    if (value.kind == PROF_VALUE_XYZ) {
        text.text[0] = 0;
        for (int i = 0; i < 3; i++) {
            struct prof_text one = {"?"};
            if (value.xyz[i] != PROF_UNKNOWN)
                snprintf(one.text, sizeof one.text, "%u", (unsigned)value.xyz[i]);
            prof_append(text.text, sizeof text.text, "%s%s", i ? "x" : "", one.text);
        }
        return text;
    }
    switch (unit) {
    case PROF_UNIT_COUNT:
        return value.kind == PROF_VALUE_INT ? prof_count(value.integer)
                                            : prof_count((int64_t)llround(real));
    case PROF_UNIT_NS:
    case PROF_UNIT_MOMENT:
        return prof_duration(real);
    case PROF_UNIT_DATE:
        return date(value.kind == PROF_VALUE_INT ? value.integer : 0);
    case PROF_UNIT_CHANGE:
        text = prof_duration(fabs(real));
        memmove(text.text + 1, text.text, sizeof text.text - 2);
        text.text[0] = real < 0 ? '-' : '+';
        return text;
    case PROF_UNIT_BYTES:
        return prof_bytes(real);
    case PROF_UNIT_RATE:
        return prof_rate(real);
    case PROF_UNIT_FLOPS:
        return prof_flop_rate(real);
    case PROF_UNIT_JOULES:
        return prof_joules(real);
    case PROF_UNIT_RATIO:
        return prof_ratio(real);
    case PROF_UNIT_SHARE:
        return prof_percent(real);
    case PROF_UNIT_NUMBER:
    case PROF_UNIT_NAME:
    case PROF_UNIT_WORD:
    case PROF_UNIT_PROSE:
        break;
    }
    if (value.kind == PROF_VALUE_INT)
        prof_print_int(text.text, value.integer);
    else
        prof_print_fixed(text.text, real, 2);
    return text;
}

size_t prof_report_limit(size_t count, size_t top, size_t otherwise)
{
    size_t limit = top ? top : otherwise;
    return limit && limit < count ? limit : count;
}

const char *prof_report_none(const struct prof_report_data *data,
                             const struct prof_report_table *table)
{
    const struct prof_info *info = data ? data->info : NULL;
    if (info && info->summary && !table->in_summaries)
        return PROF_REPORT_NO_EVENTS;
    /* Its source may not record such events. */
    return info && info->state == PROF_STATE_IMPORTED ? PROF_REPORT_NOT_IMPORTED : table->none;
}

const void *prof_report_rows(const struct prof_report_data *data,
                             const struct prof_report_table *table, size_t *count)
{
    const char *from = (const char *)data;
    const void *rows;
    if (table->rows)
        return table->rows(data, count);
    if (table->rows_via)
        memcpy(&from, from + table->rows_via - 1, sizeof from);
    memcpy(&rows, from + table->rows_at, sizeof rows);
    memcpy(count, from + table->count_at, sizeof *count);
    return rows;
}

bool prof_report_worth(const struct prof_report_data *data, const struct prof_report_table *table)
{
    size_t count, worth = 0;
    const char *rows = prof_report_rows(data, table, &count);
    if (!table->optional)
        return true;
    for (size_t i = 0; table->row_worth && i < count && !worth; i++)
        worth += table->row_worth(rows + i * table->row_bytes);
    return count && !table->for_programs && (!table->row_worth || worth) &&
           (!table->worth || table->worth(data));
}

void prof_report_append_wall(const struct prof_report_data *data, char *out, size_t size)
{
    if (data->utilisation.count > 1)
        prof_append(out, size, "; of wall: 100 %% is one of %s devices",
                    prof_count((int64_t)data->utilisation.count).text);
}
