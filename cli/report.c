/* perfkit report: hands a capture to the writers of report/. Nothing is computed here. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/filter.h"
#include "cli/find_capture.h"
#include "cli/output_name.h"
#include "cli/process.h"
#include "libprof/base/format.h"
#include "libprof/base/regular.h"
#include "report/report.h"

struct report_options {
    unsigned format, top, findings, why;
    bool json, all, ranks, memory, iterations, quiet;
    size_t captures; /* operands */
    const char *stats, *html, *chrome_trace, *perfetto, *flamegraph, *speedscope, *pprof, *otlp;
    const char *prometheus, *roofline, *plots;
    unsigned roofline_of, weight;
    struct cli_filter_options filter;
};

enum { FORMAT_NONE = 0, FORMAT_JSON = 2 };
/* In the order of enum prof_report_findings. */
static const char *const findings_words[] = {"top", "all", "none", NULL};
static const char *const format_words[] = {"", "text", "json", "csv", "markdown", NULL};

/* In the order of enum prof_roofline_group. */
static const char *const roofline_words[] = {"kernels", "configs", "ranges", NULL};

/* In the order of enum prof_flame_weight. */
static const char *const weight_words[] = {"time", "kernels",   "bytes", "count",   "idle",
                                           "held", "allocated", "cpu",   "blocked", NULL};

static const struct cli_option report_options[] = {
    CLI_OPTION(report_options, format, "format", 0, CHOICE, "NAME", "text, json, csv or markdown",
               .fallback = "text, or nothing when a file is written", .group = "On standard output",
               .words = format_words + 1),
    CLI_JSON_ROW(report_options, json, "the same as --format json"),
    CLI_OPTION(report_options, all, "all", 'a', FLAG, NULL,
               "text: every table with all that is known, not only one screen"),
    CLI_OPTION(report_options, top, "top", 'n', COUNT, "N", "rows of each table at most"),
    CLI_OPTION(report_options, findings, "findings", 0, CHOICE, "HOW_MANY",
               "top (three), all (with rules that were not checked) or none",
               .fallback = "top, with --all: all", .words = findings_words),
    CLI_OPTION(report_options, stats, "stats", 0, TEXT, "NAME[,NAME...]",
               "only these tables, named and laid out as those of `nsys stats`; `list` lists them",
               .offers = "perfkit report --stats list"),
    CLI_OPTION(report_options, ranks, "ranks", 0, FLAG, NULL,
               "only what the ranks of a distributed run did, and what they did together"),
    CLI_OPTION(
        report_options, memory, "memory", 0, FLAG, NULL,
        "only memory: what was live at its peak, what leaks, what lives briefly, what failed"),
    CLI_OPTION(report_options, iterations, "iterations", 0, FLAG, NULL,
               "only iterations: how long each took and what it did, which are slow, whether they "
               "become slower"),
    CLI_OPTION(report_options, why, "why", 0, COUNT, "N",
               "only the N-th iteration: where it took longer than the others, and what began it"),
    CLI_OPTION(report_options, html, "html", 0, FILE, "OUT",
               "one self-contained page for a browser", .group = "Into files"),
    CLI_OPTION(
        report_options, chrome_trace, "chrome-trace", 0, FILE, "OUT",
        "a timeline for Perfetto, chrome://tracing, HTA or TensorBoard; OUT.gz is compressed"),
    CLI_OPTION(report_options, perfetto, "perfetto", 0, FILE, "OUT",
               "the same in Perfetto's own format: smaller, faster, exact; OUT.gz is compressed"),
    CLI_OPTION(report_options, flamegraph, "flamegraph", 0, FILE, "OUT",
               "folded stacks (host stack; NVTX ranges; API call; kernel) for flame graph tools"),
    CLI_OPTION(report_options, weight, "weight", 0, CHOICE, "BY",
               "what --flamegraph weighs stacks by: time on the device; time of kernels alone; "
               "bytes of memcpys and memsets; count of operations; idle, the time that the device "
               "had waited for them; bytes live at the peak of memory; bytes allocated; of "
               "--cpu-sample the threads' time on cpu or blocked",
               .fallback = "time", .words = weight_words),
    CLI_OPTION(report_options, speedscope, "speedscope", 0, FILE, "OUT",
               "the same stacks for speedscope, by time, bytes, number and idle time, and the host "
               "by its samples, with source lines"),
    CLI_OPTION(report_options, pprof, "pprof", 0, FILE, "OUT",
               "the same for pprof, compressed (OUT.pb.gz)"),
    CLI_OPTION(report_options, otlp, "otlp", 0, FILE, "OUT",
               "the same as OTLP profiles (alpha, opentelemetry-proto 1.11), for a collector of "
               "OpenTelemetry; OUT.gz is compressed"),
    CLI_OPTION(report_options, prometheus, "prometheus", 0, FILE, "OUT",
               "totals for node_exporter's textfile collector (OUT.prom); --top N kernels, 50"),
    CLI_OPTION(report_options, roofline, "roofline", 0, FILE, "OUT",
               "the roofline as a figure, by gnuplot: OUT.svg, OUT.png, or OUT.gp for the script"),
    CLI_OPTION(report_options, roofline_of, "roofline-of", 0, CHOICE, "WHAT",
               "what that figure draws", .fallback = "kernels", .words = roofline_words),
    CLI_OPTION(report_options, plots, "plots", 0, FILE, "FOLDER",
               "figures by gnuplot, SVG and PNG: utilisation, kernels, durations, memcpys, memory, "
               "roofline"),
    CLI_QUIET_ROW(report_options, quiet, "print only errors, not which files were written"),
    CLI_FILTER_ROWS(report_options, filter),
    {0},
};

static const struct cli_text_row report_examples[] = {
    {"perfkit report", "Read the newest capture of this folder."},
    {"perfkit report train.sqlite --html train.html", "Write a page for a browser."},
    {"perfkit report before.sqlite after.sqlite --html both.html",
     "Both captures (or more) in one page: timelines on one axis, what differs, flame graphs."},
    {"perfkit report --flamegraph - | flamegraph.pl >train.svg",
     "Draw a flame graph; `-` is standard output."},
    {"perfkit report train.sqlite --stats cuda_gpu_kern_sum,cuda_api_sum",
     "Tables as `nsys stats` has them."},
    {"perfkit report train.sqlite --ranks",
     "Which rank waited for which, and what collectives cost."},
    {"perfkit report train.sqlite --memory", "What holds the memory, and whether it leaks."},
    {"perfkit report train.sqlite --iterations", "Which iterations are slow."},
    {"perfkit report train.sqlite --why 142", "Why iteration 142 was."},
    {"perfkit report train.sqlite --slowest 1 --html slow.html",
     "A page of the slowest iteration alone."},
    {"perfkit report train.sqlite --nvtx step --from 10",
     "Only device work launched in steps, from ten seconds after the start."},
    {"perfkit report train.sqlite --format csv --top 10",
     "The ten first rows of each table, for a spreadsheet."},
    {0},
};

static const struct cli_text_row report_variables[] = {
    {"COLUMNS", "Width of the text report, also into a pipe or a file; without it the terminal's, "
                "100 at most. A wide one shows every column and whole names."},
    {"LINES", "Lines of the text report at most, also into a pipe or a file; without it the "
              "terminal's. Not with --all, --findings or --top."},
    {"PAGER", "What shows --all on a terminal, PERFKIT_PAGER before it; less by default, empty or "
              "cat: none."},
    {"NO_COLOR", "When set, the text report has no colour."},
    {0},
};

/* A line that is written over, on a terminal, once it takes longer than a second. */
struct ticker {
    struct cli_progress progress;
    const char *what;
};

static void show_report_progress(void *context, int64_t done, int64_t total)
{
    struct ticker *ticker = context;
    if (!cli_progress_due(&ticker->progress))
        return;
    if (total > 0)
        cli_show_progress("report", "%s: %s", ticker->what,
                          prof_percent((double)done / (double)total).text);
    else
        cli_show_progress("report", "%s: %s events", ticker->what, prof_count(done).text);
}

/* As with most tools: `perfkit report --flamegraph - | flamegraph.pl`. */
static bool is_standard(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

/* Flame graph tools say no more of an empty file than that it is one. */
static void print_no_stacks(enum prof_flame_weight weight)
{
    bool sampled = weight == PROF_FLAME_CPU || weight == PROF_FLAME_BLOCKED;
    cli_say("report", "note: the flame graph is empty: there is nothing to weigh by %s%s",
            weight_words[weight], sampled ? "; perfkit run --cpu-sample records it" : "");
}

static enum prof_status write_file(struct prof_capture *capture, const char *writer,
                                   const char *path, struct prof_report_options options, bool quiet,
                                   struct prof_error *err)
{
    struct ticker ticker = {.what = path};
    options.progress = show_report_progress;
    options.progress_context = &ticker;
    size_t stacks = SIZE_MAX;
    options.stacks = &stacks;
    const struct prof_report_writer *to = prof_report_find(writer);
    bool standard = is_standard(path);
    enum prof_status status = standard ? to->write(capture, &options, stdout, err)
                                       : prof_report_save(to, capture, &options, path, err);
    cli_wipe_progress();
    if (!status && !standard && !quiet)
        cli_say("report", "wrote %s", path);
    if (!status && !stacks && !quiet)
        print_no_stacks(options.weight);
    return status;
}

/* By the name of the file; NULL when it has none of the endings. */
static const char *roofline_writer(const char *path)
{
    static const char *const writers[] = {"roofline-svg", "roofline-png", "roofline-script"};
    for (size_t i = 0; path && i < sizeof writers / sizeof writers[0]; i++)
        if (prof_ends_with(path, prof_report_find(writers[i])->extension))
            return writers[i];
    return path && is_standard(path) ? "roofline-svg" : NULL;
}

enum { OUTPUT_FILES = 16 };

/* The files that the options name, ended by one without an option: options named as a writer is,
 * and --roofline, whose writer goes by the file. */
static void list_files(const struct report_options *args,
                       struct cli_output_file files[OUTPUT_FILES])
{
    size_t count = 0;
    memset(files, 0, OUTPUT_FILES * sizeof files[0]);
    for (const struct cli_option *option = report_options; option->name; option++) {
        bool roofline = !strcmp(option->name, "roofline");
        if (option->type != CLI_FILE || (!roofline && !prof_report_find(option->name)))
            continue;
        const char *path = *(const char *const *)((const char *)args + option->offset);
        const char *writer = roofline ? roofline_writer(path) : option->name;
        if (path && count < OUTPUT_FILES - 1)
            files[count++] = (struct cli_output_file){option->name, path, writer};
    }
}

/* format_words and enum prof_report_format are in one order, but for the word of none. */
static enum prof_report_findings chosen_findings(const struct report_options *args)
{
    if (args->findings != UINT_MAX)
        return (enum prof_report_findings)args->findings;
    return args->all ? PROF_REPORT_FINDINGS_ALL : PROF_REPORT_FINDINGS_TOP;
}

static enum prof_report_format stats_format(const struct report_options *args)
{
    return args->format == FORMAT_NONE ? PROF_REPORT_TEXT
                                       : (enum prof_report_format)(args->format - 1);
}

static enum prof_status write_stats(struct prof_capture *capture, const struct report_options *args,
                                    struct prof_report_options options, struct prof_error *err)
{
    enum prof_status status =
        prof_report_write_stats(capture, &options, args->stats, stats_format(args), stdout, err);
    cli_wipe_progress();
    struct prof_trust trust;
    if (!status && args->format && stats_format(args) == PROF_REPORT_CSV &&
        !prof_trust(capture, &trust, NULL)) {
        if (!trust.complete) /* the format has no room for it */
            cli_say("report", "the capture is not known to be complete: `perfkit report` says why");
        prof_trust_free(&trust);
    }
    return status;
}

/* What can be said of --stats without a capture: true to go on, false with the exit status. */
static bool stats_named(const struct cli_command *command, const struct report_options *args,
                        int *exit_status)
{
    struct prof_error err = {0};
    if (!args->stats)
        return true;
    if (!strcmp(args->stats, "list")) {
        *exit_status = CLI_OK;
        if (prof_report_list_stats(stats_format(args), stdout, &err)) {
            cli_say(command->name, "%s", err.message);
            *exit_status = CLI_FAILED;
        }
        return false;
    }
    if (!prof_report_stats_check(args->stats, &err))
        return true;
    struct cli_nearest near = {.word = args->stats};
    const char *name;
    for (size_t i = 0; !strchr(args->stats, ',') && (name = prof_report_stats_name(i)); i++)
        cli_consider(&near, name);
    cli_say(command->name, "--stats: %s%s%s%s: `--stats list` lists them", err.message,
            near.best ? " (did you mean '" : "", near.best ? near.best : "",
            near.best ? "'?)" : "");
    *exit_status = CLI_USAGE;
    return false;
}

/* A figure that has nothing to draw keeps no other file from being written: what is missing is
 * reported at the end, by *err. */
static enum prof_status write_files(struct prof_capture *capture, const struct report_options *args,
                                    const struct cli_output_file files[OUTPUT_FILES],
                                    const struct prof_report_options *options,
                                    struct prof_error *err)
{
    enum prof_status missed = PROF_OK;
    for (size_t i = 0; i < OUTPUT_FILES; i++) {
        struct prof_error own = {0};
        enum prof_status status =
            files[i].path
                ? write_file(capture, files[i].writer, files[i].path, *options, args->quiet, &own)
                : PROF_OK;
        if (status && missed)
            cli_say("report", "%s", err->message);
        if (status) {
            missed = status;
            *err = own;
        }
        if (status && status != PROF_NOTFOUND)
            return status;
    }
    if (!args->plots)
        return missed;
    size_t pictures;
    struct prof_error own = {0};
    enum prof_status status = prof_report_plots(capture, options, args->plots, &pictures, &own);
    if (!status && !args->quiet)
        cli_say("report", "wrote %s: %s", args->plots,
                prof_counted((int64_t)pictures, "picture", "pictures").text);
    if (!status)
        return missed;
    if (missed)
        cli_say("report", "%s", err->message);
    *err = own;
    return status;
}

/* How many reports about a part alone. */
static int parts_wanted(const struct report_options *args)
{
    return !!args->ranks + !!args->stats + !!args->memory + !!args->iterations + !!args->why;
}

/* Text of any length on a terminal goes through a pager, as git does it. What is printed next goes
 * to it; 0 = there is none. A pager that is not there is cat. */
static pid_t start_pager(void)
{
    const char *pager = getenv("PERFKIT_PAGER"), *term = getenv("TERM");
    char line[512];
    int ends[2];
    pager = pager ? pager : getenv("PAGER");
    pager = pager ? pager : "less";
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !*pager || !strcmp(pager, "cat") ||
        !term || !strcmp(term, "dumb") || pipe(ends))
        return 0;
    snprintf(line, sizeof line, "%s || cat", pager);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("LESS", "FRX", 0);
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    if (pid > 0)
        dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    return pid;
}

/* Until the reader leaves it; Ctrl-C is for the pager. */
static void await_pager(pid_t pager)
{
    if (pager <= 0)
        return;
    fflush(stdout);
    close(STDOUT_FILENO);
    signal(SIGINT, SIG_IGN);
    process_wait(pager);
}

static enum prof_status write_standard_output(struct prof_capture *capture,
                                              const struct report_options *args,
                                              const struct prof_report_options *options,
                                              struct prof_error *err)
{
    enum prof_report_format format = stats_format(args);
    const char *name = args->format == FORMAT_NONE ? "text" : format_words[args->format];
    if (args->stats)
        return write_stats(capture, args, *options, err);
    if (args->ranks)
        return prof_report_write_ranks(capture, options, format, stdout, err);
    if (args->memory)
        return prof_report_write_memory(capture, options, format, stdout, err);
    if (args->iterations || args->why)
        return prof_report_write_iterations(capture, options, format, stdout, err);
    return prof_report_find(name)->write(capture, options, stdout, err);
}

static enum prof_status show_report(struct prof_capture *capture, const struct report_options *args,
                                    struct prof_report_options options, struct prof_error *err)
{
    options.width = terminal_report_width();
    if (!args->top && args->findings == UINT_MAX)
        options.lines = terminal_lines(stdout);
    options.colour = terminal_colour(stdout);
    options.why = args->why;
    bool fits = options.lines && !args->all && !parts_wanted(args);
    bool is_text = args->format == FORMAT_NONE || stats_format(args) == PROF_REPORT_TEXT;
    struct ticker ticker = {.what = "--stats"};
    options.progress = args->stats && !isatty(STDOUT_FILENO) ? show_report_progress : NULL;
    options.progress_context = &ticker;
    pid_t pager = is_text && !fits ? start_pager() : 0;
    enum prof_status status = write_standard_output(capture, args, &options, err);
    await_pager(pager);
    return status;
}

#define CAPTURES 16 /* in one page; each has its share of its events */

/* One of the captures of a report, with what was chosen of it. */
struct chosen_capture {
    struct prof_capture *capture;
    struct cli_filter filter;
};

static const struct prof_filter *filter_of(const struct chosen_capture *chosen)
{
    return chosen->filter.any ? &chosen->filter.filter : NULL;
}

static enum prof_status write_reports(const struct chosen_capture *one,
                                      const struct prof_report_other *others, size_t other_count,
                                      const struct report_options *args,
                                      const struct cli_output_file files[OUTPUT_FILES],
                                      struct prof_error *err)
{
    struct prof_capture *capture = one->capture;
    struct prof_report_options options = {.filter = filter_of(one),
                                          .top = args->top,
                                          .all = args->all,
                                          .others = others,
                                          .other_count = other_count,
                                          .findings = chosen_findings(args),
                                          .roofline = (enum prof_roofline_group)args->roofline_of,
                                          .weight = (enum prof_flame_weight)args->weight};
    bool any_file = args->plots != NULL;
    for (size_t i = 0; i < OUTPUT_FILES; i++)
        any_file |= files[i].path != NULL;
    enum prof_status status = write_files(capture, args, files, &options, err);
    if (status && status != PROF_NOTFOUND)
        return status;
    if (any_file && args->format == FORMAT_NONE && !parts_wanted(args))
        return status;
    struct prof_error own = {0};
    enum prof_status shown = show_report(capture, args, options, &own);
    if (shown)
        *err = own;
    return shown ? shown : status;
}

/* Options that would be ignored without a message. */
static bool options_agree(const char *command, const struct report_options *args,
                          const struct cli_output_file files[OUTPUT_FILES])
{
    if (args->captures > 1 && !args->html)
        return cli_refuse(command,
                          "several captures are compared in the HTML page: add --html OUT, or use "
                          "`perfkit diff`");
    if (args->json && args->format != FORMAT_NONE && args->format != FORMAT_JSON)
        return cli_refuse(command, "--json and --format %s: give one of them",
                          format_words[args->format]);
    if (parts_wanted(args) > 1)
        return cli_refuse(command,
                          "--ranks, --memory, --iterations, --why and --stats: give one of them");
    if ((args->iterations || args->why) && (args->filter.number || args->filter.slowest))
        return cli_refuse(command,
                          "--iterations and --why number all iterations: give them without "
                          "--iteration-number and --slowest");
    if (args->roofline_of != UINT_MAX && !args->roofline)
        return cli_refuse(command,
                          "--roofline-of says what --roofline draws: give --roofline OUT.svg too");
    if (args->weight != UINT_MAX && !args->flamegraph)
        return cli_refuse(command,
                          "--weight says what --flamegraph weighs by: give --flamegraph OUT too");
    if (args->plots && is_standard(args->plots))
        return cli_refuse(command, "--plots writes several files: give it a folder");
    bool list = args->stats && !strcmp(args->stats, "list"), any_file = args->plots != NULL;
    for (size_t i = 0; i < OUTPUT_FILES; i++)
        any_file |= files[i].path != NULL;
    if (list && any_file)
        cli_say(command,
                "--stats list only lists names: write the files with a command of their own");
    else if (list && cli_filter_any(&args->filter))
        cli_say(command,
                "--stats list only lists names, which are those of every part of a capture");
    else
        return true;
    return false;
}

/* Options as the rest of this file wants them. False: what is wrong was said. */
static bool check_report_options(const char *command, struct report_options *args,
                                 struct cli_output_file *files)
{
    list_files(args, files);
    if (!options_agree(command, args, files))
        return false;
    if (args->json)
        args->format = FORMAT_JSON;
    if (args->weight == UINT_MAX)
        args->weight = PROF_FLAME_DEVICE_NS;
    if (args->roofline_of == UINT_MAX)
        args->roofline_of = PROF_ROOFLINE_KERNELS;

    int on_standard = args->format != FORMAT_NONE || parts_wanted(args);
    for (size_t i = 0; i < OUTPUT_FILES; i++)
        on_standard += is_standard(files[i].path);
    if (on_standard > 1)
        return cli_refuse(command, "standard output takes one report: give the others a file name");
    if (args->roofline && !roofline_writer(args->roofline))
        return cli_refuse(command, "--roofline %s: the name must end with .svg, .png or .gp",
                          args->roofline);
    return cli_outputs_are_free(command, files, OUTPUT_FILES);
}

static int report_run(const struct cli_command *command, void *given,
                      const struct cli_operands *operands, struct prof_error *err)
{
    struct report_options *args = given;
    struct cli_output_file files[OUTPUT_FILES];
    int exit_status;
    args->format++; /* the index into the words it was given, of ours, where 0 = none */
    args->captures = (size_t)operands->count;
    if (!check_report_options(command->name, args, files))
        return CLI_USAGE;
    if (!stats_named(command, args, &exit_status))
        return exit_status;
    size_t count = args->captures > 1 ? args->captures - 1 : 0;
    struct chosen_capture one = {0}, chosen[CAPTURES] = {0};
    struct prof_report_other others[CAPTURES];
    exit_status = CLI_USAGE;
    enum prof_status status = cli_open_capture(
        command->name, operands->count ? operands->values[operands->count - 1] : NULL, &one.capture,
        err);
    status = status ?: cli_filter_find(one.capture, &args->filter, &one.filter, err);
    for (size_t i = 0; i < count && !status; i++) {
        status = prof_open(operands->values[i], &chosen[i].capture, err);
        if (!status)
            status = cli_filter_find(chosen[i].capture, &args->filter, &chosen[i].filter, err);
        others[i] = (struct prof_report_other){chosen[i].capture, filter_of(&chosen[i])};
    }
    if (!status) {
        exit_status = CLI_FAILED;
        cli_leave_no_half_report();
        status = write_reports(&one, others, count, args, files, err);
    }
    for (size_t i = 0; i < count; i++) {
        cli_filter_free(&chosen[i].filter);
        prof_close(chosen[i].capture);
    }
    cli_filter_free(&one.filter);
    prof_close(one.capture);
    if (!status)
        return CLI_OK;
    return args->why && status == PROF_NOTFOUND ? CLI_USAGE : exit_status;
}

const struct cli_command report_command = {
    .name = "report",
    .summary = "explain a capture: tables, page, timeline, flame graph",
    .operands = "[BEFORE...] [FILE]",
    .text = "Reads a capture and prints what the GPU did and for how long. Without a file: the "
            "newest capture of the current folder. Every report says whether the capture is "
            "complete, and what was lost if it is not. With --html it also takes several captures, "
            "16 at most: the last is the candidate, the first the baseline.",
    .options = report_options,
    CLI_OPTIONS_ARE(report_options, .filter = CLI_NO_FILTER, .format = UINT_MAX,
                    .roofline_of = UINT_MAX, .weight = UINT_MAX, .findings = UINT_MAX),
    .examples = report_examples,
    .variables = report_variables,
    .operand = CLI_FILE,
    .most = CAPTURES,
    .run = report_run,
};
