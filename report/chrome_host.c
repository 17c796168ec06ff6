/* What the host did, for a Chrome trace: API calls and NVTX ranges on the thread's lane, waits on
 * the stream's, marks, and memory as counters. */
#include <stdio.h>
#include <string.h>

#include "report/chrome_trace.h"

static const char *api_category(const struct prof_chrome *t, const struct prof_event *event)
{
    const char *name = event->name ? event->name : "";
    const struct prof_device *device = prof_device(t->capture, event->device);
    if (event->source == 3 || (device && device->api && !strcmp(device->api, "opencl")) ||
        (!event->source && !strncmp(name, "cl", 2)))
        return "opencl";
    if (event->source == 2 || (!event->source && strncmp(name, "cuda", 4)))
        return "cuda_driver";
    return "cuda_runtime";
}

static void remember(struct prof_chrome_call *table, int64_t a, int64_t b,
                     struct prof_chrome_call value)
{
    struct prof_chrome_call *slot = prof_chrome_call_slot(table, a, b, &value.key);
    *slot = value;
}

static void put_api(struct prof_chrome *t, const struct prof_event *event)
{
    int64_t pid = prof_chrome_process_pid(&t->names, event->process);
    int64_t own = prof_chrome_thread_tid(&t->names, event->thread);
    int64_t duration = event->duration_ns == PROF_UNKNOWN ? 0 : event->duration_ns;
    int64_t flow = event->record_id * PROF_CHROME_KINDS + (int64_t)event->record_kind;
    if (event->start_ns == PROF_UNKNOWN)
        return;
    int64_t tid = prof_chrome_place(t, PROF_CHROME_THREAD, event->thread, pid, own, event->start_ns,
                                    duration);
    struct prof_chrome_call here = {.flow = flow, .pid = pid, .tid = tid, .ts = event->start_ns};
    if (event->correlation != PROF_UNKNOWN)
        remember(t->graphs, event->process, event->correlation, here);
    else if (tid != own)
        remember(t->strays, event->record_kind, event->record_id, here);
    prof_chrome_begin(t, "X", api_category(t, event), event->name, pid, tid, event->start_ns);
    prof_json_us(&t->json, "dur", duration);
    prof_json_object(&t->json, "args");
    prof_json_int(&t->json, "correlation", flow);
    prof_chrome_put(t, "result", event->result);
    prof_json_end(&t->json);
    prof_json_end(&t->json);
}

static void put_sync(struct prof_chrome *t, const struct prof_event *event)
{
    static const char *const names[] = {"Sync", "Event Sync", "Stream Wait Event", "Stream Sync",
                                        "Context Sync"};
    const char *name =
        event->sync_kind > 0 && event->sync_kind <= 4 ? names[event->sync_kind] : names[0];
    int64_t duration = event->duration_ns == PROF_UNKNOWN ? 0 : event->duration_ns;
    if (event->start_ns == PROF_UNKNOWN || !event->stream)
        return; /* without a stream the call on its thread's lane tells it all */
    int64_t pid = prof_chrome_device_pid(&t->names, event->device);
    int64_t stream = prof_chrome_stream_tid(&t->names, event->stream);
    int64_t tid = prof_chrome_place(t, PROF_CHROME_WAITS, event->stream, pid, stream + 1000000,
                                    event->start_ns, duration);
    prof_chrome_begin(t, "X", "cuda_sync", name, pid, tid, event->start_ns);
    prof_json_us(&t->json, "dur", duration);
    prof_json_object(&t->json, "args");
    prof_json_string(&t->json, "cuda_sync_kind", name);
    prof_json_int(&t->json, "stream", stream);
    prof_json_int(&t->json, "device", pid);
    prof_json_int(&t->json, "correlation", event->id * PROF_CHROME_KINDS + (int64_t)event->kind);
    prof_chrome_put(t, "wait_on_cuda_event_id", event->sync_event);
    prof_json_end(&t->json);
    prof_json_end(&t->json);
}

static void put_note_args(struct prof_chrome *t, const struct prof_event *event, bool open)
{
    prof_json_object(&t->json, "args");
    if (event->domain)
        prof_json_string(&t->json, "domain", event->domain);
    if (event->category_name)
        prof_json_string(&t->json, "category", event->category_name);
    if (event->payload == PROF_PAYLOAD_INT)
        prof_json_int(&t->json, "payload", event->payload_int);
    else if (event->payload == PROF_PAYLOAD_REAL)
        prof_json_real(&t->json, "payload", event->payload_real);
    if (open)
        prof_json_bool(&t->json, "open at the end", true);
    prof_json_end(&t->json);
}

/* Push/pop ranges share the thread's lane with the calls inside them; start/end ranges need not
 * nest with anything and have lanes of their own. */
static void put_range(struct prof_chrome *t, const struct prof_event *event)
{
    int64_t pid = prof_chrome_process_pid(&t->names, event->process);
    bool open = event->duration_ns == PROF_UNKNOWN;
    int64_t duration = !open                         ? event->duration_ns
                       : t->end_ns > event->start_ns ? t->end_ns - event->start_ns
                                                     : 0;
    enum prof_chrome_lane lane =
        event->depth == PROF_UNKNOWN ? PROF_CHROME_RANGES : PROF_CHROME_THREAD;
    if (event->start_ns == PROF_UNKNOWN)
        return;
    int64_t tid = prof_chrome_place(t, lane, event->thread, pid,
                                    prof_chrome_thread_tid(&t->names, event->thread),
                                    event->start_ns, duration);
    prof_chrome_begin(t, "X", "user_annotation", event->name, pid, tid, event->start_ns);
    prof_json_us(&t->json, "dur", duration);
    put_note_args(t, event, open);
    prof_json_end(&t->json);
}

static void put_marker(struct prof_chrome *t, const struct prof_event *event)
{
    prof_chrome_begin(t, "i", "cpu_instant_event", event->name,
                      prof_chrome_process_pid(&t->names, event->process),
                      prof_chrome_thread_tid(&t->names, event->thread), event->start_ns);
    prof_json_string(&t->json, "s", "t");
    put_note_args(t, event, false);
    prof_json_end(&t->json);
}

/* Live bytes per process, device and kind of memory, as a counter. */
static void put_memory(struct prof_chrome *t, const struct prof_event *event)
{
    const struct prof_filter *filter = t->options ? t->options->filter : NULL;
    struct prof_chrome_usage *usage = NULL;
    char name[96];
    if (event->bytes == PROF_UNKNOWN || event->start_ns == PROF_UNKNOWN)
        return;
    if (event->kind == PROF_EVENT_FREE && filter && event->end_ns < filter->begin_ns)
        return; /* its allocation was not counted */
    for (size_t i = 0; i < t->usage.count && !usage; i++) {
        struct prof_chrome_usage *u = &t->usage.data[i];
        if (u->process == event->process && u->device == event->device &&
            u->kind == event->target_kind)
            usage = u;
    }
    if (!usage) {
        usage = prof_array_add(&t->usage);
        if (!usage) {
            t->no_memory = true;
            return;
        }
        *usage = (struct prof_chrome_usage){event->process, event->device, event->target_kind, 0};
    }
    usage->bytes += event->kind == PROF_EVENT_ALLOC ? event->bytes : -event->bytes;
    const char *kind = prof_memory_kind_text(event->target_kind);
    if (event->device)
        snprintf(name, sizeof name, "memory: %s, device %lld", kind,
                 (long long)prof_chrome_device_pid(&t->names, event->device));
    else
        snprintf(name, sizeof name, "memory: %s", kind);
    prof_chrome_begin(t, "C", "memory", name, prof_chrome_process_pid(&t->names, event->process), 0,
                      event->start_ns);
    prof_json_object(&t->json, "args");
    prof_json_int(&t->json, "bytes", usage->bytes);
    prof_json_end(&t->json);
    prof_json_end(&t->json);
}

/* Under Kineto's name for it, on the lane of the thread whose time it took. */
static void put_overhead(struct prof_chrome *t, const struct prof_event *event)
{
    if (event->start_ns == PROF_UNKNOWN || !event->thread)
        return;
    int64_t duration = event->duration_ns == PROF_UNKNOWN ? 0 : event->duration_ns;
    int64_t pid = prof_chrome_process_pid(&t->names, event->process);
    int64_t tid = prof_chrome_place(t, PROF_CHROME_THREAD, event->thread, pid,
                                    prof_chrome_thread_tid(&t->names, event->thread),
                                    event->start_ns, duration);
    prof_chrome_begin(t, "X", "overhead", event->name, pid, tid, event->start_ns);
    prof_json_us(&t->json, "dur", duration);
    prof_json_end(&t->json);
}

void prof_chrome_put_host(struct prof_chrome *t, const struct prof_event *event)
{
    switch (event->kind) {
    case PROF_EVENT_API:
        put_api(t, event);
        break;
    case PROF_EVENT_SYNC:
        put_sync(t, event);
        break;
    case PROF_EVENT_RANGE:
        put_range(t, event);
        break;
    case PROF_EVENT_MARKER:
        put_marker(t, event);
        break;
    case PROF_EVENT_ALLOC:
    case PROF_EVENT_FREE:
        put_memory(t, event);
        break;
    case PROF_EVENT_OVERHEAD:
    case PROF_EVENT_JIT:
        put_overhead(t, event);
        break;
    default:
        break;
    }
}
