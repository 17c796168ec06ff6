/* The end of a recording, and what is printed of it. Nothing is removed before the capture is safe
 * at its final path: on a full disk the spool folder stays, and `perfkit recover` does the same
 * steps again later. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/capture_end.h"
#include "cli/command.h"
#include "cli/device.h"
#include "cli/run.h"
#include "libprof/base/clock.h"
#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof.h"
#include "libprof/store/ceiling.h"
#include "libprof/store/symbolize.h"

#define FULL_PATIENCE_NS 5000000000ull /* in all */
#define FULL_PAUSE_MS 250
#define ABANDON_BYTES                                                                              \
    (256u << 10) /* what running processes add faster than it is worth reading                     \
                  */

struct progress_line {
    const char *command;
    struct cli_progress progress;
    uint64_t most_bytes; /* largest backlog seen: the 100 % */
};

static void show_backlog(struct progress_line *line, const struct prof_ingest_progress *progress)
{
    if (progress->backlog_bytes > line->most_bytes)
        line->most_bytes = progress->backlog_bytes;
    if (!cli_progress_due(&line->progress))
        return;
    double share =
        line->most_bytes ? 1.0 - (double)progress->backlog_bytes / (double)line->most_bytes : 1.0;
    cli_show_progress(line->command, "finishing the capture: %s (%s records)",
                      prof_percent(share).text, prof_count((int64_t)progress->total).text);
}

/* Once more while the disk is full: room may be made meanwhile. */
static bool patient(struct capture_end *end, enum prof_status status, const struct prof_error *err)
{
    if (status != PROF_FULL)
        return false;
    uint64_t now = prof_now_ns();
    if (!end->full_since_ns) {
        end->full_since_ns = now;
        cli_say(end->command, "%s: make room, perfkit tries again for some seconds", err->message);
    }
    struct timespec pause = {FULL_PAUSE_MS / 1000, FULL_PAUSE_MS % 1000 * 1000000};
    nanosleep(&pause, NULL);
    return now - end->full_since_ns < FULL_PATIENCE_NS;
}

static enum prof_status drain_spools(struct capture_end *end, struct prof_error *err)
{
    struct progress_line line = {.command = end->command};
    struct prof_ingest_progress progress;
    enum prof_status status;
    for (;;) {
        status = prof_ingest_step(end->ingest, &progress, err);
        if (status) {
            cli_wipe_progress();
            if (patient(end, status, err))
                continue;
            return status;
        }
        if (progress.backlog_bytes <= (end->abandon ? ABANDON_BYTES : 0) || !progress.records)
            break;
        show_backlog(&line, &progress);
    }
    cli_wipe_progress();
    return PROF_OK;
}

/* What was measured of this machine's devices. A capture is whole without it. */
void capture_attach_ceilings(const char *command, struct prof_store *store, bool costs)
{
    char folder[PATH_MAX];
    struct prof_error err = {0};
    if (ceiling_folder(folder) && prof_ceiling_attach(store, folder, costs, &err))
        cli_say(command, "ceilings of a device are not in the capture: %s", err.message);
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

/* While the spool folder has the machine code. A capture is whole without. */
static void line_stalls(const struct capture_end *end)
{
    struct prof_error err = {0};
    if (prof_stall_lines(end->store, end->spool->path, end->stop, &err))
        cli_say(end->command, "samples of kernels have no lines: %s", err.message);
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
        capture_attach_ceilings(end->command, end->store, !end->without_costs);
        name_stacks(end);
        line_stalls(end);
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
    status = status ?: publish_capture(end, &err);
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

/* ---- what is said of it ---------------------------------------------------------------------- */

/* Says what was recorded, whether it is complete and why not, and how to see it. Read back from the
 * finished file: what is printed is what a report will find there. */

const char *shell_quoted(const char *text, char *out, unsigned long size)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./=:,+@%^";
    size_t used = 0;
    if (*text && text[strspn(text, plain)] == '\0') {
        snprintf(out, size, "%s", text);
        return out;
    }
    out[used++] = '\'';
    for (; *text && used + 6 < size; text++) {
        if (*text == '\'') {
            memcpy(out + used, "'\\''", 4);
            used += 4;
        } else {
            out[used++] = *text;
        }
    }
    out[used++] = '\'';
    out[used] = '\0';
    return out;
}

/* What each subject of the trust block is called in a list. */
static const struct {
    const char *subject, *one, *many;
} nouns[] = {
    {"launch", "kernel launch", "kernel launches"},
    {"transfer", "memcpy", "memcpys"},
    {"memset", "memset", "memsets"},
    {"allocation", "allocation", "allocations"},
    {"range", "NVTX range", "NVTX ranges"},
};

/* "30 graph launches (9,000 kernels, 30 memcpys)" */
static void list_graphs(const struct prof_graph_work *work, char *out, size_t size)
{
    const struct {
        int64_t value;
        const char *one, *many;
    } parts[] = {{work->kernels, "kernel", "kernels"},
                 {work->memcpys, "memcpy", "memcpys"},
                 {work->memsets, "memset", "memsets"},
                 {work->whole, "execution recorded as a whole", "executions recorded as a whole"},
                 {work->filtered, "kernel left out", "kernels left out"}};
    const char *separator = " (";
    int64_t all = work->launched + work->kernels + work->memcpys + work->memsets + work->whole;
    if (all <= 0) /* what was left out is no record */
        return;
    prof_append(out, size, "%s%s graph launch%s", *out ? ", " : "", prof_count(work->launched).text,
                work->launched == 1 ? "" : "es");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].value <= 0)
            continue;
        prof_append(out, size, "%s%s %s", separator, prof_count(parts[i].value).text,
                    parts[i].value == 1 ? parts[i].one : parts[i].many);
        separator = ", ";
    }
    if (separator[0] == ',')
        prof_append(out, size, ")");
}

/* "12 kernel launches, 3 memcpys"; false when there is nothing. */
static bool list_recorded(const struct prof_trust *trust, char *out, size_t size)
{
    out[0] = '\0';
    for (size_t n = 0; n < sizeof nouns / sizeof nouns[0]; n++) {
        if (n == 1) /* after the launches */
            list_graphs(&trust->graphs, out, size);
        for (size_t i = 0; i < trust->total_count; i++) {
            const struct prof_balance *total = &trust->totals[i];
            if (strcmp(total->subject, nouns[n].subject) != 0 || total->recorded <= 0)
                continue;
            prof_append(out, size, "%s%s %s", *out ? ", " : "", prof_count(total->recorded).text,
                        total->recorded == 1 ? nouns[n].one : nouns[n].many);
        }
    }
    return *out;
}

static void print_trust_status(const char *command, const struct prof_trust *trust)
{
    if (trust->complete)
        return;
    size_t losses = 0;
    const char *first = "see the trust block of the report";
    const char *verdict = prof_trust_status_words(trust->status);
    for (size_t i = 0; i < trust->statement_count; i++)
        if (trust->statements[i].level >= PROF_TRUST_RISK && losses++ == 0)
            first = trust->statements[i].text;
    if (losses > 1)
        cli_say(command, "%s: %s (and %zu more)", verdict, first, losses - 1);
    else
        cli_say(command, "%s: %s", verdict, first);
}

/* CUPTI serves one tool: when the program wanted it too, or was given it, figures of one side lack.
 */
static bool print_contention(const char *command, const struct prof_trust *trust)
{
    const char *first = NULL;
    size_t more = 0;
    for (size_t i = 0; i < trust->statement_count; i++) {
        if (!trust->statements[i].contended)
            continue;
        more += first != NULL;
        first = first ? first : trust->statements[i].text;
    }
    if (more)
        cli_say(command, "%s (and in %zu more process%s)", first, more, more == 1 ? "" : "es");
    else if (first)
        cli_say(command, "%s", first);
    return first != NULL;
}

/* A pattern with a slip in it must not look like a program without kernels. */
static bool print_filtered(const char *command, const struct prof_trust *trust, const char *filter)
{
    int64_t kept = trust->graphs.kernels, left = trust->graphs.filtered;
    for (size_t i = 0; i < trust->total_count; i++) {
        if (strcmp(trust->totals[i].subject, "launch") != 0)
            continue;
        kept = prof_add(kept, trust->totals[i].recorded);
        left = prof_add(left, trust->totals[i].filtered);
    }
    if (!filter || kept > 0 || left <= 0)
        return false;
    bool one = left == 1, graphs = trust->graphs.filtered > 0;
    cli_say(command, "none of %s %s matches --kernel='%s': leave it out once to see their names",
            prof_count(left).text,
            graphs ? (one ? "kernel" : "kernels") : (one ? "kernel launch" : "kernel launches"),
            filter);
    return true;
}

/* What was requested beside the trace and is missing (counters, samples): a run with all of its
 * calls counts as complete, so this says what it lacks; and that --ring kept the last part only. */
static void print_degraded(const char *command, const struct prof_trust *trust)
{
    for (size_t i = 0; i < trust->statement_count; i++) {
        const struct prof_statement *s = &trust->statements[i];
        bool left = strcmp(s->code, "capture_ring") == 0;
        if ((left || s->level == PROF_TRUST_WARNING) && s->process == 0 && !s->contended)
            cli_say(command, "note: %s", s->text);
    }
}

static const char *nothing_seen(const char *trace)
{
    if (trace && *trace && strcmp(trace, "cuda,nvtx,opencl") != 0)
        return "nothing was recorded: no call was seen of the sources that --trace names";
    return "nothing was recorded: no GPU or NVTX call was seen; `perfkit doctor` says what can be "
           "seen here";
}

/* The likely reason is among the statements. */
static void print_nothing_recorded(const char *command, const struct prof_trust *trust,
                                   const char *trace, const char *reason)
{
    bool called = false;
    for (size_t i = 0; i < trust->total_count; i++)
        called |= trust->totals[i].called > 0;
    cli_say(command, "%s",
            called   ? "nothing was recorded of the calls that were seen: the trust block of the "
                       "report says what became of them"
            : reason ? reason
                     : nothing_seen(trace));
    if (called || reason)
        return;
    for (size_t i = 0; i < trust->statement_count; i++)
        if (trust->statements[i].process == 0)
            cli_say(command, "note: %s", trust->statements[i].text);
}

void capture_summary(const char *command, const char *path, const char *shown, const char *reason)
{
    struct prof_capture *capture;
    struct prof_error err = {0};
    struct prof_trust trust = {0};
    char recorded[512], quoted[4200];
    bool nothing = false;
    enum prof_status status = prof_open(path, &capture, &err);
    if (status || (status = prof_trust(capture, &trust, &err)) != PROF_OK) {
        cli_say(command, "wrote %s, but cannot read it back: %s", shown, err.message);
        prof_close(capture);
        return;
    }
    const struct prof_info *info = prof_info(capture);
    char ending[64] = "";
    if (info->exit_signal > 0)
        snprintf(ending, sizeof ending, "; ended by %s", prof_signal(info->exit_signal).text);
    if (list_recorded(&trust, recorded, sizeof recorded))
        cli_say(command, "recorded %s in %s%s%s%s", recorded,
                prof_duration_ns(info->duration_ns).text, trust.complete ? "; " : "",
                trust.complete ? prof_trust_status_words(trust.status) : "", ending);
    else
        nothing = true;
    bool contended = print_contention(command, &trust);
    if (print_filtered(command, &trust, info->kernel_filter))
        nothing = false;                          /* that is the reason */
    bool reported = contended || !trust.complete; /* why, by another line */
    if (nothing && (reason || !reported))
        print_nothing_recorded(command, &trust, info->trace, reason);
    else if (nothing)
        cli_say(command, "nothing was recorded%s", ending);
    else
        print_degraded(command, &trust);
    print_trust_status(command, &trust);
    cli_say(command, "%s (%s); see it with: perfkit report %s%s", shown,
            prof_bytes_of(info->file_bytes).text, shown[0] == '-' ? "./" : "",
            shell_quoted(shown, quoted, sizeof quoted));
    prof_trust_free(&trust);
    prof_close(capture);
}
