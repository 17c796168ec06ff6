/* perfkit export, import and merge: captures in the shape of other tools' files, the way back, and
 * those of a distributed run as one. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/process.h"
#include "cli/find_capture.h"
#include "libprof/base/format.h"
#include "libprof/base/regular.h"
#include "libprof/include/prof.h"
#include "libprof/store/exchange.h"
#include "libprof/store/merge.h"
#include "libprof/store/store.h"

/* ---- notes and progress ---------------------------------------------------------------------- */

/* Running an export or import for a person: it may take a minute, may be interrupted, and says at
 * the end what the other shape could not hold. */

/* Progress on a terminal, and whether a signal requested the end. */
struct exchange_shown {
    const char *command, *what;
    bool quiet;
    struct cli_progress progress;
};

typedef enum prof_status exchange_call(const char *path, const char *output,
                                       const struct prof_exchange_options *options,
                                       struct prof_exchange_result *result, struct prof_error *err);

/* prof_exchange_progress; `user` is the struct. */
static bool exchange_show(void *user, uint64_t done)
{
    struct exchange_shown *shown = user;
    if (!shown->quiet && cli_progress_due(&shown->progress))
        cli_show_progress(shown->command, "%s %s", prof_count((int64_t)done).text, shown->what);
    return !cli_interrupted();
}

/* False, and an error is printed, without a name, and for standard output: these files are not
 * written in order. */
static bool names_output(const struct cli_command *command, const char *output)
{
    bool is_file = output && strcmp(output, "-") != 0;
    if (!is_file)
        cli_say(command->name, output ? "-: this is not written in order: give a name"
                                      : "no output file: name the file to write with -o");
    return is_file;
}

static void exchange_begin(struct exchange_shown *shown, const char *command, const char *what,
                           bool quiet)
{
    *shown = (struct exchange_shown){.command = command, .what = what, .quiet = quiet};
    cli_catch_interrupts();
}

/* Wipe the progress; say why nothing was written to `output`, if so. Returns the exit status. */
static int exchange_end(const struct exchange_shown *shown, const char *output,
                        enum prof_status status)
{
    cli_wipe_progress();
    if (cli_interrupted() && status) { /* nothing is left behind: end by the signal */
        cli_say(shown->command, "interrupted: %s was not written", output);
        raise(cli_interrupted());
        return CLI_FAILED;
    }
    return (int)cli_exit_status(status);
}

/* Make the call; say what became of it. `what` as in "1,234 <what> written to OUT". Returns the
 * exit status: CLI_USAGE when the input or the name of the output is to blame. */
static int exchange_run(const struct cli_command *command, exchange_call *call, const char *path,
                        const char *output, bool force, bool quiet, const char *what,
                        struct prof_error *err)
{
    struct exchange_shown shown;
    struct prof_exchange_options options = {
        .overwrite = force, .progress = exchange_show, .user = &shown};
    struct prof_exchange_result result;
    char one[16];
    snprintf(one, sizeof one, "%.*s", (int)strlen(what) - 1, what);
    exchange_begin(&shown, command->name, what, quiet);
    enum prof_status status = call(path, output, &options, &result, err);
    int exit_status = exchange_end(&shown, output, status);
    if (exit_status)
        return exit_status;
    for (int i = 0; !quiet && i < result.note_count; i++)
        cli_say(command->name, "note: %s", result.notes[i]);
    if (!quiet)
        cli_say(command->name, "wrote %s: %s", output,
                prof_counted((int64_t)result.rows, one, what).text);
    prof_exchange_result_free(&result);
    return CLI_OK;
}

/* ---- export ---------------------------------------------------------------------------------- */

struct export_options {
    unsigned shape;
    const char *output;
    bool force, quiet;
};

static const char *const shapes[] = {"nsys", "parquet", NULL};
static exchange_call *const calls[] = {prof_export_nsys, prof_export_parquet};

static const struct cli_option export_options[] = {
    CLI_OPTION(export_options, shape, "format", 0, CHOICE, "NAME",
               "nsys: the SQLite file that `nsys export` makes, schema 3.25; parquet: a folder "
               "with a file for each table, for DuckDB, Spark and others",
               .words = shapes, .fallback = "nsys"),
    CLI_OPTION(export_options, output, "output", 'o', FILE, "OUT",
               "file or folder to write; instead of the operand OUT"),
    CLI_FORCE_ROW(export_options, force,
                  "replace the file, or the folder of Parquet files, if it exists"),
    CLI_QUIET_ROW(export_options, quiet, "print no notes, only errors"),
    {0},
};

static const struct cli_text_row export_examples[] = {
    {"perfkit export train.sqlite --format nsys train-nsys.sqlite",
     "For scripts made for Nsight Systems."},
    {"perfkit export train.sqlite --format parquet train.parquet", "For queries over many runs."},
    {"nsys stats --report cuda_gpu_kern_sum train-nsys.sqlite", "Its own reports on it."},
    {0},
};

static int export_run(const struct cli_command *command, void *given,
                      const struct cli_operands *operands, struct prof_error *err)
{
    const struct export_options *args = given;
    char newest[PATH_MAX];
    const char *path = operands->values[0];
    if (args->output && operands->count > 1)
        return cli_fail(CLI_USAGE, command->name, "OUT is named twice: give it once");
    const char *output = args->output || !path ? args->output : operands->values[1];
    if (!names_output(command, output))
        return CLI_USAGE;
    if (!path && is_capture_file(AT_FDCWD, output))
        return cli_fail(CLI_USAGE, command->name,
                        "no output file, and %s is a capture: name the file to write as well",
                        output);
    if (!path) {
        if (newest_capture(".", newest, err))
            return CLI_USAGE;
        path = newest;
    }
    prof_store_settle(path);
    return exchange_run(command, calls[args->shape], path, output, args->force, args->quiet, "rows",
                        err);
}

const struct cli_command export_command = {
    .name = "export",
    .summary = "write a capture in the shape of another tool's files",
    .operands = "[FILE [OUT]]",
    .text = "Writes what a capture holds into a file, or a folder of files, of its own that other "
            "tools can open. Without FILE: the newest capture of the current folder, into the OUT "
            "of -o. What the format cannot hold is left out, with a note. Traces and profiles for "
            "viewers are made by `perfkit report`.",
    .options = export_options,
    CLI_OPTIONS_ARE(export_options, 0),
    .examples = export_examples,
    .operand = CLI_FILE,
    .most = 2,
    .run = export_run,
};

/* ---- import ---------------------------------------------------------------------------------- */

struct import_options {
    const char *output;
    bool force, quiet;
};

static const struct cli_option import_options[] = {
    CLI_OPTION(import_options, output, "output", 'o', FILE, "OUT", "capture to write",
               .fallback = "NAME.sqlite, or NAME-perfkit.sqlite, in this folder"),
    CLI_FORCE_ROW(import_options, force, "replace the file if it exists"),
    CLI_QUIET_ROW(import_options, quiet, "print no notes, only errors"),
    {0},
};

static const struct cli_text_row import_examples[] = {
    {"perfkit import train.sqlite",
     "Into train-perfkit.sqlite, from `nsys export --type sqlite`, schema 3.20 to 3.28."},
    {"perfkit import results.db -o amd.sqlite", "A run of rocprofv3 on an AMD GPU."},
    {"perfkit import rank0.pt.trace.json.gz -o rank0.sqlite",
     "From torch.profiler, or any Chrome trace."},
    {0},
};

/* "a/rank0.pt.trace.json.gz": rank0.sqlite in this folder; of a file that ends so already
 * rank0-perfkit.sqlite. False: there is no such name. */
static bool imported_name(const char *path, char out[PATH_MAX])
{
    static const char *const ends[] = {".gz",    ".json", ".sqlite",  ".db",
                                       ".trace", ".pt",   ".nsys-rep"};
    const char *name = prof_file_name(path);
    size_t length = strlen(name);
    bool same = prof_ends_with(name, ".sqlite");
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t tail = strlen(ends[i]);
        if (length > tail && !memcmp(name + length - tail, ends[i], tail))
            length -= tail;
    }
    int wrote = snprintf(out, PATH_MAX, "%s%.*s%s.sqlite", *name == '-' ? "./" : "", (int)length,
                         name, same ? "-perfkit" : "");
    return length && wrote > 0 && wrote < PATH_MAX;
}

/* Has `nsys` make an SQLite export of its report, where it is installed; "" = it did not. */
static void export_by_nsys(const struct cli_command *command, const char *report,
                           const char *output, char made[PATH_MAX])
{
    made[0] = '\0';
    if (!prof_ends_with(report, ".nsys-rep") || access(report, R_OK) != 0 ||
        snprintf(made, PATH_MAX, "%s.nsys-export.sqlite", output) >= PATH_MAX)
        return;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execlp("nsys", "nsys", "export", "--type", "sqlite", "--force-overwrite", "true",
               "--output", made, report, (char *)NULL);
        _exit(127);
    }
    int status = pid > 0 ? process_wait(pid) : -1;
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    if (pid > 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 127))
        cli_say(command->name, "nsys export could not read %s", report);
    unlink(made);
    made[0] = '\0';
}

static int import_run(const struct cli_command *command, void *given,
                      const struct cli_operands *operands, struct prof_error *err)
{
    const struct import_options *args = given;
    const char *output = args->output;
    char own[PATH_MAX];
    if (!output && imported_name(operands->values[0], own))
        output = own;
    if (!names_output(command, output))
        return CLI_USAGE;
    char made[PATH_MAX];
    export_by_nsys(command, operands->values[0], output, made);
    int status = exchange_run(command, prof_import, *made ? made : operands->values[0], output,
                              args->force, args->quiet, "events", err);
    if (*made)
        unlink(made);
    return status;
}

const struct cli_command import_command = {
    .name = "import",
    .summary = "make a capture of another tool's file",
    .operands = "FILE",
    .text = "Reads an SQLite export of Nsight Systems (with nsys installed a .nsys-rep too), a "
            "rocpd file of AMD's rocprofv3 or a Chrome trace (of torch.profiler or any other, "
            ".json or .json.gz) and writes a capture. Reports and findings work on it as on "
            "one that was recorded. What the source does not contain is not available, and the "
            "trust block says so.",
    .options = import_options,
    CLI_OPTIONS_ARE(import_options, 0),
    .examples = import_examples,
    .operand = CLI_FILE,
    .least = 1,
    .most = 1,
    .run = import_run,
};

/* ---- merge ----------------------------------------------------------------------------------- */

/* perfkit merge: the captures of a distributed run as one. Says whose clocks were compared how, and
 * with which error: times of two hosts are worth no more than that. */

#define MOST_LINES 8 /* of files, before the rest is only counted */

struct merge_options {
    const char *output;
    bool summary, subset, force, quiet;
};

static const struct cli_option merge_options[] = {
    CLI_OPTION(merge_options, output, "output", 'o', FILE, "OUT", "capture to write (needed)"),
    CLI_OPTION(merge_options, summary, "summary", 's', FLAG, NULL,
               "no events: only what each kernel took in each second, processes and the trust "
               "block; for very many ranks"),
    CLI_OPTION(merge_options, subset, "subset", 0, FLAG, NULL,
               "ranks that none of the files has are left out on purpose"),
    CLI_FORCE_ROW(merge_options, force, "replace the file if it exists"),
    CLI_QUIET_ROW(merge_options, quiet, "print no summary, only errors and what is missing"),
    {0},
};

static const struct cli_text_row merge_examples[] = {
    {"perfkit merge train-*.sqlite -o train.sqlite", "All ranks of a run."},
    {"perfkit merge --subset train-[0-7].sqlite -o node0.sqlite", "Those of one node."},
    {"perfkit merge --summary train-*.sqlite -o train.sqlite", "Totals of thousands of ranks."},
    {0},
};

static const struct cli_text_row merge_statuses[] = {
    {"0", "Everything is in OUT."},
    {"1", "OUT could not be written; nothing is there."},
    {"2", "Wrong usage, or a file that is no capture, or not of a version that this perfkit reads; "
          "nothing was written."},
    {"3", "OUT was written and is incomplete: a rank is in no file, or a file was damaged, cut "
          "short or not finished. Standard error and the capture's trust block name it."},
    {0},
};

/* A thousand files at once need a thousand descriptors. */
static void open_many(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void print_clock_offset(const char *name, const struct prof_merge_part *part)
{
    char drift[48] = "";
    if (part->drift != 0)
        snprintf(drift, sizeof drift, " and %+.3f us/s", part->drift / 1e3);
    const char *sign = part->offset_ns < 0 ? "-" : "+";
    struct prof_text offset = prof_duration(fabs((double)part->offset_ns));
    if (part->clock == PROF_MERGE_COLLECTIVES)
        cli_say(name, "%s: clock %s%s%s, half of %s collectives within %s", part->path, sign,
                offset.text, drift, prof_count((int64_t)part->compared).text,
                prof_duration_ns(part->error_ns).text);
    else if (part->clock == PROF_MERGE_REALTIME)
        cli_say(name, "%s: clock %s%s by the wall clock, error not known", part->path, sign,
                offset.text);
    else
        cli_say(name, "%s: clock not known, begins with the first file", part->path);
}

/* Files of one host were compared once, and follow each other. */
static bool is_same_host(const struct prof_merge_part *a, const struct prof_merge_part *b)
{
    return a && a->clock == b->clock && a->host && b->host && !strcmp(a->host, b->host) &&
           a->compared == b->compared && a->error_ns == b->error_ns;
}

/* Files on the first one's clock need no words. */
static void print_clocks(const char *name, const struct prof_merge_result *result)
{
    size_t same = 0, others = 0, hosts = 0;
    int64_t worst = -1;
    const struct prof_merge_part *before = NULL;
    for (size_t i = 0; i < result->count; i++) {
        const struct prof_merge_part *part = &result->parts[i];
        bool exact = part->clock == PROF_MERGE_SAME;
        same += exact && !part->left_out;
        if (exact || part->left_out)
            continue;
        others++;
        if (part->clock == PROF_MERGE_COLLECTIVES && part->error_ns > worst)
            worst = part->error_ns;
        if (!is_same_host(before, part) && hosts++ < MOST_LINES)
            print_clock_offset(name, part);
        before = part;
    }
    if (hosts > MOST_LINES)
        cli_say(name, "and so on for %s: table merged_part",
                prof_counted((int64_t)(hosts - MOST_LINES), "host", "hosts").text);
    if (!others)
        cli_say(name, "clocks: %zu file%s of one clock: exact", same, same == 1 ? "" : "s");
    else if (worst >= 0)
        cli_say(name,
                "clocks: exact for %zu of %zu files, within %s for the worst of those compared by "
                "collectives",
                same, same + others, prof_duration_ns(worst).text);
}

static void print_missing_parts(const char *name, const struct prof_merge_result *result)
{
    size_t said = 0;
    for (size_t i = 0; i < result->count; i++) {
        const struct prof_merge_part *part = &result->parts[i];
        if (part->missing && said++ < MOST_LINES)
            cli_say(name, "%s: %s%s", part->path, part->left_out ? "left out: " : "",
                    part->missing);
    }
    if (said > MOST_LINES)
        cli_say(name, "and so on for %s",
                prof_counted((int64_t)(said - MOST_LINES), "file", "files").text);
    for (int i = 0; i < result->note_count; i++)
        cli_say(name, "note: %s", result->notes[i]);
}

/* "; AT RISK": that of the worst part. "" when OUT is no file that can be read back. */
static const char *merged_trust_status(const char *output, char status[64])
{
    CLI_CLOSED struct prof_capture *capture = NULL;
    struct prof_trust trust;
    status[0] = '\0';
    if (!prof_open(output, &capture, NULL) && !prof_trust(capture, &trust, NULL)) {
        snprintf(status, 64, "; %s", prof_trust_status_words(trust.status));
        prof_trust_free(&trust);
    }
    return status;
}

static void print_merge_result(const char *name, const struct prof_merge_result *result,
                               const char *output)
{
    size_t files = 0;
    char status[64];
    for (size_t i = 0; i < result->count; i++)
        files += !result->parts[i].left_out;
    cli_say(name, "wrote %s: %s of %s%s", output,
            prof_counted((int64_t)result->rows, "event", "events").text,
            prof_counted((int64_t)files, "file", "files").text,
            merged_trust_status(output, status));
}

static int merge_run(const struct cli_command *command, void *given,
                     const struct cli_operands *operands, struct prof_error *err)
{
    const struct merge_options *args = given;
    struct prof_merge_result result;
    struct exchange_shown shown;
    if (!names_output(command, args->output))
        return CLI_USAGE;
    open_many();
    exchange_begin(&shown, command->name, "events", args->quiet);
    struct prof_merge_options options = {
        .file = {.overwrite = args->force, .progress = exchange_show, .user = &shown},
        .summary = args->summary,
        .subset = args->subset,
    };
    enum prof_status status =
        prof_merge((const char *const *)operands->values, (size_t)operands->count, args->output,
                   &options, &result, err);
    int exit_status = exchange_end(&shown, args->output, status);
    if (exit_status)
        return exit_status;
    bool complete = result.complete;
    print_missing_parts(command->name, &result);
    if (!args->quiet) {
        print_clocks(command->name, &result);
        print_merge_result(command->name, &result, args->output);
    }
    prof_merge_result_free(&result);
    return complete ? CLI_OK : CLI_REFUSED;
}

const struct cli_command merge_command = {
    .name = "merge",
    .summary = "make one capture of those of a distributed run",
    .operands = "FILE... -o OUT",
    .text = "Reads the captures that the processes or hosts of one run wrote and makes one of "
            "them, on which everything works as on any other. Times are brought to one clock: "
            "exactly for files of one host, by the ends of collectives between hosts, else by the "
            "wall clock; the error is printed and kept (table merged_part).\n\n"
            "A file that is cut short is left out, one that is damaged is read as far as it goes, "
            "one that is given twice counts once, a rank that no file has is named.",
    .options = merge_options,
    CLI_OPTIONS_ARE(merge_options, 0),
    .examples = merge_examples,
    .statuses = merge_statuses,
    .operand = CLI_FILE,
    .least = 1,
    .most = UINT_MAX,
    .run = merge_run,
};
