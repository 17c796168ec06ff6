/* Chrome's trace format, in the dialect that Kineto writes, which Perfetto, chrome://tracing, HTA,
 * TensorBoard and speedscope read.
 *
 * What its readers need and this file keeps to: microseconds with exactly three decimals relative
 * to baseTimeNanoseconds (absolute times lose nanoseconds in a double); numeric pid and tid; both
 * ends of every flow; `"rank": N` with a blank, which HTA searches for. */
#include <stdio.h>
#include <string.h>

#include "libprof/base/format.h"
#include "libprof/base/utf8.h"
#include "report/trace.h"
#include "report/writers.h"

/* Text that many events have in common, made once. */
struct head {
    const char *category, *name; /* whose: by address */
    bool instant;
    struct prof_json text;
};

#define HEADS 65536 /* ranges may have a new name each */

/* "pid" and "tid" as members, which every event has. */
struct place {
    int64_t pid, tid;
    size_t length; /* 0 = not made yet */
    char text[64];
};

#define PLACES 64 /* more tracks than this take turns */

struct chrome {
    struct prof_trace trace;
    struct prof_json json;
    struct prof_map heads_of;      /* address of a name -> place in heads + 1 of the last used */
    PROF_ARRAY(struct head) heads; /* "ph", "cat" and "name" of slices */
    struct prof_map launches;      /* launch_key -> place in parts + 1 */
    PROF_ARRAY(struct prof_json) parts; /* in memory: the members of a launch, in braces */
    struct place places[PLACES];
};

static struct chrome *chrome(struct prof_trace *t)
{
    return (struct chrome *)t;
}

/* ---- metadata -------------------------------------------------------------------------------- */

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

static void put_chrome_process(struct prof_trace *t, const struct prof_trace_process *process)
{
    struct prof_json *json = &chrome(t)->json;
    put_meta(json, "process_name", process->pid, 0, "name", process->name, 0);
    put_meta(json, "process_labels", process->pid, 0, "labels", process->label, 0);
    put_meta(json, "process_sort_index", process->pid, 0, "sort_index", NULL, process->sort);
}

static void put_chrome_track(struct prof_trace *t, const struct prof_trace_track *track)
{
    struct prof_json *json = &chrome(t)->json;
    put_meta(json, "thread_name", track->pid, track->tid, "name", track->name, 0);
    put_meta(json, "thread_sort_index", track->pid, track->tid, "sort_index", NULL, track->sort);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* The members of an object in memory, without its braces. */
static void put_members(struct prof_json *json, const struct prof_json *object)
{
    prof_json_members(json, object->data + 1, object->count - 2);
}

static bool make_head(struct head *head)
{
    prof_json_to_memory(&head->text, 0);
    prof_json_object(&head->text, NULL);
    prof_json_string(&head->text, "ph", head->instant ? "i" : "X");
    prof_json_string(&head->text, "cat", head->category);
    prof_json_string(&head->text, "name", head->name);
    return !prof_json_finish(&head->text, NULL);
}

static bool is_head_of(const struct head *head, const struct prof_trace_slice *slice, bool instant)
{
    return head->name == slice->name && head->category == slice->category &&
           head->instant == instant;
}

/* NULL: out of memory, or more names than are worth keeping. */
static const struct head *head_of(struct chrome *c, const struct prof_trace_slice *slice,
                                  bool instant)
{
    uint64_t key = ((uint64_t)(uintptr_t)slice->name * 0x9e3779b97f4a7c15u) ^
                   ((uint64_t)(uintptr_t)slice->category << 1 | instant);
    const uint64_t *known = prof_map_get(&c->heads_of, key);
    if (known && is_head_of(&c->heads.data[*known - 1], slice, instant))
        return &c->heads.data[*known - 1];
    struct head *head = known || c->heads.count >= HEADS ? NULL : prof_array_add(&c->heads);
    if (!head)
        return NULL;
    *head = (struct head){.category = slice->category, .name = slice->name, .instant = instant};
    return make_head(head) && prof_map_put(&c->heads_of, key, c->heads.count) ? head : NULL;
}

static void put_head_of(struct chrome *c, const struct prof_trace_slice *slice, bool instant)
{
    const struct head *head = head_of(c, slice, instant);
    if (head) {
        put_members(&c->json, &head->text);
        return;
    }
    prof_json_string(&c->json, "ph", instant ? "i" : "X");
    prof_json_string(&c->json, "cat", slice->category);
    prof_json_string(&c->json, "name", slice->name);
}

static size_t append_member(char *out, const char *name, int64_t value)
{
    size_t length = strlen(name);
    memcpy(out, name, length);
    return length + prof_print_int(out + length, value);
}

static void put_chrome_position(struct chrome *c, int64_t pid, int64_t tid, int64_t ts)
{
    struct place *place = &c->places[((uint64_t)tid + (uint64_t)pid * 7) % PLACES];
    if (!place->length || place->pid != pid || place->tid != tid) {
        place->pid = pid;
        place->tid = tid;
        place->length = append_member(place->text, "\"pid\":", pid);
        place->length += append_member(place->text + place->length, ",\"tid\":", tid);
    }
    prof_json_members(&c->json, place->text, place->length);
    prof_json_us(&c->json, "ts", ts);
}

static void put_chrome_slice(struct prof_trace *t, const struct prof_trace_slice *slice)
{
    struct prof_json *json = &chrome(t)->json;
    bool instant = slice->duration_ns == PROF_UNKNOWN;
    prof_json_object(json, NULL);
    put_head_of(chrome(t), slice, instant);
    put_chrome_position(chrome(t), slice->pid, slice->tid, slice->start_ns);
    if (instant)
        prof_json_string(json, "s", "t");
    else
        prof_json_us(json, "dur", slice->duration_ns);
    if (slice->stack)
        prof_json_uint(json, "sf", slice->stack);
    prof_json_object(json, "args");
}

static void put_chrome_end(struct prof_trace *t)
{
    prof_json_end(&chrome(t)->json);
    prof_json_end(&chrome(t)->json);
}

static void put_chrome_int(struct prof_trace *t, const char *key, int64_t value)
{
    prof_json_int(&chrome(t)->json, key, value);
}

/* Three decimals, as Kineto writes most; NVTX payloads need not be of that size. */
static void put_chrome_real(struct prof_trace *t, const char *key, double value)
{
    if (strcmp(key, "payload") == 0)
        prof_json_real(&chrome(t)->json, key, value);
    else
        prof_json_fixed(&chrome(t)->json, key, value, 3);
}

static void put_chrome_text(struct prof_trace *t, const char *key, const char *value)
{
    prof_json_string(&chrome(t)->json, key, value);
}

static void put_chrome_flag(struct prof_trace *t, const char *key, bool value)
{
    prof_json_bool(&chrome(t)->json, key, value);
}

static void put_chrome_triple(struct prof_trace *t, const char *key, const int64_t values[3])
{
    prof_json_ints(&chrome(t)->json, key, values, 3);
}

/* The text of a launch's arguments, made at its first use. NULL: out of memory. */
static const struct prof_json *launch_text(struct prof_trace *t, const struct prof_config *config,
                                           int64_t device)
{
    struct chrome *c = chrome(t);
    uint64_t key = (uint64_t)config->id << 24 ^ (uint64_t)device;
    const uint64_t *known = prof_map_get(&c->launches, key);
    if (known)
        return &c->parts.data[*known - 1];
    struct prof_json *slot = prof_array_add(&c->parts);
    if (!slot)
        return NULL;
    struct prof_json document = c->json;
    prof_json_to_memory(&c->json, 0);
    prof_json_object(&c->json, NULL);
    prof_trace_launch(t, config, device);
    enum prof_status status = prof_json_finish(&c->json, NULL);
    *slot = c->json;
    c->json = document;
    return !status && prof_map_put(&c->launches, key, c->parts.count) ? slot : NULL;
}

static void put_chrome_launch(struct prof_trace *t, const struct prof_config *config,
                              int64_t device)
{
    const struct prof_json *text = launch_text(t, config, device);
    if (text)
        put_members(&chrome(t)->json, text);
    else
        t->no_memory = true;
}

static void put_chrome_arrow(struct prof_trace *t, const struct prof_trace_arrow *arrow)
{
    static const char start[] = "\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\"";
    static const char finish[] = "\"ph\":\"f\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"bp\":\"e\"";
    struct prof_json *json = &chrome(t)->json;
    prof_json_object(json, NULL);
    prof_json_members(json, start, sizeof start - 1);
    put_chrome_position(chrome(t), arrow->from_pid, arrow->from_tid, arrow->from_ns);
    prof_json_int(json, "id", arrow->id);
    prof_json_end(json);
    prof_json_object(json, NULL);
    prof_json_members(json, finish, sizeof finish - 1);
    put_chrome_position(chrome(t), arrow->to_pid, arrow->to_tid, arrow->to_ns);
    prof_json_int(json, "id", arrow->id);
    prof_json_end(json);
}

static void put_chrome_counter(struct prof_trace *t, const struct prof_trace_counter *counter)
{
    struct prof_json *json = &chrome(t)->json;
    prof_json_object(json, NULL);
    prof_json_string(json, "ph", "C");
    prof_json_string(json, "cat", "counter");
    prof_json_string(json, "name", counter->name);
    put_chrome_position(chrome(t), counter->pid, 0, counter->time_ns);
    prof_json_object(json, "args");
    if (counter->is_real)
        prof_json_fixed(json, counter->key, counter->real, 3);
    else
        prof_json_int(json, counter->key, counter->value);
    put_chrome_end(t);
}

/* A sample event: chrome://tracing knows it, Perfetto passes over it. */
static void put_chrome_sample(struct prof_trace *t, const struct prof_trace_sample *sample)
{
    struct prof_json *json = &chrome(t)->json;
    prof_json_object(json, NULL);
    prof_json_string(json, "ph", "P");
    prof_json_string(json, "cat", "cpu_sample");
    prof_json_string(json, "name", sample->in_kernel ? "in the kernel" : "on a processor");
    put_chrome_position(chrome(t), sample->pid, sample->tid, sample->time_ns);
    prof_json_uint(json, "sf", sample->stack);
    prof_json_object(json, "args");
    prof_json_int(json, "weight ns", sample->weight_ns);
    put_chrome_end(t);
}

#define PATH_BYTES 4096u /* PATH_MAX */

/* "/src/train.c:36", else the object file. */
static void format_frame_location(const struct prof_frame *frame, char *out, size_t size)
{
    const char *path = frame->file ? frame->file : frame->module ? frame->module : "n/a";
    int length = prof_report_head(path, PATH_BYTES);
    if (frame->file && frame->line != PROF_UNKNOWN)
        snprintf(out, size, "%.*s:%lld", length, path, (long long)frame->line);
    else
        snprintf(out, size, "%.*s", length, path);
}

/* The frames that "sf" of slices names: chrome://tracing shows them, Perfetto passes over them. */
static void put_chrome_frames(struct prof_trace *t)
{
    struct prof_json *json = &chrome(t)->json;
    prof_json_end(json); /* traceEvents */
    if (!t->stacks.nodes.count)
        return;
    prof_json_object(json, "stackFrames");
    for (uint32_t i = 0; i < t->stacks.nodes.count; i++) {
        const struct prof_report_stack_node *node = &t->stacks.nodes.data[i];
        const struct prof_frame *frame = prof_report_stacks_frame(&t->stacks, node->place);
        char key[16], place[PATH_BYTES + 32];
        format_frame_location(frame, place, sizeof place);
        snprintf(key, sizeof key, "%u", i + 1);
        prof_json_object(json, key);
        prof_json_string(json, "category", place);
        prof_json_string(json, "name", frame->function);
        if (node->parent)
            prof_json_uint(json, "parent", node->parent);
        prof_json_end(json);
    }
    prof_json_end(json);
}

static bool chrome_has_failed(const struct prof_trace *t)
{
    return ((const struct chrome *)t)->json.status != PROF_OK;
}

/* ---- the document ---------------------------------------------------------------------------- */

static void put_device_properties(struct prof_trace *t)
{
    struct prof_json *json = &chrome(t)->json;
    const struct prof_device *devices;
    size_t count = prof_devices(t->capture, &devices);
    prof_json_array(json, "deviceProperties");
    for (size_t i = 0; i < count; i++) {
        const struct prof_device *device = &devices[i];
        if (device->physical != device->id)
            continue;
        prof_json_object(json, NULL);
        prof_json_int(json, "id", prof_trace_device_pid(&t->names, device->id));
        prof_json_string(json, "name", device->name);
        prof_trace_known(t, "totalGlobalMem", device->memory_bytes);
        prof_trace_known(t, "computeMajor", device->compute_major);
        prof_trace_known(t, "computeMinor", device->compute_minor);
        prof_trace_known(t, "maxThreadsPerBlock", device->max_block);
        prof_trace_known(t, "maxThreadsPerMultiprocessor", device->max_threads_per_unit);
        prof_trace_known(t, "regsPerMultiprocessor", device->registers_per_unit);
        prof_trace_known(t, "warpSize", device->warp);
        prof_trace_known(t, "sharedMemPerBlock", device->shared_per_block_bytes);
        prof_trace_known(t, "sharedMemPerMultiprocessor", device->shared_per_unit_bytes);
        prof_trace_known(t, "numSms", device->units);
        prof_json_end(json);
    }
    prof_json_end(json);
}

static enum prof_status put_other_data(struct prof_trace *t, struct prof_error *err)
{
    struct prof_json *json = &chrome(t)->json;
    const struct prof_info *info = prof_info(t->capture);
    struct prof_trust trust;
    char ending[96];
    enum prof_status status = prof_trust(t->capture, &trust, err);
    if (!status) {
        prof_report_ending(info, ending, sizeof ending);
        prof_json_object(json, "otherData");
        prof_json_string(json, "perfkit_version", info->perfkit_version);
        prof_json_string(json, "command", info->command);
        prof_json_string(json, "host", info->host);
        prof_json_string(json, "ended", ending);
        prof_json_bool(json, "complete", trust.complete);
        prof_json_array(json, "trust");
        for (size_t i = 0; i < trust.statement_count; i++)
            prof_json_string(json, NULL, trust.statements[i].text);
        prof_json_end(json);
        if (!t->projects)
            prof_json_string(json, "gpu_user_annotation", "left out: too many ranges");
        prof_json_end(json);
    }
    prof_trust_free(&trust);
    return status;
}

/* The rank of the only process with events; a capture of several ranks has no one. */
static int64_t only_rank(const struct prof_trace *t)
{
    const struct prof_process *processes;
    size_t count = prof_processes(t->capture, &processes);
    int64_t rank = PROF_UNKNOWN;
    for (size_t i = 0; i < count; i++) {
        if (processes[i].rank == PROF_UNKNOWN || (!processes[i].has_events && count > 1))
            continue;
        if (rank != PROF_UNKNOWN && rank != processes[i].rank)
            return PROF_UNKNOWN;
        rank = processes[i].rank;
    }
    return rank;
}

static enum prof_status put_top(struct prof_trace *t, struct prof_error *err)
{
    struct prof_json *json = &chrome(t)->json;
    const struct prof_info *info = prof_info(t->capture);
    int64_t rank = only_rank(t);
    prof_json_object(json, NULL);
    prof_json_int(json, "schemaVersion", 1);
    put_device_properties(t);
    if (rank != PROF_UNKNOWN) {
        json->spaced = true;
        prof_json_object(json, "distributedInfo");
        prof_json_int(json, "rank", rank);
        prof_json_end(json);
        json->spaced = false;
    }
    prof_json_string(json, "displayTimeUnit", "ms");
    if (info->start_realtime_ns != PROF_UNKNOWN)
        prof_json_int(json, "baseTimeNanoseconds", info->start_realtime_ns);
    prof_json_string(json, "traceName", info->path);
    enum prof_status status = put_other_data(t, err);
    prof_json_array(json, "traceEvents");
    return status;
}

static const struct prof_trace_sink sink = {
    .head = put_top,
    .process = put_chrome_process,
    .track = put_chrome_track,
    .begin = put_chrome_slice,
    .integer = put_chrome_int,
    .real = put_chrome_real,
    .text = put_chrome_text,
    .flag = put_chrome_flag,
    .three = put_chrome_triple,
    .launch = put_chrome_launch,
    .end = put_chrome_end,
    .arrow = put_chrome_arrow,
    .counter = put_chrome_counter,
    .sample = put_chrome_sample,
    .tail = put_chrome_frames,
    .failed = chrome_has_failed,
};

enum prof_status prof_report_write_chrome_trace(struct prof_capture *capture,
                                                const struct prof_report_options *options,
                                                FILE *out, struct prof_error *err)
{
    struct chrome c = {.trace = {.sink = &sink, .capture = capture, .options = options}};
    FILE *behind = prof_report_behind(out);
    prof_json_to_file(&c.json, behind ? behind : out, 0);
    enum prof_status status = prof_trace_write(&c.trace, err);
    status = status ?: prof_json_finish(&c.json, err);
    prof_json_free(&c.json);
    if (behind && fclose(behind) && !status)
        status = prof_report_write_failed(err);
    for (size_t i = 0; i < c.parts.count; i++)
        prof_json_free(&c.parts.data[i]);
    prof_array_free(&c.parts);
    for (size_t i = 0; i < c.heads.count; i++)
        prof_json_free(&c.heads.data[i].text);
    prof_array_free(&c.heads);
    prof_map_free(&c.heads_of);
    prof_map_free(&c.launches);
    return status ? status : prof_report_flush(out, err);
}
