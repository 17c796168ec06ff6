/* The one printer of results, as tables for people or as JSON: a workload says once what a row
 * holds, and each value goes to the column and the member that it names.
 */
#ifndef WORKLOADS_COMMON_REPORT_H
#define WORKLOADS_COMMON_REPORT_H

#include <stdio.h>

#include "workloads/common/claims.h"
#include "workloads/common/json.h"
#include "workloads/common/measure.h"
#include "workloads/common/options.h"
#include "workloads/common/table.h"

struct output {
    bool as_json;
    struct json json;
    struct table table;
    FILE *notes; /* printed below the table */
};

/* Prints the first line, the workload and the device; with --json opens the object, with the
 * members that all workloads have. */
void output_begin(struct output *out, const char *workload, const struct dev_info *info,
                  const struct common_options *common);
/* Tables only: a line above them. */
void output_line(struct output *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The object or array that is open, for members that only JSON has; NULL for tables. */
struct json *output_json(struct output *out);
void output_setting(struct output *out, const char *key, uint64_t number); /* JSON only */
/* What --verify compares the results with; NULL: nothing. */
void output_compared(struct output *out, const char *text);

/* `count` rows, described by calls of `row`: the array `key`, or a table after `title` with the
 * notes below it. Either may be NULL: JSON then leaves the rows out, a table has no title. A row
 * for which nothing is called is left out of a table. */
typedef void output_row(struct output *out, const void *context, size_t index);
void output_rows(struct output *out, const char *key, const char *title, size_t count,
                 output_row *row, const void *context);

/* The claims, unless NULL, and the end of the object. */
void output_end(struct output *out, const struct claims *claims);

/* ---- within a row ----------------------------------------------------------------------------
 *
 * `header` names the column (a leading '<': left-aligned), `key` the member; NULL: it has none. */
void output_text(struct output *out, const char *key, const char *header, const char *text);
void output_count(struct output *out, const char *key, const char *header, uint64_t number);
/* "n/a" for NaN. The table shows number * scale. */
void output_number(struct output *out, const char *key, const char *header, int digits,
                   double scale, double number);
void output_duration(struct output *out, const char *key, const char *header, double ns);
void output_cell(struct output *out, const char *header, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The members of a check that was done; with `key` as an object of that name. */
void output_check(struct output *out, const char *key, const char *header,
                  const struct check *check);
/* Members kernel_ns, transfer_ns, host_ns, wall_ns, and what an iteration did. */
void output_measurement(struct output *out, const struct measurement *measured);
/* Members components and components_total_ns: where the time of an iteration went, `count` parts
 * that sum to it. */
void output_components(struct output *out, const char *const *names, const double *mean_ns,
                       size_t count);
/* Whether there is nothing to measure: `reason` is neither NULL nor empty. The rest of the row is
 * "n/a" then; the member `skipped` holds the reason. */
bool output_skipped(struct output *out, const char *reason);
/* Tables only: a sentence below the table. */
void output_note(struct output *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

void stats_json(struct json *json, const char *key, const struct stats *stats);

/* Whether a check that was done failed; it says so on stderr then. */
bool check_failed(const char *workload, const char *variant, const struct check *check);

#endif
