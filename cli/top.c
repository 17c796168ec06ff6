/* perfkit top: shows what a program does on its GPUs while it does it, or browses a finished
 * capture. The screen and all that is on it are in tui/; this is the command: what to show, where,
 * and until when. */
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/find_capture.h"
#include "cli/top.h"
#include "libprof/base/clock.h"
#include "libprof/base/regular.h"
#include "tui/app.h"

#define BUDGET_NS 15000000 /* what a look at new rows may take before the screen is drawn */
#define TICK_NS 200000000l

struct top_options {
    bool once, json, ascii;
    const char *view, *file, *log, *window;
    unsigned window_s, count, rows;
    uint64_t interval;
    const char *iteration;
    unsigned skip;
};

#define MOST_WINDOW_S 60 /* of whole seconds, so many are kept */
static const char *const windows[] = {"1s", "10s", "60s", "all", NULL}; /* for completion */

static const struct cli_option top_options[] = {
    CLI_OPTION(top_options, once, "once", 0, FLAG, NULL, "print one screen as text and end",
               .group = "Instead of a screen"),
    CLI_JSON_ROW(top_options, json,
                 "print one JSON object a refresh, on a line each, until the capture ends"),
    CLI_OPTION(top_options, count, "count", 'n', COUNT, "N", "end after so many objects"),
    CLI_OPTION(top_options, rows, "rows", 0, COUNT, "N", "rows of the table that --once prints",
               .fallback = "40"),
    CLI_OPTION(top_options, view, "view", 0, TEXT, "NAME[,NAME...]",
               "kernels, streams, transfers, memory, ranges, processes, findings, devices, health, "
               "host; with --json several, or all",
               .fallback = "kernels", .group = "What is shown"),
    CLI_OPTION(top_options, window, "window", 0, TEXT, "TIME",
               "what rates and shares are of: the last whole seconds, up to 60, or all. Without it "
               "10s while it is recorded, all of a finished capture",
               .words = windows),
    CLI_OPTION(top_options, interval, "refresh", 'd', TIME, "TIME",
               "between two refreshes, at least 100ms", .fallback = "1s"),
    CLI_ITERATION_ROW(top_options, iteration),
    CLI_SKIP_ROW(top_options, skip),
    CLI_OPTION(top_options, ascii, "ascii", 0, FLAG, NULL,
               "only characters that every terminal has"),
    CLI_OPTION(top_options, file, "output", 'o', FILE, "FILE",
               "capture file to write; else named as by perfkit run", .group = "With a command"),
    CLI_OPTION(top_options, log, "program-log", 0, FILE, "FILE",
               "what the program prints on its standard output and error",
               .fallback = "the capture's name with .out"),
    {0},
};

static const struct cli_text_row top_examples[] = {
    {"perfkit top -- ./train --steps 100", "Start a program and watch it."},
    {"perfkit top", "Watch the program that `perfkit run` is recording."},
    {"perfkit top train.sqlite", "Watch, or browse, a capture."},
    {"perfkit top --json --view all train.sqlite", "All that is known, for a script."},
    {0},
};

static const struct cli_text_row top_statuses[] = {
    {"0", "Done."},
    {"1-255", "With a command that has ended: as the command, or 128 + the signal that ended it."},
    {"2", "The command line is wrong, or a file cannot be read or written."},
    {0},
};

static const struct cli_text_row top_variables[] = {
    {"NO_COLOR", "When set, the screen has no colour."},
    {"COLUMNS", "Width of what --once prints."},
    {0},
};

/* ---- what to show ---------------------------------------------------------------------------- */

/* Bits of views; 0 = a name that there is none of. */
static unsigned views_of(const char *text, int *first)
{
    unsigned views = 0;
    char word[32];
    *first = -1;
    if (!strcmp(text, "all")) {
        *first = 0;
        return (1u << TUI_VIEWS) - 1;
    }
    for (;;) {
        size_t length = strcspn(text, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1),
                 text);
        int view = tui_view_named(word);
        if (view < 0)
            return 0;
        views |= 1u << view;
        *first = *first < 0 ? view : *first;
        if (!text[length])
            return views;
        text += length + 1;
    }
}

static void pause_for(long ns)
{
    nanosleep(&(struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}, NULL);
}

/* ---- without a screen ------------------------------------------------------------------------ */

/* Until everything that is there was read. */
static enum prof_status read_whole_capture(struct tui_app *app, struct prof_error *err)
{
    enum prof_status status;
    do {
        while (app->model->phase == TUI_LET_GO && !tui_model_tick(app->model))
            pause_for(TICK_NS / 10);
        status = tui_app_refresh(app, 0, err);
    } while (!status && (!app->model->caught_up || app->model->phase == TUI_LET_GO) &&
             app->model->phase != TUI_GONE);
    return status;
}

static enum prof_status print_once(struct tui_app *app, const struct top_options *options,
                                   struct prof_error *err)
{
    enum prof_status status = read_whole_capture(app, err);
    if (status)
        return status;
    app->stale = true;
    for (int i = 0; app->stale && i < 10; i++)
        tui_app_fill(app);
    if (app->view == TUI_VIEW_DEVICES && tui_model_is_live(app->model)) {
        pause_for(TICK_NS); /* loads are of the time between two looks */
        status = tui_app_refresh(app, 0, err);
    }
    if (status)
        return status;
    size_t width = terminal_report_width();
    width = width ? width : 120;
    return tui_app_print(app, width < 4000 ? (int)width : 4000, options->rows, stdout, err);
}

static bool is_over(const struct tui_model *model)
{
    return (model->phase == TUI_FINISHED && model->caught_up) || model->phase == TUI_GONE ||
           model->phase == TUI_ABANDONED;
}

/* Wait for the next refresh, or less when the capture wants it. */
static void wait_between(struct tui_app *app, uint64_t interval)
{
    uint64_t end = prof_now_ns() + interval;
    for (uint64_t now; (now = prof_now_ns()) < end && !tui_model_tick(app->model);)
        pause_for(end - now < (uint64_t)TICK_NS ? (long)(end - now) : TICK_NS);
}

static enum prof_status stream(struct tui_app *app, const struct top_options *options,
                               unsigned views, struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    for (unsigned i = 0; !status; i++) {
        status = tui_app_refresh(app, 0, err);
        status = status ?: tui_app_json(app, views, stdout, err);
        if (status || is_over(app->model) || (options->count && i + 1 >= options->count))
            break;
        wait_between(app, options->interval);
    }
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static enum prof_status on_screen(struct tui_app *app, const struct top_options *options,
                                  int *ended_by, struct prof_error *err)
{
#if PERFKIT_HAVE_NCURSES
    const char *term = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return prof_fail(err, PROF_UNSUPPORTED,
                         "this is no terminal: use --once for one screen as text, or --json");
    if (!term || !*term || !strcmp(term, "dumb"))
        return prof_fail(err, PROF_UNSUPPORTED,
                         "the terminal '%s' cannot show a screen: use --once or --json",
                         term ? term : "");
    struct tui_terminal_options terminal = {.interval_ns = (int64_t)options->interval,
                                            .budget_ns = BUDGET_NS,
                                            .colour = terminal_colour(stdout)};
    app->beside = true;
    enum prof_status status = tui_app_refresh(app, BUDGET_NS, err);
    return status ? status : tui_terminal_run(app, &terminal, ended_by, err);
#else
    (void)app;
    (void)options;
    (void)ended_by;
    return prof_fail(err, PROF_UNSUPPORTED,
                     "this perfkit was built without ncurses: use --once or --json, or build it "
                     "with libncurses-dev");
#endif
}

static enum prof_status show_top(const struct top_capture *capture,
                                 const struct top_options *options, unsigned views, int first,
                                 bool *finished, int *ended_by, struct prof_error *err)
{
    struct tui_app app;
    bool utf8 = setlocale(LC_CTYPE, "") && !strcmp(nl_langinfo(CODESET), "UTF-8");
    if (!tui_app_make(&app, capture->path, options->ascii || !utf8))
        return prof_out_of_memory(err);
    struct top_measure measure = {.model = app.model};
    app.measure = top_measure;
    app.measure_context = &measure;
    app.model->is_served = top_is_served;
    app.model->window_chosen = options->window;
    if (options->window)
        app.model->window_s = options->window_s;
    app.iterations = (struct prof_filter)CLI_ITERATION_FILTER(options->iteration, options->skip);
    if (*capture->final)
        app.model->final = strdup(capture->final);
    tui_app_show(&app, first);
    enum prof_status status = options->once   ? print_once(&app, options, err)
                              : options->json ? stream(&app, options, views, err)
                                              : on_screen(&app, options, ended_by, err);
    *finished = app.model->phase == TUI_FINISHED;
    tui_app_free(&app);
    return status;
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Was this option of `perfkit run` given? */
static bool gives_run_option(const struct cli_operands *operands, const char *name)
{
    for (size_t i = 0; i < operands->other_count; i++) {
        const struct cli_option *option =
            cli_option_named(run_command.options, operands->others[i]);
        if (option && !strcmp(option->name, name))
            return true;
    }
    return false;
}

/* What `perfkit run` said at its end, beside what the program printed. */
static void repeat_recorder(const char *output)
{
    static const char prefix[] = "perfkit run: ";
    PROF_FILE_CLOSED FILE *file = fopen(output, "re");
    char line[2048];
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (!strncmp(line, prefix, sizeof prefix - 1))
            cli_say("run", "%s", line + sizeof prefix - 1);
    }
}

/* The recorder has ended: what it said, and how the program ended, which it returns. */
static int report_program_end(const struct cli_command *command, const struct top_capture *capture,
                              int status)
{
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    repeat_recorder(capture->output);
    if (code)
        cli_say(command->name, "the program ended with status %d; what it printed is in %s", code,
                capture->output);
    return code;
}

/* Leaving the screen leaves the program alone, but for Ctrl-C, which ends it as in a shell. Returns
 * the status of a program that has ended, else 0. */
static int leave_program(const struct cli_command *command, struct top_capture *capture,
                         bool finished, int ended_by)
{
    int status = 0;
    if (capture->recorder <= 0)
        return CLI_OK;
    pid_t ended = waitpid(capture->recorder, &status, WNOHANG);
    /* The capture is complete a moment before its recorder ends. */
    for (int i = 0; i < 1500 && finished && ended == 0; i++) {
        pause_for(TICK_NS / 10);
        ended = waitpid(capture->recorder, &status, WNOHANG);
    }
    if (ended)
        return ended > 0 ? report_program_end(command, capture, status) : CLI_OK;
    if (ended_by == SIGINT) {
        kill(-capture->recorder, SIGINT);
        cli_say(command->name, "the program was interrupted; its capture is %s", capture->path);
        return CLI_OK;
    }
    cli_say(command->name,
            "the program runs on (perfkit run is process %ld); its capture is %s, what it prints "
            "is in %s",
            (long)capture->recorder, capture->path, capture->output);
    return CLI_OK;
}

/* In a finished capture: while it is recorded, the range may be yet to come, and the view of
 * findings says so. */
static enum prof_status check_iteration_filter(const char *path, const struct top_options *options,
                                               struct prof_error *err)
{
    struct prof_filter filter = CLI_ITERATION_FILTER(options->iteration, options->skip);
    CLI_CLOSED struct prof_capture *capture = NULL;
    if (!filter.iteration && !filter.skips)
        return PROF_OK;
    enum prof_status status = prof_open(path, &capture, err);
    enum prof_state state = status ? PROF_STATE_RECORDING : prof_info(capture)->state;
    if (state != PROF_STATE_RECORDING && state != PROF_STATE_CLOSING)
        status = prof_iterations_check(capture, &filter, err);
    return status;
}

/* --output and --iteration are both commands'; that of --ring is given to `perfkit run`. */
static enum prof_status start_program(const struct top_options *options,
                                      const struct cli_operands *operands,
                                      struct top_capture *capture, int *exit_status,
                                      struct prof_error *err)
{
    char **words = operands->others + operands->other_count;
    if (options->iteration && gives_run_option(operands, "ring")) {
        words[0] = (char *)(uintptr_t) "--iteration";
        words[1] = (char *)(uintptr_t)options->iteration;
    }
    *exit_status = CLI_FAILED;
    return top_start(operands->program, operands->others, gives_run_option(operands, "force"),
                     options->file, options->log, capture, exit_status, err);
}

static enum prof_status find_top_capture(const struct top_options *options,
                                         const struct cli_operands *operands,
                                         struct top_capture *capture, int *exit_status,
                                         struct prof_error *err)
{
    *exit_status = CLI_USAGE;
    if (operands->program)
        return start_program(options, operands, capture, exit_status, err);
    if (operands->count) {
        if (access(operands->values[0], F_OK))
            return prof_fail(err, PROF_NOTFOUND, "%s: no such file", operands->values[0]);
        top_named(operands->values[0], capture);
        return check_iteration_filter(capture->path, options, err);
    }
    return top_running(!options->once && !options->json && isatty(STDIN_FILENO), capture, err);
}

/* 500ms, 2s: -i was the time between refreshes once. A range of that name is NAME@DOMAIN. */
static bool is_time(const char *text)
{
    static const char *const units[] = {"ns", "us", "ms", "s", "m", "h"};
    size_t digits = text ? strspn(text, "0123456789.") : 0;
    bool found = false;
    for (size_t i = 0; digits && i < sizeof units / sizeof *units; i++)
        found |= !strcmp(text + digits, units[i]);
    return found;
}

static const char *top_options_error(const struct top_options *options,
                                     const struct cli_operands *operands, unsigned views)
{
    char **program = operands->program;
    if (options->once && options->json)
        return "--once and --json exclude each other: give one";
    if (is_time(options->iteration))
        return "--iteration is the NVTX range of an iteration: the time between refreshes is "
               "--refresh";
    if (program && operands->count)
        return "a file and a command exclude each other: give one";
    if (program && !program[0])
        return "no command after --: give one";
    if (program && options->once)
        return "--once shows a capture: start the command with perfkit run, or use --json";
    if (!program && (options->file || options->log))
        return "--output and --program-log need a command: give one after --";
    if (options->count && !options->json)
        return "--count goes with --json";
    if (!options->json && (views & (views - 1)))
        return "a screen shows one view: give one to --view, or --json";
    return NULL;
}

static bool read_window(const char *text, unsigned *seconds)
{
    uint64_t ns = 0;
    *seconds = 0;
    if (!strcmp(text, "all"))
        return true;
    if (!cli_parse_time(text, &ns) || ns > MOST_WINDOW_S * 1000000000ull || ns % 1000000000)
        return false;
    *seconds = (unsigned)(ns / 1000000000);
    return *seconds > 0;
}

static int top_run(const struct cli_command *command, void *given,
                   const struct cli_operands *operands, struct prof_error *err)
{
    struct top_options *options = given;
    struct top_capture capture = {0};
    int exit_status, first, ended_by = 0;
    bool finished = false;
    if (options->window && !read_window(options->window, &options->window_s))
        return cli_fail(CLI_USAGE, command->name,
                        "--window: '%s' is no window: give 1s to %us, or all", options->window,
                        MOST_WINDOW_S);
    unsigned views = views_of(options->view, &first);
    const char *why = top_options_error(options, operands, views);
    if (why || !views)
        return cli_fail(CLI_USAGE, command->name,
                        why ? "%s" : "--view %s: no such view, see perfkit help top",
                        why ? why : options->view);
    if (options->interval < 100000000)
        options->interval = 100000000;
    enum prof_status status = find_top_capture(options, operands, &capture, &exit_status, err);
    if (!status) {
        status = show_top(&capture, options, views, first, &finished, &ended_by, err);
        exit_status = leave_program(command, &capture, finished, ended_by);
        if (status)
            exit_status = (int)cli_exit_status(status);
    }
    if (!status && ended_by && ended_by != SIGINT)
        raise(ended_by); /* as its sender expects */
    return exit_status;
}

const struct cli_command top_command = {
    .name = "top",
    .summary = "watch what a program does on its GPUs, live",
    .operands = "[FILE | -- COMMAND [ARG...]]",
    .text = "Shows kernels, streams, memcpys, memsets, memory, NVTX ranges, processes, findings, "
            "devices and the health of the recording, of a capture that is being recorded or of a "
            "finished one. Without a file: of the program that `perfkit run` is recording. With a "
            "command: starts it under `perfkit run`, whose options it takes too, and writes what "
            "the program prints to a file. F1 in it explains the keys. Watching does not change "
            "what is "
            "recorded, and leaving it leaves "
            "the program alone.",
    .options = top_options,
    CLI_OPTIONS_ARE(top_options, .interval = 1000000000, .rows = 40, .view = "kernels",
                    .skip = CLI_NO_SKIP),
    .starts = &run_command,
    .statuses = top_statuses,
    .write_status = CLI_USAGE,
    .examples = top_examples,
    .variables = top_variables,
    .operand = CLI_FILE,
    .most = 1,
    .run = top_run,
};
