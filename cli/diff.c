/* perfkit diff: what differs between two captures, for people: the gate's comparison without its
 * verdict, and the difference of their flame graphs. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/gate.h"
#include "cli/output_name.h"
#include "report/report.h"

struct options {
    const char *iteration, *flamegraph;
    unsigned format, top, skip;
    bool json, quiet;
};

static const char *const formats[] = {"text", "markdown", "json", NULL};

static const struct cli_option options_table[] = {
    CLI_OPTION(options, format, "format", 0, CHOICE, "NAME",
               "on standard output: text, markdown or json", .fallback = "text", .words = formats),
    CLI_JSON_ROW(options, json, "the same as --format json"),
    CLI_OPTION(options, top, "top", 'n', COUNT, "N", "rows of each list at most"),
    CLI_ITERATION_ROW(options, iteration),
    CLI_SKIP_ROW(options, skip),
    CLI_OPTION(options, flamegraph, "flamegraph", 0, FILE, "OUT",
               "stacks with both times, `stack A B`, for flamegraph.pl and its kin; nothing else "
               "is printed then; `-` is standard output"),
    CLI_QUIET_ROW(options, quiet, "print no notes, only errors"),
    {0},
};

static const struct cli_text_row examples[] = {
    {"perfkit diff before.sqlite after.sqlite", "Where the time went."},
    {"perfkit diff a.sqlite b.sqlite --flamegraph - | flamegraph.pl >ab.svg",
     "Draw the difference: red is wider in b."},
    {0},
};

/* ---- flame graph ----------------------------------------------------------------------------- */

struct pair {
    struct prof_capture *captures[2];
    bool is_empty[2]; /* has no stacks */
};

static enum prof_status write_flame(void *context, FILE *out, struct prof_error *err)
{
    struct pair *pair = context;
    return prof_gate_flamegraph(pair->captures[0], pair->captures[1], out, pair->is_empty, err);
}

static enum prof_status flamegraph(const struct options *args, char *const files[2],
                                   struct prof_error *err)
{
    const struct prof_filter iterations = CLI_ITERATION_FILTER(args->iteration, args->skip);
    const char *path = args->flamegraph;
    bool quiet = args->quiet;
    struct pair pair = {{NULL, NULL}, {false, false}};
    if (cli_is_database(path))
        return prof_fail(err, PROF_EXISTS,
                         "--flamegraph %s: a capture is there, which a report must not replace: "
                         "give another name",
                         path);
    enum prof_status status = prof_open(files[0], &pair.captures[0], err);
    status = status ?: prof_open(files[1], &pair.captures[1], err);
    for (int i = 0; !status && i < 2 && (iterations.iteration || iterations.skips); i++)
        status = prof_iterations_check(pair.captures[i], &iterations, err);
    if (!status && !strcmp(path, "-")) {
        status = write_flame(&pair, stdout, err);
    } else if (!status) {
        cli_leave_no_half_report();
        status = prof_report_save_as(path, &pair, write_flame, err);
        if (!status && !quiet)
            cli_say("diff", "wrote %s", path);
    }
    for (size_t i = 0; !status && !quiet && i < 2; i++) {
        if (pair.is_empty[i])
            cli_say("diff", "note: %s has no stacks: it has no events of a device", files[i]);
    }
    prof_close(pair.captures[0]);
    prof_close(pair.captures[1]);
    return status;
}

/* ---- comparison ------------------------------------------------------------------------------ */

static enum prof_status compare_files(const struct options *args, char *const files[2],
                                      struct gate_runs sides[2], struct prof_comparison *result,
                                      struct prof_error *err)
{
    struct gate_options none = {0};
    struct gate_config config = {0};
    struct prof_run_options iterations = CLI_RUN_OPTIONS(args->iteration, args->skip);
    for (int side = 0; side < 2; side++) {
        enum prof_status status =
            gate_runs_add_capture(&sides[side], files[side], &iterations, 0, err);
        if (status)
            return status;
    }
    enum prof_status status =
        gate_compare(&none, &config, &sides[0], &sides[1], false, 1, result, err);
    if (!status)
        prof_comparison_by_move(result);
    return status;
}

static enum prof_status write_diff_report(const struct options *args, char *const files[2],
                                          const struct prof_comparison *result,
                                          struct prof_error *err)
{
    struct prof_gate_report report = {
        .comparison = result,
        .base = files[0],
        .cand = files[1],
        .files = (const char *const *)&files[1],
        .file_count = 1,
        .top = args->top,
        .width = terminal_report_width(),
        .colour = terminal_colour(stdout),
    };
    const char *format = args->json ? "json" : formats[args->format];
    return prof_gate_writer(prof_diff_writers, format)->write(&report, stdout, err);
}

static int diff_run(const struct cli_command *command, void *given,
                    const struct cli_operands *operands, struct prof_error *err)
{
    const struct options *args = given;
    char *const *files = operands->values;
    struct gate_runs sides[2] = {0};
    struct prof_comparison result = {0};
    enum prof_status status;
    if (args->flamegraph) {
        status = flamegraph(args, files, err);
    } else {
        status = compare_files(args, files, sides, &result, err);
        status = status ?: write_diff_report(args, files, &result, err);
    }
    (void)command;
    prof_comparison_free(&result);
    gate_runs_free(&sides[0]);
    gate_runs_free(&sides[1]);
    return status ? CLI_USAGE : CLI_OK;
}

const struct cli_command diff_command = {
    .name = "diff",
    .summary = "show what differs between two captures",
    .operands = "A B",
    .text =
        "Compares two captures metric by metric, as perfkit gate does but without a verdict: how "
        "much time moved per kernel and NVTX range, which counts and bytes differ, which kernels "
        "were added, removed or renamed. One run against one run says what happened in these two "
        "runs, not that it will happen again: for that there are perfkit ab and perfkit gate.",
    .options = options_table,
    CLI_OPTIONS_ARE(options, .skip = CLI_NO_SKIP),
    .examples = examples,
    .operand = CLI_FILE,
    .least = 2,
    .most = 2,
    .run = diff_run,
};
