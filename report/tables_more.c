/* The tables that only some programs have something for: graphs recorded whole, overhead, code
 * compiled at run time, unified memory, memory pools. */
#include <stdio.h>

#include "libprof/base/saturate.h"
#include "report/columns.h"

#define ACTIVITY(row) ((const struct prof_activity_row *)(row))

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

static const void *activity_rows(const struct prof_report_data *data, enum prof_activity which,
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
    return prof_report_pid(data, ACTIVITY(row)->process);
}

static const struct prof_report_column graph_columns[] = {
    ACTIVITY_TIMES,
    COMPUTED("pid", "Process", NUMBER, 4, graph_pid),
    INT64("graph", "Graph", NUMBER, 1, prof_activity_row, kind),
    {0},
};

static const void *graph_rows(const struct prof_report_data *data, size_t *count)
{
    return activity_rows(data, PROF_ACTIVITY_GRAPHS, count);
}

static void graph_totals(const struct prof_report_data *data, char *out, size_t size)
{
    totals_of(data, PROF_ACTIVITY_GRAPHS, "execution", out, size);
}

const struct prof_report_table prof_report_graphs_table = {
    .name = "graphs",
    .part = PROF_PART_KERNELS,
    .title = "Graphs",
    .none = "no graphs were recorded as a whole",
    .help = "Executions of CUDA graphs that were recorded as a whole, without their nodes.",
    .screen_rows = 6,
    .optional = true,
    .totals = graph_totals,
    .first_rows = 3,
    ROWS(prof_activity_row, graph),
};

/* ---- overhead and JIT ---------------------------------------------------------------------- */

static const struct prof_report_column overhead_columns[] = {
    ACTIVITY_TIMES,
    INT64("kind", "Kind", NUMBER, 0, prof_activity_row, kind),
    STRING("name", "What", WORD, 1, prof_activity_row, kind_text),
    {0},
};

static const void *overhead_rows(const struct prof_report_data *data, size_t *count)
{
    return activity_rows(data, PROF_ACTIVITY_OVERHEAD, count);
}

static void overhead_totals(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_activity_summary *all = summary(data, PROF_ACTIVITY_OVERHEAD);
    double wall = all->wall_ns > 0 ? (double)all->wall_ns : 0.0 / 0.0;
    snprintf(out, size, "%s in all, %s of the wall time", prof_duration_ns(all->listed_ns).text,
             prof_percent((double)all->listed_ns / wall).text);
}

const struct prof_report_table prof_report_overhead_table = {
    .name = "overhead",
    .part_order = 1,
    .title = "Overhead",
    .none = "no overhead recorded",
    .help = "Host time that the driver or the profiler took from the program, summed over threads.",
    .screen_rows = 6,
    .optional = true,
    .totals = overhead_totals,
    ROWS(prof_activity_row, overhead),
};

static const struct prof_report_column jit_columns[] = {
    ACTIVITY_TIMES,
    STRING("name", "What", WORD, 1, prof_activity_row, kind_text),
    {0},
};

static const void *jit_rows(const struct prof_report_data *data, size_t *count)
{
    return activity_rows(data, PROF_ACTIVITY_JIT, count);
}

static void jit_totals(const struct prof_report_data *data, char *out, size_t size)
{
    totals_of(data, PROF_ACTIVITY_JIT, "step", out, size);
}

const struct prof_report_table prof_report_jit_table = {
    .name = "jit",
    .part = PROF_PART_KERNELS,
    .part_order = 2,
    .title = "Code compiled at run time",
    .none = "none",
    .help = "Device code that the driver compiled while the program ran, or loaded from its cache.",
    .screen_rows = 4,
    .optional = true,
    .totals = jit_totals,
    ROWS(prof_activity_row, jit),
};

/* ---- unified memory ------------------------------------------------------------------------ */

static const struct prof_report_column migration_columns[] = {
    ACTIVITY_TIMES,
    INT64("bytes", "Bytes", BYTES, 1, prof_activity_row, bytes),
    INT64("faults", "Faults", COUNT, 2, prof_activity_row, faults),
    STRING("name", "What", WORD, 1, prof_activity_row, kind_text),
    {0},
};

static const void *migration_rows(const struct prof_report_data *data, size_t *count)
{
    return activity_rows(data, PROF_ACTIVITY_MIGRATIONS, count);
}

static void migration_totals(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_activity_summary *all = summary(data, PROF_ACTIVITY_MIGRATIONS);
    int64_t bytes = 0, faults = 0;
    for (size_t i = 0; i < all->count; i++) {
        bytes = prof_add(bytes, all->rows[i].bytes > 0 ? all->rows[i].bytes : 0);
        faults = prof_add(faults, all->rows[i].faults > 0 ? all->rows[i].faults : 0);
    }
    snprintf(out, size, "%s, %s page fault%s", prof_bytes_of(bytes).text, prof_count(faults).text,
             faults == 1 ? "" : "s");
}

const struct prof_report_table prof_report_migrations_table = {
    .name = "migrations",
    .part = PROF_PART_TRANSFERS,
    .part_order = 1,
    .title = "Unified memory",
    .none = "none moved",
    .help = "Managed memory that moved to where it was needed, and the faults that made it move.",
    .screen_rows = 8,
    .optional = true,
    .totals = migration_totals,
    ROWS(prof_activity_row, migration),
};

/* ---- memory pools -------------------------------------------------------------------------- */

static struct prof_report_value pool_device(const struct prof_report_data *data, const void *row)
{
    return prof_report_device_name(data, ((const struct prof_pool *)row)->device);
}

static struct prof_report_value pool_pid(const struct prof_report_data *data, const void *row)
{
    return prof_report_pid(data, ((const struct prof_pool *)row)->process);
}

static const struct prof_report_column pool_columns[] = {
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

static const void *pool_rows(const struct prof_report_data *data, size_t *count)
{
    *count = data->pools.count;
    return data->pools.rows;
}

const struct prof_report_table prof_report_pools_table = {
    .name = "pools",
    .part = PROF_PART_MEMORY,
    .part_order = 2,
    .title = "Memory pools",
    .none = "no memory pools",
    .help =
        "Reserved is what a pool held at most, Used what allocations took of it, Unused the most "
        "that it held unused.",
    .screen_rows = 4,
    .optional = true,
    ROWS(prof_pool, pool),
};
