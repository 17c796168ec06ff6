/* perfkit gate: compares captures with a baseline. One candidate run that looks worse is suspect,
 * no proof: with --rerun more are recorded, and all are compared once more together (two stages;
 * the second uses all data at the same risk, so looking twice costs nothing). */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/gate.h"
#include "cli/output_name.h"
#include "libprof/base/array.h"
#include "libprof/base/clock.h"
#include "report/gate.h"

/* ---- options and outputs --------------------------------------------------------------------- */

/* From a comparison to what a CI job sees of it. The exit status says one of five things and is
 * never a count; everything printed goes through the writers of report/. */

const char *const gate_formats[] = {"text", "markdown", "junit", "github", "json", NULL};

const struct cli_text_row gate_statuses[] = {
    {"0", "Nothing is worse; also, with a warning, when that could not be decided."},
    {"1", "A regression: at least one gated metric is worse beyond doubt."},
    {"2", "The command line or the configuration is wrong, or a file cannot be read or written."},
    {"3", "Refused: the times of the two sides cannot be compared (another device, an incomplete "
          "capture). Counts and bytes were compared and are not worse."},
    {"4", "Not decided, under --strict."},
    {0},
};

/* The exit status of a comparison. */
int gate_exit_status(const struct prof_comparison *comparison, bool strict)
{
    if (comparison->verdict == PROF_VERDICT_FAIL)
        return CLI_REGRESSION;
    if (comparison->verdict == PROF_VERDICT_REFUSED)
        return CLI_REFUSED;
    bool undecided = prof_comparison_undecided(comparison) || comparison->limited;
    return strict && undecided ? CLI_UNDECIDED : CLI_OK;
}

static bool files_are_free(const char *command, const struct gate_options *options)
{
    const struct cli_output_file files[] = {{.option = "markdown", .path = options->markdown},
                                            {.option = "junit", .path = options->junit},
                                            {.option = "json-file", .path = options->json_file}};
    enum { FILES = sizeof files / sizeof files[0] };
    for (size_t i = 0; i < FILES; i++) {
        if (files[i].path && !strcmp(files[i].path, "-"))
            return cli_refuse(command, "--%s -: give a file; standard output is for --format",
                              files[i].option);
    }
    return cli_outputs_are_free(command, files, FILES);
}

bool gate_configure(const char *command, struct gate_options *options, const char *baselines,
                    struct gate_config *config)
{
    struct prof_error err = {0};
    if (!files_are_free(command, options))
        return false;
    if (gate_config_read(options->config, baselines, config, &err))
        return cli_refuse(command, "%s", err.message);
    options->strict |= config->strict;
    options->allow_single |= config->allow_single;
    if (!options->iteration)
        options->iteration = config->iteration;
    if (options->skip == CLI_NO_SKIP)
        options->skip = config->skip;
    if (options->json)
        options->format = 4;
    return true;
}

struct prof_run_options gate_iterations(const struct gate_options *options)
{
    return (struct prof_run_options)CLI_RUN_OPTIONS(options->iteration, options->skip);
}

enum prof_status gate_compare(const struct gate_options *options, const struct gate_config *config,
                              const struct gate_runs *base, const struct gate_runs *cand,
                              bool interleaved, unsigned looks, struct prof_comparison *result,
                              struct prof_error *err)
{
    struct prof_compare_options how = {
        .alpha = config->alpha,
        .looks = looks,
        .interleaved = interleaved,
        .allow_single = options->allow_single,
        .overrides = config->overrides.data,
        .override_count = config->overrides.count,
    };
    return prof_compare((struct prof_runs){base->data, base->count},
                        (struct prof_runs){cand->data, cand->count}, &how, result, err);
}

/* ---- notes ----------------------------------------------------------------------------------- */

struct notes {
    char **texts;
    size_t count, room;
};

/* Takes the text; what there is no memory for is noted as missing in the output. */
static void add_note(struct notes *notes, char *text)
{
    if (text &&
        prof_array_room(&notes->texts, &notes->room, notes->count + 1, sizeof *notes->texts))
        notes->texts[notes->count++] = text;
    else {
        prof_note(PROF_NOMEM);
        free(text);
    }
}

static void list_notes(const struct gate_config *config, struct notes *notes)
{
    for (size_t i = 0; i < config->expired.count; i++) {
        add_note(notes,
                 prof_gate_format("%s:%u: the exception for '%s' expired on %s and does not apply",
                                  config->path, config->expired.data[i].line,
                                  config->expired.data[i].match, config->expired.data[i].date));
    }
}

/* ---- output ---------------------------------------------------------------------------------- */

static bool save_gate_output(const char *command, const char *writer,
                             const struct prof_gate_report *report, const char *path)
{
    struct prof_error err = {0};
    if (!path || !prof_gate_save(prof_gate_writer(prof_gate_writers, writer), report, path, &err))
        return true;
    return cli_refuse(command, "%s", err.message);
}

static bool print_gate_output(const char *command, const char *writer,
                              const struct prof_gate_report *report)
{
    struct prof_error err = {0};
    if (!prof_gate_writer(prof_gate_writers, writer)->write(report, stdout, &err))
        return true;
    return cli_refuse(command, "%s", err.message);
}

/* Beside what is for programs; the text begins with the same words. */
static void warn(const char *command, const struct prof_gate_report *report)
{
    const struct prof_comparison *c = report->comparison;
    if (prof_comparison_undecided(c))
        cli_say(command, "warning: %s: %s%s", prof_verdict_name(c->verdict),
                prof_verdict_text(c->verdict),
                report->strict ? "" : "; with --strict the exit status is 4");
    else if (c->limited && c->verdict != PROF_VERDICT_FAIL)
        cli_say(command, "warning: wall time was not analysed: %s%s",
                prof_reason_text(PROF_REASON_HOST_NOISE),
                report->strict ? "" : "; with --strict the exit status is 4");
    else if (c->times_refused)
        cli_say(command, "times were not compared: %s", c->note ? c->note : "see the report");
}

int gate_write_results(const char *command, const struct gate_options *options,
                       const struct gate_config *config, struct prof_gate_report *report)
{
    struct notes notes = {0};
    list_notes(config, &notes);
    report->notes = (const char *const *)notes.texts;
    report->note_count = notes.count;
    report->judged = true;
    report->strict = options->strict;
    report->config = config->path[0] ? config->path : NULL;
    report->exit_status = gate_exit_status(report->comparison, options->strict);
    report->top = options->top;
    report->width = terminal_report_width();
    report->colour = terminal_colour(stdout);
    cli_leave_no_half_report();
    bool good = print_gate_output(command, gate_formats[options->format], report);
    if (options->github && strcmp(gate_formats[options->format], "github"))
        good = print_gate_output(command, "github", report) && good;
    good = save_gate_output(command, "markdown", report, options->markdown) && good;
    good = save_gate_output(command, "junit", report, options->junit) && good;
    good = save_gate_output(command, "json", report, options->json_file) && good;
    if (strcmp(gate_formats[options->format], "text") != 0)
        warn(command, report);
    for (size_t i = 0; i < notes.count; i++)
        free(notes.texts[i]);
    free(notes.texts);
    report->notes = NULL;
    report->note_count = 0;
    /* A regression that could not be written down is still one. */
    return good || report->exit_status == CLI_REGRESSION ? report->exit_status : CLI_USAGE;
}

/* ---- the command ----------------------------------------------------------------------------- */

#define DEFAULT_UNITS 3

struct options {
    struct gate_options gate;
    const char *baseline, *baselines, *rerun, *keep;
    unsigned sessions, max_units;
};

static const struct cli_option options_table[] = {
    CLI_OPTION(options, baseline, "baseline", 'b', TEXT, "NAME",
               "the baseline, as perfkit baseline save named it", .group = "Against what",
               .offers = "perfkit baseline list 2>/dev/null | sed 1d"),
    CLI_BASELINES_ROW(options, baselines),
    CLI_OPTION(options, sessions, "sessions", 0, COUNT, "N",
               "use the last N sessions of the baseline", .fallback = "20"),
    GATE_JUDGE_ROWS(options, gate),
    CLI_OPTION(options, rerun, "rerun", 0, TEXT, "CMD",
               "when nothing can be decided, record CMD (for the shell) again and compare all "
               "together; without FILE the first run too",
               .group = "More runs"),
    CLI_OPTION(options, max_units, "max-units", 0, COUNT, "N", "runs of the candidate at most",
               .fallback = "3"),
    CLI_OPTION(options, keep, "keep", 'k', FOLDER, "DIR", "keep the captures of --rerun there"),
    GATE_RUN_ROWS(options, gate),
    GATE_OUTPUT_ROWS(options, gate),
    {0},
};

static const struct cli_text_row examples[] = {
    {"perfkit gate --baseline main run.sqlite",
     "Compare one run: exact metrics fail, times end in SUSPECT at most."},
    {"perfkit gate -b main --rerun ./bench --max-units 5 --junit gate.xml",
     "Record, compare, record more when in doubt; leave a file for the CI service."},
    {"perfkit gate -b main run-?.sqlite --github --markdown gate.md",
     "Several runs, annotations, and a text for the pull request."},
    {0},
};

/* ---- the two sides --------------------------------------------------------------------------- */

struct sides {
    struct prof_baseline baseline;
    struct gate_runs base, cand;
    char base_text[400], cand_text[400];
};

static enum prof_status load_baseline(const struct options *args, const struct gate_config *config,
                                      struct sides *sides, struct prof_error *err)
{
    struct prof_baseline_file *file;
    size_t sessions = args->sessions ? args->sessions : config->sessions ? config->sessions : 20;
    PROF_TRY(prof_baseline_open(config->baselines, false, &file, err));
    enum prof_status status =
        prof_baseline_load(file, args->baseline, sessions, &sides->baseline, err);
    prof_baseline_close(file);
    return status ? status : gate_runs_add_baseline(&sides->base, &sides->baseline, err);
}

static enum prof_status load_files(const struct cli_operands *files,
                                   const struct prof_run_options *iterations, struct sides *sides,
                                   struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    for (int i = 0; !status && i < files->count; i++)
        status = gate_runs_add_capture(&sides->cand, files->values[i], iterations, 0, err);
    size_t shared = status ? SIZE_MAX : gate_runs_shared(&sides->base, &sides->cand);
    if (shared != SIZE_MAX)
        status = prof_fail(err, PROF_INVALID,
                           "%s is a run of the baseline itself: gate one that was not saved",
                           sides->cand.names[shared]);
    size_t repeated = status ? SIZE_MAX : gate_runs_repeated(&sides->cand);
    if (repeated != SIZE_MAX)
        status = prof_fail(err, PROF_INVALID,
                           "%s is the same run as an earlier one: its spread would be none",
                           sides->cand.names[repeated]);
    return status;
}

/* The first `given` captures of the candidate are the caller's; the others were recorded here, from
 * its command, and are gone when this ends. */
static void describe_sides(struct sides *sides, size_t given, const char *rerun)
{
    size_t runs = sides->base.count, sessions = sides->baseline.session_count;
    snprintf(sides->base_text, sizeof sides->base_text, "%s: %s, %s", sides->baseline.name,
             prof_counted((int64_t)sessions, "session", "sessions").text,
             prof_counted((int64_t)runs, "run", "runs").text);
    char files[320] = "", recorded[320] = "";
    if (given)
        snprintf(files, sizeof files, "%s: %.200s%s",
                 prof_counted((int64_t)given, "run", "runs").text, sides->cand.names[0],
                 given > 1 ? ", ..." : "");
    if (sides->cand.count > given)
        snprintf(recorded, sizeof recorded, "%s%s of: %.200s", given ? "; " : "",
                 prof_counted((int64_t)(sides->cand.count - given), "run", "runs").text, rerun);
    snprintf(sides->cand_text, sizeof sides->cand_text, "%.199s%.199s", files, recorded);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static enum prof_status record_more(const struct options *args, struct gate_recorder *recorder,
                                    struct sides *sides, size_t units, struct prof_error *err)
{
    struct prof_run_options iterations = gate_iterations(&args->gate);
    enum prof_status status = PROF_OK;
    uint64_t begun_ns = prof_now_ns();
    for (unsigned done = 0; !status && sides->cand.count < units; done++) {
        unsigned number = (unsigned)sides->cand.count + 1;
        char text[64];
        snprintf(text, sizeof text, "run %u of at most %u", number, args->max_units);
        gate_show_turn("gate", text, begun_ns, done, (unsigned)(units - sides->cand.count),
                       args->gate.show_output);
        status =
            gate_record(recorder, "cand", number, args->rerun, &iterations, 0, &sides->cand, err);
    }
    return status;
}

static enum prof_status compare_with_baseline(const struct options *args,
                                              const struct gate_config *config,
                                              struct gate_recorder *recorder, struct sides *sides,
                                              struct prof_comparison *result,
                                              struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    if (args->rerun && !sides->cand.count)
        status = record_more(args, recorder, sides, 1, err);
    /* Fewer than three runs cannot fail by times: then the second look is the only one. */
    unsigned looks =
        args->rerun && sides->cand.count >= 3 && sides->cand.count < args->max_units ? 2 : 1;
    status = status ? status
                    : gate_compare(&args->gate, config, &sides->base, &sides->cand, false, looks,
                                   result, err);
    if (status || !args->rerun || !prof_comparison_open(result) ||
        sides->cand.count >= args->max_units)
        return status;
    prof_comparison_free(result);
    status = record_more(args, recorder, sides, args->max_units, err);
    return status ? status
                  : gate_compare(&args->gate, config, &sides->base, &sides->cand, false, looks,
                                 result, err);
}

static int run_gate(const struct options *args, const struct gate_config *config,
                    struct sides *sides)
{
    struct gate_recorder recorder = {0};
    struct prof_error err = {0};
    struct prof_comparison result = {0};
    enum prof_status status = PROF_OK;
    size_t given = sides->cand.count;
    if (args->rerun)
        status = gate_record_open(&recorder, "gate", &args->gate, args->keep, &err);
    status = status ?: compare_with_baseline(args, config, &recorder, sides, &result, &err);
    cli_wipe_progress();
    if (status)
        cli_say("gate", "%s", err.message);
    if (args->rerun)
        gate_record_close(&recorder);
    int exit_status = CLI_USAGE;
    if (!status) {
        describe_sides(sides, given, args->rerun);
        struct prof_gate_report report = {
            .comparison = &result,
            .base = sides->base_text,
            .cand = sides->cand_text,
            .base_name = sides->baseline.name,
            .files = (const char *const *)sides->cand.names,
            .file_count = args->keep ? sides->cand.count : given,
        };
        exit_status = gate_write_results("gate", &args->gate, config, &report);
    }
    prof_comparison_free(&result);
    return exit_status;
}

static bool check_gate_options(const struct options *args, const struct cli_operands *files)
{
    const char *wrong = NULL;
    if (!args->baseline)
        wrong = "against what? give --baseline NAME (perfkit baseline list shows them)";
    else if (!files->count && !args->rerun)
        wrong = "give the captures to compare, or --rerun CMD to record them";
    else if (args->keep && !args->rerun)
        wrong = "--keep goes with --rerun only: leave it out";
    if (wrong)
        cli_say("gate", "%s", wrong);
    return !wrong;
}

static int gate_run(const struct cli_command *command, void *given,
                    const struct cli_operands *operands, struct prof_error *err)
{
    struct options *args = given;
    struct gate_config config;
    int exit_status = CLI_USAGE;
    if (!check_gate_options(args, operands) ||
        !gate_configure(command->name, &args->gate, args->baselines, &config))
        return CLI_USAGE;
    struct sides sides = {0};
    enum prof_status status = load_baseline(args, &config, &sides, err);
    struct prof_run_options iterations = gate_iterations(&args->gate);
    status = status ?: load_files(operands, &iterations, &sides, err);
    if (!status)
        exit_status = run_gate(args, &config, &sides);
    gate_runs_free(&sides.base);
    gate_runs_free(&sides.cand);
    prof_baseline_free(&sides.baseline);
    gate_config_free(&config);
    return exit_status;
}

const struct cli_command gate_command = {
    .name = "gate",
    .summary = "compare runs with a baseline, for CI",
    .operands = "[FILE...]",
    .text = "Compares captures with a baseline. Counts and bytes are compared exactly; times "
            "statistically, with the spread between the baseline's sessions as the measure of "
            "noise: a difference is a regression only when noise does not explain it, and a result "
            "that noise hides is called undecided, not passed. Each FILE is one run; with fewer "
            "than three, times end in SUSPECT at most. docs/guide/gate.md explains verdicts, "
            "configuration and use in CI.",
    .options = options_table,
    CLI_OPTIONS_ARE(options, .max_units = DEFAULT_UNITS, .gate.skip = CLI_NO_SKIP),
    .examples = examples,
    .statuses = gate_statuses,
    .write_status = CLI_USAGE,
    .operand = CLI_FILE,
    .most = UINT_MAX,
    .run = gate_run,
};
