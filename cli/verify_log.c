/* How true the predictions were: a line of JSON for each comparison of `perfkit verify --log`, and
 * the table of them. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/verify.h"
#include "libprof/base/array.h"
#include "libprof/base/document.h"
#include "libprof/base/format.h"
#include "libprof/base/regular.h"
#include "report/columns.h"

/* ---- writing --------------------------------------------------------------------------------- */

static void put_score(struct prof_json *json, char *const files[2], const struct prof_verify *v)
{
    char date[24];
    struct tm utc;
    time_t now = time(NULL);
    if (!gmtime_r(&now, &utc) || !strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &utc))
        date[0] = 0;
    prof_json_object(json, NULL);
    prof_json_int(json, "perfkit_verify_log", 1);
    prof_json_string(json, "date", date);
    prof_json_string(json, "before", files[0]);
    prof_json_string(json, "after", files[1]);
    prof_json_string(json, "phase", v->sides[0].phase[0] ? v->sides[0].phase : NULL);
    prof_json_real(json, "before_ns", v->sides[0].median_ns);
    prof_json_real(json, "after_ns", v->sides[1].median_ns);
    prof_json_real(json, "predicted_ns", v->predicted_ns);
    prof_json_real(json, "saved_ns", v->saved_ns);
    prof_json_real(json, "saved_low_ns", v->saved_low_ns);
    prof_json_real(json, "saved_high_ns", v->saved_high_ns);
    prof_json_array(json, "findings");
    for (size_t i = 0; i < v->count; i++) {
        prof_json_object(json, NULL);
        prof_json_string(json, "rule", v->rows[i].rule->id);
        prof_json_string(json, "verdict", prof_verify_name(v->rows[i].verdict));
        prof_json_real(json, "before_ns", v->rows[i].before_ns);
        prof_json_real(json, "after_ns", v->rows[i].after_ns);
        prof_json_end(json);
    }
    prof_json_end(json);
    prof_json_end(json);
}

/* In one write, so that lines of two processes do not mix. */
static enum prof_status append_line(const char *path, struct prof_json *json,
                                    struct prof_error *err)
{
    if (!strcmp(path, VERIFY_LOG) && mkdir(".perfkit", 0777) && errno != EEXIST)
        return prof_fail_errno(err, PROF_IO, ".perfkit: cannot be made");
    FILE *there = prof_read_regular(path);
    int first = there ? fgetc(there) : EOF;
    bool cut = there && !fseek(there, -1, SEEK_END) && fgetc(there) != '\n'; /* by a full disk */
    if (there)
        fclose(there);
    if (first != EOF && first != '{') /* as a capture, which a line at its end would damage */
        return prof_fail(err, PROF_INVALID,
                         "%s is not a log of perfkit verify, nothing was added to it: name another "
                         "file with --log=FILE",
                         path);
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0)
        return prof_fail_errno(err, PROF_IO, "%s: cannot be opened", path);
    json->data[json->count] = '\n'; /* in place of its NUL */
    size_t length = json->count + 1;
    bool whole =
        (!cut || write(file, "\n", 1) == 1) && write(file, json->data, length) == (ssize_t)length;
    enum prof_status status =
        whole ? PROF_OK : prof_fail_errno(err, PROF_IO, "%s: cannot be written", path);
    if (close(file) && !status)
        status = prof_fail_errno(err, PROF_IO, "%s: cannot be written", path);
    return status;
}

enum prof_status verify_log_add(const char *path, char *const files[2],
                                const struct prof_verify *result, struct prof_error *err)
{
    struct prof_json json;
    if (result->why_none)
        return PROF_OK;
    prof_json_to_memory(&json, 0);
    put_score(&json, files, result);
    enum prof_status status = prof_json_finish(&json, err);
    if (!status)
        status = append_line(path, &json, err);
    free(json.data);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct log_row {
    cJSON *line;
    const char *date, *before, *after, *phase; /* borrowed of `line` */
    double before_ns, after_ns, predicted_ns, saved_ns;
    double ratio; /* saved / predicted; NaN where nothing was predicted */
    int64_t fixed, findings;
};

struct score_log {
    PROF_ARRAY(struct log_row) rows;
    const char *path;
    int64_t damaged; /* lines that cannot be read */
    size_t predictions;
    double median, low, high; /* saved / predicted; NaN = too few */
};

static void read_score(struct score_log *log, cJSON *line)
{
    struct log_row *row = &log->rows.data[log->rows.count - 1];
    const cJSON *finding, *findings = cJSON_GetObjectItemCaseSensitive(line, "findings");
    *row = (struct log_row){.line = line,
                            .date = prof_document_text(line, "date"),
                            .before = prof_document_text(line, "before"),
                            .after = prof_document_text(line, "after"),
                            .phase = prof_document_text(line, "phase"),
                            .before_ns = prof_document_real(line, "before_ns"),
                            .after_ns = prof_document_real(line, "after_ns"),
                            .predicted_ns = prof_document_real(line, "predicted_ns"),
                            .saved_ns = prof_document_real(line, "saved_ns")};
    row->ratio = row->predicted_ns > 0 ? row->saved_ns / row->predicted_ns : NAN;
    cJSON_ArrayForEach(finding, findings)
    {
        const char *verdict = prof_document_text(finding, "verdict");
        row->findings++;
        row->fixed += verdict && (!strcmp(verdict, prof_verify_name(PROF_VERIFY_GONE)) ||
                                  !strcmp(verdict, prof_verify_name(PROF_VERIFY_PARTLY)));
    }
}

static enum prof_status read_log(struct score_log *log, struct prof_error *err)
{
    FILE *file = fopen(log->path, "re");
    char *text = NULL;
    size_t room = 0;
    ssize_t length;
    enum prof_status status = PROF_OK;
    if (!file && errno == ENOENT)
        return prof_fail(err, PROF_NOTFOUND,
                         "%s: no such file: perfkit verify --log BEFORE AFTER adds to it",
                         log->path);
    if (!file)
        return prof_fail_errno(err, PROF_IO, "%s: cannot be opened", log->path);
    while (!status && (length = getline(&text, &room, file)) > 0) {
        cJSON *line = NULL;
        enum prof_status parsed = prof_document_parse(text, (size_t)length, log->path, &line, NULL);
        if (parsed == PROF_NOMEM) {
            status = prof_out_of_memory(err);
        } else if (prof_document_real(line, "perfkit_verify_log") != 1) {
            cJSON_Delete(line);
            log->damaged++;
        } else if (prof_array_add(&log->rows)) {
            read_score(log, line);
        } else {
            cJSON_Delete(line);
            status = prof_out_of_memory(err);
        }
    }
    if (!status && ferror(file))
        status = prof_fail_errno(err, PROF_IO, "%s: cannot be read", log->path);
    free(text);
    fclose(file);
    return status;
}

static const struct prof_report_column log_columns[] = {
    STRING("date", "Date (UTC)", WORD, 1, log_row, date),
    REAL("before_ns", "Before", NS, 2, log_row, before_ns),
    REAL("after_ns", "After", NS, 2, log_row, after_ns),
    REAL("predicted_ns", "Predicted", NS, 1, log_row, predicted_ns),
    REAL("saved_ns", "Saved", CHANGE, 1, log_row, saved_ns),
    REAL("ratio", "Of predicted", RATIO, 1, log_row, ratio),
    INT64("fixed", "Gone, partly", COUNT, 1, log_row, fixed),
    INT64("findings", "Findings", COUNT, 3, log_row, findings),
    STRING("phase", "Phase", NAME, 3, log_row, phase),
    STRING("before", "Run before", NAME, 4, log_row, before),
    STRING("after", "Run after", NAME, 4, log_row, after),
    {0},
};

static const struct prof_report_table log_table = {.name = "scores",
                                                   .title = "Predictions, and what came",
                                                   .none = "nothing was verified",
                                                   .columns = log_columns,
                                                   .row_bytes = sizeof(struct log_row)};

#define ENOUGH_FOR_QUARTILES 4

/* Of sorted values, between two by their distance (type 7 of Hyndman and Fan, 1996). */
static double quantile_of(const double *sorted, size_t count, double share)
{
    double at = share * (double)(count - 1);
    size_t below = (size_t)at, above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (at - (double)below) * (sorted[above] - sorted[below]);
}

/* Median and quartiles of what was saved of the predicted; NaN of too few. */
static enum prof_status measure_log(struct score_log *log, struct prof_error *err)
{
    double *sorted = malloc((log->rows.count + 1) * sizeof *sorted);
    if (!sorted)
        return prof_out_of_memory(err);
    for (size_t i = 0; i < log->rows.count; i++)
        if (isfinite(log->rows.data[i].ratio))
            sorted[log->predictions++] = log->rows.data[i].ratio;
    size_t count = log->predictions;
    qsort(sorted, count, sizeof *sorted, prof_ascending_double);
    log->median = count ? quantile_of(sorted, count, 0.5) : NAN;
    log->low = count >= ENOUGH_FOR_QUARTILES ? quantile_of(sorted, count, 0.25) : NAN;
    log->high = count >= ENOUGH_FOR_QUARTILES ? quantile_of(sorted, count, 0.75) : NAN;
    free(sorted);
    return PROF_OK;
}

static void print_log_head(const void *result)
{
    const struct score_log *log = result;
    printf("%-10s %s: %s\n", "Log", log->path,
           prof_counted((int64_t)log->rows.count, "comparison", "comparisons").text);
    if (log->damaged)
        printf("%-10s %s that cannot be read\n", "Left out",
               prof_counted(log->damaged, "line", "lines").text);
    if (log->predictions)
        printf("%-10s %s of the predicted saving came", "Median", prof_percent(log->median).text);
    if (isfinite(log->low))
        printf(", quartiles %s to %s", prof_percent(log->low).text, prof_percent(log->high).text);
    if (log->predictions)
        printf(" (%s)\n",
               prof_counted((int64_t)log->predictions, "prediction", "predictions").text);
    putchar('\n');
}

static void put_log_head(struct prof_json *json, const void *result)
{
    const struct score_log *log = result;
    prof_json_int(json, "perfkit_verify_log", 1);
    prof_json_int(json, "predictions", (int64_t)log->predictions);
    prof_json_real(json, "median_ratio", log->median);
    prof_json_real(json, "low_ratio", log->low);
    prof_json_real(json, "high_ratio", log->high);
    prof_json_int(json, "damaged_lines", log->damaged);
}

enum prof_status verify_log_print(const char *path, unsigned format, struct prof_error *err)
{
    struct score_log log = {.path = path};
    enum prof_status status = read_log(&log, err);
    if (!status)
        status = measure_log(&log, err);
    const struct cli_document document = {.table = &log_table,
                                          .rows = log.rows.data,
                                          .count = log.rows.count,
                                          .text_head = print_log_head,
                                          .json_head = put_log_head,
                                          .result = &log};
    if (!status)
        status = cli_print_document(&document, format, err);
    for (size_t i = 0; i < log.rows.count; i++)
        cJSON_Delete(log.rows.data[i].line);
    prof_array_free(&log.rows);
    return status;
}
