/* pids, tids and metadata events of a Chrome trace; see chrome_names.h. */
#include <stdio.h>
#include <string.h>

#include "report/chrome_names.h"
#include "report/data.h"

/* Streams whose number is a pointer (OpenCL), or used twice on a device, are numbered from here. */
#define STREAM_BASE 100000
/* Extra lanes are numbered above any thread of Linux (pid_max <= 4,194,304). */
#define EXTRA_BASE 10000000
/* Kineto's place for devices in the list: below the processes. */
#define DEVICE_SORT 5000000

static uint64_t stream_key(int64_t pid, int64_t tid)
{
    return (uint64_t)pid << 32 | (uint64_t)(uint32_t)tid;
}

static bool add_device(struct prof_chrome_names *names, int64_t physical, int64_t wanted)
{
    if (prof_map_get(&names->pids, (uint64_t)physical))
        return true;
    int64_t pid = wanted == PROF_UNKNOWN || wanted < 0 ? 0 : wanted;
    while (prof_map_get(&names->taken, (uint64_t)pid))
        pid++;
    return prof_map_put(&names->taken, (uint64_t)pid, 1) &&
           prof_map_put(&names->pids, (uint64_t)physical, (uint64_t)pid);
}

static bool add_stream(struct prof_chrome_names *names, struct prof_map *used,
                       const struct prof_stream *stream)
{
    int64_t pid = prof_chrome_device_pid(names, stream->device);
    int64_t tid = stream->native;
    if (tid <= 0 || tid >= STREAM_BASE || prof_map_get(used, stream_key(pid, tid)))
        tid = STREAM_BASE + stream->id;
    return prof_map_put(used, stream_key(pid, tid), 1) &&
           prof_map_put(&names->tids, (uint64_t)stream->id, (uint64_t)tid);
}

bool prof_chrome_names_init(struct prof_chrome_names *names, struct prof_capture *capture)
{
    const struct prof_process *processes;
    const struct prof_device *devices;
    const struct prof_stream *streams;
    struct prof_map used = {0};
    bool ok = true;
    *names = (struct prof_chrome_names){.capture = capture, .extra = EXTRA_BASE};
    size_t count = prof_processes(capture, &processes);
    for (size_t i = 0; i < count && ok; i++)
        ok = prof_map_put(&names->taken, (uint64_t)processes[i].pid, 1);
    count = prof_devices(capture, &devices);
    for (size_t i = 0; i < count && ok; i++)
        ok = add_device(names, devices[i].physical, devices[i].ordinal);
    ok = ok && add_device(names, 0, (int64_t)count);
    count = prof_streams(capture, &streams);
    for (size_t i = 0; i < count && ok; i++)
        ok = add_stream(names, &used, &streams[i]);
    prof_map_free(&used);
    return ok;
}

void prof_chrome_names_free(struct prof_chrome_names *names)
{
    prof_map_free(&names->pids);
    prof_map_free(&names->tids);
    prof_map_free(&names->taken);
}

int64_t prof_chrome_device_pid(const struct prof_chrome_names *names, int64_t device)
{
    const struct prof_device *row = prof_device(names->capture, device);
    const uint64_t *pid = prof_map_get(&names->pids, row ? (uint64_t)row->physical : 0);
    return pid ? (int64_t)*pid : 0;
}

int64_t prof_chrome_process_pid(const struct prof_chrome_names *names, int64_t process)
{
    const struct prof_process *row = prof_process(names->capture, process);
    return row ? row->pid : 0;
}

int64_t prof_chrome_thread_tid(const struct prof_chrome_names *names, int64_t thread)
{
    const struct prof_thread *row = prof_thread(names->capture, thread);
    return row ? row->tid : 0;
}

int64_t prof_chrome_stream_tid(const struct prof_chrome_names *names, int64_t stream)
{
    const uint64_t *tid = prof_map_get(&names->tids, (uint64_t)stream);
    return tid ? (int64_t)*tid : STREAM_BASE;
}

int64_t prof_chrome_extra_tid(struct prof_chrome_names *names)
{
    return ++names->extra;
}

/* One metadata event; `text` or, when it is NULL, `number` under `key`. */
static void put_meta(struct prof_json *json, const char *name, int64_t pid, int64_t tid,
                     const char *key, const char *text, int64_t number)
{
    prof_json_object(json, NULL);
    prof_json_string(json, "ph", "M");
    prof_json_string(json, "name", name);
    prof_json_int(json, "pid", pid);
    prof_json_int(json, "tid", tid);
    prof_json_us(json, "ts", 0);
    prof_json_object(json, "args");
    if (text)
        prof_json_string(json, key, text);
    else
        prof_json_int(json, key, number);
    prof_json_end(json);
    prof_json_end(json);
}

static void put_process(struct prof_json *json, int64_t pid, const char *name, const char *label,
                        int64_t sort)
{
    put_meta(json, "process_name", pid, 0, "name", name, 0);
    put_meta(json, "process_labels", pid, 0, "labels", label, 0);
    put_meta(json, "process_sort_index", pid, 0, "sort_index", NULL, sort);
}

void prof_chrome_put_processes(const struct prof_chrome_names *names, struct prof_json *json)
{
    const struct prof_process *processes;
    const struct prof_device *devices;
    size_t count = prof_processes(names->capture, &processes);
    for (size_t i = 0; i < count; i++) {
        /* Short children without events are no lane; a build has thousands of them. */
        if (processes[i].has_events || count == 1)
            put_process(json, processes[i].pid,
                        processes[i].command ? processes[i].command : "process", "CPU",
                        processes[i].pid);
    }
    count = prof_devices(names->capture, &devices);
    for (size_t i = 0; i < count; i++) {
        char label[64];
        int64_t pid = prof_chrome_device_pid(names, devices[i].id);
        if (devices[i].physical != devices[i].id)
            continue;
        prof_report_device_label(&devices[i], label, sizeof label);
        put_process(json, pid, devices[i].name ? devices[i].name : "device", label,
                    DEVICE_SORT + pid);
    }
}

static void lane_name(const struct prof_chrome_names *names, enum prof_chrome_lane what, int64_t id,
                      int64_t tid, size_t number, char *out, size_t size)
{
    const struct prof_thread *thread = NULL;
    const struct prof_stream *stream = NULL;
    const struct prof_process *processes;
    char owner[64] = "", extra[48] = "";
    if (number)
        snprintf(extra, sizeof extra, " (overlap %zu)", number);
    switch (what) {
    case PROF_CHROME_THREAD:
    case PROF_CHROME_RANGES:
        thread = prof_thread(names->capture, id);
        snprintf(out, size, "thread %lld%s%.200s%s%s%s", (long long)(thread ? thread->tid : 0),
                 thread && thread->name ? " (" : "", thread && thread->name ? thread->name : "",
                 thread && thread->name ? ")" : "", what == PROF_CHROME_RANGES ? " ranges" : "",
                 extra);
        break;
    case PROF_CHROME_STREAM:
    case PROF_CHROME_WAITS:
        stream = prof_stream(names->capture, id);
        if (stream && prof_processes(names->capture, &processes) > 1)
            snprintf(owner, sizeof owner, " of process %lld",
                     (long long)prof_chrome_process_pid(names, stream->process));
        snprintf(out, size, "stream %lld%s%.200s%s%s%s%s",
                 (long long)(stream ? prof_chrome_stream_tid(names, id) : tid),
                 stream && stream->name ? " (" : "", stream && stream->name ? stream->name : "",
                 stream && stream->name ? ")" : "", owner,
                 what == PROF_CHROME_WAITS ? " (sync)" : "", extra);
        break;
    }
}

void prof_chrome_put_lane(const struct prof_chrome_names *names, struct prof_json *json,
                          enum prof_chrome_lane what, int64_t id, int64_t pid, int64_t tid,
                          size_t number)
{
    char name[512];
    int64_t place = id * 4 + (what == PROF_CHROME_RANGES || what == PROF_CHROME_WAITS ? 2 : 0);
    lane_name(names, what, id, tid, number, name, sizeof name);
    put_meta(json, "thread_name", pid, tid, "name", name, 0);
    put_meta(json, "thread_sort_index", pid, tid, "sort_index", NULL, place + (number ? 1 : 0));
}
