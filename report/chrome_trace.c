/* Every event in Chrome's trace format, in the dialect that Kineto writes (facts in
 * docs/format.md), which Perfetto, chrome://tracing, HTA, TensorBoard and speedscope read.
 *
 * What its readers need and this file keeps to: microseconds with exactly three decimals relative
 * to baseTimeNanoseconds (absolute times lose nanoseconds in a double); numeric pid and tid; slices
 * of one lane nest or are disjoint; both ends of every flow are there. It is written as a stream:
 * memory does not grow with the number of events. */
#include <stdlib.h>

#include "report/chrome_trace.h"
#include "report/walk.h"
#include "report/writers.h"

/* ---- pieces of events --------------------------------------------------------------------- */

void prof_chrome_begin(struct prof_chrome *t, const char *ph, const char *category,
                       const char *name, int64_t pid, int64_t tid, int64_t ts)
{
    prof_json_object(&t->json, NULL);
    prof_json_string(&t->json, "ph", ph);
    prof_json_string(&t->json, "cat", category);
    prof_json_string(&t->json, "name", name ? name : "n/a");
    prof_json_int(&t->json, "pid", pid);
    prof_json_int(&t->json, "tid", tid);
    prof_json_us(&t->json, "ts", ts);
}

void prof_chrome_put(struct prof_chrome *t, const char *key, int64_t value)
{
    if (value != PROF_UNKNOWN)
        prof_json_int(&t->json, key, value);
}

int64_t prof_chrome_place(struct prof_chrome *t, enum prof_chrome_lane what, int64_t id,
                          int64_t pid, int64_t own_tid, int64_t start, int64_t duration)
{
    size_t number;
    bool fresh, nests = what == PROF_CHROME_THREAD || what == PROF_CHROME_RANGES;
    struct prof_report_lane *lane =
        prof_report_lane(&t->lanes, (uint64_t)id * 4 + (uint64_t)what, start, start + duration,
                         nests, &number, &fresh);
    if (!lane) {
        t->no_memory = true;
        return own_tid;
    }
    if (fresh) {
        bool own = !number && what != PROF_CHROME_RANGES;
        lane->tid = own ? own_tid : prof_chrome_extra_tid(&t->names);
        prof_chrome_put_lane(&t->names, &t->json, what, id, pid, lane->tid, number);
    }
    return lane->tid;
}

struct prof_chrome_call *prof_chrome_call_slot(struct prof_chrome_call *table, int64_t a, int64_t b,
                                               uint64_t *key)
{
    uint64_t x = (uint64_t)a * 0x9e3779b97f4a7c15u ^ (uint64_t)b;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    *key = x ? x : 1;
    return &table[*key & (PROF_CHROME_SLOTS - 1)];
}

static void put_event(struct prof_chrome *t, const struct prof_event *event)
{
    if (PROF_EVENTS(event->kind) & PROF_EVENTS_DEVICE)
        prof_chrome_put_device(t, event);
    else
        prof_chrome_put_host(t, event);
}

/* ---- the document ------------------------------------------------------------------------- */

static void put_device_properties(struct prof_chrome *t)
{
    const struct prof_device *devices;
    size_t count = prof_devices(t->capture, &devices);
    prof_json_array(&t->json, "deviceProperties");
    for (size_t i = 0; i < count; i++) {
        const struct prof_device *device = &devices[i];
        if (device->physical != device->id)
            continue;
        prof_json_object(&t->json, NULL);
        prof_json_int(&t->json, "id", prof_chrome_device_pid(&t->names, device->id));
        prof_json_string(&t->json, "name", device->name);
        prof_chrome_put(t, "totalGlobalMem", device->memory_bytes);
        prof_chrome_put(t, "computeMajor", device->compute_major);
        prof_chrome_put(t, "computeMinor", device->compute_minor);
        prof_chrome_put(t, "maxThreadsPerBlock", device->max_block);
        prof_chrome_put(t, "maxThreadsPerMultiprocessor", device->max_threads_per_unit);
        prof_chrome_put(t, "regsPerMultiprocessor", device->registers_per_unit);
        prof_chrome_put(t, "warpSize", device->warp);
        prof_chrome_put(t, "sharedMemPerBlock", device->shared_per_block_bytes);
        prof_chrome_put(t, "sharedMemPerMultiprocessor", device->shared_per_unit_bytes);
        prof_chrome_put(t, "numSms", device->units);
        prof_json_end(&t->json);
    }
    prof_json_end(&t->json);
}

static enum prof_status put_other_data(struct prof_chrome *t, struct prof_error *err)
{
    const struct prof_info *info = prof_info(t->capture);
    struct prof_trust trust;
    char ending[96];
    enum prof_status status = prof_trust(t->capture, &trust, err);
    if (!status) {
        prof_report_ending(info, ending, sizeof ending);
        prof_json_object(&t->json, "otherData");
        prof_json_string(&t->json, "perfkit_version", info->perfkit_version);
        prof_json_string(&t->json, "command", info->command);
        prof_json_string(&t->json, "host", info->host);
        prof_json_string(&t->json, "ended", ending);
        prof_json_bool(&t->json, "complete", trust.complete);
        prof_json_array(&t->json, "trust");
        for (size_t i = 0; i < trust.statement_count; i++)
            prof_json_string(&t->json, NULL, trust.statements[i].text);
        prof_json_end(&t->json);
        prof_json_end(&t->json);
    }
    prof_trust_free(&trust);
    return status;
}

static enum prof_status put_head(struct prof_chrome *t, struct prof_error *err)
{
    const struct prof_info *info = prof_info(t->capture);
    const struct prof_process *processes;
    size_t count = prof_processes(t->capture, &processes);
    prof_json_object(&t->json, NULL);
    prof_json_int(&t->json, "schemaVersion", 1);
    put_device_properties(t);
    if (count == 1 && processes[0].rank != PROF_UNKNOWN) {
        prof_json_object(&t->json, "distributedInfo");
        prof_json_int(&t->json, "rank", processes[0].rank);
        prof_json_end(&t->json);
    }
    prof_json_string(&t->json, "displayTimeUnit", "ms");
    if (info->start_realtime_ns != PROF_UNKNOWN)
        prof_json_int(&t->json, "baseTimeNanoseconds", info->start_realtime_ns);
    prof_json_string(&t->json, "traceName", info->path);
    return put_other_data(t, err);
}

static enum prof_status put_events(struct prof_chrome *t, struct prof_error *err)
{
    struct prof_report_walk *walk;
    const struct prof_event *event;
    enum prof_status status =
        prof_report_walk_open(t->capture, t->options, PROF_EVENTS_ALL, &walk, err);
    if (status)
        return status;
    prof_json_array(&t->json, "traceEvents");
    prof_chrome_put_processes(&t->names, &t->json);
    while (!t->no_memory && !t->json.status && (event = prof_report_walk_next(walk)))
        put_event(t, event);
    prof_json_end(&t->json);
    status = prof_report_walk_close(walk, err);
    if (!status && t->no_memory)
        status = prof_fail(err, PROF_NOMEM, "cannot write the trace: out of memory");
    return status;
}

enum prof_status prof_report_write_chrome_trace(struct prof_capture *capture,
                                                const struct prof_report_options *options,
                                                FILE *out, struct prof_error *err)
{
    struct prof_chrome t = {.capture = capture, .options = options};
    enum prof_status status = PROF_OK;
    t.end_ns = prof_end_ns(capture);
    t.strays = calloc(PROF_CHROME_SLOTS, sizeof *t.strays);
    t.graphs = calloc(PROF_CHROME_SLOTS, sizeof *t.graphs);
    prof_json_to_file(&t.json, out, 0);
    if (!t.strays || !t.graphs || !prof_chrome_names_init(&t.names, capture))
        status = prof_fail(err, PROF_NOMEM, "cannot write the trace: out of memory");
    if (!status)
        status = put_head(&t, err);
    if (!status)
        status = put_events(&t, err);
    if (!status) {
        prof_json_end(&t.json);
        status = prof_json_finish(&t.json, err);
    }
    prof_json_free(&t.json);
    prof_chrome_names_free(&t.names);
    prof_report_lanes_free(&t.lanes);
    prof_array_free(&t.usage);
    free(t.strays);
    free(t.graphs);
    return status;
}
