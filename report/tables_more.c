/* The tables that only some programs have something for: graphs recorded whole, overhead, code
 * compiled at run time, unified memory, memory pools; and the lists of streams, contexts and
 * threads. */
#include <stdio.h>
#include <string.h>

#include "report/columns.h"

#define ACTIVITY(row) ((const struct prof_activity_row *)(row))

static struct prof_report_value pid_of(const struct prof_report_data *data, int64_t id)
{
    const struct prof_process *process = prof_process(data->capture, id);
    return prof_report_int(process ? process->pid : PROF_UNKNOWN);
}

/* What all families of activities have. */
#define ACTIVITY_TIMES                                                                             \
    INT64("total_ns", "Total", NS, 1, prof_activity_row, duration_ns.sum),                         \
        REAL("share", "Share", SHARE, 0, prof_activity_row, share),                                \
        REAL("wall_share", "Of wall", SHARE, 1, prof_activity_row, wall_share),                    \
        INT64("count", "Count", COUNT, 1, prof_activity_row, count),                               \
        REAL("average_ns", "Average", NS, 2, prof_activity_row, duration_ns.mean),                 \
        REAL("median_ns", "Median", NS, 0, prof_activity_row, duration_ns.median),                 \
        INT64("min_ns", "Min", NS, 0, prof_activity_row, duration_ns.min),                         \
        INT64("max_ns", "Max", NS, 3, prof_activity_row, duration_ns.max)

static const struct prof_activity_summary *summary(const struct prof_report_data *data,
                                                   enum prof_activity which)
{
    return &data->activities[which];
}

static const void *rows_of(const struct prof_report_data *data, enum prof_activity which,
                           size_t *count)
{
    *count = summary(data, which)->count;
    return summary(data, which)->rows;
}

static void totals_of(const struct prof_report_data *data, enum prof_activity which,
                      const char *what, char *out, size_t size)
{
    const struct prof_activity_summary *all = summary(data, which);
    snprintf(out, size, "%s %s%s, %s", prof_count(all->events).text, what,
             all->events == 1 ? "" : "s", prof_duration_ns(all->listed_ns).text);
}

/* ---- graphs -------------------------------------------------------------------------------- */

static struct prof_report_value graph_pid(const struct prof_report_data *data, const void *row)
{
    return pid_of(data, ACTIVITY(row)->process);
}

const struct prof_report_column prof_report_graph_columns[] = {
    ACTIVITY_TIMES,
    COMPUTED("pid", "Process", NUMBER, 4, graph_pid),
    INT64("graph", "Graph", NUMBER, 1, prof_activity_row, kind),
    {0},
};

const void *prof_report_graph_rows(const struct prof_report_data *data, size_t *count)
{
    return rows_of(data, PROF_ACTIVITY_GRAPHS, count);
}

void prof_report_graph_totals(const struct prof_report_data *data, char *out, size_t size)
{
    totals_of(data, PROF_ACTIVITY_GRAPHS, "execution", out, size);
}

/* ---- overhead and JIT ---------------------------------------------------------------------- */

const struct prof_report_column prof_report_overhead_columns[] = {
    ACTIVITY_TIMES,
    INT64("kind", "Kind", NUMBER, 0, prof_activity_row, kind),
    STRING("name", "What", WORD, 1, prof_activity_row, kind_text),
    {0},
};

const void *prof_report_overhead_rows(const struct prof_report_data *data, size_t *count)
{
    return rows_of(data, PROF_ACTIVITY_OVERHEAD, count);
}

void prof_report_overhead_totals(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_activity_summary *all = summary(data, PROF_ACTIVITY_OVERHEAD);
    double wall = all->wall_ns > 0 ? (double)all->wall_ns : 0.0 / 0.0;
    snprintf(out, size, "%s in all, %s of the wall time", prof_duration_ns(all->listed_ns).text,
             prof_percent((double)all->listed_ns / wall).text);
}

const struct prof_report_column prof_report_jit_columns[] = {
    ACTIVITY_TIMES,
    STRING("name", "What", WORD, 1, prof_activity_row, kind_text),
    {0},
};

const void *prof_report_jit_rows(const struct prof_report_data *data, size_t *count)
{
    return rows_of(data, PROF_ACTIVITY_JIT, count);
}

void prof_report_jit_totals(const struct prof_report_data *data, char *out, size_t size)
{
    totals_of(data, PROF_ACTIVITY_JIT, "step", out, size);
}

/* ---- unified memory ------------------------------------------------------------------------ */

const struct prof_report_column prof_report_migration_columns[] = {
    ACTIVITY_TIMES,
    INT64("bytes", "Bytes", BYTES, 1, prof_activity_row, bytes),
    INT64("faults", "Faults", COUNT, 2, prof_activity_row, faults),
    STRING("name", "What", WORD, 1, prof_activity_row, kind_text),
    {0},
};

const void *prof_report_migration_rows(const struct prof_report_data *data, size_t *count)
{
    return rows_of(data, PROF_ACTIVITY_MIGRATIONS, count);
}

void prof_report_migration_totals(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_activity_summary *all = summary(data, PROF_ACTIVITY_MIGRATIONS);
    int64_t bytes = 0, faults = 0;
    for (size_t i = 0; i < all->count; i++) {
        bytes += all->rows[i].bytes > 0 ? all->rows[i].bytes : 0;
        faults += all->rows[i].faults > 0 ? all->rows[i].faults : 0;
    }
    snprintf(out, size, "%s, %s page fault%s", prof_bytes_of(bytes).text, prof_count(faults).text,
             faults == 1 ? "" : "s");
}

/* ---- memory pools -------------------------------------------------------------------------- */

static struct prof_report_value pool_device(const struct prof_report_data *data, const void *row)
{
    return prof_report_device_name(data, ((const struct prof_pool *)row)->device);
}

static struct prof_report_value pool_pid(const struct prof_report_data *data, const void *row)
{
    return pid_of(data, ((const struct prof_pool *)row)->process);
}

const struct prof_report_column prof_report_pool_columns[] = {
    INT64("peak_bytes", "Reserved", BYTES, 1, prof_pool, peak_bytes),
    INT64("peak_used_bytes", "Used", BYTES, 1, prof_pool, peak_used_bytes),
    INT64("unused_bytes", "Unused", BYTES, 2, prof_pool, unused_bytes),
    INT64("threshold_bytes", "Kept up to", BYTES, 3, prof_pool, threshold_bytes),
    INT64("trims", "Trims", COUNT, 4, prof_pool, trims),
    INT64("made_ns", "Made", MOMENT, 2, prof_pool, made_ns),
    INT64("destroyed_ns", "Destroyed", MOMENT, 2, prof_pool, destroyed_ns),
    INT64("address", "Address", NUMBER, 0, prof_pool, address),
    COMPUTED("pid", "Process", NUMBER, 5, pool_pid),
    COMPUTED("name", "Device", NAME, 1, pool_device),
    {0},
};

const void *prof_report_pool_rows(const struct prof_report_data *data, size_t *count)
{
    *count = data->pools.count;
    return data->pools.rows;
}

/* ---- streams, contexts, threads ------------------------------------------------------------ */

#define STREAM(row) (((const struct prof_report_stream *)(row))->stream)
#define CONTEXT(row) ((const struct prof_context *)(row))
#define THREAD(row) ((const struct prof_thread *)(row))

static struct prof_report_value stream_kind(const struct prof_report_data *data, const void *row)
{
    const char *api = STREAM(row)->api;
    (void)data;
    if (api && !strcmp(api, "opencl"))
        return prof_report_text(STREAM(row)->out_of_order ? "out of order" : "in order");
    return prof_report_text(STREAM(row)->is_default     ? "default"
                            : STREAM(row)->non_blocking ? "non-blocking"
                                                        : NULL);
}

static struct prof_report_value stream_native(const struct prof_report_data *data, const void *row)
{
    (void)data;
    return prof_report_int(STREAM(row)->native);
}

static struct prof_report_value stream_id(const struct prof_report_data *data, const void *row)
{
    (void)data;
    return prof_report_int(STREAM(row)->id);
}

static struct prof_report_value stream_priority(const struct prof_report_data *data,
                                                const void *row)
{
    (void)data;
    return prof_report_int(STREAM(row)->priority);
}

static struct prof_report_value stream_name(const struct prof_report_data *data, const void *row)
{
    (void)data;
    return prof_report_text(STREAM(row)->name);
}

static struct prof_report_value stream_units(const struct prof_report_data *data, const void *row)
{
    const struct prof_context *context = prof_context(data->capture, STREAM(row)->context);
    return prof_report_int(context ? context->units : PROF_UNKNOWN);
}

static struct prof_report_value stream_pid(const struct prof_report_data *data, const void *row)
{
    return pid_of(data, STREAM(row)->process);
}

static struct prof_report_value stream_device(const struct prof_report_data *data, const void *row)
{
    return prof_report_device_name(data, STREAM(row)->device);
}

const struct prof_report_column prof_report_stream_columns[] = {
    COMPUTED("native", "Stream", NUMBER, 1, stream_native),
    INT64("operations", "Operations", COUNT, 1, prof_report_stream, operations),
    COMPUTED("priority", "Priority", NUMBER, 1, stream_priority),
    COMPUTED("kind", "Kind", WORD, 2, stream_kind),
    COMPUTED("units", "SMs", NUMBER, 3, stream_units),
    COMPUTED("id", "Id", NUMBER, 0, stream_id),
    COMPUTED("pid", "Process", NUMBER, 4, stream_pid),
    COMPUTED("device", "Device", NAME, 3, stream_device),
    COMPUTED("name", "Name", NAME, 1, stream_name),
    {0},
};

const void *prof_report_stream_rows(const struct prof_report_data *data, size_t *count)
{
    *count = data->stream_count;
    return data->streams;
}

bool prof_report_stream_worth(const struct prof_report_data *data)
{
    for (size_t i = 0; i < data->stream_count; i++) {
        const struct prof_stream *stream = data->streams[i].stream;
        if (stream->name || (stream->priority != PROF_UNKNOWN && stream->priority != 0))
            return true;
    }
    return false;
}

static struct prof_report_value context_kind(const struct prof_report_data *data, const void *row)
{
    (void)data;
    return prof_report_text(CONTEXT(row)->green ? "green" : "whole device");
}

static struct prof_report_value context_parent(const struct prof_report_data *data, const void *row)
{
    const struct prof_context *parent = prof_context(data->capture, CONTEXT(row)->parent);
    return prof_report_int(parent ? parent->native : PROF_UNKNOWN);
}

static struct prof_report_value context_device(const struct prof_report_data *data, const void *row)
{
    return prof_report_device_name(data, CONTEXT(row)->device);
}

static struct prof_report_value context_pid(const struct prof_report_data *data, const void *row)
{
    return pid_of(data, CONTEXT(row)->process);
}

const struct prof_report_column prof_report_context_columns[] = {
    INT64("native", "Context", NUMBER, 1, prof_context, native),
    COMPUTED("kind", "Kind", WORD, 1, context_kind),
    INT64("units", "SMs", NUMBER, 1, prof_context, units),
    COMPUTED("parent", "Of context", NUMBER, 2, context_parent),
    INT64("id", "Id", NUMBER, 0, prof_context, id),
    COMPUTED("pid", "Process", NUMBER, 4, context_pid),
    COMPUTED("device", "Device", NAME, 3, context_device),
    STRING("name", "Name", NAME, 1, prof_context, name),
    {0},
};

const void *prof_report_context_rows(const struct prof_report_data *data, size_t *count)
{
    const struct prof_context *list;
    *count = prof_contexts(data->capture, &list);
    return list;
}

bool prof_report_context_worth(const struct prof_report_data *data)
{
    const struct prof_context *list;
    size_t count = prof_contexts(data->capture, &list);
    for (size_t i = 0; i < count; i++) {
        if (list[i].green || list[i].name)
            return true;
    }
    return false;
}

static struct prof_report_value thread_pid(const struct prof_report_data *data, const void *row)
{
    return pid_of(data, THREAD(row)->process);
}

const struct prof_report_column prof_report_thread_columns[] = {
    COMPUTED("pid", "Process", NUMBER, 1, thread_pid),
    INT64("tid", "Thread", NUMBER, 1, prof_thread, tid),
    INT64("id", "Id", NUMBER, 0, prof_thread, id),
    STRING("name", "Name", NAME, 1, prof_thread, name),
    {0},
};

const void *prof_report_thread_rows(const struct prof_report_data *data, size_t *count)
{
    const struct prof_thread *list;
    *count = prof_threads(data->capture, &list);
    return list;
}

bool prof_report_thread_worth(const struct prof_report_data *data)
{
    const struct prof_thread *list;
    size_t count = prof_threads(data->capture, &list);
    for (size_t i = 0; i < count; i++) {
        if (list[i].name)
            return true;
    }
    return false;
}
