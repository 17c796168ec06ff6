/* The tables of a report, described once: name, columns, units, where each value lies. Text, json,
 * csv, markdown and html walk these descriptions, so a column is added in one place: its family's
 * tables_*.c. */
#ifndef PERFKIT_REPORT_TABLE_H
#define PERFKIT_REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/format.h"
#include "libprof/base/json.h"
#include "report/data.h"

enum prof_report_unit {
    PROF_UNIT_NAME,   /* text of the program under test: shortened where room is short */
    PROF_UNIT_WORD,   /* a short fixed text of ours */
    PROF_UNIT_NUMBER, /* an id or code: no thousands separators, no sum */
    PROF_UNIT_COUNT,
    PROF_UNIT_NS,     /* a duration */
    PROF_UNIT_MOMENT, /* ns since the start of the capture */
    PROF_UNIT_BYTES,
    PROF_UNIT_RATE,  /* bytes per second */
    PROF_UNIT_FLOPS, /* floating-point operations per second */
    PROF_UNIT_RATIO, /* a number of any size, without a unit */
    PROF_UNIT_SHARE, /* 0..1 */
};

enum prof_report_kind { PROF_VALUE_NONE, PROF_VALUE_INT, PROF_VALUE_REAL, PROF_VALUE_TEXT };

struct prof_report_value {
    enum prof_report_kind kind; /* NONE: unknown, or it does not apply */
    int64_t integer;
    double real;
    const char *text; /* lives until the capture is closed, or static */
};

enum prof_report_storage {
    PROF_STORED_INT64,
    PROF_STORED_INT,
    PROF_STORED_DOUBLE,
    PROF_STORED_STRING, /* const char * */
    PROF_STORED_COMPUTED,
};

struct prof_report_column {
    const char *key;   /* JSON key and CSV heading, with the unit: "total_ns" */
    const char *title; /* heading for people */
    enum prof_report_unit unit;
    /* Place in the text table: 0 = not in it, 1 = always, then the highest leaves first when the
     * terminal is narrow. Markdown shows what has a place. */
    int rank;
    enum prof_report_storage storage;
    size_t offset; /* in the row */
    struct prof_report_value (*compute)(const struct prof_report_data *data, const void *row);
};

/* What tells kernels made of templates apart takes more room than other names do. */
#define PROF_REPORT_KERNEL_CELLS 44

struct prof_report_table {
    const char *name;  /* JSON key and CSV section: "kernels" */
    const char *title; /* heading for people: "Kernels" */
    const char *none;  /* the line that stands for an empty table: "no kernels" */
    const char *help;  /* what its words mean, one sentence */
    const struct prof_report_column *columns; /* ended by a NULL key */
    size_t row_bytes;
    size_t screen_rows; /* how many a text report shows when nobody asks for a number */
    size_t name_cells;  /* columns of text that its names keep as long as others can go; 0 = 24 */
    const void *(*rows)(const struct prof_report_data *data, size_t *count);
    /* In the text report: left out below so many rows; at most so many on its first screen (0 = not
     * there, PROF_HEADING_ONLY = the line of totals alone). */
    size_t least_rows, first_rows;
    bool not_in_text; /* it says the same in lines of its own, or leaves it to the other formats */
    bool optional;    /* left out where people read when it is empty, or not worth it */
    bool (*worth)(const struct prof_report_data *data); /* NULL: whenever it has rows */
    /* A row that stands for all of them and is more than their sum; NULL = none. */
    const void *(*total_row)(const struct prof_report_data *data);
    /* One line of totals ("2,000 launches of 5 kernels, 7.0 s"); NULL = none. */
    void (*totals)(const struct prof_report_data *data, char *out, size_t size);
};

#define PROF_HEADING_ONLY SIZE_MAX

/* In the order in which they are shown (columns.h), ended by NULL. Static. */
extern const struct prof_report_table *const prof_report_tables[];

/* Has a page for people something to say with this table? */
bool prof_report_worth(const struct prof_report_data *data, const struct prof_report_table *table);

#define PROF_REPORT_NO_EVENTS "n/a: a summary (perfkit merge --summary) has no single events"

/* The line that stands for an empty table: that there was none of it, or that this capture cannot
 * tell. Static. */
const char *prof_report_none(const struct prof_report_data *data,
                             const struct prof_report_table *table);

/* NULL when there is none of that name. */
const struct prof_report_table *prof_report_table(const char *name);

struct prof_report_value prof_report_value(const struct prof_report_data *data,
                                           const struct prof_report_column *column,
                                           const void *row);

/* Names and words are aligned left, numbers right. */
bool prof_report_is_left(const struct prof_report_column *column);

/* A number as people read it, by its unit; texts are not for this: use value.text. */
struct prof_text prof_report_number(enum prof_report_unit unit, struct prof_report_value value);

/* How many of `count` rows to show: `top` when given, else `otherwise` (0 = all). */
size_t prof_report_limit(size_t count, size_t top, size_t otherwise);

/* The value under `key` (NULL inside arrays): exact numbers, null when unknown. */
void prof_report_json_value(struct prof_json *json, const char *key,
                            struct prof_report_value value);

#endif
