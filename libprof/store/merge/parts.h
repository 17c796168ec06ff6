/* Shared by the files of this folder.
 *
 *   merge.c    the order of things; what a file says of itself
 *   check.c    twice, missing, mixed    clock.c    whose times differ by how much
 *   fit.c      when collectives ended, which are the same, and two clocks by them
 *   plan.c     what becomes of a table, numbers of rows, old to new
 *   copy.c     small tables, rollup     events.c   big ones, by time
 *   trust.c    the trust block and the row of `capture` */
#ifndef PERFKIT_STORE_MERGE_PARTS_H
#define PERFKIT_STORE_MERGE_PARTS_H

#include <sqlite3.h>

#include "libprof/base/array.h"
#include "libprof/base/map.h"
#include "libprof/store/health.h"
#include "libprof/store/merge.h"
#include "libprof/store/rollup_sums.h"
#include "libprof/store/schema.h"
#include "libprof/store/store.h"

#define MERGE_MOST_COLUMNS 64
#define MERGE_MOST_TABLES 96

/* ---- plan.c: numbers of rows ----------------------------------------------------------------- */

/* Of one table of one file. Without `old` the old numbers are `first`, `first` + 1, ...; without
 * `now` the new ones are `base`, `base` + 1, ... in order of the old ones. */
struct merge_ids {
    int64_t first, base;
    size_t count;
    int64_t *old, *now;
};

/* Index of an old number, or SIZE_MAX. */
size_t merge_ids_find(const struct merge_ids *ids, int64_t old);
/* The new number, 0 = there is no such row. */
int64_t merge_ids_now(const struct merge_ids *ids, int64_t old);
/* Take the numbers that `sql` yields in rising order. PROF_CORRUPT: the file cannot be read. */
enum prof_status merge_ids_read(struct merge_ids *ids, sqlite3 *db, const char *sql);
/* Room for new numbers one by one. */
bool merge_ids_scatter(struct merge_ids *ids);
void merge_ids_free(struct merge_ids *ids);

/* ---- fit.c ----------------------------------------------------------------------------------- */

/* reference = source + offset + drift * (source - middle) */
struct merge_fit {
    int64_t offset_ns, middle_ns, error_ns; /* error: median of what is left */
    double drift;
    uint64_t compared;
    uint64_t source_only, reference_only; /* operations between two pairs that only one side has */
};

/* From the ends of the same operations on two clocks, both rising. Each side may lack some
 * anywhere. The pairing with the least error is taken; among like ones that nearest to
 * `expected_ns` (PROF_MERGE_UNKNOWN, or as many on both sides: that which leaves out the fewest at
 * the begin). False: too few, or out of memory. */
bool merge_fit(const int64_t *source, size_t source_count, const int64_t *reference,
               size_t reference_count, int64_t expected_ns, struct merge_fit *fit);

/* ---- fit.c ----------------------------------------------------------------------------------- */

struct merge_ends_of {
    int kind;                 /* which operation, seen how */
    PROF_ARRAY(int64_t) ends; /* on the file's CLOCK_MONOTONIC, ns, rising */
};
struct merge_ends {
    PROF_ARRAY(struct merge_ends_of) of;
};

struct merge_input;
/* When collectives of the first process that has any ended. Nothing is an error but the lack of
 * memory: what cannot be read is not there. */
bool merge_ends_read(const struct merge_input *input, struct merge_ends *ends);
void merge_ends_free(struct merge_ends *ends);

/* ---- merge.c --------------------------------------------------------------------------------- */

struct merge_process {
    int64_t pid, start_ns; /* start on its host's CLOCK_MONOTONIC */
    int64_t rank, world;   /* -1 = unknown */
    bool has_events;
};

struct merge_input {
    const char *path;
    struct prof_merge_part *part; /* NULL: `passing` */
    struct prof_store *store;     /* NULL = not open */
    sqlite3 *db;
    bool gone; /* left out */
    bool described;

    /* the row of `capture`; NULL and PROF_MERGE_UNKNOWN = unknown */
    char *state, *version, *command, *directory, *host, *boot_id, *kernel, *cpu, *trace, *filter,
        *job;
    int64_t cpu_count, start_mono_ns, start_realtime_ns, start_raw_ns, duration_ns, status, signal;
    PROF_ARRAY(struct merge_process) processes;
    bool merged; /* it has parts of its own */
    char *
        merged_boot_id; /* of the kernel whose clock its times are; NULL = not known, or no parts */
    bool summary;       /* it has no events: perfkit merge --summary made it */

    /* its times: result = time + shift + drift * (time - middle), ns since the start of either */
    int64_t shift_ns, middle_ns;
    double drift;
    int group; /* files with the same clock */

    struct merge_ids ids[MERGE_MOST_TABLES];
    int64_t part_row;        /* merged_part.id, 0 = its parts have their own */
    bool passing;            /* a file of ours on the way */
    enum prof_status failed; /* nothing can be made of what was read */
};

/* Open and describe. PROF_CORRUPT: it is cut short or damaged, the sentence in *err. */
enum prof_status merge_input_open(struct merge_input *input, struct prof_error *err);
/* What was read stays; the file is closed. */
void merge_input_close(struct merge_input *input);
/* Part of it cannot be read: say so once. Out of memory (PROF_NOMEM), or of a file of ours on the
 * way, it becomes `failed`. */
void merge_input_damaged(struct merge_input *input, enum prof_status why);
/* Finalize a statement whose rows were read (NULL: it could not be prepared); damaged when it
 * failed.
 */
void merge_input_end(struct merge_input *input, sqlite3_stmt *rows);
/* Add to part->missing. */
bool merge_lacks(struct prof_merge_part *part, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A time, ns since the start of the input, as ns since the start of the result. */
int64_t merge_time(const struct merge_input *input, int64_t time_ns);

/* ---- plan.c ---------------------------------------------------------------------------------- */

enum merge_way {
    MERGE_LEAVE,   /* made anew, or not wanted */
    MERGE_SHARE,   /* rows that are alike become one */
    MERGE_APPEND,  /* file by file */
    MERGE_BY_TIME, /* interleaved */
};

struct merge_table {
    const struct prof_table *schema;
    enum merge_way way;
    int columns;
    int start;     /* column of that name, -1 = none */
    bool referred; /* by rows of another table */
    struct {
        enum prof_time time;
        int refers; /* index of a table, -1 = none */
    } column[MERGE_MOST_COLUMNS];
};

struct merge_plan {
    struct merge_table tables[MERGE_MOST_TABLES];
    int order[MERGE_MOST_TABLES]; /* tables before those that refer to them */
    int count;
};

void merge_plan_make(struct merge_plan *plan, bool summary);
int merge_plan_find(const struct merge_plan *plan, const char *table);
/* "SELECT id, ... FROM table <tail>". Free with
 * sqlite3_free; NULL = out of memory. */
char *merge_select_sql(const struct merge_table *table, const char *tail);

/* ---- merge.c --------------------------------------------------------------------------------- */

/* A line of the trust block about the whole, or of several files at once. */
struct merge_line {
    char *subject, *item, *note, *level, *code; /* NULL = none */
    bool has_value;
    int64_t value;    /* of all files together */
    size_t files;     /* that have it; 0 = ours */
    const char *path; /* of the first */
};

struct merge {
    const struct prof_merge_options *options;
    struct prof_merge_result *result;
    struct prof_error *err;
    const char *output;
    struct merge_plan plan;
    struct merge_input *all; /* the files, */
    size_t all_count;
    struct merge_input *inputs; /* and those whose rows are merged now */
    size_t count;
    /* of the result */
    int64_t zero_mono_ns, zero_realtime_ns, duration_ns;
    sqlite3 *out;
    int64_t last[MERGE_MOST_TABLES]; /* newest row number of each table */
    bool sums;                       /* made of the kernels that are written */
    struct rollup_sums rollup;
    PROF_ARRAY(struct merge_line) lines;
    struct prof_names line_of; /* subject, item, note -> index */
};

/* Fill m->err: the result cannot be written, or there is no memory. */
enum prof_status merge_write_fail(struct merge *m);
/* Write the sums per second that changed; see rollup_sums_flush. */
enum prof_status merge_flush_sums(struct merge *m, sqlite3_stmt *insert);
/* Now and then: PROF_INVALID when the caller wants it to stop. */
enum prof_status merge_look_up(struct merge *m);

/* A reading of the input's CLOCK_MONOTONIC as one of the result's. */
int64_t merge_mono(const struct merge *m, const struct merge_input *input, int64_t mono_ns);

/* ---- the steps ------------------------------------------------------------------------------- */

/* check.c: files given twice are left out; ranks that are missing or there twice become notes. */
enum prof_status merge_check(struct merge *m);
/* clock.c: fill shift, drift and middle of every input and the clock of its part. */
enum prof_status merge_clocks(struct merge *m);
/* copy.c, events.c: the rows of one table, of all inputs. */
enum prof_status merge_copy(struct merge *m, int table);
enum prof_status merge_events(struct merge *m, int table);
/* copy.c: what is known of the parts when their rows are in. */
enum prof_status merge_finish_parts(struct merge *m);
/* copy.c: rows of rollup as they are, of files without kernels (or all, in a summary). */
enum prof_status merge_sums(struct merge *m);
/* trust.c: the row of `capture`; what files say of themselves as a whole (not of a process); all of
 * it. */
enum prof_status merge_write_capture(struct merge *m);
enum prof_status merge_add_lines(struct merge *m, struct merge_input *input);
enum prof_status merge_write_lines(struct merge *m);
void merge_free_lines(struct merge *m);
/* A line of our own, and a note of the result. False: out of memory. */
bool merge_note(struct merge *m, enum prof_health_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
