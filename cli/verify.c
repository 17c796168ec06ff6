/* perfkit verify: whether a change did what the findings of the run before it promised. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "libprof/base/array.h"
#include "libprof/base/format.h"
#include "libprof/base/json.h"
#include "libprof/base/regular.h"
#include "libprof/include/prof_verify.h"
#include "report/columns.h"

#define VERIFY_LOG ".perfkit/verify.jsonl"

struct verify_options {
    const char *finding, *iteration, *log;
    unsigned format, skip;
    bool json;
};

static const struct cli_option verify_option_table[] = {
    CLI_OPTION(verify_options, finding, "finding", 0, TEXT, "RULE",
               "only this rule, whatever its severity; the exit status is 1 unless its finding is "
               "gone, or partly"),
    CLI_FORMAT_ROWS(verify_options, format, json),
    CLI_OPTION(
        verify_options, log, "log", 0, FILE, "FILE",
        "add the prediction and what came of it to this file, a line of JSON; without BEFORE "
        "and AFTER show the file",
        .implied = VERIFY_LOG),
    CLI_ITERATION_ROW(verify_options, iteration),
    CLI_SKIP_ROW(verify_options, skip),
    {0},
};

static const struct cli_text_row verify_statuses[] = {
    {"0", "Findings were compared; with --finding: it is gone, or partly."},
    {"1", "With --finding: it is neither gone nor partly gone."},
    {"2", "The command line is wrong, or a file cannot be read or written."},
    {"3", "Refused: findings cannot be compared (an incomplete capture, no common phase)."},
    {0},
};

static const struct cli_text_row verify_examples[] = {
    {"perfkit verify before.sqlite after.sqlite", "What became of each finding."},
    {"perfkit verify before.sqlite after.sqlite --finding alloc-in-loop",
     "Whether this one was fixed, for a script."},
    {"perfkit verify --log before.sqlite after.sqlite; perfkit verify --log",
     "Keep the score; show how true the predictions have been."},
    {0},
};

#define VERIFY(row) ((const struct prof_verify_row *)(row))

CELL(verify_verdict, prof_report_text(prof_verify_text(VERIFY(row)->verdict)))
CELL(verify_verdict_name, prof_report_text(prof_verify_name(VERIFY(row)->verdict)))
CELL(verify_rule, prof_report_text(VERIFY(row)->rule->id))
CELL(verify_less, prof_report_real(VERIFY(row)->after_ns - VERIFY(row)->before_ns))
CELL(verify_moved, prof_report_text(VERIFY(row)->moved_to ? VERIFY(row)->moved_to->id : NULL))

static const struct prof_report_column verify_columns[] = {
    COMPUTED("rule", "Finding", WORD, 1, verify_rule),
    COMPUTED("verdict_text", "Verdict", WORD, 1, verify_verdict),
    COMPUTED("verdict", "Verdict name", WORD, 0, verify_verdict_name),
    REAL("before_ns", "Before", NS, 1, prof_verify_row, before_ns),
    REAL("after_ns", "After", NS, 1, prof_verify_row, after_ns),
    COMPUTED("change_ns", "Change", CHANGE, 1, verify_less),
    REAL("low_ns", "Less by at least", NS, 0, prof_verify_row, low_ns),
    REAL("high_ns", "Less by at most", NS, 0, prof_verify_row, high_ns),
    COMPUTED("moved_to", "To", WORD, 4, verify_moved, .blank = true),
    {0},
};

static const struct prof_report_table verify_table = {
    .name = "findings",
    .title = "Findings, by what they cost at most per iteration",
    .none = "no finding above info in either run",
    .columns = verify_columns,
    .row_bytes = sizeof(struct prof_verify_row)};

static const char *capture_words(const struct prof_verify_side *side)
{
    return side->recording ? "NOT FINISHED" : prof_trust_status_words(side->trust);
}

static void print_side(const char *label, const struct prof_verify_side *side)
{
    if (!side->count) {
        printf("%-10s nothing repeats\n", label);
        return;
    }
    printf("%-10s %s, 95 %%: %s to %s, median of %s", label, prof_duration(side->median_ns).text,
           prof_duration(side->low_ns).text, prof_duration(side->high_ns).text,
           prof_counted(side->count, "iteration", "iterations").text);
    printf(side->phase[0] ? " of \"%s\"\n" : "\n", side->phase);
}

static void print_change(const char *label, double ns, double low_ns, double high_ns,
                         const struct prof_verify_side *before)
{
    printf("%-10s %s per iteration (%s), 95 %%: %s to %s\n", label, prof_duration(ns).text,
           prof_percent(ns / before->median_ns).text, prof_duration(low_ns).text,
           prof_duration(high_ns).text);
}

static void print_saving(const struct prof_verify *v)
{
    bool added = v->saved_ns < 0;
    if (!isfinite(v->saved_ns))
        return;
    if (v->saved_low_ns <= 0 && v->saved_high_ns >= 0)
        printf("%-10s %s %s per iteration (%s), within the noise, 95 %%: -%s to +%s\n", "Change",
               prof_duration(fabs(v->saved_ns)).text, added ? "more" : "less",
               prof_percent(fabs(v->saved_ns) / v->sides[0].median_ns).text,
               prof_duration(added ? v->saved_high_ns : -v->saved_low_ns).text,
               prof_duration(added ? -v->saved_low_ns : v->saved_high_ns).text);
    else if (added)
        print_change("Added", -v->saved_ns, -v->saved_high_ns, -v->saved_low_ns, &v->sides[0]);
    else
        print_change("Saved", v->saved_ns, v->saved_low_ns, v->saved_high_ns, &v->sides[0]);
}

static void print_verify_head(const void *result)
{
    const struct prof_verify *v = result;
    if (v->why_none)
        printf("%-10s findings are not compared: %s\n", "Refused", v->why_none);
    printf("%-10s before: %s; after: %s\n", "Captures", capture_words(&v->sides[0]),
           capture_words(&v->sides[1]));
    print_saving(v);
    if (!v->why_none && v->predicted_ns > 0)
        printf("%-10s the findings that are gone or partly gone cost at most %s per iteration\n",
               "Predicted", prof_duration(v->predicted_ns).text);
    else if (!v->why_none)
        printf("%-10s no finding of these iterations is gone\n", "Predicted");
    if (!v->why_none && v->predicted_ns > 0 && v->saved_low_ns > v->predicted_ns)
        printf("%-10s something else saved the rest\n", "");
    print_side("Before", &v->sides[0]);
    print_side("After", &v->sides[1]);
    if (!v->why_none && v->phases > 1)
        printf("%-10s costs are summed over one iteration of each of %zu phases\n", "Findings",
               v->phases);
    if (!v->why_none)
        putchar('\n');
}

static void put_json_side(struct prof_json *json, const char *key,
                          const struct prof_verify_side *side)
{
    prof_json_object(json, key);
    prof_json_string(json, "phase", side->phase[0] ? side->phase : NULL);
    prof_json_int(json, "iterations", side->count);
    prof_json_real(json, "median_ns", side->median_ns);
    prof_json_real(json, "low_ns", side->low_ns);
    prof_json_real(json, "high_ns", side->high_ns);
    prof_json_string(json, "trust", prof_trust_status_name(side->trust));
    prof_json_bool(json, "recording", side->recording);
    prof_json_end(json);
}

static void put_verify_head(struct prof_json *json, const void *result)
{
    const struct prof_verify *v = result;
    prof_json_int(json, "perfkit_verify", 1);
    put_json_side(json, "before", &v->sides[0]);
    put_json_side(json, "after", &v->sides[1]);
    prof_json_real(json, "predicted_ns", v->predicted_ns);
    prof_json_real(json, "saved_ns", v->saved_ns);
    prof_json_real(json, "saved_low_ns", v->saved_low_ns);
    prof_json_real(json, "saved_high_ns", v->saved_high_ns);
    prof_json_string(json, "why_none", v->why_none);
}

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
    PROF_FILE_CLOSED FILE *there = prof_read_regular(path);
    int first = there ? fgetc(there) : EOF;
    bool cut = there && !fseek(there, -1, SEEK_END) && fgetc(there) != '\n'; /* by a full disk */
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

/* Append one line of JSON; makes the file, and the folder of VERIFY_LOG. A result that compared
 * nothing is left out. */
static enum prof_status verify_log_add(const char *path, char *const files[2],
                                       const struct prof_verify *result, struct prof_error *err)
{
    struct prof_json json;
    if (result->why_none)
        return PROF_OK;
    prof_json_to_memory(&json, 0);
    put_score(&json, files, result);
    enum prof_status status = prof_json_finish(&json, err);
    status = status ?: append_line(path, &json, err);
    free(json.data);
    return status;
}

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
    if (row->predicted_ns <= 0) /* of an earlier version: nothing was predicted */
        row->predicted_ns = NAN;
    row->ratio = row->saved_ns / row->predicted_ns;
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
    PROF_FILE_CLOSED FILE *file = fopen(log->path, "re");
    PROF_FREED char *text = NULL;
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
    PROF_FREED double *sorted = malloc((log->rows.count + 1) * sizeof *sorted);
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

/* What the log holds, on standard output. */
static enum prof_status verify_log_print(const char *path, unsigned format, struct prof_error *err)
{
    struct score_log log = {.path = path};
    enum prof_status status = read_log(&log, err);
    status = status ?: measure_log(&log, err);
    const struct cli_document document = {.table = &log_table,
                                          .rows = log.rows.data,
                                          .count = log.rows.count,
                                          .text_head = print_log_head,
                                          .json_head = put_log_head,
                                          .result = &log};
    status = status ?: cli_print_document(&document, format, err);
    for (size_t i = 0; i < log.rows.count; i++)
        cJSON_Delete(log.rows.data[i].line);
    prof_array_free(&log.rows);
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int verify_run(const struct cli_command *command, void *given,
                      const struct cli_operands *operands, struct prof_error *err)
{
    const struct verify_options *args = given;
    char *const *files = operands->values;
    struct prof_capture *captures[2] = {NULL, NULL};
    struct prof_verify result = {0};
    if (args->finding && !prof_rule_find(args->finding))
        return cli_fail(CLI_USAGE, command->name,
                        "--finding %s: no such rule: `perfkit explain` lists them", args->finding);
    unsigned format = args->json ? PROF_REPORT_JSON : args->format;
    if (operands->count != 2 && !(args->log && !operands->count))
        return cli_fail(CLI_USAGE, command->name,
                        "give two captures, BEFORE and AFTER, or --log alone");
    if (!operands->count)
        return (int)cli_exit_status(verify_log_print(args->log, format, err));
    const struct prof_filter filter = CLI_ITERATION_FILTER(args->iteration, args->skip);
    bool any = filter.iteration || filter.skips;
    enum prof_status status = prof_open(files[0], &captures[0], err);
    status = status ?: prof_open(files[1], &captures[1], err);
    status = status ? status
                    : prof_verify(captures[0], captures[1], any ? &filter : NULL, args->finding,
                                  &result, err);
    const struct cli_document document = {.table = &verify_table,
                                          .rows = result.rows,
                                          .count = result.count,
                                          .refused = result.why_none != NULL,
                                          .text_head = print_verify_head,
                                          .json_head = put_verify_head,
                                          .result = &result};
    status = status ?: cli_print_document(&document, format, err);
    if (!status && args->log)
        status = verify_log_add(args->log, files, &result, err);
    bool fixed = !args->finding || (result.count && (result.rows->verdict == PROF_VERIFY_GONE ||
                                                     result.rows->verdict == PROF_VERIFY_PARTLY));
    bool refused = result.why_none != NULL;
    prof_verify_free(&result);
    prof_close(captures[0]);
    prof_close(captures[1]);
    return status ? CLI_USAGE : refused ? CLI_REFUSED : fixed ? CLI_OK : CLI_FAILED;
}

const struct cli_command verify_command = {
    .name = "verify",
    .summary = "say whether a change did what findings promised",
    .operands = "[BEFORE AFTER]",
    .text = "Compares the findings of two captures, rule by rule: what each costs at most per "
            "iteration, and what became of it; and the saving that was predicted with that of the "
            "median iteration. One run against one run: perfkit ab says whether a difference comes "
            "again.",
    .options = verify_option_table,
    CLI_OPTIONS_ARE(verify_options, .skip = CLI_NO_SKIP),
    .examples = verify_examples,
    .statuses = verify_statuses,
    .write_status = CLI_USAGE,
    .operand = CLI_FILE,
    .least = 0,
    .most = 2,
    .run = verify_run,
};
