/* pids, tids and names of a trace, and the lanes of its ranges. Push/pop ranges of a thread nest,
 * start/end ranges need not: a thread has as many lanes as it takes for those of one lane to nest.
 * The ranges of a lane around a moment are found among those that lead up from the last one that
 * had begun by then. */
#include <stdio.h>

#include "libprof/base/utf8.h"
#include "report/data.h"
#include "report/trace.h"

/* Streams whose number is a pointer (OpenCL), or used twice on a device, are numbered from here. */
#define STREAM_BASE 100000
/* Extra lanes are numbered above any thread of Linux (pid_max <= 4,194,304). */
#define EXTRA_BASE 10000000
/* Kineto's place for devices in the list: below the processes. */
#define DEVICE_SORT 5000000
#define NAME_BYTES 200u  /* of a thread's or stream's own name */
#define MAX_ORDINAL 4095 /* a larger one, in a damaged capture, is no device's */

static uint64_t stream_key(int64_t pid, int64_t tid)
{
    return (uint64_t)pid << 32 | (uint64_t)(uint32_t)tid;
}

static bool add_trace_device(struct prof_trace_names *names, int64_t physical, int64_t wanted)
{
    if (prof_map_get(&names->pids, (uint64_t)physical))
        return true;
    int64_t pid = wanted < 0 || wanted > MAX_ORDINAL ? 0 : wanted; /* PROF_UNKNOWN is below 0 */
    while (prof_map_get(&names->taken, (uint64_t)pid))
        pid++;
    return prof_map_put(&names->taken, (uint64_t)pid, 1) &&
           prof_map_put(&names->pids, (uint64_t)physical, (uint64_t)pid);
}

static bool add_stream(struct prof_trace_names *names, struct prof_map *used,
                       const struct prof_stream *stream)
{
    int64_t pid = prof_trace_device_pid(names, stream->device);
    int64_t tid = stream->native;
    if (tid <= 0 || tid >= STREAM_BASE || prof_map_get(used, stream_key(pid, tid)))
        tid = STREAM_BASE + stream->id;
    return prof_map_put(used, stream_key(pid, tid), 1) &&
           prof_map_put(&names->tids, (uint64_t)stream->id, (uint64_t)tid);
}

bool prof_trace_names_init(struct prof_trace_names *names, struct prof_capture *capture)
{
    const struct prof_process *processes;
    const struct prof_device *devices;
    const struct prof_stream *streams;
    struct prof_map used = {0};
    bool ok = true;
    *names = (struct prof_trace_names){.capture = capture, .extra = EXTRA_BASE};
    size_t count = prof_processes(capture, &processes);
    for (size_t i = 0; i < count && ok; i++)
        ok = !processes[i].pid || prof_map_put(&names->taken, (uint64_t)processes[i].pid, 1);
    count = prof_devices(capture, &devices);
    for (size_t i = 0; i < count && ok; i++)
        ok = add_trace_device(names, devices[i].physical, devices[i].ordinal);
    ok = ok && add_trace_device(names, 0, (int64_t)count);
    while (prof_map_get(&names->taken, (uint64_t)names->nobody))
        names->nobody++;
    count = prof_streams(capture, &streams);
    for (size_t i = 0; i < count && ok; i++)
        ok = add_stream(names, &used, &streams[i]);
    prof_map_free(&used);
    return ok;
}

void prof_trace_names_free(struct prof_trace_names *names)
{
    prof_map_free(&names->pids);
    prof_map_free(&names->tids);
    prof_map_free(&names->taken);
}

int64_t prof_trace_device_pid(const struct prof_trace_names *names, int64_t device)
{
    const struct prof_device *row = prof_device(names->capture, device);
    const uint64_t *pid = prof_map_get(&names->pids, row ? (uint64_t)row->physical : 0);
    return pid ? (int64_t)*pid : 0;
}

int64_t prof_trace_process_pid(const struct prof_trace_names *names, int64_t process)
{
    const struct prof_process *row = prof_process(names->capture, process);
    return !row ? 0 : row->pid ? row->pid : names->nobody;
}

int64_t prof_trace_thread_tid(const struct prof_trace_names *names, int64_t thread)
{
    const struct prof_thread *row = prof_thread(names->capture, thread);
    return row ? row->tid : 0;
}

int64_t prof_trace_stream_tid(const struct prof_trace_names *names, int64_t stream)
{
    const uint64_t *tid = prof_map_get(&names->tids, (uint64_t)stream);
    return tid ? (int64_t)*tid : STREAM_BASE;
}

int64_t prof_trace_extra_tid(struct prof_trace_names *names)
{
    return ++names->extra;
}

/* Short children without events are no track; a build has thousands of them. */
static bool next_host(const struct prof_trace_names *names, size_t *at,
                      struct prof_trace_process *process)
{
    const struct prof_process *rows;
    size_t count = prof_processes(names->capture, &rows);
    for (; *at < count; ++*at) {
        const struct prof_process *row = &rows[*at];
        if (!row->has_events && count > 1)
            continue;
        int64_t pid = prof_trace_process_pid(names, row->id);
        *process = (struct prof_trace_process){.pid = pid,
                                               .name = row->command ? row->command : "process",
                                               .label = "CPU",
                                               .sort = pid};
        ++*at;
        return true;
    }
    return false;
}

bool prof_trace_next_process(const struct prof_trace_names *names, size_t *at,
                             struct prof_trace_process *process)
{
    const struct prof_process *hosts;
    const struct prof_device *devices;
    size_t before = prof_processes(names->capture, &hosts);
    size_t count = prof_devices(names->capture, &devices);
    if (*at < before && next_host(names, at, process))
        return true;
    while (*at - before < count) {
        const struct prof_device *device = &devices[(*at)++ - before];
        if (device->physical != device->id)
            continue;
        int64_t pid = prof_trace_device_pid(names, device->id);
        *process = (struct prof_trace_process){.pid = pid,
                                               .name = device->name ? device->name : "device",
                                               .sort = DEVICE_SORT + pid,
                                               .device = true};
        snprintf(process->label, sizeof process->label, "%s", prof_report_device_label(device));
        return true;
    }
    return false;
}

static const char *bracket(const char *name, const char *mark)
{
    return name ? mark : "";
}

bool prof_trace_is_process(const struct prof_trace_names *names, int64_t pid)
{
    struct prof_trace_process process;
    for (size_t at = 0; next_host(names, &at, &process);)
        if (process.pid == pid)
            return true;
    return false;
}

static void name_of_thread(const struct prof_thread *thread, const char *what, const char *extra,
                           char *out, size_t size)
{
    const char *name = thread ? thread->name : NULL, *text = name ? name : "";
    snprintf(out, size, "thread %lld%s%.*s%s%s%s", (long long)(thread ? thread->tid : 0),
             bracket(name, " ("), prof_report_head(text, NAME_BYTES), text, bracket(name, ")"),
             what, extra);
}

static void name_of_stream(const struct prof_trace_names *names, int64_t id, int64_t tid,
                           const char *what, const char *extra, char *out, size_t size)
{
    const struct prof_stream *stream = prof_stream(names->capture, id);
    const char *name = stream ? stream->name : NULL, *text = name ? name : "";
    const struct prof_process *processes;
    char owner[64] = "";
    if (stream && prof_processes(names->capture, &processes) > 1)
        snprintf(owner, sizeof owner, " of process %lld",
                 (long long)prof_trace_process_pid(names, stream->process));
    snprintf(out, size, "stream %lld%s%.*s%s%s%s%s",
             (long long)(stream ? prof_trace_stream_tid(names, id) : tid), bracket(name, " ("),
             prof_report_head(text, NAME_BYTES), text, bracket(name, ")"), owner, what, extra);
}

void prof_trace_name_track(const struct prof_trace_names *names, enum prof_trace_lane what,
                           int64_t id, size_t number, struct prof_trace_track *track)
{
    char extra[48] = "";
    if (number)
        snprintf(extra, sizeof extra, " (overlap %zu)", number);
    bool second =
        what == PROF_TRACE_RANGES || what == PROF_TRACE_WAITS || what == PROF_TRACE_OFF_CPU;
    bool above = what == PROF_TRACE_PROJECTIONS;
    uint64_t place = (uint64_t)(above ? -1 : second ? 2 : 0) + (number ? 1 : 0);
    track->sort = (int64_t)((uint64_t)id * 4 + place); /* any id of a damaged file */
    track->device = what >= PROF_TRACE_STREAM && what != PROF_TRACE_OFF_CPU;
    track->thread = what == PROF_TRACE_THREAD && !number ? prof_thread(names->capture, id) : NULL;
    switch (what) {
    case PROF_TRACE_THREAD:
    case PROF_TRACE_RANGES:
    case PROF_TRACE_OFF_CPU:
        name_of_thread(prof_thread(names->capture, id),
                       what == PROF_TRACE_OFF_CPU ? " off the processor"
                       : second                   ? " ranges"
                                                  : "",
                       extra, track->name, sizeof track->name);
        break;
    case PROF_TRACE_STREAM:
    case PROF_TRACE_WAITS:
    case PROF_TRACE_PROJECTIONS:
        name_of_stream(names, id, track->tid,
                       above    ? " (NVTX)"
                       : second ? " (sync)"
                                : "",
                       extra, track->name, sizeof track->name);
        break;
    case PROF_TRACE_UNRECORDED:
        track->sort = -1; /* above the others */
        track->device = !prof_trace_is_process(names, track->pid);
        snprintf(track->name, sizeof track->name, "not recorded%s", extra);
        break;
    case PROF_TRACE_OVERHEAD:
        snprintf(track->name, sizeof track->name, "overhead%s", extra);
        break;
    default:
        snprintf(track->name, sizeof track->name, "unified memory%s", extra);
        break;
    }
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static struct prof_trace_thread_ranges *find_thread_ranges(struct prof_trace_ranges *r,
                                                           int64_t thread, bool make)
{
    const uint64_t *known = prof_map_get(&r->thread_of, (uint64_t)thread);
    if (known)
        return &r->threads.data[*known];
    struct prof_trace_thread_ranges *slot = make ? prof_array_add(&r->threads) : NULL;
    if (!slot)
        return NULL;
    *slot = (struct prof_trace_thread_ranges){0};
    return prof_map_put(&r->thread_of, (uint64_t)thread, r->threads.count - 1) ? slot : NULL;
}

/* The first lane into which [start, end) nests, its ended ranges closed. NULL: out of memory. */
static struct prof_trace_range_lane *find_range_lane(struct prof_trace_ranges *r,
                                                     struct prof_trace_thread_ranges *t,
                                                     int64_t start, int64_t end)
{
    for (size_t i = 0; i < t->lanes.count; i++) {
        struct prof_trace_range_lane *lane = &t->lanes.data[i];
        while (lane->open && r->all.data[lane->open - 1].end_ns <= start)
            lane->open = r->all.data[lane->open - 1].around;
        if (!lane->open || end <= r->all.data[lane->open - 1].end_ns)
            return lane;
    }
    struct prof_trace_range_lane *lane = prof_array_add(&t->lanes);
    if (lane)
        *lane = (struct prof_trace_range_lane){0};
    r->most_lanes = t->lanes.count > r->most_lanes ? t->lanes.count : r->most_lanes;
    return lane;
}

bool prof_trace_ranges_add(struct prof_trace_ranges *r, int64_t thread,
                           const struct prof_trace_range *range)
{
    struct prof_trace_thread_ranges *t = find_thread_ranges(r, thread, true);
    struct prof_trace_range_lane *lane =
        t ? find_range_lane(r, t, range->start_ns, range->end_ns) : NULL;
    struct prof_trace_range *slot = lane ? prof_array_add(&r->all) : NULL;
    uint32_t *place = slot ? prof_array_add(&lane->ranges) : NULL;
    if (!place)
        return false;
    *slot = *range;
    slot->around = lane->open;
    slot->first = 0;
    *place = (uint32_t)r->all.count - 1;
    slot->in_operator = slot->is_operator ? *place + 1
                        : lane->open      ? r->all.data[lane->open - 1].in_operator
                                          : 0;
    lane->open = (uint32_t)r->all.count;
    return true;
}

/* Index + 1 of the last range of the lane that began at `time` or before. Calls come nearly in
 * order. */
static uint32_t last_range_begun(const struct prof_trace_ranges *r,
                                 struct prof_trace_range_lane *lane, int64_t time)
{
    size_t at = lane->hint < lane->ranges.count ? lane->hint : lane->ranges.count;
#define BEGIN_OF(i) r->all.data[lane->ranges.data[i]].start_ns
    size_t low = 0, high = lane->ranges.count;
    if (at && BEGIN_OF(at - 1) <= time)
        low = at;
    if (low < high && at < high && BEGIN_OF(at) > time)
        high = at;
    for (size_t step = 1; low + step < high && BEGIN_OF(low + step - 1) <= time; step *= 2)
        low += step;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (BEGIN_OF(middle) <= time)
            low = middle + 1;
        else
            high = middle;
    }
#undef BEGIN_OF
    lane->hint = low;
    return low ? lane->ranges.data[low - 1] + 1 : 0;
}

/* Index + 1 of the innermost range of the lane that is open at `time`; 0 = none. */
static uint32_t innermost_range(const struct prof_trace_ranges *r,
                                struct prof_trace_range_lane *lane, int64_t time)
{
    uint32_t at = last_range_begun(r, lane, time);
    while (at && r->all.data[at - 1].end_ns <= time)
        at = r->all.data[at - 1].around;
    return at;
}

int64_t prof_trace_ranges_around(struct prof_trace_ranges *r, int64_t thread, int64_t call_ns)
{
    struct prof_trace_thread_ranges *t = find_thread_ranges(r, thread, false);
    const struct prof_trace_range *found = NULL;
    for (size_t i = 0; t && i < t->lanes.count; i++) {
        uint32_t at = innermost_range(r, &t->lanes.data[i], call_ns);
        if (!at)
            continue;
        uint32_t own = r->all.data[at - 1].in_operator;
        const struct prof_trace_range *range = &r->all.data[(own ? own : at) - 1];
        if (!found || range->is_operator > found->is_operator ||
            (range->is_operator == found->is_operator && range->start_ns > found->start_ns))
            found = range;
    }
    return found ? found->id : 0;
}

static bool project_range(struct prof_trace_ranges *r, uint32_t range, int64_t stream,
                          int64_t start, int64_t end)
{
    for (uint32_t at = r->all.data[range].first; at; at = r->projections.data[at - 1].next) {
        struct prof_trace_projection *p = &r->projections.data[at - 1];
        if (p->stream != stream)
            continue;
        p->start_ns = start < p->start_ns ? start : p->start_ns;
        p->end_ns = end > p->end_ns ? end : p->end_ns;
        p->operations++;
        return true;
    }
    struct prof_trace_projection *p = prof_array_add(&r->projections);
    if (!p)
        return false;
    *p = (struct prof_trace_projection){.name = r->all.data[range].name,
                                        .domain = r->all.data[range].domain,
                                        .stream = stream,
                                        .start_ns = start,
                                        .end_ns = end,
                                        .operations = 1,
                                        .range = range,
                                        .next = r->all.data[range].first};
    r->all.data[range].first = (uint32_t)r->projections.count;
    return true;
}

bool prof_trace_ranges_work(struct prof_trace_ranges *r, int64_t thread, int64_t call_ns,
                            int64_t stream, int64_t start_ns, int64_t end_ns)
{
    struct prof_trace_thread_ranges *t = find_thread_ranges(r, thread, false);
    for (size_t i = 0; t && i < t->lanes.count; i++) {
        uint32_t at = innermost_range(r, &t->lanes.data[i], call_ns);
        for (; at; at = r->all.data[at - 1].around) {
            if (!project_range(r, at - 1, stream, start_ns, end_ns))
                return false;
        }
    }
    return true;
}

PROF_ORDER(by_projection_start, struct prof_trace_projection, PROF_ASCENDING(start_ns),
           PROF_DESCENDING(end_ns), PROF_ASCENDING(range))

void prof_trace_ranges_sort(struct prof_trace_ranges *r)
{
    if (r->projections.count)
        qsort(r->projections.data, r->projections.count, sizeof *r->projections.data,
              by_projection_start);
}

void prof_trace_ranges_free(struct prof_trace_ranges *r)
{
    for (size_t i = 0; i < r->threads.count; i++) {
        for (size_t k = 0; k < r->threads.data[i].lanes.count; k++)
            prof_array_free(&r->threads.data[i].lanes.data[k].ranges);
        prof_array_free(&r->threads.data[i].lanes);
    }
    prof_array_free(&r->threads);
    prof_array_free(&r->all);
    prof_array_free(&r->projections);
    prof_map_free(&r->thread_of);
}
