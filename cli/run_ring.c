/* --ring: the recording keeps its last part only, and copies of it when something happens. What
 * leaves, what triggers and how a copy is made is libprof/store's; this file has the options, the
 * triggers that come from outside (SIGUSR2, perfkit ctl keep), the files and their limit. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/capture_end.h"
#include "cli/command.h"
#include "cli/find_capture.h"
#include "cli/run.h"
#include "libprof/base/format.h"
#include "libprof/base/regular.h"

#define LEAST_RING_NS 1000000000u
#define MOST_NAMES 1000

const char *const ring_words[] = {"slow", "collective", "allocation", "end", NULL};

/* "N" or "N:K": times the median, standard deviations. */
static bool read_slow(const char *text, struct prof_ingest_ring *ring)
{
    char *end;
    ring->times = strtod(text, &end);
    ring->sigmas = 0;
    if (end > text && *end == ':' && end[1])
        ring->sigmas = strtod(end + 1, &end);
    return end > text && !*end && ring->times >= 1 && ring->times < 1e6 && ring->sigmas >= 0 &&
           ring->sigmas < 1e6;
}

static bool check_ring_options(struct run *run)
{
    struct ring_options *options = &run->options.ring;
    struct prof_ingest_ring *ring = &run->ring.ring;
    bool others = options->keep || options->slow || options->iteration || options->rotate ||
                  options->limit != RING_DEFAULT_LIMIT;
    if (options->ns == RING_NOT_GIVEN) {
        options->ns = 0;
        if (others)
            cli_say(run->name, "--ring-keep, --ring-slow, --ring-limit, --ring-rotate and "
                               "--iteration need --ring: add it, as in --ring=60s");
        return !others;
    }
    if (options->ns < LEAST_RING_NS)
        return cli_refuse(run->name, "--ring is below 1s: give at least 1s");
    *ring = (struct prof_ingest_ring){.ns = options->ns, .iteration = options->iteration};
    for (unsigned i = 0; ring_words[i]; i++)
        if (!options->keep || strstr(options->keep, ring_words[i]))
            ring->reasons |= 1u << i;
    if (options->slow && !read_slow(options->slow, ring))
        return cli_refuse(
            run->name,
            "--ring-slow=%s: give a multiple of the median, 1 or more, and if wanted a number of "
            "standard deviations, as in 3:8",
            options->slow);
    if (run->options.pytorch)
        return cli_refuse(run->name,
                          "--ring and --pytorch do not go together: PyTorch's memory history grows "
                          "without a bound; leave one out");
    return true;
}

static bool note_ring(const struct run *run, char *text, size_t size)
{
    if (run->options.ring.ns)
        snprintf(text, size, "the last %s are kept (--ring), and sums of the whole run by 10 s",
                 prof_duration_ns((int64_t)run->options.ring.ns).text);
    return run->options.ring.ns != 0;
}

static void start_ring(struct run *run)
{
    if (!run->options.ring.ns)
        return;
    run->scope.control.page->ring = 1;
    signals_keep(SIGUSR2);
}

/* ---- windows --------------------------------------------------------------------------------- */

/* --force overwrites captures, and nothing else. */
static bool may_write(const struct run *run, const char *live, const char *final)
{
    if (run->options.force)
        return access(final, F_OK) || is_capture_file(AT_FDCWD, final);
    return access(final, F_OK) && access(live, F_OK);
}

/* FILE-keep-N.sqlite beside FILE.sqlite, and where it is written to until it is whole. */
static bool name_window(const struct run *run, int64_t number, char live[PATH_MAX],
                        char final[PATH_MAX])
{
    const char *whole = run->output.final, *slash = strrchr(run->output.live, '/');
    size_t base = strlen(whole) - (prof_ends_with(whole, ".sqlite") ? strlen(".sqlite") : 0);
    for (unsigned i = 1; i < MOST_NAMES; i++) {
        char more[16] = "";
        if (i > 1)
            snprintf(more, sizeof more, "-%u", i);
        if (snprintf(final, PATH_MAX, "%.*s-keep-%lld%s.sqlite", (int)base, whole,
                     (long long)number, more) >= PATH_MAX ||
            snprintf(live, PATH_MAX, "%.*s%s.new",
                     run->output.network ? (int)(slash - run->output.live) : 0, run->output.live,
                     run->output.network ? strrchr(final, '/') : final) >= PATH_MAX)
            return false;
        if (may_write(run, live, final))
            return true;
    }
    return false;
}

static void forget_oldest(struct run *run)
{
    struct ring_watch *ring = &run->ring;
    struct ring_window oldest = ring->windows.data[0];
    unlink(oldest.path);
    ring->bytes -= oldest.bytes;
    free(oldest.path);
    ring->windows.count--;
    memmove(ring->windows.data, ring->windows.data + 1,
            ring->windows.count * sizeof *ring->windows.data);
}

/* Copies that were deleted or moved away take no room any more. */
static void forget_missing(struct ring_watch *ring)
{
    size_t left = 0;
    struct stat info;
    for (size_t i = 0; i < ring->windows.count; i++) {
        struct ring_window *window = &ring->windows.data[i];
        if (window->path && stat(window->path, &info) != 0 && errno == ENOENT) {
            ring->bytes -= window->bytes;
            free(window->path);
        } else {
            ring->windows.data[left++] = *window;
        }
    }
    ring->windows.count = left;
}

/* Is there room for another window as large as the ring is now? */
static bool has_room(struct run *run)
{
    struct ring_watch *ring = &run->ring;
    struct stat info;
    uint64_t bytes = stat(run->output.live, &info) == 0 ? (uint64_t)info.st_size : 0;
    uint64_t limit = run->options.ring.limit;
    forget_missing(ring);
    while (run->options.ring.rotate && ring->windows.count && ring->bytes + bytes > limit)
        forget_oldest(run);
    return ring->bytes + bytes <= limit;
}

static enum prof_status write_window(struct run *run, int64_t number, const char *live,
                                     const char *final, struct prof_error *err)
{
    char why[500], quoted[4200];
    struct ring_watch *ring = &run->ring;
    struct prof_store *store;
    struct stat info;
    output_remove(live);
    enum prof_status status = prof_ingest_keep(run->ingest, live, &store, why, sizeof why, err);
    if (!status) {
        capture_attach_ceilings(run->name, store, run->overhead.choice != OVERHEAD_OFF);
        status = prof_store_publish(store, err);
        prof_store_close(store);
        status = status ?: output_move(live, final, err);
        if (status)
            prof_ingest_unkeep(run->ingest, number);
    }
    if (status) {
        output_remove(live);
        return status;
    }
    struct ring_window *kept = prof_array_add(&ring->windows);
    if (kept)
        *kept = (struct ring_window){strdup(final),
                                     stat(final, &info) == 0 ? (uint64_t)info.st_size : 0};
    ring->bytes += kept ? kept->bytes : 0;
    if (!run->options.quiet)
        cli_say(run->name, "kept %s: %s", shell_quoted(final, quoted, sizeof quoted), why);
    return PROF_OK;
}

static void answer_keep(struct run *run, enum prof_status status, const char *why)
{
    struct ring_watch *ring = &run->ring;
    struct control_page *page = run->scope.control.page;
    if (status && !ring->unkept++) {
        snprintf(ring->why, sizeof ring->why, "%s", why);
        cli_say(run->name, "%s", why);
    }
    atomic_store(status ? &page->unkept : &page->kept, ring->asked);
}

static void keep_window(struct run *run, int64_t number)
{
    struct ring_watch *ring = &run->ring;
    char live[PATH_MAX], final[PATH_MAX];
    struct prof_error err = {0};
    enum prof_status status = PROF_OK;
    if (!has_room(run))
        status = prof_fail(&err, PROF_FULL,
                           "no more copies are kept: those already kept take %s (raise "
                           "--ring-limit, or use --ring-rotate, which deletes the oldest)",
                           prof_bytes_of((int64_t)ring->bytes).text);
    else if (!name_window(run, number, live, final))
        status = prof_fail(&err, PROF_INVALID, "no name is free for a copy beside %s",
                           run->output.final);
    if (status) {
        struct prof_store *none;
        prof_ingest_keep(run->ingest, NULL, &none, live, sizeof live, NULL);
    } else {
        status = write_window(run, number, live, final, &err);
    }
    answer_keep(run, status, err.message);
}

static void step_ring(struct run *run)
{
    struct ring_watch *ring = &run->ring;
    if (!run->options.ring.ns)
        return;
    struct control_page *page = run->scope.control.page;
    uint32_t asked = atomic_load(&page->keeps);
    if (run->trouble) {
        if (asked != atomic_load(&page->kept) && asked != atomic_load(&page->unkept)) {
            ring->asked = asked;
            answer_keep(run, run->trouble, "no window is kept while the capture cannot be written");
        }
        return;
    }
    unsigned signals = signals_keeps();
    if (asked != ring->asked && !prof_ingest_trigger(run->ingest, PROF_RING_CTL, NULL))
        ring->asked = asked;
    if (signals != ring->signals && !prof_ingest_trigger(run->ingest, PROF_RING_SIGNAL, NULL))
        ring->signals = signals;
    int64_t number = prof_ingest_window_due(run->ingest);
    if (number)
        keep_window(run, number);
}

static void stop_ring(struct run *run, bool ran)
{
    struct ring_watch *ring = &run->ring;
    char note[sizeof ring->why + 160];
    if (ran && ring->unkept) {
        int64_t slow = prof_ingest_unkept(run->ingest);
        snprintf(note, sizeof note, "%u time%s a copy was due and could not be kept: %s",
                 ring->unkept, ring->unkept == 1 ? "" : "s", ring->why);
        if (slow)
            prof_append(note, sizeof note, "; %lld slow iteration%s not copied", (long long)slow,
                        slow == 1 ? " was" : "s were");
        prof_ingest_note(run->ingest, PROF_HEALTH_ring_unkept, NULL, note, NULL);
    }
    for (size_t i = 0; i < ring->windows.count; i++)
        free(ring->windows.data[i].path);
    prof_array_free(&ring->windows);
}

const struct run_feature run_ring = {.name = "ring",
                                     .check = check_ring_options,
                                     .note = note_ring,
                                     .start = start_ring,
                                     .step = step_ring,
                                     .stop = stop_ring};
