/* From a comparison to what a CI job sees of it. The exit status says one of five things and is
 * never a count; everything printed goes through the writers of report/. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/gate_output.h"
#include "cli/interrupt.h"
#include "cli/output_name.h"
#include "cli/terminal.h"
#include "libprof/base/array.h"
#include "report/gate_words.h"

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

/* The exit status that a comparison asks for. */
static int exit_status_of(const struct prof_comparison *comparison, bool strict)
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
        if (files[i].path && !strcmp(files[i].path, "-")) {
            cli_say(command, "--%s -: give a file; standard output is for --format",
                    files[i].option);
            return false;
        }
    }
    return cli_outputs_are_free(command, files, FILES);
}

bool gate_configure(const char *command, struct gate_options *options, const char *baselines,
                    struct gate_config *config)
{
    struct prof_error err = {0};
    if (!files_are_free(command, options))
        return false;
    if (gate_config_read(options->config, baselines, config, &err)) {
        cli_say(command, "%s", err.message);
        return false;
    }
    options->strict |= config->strict;
    options->allow_single |= config->allow_single;
    if (!options->iteration && config->iteration[0])
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
        .overrides = config->overrides,
        .override_count = config->override_count,
    };
    return prof_compare((struct prof_runs){base->data, base->count},
                        (struct prof_runs){cand->data, cand->count}, &how, result, err);
}

/* ---- notes ------------------------------------------------------------------------------------
 */

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
    for (size_t i = 0; i < config->expired_count; i++) {
        add_note(notes,
                 prof_gate_format("%s:%u: the exception for '%s' expired on %s and does not apply",
                                  config->path, config->expired[i].line, config->expired[i].match,
                                  config->expired[i].date));
    }
}

/* ---- output -----------------------------------------------------------------------------------
 */

static bool save_gate_output(const char *command, const char *writer,
                             const struct prof_gate_report *report, const char *path)
{
    struct prof_error err = {0};
    if (!path || !prof_gate_save(prof_gate_writer(prof_gate_writers, writer), report, path, &err))
        return true;
    cli_say(command, "%s", err.message);
    return false;
}

static bool print_gate_output(const char *command, const char *writer,
                              const struct prof_gate_report *report)
{
    struct prof_error err = {0};
    if (!prof_gate_writer(prof_gate_writers, writer)->write(report, stdout, &err))
        return true;
    cli_say(command, "%s", err.message);
    return false;
}

/* Beside what is for programs; the text begins with the same words. */
static void warn(const char *command, const struct prof_gate_report *report)
{
    const struct prof_comparison *c = report->comparison;
    if (prof_comparison_undecided(c))
        cli_say(command, "warning: %s: %s%s", prof_verdict_name(c->verdict),
                prof_verdict_text(c->verdict),
                report->strict ? "" : " (--strict ends with 4 for it)");
    else if (c->limited && c->verdict != PROF_VERDICT_FAIL)
        cli_say(command, "warning: wall time was not analysed: %s%s",
                prof_reason_text(PROF_REASON_HOST_NOISE),
                report->strict ? "" : " (--strict ends with 4 for it)");
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
    report->exit_status = exit_status_of(report->comparison, options->strict);
    report->top = options->top;
    report->width = terminal_columns_set();
    if (!report->width && isatty(STDOUT_FILENO))
        report->width = terminal_width(stdout);
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
