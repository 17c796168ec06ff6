/* A trace in Perfetto's native format (github.com/google/perfetto, protos/perfetto/trace): a stream
 * of packets of one sequence. A slice is two of them, its begin and its end; names, categories,
 * call stacks and what arguments say in words are sent once and known by number afterwards
 *. About a third of the size of the Chrome trace, exact to the nanosecond,
 * and without its limits: 64-bit times of CLOCK_MONOTONIC. */
#include <errno.h>
#include <string.h>

#include "libprof/base/map.h"
#include "libprof/base/saturate.h"
#include "report/protobuf.h"
#include "report/walk.h"
#include "report/trace.h"
#include "report/writers.h"

/* Field numbers of InternedData; each kind of entry has numbers of its own. */
enum prof_perfetto_kind {
    PROF_PERFETTO_CATEGORY = 1,
    PROF_PERFETTO_NAME = 2,
    PROF_PERFETTO_ANNOTATION = 3,
    PROF_PERFETTO_FUNCTION = 5,
    PROF_PERFETTO_FRAME = 6,
    PROF_PERFETTO_CALLSTACK = 7,
    PROF_PERFETTO_SOURCE_PATH = 18,
    PROF_PERFETTO_VALUE = 29, /* texts that annotations have as values */
    PROF_PERFETTO_KINDS
};

struct prof_perfetto_interned {
    struct prof_map numbers[PROF_PERFETTO_KINDS]; /* by the key of an entry */
    struct prof_protobuf fresh;                   /* entries that were not sent */
    struct prof_protobuf entry;
    bool no_memory;
};

void prof_perfetto_interned_free(struct prof_perfetto_interned *interned);

/* ---- interned data --------------------------------------------------------------------------- */

/* Field numbers, by message. */
enum {
    ENTRY_IID = 1,
    ENTRY_TEXT = 2,
    FRAME_FUNCTION = 2,
    FRAME_SOURCE_PATH = 5,
    FRAME_LINE = 6,
    FRAME_KIND = 7,
    CALLSTACK_FRAME = 2,
};

enum { KIND_NATIVE = 1, KIND_KERNEL = 2, KIND_INTERPRETED = 3 };

/* The number of the entry of `key`; `fresh` when it has none so far. */
static int64_t interned_number(struct prof_perfetto_interned *in, enum prof_perfetto_kind kind,
                               uint64_t key, bool *fresh)
{
    const uint64_t *known = prof_map_get(&in->numbers[kind], key);
    *fresh = !known;
    if (known)
        return (int64_t)*known;
    uint64_t number = in->numbers[kind].count + 1;
    if (!prof_map_put(&in->numbers[kind], key, number))
        in->no_memory = true;
    return (int64_t)number;
}

static void begin_entry(struct prof_perfetto_interned *in, int64_t iid)
{
    prof_protobuf_clear(&in->entry);
    prof_protobuf_int(&in->entry, ENTRY_IID, iid);
}

static void end_entry(struct prof_perfetto_interned *in, enum prof_perfetto_kind kind)
{
    prof_protobuf_message(&in->fresh, kind, &in->entry);
}

/* The number of a text of this kind. Its address is its key: it does not move until the end. */
static int64_t intern_text(struct prof_perfetto_interned *in, enum prof_perfetto_kind kind,
                           const char *text)
{
    bool fresh;
    int64_t iid = interned_number(in, kind, (uint64_t)(uintptr_t)text, &fresh);
    if (fresh) {
        begin_entry(in, iid);
        prof_protobuf_text(&in->entry, ENTRY_TEXT, text);
        end_entry(in, kind);
    }
    return iid;
}

static int64_t frame_kind(const struct prof_frame *frame)
{
    return frame->kind == PROF_FRAME_NATIVE   ? KIND_NATIVE
           : frame->kind == PROF_FRAME_KERNEL ? KIND_KERNEL
           : frame->kind == PROF_FRAME_PYTHON ? KIND_INTERPRETED
                                              : 0;
}

static int64_t interned_frame(struct prof_perfetto_interned *in,
                              const struct prof_report_stacks *stacks, uint32_t place)
{
    bool fresh;
    int64_t iid = interned_number(in, PROF_PERFETTO_FRAME, place, &fresh);
    if (!fresh)
        return iid;
    const struct prof_frame *frame = prof_report_stacks_frame(stacks, place);
    const char *path = frame->file ? frame->file : frame->module;
    int64_t function = intern_text(in, PROF_PERFETTO_FUNCTION, frame->function);
    int64_t source = path ? intern_text(in, PROF_PERFETTO_SOURCE_PATH, path) : 0;
    begin_entry(in, iid);
    prof_protobuf_int(&in->entry, FRAME_FUNCTION, function);
    if (source)
        prof_protobuf_int(&in->entry, FRAME_SOURCE_PATH, source);
    if (frame->file && frame->line > 0 && frame->line <= UINT32_MAX)
        prof_protobuf_int(&in->entry, FRAME_LINE, frame->line);
    if (frame_kind(frame))
        prof_protobuf_int(&in->entry, FRAME_KIND, frame_kind(frame));
    end_entry(in, PROF_PERFETTO_FRAME);
    return iid;
}

/* The number of the callstack that ends in `node` (not 0) of the tree, with all its frames. */
static int64_t intern_stack(struct prof_perfetto_interned *in,
                            const struct prof_report_stacks *stacks, uint32_t node)
{
    bool fresh;
    int64_t iid = interned_number(in, PROF_PERFETTO_CALLSTACK, node, &fresh);
    PROF_FREED PROF_ARRAY(int64_t) frames = {0}; /* innermost first */
    if (!fresh)
        return iid;
    for (; node; node = stacks->nodes.data[node - 1].parent) {
        int64_t *slot = prof_array_add(&frames);
        if (slot)
            *slot = interned_frame(in, stacks, stacks->nodes.data[node - 1].place);
        else
            in->no_memory = true;
    }
    begin_entry(in, iid);
    for (size_t i = frames.count; i-- > 0;)
        prof_protobuf_int(&in->entry, CALLSTACK_FRAME, frames.data[i]);
    end_entry(in, PROF_PERFETTO_CALLSTACK);
    return iid;
}

void prof_perfetto_interned_free(struct prof_perfetto_interned *in)
{
    for (size_t i = 0; i < PROF_PERFETTO_KINDS; i++)
        prof_map_free(&in->numbers[i]);
    prof_protobuf_free(&in->fresh);
    prof_protobuf_free(&in->entry);
}

/* ---- the trace ------------------------------------------------------------------------------- */

/* Field numbers, by message. */
enum {
    TRACE_PACKET = 1,
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_DEFAULTS = 59,
    PACKET_TRACK = 60,
    PACKET_SAMPLE = 66,
    PACKET_FIRST = 87,
    DEFAULTS_CLOCK = 58,
    SNAPSHOT_CLOCK = 1,
    SNAPSHOT_PRIMARY = 2,
    CLOCK_ID = 1,
    CLOCK_TIME = 2,
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
    TRACK_CHILD_ORDERING = 11,
    TRACK_RANK = 12,
    PROCESS_PID = 1,
    PROCESS_NAME = 6,
    THREAD_PID = 1,
    THREAD_TID = 2,
    THREAD_NAME = 5,
    COUNTER_UNIT = 3,
    EVENT_CATEGORY_IID = 3,
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK = 11,
    EVENT_COUNTER_VALUE = 30,
    EVENT_COUNTER_REAL = 44,
    EVENT_FLOW = 47,
    EVENT_LAST_FLOW = 48,
    EVENT_CALLSTACK_IID = 56,
    SAMPLE_PID = 2,
    SAMPLE_TID = 3,
    SAMPLE_CALLSTACK_IID = 4,
    SAMPLE_MODE = 5,
    ANNOTATION_NAME_IID = 1,
    ANNOTATION_BOOL = 2,
    ANNOTATION_INT = 4,
    ANNOTATION_DOUBLE = 5,
    ANNOTATION_STRING = 6,
    ANNOTATION_ARRAY = 12,
    ANNOTATION_STRING_IID = 17,
};

/* Their enums. */
enum { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3, COUNTER = 4 };
enum { CLEARED = 1, NEEDS_STATE = 2 };
enum { CLOCK_OF_WALL = 1, CLOCK_OF_PERFKIT = 3 }; /* REALTIME, MONOTONIC */
enum { EXPLICIT_ORDER = 3, UNIT_BYTES = 3 };
enum { MODE_KERNEL = 1, MODE_USER = 2 };

#define SEQUENCE 1
#define FLUSH_BYTES (64u << 10)
/* Spaces for the numbers of tracks: of a thread or stream (its pid and tid below), of a process, of
 * a counter, of statements about the capture. */
#define UUID_TRACK (UINT64_C(1) << 60)
#define UUID_PROCESS (UINT64_C(1) << 61)
#define UUID_COUNTER (UINT64_C(1) << 62)
#define UUID_CAPTURE (UINT64_C(1) << 59)

struct perfetto {
    struct prof_trace trace;
    FILE *out;
    int64_t base_ns;                                 /* CLOCK_MONOTONIC at time 0 */
    struct prof_protobuf ready;                      /* packets to be written */
    struct prof_protobuf packet, event, inner, item; /* in the making, inner ones */
    struct prof_perfetto_interned interned;
    struct prof_map counters;               /* address of the name -> 1 */
    struct prof_map launches;               /* configuration and device -> place in parts + 1 */
    PROF_ARRAY(struct prof_protobuf) parts; /* the annotations of a launch */
    int64_t end_ns; /* of the slice in the making; PROF_UNKNOWN: an instant */
    int64_t start_ns;
    uint64_t track;
    int write_errno; /* 0 = all well */
};

static struct perfetto *perfetto(struct prof_trace *t)
{
    return (struct perfetto *)t;
}

static uint64_t track_uuid(int64_t pid, int64_t tid)
{
    return UUID_TRACK | (uint64_t)pid << 32 | (uint32_t)tid;
}

/* ---- packets --------------------------------------------------------------------------------- */

static void flush_packets(struct perfetto *p)
{
    errno = 0;
    if (!p->write_errno && p->ready.count &&
        fwrite(p->ready.data, 1, p->ready.count, p->out) != p->ready.count)
        p->write_errno = errno ? errno : EIO;
    prof_protobuf_clear(&p->ready);
}

static void begin_packet(struct perfetto *p, int64_t flags)
{
    prof_protobuf_clear(&p->packet);
    prof_protobuf_int(&p->packet, PACKET_SEQUENCE, SEQUENCE);
    prof_protobuf_int(&p->packet, PACKET_SEQUENCE_FLAGS, flags);
}

static void end_packet(struct perfetto *p)
{
    prof_protobuf_message(&p->ready, TRACE_PACKET, &p->packet);
    if (p->ready.count >= FLUSH_BYTES)
        flush_packets(p);
}

static void put_packet_time(struct perfetto *p, int64_t ns)
{
    int64_t time = prof_add(p->base_ns, ns);
    prof_protobuf_int(&p->packet, PACKET_TIMESTAMP, time < 0 ? 0 : time);
}

/* ---- tracks ---------------------------------------------------------------------------------- */

static void end_track(struct perfetto *p)
{
    begin_packet(p, NEEDS_STATE);
    prof_protobuf_message(&p->packet, PACKET_TRACK, &p->event);
    end_packet(p);
}

static void begin_track(struct perfetto *p, uint64_t uuid, uint64_t parent)
{
    prof_protobuf_clear(&p->event);
    prof_protobuf_clear(&p->inner);
    prof_protobuf_int(&p->event, TRACK_UUID, (int64_t)uuid);
    if (parent)
        prof_protobuf_int(&p->event, TRACK_PARENT, (int64_t)parent);
}

static void put_perfetto_process(struct prof_trace *t, const struct prof_trace_process *process)
{
    struct perfetto *p = perfetto(t);
    begin_track(p, UUID_PROCESS | (uint64_t)process->pid, 0);
    prof_protobuf_int(&p->event, TRACK_CHILD_ORDERING, EXPLICIT_ORDER);
    if (process->device) {
        prof_protobuf_clear(&p->item);
        prof_protobuf_raw(&p->item, process->label, strlen(process->label));
        prof_protobuf_raw(&p->item, ": ", 2);
        prof_protobuf_raw(&p->item, process->name, strlen(process->name) + 1);
        if (!p->item.failed)
            prof_protobuf_text(&p->event, TRACK_NAME, (const char *)p->item.data);
    } else {
        prof_protobuf_int(&p->inner, PROCESS_PID, process->pid);
        prof_protobuf_text(&p->inner, PROCESS_NAME, process->name);
        prof_protobuf_message(&p->event, TRACK_PROCESS, &p->inner);
    }
    end_track(p);
}

static void put_perfetto_track(struct prof_trace *t, const struct prof_trace_track *track)
{
    struct perfetto *p = perfetto(t);
    bool known = track->device || prof_trace_is_process(&t->names, track->pid);
    begin_track(p, track_uuid(track->pid, track->tid),
                known ? UUID_PROCESS | (uint64_t)track->pid : 0);
    if (track->thread && known) {
        prof_protobuf_int(&p->inner, THREAD_PID, track->pid);
        prof_protobuf_int(&p->inner, THREAD_TID, track->tid);
        if (track->thread->name)
            prof_protobuf_text(&p->inner, THREAD_NAME, track->thread->name);
        prof_protobuf_message(&p->event, TRACK_THREAD, &p->inner);
    } else {
        prof_protobuf_text(&p->event, TRACK_NAME, track->name);
    }
    prof_protobuf_int(&p->event, TRACK_RANK, track->sort);
    end_track(p);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void put_perfetto_slice(struct prof_trace *t, const struct prof_trace_slice *slice)
{
    struct perfetto *p = perfetto(t);
    int64_t category = intern_text(&p->interned, PROF_PERFETTO_CATEGORY, slice->category);
    int64_t name = intern_text(&p->interned, PROF_PERFETTO_NAME, slice->name);
    bool instant = slice->duration_ns == PROF_UNKNOWN;
    p->start_ns = slice->start_ns;
    p->end_ns = instant ? PROF_UNKNOWN : prof_add(slice->start_ns, slice->duration_ns);
    p->track = track_uuid(slice->pid, slice->tid);
    prof_protobuf_clear(&p->event);
    prof_protobuf_int(&p->event, EVENT_TYPE, instant ? INSTANT : SLICE_BEGIN);
    prof_protobuf_int(&p->event, EVENT_TRACK, (int64_t)p->track);
    prof_protobuf_int(&p->event, EVENT_NAME_IID, name);
    prof_protobuf_int(&p->event, EVENT_CATEGORY_IID, category);
    if (slice->flow_out)
        prof_protobuf_fixed64(&p->event, EVENT_FLOW, (uint64_t)slice->flow_out);
    if (slice->flow_in)
        prof_protobuf_fixed64(&p->event, slice->flow_on ? EVENT_FLOW : EVENT_LAST_FLOW,
                              (uint64_t)slice->flow_in);
    if (slice->stack)
        prof_protobuf_int(&p->event, EVENT_CALLSTACK_IID,
                          intern_stack(&p->interned, &t->stacks, slice->stack));
}

/* Before the event that uses them. */
static void send_interned(struct perfetto *p)
{
    if (!p->interned.fresh.count)
        return;
    begin_packet(p, NEEDS_STATE);
    prof_protobuf_message(&p->packet, PACKET_INTERNED, &p->interned.fresh);
    end_packet(p);
    prof_protobuf_clear(&p->interned.fresh);
    p->trace.no_memory |= p->interned.no_memory;
}

static void put_perfetto_event(struct perfetto *p, int64_t ns)
{
    send_interned(p);
    begin_packet(p, NEEDS_STATE);
    put_packet_time(p, ns);
    prof_protobuf_message(&p->packet, PACKET_TRACK_EVENT, &p->event);
    end_packet(p);
}

static void put_perfetto_end(struct prof_trace *t)
{
    struct perfetto *p = perfetto(t);
    put_perfetto_event(p, p->start_ns);
    if (p->end_ns == PROF_UNKNOWN)
        return;
    prof_protobuf_clear(&p->event);
    prof_protobuf_int(&p->event, EVENT_TYPE, SLICE_END);
    prof_protobuf_int(&p->event, EVENT_TRACK, (int64_t)p->track);
    put_perfetto_event(p, p->end_ns);
}

static void begin_annotation(struct perfetto *p, const char *key)
{
    int64_t name = intern_text(&p->interned, PROF_PERFETTO_ANNOTATION, key);
    prof_protobuf_clear(&p->inner);
    prof_protobuf_int(&p->inner, ANNOTATION_NAME_IID, name);
}

static void end_annotation(struct perfetto *p)
{
    prof_protobuf_message(&p->event, EVENT_ANNOTATION, &p->inner);
}

static void put_perfetto_int(struct prof_trace *t, const char *key, int64_t value)
{
    begin_annotation(perfetto(t), key);
    prof_protobuf_int(&perfetto(t)->inner, ANNOTATION_INT, value);
    end_annotation(perfetto(t));
}

static void put_perfetto_real(struct prof_trace *t, const char *key, double value)
{
    begin_annotation(perfetto(t), key);
    prof_protobuf_double(&perfetto(t)->inner, ANNOTATION_DOUBLE, value);
    end_annotation(perfetto(t));
}

static void put_string(struct prof_trace *t, const char *key, const char *value)
{
    struct perfetto *p = perfetto(t);
    int64_t text = intern_text(&p->interned, PROF_PERFETTO_VALUE, value);
    begin_annotation(p, key);
    prof_protobuf_int(&p->inner, ANNOTATION_STRING_IID, text);
    end_annotation(p);
}

/* A text that is written once. */
static void put_passing_string(struct prof_trace *t, const char *key, const char *value)
{
    begin_annotation(perfetto(t), key);
    prof_protobuf_text(&perfetto(t)->inner, ANNOTATION_STRING, value);
    end_annotation(perfetto(t));
}

static void put_perfetto_flag(struct prof_trace *t, const char *key, bool value)
{
    begin_annotation(perfetto(t), key);
    prof_protobuf_int(&perfetto(t)->inner, ANNOTATION_BOOL, value);
    end_annotation(perfetto(t));
}

/* What is unknown at the end of the three is left out. */
static void put_perfetto_triple(struct prof_trace *t, const char *key, const int64_t values[3])
{
    struct perfetto *p = perfetto(t);
    begin_annotation(p, key);
    for (int i = 0; i < 3 && values[i] != PROF_UNKNOWN; i++) {
        prof_protobuf_clear(&p->item);
        prof_protobuf_int(&p->item, ANNOTATION_INT, values[i]);
        prof_protobuf_message(&p->inner, ANNOTATION_ARRAY, &p->item);
    }
    end_annotation(p);
}

static const struct prof_protobuf *
launch_annotations(struct perfetto *p, const struct prof_config *config, int64_t device)
{
    uint64_t key = (uint64_t)config->id << 24 ^ (uint64_t)device;
    const uint64_t *known = prof_map_get(&p->launches, key);
    if (known)
        return &p->parts.data[*known - 1];
    struct prof_protobuf *slot = prof_array_add(&p->parts), event = p->event;
    if (!slot)
        return NULL;
    p->event = (struct prof_protobuf){0};
    prof_trace_launch(&p->trace, config, device);
    *slot = p->event;
    p->event = event;
    return prof_map_put(&p->launches, key, p->parts.count) ? slot : NULL;
}

static void put_perfetto_launch(struct prof_trace *t, const struct prof_config *config,
                                int64_t device)
{
    const struct prof_protobuf *annotations = launch_annotations(perfetto(t), config, device);
    if (annotations)
        prof_protobuf_raw(&perfetto(t)->event, annotations->data, annotations->count);
    else
        t->no_memory = true;
}

static uint64_t counter_uuid(struct perfetto *p, const struct prof_trace_counter *counter)
{
    uint64_t key = (uint64_t)(uintptr_t)counter->name;
    const uint64_t *known = prof_map_get(&p->counters, key);
    if (known)
        return *known;
    uint64_t uuid = UUID_COUNTER | (p->counters.count + 1);
    if (!prof_map_put(&p->counters, key, uuid))
        p->trace.no_memory = true;
    begin_track(p, uuid, UUID_PROCESS | (uint64_t)counter->pid);
    prof_protobuf_text(&p->event, TRACK_NAME, counter->name);
    if (!strcmp(counter->key, "bytes"))
        prof_protobuf_int(&p->inner, COUNTER_UNIT, UNIT_BYTES);
    prof_protobuf_message(&p->event, TRACK_COUNTER, &p->inner);
    end_track(p);
    return uuid;
}

static void put_perfetto_counter(struct prof_trace *t, const struct prof_trace_counter *counter)
{
    struct perfetto *p = perfetto(t);
    uint64_t uuid = counter_uuid(p, counter);
    prof_protobuf_clear(&p->event);
    prof_protobuf_int(&p->event, EVENT_TYPE, COUNTER);
    prof_protobuf_int(&p->event, EVENT_TRACK, (int64_t)uuid);
    if (counter->is_real)
        prof_protobuf_double(&p->event, EVENT_COUNTER_REAL, counter->real);
    else
        prof_protobuf_int(&p->event, EVENT_COUNTER_VALUE, counter->value);
    put_perfetto_event(p, counter->time_ns);
}

static void put_perfetto_sample(struct prof_trace *t, const struct prof_trace_sample *sample)
{
    struct perfetto *p = perfetto(t);
    int64_t stack = intern_stack(&p->interned, &t->stacks, sample->stack);
    send_interned(p);
    prof_protobuf_clear(&p->event);
    prof_protobuf_int(&p->event, SAMPLE_PID, sample->pid);
    prof_protobuf_int(&p->event, SAMPLE_TID, sample->tid);
    prof_protobuf_int(&p->event, SAMPLE_CALLSTACK_IID, stack);
    prof_protobuf_int(&p->event, SAMPLE_MODE, sample->in_kernel ? MODE_KERNEL : MODE_USER);
    begin_packet(p, NEEDS_STATE);
    put_packet_time(p, sample->time_ns);
    prof_protobuf_message(&p->packet, PACKET_SAMPLE, &p->event);
    end_packet(p);
}

static bool perfetto_has_failed(const struct prof_trace *t)
{
    return ((const struct perfetto *)t)->write_errno != 0;
}

/* ---- head ------------------------------------------------------------------------------------ */

static void put_perfetto_clock(struct perfetto *p, int64_t id, int64_t time)
{
    prof_protobuf_clear(&p->item);
    prof_protobuf_int(&p->item, CLOCK_ID, id);
    prof_protobuf_int(&p->item, CLOCK_TIME, time);
    prof_protobuf_message(&p->inner, SNAPSHOT_CLOCK, &p->item);
}

/* Times are of the clock of the capture, which is the trace's own clock as well: nothing is
 * converted. */
static void put_clocks(struct perfetto *p, const struct prof_info *info)
{
    begin_packet(p, CLEARED);
    prof_protobuf_int(&p->packet, PACKET_FIRST, 1);
    prof_protobuf_clear(&p->inner);
    prof_protobuf_int(&p->inner, DEFAULTS_CLOCK, CLOCK_OF_PERFKIT);
    prof_protobuf_message(&p->packet, PACKET_DEFAULTS, &p->inner);
    prof_protobuf_clear(&p->inner);
    put_perfetto_clock(p, CLOCK_OF_PERFKIT, p->base_ns);
    if (info->start_realtime_ns != PROF_UNKNOWN)
        put_perfetto_clock(p, CLOCK_OF_WALL, info->start_realtime_ns);
    prof_protobuf_int(&p->inner, SNAPSHOT_PRIMARY, CLOCK_OF_PERFKIT);
    prof_protobuf_message(&p->packet, PACKET_CLOCK_SNAPSHOT, &p->inner);
    end_packet(p);
}

/* The capture and what is known of its completeness: an instant on a track of its own. */
static enum prof_status put_perfetto_header(struct prof_trace *t, struct prof_error *err)
{
    struct perfetto *p = perfetto(t);
    const struct prof_info *info = prof_info(t->capture);
    struct prof_trust trust;
    p->base_ns = info->start_mono_ns == PROF_UNKNOWN ? 0 : info->start_mono_ns;
    enum prof_status status = prof_trust(t->capture, &trust, err);
    put_clocks(p, info);
    begin_track(p, UUID_CAPTURE, 0);
    prof_protobuf_string(&p->event, TRACK_NAME, "capture");
    end_track(p);
    prof_protobuf_clear(&p->event);
    int64_t name = intern_text(&p->interned, PROF_PERFETTO_NAME, "perfkit capture");
    int64_t category = intern_text(&p->interned, PROF_PERFETTO_CATEGORY, "perfkit");
    prof_protobuf_int(&p->event, EVENT_TYPE, INSTANT);
    prof_protobuf_int(&p->event, EVENT_TRACK, (int64_t)UUID_CAPTURE);
    prof_protobuf_int(&p->event, EVENT_NAME_IID, name);
    prof_protobuf_int(&p->event, EVENT_CATEGORY_IID, category);
    put_passing_string(t, "perfkit_version", info->perfkit_version ? info->perfkit_version : "n/a");
    put_passing_string(t, "command", info->command ? info->command : "n/a");
    put_passing_string(t, "host", info->host ? info->host : "n/a");
    if (!status) {
        put_perfetto_flag(t, "complete", trust.complete);
        if (!t->projects)
            put_passing_string(t, "gpu_user_annotation", "left out: too many ranges");
        for (size_t i = 0; i < trust.statement_count; i++)
            put_passing_string(t, "trust", trust.statements[i].text);
    }
    put_perfetto_event(p, 0);
    prof_trust_free(&trust);
    return status;
}

static const struct prof_trace_sink sink = {
    .head = put_perfetto_header,
    .process = put_perfetto_process,
    .track = put_perfetto_track,
    .begin = put_perfetto_slice,
    .integer = put_perfetto_int,
    .real = put_perfetto_real,
    .text = put_string,
    .flag = put_perfetto_flag,
    .three = put_perfetto_triple,
    .launch = put_perfetto_launch,
    .end = put_perfetto_end,
    .counter = put_perfetto_counter,
    .sample = put_perfetto_sample,
    .failed = perfetto_has_failed,
};

static void free_all(struct perfetto *p)
{
    prof_protobuf_free(&p->ready);
    prof_protobuf_free(&p->packet);
    prof_protobuf_free(&p->event);
    prof_protobuf_free(&p->inner);
    prof_protobuf_free(&p->item);
    prof_perfetto_interned_free(&p->interned);
    for (size_t i = 0; i < p->parts.count; i++)
        prof_protobuf_free(&p->parts.data[i]);
    prof_array_free(&p->parts);
    prof_map_free(&p->launches);
    prof_map_free(&p->counters);
}

enum prof_status prof_report_write_perfetto(struct prof_capture *capture,
                                            const struct prof_report_options *options, FILE *out,
                                            struct prof_error *err)
{
    FILE *behind = prof_report_behind(out);
    struct perfetto p = {.trace = {.sink = &sink, .capture = capture, .options = options},
                         .out = behind ? behind : out};
    enum prof_status status = prof_trace_write(&p.trace, err);
    flush_packets(&p);
    if (behind && fclose(behind) && !p.write_errno)
        p.write_errno = errno;
    if (!status && (p.packet.failed || p.event.failed || p.ready.failed || p.interned.fresh.failed))
        status = prof_fail(err, PROF_NOMEM, "cannot write the trace: out of memory");
    if (!status && p.write_errno) {
        errno = p.write_errno;
        status = prof_report_write_failed(err);
    }
    free_all(&p);
    return status ? status : prof_report_flush(out, err);
}
