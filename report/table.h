/* One description of a table, and one set of writers for it: text, CSV, JSON and Markdown, and the
 * HTML page's. The tables of a report, of --stats, --memory and --ranks, and those of other
 * commands are all described so; a column is added in one place, the file of its table.
 *
 *     // key, heading, unit, importance; report/columns.h has the macros
 *     static const struct prof_report_column columns[] = {
 *         STRING("name", "Baseline", NAME, 1, row, name),
 *         INT64("bytes", "Size", BYTES, 2, row, bytes),
 *         {0},
 *     };
 *     static const struct prof_report_table table = {
 *         .name = "baselines", .title = "Baselines", .none = "no baselines",
 *         .columns = columns, .row_bytes = sizeof(struct row),
 *     };
 *     struct prof_report_output output = {.format = PROF_REPORT_TEXT, .page = {.out = stdout}};
 *     status = prof_report_put_rows(&output, &table, rows, count, &err);
 *
 * A table that has rows of its own, from the analyses of a capture (`rows`) or one after the other
 * from a walk over its events (`walk`), is written by prof_report_put_table. For JSON the caller
 * opens an object in output.json; each table becomes a member of it. Rows that do not lie in one
 * struct are arrays of struct prof_report_value (PROF_STORED_VALUE). */
#ifndef PERFKIT_REPORT_TABLE_H
#define PERFKIT_REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/format.h"
#include "libprof/base/json.h"
#include "report/data.h"
#include "report/text.h"

enum prof_report_unit {
    PROF_UNIT_NAME,   /* text of the program under test: shortened where room is short */
    PROF_UNIT_WORD,   /* a short fixed text of ours */
    PROF_UNIT_PROSE,  /* a sentence of ours, with names of the program in it */
    PROF_UNIT_NUMBER, /* an id or code: no thousands separators, no sum */
    PROF_UNIT_COUNT,
    PROF_UNIT_NS,     /* a duration */
    PROF_UNIT_CHANGE, /* of a duration, with its sign */
    PROF_UNIT_MOMENT, /* ns since the start of the capture */
    PROF_UNIT_DATE,   /* seconds since 1970, UTC */
    PROF_UNIT_BYTES,
    PROF_UNIT_RATE,  /* bytes per second */
    PROF_UNIT_FLOPS, /* floating-point operations per second */
    PROF_UNIT_JOULES,
    PROF_UNIT_RATIO, /* a number of any size, without a unit */
    PROF_UNIT_SHARE, /* 0..1 */
};

enum prof_report_kind {
    PROF_VALUE_NONE, /* unknown, or it does not apply */
    PROF_VALUE_INT,
    PROF_VALUE_REAL,
    PROF_VALUE_TEXT,
    PROF_VALUE_BOOL, /* integer: 0, 1; "yes", "no" */
    PROF_VALUE_XYZ,  /* an array of three in JSON, "264x1x1" elsewhere */
};

struct prof_report_value {
    enum prof_report_kind kind;
    int64_t integer;
    double real;
    const char *text;   /* lives as long as the row */
    const int64_t *xyz; /* three, each may be PROF_UNKNOWN; as long as the row */
};

enum prof_report_storage {
    PROF_STORED_INT64,
    PROF_STORED_INT,
    PROF_STORED_DOUBLE,
    PROF_STORED_STRING, /* const char * */
    PROF_STORED_CHARS,  /* char [], "" = none */
    PROF_STORED_BOOL,
    PROF_STORED_XYZ,   /* int64_t [3], none where the first is PROF_UNKNOWN */
    PROF_STORED_VALUE, /* struct prof_report_value */
    PROF_STORED_ID,    /* int64_t: what `of_id` says of it */
    PROF_STORED_COMPUTED,
};

/* What an id in a row is of. */
enum prof_report_object {
    PROF_OBJECT_none,
    PROF_OBJECT_process,
    PROF_OBJECT_thread,
    PROF_OBJECT_device,
    PROF_OBJECT_context,
    PROF_OBJECT_stream,
};

struct prof_report_column {
    const char *key;   /* JSON key and CSV heading, with the unit: "total_ns" */
    const char *title; /* heading for people */
    enum prof_report_unit unit;
    /* Importance for people: 0 = only in JSON and CSV, and on request on the HTML page; 1 = always
     * shown; above, the highest number leaves first when the terminal is narrow. From
     * PROF_HIDE_ZERO on, a count, word or share that is 0 or unknown in every row is left
     * out. */
    int rank;
    enum prof_report_storage storage;
    size_t offset; /* in the row, or, */
    size_t via; /* not 0: in the struct that a pointer, or the id of an `object`, at `via` - 1 of the
                   row leads to; not known where there is none */
    enum prof_report_object object;
    struct prof_report_value (*compute)(const struct prof_report_data *data, const void *row);
    struct prof_report_value (*of_id)(const struct prof_report_data *data, int64_t id);
    bool blank; /* it does not apply to every row: nothing instead of "n/a" where unknown */
    bool bar;   /* HTML: a bar, its share of the largest value of rows with the same `kind` */
    /* Kernels: perfkit top has the column too, of the launch configuration that took most of the
     * time. Its value is a number or a text that follows from the row's `config` alone. */
    bool in_top;
};

#define PROF_HIDE_ZERO 4

/* Rows that are made one after the other, so that a table of any length passes through in constant
 * memory. */
struct prof_report_row_walk {
    struct prof_capture *capture;
    const struct prof_filter *filter;
    /* Called once for each row, which lives until it returns. False: enough. */
    bool (*row)(void *user, const void *row);
    void *user;
    /* Set before the first row by tables whose "Time (%)" is a share of the rows. */
    int64_t listed_ns, wall_ns;
    bool brief;     /* for people: stacks without what is between their lines */
    bool stackless; /* set by tables whose rows name a caller: no row has one */
    void *source;   /* prof_report_output.source */
};

/* Sentences that a reader of a table needs, cleaned; each a line below it. */
#define PROF_REPORT_NOTES 7
#define PROF_REPORT_NOTE_BYTES 400
struct prof_report_notes {
    char text[PROF_REPORT_NOTES][PROF_REPORT_NOTE_BYTES];
    size_t count;
};

/* Kernels made of templates differ late in their names: they take more room than other names. */
#define PROF_REPORT_KERNEL_CELLS 44

/* The part of the HTML page in which a table is. */
enum prof_report_part {
    PROF_PART_HOST,
    PROF_PART_RANKS,
    PROF_PART_KERNELS,
    PROF_PART_ROOFLINE,
    PROF_PART_TRANSFERS,
    PROF_PART_MEMORY,
    PROF_PART_DEVICES,
    PROF_PART_MACHINE,
    PROF_PART_NONE, /* not there: the page shows the same elsewhere */
};

struct prof_report_table {
    const char *name;  /* JSON key and CSV section: "kernels" */
    const char *title; /* heading for people: "Kernels" */
    const char *none;  /* the line in place of an empty table: "no kernels" */
    const char *help;  /* what its words mean, one sentence */
    const struct prof_report_column *columns; /* ended by a NULL key */
    size_t row_bytes;
    size_t screen_rows; /* how many a text report shows without --top */
    size_t name_cells;  /* columns of text that its names keep as long as others can go; 0 = 24 */
    /* Of its own rows: in the data of the report, or, where rows_via is not 0, in what its pointer
     * at rows_via - 1 leads to, the offsets of a pointer to them and of how many; or a function. */
    size_t rows_at, count_at, rows_via;
    const void *(*rows)(const struct prof_report_data *data, size_t *count);
    /* In the text report: left out below so many rows; at most so many on its first screen (0 = not
     * there, PROF_HEADING_ONLY = the line of totals alone). */
    size_t least_rows, first_rows;
    bool not_in_text;  /* it says the same in lines of its own, or leaves it to the other formats */
    bool optional;     /* left out where people read when it is empty, or not worth it */
    bool in_summaries; /* known without events: a summary (perfkit merge --summary) has it too */
    bool (*worth)(const struct prof_report_data *data); /* NULL: whenever it has rows */
    bool (*row_worth)(const void *row);                 /* or where one row is worth it */
    bool for_programs;                                  /* never where people read */
    /* A row about all of them that is more than their sum; NULL = none. */
    const void *(*total_row)(const struct prof_report_data *data);
    enum prof_report_part part;
    int part_order; /* in the part behind tables with a lower one, else as in the other formats */
    bool unfolds;   /* HTML: a row unfolds to more about its kernel */
    /* One line of totals ("2,000 launches of 5 kernels, 7.0 s"); NULL = none. */
    void (*totals)(const struct prof_report_data *data, char *out, size_t size);
    void (*notes)(const struct prof_report_data *data, struct prof_report_notes *notes);
    /* Rows without an array, instead of `rows`. */
    enum prof_status (*walk)(struct prof_report_row_walk *walk, struct prof_error *err);
    /* What a capture has it by: options of perfkit run that are not its defaults; NULL = none. */
    const char *needs;
    /* As nsys writes its tables: every column, values in the units of their headings (percent, MB
     * of 10^6 bytes, MB/s) with all their digits. */
    bool nsys;
};

#define PROF_HEADING_ONLY SIZE_MAX

/* In the order in which they are shown (columns.h), ended by NULL. Static. */
extern const struct prof_report_table *const prof_report_tables[];

/* Its own rows. */
const void *prof_report_rows(const struct prof_report_data *data,
                             const struct prof_report_table *table, size_t *count);

/* Has a page for people something to say with this table? */
bool prof_report_worth(const struct prof_report_data *data, const struct prof_report_table *table);

#define PROF_REPORT_NO_EVENTS "n/a: a summary (perfkit merge --summary) has no single events"
#define PROF_REPORT_NOT_IMPORTED "n/a: the imported file has none"

/* The line in place of an empty table: that there was none of it, or that it is not known in this
 * capture. Static. */
const char *prof_report_none(const struct prof_report_data *data,
                             const struct prof_report_table *table);

/* NULL when there is none of that name. */
const struct prof_report_table *prof_report_table(const char *name);

/* ---- values ---------------------------------------------------------------------------------- */

struct prof_report_value prof_report_value(const struct prof_report_data *data,
                                           const struct prof_report_column *column,
                                           const void *row);

/* In the unit that the heading of an nsys table promises. */
struct prof_report_value prof_report_nsys_value(const struct prof_report_data *data,
                                                const struct prof_report_column *column,
                                                const void *row);

/* Names and words are aligned left, numbers right. */
bool prof_report_is_left(const struct prof_report_column *column);

/* Is this column left out where it is 0 or unknown in every row? */
bool prof_report_hides_zero(const struct prof_report_column *column);

/* A number as people read it, by its unit; texts are not for this: use value.text. */
struct prof_text prof_report_number(enum prof_report_unit unit, struct prof_report_value value);

/* How many of `count` rows to show: `top` when given, else `otherwise` (0 = all). */
size_t prof_report_limit(size_t count, size_t top, size_t otherwise);

/* The columns of a row as members of the object that is open, and rows as an array of objects: for
 * documents whose rows have more in them than a table. */
void prof_report_json_members(struct prof_json *json, const struct prof_report_column *columns,
                              const void *row);
void prof_report_json_rows(struct prof_json *json, const char *key,
                           const struct prof_report_table *table, const void *rows, size_t count);

/* The value under `key` (NULL inside arrays): exact numbers, null when unknown. */
void prof_report_json_value(struct prof_json *json, const char *key,
                            struct prof_report_value value);
/* A field of CSV (RFC 4180), empty when unknown. */
void prof_report_csv_value(FILE *out, struct prof_report_value value);

/* ---- writing --------------------------------------------------------------------------------- */

struct prof_report_layout; /* of a table in text, table_text.c */

/* Where tables go and how; {0} but for `format` and `page.out` is a good start. */
struct prof_report_output {
    enum prof_report_format format;
    struct prof_report_page page;
    const struct prof_report_data *data; /* of the capture; NULL = the tables are about none */
    struct prof_json *json;              /* JSON: an object is open, or an array for nsys' tables */
    size_t screen_rows; /* text: how many rows unless page.top, 0 = the table's own choice, or
                           PROF_HEADING_ONLY */
    bool flush;         /* text: rows begin in the first column */
    size_t name_max;    /* text: cells of a name, which pads all rows; 0 = as the line has room */
    bool several;       /* CSV of nsys' tables: a line with its name before each */
    bool notes_apart;   /* the caller writes the notes of the tables */
    bool bare;       /* alone: JSON the array of rows, without the object around it; CSV without the
                        table's name; Markdown without a heading */
    void *source;    /* of the rows of a table that is walked, beside the capture */
    int level;       /* Markdown: of the headings, 0 = 2 */
    const char *key; /* HTML: the member of the open object; NULL = an array is open */
    const char *totals; /* HTML: instead of the table's own; NULL = those */
    size_t all_rows;    /* rows that are given are the first of so many; 0 = they are all */
    void (*progress)(void *context, int64_t done, int64_t total);
    void *progress_context;

    /* The rest belongs to the writers. */
    const struct prof_report_table *table;
    struct prof_report_row_walk *walk;
    struct prof_report_layout *layout;
    size_t tables;      /* written before this one */
    size_t total, rows; /* rows there are (0 = not known), written */
    size_t more;        /* left out */
    bool no_memory;
};

/* The table with its own rows. */
enum prof_status prof_report_put_table(struct prof_report_output *output,
                                       const struct prof_report_table *table,
                                       struct prof_error *err);

/* The table with these rows. */
enum prof_status prof_report_put_rows(struct prof_report_output *output,
                                      const struct prof_report_table *table, const void *rows,
                                      size_t count, struct prof_error *err);

struct prof_sql;
/* What a query gives, as a table: to its end, or to page.top. JSON: the member output->key of the
 * open object; NULL = a document or an element of its own. */
enum prof_status prof_report_put_sql(struct prof_report_output *output, struct prof_sql *sql,
                                     struct prof_error *err);

#endif
