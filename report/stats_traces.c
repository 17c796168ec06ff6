/* Statistics that list events one by one, in order of time and constant memory, and launches by
 * thread and kernel. */
#include <stdio.h>

#include "libprof/base/utf8.h"
#include "report/stats_columns.h"

/* An event with the texts that are made of it. */
struct event_line {
    struct prof_event event;
    const char *name;
    char made_name[64], device[160];
};

static const struct prof_event *event_of(const void *row)
{
    return &((const struct event_line *)row)->event;
}

/* A number that a call and what it started on a device share. A capture keeps both in one row, so
 * the row's number is used for CUPTI's; work of a CUDA graph has that of the graph's launch. */
static int64_t shared_number(enum prof_event_kind kind, int64_t id, int64_t correlation)
{
    enum { GRAPH = PROF_EVENT_SYNC + 1, CLASSES };
    if (kind <= PROF_EVENT_SYNC && id > 0 && id < INT64_MAX / CLASSES - CLASSES)
        return id * CLASSES + (int64_t)kind;
    if (correlation > 0 && correlation < INT64_MAX / CLASSES - CLASSES)
        return correlation * CLASSES + GRAPH;
    return PROF_UNKNOWN;
}

/* ---- API calls ------------------------------------------------------------------------------- */

/* Only failures have one. */
ROW_CELL(call_result, event_line, line,
         prof_report_int(line->event.result == PROF_UNKNOWN ? 0 : line->event.result))
ROW_CELL(call_number, event_line, line,
         prof_report_int(shared_number(line->event.record_kind, line->event.record_id,
                                       line->event.correlation)))

CELL(not_recorded, (struct prof_report_value){0})

const struct prof_report_column prof_stat_api_trace_columns[] = {
    STAT_INT("Start (ns)", MOMENT, event_line, event.start_ns),
    STAT_INT("Duration (ns)", NS, event_line, event.duration_ns),
    STAT_TEXT("Name", event_line, name),
    STAT_OF("Result", NUMBER, call_result),
    STAT_MAY("CorrID", NUMBER, call_number),
    STAT_ID("Pid", event_line, event.process, process, pid),
    STAT_ID("Tid", event_line, event.thread, thread, tid),
    STAT_MAY("T-Pri", NUMBER, not_recorded),
    STAT_MAY_ID(STRING, "Thread Name", NAME, event_line, event.thread, thread, name),
    {0}};

typedef void describe_event(const struct prof_report_row_walk *walk, struct event_line *line);

static enum prof_status walk_events(struct prof_report_row_walk *walk, uint32_t kinds,
                                    describe_event *describe, struct prof_error *err)
{
    struct prof_events *events;
    struct event_line line;
    bool more = true;
    PROF_TRY(prof_events_open(walk->capture, walk->filter, kinds, &events, err));
    while (more && prof_events_next(events, &line.event)) {
        line.name = line.event.name;
        if (describe)
            describe(walk, &line);
        more = walk->row(walk->user, &line);
    }
    return prof_events_close(events, err);
}

STAT_WALK(api_trace, walk_events(walk, PROF_EVENTS(PROF_EVENT_API), NULL, err))

/* ---- work of devices ------------------------------------------------------------------------- */

static struct prof_report_value work_number(const struct prof_report_data *data, const void *row)
{
    (void)data;
    const struct prof_event *e = event_of(row);
    bool of_graph = e->kind == PROF_EVENT_GRAPH ||
                    (e->api_start_ns == PROF_UNKNOWN && e->correlation != PROF_UNKNOWN);
    return prof_report_int(
        shared_number(of_graph ? PROF_EVENT_GRAPH : e->kind, e->id, e->correlation));
}

CELL(work_rate, prof_stat_rate(event_of(row)->bytes, event_of(row)->duration_ns))

/* In the order of transfer.source_kind. */
static struct prof_report_value trace_memory_kind(int kind)
{
    static const char *const words[] = {NULL,    "Pageable", "Pinned",        "Device",
                                        "Array", "Managed",  "Device Static", "Managed Static",
                                        "SVM",   "Pool"};
    size_t count = sizeof words / sizeof words[0];
    return prof_report_text(kind > 0 && (size_t)kind < count ? words[kind] : NULL);
}

CELL(source_memory, trace_memory_kind(event_of(row)->source_kind))
CELL(target_memory, trace_memory_kind(event_of(row)->target_kind))

/* A green context is in a column of its own, beside the one that it is a part of. */
static struct prof_report_value context(const struct prof_report_data *data, const void *row)
{
    const struct prof_context *its = prof_context(data->capture, event_of(row)->context);
    if (its && its->green && its->parent)
        its = prof_context(data->capture, its->parent);
    return prof_report_int(its ? its->native : PROF_UNKNOWN);
}

static struct prof_report_value green_context(const struct prof_report_data *data, const void *row)
{
    const struct prof_context *its = prof_context(data->capture, event_of(row)->context);
    return prof_report_int(its && its->green ? its->native : PROF_UNKNOWN);
}

#define EVENT_CONFIG(heading, unit, member)                                                        \
    PROF_COLUMN(heading, heading, unit, 1, THROUGH(INT64, event_line, event.config, member),       \
                .blank = true)

const struct prof_report_column prof_stat_gpu_trace_columns[] = {
    STAT_INT("Start (ns)", MOMENT, event_line, event.start_ns),
    STAT_INT("Duration (ns)", NS, event_line, event.duration_ns),
    STAT_MAY("CorrId", NUMBER, work_number),
    EVENT_CONFIG("GrdX", NUMBER, grid[0]),
    EVENT_CONFIG("GrdY", NUMBER, grid[1]),
    EVENT_CONFIG("GrdZ", NUMBER, grid[2]),
    EVENT_CONFIG("BlkX", NUMBER, block[0]),
    EVENT_CONFIG("BlkY", NUMBER, block[1]),
    EVENT_CONFIG("BlkZ", NUMBER, block[2]),
    EVENT_CONFIG("Reg/Trd", NUMBER, registers),
    EVENT_CONFIG("StcSMem (MB)", BYTES, shared_static),
    EVENT_CONFIG("DymSMem (MB)", BYTES, shared_dynamic),
    STAT_MAY_INT("Bytes (MB)", BYTES, event_line, event.bytes),
    STAT_MAY("Throughput (MB/s)", RATE, work_rate),
    STAT_MAY("SrcMemKd", WORD, source_memory),
    STAT_MAY("DstMemKd", WORD, target_memory),
    STAT_CHARS("Device", NAME, event_line, device),
    STAT_MAY("Ctx", NUMBER, context),
    STAT_MAY("GreenCtx", NUMBER, green_context),
    STAT_MAY_ID(INT64, "Strm", NUMBER, event_line, event.stream, stream, native),
    STAT_TEXT("Name", event_line, name),
    {0}};

static void describe_work(const struct prof_report_row_walk *walk, struct event_line *line)
{
    const struct prof_event *e = &line->event;
    const struct prof_device *device = prof_device(walk->capture, e->device);
    const struct prof_stream *its = prof_stream(walk->capture, e->stream);
    line->device[0] = 0;
    if (device && device->name)
        snprintf(line->device, sizeof line->device, "%.*s (%lld)",
                 prof_report_head(device->name, 120), device->name,
                 device->ordinal == PROF_UNKNOWN ? -1ll : (long long)device->ordinal);
    if (e->kind == PROF_EVENT_TRANSFER)
        line->name = prof_stat_operation(its ? its->api : NULL, e->copy_kind);
    if (e->kind == PROF_EVENT_MEMSET)
        line->name = prof_stat_operation(its ? its->api : NULL, PROF_COPY_MEMSET);
    if (e->kind == PROF_EVENT_GRAPH) {
        snprintf(line->made_name, sizeof line->made_name, "[CUDA graph %lld]", (long long)e->graph);
        line->name = line->made_name;
    }
}

STAT_WALK(gpu_trace, walk_events(walk, PROF_EVENTS_DEVICE, describe_work, err))

/* ---- launches -------------------------------------------------------------------------------- */

const struct prof_report_column prof_stat_kern_exec_sum_columns[] = {
    STAT_ID("PID", prof_launch_row, process, process, pid),
    STAT_ID("TID", prof_launch_row, thread, thread, tid),
    STAT_ID("DevId", prof_launch_row, device, device, ordinal),
    STAT_INT("Count", COUNT, prof_launch_row, total_ns.count),
    STAT_INT("QCount", COUNT, prof_launch_row, queue_ns.count),
    STAT_SPREAD("T", NS, "ns", prof_launch_row, total_ns),
    STAT_SPREAD("A", NS, "ns", prof_launch_row, api_ns),
    STAT_SPREAD("Q", NS, "ns", prof_launch_row, queue_ns),
    STAT_SPREAD("K", NS, "ns", prof_launch_row, kernel_ns),
    STAT_TEXT("API Name", prof_launch_row, api_name),
    STAT_TEXT("Kernel Name", prof_launch_row, name),
    {0}};

enum prof_status prof_stat_kern_exec_sum(struct prof_report_row_walk *walk, struct prof_error *err)
{
    struct prof_launch_summary all;
    enum prof_status status = prof_launch_summary(walk->capture, walk->filter, &all, err);
    for (size_t i = 0; i < all.count && walk->row(walk->user, &all.rows[i]); i++)
        ;
    prof_launch_summary_free(&all);
    return status;
}

struct launch_line {
    struct prof_launch launch;
    const char *name, *grid, *block;
};

const struct prof_report_column prof_stat_kern_exec_trace_columns[] = {
    STAT_INT("API Start (ns)", MOMENT, launch_line, launch.api_start_ns),
    STAT_INT("API Dur (ns)", NS, launch_line, launch.api_ns),
    STAT_MAY_INT("Queue Start (ns)", MOMENT, launch_line, launch.queue_start_ns),
    STAT_MAY_INT("Queue Dur (ns)", NS, launch_line, launch.queue_ns),
    STAT_INT("Kernel Start (ns)", MOMENT, launch_line, launch.kernel_start_ns),
    STAT_INT("Kernel Dur (ns)", NS, launch_line, launch.kernel_ns),
    STAT_INT("Total Dur (ns)", NS, launch_line, launch.total_ns),
    STAT_ID("PID", launch_line, launch.process, process, pid),
    STAT_ID("TID", launch_line, launch.thread, thread, tid),
    STAT_ID("DevId", launch_line, launch.device, device, ordinal),
    STAT_TEXT("API Function", launch_line, launch.api_name),
    STAT_WORD("GridXYZ", launch_line, grid),
    STAT_WORD("BlockXYZ", launch_line, block),
    STAT_TEXT("Kernel Name", launch_line, name),
    {0}};

enum prof_status prof_stat_kern_exec_trace(struct prof_report_row_walk *walk,
                                           struct prof_error *err)
{
    struct prof_launches *launches;
    struct launch_line line;
    bool more = true;
    PROF_TRY(prof_launches_open(walk->capture, walk->filter, &launches, err));
    while (more && prof_launches_next(launches, &line.launch)) {
        const struct prof_config *config = line.launch.config;
        char grid[80], block[80];
        line.name = config ? config->name : NULL;
        line.grid = config ? prof_stat_xyz(config->grid, grid, sizeof grid) : NULL;
        line.block = config ? prof_stat_xyz(config->block, block, sizeof block) : NULL;
        more = walk->row(walk->user, &line);
    }
    return prof_launches_close(launches, err);
}
