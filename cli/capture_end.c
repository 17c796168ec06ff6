/* See capture_end.h. Nothing is thrown away before the capture is safely in its place: on a full
 * disk the spool folder stays, and `perfkit recover` does the same steps again later. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/capture_end.h"
#include "cli/ceiling_folder.h"
#include "cli/command.h"
#include "cli/run_output.h"
#include "cli/stack_names.h"
#include "cli/terminal.h"
#include "libprof/base/clock.h"
#include "libprof/base/format.h"
#include "libprof/store/ceiling.h"

#define QUIET_NS 1000000000ull /* no progress line before this */
#define LINE_NS 200000000ull
#define FULL_PATIENCE_NS 5000000000ull /* in all */
#define FULL_PAUSE_MS 250
#define ABANDON_BYTES                                                                              \
    (256u << 10) /* what running processes add faster than it is worth reading                     \
                  */

struct progress_line {
    const char *command;
    uint64_t start_ns, next_ns;
    uint64_t most_bytes; /* largest backlog seen: the 100 % */
    bool shown;
};

static void show_backlog(struct progress_line *line, const struct prof_ingest_progress *progress)
{
    uint64_t now = prof_now_ns();
    if (progress->backlog_bytes > line->most_bytes)
        line->most_bytes = progress->backlog_bytes;
    if (now - line->start_ns < QUIET_NS || now < line->next_ns || !isatty(STDERR_FILENO))
        return;
    line->next_ns = now + LINE_NS;
    double share =
        line->most_bytes ? 1.0 - (double)progress->backlog_bytes / (double)line->most_bytes : 1.0;
    fprintf(stderr, "\r\033[Kperfkit %s: finishing the capture: %s (%s records)", line->command,
            prof_percent(share).text, prof_count((int64_t)progress->total).text);
    fflush(stderr);
    line->shown = true;
}

static void clear_progress(struct progress_line *line)
{
    if (line->shown)
        fputs("\r\033[K", stderr);
    line->shown = false;
}

static void pause_ms(long milliseconds)
{
    struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* Once more while the disk is full: somebody may be making room. */
static bool patient(struct capture_end *end, enum prof_status status, const struct prof_error *err)
{
    if (status != PROF_FULL)
        return false;
    uint64_t now = prof_now_ns();
    if (!end->full_since_ns) {
        end->full_since_ns = now;
        cli_say(end->command, "%s: make room, perfkit tries again for some seconds", err->message);
    }
    pause_ms(FULL_PAUSE_MS);
    return now - end->full_since_ns < FULL_PATIENCE_NS;
}

static enum prof_status drain_spools(struct capture_end *end, struct prof_error *err)
{
    struct progress_line line = {.command = end->command, .start_ns = prof_now_ns()};
    struct prof_ingest_progress progress;
    enum prof_status status;
    for (;;) {
        status = prof_ingest_step(end->ingest, &progress, err);
        if (status) {
            clear_progress(&line);
            if (patient(end, status, err))
                continue;
            return status;
        }
        if (progress.backlog_bytes <= (end->abandon ? ABANDON_BYTES : 0) || !progress.records)
            break;
        show_backlog(&line, &progress);
    }
    clear_progress(&line);
    return PROF_OK;
}

/* What was measured of this machine's devices. A capture is whole without it. */
static void attach_ceilings(struct capture_end *end)
{
    char folder[PATH_MAX];
    struct prof_error err = {0};
    if (ceiling_folder(folder) && prof_ceiling_attach(end->store, folder, &err))
        cli_say(end->command, "the devices' ceilings are not in the capture: %s", err.message);
}

/* While the program's files are as it had them. A capture is whole without. */
static void name_stacks(struct capture_end *end)
{
    struct prof_symbolize_result result;
    struct prof_error err = {0};
    if (stack_names(end->command, end->store, NULL, false, end->stop, &result, &err))
        cli_say(end->command,
                "the frames of stacks have no names: %s. `perfkit symbolize %s` tries again",
                err.message, end->final);
    else if (result.stopped)
        cli_say(end->command,
                "naming was stopped: %s of %s frames of stacks have a name. `perfkit symbolize %s` "
                "names the others",
                prof_count((int64_t)result.named).text, prof_count((int64_t)result.frames).text,
                end->final);
}

static enum prof_status finish_ingest(struct capture_end *end, struct prof_error *err)
{
    enum prof_status status = drain_spools(end, err);
    if (!status && end->pid)
        status = prof_ingest_reaped(end->ingest, (uint32_t)end->pid, end->wait_status, err);
    while (!status) {
        status = prof_ingest_finish(end->ingest, end->state, end->abandon, err);
        if (!status || !patient(end, status, err))
            break;
        status = PROF_OK;
    }
    prof_ingest_close(end->ingest);
    end->ingest = NULL;
    if (!status) {
        attach_ceilings(end);
        name_stacks(end);
    }
    return status;
}

/* A reader that holds on leaves a -wal file, which the next report joins: worth a word, no more. */
static enum prof_status publish_capture(struct capture_end *end, struct prof_error *err)
{
    enum prof_status status;
    do
        status = prof_store_publish(end->store, err);
    while (status && patient(end, status, err));
    bool moves = strcmp(end->live, end->final) != 0;
    if (status == PROF_BUSY && !moves) {
        cli_say(end->command, "%s", err->message);
        status = PROF_OK;
    }
    prof_store_close(end->store);
    end->store = NULL;
    if (status)
        return status;
    do
        status = output_move(end->live, end->final, err);
    while (status && patient(end, status, err));
    return status;
}

bool capture_end(struct capture_end *end)
{
    struct prof_error err = {0};
    enum prof_status status = finish_ingest(end, &err);
    if (!status)
        status = publish_capture(end, &err);
    prof_store_close(end->store);
    end->store = NULL;
    if (status) {
        cli_say(end->command,
                "the capture is not finished: %s. What was recorded is kept: `perfkit recover %s` "
                "finishes it",
                err.message, end->spool->path);
        spool_folder_leave(end->spool);
        return false;
    }
    if (end->keep_spool)
        spool_folder_leave(end->spool);
    else
        spool_folder_remove(end->spool);
    return true;
}
