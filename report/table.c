/* Reads values out of result rows by their description, and turns them into text or JSON. */
#include <math.h>
#include <string.h>

#include "report/columns.h"

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
    return column->unit == PROF_UNIT_NAME || column->unit == PROF_UNIT_WORD;
}

struct prof_report_value prof_report_value(const struct prof_report_data *data,
                                           const struct prof_report_column *column, const void *row)
{
    const char *at = (const char *)row + column->offset;
    struct prof_report_value value = {0};
    switch (column->storage) {
    case PROF_STORED_INT64: {
        int64_t integer;
        memcpy(&integer, at, sizeof integer);
        return prof_report_int(integer);
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
    case PROF_STORED_COMPUTED:
        return column->compute(data, row);
    }
    return value;
}

struct prof_text prof_report_number(enum prof_report_unit unit, struct prof_report_value value)
{
    struct prof_text text = {"n/a"};
    double real = value.kind == PROF_VALUE_INT ? (double)value.integer : value.real;
    if (value.kind == PROF_VALUE_NONE || value.kind == PROF_VALUE_TEXT)
        return text;
    switch (unit) {
    case PROF_UNIT_COUNT:
        return value.kind == PROF_VALUE_INT ? prof_count(value.integer)
                                            : prof_count((int64_t)llround(real));
    case PROF_UNIT_NS:
    case PROF_UNIT_MOMENT:
        return prof_duration(real);
    case PROF_UNIT_BYTES:
        return prof_bytes(real);
    case PROF_UNIT_RATE:
        return prof_rate(real);
    case PROF_UNIT_FLOPS:
        return prof_flop_rate(real);
    case PROF_UNIT_RATIO:
        return prof_ratio(real);
    case PROF_UNIT_SHARE:
        return prof_percent(real);
    case PROF_UNIT_NUMBER:
    case PROF_UNIT_NAME:
    case PROF_UNIT_WORD:
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

void prof_report_json_value(struct prof_json *json, const char *key, struct prof_report_value value)
{
    switch (value.kind) {
    case PROF_VALUE_NONE:
        prof_json_null(json, key);
        break;
    case PROF_VALUE_INT:
        prof_json_int(json, key, value.integer);
        break;
    case PROF_VALUE_REAL:
        prof_json_real(json, key, value.real);
        break;
    case PROF_VALUE_TEXT:
        prof_json_string(json, key, value.text);
        break;
    }
}

const char *prof_report_none(const struct prof_report_data *data,
                             const struct prof_report_table *table)
{
    bool known = !strcmp(table->name, "kernels"); /* by the sums per second */
    return data->info->summary && !known ? PROF_REPORT_NO_EVENTS : table->none;
}

bool prof_report_worth(const struct prof_report_data *data, const struct prof_report_table *table)
{
    size_t count = 0;
    table->rows(data, &count);
    return !table->optional || (count && (!table->worth || table->worth(data)));
}
