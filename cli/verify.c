/* perfkit verify: whether a change did what the findings of the run before it promised. */
#include <math.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/verify.h"
#include "libprof/base/format.h"
#include "libprof/include/prof_verify.h"
#include "report/columns.h"

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
    return side->recording ? "STILL BEING RECORDED" : prof_trust_status_words(side->trust);
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
    status = status ? status : prof_open(files[1], &captures[1], err);
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
    if (!status)
        status = cli_print_document(&document, format, err);
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
