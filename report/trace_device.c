/* Kernels, copies and fills of a trace, under the names and arguments that Kineto's readers
 * look for, and the arrows from the calls that asked for them. */
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

/* Kineto's "blocks per SM" and "warps per SM": of the whole grid, spread over the device. */
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
    t->sink->real(t, "blocks per SM", blocks / (double)device->units);
    t->sink->real(t, "warps per SM",
                  blocks * threads / (double)device->warp / (double)device->units);
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

/* Never seen to start: an instant where it was asked for. */
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
    put_args(t, event, pid, tid, flow);
    t->sink->end(t);
    if (slice.flow_in && t->sink->arrow)
        put_launch_arrow(t, event, &call, &slice);
    if (slice.flow_in && t->projects &&
        !prof_trace_ranges_work(&t->ranges, call.thread, call.ts, event->stream, event->start_ns,
                                prof_add(event->start_ns, event->duration_ns)))
        t->no_memory = true;
}
