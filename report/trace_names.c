/* pids, tids and names of a trace; see trace_names.h. */
#include <stdio.h>
#include <string.h>

#include "libprof/base/utf8.h"
#include "report/trace_names.h"
#include "report/data.h"

/* Streams whose number is a pointer (OpenCL), or used twice on a device, are numbered from here. */
#define STREAM_BASE 100000
/* Extra lanes are numbered above any thread of Linux (pid_max <= 4,194,304). */
#define EXTRA_BASE 10000000
/* Kineto's place for devices in the list: below the processes. */
#define DEVICE_SORT 5000000
#define NAME_BYTES 200u  /* of a thread's or stream's own name */
#define MAX_ORDINAL 4095 /* what a damaged capture holds beyond is no number of a device */

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
        ok = prof_map_put(&names->taken, (uint64_t)processes[i].pid, 1);
    count = prof_devices(capture, &devices);
    for (size_t i = 0; i < count && ok; i++)
        ok = add_trace_device(names, devices[i].physical, devices[i].ordinal);
    ok = ok && add_trace_device(names, 0, (int64_t)count);
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
    return row ? row->pid : 0;
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
        *process = (struct prof_trace_process){.pid = row->pid,
                                               .name = row->command ? row->command : "process",
                                               .label = "CPU",
                                               .sort = row->pid};
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
    bool second = what == PROF_TRACE_RANGES || what == PROF_TRACE_WAITS;
    bool above = what == PROF_TRACE_PROJECTIONS;
    uint64_t place = (uint64_t)(above ? -1 : second ? 2 : 0) + (number ? 1 : 0);
    track->sort = (int64_t)((uint64_t)id * 4 + place); /* any id of a damaged file */
    track->device = what >= PROF_TRACE_STREAM;
    track->thread = what == PROF_TRACE_THREAD && !number ? prof_thread(names->capture, id) : NULL;
    switch (what) {
    case PROF_TRACE_THREAD:
    case PROF_TRACE_RANGES:
        name_of_thread(prof_thread(names->capture, id), second ? " ranges" : "", extra, track->name,
                       sizeof track->name);
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
    default:
        snprintf(track->name, sizeof track->name, "unified memory%s", extra);
        break;
    }
}
