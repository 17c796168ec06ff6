/* perfkit baseline: what earlier runs were like, kept for the gate. One verb a function; the file
 * and its transactions are libprof's. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/gate.h"
#include "cli/output_name.h"
#include "libprof/base/format.h"
#include "libprof/base/json.h"
#include "libprof/base/regular.h"
#include "libprof/base/utf8.h"
#include "report/columns.h"
#include "report/report.h"
#include "report/writers.h"

#define MAX_WIDTH 10000 /* of a line that no terminal shows */

struct options {
    const char *baselines, *config, *label, *iteration, *html;
    unsigned keep, skip;
    bool force, quiet, json;
};

static const struct cli_option options_table[] = {
    CLI_BASELINES_ROW(options, baselines),
    CLI_OPTION(options, config, "config", 'c', FILE, "FILE",
               "the gate's configuration, which may name the file and the iteration",
               .fallback = "perfkit.gate of this folder or project"),
    CLI_ITERATION_ROW(options, iteration),
    CLI_SKIP_ROW(options, skip),
    CLI_OPTION(options, label, "label", 'l', TEXT, "TEXT",
               "save: name of the session, as the number of a CI job; with the same label again "
               "the runs join it"),
    CLI_OPTION(options, keep, "sessions", 0, COUNT, "N", "rm: keep the last N sessions"),
    CLI_OPTION(options, html, "html", 0, FILE, "OUT",
               "show: the history as a page of charts for a browser"),
    CLI_FORCE_ROW(options, force, "export: replace the file if it exists"),
    CLI_QUIET_ROW(options, quiet, "print only errors"),
    CLI_JSON_ROW(options, json, "list, show: print JSON"),
    {0},
};

static const struct cli_text_row examples[] = {
    {"perfkit baseline save main run.sqlite", "Add a session of one run to the baseline main."},
    {"perfkit baseline save main --label $GITHUB_RUN_ID a.sqlite b.sqlite",
     "One session of two runs."},
    {"perfkit baseline show main --html main.html", "The trend of each metric over sessions."},
    {"perfkit baseline rm main --sessions 50", "Forget all but the last 50 sessions."},
    {"perfkit baseline export main main.json", "Hand it to another machine of the same kind."},
    {"perfkit baseline import main.json", "Add its sessions here; those that are there stay once."},
    {0},
};

static const struct cli_text_row statuses[] = {
    {"0", "Done."},
    {"2", "The command line is wrong, or a file cannot be read or written."},
    {"3", "Refused: the capture is incomplete. Nothing was saved."},
    {0},
};

struct call {
    const struct options *args;
    const struct gate_config *config;
    int count; /* of the operands behind the verb */
    char **values;
    struct prof_error *err;
};

static enum prof_status open_baseline_file(struct call *call, bool write,
                                           struct prof_baseline_file **file)
{
    return prof_baseline_open(call->config->baselines, write, file, call->err);
}

static void print_clean(const char *text)
{
    PROF_FREED char *clean = text ? prof_report_clean(text) : NULL;
    fputs(clean ? clean : "n/a", stdout);
}

/* ---- save ------------------------------------------------------------------------------------ */

static int load_runs(struct call *call, struct gate_runs *runs)
{
    const char *iteration = call->args->iteration ?: call->config->iteration;
    unsigned skip = call->args->skip == CLI_NO_SKIP ? call->config->skip : call->args->skip;
    struct prof_run_options iterations = CLI_RUN_OPTIONS(iteration, skip);
    for (int i = 1; i < call->count; i++) {
        if (gate_runs_add_capture(runs, call->values[i], &iterations, 0, call->err))
            return CLI_USAGE;
        const struct prof_run *run = &runs->data[runs->count - 1];
        if (run->complete)
            continue;
        prof_fail(call->err, PROF_INVALID, "%s is incomplete, and a baseline must not be: %s",
                  call->values[i], run->why_incomplete ? run->why_incomplete : "see its report");
        return CLI_REFUSED;
    }
    return CLI_OK;
}

static enum prof_status save_runs(struct call *call, const struct gate_runs *runs)
{
    struct prof_baseline_session session;
    struct prof_baseline_file *file = NULL;
    const char *name = call->values[0];
    size_t added = 0;
    PROF_TRY(gate_runs_session(runs, call->args->label, &session, call->err));
    enum prof_status status = open_baseline_file(call, true, &file);
    status = status ?: prof_baseline_append(file, name, &session, 1, &added, call->err);
    prof_baseline_close(file);
    prof_baseline_session_free(&session);
    if (!status && added < runs->count && !call->args->quiet)
        cli_say("baseline", "%zu of %zu runs had been saved in '%s' before and were left out",
                runs->count - added, runs->count, name);
    if (!status && added && !call->args->quiet)
        cli_say("baseline", "saved %s in '%s' (%s)",
                prof_counted((int64_t)added, "run", "runs").text, name, call->config->baselines);
    return status;
}

static int save_baseline(struct call *call)
{
    struct gate_runs runs = {0};
    int exit_status =
        prof_baseline_check_name(call->values[0], call->err) ? CLI_USAGE : load_runs(call, &runs);
    if (exit_status == CLI_OK && save_runs(call, &runs))
        exit_status = CLI_USAGE;
    gate_runs_free(&runs);
    return exit_status;
}

/* ---- list ------------------------------------------------------------------------------------ */

static const struct prof_report_column list_columns[] = {
    STRING("name", "Baseline", NAME, 1, prof_baseline_summary, name),
    INT64("sessions", "Sessions", COUNT, 1, prof_baseline_summary, sessions),
    INT64("runs", "Runs", COUNT, 1, prof_baseline_summary, runs),
    INT64("bytes", "Size", BYTES, 3, prof_baseline_summary, metrics_bytes),
    INT64("first_saved_s", "First saved", DATE, 2, prof_baseline_summary, first_s),
    INT64("last_saved_s", "Last saved (UTC)", DATE, 1, prof_baseline_summary, last_s),
    {0},
};
static const struct prof_report_table list_table = {.name = "baselines",
                                                    .none = "no baselines",
                                                    .columns = list_columns,
                                                    .row_bytes =
                                                        sizeof(struct prof_baseline_summary)};

/* Names whole where a script reads them. */
static enum prof_status print_table(const struct prof_report_table *table, const void *rows,
                                    size_t count, struct prof_error *err)
{
    struct prof_report_output output = {
        .format = PROF_REPORT_TEXT,
        .page = {.out = stdout,
                 .width = isatty(STDOUT_FILENO) ? terminal_width(stdout) : MAX_WIDTH},
        .flush = true};
    return prof_report_put_rows(&output, table, rows, count, err);
}

static int list(struct call *call)
{
    struct prof_baseline_file *file;
    struct prof_baseline_list all;
    if (open_baseline_file(call, false, &file))
        return CLI_USAGE;
    enum prof_status status = prof_baseline_summaries(file, &all, call->err);
    prof_baseline_close(file);
    if (status)
        return CLI_USAGE;
    if (call->args->json) {
        struct prof_json json;
        prof_json_to_file(&json, stdout, 2);
        prof_report_json_rows(&json, NULL, &list_table, all.rows, all.count);
        status = prof_json_finish(&json, call->err);
    } else {
        status = print_table(&list_table, all.rows, all.count, call->err);
    }
    prof_baseline_summaries_free(&all);
    return status ? CLI_USAGE : CLI_OK;
}

/* ---- show ------------------------------------------------------------------------------------ */

CELL(session_runs, prof_report_int((int64_t)((const struct prof_baseline_session *)row)->run_count))

CELL(run_bytes, prof_report_int((int64_t)strlen(((const struct prof_baseline_run *)row)->metrics)))

#define SESSION_COLUMNS                                                                            \
    INT64("session", "Session", NUMBER, 1, prof_baseline_session, id),                             \
        INT64("saved_s", "Saved (UTC)", DATE, 1, prof_baseline_session, saved_s),                  \
        STRING("label", "Label", NAME, 1, prof_baseline_session, label),                           \
        STRING("commit", "Commit", NAME, 1, prof_baseline_session, commit)

/* The runs of a session are in JSON themselves, in the text their number. */
static const struct prof_report_column session_columns[] = {SESSION_COLUMNS, {0}};
static const struct prof_report_column session_text_columns[] = {
    SESSION_COLUMNS, COMPUTED("runs", "Runs", COUNT, 1, session_runs), {0}};
static const struct prof_report_column run_columns[] = {
    STRING("identity", "Identity", WORD, 0, prof_baseline_run, identity),
    STRING("capture", "Capture", NAME, 0, prof_baseline_run, capture),
    INT64("recorded_s", "Recorded", DATE, 0, prof_baseline_run, recorded_s),
    COMPUTED("bytes", "Size", BYTES, 0, run_bytes),
    {0},
};

PROF_ORDER(by_name, struct prof_environment, strcmp(x->name, y->name))

/* The run with its environment by name. */
static enum prof_status read_kept_run(const struct prof_baseline_run *from, struct prof_run *run,
                                      struct prof_error *err)
{
    enum prof_status status = prof_run_decode(from->metrics, run, err);
    if (!status && run->environment_count)
        qsort(run->environment, run->environment_count, sizeof *run->environment, by_name);
    return status;
}

static enum prof_status put_session(struct prof_json *json,
                                    const struct prof_baseline_session *session,
                                    struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    prof_json_object(json, NULL);
    prof_report_json_members(json, session_columns, session);
    prof_json_array(json, "runs");
    for (size_t i = 0; !status && i < session->run_count; i++) {
        struct prof_run run;
        status = read_kept_run(&session->runs[i], &run, err);
        if (status)
            break;
        prof_json_object(json, NULL);
        prof_report_json_members(json, run_columns, &session->runs[i]);
        prof_json_object(json, "environment");
        for (size_t e = 0; e < run.environment_count; e++)
            if (run.environment[e].value)
                prof_json_string(json, run.environment[e].name, run.environment[e].value);
        prof_json_end(json);
        prof_json_end(json);
        prof_run_free(&run);
    }
    prof_json_end(json);
    prof_json_end(json);
    return status;
}

static enum prof_status show_json(const struct prof_baseline *baseline, struct prof_error *err)
{
    struct prof_json json;
    enum prof_status status = PROF_OK;
    prof_json_to_file(&json, stdout, 2);
    prof_json_object(&json, NULL);
    prof_json_string(&json, "name", baseline->name);
    prof_json_array(&json, "sessions");
    for (size_t i = 0; !status && i < baseline->session_count; i++)
        status = put_session(&json, &baseline->sessions[i], err);
    prof_json_end(&json);
    prof_json_end(&json);
    return prof_json_finish(&json, status ? NULL : err) ? PROF_IO : status;
}

/* The environment of the last run: an earlier one may have been another. */
static enum prof_status show_environment(const struct prof_baseline *baseline,
                                         struct prof_error *err)
{
    const struct prof_baseline_session *last = &baseline->sessions[baseline->session_count - 1];
    struct prof_run run;
    PROF_TRY(read_kept_run(&last->runs[last->run_count - 1], &run, err));
    printf("\nEnvironment of the last run:\n");
    for (size_t i = 0; i < run.environment_count; i++) {
        if (!run.environment[i].value)
            continue;
        fputs("  ", stdout);
        print_clean(run.environment[i].name);
        fputs(": ", stdout);
        print_clean(run.environment[i].value);
        putchar('\n');
    }
    prof_run_free(&run);
    return PROF_OK;
}

/* The baseline that the first value names. */
static enum prof_status load_named(struct call *call, struct prof_baseline *baseline)
{
    struct prof_baseline_file *file;
    PROF_TRY(open_baseline_file(call, false, &file));
    enum prof_status status = prof_baseline_load(file, call->values[0], 0, baseline, call->err);
    prof_baseline_close(file);
    return status;
}

static enum prof_status show_html(struct call *call, const struct prof_baseline *baseline)
{
    struct gate_runs runs = {0};
    PROF_FREED struct prof_trend_session *sessions =
        calloc(baseline->session_count + 1, sizeof *sessions);
    enum prof_status status = sessions ? gate_runs_add_baseline(&runs, baseline, call->err)
                                       : prof_out_of_memory(call->err);
    for (size_t i = 0; sessions && i < baseline->session_count; i++) {
        const struct prof_baseline_session *from = &baseline->sessions[i];
        sessions[i] =
            (struct prof_trend_session){from->id, from->saved_s, from->label, from->commit};
    }
    struct prof_trend trend = {
        baseline->name, sessions, baseline->session_count, {runs.data, runs.count}};
    if (!status)
        status = prof_report_save_as(call->args->html, &trend, prof_trend_write_html, call->err);
    if (!status && !call->args->quiet)
        cli_say("baseline", "wrote %s", call->args->html);
    gate_runs_free(&runs);
    return status;
}

static int show_baseline(struct call *call)
{
    struct prof_baseline baseline;
    if (load_named(call, &baseline))
        return CLI_USAGE;
    int exit_status = CLI_OK;
    if (call->args->html) {
        exit_status = show_html(call, &baseline) ? CLI_USAGE : CLI_OK;
    } else if (call->args->json) {
        exit_status = show_json(&baseline, call->err) ? CLI_USAGE : CLI_OK;
    } else {
        static const struct prof_report_table table = {.name = "sessions",
                                                       .none = "no sessions",
                                                       .columns = session_text_columns,
                                                       .row_bytes =
                                                           sizeof(struct prof_baseline_session)};
        if (print_table(&table, baseline.sessions, baseline.session_count, call->err))
            exit_status = CLI_USAGE;
        if (baseline.session_count && baseline.sessions[baseline.session_count - 1].run_count &&
            show_environment(&baseline, call->err))
            exit_status = CLI_USAGE;
    }
    prof_baseline_free(&baseline);
    return exit_status;
}

/* ---- rm, export, import ---------------------------------------------------------------------- */

static int rm(struct call *call)
{
    struct prof_baseline_file *file;
    size_t removed;
    /* Not made only to find nothing in it. */
    if (open_baseline_file(call, false, &file))
        return CLI_USAGE;
    prof_baseline_close(file);
    if (open_baseline_file(call, true, &file))
        return CLI_USAGE;
    enum prof_status status =
        prof_baseline_remove(file, call->values[0], call->args->keep, &removed, call->err);
    prof_baseline_close(file);
    if (!status && !call->args->quiet)
        cli_say("baseline", "removed %s of '%s'",
                prof_counted((int64_t)removed, "session", "sessions").text, call->values[0]);
    return status ? CLI_USAGE : CLI_OK;
}

static int export_baseline(struct call *call)
{
    struct prof_baseline baseline;
    if (cli_same_file(call->config->baselines, call->values[1])) {
        prof_fail(call->err, PROF_EXISTS,
                  "%s is the file of baselines itself, which one of them cannot replace: choose "
                  "another name",
                  call->values[1]);
        return CLI_USAGE;
    }
    if (load_named(call, &baseline))
        return CLI_USAGE;
    enum prof_status status =
        prof_baseline_export(&baseline, call->values[1], call->args->force, call->err);
    if (!status && !call->args->quiet)
        cli_say("baseline", "wrote %s: %s of '%s'", call->values[1],
                prof_counted((int64_t)baseline.session_count, "session", "sessions").text,
                call->values[0]);
    prof_baseline_free(&baseline);
    return status ? CLI_USAGE : CLI_OK;
}

/* Frees the baseline. */
static enum prof_status import_baseline(struct call *call, struct prof_baseline *baseline,
                                        struct prof_baseline_file *to, const char *as)
{
    struct gate_runs runs = {0};
    size_t added;
    /* A run that cannot be read would make every later gate fail. */
    enum prof_status status = gate_runs_add_baseline(&runs, baseline, call->err);
    if (!status)
        status = prof_baseline_append(to, as, baseline->sessions, baseline->session_count, &added,
                                      call->err);
    if (!status && !call->args->quiet)
        cli_say("baseline", "added %s to '%s'", prof_counted((int64_t)added, "run", "runs").text,
                as);
    gate_runs_free(&runs);
    prof_baseline_free(baseline);
    return status;
}

/* What `baseline export` wrote; a file of baselines is SQLite. */
static bool is_export(const char *path)
{
    char head[16] = "";
    PROF_FILE_CLOSED FILE *file = prof_read_regular(path);
    bool read = file && fread(head, 1, sizeof head, file);
    return read && memcmp(head, "SQLite format 3", sizeof head) != 0;
}

static enum prof_status import_export(struct call *call)
{
    struct prof_baseline_file *to = NULL;
    struct prof_baseline baseline;
    PROF_TRY(prof_baseline_read_export(call->values[0], &baseline, call->err));
    enum prof_status status = open_baseline_file(call, true, &to);
    if (status)
        prof_baseline_free(&baseline);
    else
        status = import_baseline(call, &baseline, to,
                                 call->count == 2 ? call->values[1] : baseline.name);
    prof_baseline_close(to);
    return status;
}

static int import_all(struct call *call)
{
    struct prof_baseline_file *from, *to = NULL;
    struct prof_baseline_list names = {0};
    if (is_export(call->values[0]))
        return import_export(call) ? CLI_USAGE : CLI_OK;
    enum prof_status status = prof_baseline_open(call->values[0], false, &from, call->err);
    if (status)
        return CLI_USAGE;
    status = prof_baseline_summaries(from, &names, call->err);
    if (!status && call->count == 2 && names.count > 1)
        status = prof_fail(call->err, PROF_INVALID,
                           "%s holds %zu baselines, which one name cannot take: leave NAME out",
                           call->values[0], names.count);
    status = status ?: open_baseline_file(call, true, &to);
    for (size_t i = 0; !status && i < names.count; i++) {
        const char *name = names.rows[i].name;
        struct prof_baseline baseline;
        status = prof_baseline_load(from, name, 0, &baseline, call->err);
        status = status ? status
                        : import_baseline(call, &baseline, to,
                                          call->count == 2 ? call->values[1] : name);
    }
    prof_baseline_summaries_free(&names);
    prof_baseline_close(from);
    prof_baseline_close(to);
    return status ? CLI_USAGE : CLI_OK;
}

/* ---- the command ----------------------------------------------------------------------------- */

static const struct {
    int (*run)(struct call *call);
    int least, most; /* operands behind it */
    const char *usage;
} verb_table[] = {
    {save_baseline, 2, INT_MAX, "a name and captures: save NAME FILE..."},
    {list, 0, INT_MAX, NULL},
    {show_baseline, 1, 1, "one name: show NAME"},
    {rm, 1, 1, "one name: rm NAME"},
    {export_baseline, 2, 2, "a name and a file: export NAME FILE"},
    {import_all, 1, 2, "a file and perhaps a name: import FILE [NAME]"},
};
static const char *const verbs[] = {"save", "list", "show", "rm", "export", "import", NULL};

static int find_verb(const char *word)
{
    struct cli_nearest near = {.word = word};
    for (int i = 0; verbs[i]; i++) {
        if (!strcmp(word, verbs[i]))
            return i;
        cli_consider(&near, verbs[i]);
    }
    return cli_fail(-1, "baseline",
                    "unknown action '%s': %s%s%suse save, list, show, rm, export or import", word,
                    CLI_DID_YOU_MEAN(near));
}

/* An option that the verb would ignore is refused. */
static bool are_of_verb(const struct options *args, const char *verb, struct prof_error *err)
{
    const struct {
        const char *option, *verb;
        bool given;
    } rows[] = {{"--html", "show", args->html != NULL},
                {"--label", "save", args->label != NULL},
                {"--sessions", "rm", args->keep != 0},
                {"--force", "export", args->force}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].given && strcmp(rows[i].verb, verb) != 0) {
            prof_fail(err, PROF_INVALID, "%s is an option of perfkit baseline %s, not of %s",
                      rows[i].option, rows[i].verb, verb);
            return false;
        }
    return true;
}

static int baseline_run(const struct cli_command *command, void *given,
                        const struct cli_operands *operands, struct prof_error *err)
{
    const struct options *args = given;
    struct gate_config config;
    int exit_status = CLI_USAGE;
    int verb = find_verb(operands->values[0]);
    if (verb < 0)
        return CLI_USAGE;
    if (gate_config_read(args->config, args->baselines, &config, err))
        return CLI_USAGE;
    struct call call = {.args = args,
                        .config = &config,
                        .count = operands->count - 1,
                        .values = operands->values + 1,
                        .err = err};
    if (call.count < verb_table[verb].least || call.count > verb_table[verb].most)
        prof_fail(err, PROF_INVALID, "give %s", verb_table[verb].usage);
    else if (are_of_verb(args, verbs[verb], err))
        exit_status = verb_table[verb].run(&call);
    if (exit_status == CLI_OK && prof_report_flush(stdout, err))
        exit_status = CLI_USAGE;
    (void)command;
    gate_config_free(&config);
    return exit_status;
}

const struct cli_command baseline_command = {
    .name = "baseline",
    .summary = "keep what runs were like, for perfkit gate",
    .operands = "save|list|show|rm|export|import [NAME] [FILE...]",
    .text = "A baseline is a named history of sessions; each save adds one, of one or several "
            "runs. Kept are a run's metrics and its environment, not its capture: up to some "
            "hundred kilobytes. The gate learns from the spread between sessions how noisy each "
            "metric is; with about ten it compares times well. Several jobs may save at once. Only "
            "complete captures are taken, and the same capture counts once.",
    .options = options_table,
    CLI_OPTIONS_ARE(options, .skip = CLI_NO_SKIP),
    .examples = examples,
    .statuses = statuses,
    .write_status = CLI_USAGE,
    .operand = CLI_FILE,
    .verbs = verbs,
    .least = 1,
    .most = UINT_MAX,
    .run = baseline_run,
};
