/* Kernels, copies and fills of a Chrome trace, under the names and arguments that Kineto's readers
 * look for, and the arrows from the calls that asked for them. */
#include <stdio.h>
#include <string.h>

#include "report/chrome_trace.h"

static void put_three(struct prof_chrome *t, const char *key, const int64_t *values)
{
    prof_json_array(&t->json, key);
    for (int i = 0; i < 3; i++)
        prof_json_known(&t->json, NULL, values[i]);
    prof_json_end(&t->json);
}

static void put_flow(struct prof_chrome *t, const char *ph, int64_t flow, int64_t pid, int64_t tid,
                     int64_t ts)
{
    prof_chrome_begin(t, ph, "ac2g", "ac2g", pid, tid, ts);
    prof_json_int(&t->json, "id", flow);
    if (ph[0] == 'f')
        prof_json_string(&t->json, "bp", "e");
    prof_json_end(&t->json);
}

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
static void device_name(const struct prof_event *event, char *out, size_t size)
{
    char from[32], to[32];
    memory_word(event->source_kind, from);
    memory_word(event->target_kind, to);
    if (event->kind == PROF_EVENT_MEMSET)
        snprintf(out, size, "Memset (%s)", to);
    else if (event->source_kind || event->target_kind)
        snprintf(out, size, "Memcpy %s (%s -> %s)", prof_copy_kind_text(event->copy_kind), from,
                 to);
    else
        snprintf(out, size, "Memcpy %s", prof_copy_kind_text(event->copy_kind));
}

static void put_kernel_args(struct prof_chrome *t, const struct prof_event *event)
{
    const struct prof_config *config = event->config;
    if (!config)
        return;
    prof_chrome_put(t, "registers per thread", config->registers);
    if (config->shared_static != PROF_UNKNOWN && config->shared_dynamic != PROF_UNKNOWN)
        prof_chrome_put(t, "shared memory", config->shared_static + config->shared_dynamic);
    prof_chrome_put(t, "local memory", config->local_bytes);
    put_three(t, "grid", config->grid);
    put_three(t, "block", config->block);
    if (config->cluster[0] != PROF_UNKNOWN)
        put_three(t, "cluster", config->cluster);
}

static void put_copy_args(struct prof_chrome *t, const struct prof_event *event)
{
    prof_chrome_put(t, "bytes", event->bytes);
    if (event->bytes != PROF_UNKNOWN && event->duration_ns > 0)
        prof_json_fixed(&t->json, "memory bandwidth (GB/s)",
                        (double)event->bytes / (double)event->duration_ns, 3);
    prof_chrome_put(t, "blocking", event->blocking);
}

static void put_device_args(struct prof_chrome *t, const struct prof_event *event, int64_t pid,
                            int64_t tid, int64_t flow)
{
    prof_json_object(&t->json, "args");
    prof_json_int(&t->json, "device", pid);
    if (event->context)
        prof_json_int(&t->json, "context", event->context);
    prof_json_int(&t->json, "stream", tid);
    prof_json_int(&t->json, "correlation", flow);
    prof_chrome_put(t, "queued ns", event->queue_delay_ns);
    prof_chrome_put(t, "submitted ns", event->submit_delay_ns);
    prof_chrome_put(t, "graph node id", event->graph_node);
    if (event->kind == PROF_EVENT_KERNEL)
        put_kernel_args(t, event);
    else if (event->kind == PROF_EVENT_GRAPH)
        prof_chrome_put(t, "graph id", event->graph);
    else
        put_copy_args(t, event);
    if (event->duration_ns == PROF_UNKNOWN)
        prof_json_bool(&t->json, "unfinished", true);
    prof_json_end(&t->json);
}

/* The call's end of the arrow: where its slice was drawn. False when it has none. */
static bool call_of(struct prof_chrome *t, const struct prof_event *event,
                    struct prof_chrome_call *call)
{
    const struct prof_filter *filter = t->options ? t->options->filter : NULL;
    uint64_t key;
    if (event->correlation != PROF_UNKNOWN) {
        *call = *prof_chrome_call_slot(t->graphs, event->process, event->correlation, &key);
        return call->key == key;
    }
    if (event->api_start_ns == PROF_UNKNOWN || !event->thread)
        return false;
    if (filter && (event->api_start_ns < filter->begin_ns ||
                   (filter->end_ns && event->api_start_ns >= filter->end_ns)))
        return false; /* the call's slice is not in this trace */
    *call = *prof_chrome_call_slot(t->strays, event->kind, event->id, &key);
    if (call->key != key)
        *call = (struct prof_chrome_call){.pid = prof_chrome_process_pid(&t->names, event->process),
                                          .tid = prof_chrome_thread_tid(&t->names, event->thread),
                                          .ts = event->api_start_ns};
    call->flow = event->id * PROF_CHROME_KINDS + (int64_t)event->kind;
    return true;
}

void prof_chrome_put_device(struct prof_chrome *t, const struct prof_event *event)
{
    static const char *const categories[] = {
        [PROF_EVENT_KERNEL] = "kernel",
        [PROF_EVENT_TRANSFER] = "gpu_memcpy",
        [PROF_EVENT_MEMSET] = "gpu_memset",
        [PROF_EVENT_GRAPH] = "kernel", /* readers know no better word */
    };
    char copy[128];
    const char *name = event->name;
    struct prof_chrome_call call = {0};
    int64_t pid = prof_chrome_device_pid(&t->names, event->device);
    int64_t tid = prof_chrome_stream_tid(&t->names, event->stream);
    int64_t flow = event->id * PROF_CHROME_KINDS + (int64_t)event->kind;
    bool has_call = call_of(t, event, &call);
    if (has_call && call.key && event->correlation != PROF_UNKNOWN)
        flow = call.flow;
    if (event->kind == PROF_EVENT_TRANSFER || event->kind == PROF_EVENT_MEMSET) {
        device_name(event, copy, sizeof copy);
        name = copy;
    }
    if (event->start_ns == PROF_UNKNOWN) {
        /* Never seen to start: an instant where it was asked for. */
        if (event->api_start_ns == PROF_UNKNOWN)
            return;
        prof_chrome_begin(t, "i", "not started", name,
                          prof_chrome_process_pid(&t->names, event->process),
                          prof_chrome_thread_tid(&t->names, event->thread), event->api_start_ns);
        prof_json_string(&t->json, "s", "t");
        prof_json_end(&t->json);
        return;
    }
    bool ended = event->duration_ns != PROF_UNKNOWN;
    int64_t lane = prof_chrome_place(t, PROF_CHROME_STREAM, event->stream, pid, tid,
                                     event->start_ns, ended ? event->duration_ns : 0);
    prof_chrome_begin(t, ended ? "X" : "i", categories[event->kind], name, pid, lane,
                      event->start_ns);
    if (ended)
        prof_json_us(&t->json, "dur", event->duration_ns);
    else
        prof_json_string(&t->json, "s", "t");
    put_device_args(t, event, pid, tid, flow);
    prof_json_end(&t->json);
    if (has_call && ended) {
        /* Several records of one graph launch: each arrow has its own number. */
        int64_t arrow = event->id * PROF_CHROME_KINDS + (int64_t)event->kind;
        put_flow(t, "s", arrow, call.pid, call.tid, call.ts);
        put_flow(t, "f", arrow, pid, lane, event->start_ns);
    }
}
