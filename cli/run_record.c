/* While the program runs and after: records become rows, the sources that perfkit samples itself
 * are read, processes that outlive the command are waited for, and the capture is finished. Nothing
 * that befalls perfkit here may touch the program. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/capture_end.h"
#include "cli/capture_summary.h"
#include "cli/command.h"
#include "cli/run.h"
#include "cli/run_signals.h"
#include "libprof/base/clock.h"

#define STEP_MS 200 /* at most this far behind */
#define EAGER_MS 10
#define MUCH_BACKLOG (1u << 20)
#define PATIENCE_NS 1000000000ull /* before saying for whom perfkit waits */

static void step_ingest(struct run *run)
{
    struct prof_error err = {0};
    enum prof_status status = prof_ingest_step(run->ingest, &run->progress, &err);
    if (status == run->trouble)
        return;
    run->trouble = status;
    if (status == PROF_FULL)
        cli_say(run->name, "%s: make room; records wait in %s meanwhile", err.message,
                run->spool.path);
    else if (status)
        cli_say(run->name, "%s", err.message);
}

static void step_features(struct run *run)
{
    for (size_t i = 0; run_features[i]; i++) {
        if (run_features[i]->step)
            run_features[i]->step(run);
    }
}

/* How long to sleep: not at all behind a backlog, longer the quieter it is. */
static int next_pause(const struct run *run, int pause)
{
    if (run->trouble)
        return STEP_MS;
    if (run->progress.backlog_bytes > MUCH_BACKLOG)
        return 0;
    if (run->progress.records)
        return pause / 2 > EAGER_MS ? pause / 2 : EAGER_MS;
    return pause * 2 < STEP_MS ? pause * 2 + 1 : STEP_MS;
}

/* True once the target has ended, with its status. */
static bool look_at_target(struct run *run)
{
    int status;
    while (waitpid(run->pid, &status, WNOHANG | WUNTRACED) == run->pid) {
        if (!WIFSTOPPED(status)) {
            run->wait_status = status;
            return true;
        }
        signals_stop_with(run->pid, WSTOPSIG(status));
    }
    signals_hand_on_continue(run->pid);
    return false;
}

/* Ingest learns how the command ended. On a full disk it is told again later. */
static void ingest_program_end(struct run *run)
{
    struct prof_error err = {0};
    enum prof_status status =
        prof_ingest_reaped(run->ingest, (uint32_t)run->pid, run->wait_status, &err);
    run->end_ingested = status == PROF_OK;
    if (status && status != PROF_FULL)
        cli_say(run->name, "%s", err.message);
}

/* `due`: milliseconds to what --delay and --duration have next, -1 = nothing. */
static int sooner(int pause, int due)
{
    return due >= 0 && due < pause ? due : pause;
}

void run_record(struct run *run)
{
    int pause = EAGER_MS;
    while (!look_at_target(run)) {
        environment_look(&run->environment, run->pid, run->ingest);
        step_ingest(run);
        step_features(run);
        pause = next_pause(run, pause);
        signals_wait(sooner(pause, scope_step(&run->scope)));
    }
    signals_phase(SIGNALS_WAITING);
    ingest_program_end(run);
    step_ingest(run);
}

/* Processes of the target that still run. Those that ingest knows of, and when it knows none, those
 * that carry our environment: a child that was forked a moment ago has not yet said that it is
 * there, and one that took no preload never does. */
static unsigned others_alive(const struct run *run)
{
    if (run->progress.alive > 0 && !run->trouble) /* after a failed step it is the old number */
        return run->progress.alive;
    return spool_folder_users(&run->spool);
}

bool run_wait_for_others(struct run *run)
{
    uint64_t since = prof_now_ns();
    bool told = run->options.quiet;
    int pause = EAGER_MS;
    unsigned alive;
    while ((alive = others_alive(run)) > 0) {
        if (run->options.wait == WAIT_PRIMARY || signals_end_requested())
            return true;
        if (!told && prof_now_ns() - since > PATIENCE_NS) {
            told = true;
            cli_say(run->name,
                    "%s has ended, %u of its processes still run and are recorded: Ctrl-C ends "
                    "the recording (--wait=primary does so by itself)",
                    run->argv[0], alive);
        }
        pause = next_pause(run, pause);
        signals_wait(sooner(pause, scope_step(&run->scope)));
        step_ingest(run);
        step_features(run);
        if (!run->end_ingested)
            ingest_program_end(run);
    }
    return false;
}

/* What a perfkit run inside the program took over is in its own capture, not in this one. */
static void note_inner_runs(struct run *run)
{
    char first[PATH_MAX], note[PATH_MAX + 128], more[32] = "";
    unsigned count = spool_folder_inner(&run->spool, first);
    if (count == 0)
        return;
    if (count > 1)
        snprintf(more, sizeof more, " (and %u more)", count - 1);
    snprintf(note, sizeof note, "a perfkit run inside the program recorded a part of it into %s%s",
             first, more);
    prof_ingest_note(run->ingest, PROF_HEALTH_collector_nested, NULL, note, NULL);
}

void run_finish(struct run *run, bool abandon)
{
    for (size_t i = 0; run_features[i]; i++) {
        if (run_features[i]->stop)
            run_features[i]->stop(run, true);
    }
    static char last_words[PATH_MAX + 160];
    snprintf(last_words, sizeof last_words,
             "perfkit run: left: `perfkit recover %s` finishes the capture\n", run->spool.path);
    signals_remember_end(run->wait_status);
    signals_finishing_texts(
        "perfkit run: finishing the capture; once more to leave it for perfkit recover\n",
        last_words);
    signals_phase(SIGNALS_FINISHING);
    struct capture_end end = {
        .command = run->name,
        .store = run->store,
        .ingest = run->ingest,
        .spool = &run->spool,
        .stop = signals_end_requested,
        .live = run->output.live,
        .final = run->output.final,
        .state = "complete",
        .abandon = abandon,
        .pid = run->end_ingested ? 0 : run->pid,
        .wait_status = run->wait_status,
    };
    note_inner_runs(run);
    bool done = capture_end(&end);
    if (done && !run->options.quiet) {
        const char *slash = strrchr(run->output.final, '/');
        const char *shown = run->options.output ? run->options.output : slash + 1;
        char text[512];
        capture_summary(run->name, run->output.final, shown,
                        scope_why_nothing(&run->scope, text, sizeof text));
    }
    control_close(&run->scope.control);
}
