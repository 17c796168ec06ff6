/* Walks a capture and gives it to a sink; see trace.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/saturate.h"
#include "libprof/base/utf8.h"
#include "libprof/include/prof_counters.h"
#include "libprof/include/prof_cpu.h"
#include "report/trace.h"

/* Of one counter: above it samples are put together. About 20 MB while they are written. */
#define COUNTER_POINTS 50000

void prof_trace_known(struct prof_trace *t, const char *key, int64_t value)
{
    if (value != PROF_UNKNOWN)
        t->sink->integer(t, key, value);
}

const char *prof_trace_kept(const struct prof_trace *t, uint64_t key)
{
    const uint64_t *at = prof_map_get(&t->text_of, key);
    return at ? t->texts.data[*at - 1] : NULL;
}

const char *prof_trace_keep(struct prof_trace *t, uint64_t key, const char *text)
{
    char **slot = prof_array_add(&t->texts), *copy = slot ? strdup(text) : NULL;
    if (slot)
        *slot = copy;
    if (!copy || !prof_map_put(&t->text_of, key, t->texts.count)) {
        t->no_memory = true;
        return "";
    }
    return copy;
}

/* ---- callers --------------------------------------------------------------------------------- */

#define CALLERS 4       /* of the program's own lines; Chrome's stackFrames has all frames */
#define CALLER_CELLS 48 /* of a function's name */
#define CALLER_BYTES 256u
#define STACK_TEXTS (UINT64_C(1) << 62) /* keys of texts kept, plus stack.id */

uint32_t prof_trace_stack(struct prof_trace *t, int64_t stack)
{
    uint32_t node;
    if (!prof_report_stacks_node(&t->stacks, stack, &node))
        t->no_memory = true;
    return node;
}

static void write_callers(struct prof_capture *capture, int64_t stack, char *out, size_t size)
{
    const struct prof_frame *frames, *via;
    size_t count = prof_stack_callers(capture, PROF_STACK_WORK, stack, &frames, &via);
    out[0] = 0;
    for (size_t i = 0; i < count && i < CALLERS; i++) {
        struct prof_frame frame = frames[i];
        PROF_FREED char *name = prof_report_fit(frame.function, CALLER_CELLS);
        frame.function = name ? name : "n/a";
        PROF_FREED char *text = prof_frame_text_new(&frame, i ? " < " : "");
        if (!text)
            prof_note(PROF_NOMEM);
        else
            prof_append(out, size, "%.*s", prof_report_head(text, CALLER_BYTES), text);
    }
}

void prof_trace_called_from(struct prof_trace *t, int64_t stack)
{
    char text[CALLERS * CALLER_BYTES + 1];
    if (!t->stacks.stacks || stack <= 0)
        return;
    const char *kept = prof_trace_kept(t, STACK_TEXTS + (uint64_t)stack);
    if (!kept) {
        write_callers(t->capture, stack, text, sizeof text);
        kept = prof_trace_keep(t, STACK_TEXTS + (uint64_t)stack, text);
    }
    if (kept[0])
        t->sink->text(t, "called from", kept);
}

/* Work of a device that is not described: its pid gets a name with its first track. */
static void name_unknown_device(struct prof_trace *t, int64_t pid)
{
    if (t->has_unknown_device || pid != prof_trace_device_pid(&t->names, 0))
        return;
    t->has_unknown_device = true;
    t->sink->process(t, &(struct prof_trace_process){.pid = pid,
                                                     .name = "unknown device",
                                                     .label = "unknown device",
                                                     .sort = INT32_MAX,
                                                     .device = true});
}

int64_t prof_trace_place(struct prof_trace *t, enum prof_trace_lane what, int64_t id, int64_t pid,
                         int64_t own_tid, int64_t start, int64_t duration)
{
    size_t number;
    bool fresh, nests = what == PROF_TRACE_THREAD || what == PROF_TRACE_RANGES ||
                        what == PROF_TRACE_PROJECTIONS;
    struct prof_report_lane *lane =
        prof_report_lane(&t->lanes, (uint64_t)id * PROF_TRACE_LANES + (uint64_t)what, start,
                         prof_add(start, duration), nests, &number, &fresh);
    if (!lane) {
        t->no_memory = true;
        return own_tid;
    }
    if (fresh) {
        bool own = !number && what != PROF_TRACE_RANGES && what != PROF_TRACE_MIGRATIONS &&
                   what != PROF_TRACE_UNRECORDED && what != PROF_TRACE_OVERHEAD &&
                   what != PROF_TRACE_OFF_CPU;
        struct prof_trace_track track = {.pid = pid,
                                         .tid = own ? own_tid : prof_trace_extra_tid(&t->names)};
        lane->tid = track.tid;
        prof_trace_name_track(&t->names, what, id, number, &track);
        if (track.device)
            name_unknown_device(t, pid);
        t->sink->track(t, &track);
    }
    return lane->tid;
}

struct prof_trace_call *prof_trace_call_slot(struct prof_trace_call *table, int64_t a, int64_t b,
                                             uint64_t *key)
{
    uint64_t x = (uint64_t)a * 0x9e3779b97f4a7c15u ^ (uint64_t)b;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    *key = x ? x : 1;
    /* Numbers that follow each other lie side by side: the next one is in the cache. */
    return &table[((uint64_t)b + ((uint64_t)a << 12)) & (PROF_TRACE_SLOTS - 1)];
}

static enum prof_status fail_trace_no_memory(struct prof_error *err)
{
    return prof_fail(err, PROF_NOMEM, "cannot write the trace: out of memory");
}

/* Where nothing was recorded a device is not idle: slices on a track above the others. */
static enum prof_status put_unrecorded(struct prof_trace *t, struct prof_filter of, int64_t pid,
                                       struct prof_error *err)
{
    struct prof_unrecorded_list list;
    of.begin_ns = t->options && t->options->filter ? t->options->filter->begin_ns : 0;
    of.end_ns = t->options && t->options->filter ? t->options->filter->end_ns : 0;
    enum prof_status status = prof_unrecorded(t->capture, &of, &list, err);
    for (size_t i = 0; !status && i < list.count && !t->sink->failed(t); i++) {
        const struct prof_unrecorded *span = &list.data[i];
        int64_t length = prof_subtract(span->end_ns, span->begin_ns);
        struct prof_trace_slice slice = {
            .category = "perfkit",
            .name = "not recorded",
            .pid = pid,
            .tid = prof_trace_place(t, PROF_TRACE_UNRECORDED, pid, pid, 0, span->begin_ns, length),
            .start_ns = span->begin_ns,
            .duration_ns = length};
        t->sink->begin(t, &slice);
        t->sink->text(t, "because", prof_unrecorded_reason(span->reason));
        t->sink->end(t);
    }
    free(list.data);
    return status;
}

static enum prof_status put_all_unrecorded(struct prof_trace *t, struct prof_error *err)
{
    const struct prof_process *processes;
    const struct prof_device *devices;
    struct prof_map seen = {0}; /* a program that is replaced (exec) keeps its pid */
    enum prof_status status = PROF_OK;
    size_t count = prof_processes(t->capture, &processes);
    for (size_t i = 0; !status && i < count; i++) {
        int64_t pid = prof_trace_process_pid(&t->names, processes[i].id);
        if (!processes[i].has_events || prof_map_get(&seen, (uint64_t)pid))
            continue;
        t->no_memory |= !prof_map_put(&seen, (uint64_t)pid, 1);
        status = put_unrecorded(t, (struct prof_filter){.process = processes[i].id}, pid, err);
    }
    count = prof_devices(t->capture, &devices);
    for (size_t i = 0; !status && i < count; i++)
        if (devices[i].physical == devices[i].id)
            status = put_unrecorded(t, (struct prof_filter){.device = devices[i].id},
                                    prof_trace_device_pid(&t->names, devices[i].id), err);
    prof_map_free(&seen);
    return status;
}

/* What each range came to on each stream: known at the end only. HTA takes every row with the
 * argument "stream" for device work, so that these have none, as Kineto's. */
static void put_projections(struct prof_trace *t)
{
    prof_trace_ranges_sort(&t->ranges);
    for (size_t i = 0; i < t->ranges.projections.count && !t->sink->failed(t); i++) {
        const struct prof_trace_projection *p = &t->ranges.projections.data[i];
        const struct prof_stream *stream = prof_stream(t->capture, p->stream);
        int64_t pid = prof_trace_device_pid(&t->names, stream ? stream->device : 0);
        int64_t tid = prof_trace_stream_tid(&t->names, p->stream);
        struct prof_trace_slice slice = {
            .category = "gpu_user_annotation",
            .name = p->name,
            .pid = pid,
            .tid = prof_trace_place(t, PROF_TRACE_PROJECTIONS, p->stream, pid, tid + 2000000,
                                    p->start_ns, prof_subtract(p->end_ns, p->start_ns)),
            .start_ns = p->start_ns,
            .duration_ns = prof_subtract(p->end_ns, p->start_ns)};
        t->sink->begin(t, &slice);
        t->sink->integer(t, "operations", p->operations);
        if (p->domain)
            t->sink->text(t, "domain", p->domain);
        t->sink->end(t);
    }
}

/* Hardware counters, on their device. Between the stretches of time that were sampled a line is
 * at 0: trace formats know no gap in a counter. */
static void put_counter_line(struct prof_trace *t, const struct prof_counter_line *line, size_t i)
{
    static const char *const scales[] = {
        [PROF_COUNTER_SHARE] = "% of peak", [PROF_COUNTER_RATE] = "/s", [PROF_COUNTER_LEVEL] = ""};
    double factor = line->scale == PROF_COUNTER_SHARE ? 100 : 1;
    char name[160];
    snprintf(name, sizeof name, "%s (%s%s)", line->name ? line->name : "n/a",
             line->scale == PROF_COUNTER_SHARE || !line->unit ? "" : line->unit,
             scales[line->scale]);
    struct prof_trace_counter counter = {.name = prof_trace_keep(t, UINT64_C(3) << 62 | i, name),
                                         .key = "value",
                                         .pid = prof_trace_device_pid(&t->names, line->device),
                                         .is_real = true};
    for (size_t k = 0; k < line->count && !t->sink->failed(t); k++) {
        const struct prof_counter_point *point = &line->points[k];
        if (isnan(point->value))
            continue;
        counter.time_ns = point->start_ns;
        counter.real = point->value * factor;
        t->sink->counter(t, &counter);
        counter.time_ns = point->end_ns;
        counter.real = 0;
        if (k + 1 == line->count || line->points[k + 1].start_ns > point->end_ns)
            t->sink->counter(t, &counter);
    }
}

static enum prof_status put_trace_counters(struct prof_trace *t, struct prof_error *err)
{
    struct prof_counter_lines lines;
    enum prof_status status = prof_counter_lines(t->capture, t->options ? t->options->filter : NULL,
                                                 COUNTER_POINTS, &lines, err);
    for (size_t i = 0; !status && i < lines.count; i++)
        put_counter_line(t, &lines.rows[i], i);
    prof_counter_lines_free(&lines);
    return status;
}

/* A sample on a processor is a point with a call stack, one off it a slice. */
static bool put_cpu_sample(void *user, const struct prof_cpu_sample *sample)
{
    struct prof_trace *t = user;
    const struct prof_thread *thread = prof_thread(t->capture, sample->thread);
    uint32_t stack = prof_trace_stack(t, sample->stack);
    int64_t pid = prof_trace_process_pid(&t->names, thread ? thread->process : 0);
    int64_t tid = prof_trace_thread_tid(&t->names, sample->thread);
    if (sample->state == PROF_CPU_USER || sample->state == PROF_CPU_KERNEL) {
        if (stack)
            t->sink->sample(
                t, &(struct prof_trace_sample){.pid = pid,
                                               .tid = tid,
                                               .time_ns = sample->start_ns,
                                               .weight_ns = sample->weight_ns,
                                               .stack = stack,
                                               .in_kernel = sample->state == PROF_CPU_KERNEL});
    } else {
        t->sink->begin(t, &(struct prof_trace_slice){
                              .category = "off_cpu",
                              .name = sample->state == PROF_CPU_BLOCKED ? "blocked"
                                                                        : "waiting for a processor",
                              .pid = pid,
                              .tid = prof_trace_place(t, PROF_TRACE_OFF_CPU, sample->thread, pid, 0,
                                                      sample->start_ns, sample->duration_ns),
                              .start_ns = sample->start_ns,
                              .duration_ns = sample->duration_ns,
                              .stack = stack});
        prof_trace_called_from(t, sample->stack);
        t->sink->end(t);
    }
    return !t->no_memory;
}

static enum prof_status put_events(struct prof_trace *t, struct prof_error *err)
{
    struct prof_report_walk *walk;
    const struct prof_event *event;
    PROF_TRY(prof_report_walk_open(t->capture, t->options, PROF_EVENTS_ALL, &walk, err));
    prof_report_walk_ahead(walk);
    while (!t->no_memory && !t->sink->failed(t) && (event = prof_report_walk_next(walk))) {
        if (PROF_EVENTS(event->kind) & PROF_EVENTS_DEVICE)
            prof_trace_put_device(t, event);
        else
            prof_trace_put_host(t, event);
    }
    put_projections(t);
    enum prof_status status = prof_report_walk_close(walk, err);
    return !status && t->no_memory ? fail_trace_no_memory(err) : status;
}

enum prof_status prof_trace_write(struct prof_trace *t, struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    t->end_ns = prof_end_ns(t->capture);
    t->projects =
        prof_events_estimate(t->capture, PROF_EVENTS(PROF_EVENT_RANGE)) <= PROF_TRACE_RANGES_MOST;
    t->strays = calloc(PROF_TRACE_SLOTS, sizeof *t->strays);
    t->graphs = calloc(PROF_TRACE_SLOTS, sizeof *t->graphs);
    if (!t->strays || !t->graphs || !prof_trace_names_init(&t->names, t->capture))
        status = fail_trace_no_memory(err);
    status = status ?: prof_report_stacks_open(&t->stacks, t->capture, err);
    status = status ?: t->sink->head(t, err);
    if (!status) {
        struct prof_trace_process process;
        for (size_t at = 0; prof_trace_next_process(&t->names, &at, &process);)
            t->sink->process(t, &process);
        status = put_trace_counters(t, err);
    }
    status = status ?: put_all_unrecorded(t, err);
    status = status ?: put_events(t, err);
    if (!status)
        status = prof_cpu_samples(t->capture, t->options ? t->options->filter : NULL,
                                  put_cpu_sample, t, err);
    if (!status && t->sink->tail)
        t->sink->tail(t);
    prof_report_stacks_close(&t->stacks);
    prof_trace_names_free(&t->names);
    prof_report_lanes_free(&t->lanes);
    prof_trace_ranges_free(&t->ranges);
    prof_array_free(&t->usage);
    for (size_t i = 0; i < t->texts.count; i++)
        free(t->texts.data[i]);
    prof_array_free(&t->texts);
    prof_map_free(&t->text_of);
    free(t->strays);
    free(t->graphs);
    return status;
}

/* ---- the stream of a report that is written behind ------------------------------------------- */

#define PIECE_BYTES (256u << 10)
#define PIECES 4 /* a ring */

struct behind {
    FILE *out;
    struct prof_report_ring ring; /* of pieces */
    int error;                    /* errno of `out`, before the ring is stopped; 0 = all well */
    size_t counts[PIECES];
    char pieces[PIECES][PIECE_BYTES];
};

/* After an error nothing more is wanted: no thread waits for room that never comes. */
static void *write_behind(void *argument)
{
    struct behind *b = argument;
    size_t slot;
    while (!b->error && prof_report_ring_next(&b->ring, &slot)) {
        errno = 0;
        if (fwrite(b->pieces[slot], 1, b->counts[slot], b->out) != b->counts[slot])
            b->error = errno ? errno : EIO;
        prof_report_ring_change(&b->ring, b->error ? PROF_RING_STOPPED : PROF_RING_TAKEN);
    }
    return NULL;
}

static ssize_t queue_pieces(void *cookie, const char *data, size_t size)
{
    struct behind *b = cookie;
    for (size_t done = 0, slot; done < size;) {
        size_t now = size - done < PIECE_BYTES ? size - done : PIECE_BYTES;
        if (!prof_report_ring_room(&b->ring, &slot)) {
            errno = b->error;
            return 0; /* an error, to stdio */
        }
        memcpy(b->pieces[slot], data + done, now);
        b->counts[slot] = now;
        prof_report_ring_change(&b->ring, PROF_RING_FILLED);
        done += now;
    }
    return (ssize_t)size;
}

static int finish_thread_writer(void *cookie)
{
    PROF_FREED struct behind *b = cookie;
    prof_report_ring_change(&b->ring, PROF_RING_ENDED);
    prof_report_ring_join(&b->ring);
    int error = b->error;
    errno = error;
    return error ? -1 : 0;
}

FILE *prof_report_behind(FILE *out)
{
    struct behind *b = malloc(sizeof *b);
    if (!b)
        return NULL;
    b->out = out;
    b->error = 0;
    if (!prof_report_ring_start(&b->ring, PIECES, write_behind, b)) {
        free(b);
        return NULL;
    }
    FILE *file = fopencookie(
        b, "w", (cookie_io_functions_t){.write = queue_pieces, .close = finish_thread_writer});
    if (!file)
        finish_thread_writer(b);
    return file;
}
