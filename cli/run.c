/* perfkit run: records a program. This file holds the options and the order of things; the steps
 * are in run_environment.c, process.c, spool_folder.c and run_output.c, and what can be recorded
 * beside calls and device work is a row of run_features. Two rules hold for every error here:
 * before the program starts, anything wrong ends perfkit with 125 and leaves nothing behind; once
 * it runs, no failure of perfkit may touch it, and perfkit ends the way it ended. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/capture_end.h"
#include "cli/command.h"
#include "cli/installed.h"
#include "cli/output_name.h"
#include "cli/process.h"
#include "cli/run.h"
#include "libprof/base/clock.h"

#define DEFAULT_SPOOL_LIMIT (1ull << 30) /* as the collector's own */
#define LEAST_SPOOL_LIMIT (1ull << 20)
#define WANTED_ROOM (256ull << 20) /* free space that makes /dev/shm good for the spool */

static const char *const wait_words[] = {"all", "primary", NULL};

const struct run_feature *const run_features[] = {
    &run_scope,  &run_overhead, &run_budget, &run_stacks,  &run_pytorch, &run_counters,
    &run_stalls, &run_cpu,      &run_memory, &run_network, &run_ring,    NULL};

static const struct cli_option run_options[] = {
    CLI_OPTION(run_options, output, "output", 'o', FILE, "FILE",
               "capture file to write; in its name, " OUTPUT_PATTERNS " are replaced",
               .fallback = "PROGRAM.sqlite, then PROGRAM-2.sqlite, ...", .group = "Output"),
    CLI_FORCE_ROW(run_options, force, "overwrite the capture file if it exists"),
    CLI_QUIET_ROW(run_options, quiet, "print no summary at the end, only errors"),
    CLI_OPTION(run_options, trace, "trace", 't', WORDS, "LIST",
               "sources to record, separated by commas: cuda, nvtx, opencl",
               .fallback = "cuda,nvtx,opencl", .group = "What is recorded", .words = run_domains),
    CLI_OPTION(
        run_options, scope.kernel, "kernel", 'k', TEXT, "REGEX",
        "keep only kernels whose readable name matches the POSIX extended regular expression "
        "somewhere; the others are counted"),
    CLI_OPTION(run_options, scope.graph, "cuda-graph", 0, CHOICE, "WHAT",
               "record each `node` of a CUDA graph, or each launch of a `graph` as a whole, which "
               "costs less",
               .fallback = "node", .words = scope_graph),
    CLI_OPTION(
        run_options, scope.managed, "cuda-managed", 0, CHOICE, "WHAT",
        "of CUDA's unified memory: `moves` between host and devices, page `faults` too, which "
        "costs the program time, or `off`",
        .fallback = "moves", .words = scope_managed),
    CLI_OPTION(
        run_options, scope.cupti, "cupti", 0, CHOICE, "HOW",
        "`own` CUPTI, `yield` it to a program that profiles itself (NVTX is still recorded), "
        "or leave it `off`",
        .fallback = "own", .words = scope_cupti),
    CLI_OPTION(run_options, scope.dump, "cupti-dump", 0, FOLDER, "DIR",
               "also write CUPTI's buffers there as they come, for bug reports"),
    CLI_OPTION(
        run_options, stacks.kinds, "stacks", 0, TEXT, "KIND[:N],...",
        "take the call stack of the program where it makes calls of these kinds: launch (all "
        "that gives the device work or makes code for it), alloc, sync (waits); all three "
        "without a list; with :N of every Nth call of a thread only",
        .implied = STACKS_ALL),
    CLI_OPTION(run_options, stacks.depth, "stack-depth", 0, COUNT, "FRAMES",
               "most callers that a stack keeps, the innermost ones; up to 250", .fallback = "128",
               .most = STACKS_MOST_DEPTH),
    CLI_OPTION(
        run_options, pytorch, "pytorch", 0, WORDS, "LIST",
        "name PyTorch's operators (ops) and modules (modules) by NVTX ranges, without a change "
        "to the program; both without a list; shapes: operators with the sizes of their inputs, "
        "for their FLOP, which costs more",
        .implied = PYTORCH_ALL, .words = pytorch_words),
    CLI_OPTION(
        run_options, counters.set, "counters", 0, TEXT, "SET",
        "also sample hardware counters of NVIDIA GPUs: roofline (bytes through each level of "
        "memory, activity of each pipe) or memory (the bytes only, which costs less to read); "
        "or count FLOP and bytes of single launches: exact:KERNEL, those of kernels whose name "
        "matches the pattern"),
    CLI_OPTION(run_options, counters.interval_ns, "counters-interval", 0, TIME, "TIME",
               "time between two samples within a burst", .fallback = "20us",
               .most = COUNTERS_MOST_INTERVAL_NS),
    CLI_OPTION(run_options, counters.duty, "counters-duty", 0, TEXT, "PERCENT",
               "share of the time that is sampled", .fallback = "what costs a tenth of a core"),
    CLI_OPTION(run_options, stalls, "stalls", 0, COUNT, "PERIOD",
               "also sample which instructions of the kernels wait, and for what, every PERIOD "
               "cycles (a power of two from 32 up; " STALLS_PERIOD " without a number)",
               .implied = STALLS_PERIOD, .most = STALLS_MOST_PERIOD),
    CLI_OPTION(
        run_options, cpu.hz, "cpu-sample", 0, COUNT, "HZ",
        "also sample where the program's threads run, HZ times a second of each busy processor "
        "(199 without a number), and where and how long they block",
        .implied = "199", .most = CPU_MOST_HZ),
    CLI_OPTION(run_options, cpu.stack, "cpu-sample-stack", 0, CHOICE, "HOW",
               "callers by unwind tables and a copy of the stack (`dwarf`), or by frame pointers "
               "(`fp`), which costs less and misses the callers of code that keeps none",
               .fallback = "dwarf", .words = cpu_stack_words),
    CLI_OPTION(run_options, cpu.blocked, "cpu-sample-blocked", 0, CHOICE, "WHAT",
               "`off` leaves out the time in which threads do not run: for programs that block and "
               "wake very often",
               .fallback = "on", .words = cpu_blocked_words),
    CLI_OPTION(
        run_options, overhead, "overhead", 0, TEXT, "HOW",
        "how much recording slows the program: `estimate` it, in reports, from counted events and "
        "what `perfkit device --measure` found that recording one costs; `measure` it in short "
        "pauses at random times, about 5 % of the run, in which only the begin and end of "
        "iterations are recorded (CUDA's first pause begins with the program); `off`. Or a budget "
        "in per cent, as 2%, that it aims to stay "
        "below: only so many iterations are recorded, and totals are estimated from them",
        .fallback = "estimate", .words = overhead_words),
    CLI_OPTION(run_options, wait, "wait", 'w', CHOICE, "WHO",
               "end when `all` processes of the program have ended, or when the `primary` one, the "
               "command itself, has",
               .fallback = "all", .words = wait_words),
    CLI_OPTION(run_options, no_preload, "no-preload", 0, FLAG, NULL,
               "do not use LD_PRELOAD; how processes end is then known less exactly"),
    CLI_OPTION(run_options, scope.delay_ns, "delay", 0, TIME, "TIME",
               "begin TIME after the program's start (seconds, or 500ms, 2s, 1m)",
               .group = "When it is recorded"),
    CLI_OPTION(run_options, scope.duration_ns, "duration", 0, TIME, "TIME",
               "stop recording TIME after it began; the program runs on"),
    CLI_OPTION(
        run_options, scope.range, "capture-range", 0, TEXT, "RANGE",
        "record only inside every instance of a range: cudaProfilerApi (between "
        "cudaProfilerStart and cudaProfilerStop) or nvtx:NAME[@DOMAIN] (the NVTX range of "
        "that name; in the default domain without @DOMAIN, in any with @*; a name that holds "
        "an @ itself needs one more at its end)"),
    CLI_OPTION(run_options, scope.dormant, "dormant", 0, FLAG, NULL,
               "be ready but record nothing until `perfkit ctl start`"),
    CLI_OPTION(run_options, ring.ns, "ring", 0, TIME, "TIME",
               "keep only the last TIME of the run, and sums of the whole run; for programs that "
               "run for days",
               .most = 3600000000000u, .group = "Flight recorder"),
    CLI_OPTION(
        run_options, ring.keep, "ring-keep", 0, WORDS, "LIST",
        "when to copy what the ring holds, besides `perfkit ctl keep` and SIGUSR2 to perfkit: "
        "after a slow iteration, a late collective, a failed allocation, or the abnormal end of a "
        "process",
        .fallback = "slow,collective,allocation,end", .words = ring_words),
    CLI_OPTION(run_options, ring.slow, "ring-slow", 0, TEXT, "N[:K]",
               "an iteration or collective is slow when it takes more than N times the median of "
               "those before it, and is K standard deviations above it",
               .fallback = "3:8, and at least 25 ms above the median"),
    CLI_OPTION(run_options, ring.iteration, "iteration", 'i', TEXT, "RANGE[@DOMAIN]",
               "the NVTX range that is one iteration",
               .fallback = "those called step, iteration, batch, ..."),
    CLI_OPTION(run_options, ring.limit, "ring-limit", 0, SIZE, "SIZE",
               "most bytes that the copies may have together; above it no more are kept",
               .fallback = "4G"),
    CLI_OPTION(run_options, ring.rotate, "ring-rotate", 0, FLAG, NULL,
               "above --ring-limit, delete the oldest copies of this run instead"),
    CLI_OPTION(run_options, spool_limit, "spool-limit", 0, SIZE, "SIZE",
               "most memory that one process may have waiting to be read; above it records are "
               "dropped and counted",
               .fallback = "1G", .group = "Spool"),
    CLI_OPTION(run_options, spool_dir, "spool-dir", 0, FOLDER, "DIR",
               "folder in which the private spool folder is made",
               .fallback = "/dev/shm, TMPDIR or /tmp, the first with room"),
    {0},
};

static const struct cli_text_row run_statuses[] = {
    {"0-255", "As the program: its exit status; if a signal ended it, perfkit ends by the same "
              "signal."},
    {"125", "perfkit itself failed before the program was started; standard error says why."},
    {"126", "The command was found but cannot be executed."},
    {"127", "The command was not found."},
    {0},
};

static const struct cli_text_row run_examples[] = {
    {"perfkit run -- ./train --steps 100", "Record into train.sqlite."},
    {"perfkit run -o before.sqlite -- python3 infer.py", "Choose the name of the capture."},
    {"srun perfkit run -o train-%r.sqlite -- ./train",
     "One capture a rank; `perfkit merge` joins them."},
    {"perfkit run --trace=nvtx,opencl --wait=primary -- ./server",
     "Record two sources, and do not wait for daemons."},
    {"perfkit run --delay=30s --duration=5s -- ./train", "Record five seconds in the middle."},
    {"perfkit run --counters=roofline -- ./train", "Sample hardware counters too."},
    {"perfkit run --stalls -- ./train", "See at which lines the kernels wait, and for what."},
    {"perfkit run --stacks -- ./train", "See which line launches, allocates and waits."},
    {"perfkit run --pytorch --stacks -- python3 train.py",
     "Name PyTorch's operators and modules, and the lines that call them."},
    {"perfkit run --cpu-sample -- ./train", "See what the host does while the GPU waits."},
    {"perfkit run --capture-range=nvtx:step -- ./train", "Record the ranges called step."},
    {"perfkit run --ring=60s -- ./server",
     "Keep the last minute, and a copy when an iteration is slow."},
    {0},
};

static const struct cli_text_row run_variables[] = {
    {"PERFKIT_COLLECTOR", "Path of the collector library to use instead of the installed one."},
    {"PERFKIT_CUPTI", "Path of the libcupti.so to use, when it is not where it is looked for."},
    {"TMPDIR", "Folder for the spool when /dev/shm is short of room."},
    {0},
};

/* The command line as the capture row keeps it. Free it. */
static char *quoted_command(char *const *argv)
{
    size_t room = 1;
    for (size_t i = 0; argv[i]; i++)
        room += strlen(argv[i]) * 4 + 16;
    char *text = malloc(room);
    if (!text)
        return NULL;
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; argv[i]; i++) {
        if (i)
            text[used++] = ' ';
        shell_quoted(argv[i], text + used, room - used);
        used += strlen(text + used);
    }
    return text;
}

static enum prof_status open_run_ingest(struct run *run, const struct prof_moment *start,
                                        struct prof_error *err)
{
    PROF_FREED char *command = quoted_command(run->argv);
    PROF_FREED char *directory = getcwd(NULL, 0);
    struct prof_ingest_about about = {
        .command = command,
        .directory = directory,
        .trace = run->options.trace,
        .kernel_filter = run->options.scope.kernel,
        .start_mono_ns = start->mono_ns,
        .start_realtime_ns = start->realtime_ns,
        .start_raw_ns = start->raw_ns,
        .ring = run->options.ring.ns ? &run->ring.ring : NULL,
    };
    enum prof_status status =
        prof_ingest_open(run->store, run->spool.path, &about, &run->ingest, err);
    for (size_t i = 0; !status && i < run->environment.note_count; i++)
        status =
            prof_ingest_note(run->ingest, PROF_HEALTH_collector_note,
                             run->environment.notes[i].item, run->environment.notes[i].text, err);
    char note[1024];
    for (size_t i = 0; !status && run_features[i]; i++) {
        const struct run_feature *feature = run_features[i];
        if (feature->note && feature->note(run, note, sizeof note))
            status =
                prof_ingest_note(run->ingest, PROF_HEALTH_collector_note, feature->name, note, err);
    }
    return status;
}

/* Options of the features for the collector. False: they do not fit. */
static bool hand_over_options(const struct run *run, char *text, size_t size)
{
    bool fits = true;
    text[0] = '\0';
    for (size_t i = 0; fits && run_features[i]; i++) {
        size_t used = strlen(text);
        if (run_features[i]->hand_over)
            fits = run_features[i]->hand_over(run, text + used, size - used);
    }
    return fits;
}

/* The spool folder names the capture before that appears: who finds the file finds out that a
 * living perfkit writes it. */
static enum prof_status make_capture(struct run *run, const char *subject, struct prof_error *err)
{
    PROF_TRY(output_create(&run->output, run->options.output, subject, run->options.force,
                           run->spool.path, &run->store, err));
    struct prof_moment start = prof_moment_now();
    enum prof_status status = spool_folder_write_capture(&run->spool, run->output.live,
                                                         run->output.final, start.mono_ns, err);
    status = status ?: output_suggest_place(open_run_ingest(run, &start, err), err);
    run->output.made |= prof_store_appeared(run->store);
    if (!status)
        return PROF_OK;
    prof_ingest_close(run->ingest);
    prof_store_close(run->store);
    run->ingest = NULL;
    run->store = NULL;
    output_discard(&run->output);
    return status;
}

/* Everything that can fail, before anything is started. */
static enum prof_status prepare_run(struct run *run, struct prof_error *err)
{
    const struct run_options *options = &run->options;
    const char *program = run->argv[0];
    char subject[PATH_MAX];
    output_subject(run->argv, subject);
    PROF_TRY(collector_path(run->collector, err));
    /* First only looked at: the commonest mistakes cost no folder and no file. */
    PROF_TRY(output_choose(&run->output, options->output, subject, options->force, err));
    PROF_TRY(spool_folder_make(&run->spool, options->spool_dir, WANTED_ROOM, err));
    PROF_TRY(prof_ingest_prepare(run->spool.path, err));
    PROF_TRY(scope_prepare(&run->scope, &options->scope, run->spool.path, err));
    elf_examine(program, &run->target);
    spool_folder_plain_collector(&run->spool, run->collector);
    char handed_over[COLLECTOR_OPTIONS];
    bool fits = hand_over_options(run, handed_over, sizeof handed_over);
    struct run_injection injection = {
        .collector = run->collector,
        .spool = run->spool.path,
        .trace = options->trace,
        .spool_limit = options->spool_limit,
        .preload = !options->no_preload,
        .target = &run->target,
        .options = handed_over,
        .pytorch = options->pytorch != NULL,
    };
    if (!fits)
        errno = E2BIG;
    if (!fits || !environment_build(&run->environment, &injection))
        return errno == E2BIG
                   ? prof_fail(err, PROF_INVALID,
                               "the paths in the options are too long together: give shorter ones")
                   : prof_out_of_memory(err);
    enum prof_status status;
    int turn = output_take_turn(&run->output);
    do /* a name that was taken meanwhile: the next automatic one; with --force a look who has it */
        status = make_capture(run, subject, err);
    while (status == PROF_EXISTS && (!options->output || options->force));
    if (turn >= 0)
        close(turn);
    if (!status)
        scope_ready(&run->scope);
    return status;
}

/* Undo prepare: the folder looks as if perfkit had not been there. */
static void undo(struct run *run)
{
    for (size_t i = 0; run_features[i]; i++) {
        if (run_features[i]->stop)
            run_features[i]->stop(run, false);
    }
    prof_ingest_close(run->ingest);
    prof_store_close(run->store);
    output_discard(&run->output);
    scope_undo(&run->scope);
    spool_folder_remove(&run->spool);
    environment_free(&run->environment);
    inherited_free(&run->inherited);
}

static int cannot_start(struct run *run, int error, int in_exec)
{
    const char *program = run->argv[0];
    if (!in_exec)
        return cli_fail(CLI_RUN_FAILED, run->name,
                        "cannot start a process: %s: try again, or raise the limit (ulimit -%c)",
                        strerror(error), error == EMFILE ? 'n' : 'u');
    if (error == ENOENT && !run->target.found) {
        bool is_number = *program && program[strspn(program, "0123456789")] == '\0';
        return cli_fail(CLI_RUN_NOT_FOUND, run->name, "%s: command not found: check the spelling%s",
                        program,
                        is_number ? "; of an option with = it is the value (--cpu-sample=99)"
                        : strchr(program, '/') ? ""
                                               : ", or give its path (./NAME)");
    }
    if (error == ENOENT)
        return cli_fail(CLI_RUN_NOT_FOUND, run->name,
                        "%s: its interpreter or loader is not there: look at its first line "
                        "(#!), or install what it was built for",
                        program);
    struct stat info;
    bool folder = stat(program, &info) == 0 && S_ISDIR(info.st_mode);
    return cli_fail(CLI_RUN_CANNOT_EXECUTE, run->name, "%s: cannot be executed: %s: %s", program,
                    folder ? "it is a folder" : strerror(error),
                    folder            ? "give a program inside it"
                    : error == EACCES ? "make it executable (chmod +x), if it is a program"
                                      : "is it a program for this machine?");
}

/* Options and operands before anything is made. Returns CLI_OK, or the status to end with; what is
 * wrong was said. */
static int check_run_options(struct run *run, char **argv)
{
    struct run_options *options = &run->options;
    struct prof_error err = {0};
    if (options->spool_limit < LEAST_SPOOL_LIMIT)
        return cli_fail(CLI_RUN_FAILED, run->name,
                        "--spool-limit is below 1M: a process needs at least that");
    for (size_t i = 0; run_features[i]; i++) {
        if (run_features[i]->check && !run_features[i]->check(run))
            return CLI_RUN_FAILED;
    }
    run->argv = argv;
    if (!*argv[0])
        return cli_fail(CLI_RUN_NOT_FOUND, run->name,
                        "the command is empty: give the name of a program");
    if (options->output && output_name(options->output, run->output_path, &err))
        return cli_fail(CLI_RUN_FAILED, run->name, "%s", err.message);
    run->options.output = options->output ? run->output_path : NULL;
    return CLI_OK;
}

static int run_run(const struct cli_command *command, void *given,
                   const struct cli_operands *operands, struct prof_error *err)
{
    struct run run = {
        .name = command->name,
        .options = *(const struct run_options *)given,
        .spool = {.owner_fd = -1},
        .scope = {.control = {.fd = -1}},
    };
    int status = check_run_options(&run, operands->values);
    if (status)
        return status;
    inherited_list(&run.inherited);
    signals_install();
    if (prepare_run(&run, err)) {
        undo(&run);
        return CLI_RUN_FAILED;
    }
    for (size_t i = 0; run_features[i]; i++) {
        if (run_features[i]->start)
            run_features[i]->start(&run);
    }
    int in_exec, early = run.counters.pid ? signals_pending_end() : 0; /* that took seconds */
    if (early) {
        undo(&run);
        signals_end_as(early);
    }
    struct spawn_hold hold = {cpu_attach, &run};
    int error = spawn_target(run.argv, run.environment.variables, run.options.cpu.hz ? &hold : NULL,
                             &run.scope.control.page->target, &run.pid, &in_exec);
    if (error) {
        status = cannot_start(&run, error, in_exec);
        undo(&run);
        return status;
    }
    for (size_t i = 0; run_features[i]; i++) {
        if (run_features[i]->started)
            run_features[i]->started(&run);
    }
    spool_folder_note_in_outer(getenv("PERFKIT_DIR"), run.output.final);
    output_started(&run.output);
    inherited_let_go(&run.inherited);
    signals_release(run.pid);
    environment_watch(&run.environment, run.collector);

    run_record(&run);
    run_finish(&run, run_wait_for_others(&run));
    if (WIFSIGNALED(run.wait_status))
        signals_end_as(run.wait_status);
    return WEXITSTATUS(run.wait_status);
}

const struct cli_command run_command = {
    .name = "run",
    .summary = "record a program into a capture file",
    .operands = "[--] COMMAND [ARG...]",
    .text =
        "Runs the command and records what it and the processes it starts do on the GPU: "
        "kernels, memcpys, memsets, allocations, API calls, NVTX ranges. The program behaves as "
        "without "
        "perfkit: output, exit status, signals and environment are its own.\n\n"
        "Without further options everything is recorded, from start to end. What begins outside "
        "the windows of --delay, --duration, --capture-range, --dormant and `perfkit ctl` is "
        "not; what began inside is recorded to its end.\n\n"
        "The capture is one SQLite file; it can be read while it is written. If perfkit is "
        "killed, `perfkit recover` finishes it from the spool folder.",
    .options = run_options,
    CLI_OPTIONS_ARE(run_options, .spool_limit = DEFAULT_SPOOL_LIMIT,
                    .ring = {.ns = RING_NOT_GIVEN, .limit = RING_DEFAULT_LIMIT},
                    .scope = {.duration_ns = SCOPE_ALWAYS},
                    .counters = {.interval_ns = COUNTERS_OWN_INTERVAL}),
    .examples = run_examples,
    .statuses = run_statuses,
    .variables = run_variables,
    .operand = CLI_TEXT,
    .least = 1,
    .most = UINT_MAX,
    .usage_status = CLI_RUN_FAILED,
    .verbatim = true,
    .run = run_run,
};
