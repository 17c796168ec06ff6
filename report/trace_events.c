/* Kernels, memcpys and memsets of a trace, under the names and arguments that Kineto's readers
 * look for, and the arrows from the calls that launched them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libprof/base/saturate.h"
#include "report/trace.h"

static const char *memory_word(int kind, char *out)
{
    strcpy(out, "Unknown");
    if (kind > 0) {
        strncpy(out, prof_memory_kind_text(kind), 31);
        out[31] = 0;
        if (out[0] >= 'a' && out[0] <= 'z')
            out[0] = (char)(out[0] - 'a' + 'A');
    }
    return out;
}

/* Kineto's readers recognise copies by these prefixes. */
static const char *memory_name(struct prof_trace *t, const struct prof_event *event)
{
    uint64_t key = (uint64_t)event->kind << 48 | (uint64_t)(uint16_t)event->copy_kind << 32 |
                   (uint64_t)(uint16_t)event->source_kind << 16 | (uint16_t)event->target_kind;
    const char *kept = prof_trace_kept(t, key);
    char from[32], to[32], name[128];
    if (kept)
        return kept;
    memory_word(event->source_kind, from);
    memory_word(event->target_kind, to);
    if (event->kind == PROF_EVENT_MEMSET)
        snprintf(name, sizeof name, "Memset (%s)", to);
    else if (event->source_kind || event->target_kind)
        snprintf(name, sizeof name, "Memcpy %s (%s -> %s)", prof_copy_kind_text(event->copy_kind),
                 from, to);
    else
        snprintf(name, sizeof name, "Memcpy %s", prof_copy_kind_text(event->copy_kind));
    return prof_trace_keep(t, key, name);
}

static bool dimensions_known(const int64_t values[3])
{
    return values[0] != PROF_UNKNOWN;
}

/* Kineto's "blocks per SM" and "warps per SM", of the whole grid, spread over the device, and what
 * of the device's threads that fills at most. */
static void put_load(struct prof_trace *t, const struct prof_config *config, int64_t device_id)
{
    const struct prof_device *device = prof_device(t->capture, device_id);
    double blocks = 1, threads = 1;
    if (!device || device->units <= 0 || device->warp <= 0 || !dimensions_known(config->block))
        return;
    for (int i = 0; i < 3; i++) {
        blocks *= config->grid[i] == PROF_UNKNOWN ? 1 : (double)config->grid[i];
        threads *= config->block[i] == PROF_UNKNOWN ? 1 : (double)config->block[i];
    }
    double units = (double)device->units;
    t->sink->real(t, "blocks per SM", blocks / units);
    t->sink->real(t, "warps per SM", blocks * threads / (double)device->warp / units);
    /* As Kineto: of the blocks that fit on a unit at once, those that are there. */
    double share = prof_live_occupancy(device, config);
    double warps = ceil(threads / (double)device->warp) * (double)device->warp;
    double filled = blocks / units * threads / (double)device->max_threads_per_unit;
    if (!isnan(share))
        t->sink->integer(t, "est. achieved occupancy %",
                         (int64_t)(0.5 + 100 * fmin(share * threads / warps, filled)));
}

void prof_trace_launch(struct prof_trace *t, const struct prof_config *config, int64_t device)
{
    prof_trace_known(t, "registers per thread", config->registers);
    if (config->shared_static != PROF_UNKNOWN && config->shared_dynamic != PROF_UNKNOWN)
        t->sink->integer(t, "shared memory",
                         prof_add(config->shared_static, config->shared_dynamic));
    prof_trace_known(t, "local memory", config->local_bytes);
    t->sink->three(t, "grid", config->grid);
    t->sink->three(t, "block", config->block);
    if (dimensions_known(config->cluster))
        t->sink->three(t, "cluster", config->cluster);
    put_load(t, config, device);
}

static void put_copy_args(struct prof_trace *t, const struct prof_event *event)
{
    prof_trace_known(t, "bytes", event->bytes);
    if (event->bytes != PROF_UNKNOWN && event->duration_ns > 0)
        t->sink->real(t, "memory bandwidth (GB/s)",
                      (double)event->bytes / (double)event->duration_ns);
    prof_trace_known(t, "blocking", event->blocking);
}

/* Kineto's word for the operator, or the range, that a call was made in. */
static void put_external_id(struct prof_trace *t, int64_t thread, int64_t call_ns)
{
    int64_t range = t->projects ? prof_trace_ranges_around(&t->ranges, thread, call_ns) : 0;
    if (range)
        t->sink->integer(t, "External id", range);
}

static void put_args(struct prof_trace *t, const struct prof_event *event, int64_t pid, int64_t tid,
                     int64_t flow)
{
    t->sink->integer(t, "device", pid);
    if (event->context)
        t->sink->integer(t, "context", event->context);
    t->sink->integer(t, "stream", tid);
    t->sink->integer(t, "correlation", flow);
    prof_trace_known(t, "queued ns", event->queue_delay_ns);
    prof_trace_known(t, "submitted ns", event->submit_delay_ns);
    prof_trace_known(t, "graph node id", event->graph_node);
    if (event->kind == PROF_EVENT_KERNEL && event->config)
        t->sink->launch(t, event->config, event->device);
    else if (event->kind == PROF_EVENT_GRAPH)
        prof_trace_known(t, "graph id", event->graph);
    else if (event->kind != PROF_EVENT_KERNEL)
        put_copy_args(t, event);
    prof_trace_called_from(t, event->stack);
    if (event->duration_ns == PROF_UNKNOWN)
        t->sink->flag(t, "unfinished", true);
}

/* The call's end of the arrow: where its slice was drawn. False when it has none. */
static bool call_of(struct prof_trace *t, const struct prof_event *event,
                    struct prof_trace_call *call)
{
    const struct prof_filter *filter = t->options ? t->options->filter : NULL;
    uint64_t key;
    if (event->correlation != PROF_UNKNOWN) {
        *call = *prof_trace_call_slot(t->graphs, event->process, event->correlation, &key);
        return call->key == key;
    }
    if (event->api_start_ns == PROF_UNKNOWN || !event->thread)
        return false;
    if (filter && (event->api_start_ns < filter->begin_ns ||
                   (filter->end_ns && event->api_start_ns >= filter->end_ns)))
        return false; /* the call's slice is not in this trace */
    *call = *prof_trace_call_slot(t->strays, event->kind, event->id, &key);
    if (call->key != key)
        *call = (struct prof_trace_call){.pid = prof_trace_process_pid(&t->names, event->process),
                                         .tid = prof_trace_thread_tid(&t->names, event->thread),
                                         .ts = event->api_start_ns};
    call->thread = event->thread;
    call->flow = prof_trace_flow(event->id, event->kind);
    return true;
}

/* Never seen to start: an instant at the launch. */
static void put_not_started(struct prof_trace *t, const struct prof_event *event, const char *name)
{
    if (event->api_start_ns == PROF_UNKNOWN)
        return;
    int64_t pid = prof_trace_process_pid(&t->names, event->process);
    int64_t own = prof_trace_thread_tid(&t->names, event->thread);
    t->sink->begin(
        t, &(struct prof_trace_slice){.category = "not started",
                                      .name = name,
                                      .pid = pid,
                                      .tid = prof_trace_place(t, PROF_TRACE_THREAD, event->thread,
                                                              pid, own, event->api_start_ns, 0),
                                      .start_ns = event->api_start_ns,
                                      .duration_ns = PROF_UNKNOWN});
    t->sink->end(t);
}

/* Several records of one graph launch: each arrow has its own number. */
static void put_launch_arrow(struct prof_trace *t, const struct prof_event *event,
                             const struct prof_trace_call *call,
                             const struct prof_trace_slice *slice)
{
    t->sink->arrow(t, &(struct prof_trace_arrow){.id = prof_trace_flow(event->id, event->kind),
                                                 .from_pid = call->pid,
                                                 .from_tid = call->tid,
                                                 .from_ns = call->ts,
                                                 .to_pid = slice->pid,
                                                 .to_tid = slice->tid,
                                                 .to_ns = slice->start_ns});
}

void prof_trace_put_device(struct prof_trace *t, const struct prof_event *event)
{
    static const char *const categories[] = {
        [PROF_EVENT_KERNEL] = "kernel",
        [PROF_EVENT_TRANSFER] = "gpu_memcpy",
        [PROF_EVENT_MEMSET] = "gpu_memset",
        [PROF_EVENT_GRAPH] = "kernel", /* readers know no better word */
    };
    bool memory = event->kind == PROF_EVENT_TRANSFER || event->kind == PROF_EVENT_MEMSET;
    const char *name = memory ? memory_name(t, event) : event->name ? event->name : "n/a";
    if (event->start_ns == PROF_UNKNOWN) {
        put_not_started(t, event, name);
        return;
    }
    struct prof_trace_call call = {0};
    bool ended = event->duration_ns != PROF_UNKNOWN, has_call = call_of(t, event, &call);
    bool of_graph = has_call && event->correlation != PROF_UNKNOWN;
    int64_t pid = prof_trace_device_pid(&t->names, event->device);
    int64_t tid = prof_trace_stream_tid(&t->names, event->stream);
    int64_t flow = of_graph ? call.flow : prof_trace_flow(event->id, event->kind);
    struct prof_trace_slice slice = {.category = categories[event->kind],
                                     .name = name,
                                     .pid = pid,
                                     .tid = prof_trace_place(t, PROF_TRACE_STREAM, event->stream,
                                                             pid, tid, event->start_ns,
                                                             ended ? event->duration_ns : 0),
                                     .start_ns = event->start_ns,
                                     .duration_ns = event->duration_ns,
                                     .flow_in = has_call && ended ? flow : 0,
                                     .stack = prof_trace_stack(t, event->stack),
                                     .flow_on = of_graph};
    t->sink->begin(t, &slice);
    if (has_call)
        put_external_id(t, call.thread, call.ts);
    put_args(t, event, pid, tid, flow);
    t->sink->end(t);
    if (slice.flow_in && t->sink->arrow)
        put_launch_arrow(t, event, &call, &slice);
    if (slice.flow_in && t->projects &&
        !prof_trace_ranges_work(&t->ranges, call.thread, call.ts, event->stream, event->start_ns,
                                prof_add(event->start_ns, event->duration_ns)))
        t->no_memory = true;
}

/* ---- the host -------------------------------------------------------------------------------- */

static const char *api_category(const struct prof_trace *t, const struct prof_event *event)
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

static void store_trace_call(struct prof_trace_call *table, int64_t a, int64_t b,
                             struct prof_trace_call value)
{
    struct prof_trace_call *slot = prof_trace_call_slot(table, a, b, &value.key);
    *slot = value;
}

static int64_t known_or_default(int64_t value, int64_t otherwise)
{
    return value == PROF_UNKNOWN ? otherwise : value;
}

static const char *event_name_or_na(const struct prof_event *event)
{
    return event->name ? event->name : "n/a";
}

/* Begin a slice on the track of the event's thread, or an instant there when `instant`. */
static void begin_on_thread(struct prof_trace *t, const struct prof_event *event,
                            enum prof_trace_lane lane, const char *category, const char *name,
                            int64_t duration, bool instant)
{
    int64_t pid = prof_trace_process_pid(&t->names, event->process);
    int64_t own = prof_trace_thread_tid(&t->names, event->thread);
    t->sink->begin(
        t, &(struct prof_trace_slice){
               .category = category,
               .name = name,
               .pid = pid,
               .tid = prof_trace_place(t, lane, event->thread, pid, own, event->start_ns, duration),
               .start_ns = event->start_ns,
               .duration_ns = instant ? PROF_UNKNOWN : duration});
}

static void put_api(struct prof_trace *t, const struct prof_event *event)
{
    int64_t pid = prof_trace_process_pid(&t->names, event->process);
    int64_t own = prof_trace_thread_tid(&t->names, event->thread);
    int64_t duration = known_or_default(event->duration_ns, 0);
    int64_t flow = prof_trace_flow(event->record_id, event->record_kind);
    int64_t tid =
        prof_trace_place(t, PROF_TRACE_THREAD, event->thread, pid, own, event->start_ns, duration);
    struct prof_trace_call here = {
        .flow = flow, .pid = pid, .tid = tid, .ts = event->start_ns, .thread = event->thread};
    bool launches_graph = event->correlation != PROF_UNKNOWN;
    bool has_record = PROF_EVENTS(event->record_kind) & PROF_EVENTS_DEVICE;
    if (launches_graph)
        store_trace_call(t->graphs, event->process, event->correlation, here);
    else if (tid != own)
        store_trace_call(t->strays, event->record_kind, event->record_id, here);
    t->sink->begin(t,
                   &(struct prof_trace_slice){.category = api_category(t, event),
                                              .name = event_name_or_na(event),
                                              .pid = pid,
                                              .tid = tid,
                                              .start_ns = event->start_ns,
                                              .duration_ns = duration,
                                              .flow_out = launches_graph || has_record ? flow : 0,
                                              .stack = prof_trace_stack(t, event->stack)});
    put_external_id(t, event->thread, event->start_ns);
    t->sink->integer(t, "correlation", flow);
    prof_trace_known(t, "result", event->result);
    prof_trace_called_from(t, event->stack);
    t->sink->end(t);
}

/* Without a stream the call on its thread's track shows it all. The argument "stream" would make it
 * device work for HTA, which adds it to the busy time. */
static void put_sync(struct prof_trace *t, const struct prof_event *event)
{
    static const char *const names[] = {"Sync", "Event Sync", "Stream Wait Event", "Stream Sync",
                                        "Context Sync"};
    const char *name =
        event->sync_kind > 0 && event->sync_kind <= 4 ? names[event->sync_kind] : names[0];
    int64_t duration = known_or_default(event->duration_ns, 0);
    if (!event->stream)
        return;
    int64_t pid = prof_trace_device_pid(&t->names, event->device);
    int64_t stream = prof_trace_stream_tid(&t->names, event->stream);
    int64_t tid = prof_trace_place(t, PROF_TRACE_WAITS, event->stream, pid, stream + 1000000,
                                   event->start_ns, duration);
    t->sink->begin(t, &(struct prof_trace_slice){.category = "cuda_sync",
                                                 .name = name,
                                                 .pid = pid,
                                                 .tid = tid,
                                                 .start_ns = event->start_ns,
                                                 .duration_ns = duration});
    t->sink->text(t, "cuda_sync_kind", name);
    t->sink->integer(t, "synchronized stream", stream);
    t->sink->integer(t, "device", pid);
    if (event->context)
        t->sink->integer(t, "context", event->context);
    t->sink->integer(t, "correlation", prof_trace_flow(event->id, event->kind));
    prof_trace_known(t, "wait_on_cuda_event_id", event->sync_event);
    t->sink->end(t);
}

static void put_note_args(struct prof_trace *t, const struct prof_event *event)
{
    if (event->domain)
        t->sink->text(t, "domain", event->domain);
    if (event->category_name)
        t->sink->text(t, "category", event->category_name);
    if (event->payload == PROF_PAYLOAD_INT)
        t->sink->integer(t, "payload", event->payload_int);
    else if (event->payload == PROF_PAYLOAD_REAL)
        t->sink->real(t, "payload", event->payload_real);
}

/* Push/pop ranges share the thread's track with the calls inside them; start/end ranges need not
 * nest with anything and have tracks of their own. */
static void put_range_slice(struct prof_trace *t, const struct prof_event *event)
{
    bool open = event->duration_ns == PROF_UNKNOWN;
    int64_t duration = !open                         ? event->duration_ns
                       : t->end_ns > event->start_ns ? prof_subtract(t->end_ns, event->start_ns)
                                                     : 0;
    const char *name = event_name_or_na(event);
    bool pushed = event->depth != PROF_UNKNOWN;
    /* Of an imported trace: no reader counts these as operators or annotations. */
    bool function = event->domain && !strcmp(event->domain, "python_function");
    bool is_operator = pushed && prof_pytorch_is_operator(event);
    begin_on_thread(t, event, pushed ? PROF_TRACE_THREAD : PROF_TRACE_RANGES,
                    function      ? "python_function"
                    : is_operator ? "cpu_op"
                                  : "user_annotation",
                    name, duration, false);
    if (!function)
        t->sink->integer(t, "External id", event->id);
    put_note_args(t, event);
    if (open)
        t->sink->flag(t, "open at the end", true);
    t->sink->end(t);
    struct prof_trace_range range = {.id = event->id,
                                     .name = name,
                                     .domain = event->domain,
                                     .is_operator = is_operator,
                                     .start_ns = event->start_ns,
                                     .end_ns =
                                         open ? INT64_MAX : prof_add(event->start_ns, duration)};
    if (t->projects && !function && !prof_trace_ranges_add(&t->ranges, event->thread, &range))
        t->no_memory = true;
}

static void put_marker(struct prof_trace *t, const struct prof_event *event)
{
    begin_on_thread(t, event, PROF_TRACE_THREAD, "cpu_instant_event", event_name_or_na(event), 0,
                    true);
    put_note_args(t, event);
    t->sink->end(t);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static struct prof_trace_usage *find_memory_usage(struct prof_trace *t,
                                                  const struct prof_event *event)
{
    char name[96];
    for (size_t i = 0; i < t->usage.count; i++) {
        struct prof_trace_usage *u = &t->usage.data[i];
        if (u->process == event->process && u->device == event->device &&
            u->kind == event->target_kind)
            return u;
    }
    struct prof_trace_usage *usage = prof_array_add(&t->usage);
    if (!usage) {
        t->no_memory = true;
        return NULL;
    }
    const char *kind = prof_memory_kind_text(event->target_kind);
    if (event->device)
        snprintf(name, sizeof name, "memory: %s, device %lld", kind,
                 (long long)prof_trace_device_pid(&t->names, event->device));
    else
        snprintf(name, sizeof name, "memory: %s", kind);
    *usage = (struct prof_trace_usage){
        .process = event->process,
        .device = event->device,
        .kind = event->target_kind,
        .name = prof_trace_keep(t, UINT64_C(1) << 63 | t->usage.count, name)};
    return usage;
}

/* What the process has on the device, of all kinds: Kineto's "Total Allocated". */
static int64_t allocated_bytes(const struct prof_trace *t, const struct prof_event *event)
{
    int64_t sum = 0;
    for (size_t i = 0; i < t->usage.count; i++) {
        const struct prof_trace_usage *u = &t->usage.data[i];
        if (u->process == event->process && u->device == event->device)
            sum = prof_add(sum, u->bytes);
    }
    return sum;
}

/* c10's numbers of device types, which PyTorch's readers know. */
enum { TORCH_CPU = 0, TORCH_CUDA = 1 };

/* As an instant with the address, and as a counter: live bytes per process, device and kind. */
static void put_memory_event(struct prof_trace *t, const struct prof_event *event)
{
    const struct prof_filter *filter = t->options ? t->options->filter : NULL;
    if (event->bytes == PROF_UNKNOWN)
        return;
    if (event->kind == PROF_EVENT_FREE && filter && event->end_ns < filter->begin_ns)
        return; /* its allocation was not counted */
    struct prof_trace_usage *usage = find_memory_usage(t, event);
    int64_t bytes = event->kind == PROF_EVENT_ALLOC ? event->bytes : -event->bytes;
    if (!usage)
        return;
    usage->bytes = prof_add(usage->bytes, bytes);
    begin_on_thread(t, event, PROF_TRACE_THREAD, "cpu_instant_event", "[memory]", 0, true);
    t->sink->integer(t, "Device Type", event->device ? TORCH_CUDA : TORCH_CPU);
    t->sink->integer(t, "Device Id",
                     event->device ? prof_trace_device_pid(&t->names, event->device) : -1);
    prof_trace_known(t, "Addr", event->address);
    t->sink->integer(t, "Bytes", bytes);
    t->sink->integer(t, "Total Allocated", allocated_bytes(t, event));
    t->sink->text(t, "kind", prof_memory_kind_text(event->target_kind));
    prof_trace_called_from(t, event->stack);
    t->sink->end(t);
    t->sink->counter(
        t, &(struct prof_trace_counter){.name = usage->name,
                                        .key = "bytes",
                                        .pid = prof_trace_process_pid(&t->names, event->process),
                                        .time_ns = event->start_ns,
                                        .value = usage->bytes});
}

/* ---- what else takes time -------------------------------------------------------------------- */

/* Under Kineto's name for it, on the track of the thread whose time it took; where none is known,
 * on one of the process. */
static void put_overhead_slice(struct prof_trace *t, const struct prof_event *event)
{
    int64_t duration = known_or_default(event->duration_ns, 0);
    int64_t pid = prof_trace_process_pid(&t->names, event->process);
    if (event->thread) {
        begin_on_thread(t, event, PROF_TRACE_THREAD, "overhead", event_name_or_na(event), duration,
                        false);
    } else {
        t->sink->begin(t, &(struct prof_trace_slice){
                              .category = "overhead",
                              .name = event_name_or_na(event),
                              .pid = pid,
                              .tid = prof_trace_place(t, PROF_TRACE_OVERHEAD, event->process, pid,
                                                      0, event->start_ns, duration),
                              .start_ns = event->start_ns,
                              .duration_ns = duration});
    }
    t->sink->end(t);
}

/* Unified memory, on a track of its device: pages that moved, or an instant of page faults. */
static void put_migration_event(struct prof_trace *t, const struct prof_event *event)
{
    int64_t pid = prof_trace_device_pid(&t->names, event->device);
    int64_t tid = prof_trace_place(t, PROF_TRACE_MIGRATIONS, event->device, pid, 0, event->start_ns,
                                   known_or_default(event->duration_ns, 0));
    t->sink->begin(t, &(struct prof_trace_slice){.category = "unified_memory",
                                                 .name = event_name_or_na(event),
                                                 .pid = pid,
                                                 .tid = tid,
                                                 .start_ns = event->start_ns,
                                                 .duration_ns = event->duration_ns});
    prof_trace_known(t, "bytes", event->bytes);
    prof_trace_known(t, "page faults", event->faults);
    t->sink->end(t);
}

void prof_trace_put_host(struct prof_trace *t, const struct prof_event *event)
{
    if (event->start_ns == PROF_UNKNOWN)
        return;
    switch (event->kind) {
    case PROF_EVENT_API:
        put_api(t, event);
        break;
    case PROF_EVENT_SYNC:
        put_sync(t, event);
        break;
    case PROF_EVENT_RANGE:
        put_range_slice(t, event);
        break;
    case PROF_EVENT_MARKER:
        put_marker(t, event);
        break;
    case PROF_EVENT_ALLOC:
    case PROF_EVENT_FREE:
        put_memory_event(t, event);
        break;
    case PROF_EVENT_OVERHEAD:
    case PROF_EVENT_JIT:
        put_overhead_slice(t, event);
        break;
    case PROF_EVENT_MIGRATION:
        put_migration_event(t, event);
        break;
    default:
        break;
    }
}
