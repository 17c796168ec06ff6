/* The tables of what a program did with its devices: kernels, memcpys and memsets, calls, waits,
 * the NVTX ranges around them, the lines that launched them; and what only some programs have:
 * graphs recorded whole, overhead, code compiled at run time, unified memory, memory pools. */
#include <stdio.h>

#include "libprof/base/saturate.h"
#include "libprof/include/prof_events.h"
#include "report/columns.h"

/* ---- estimates ------------------------------------------------------------------------------- */

static const struct prof_report_column estimate_columns[] = {
    REAL("total_ns", "Total", NS, 1, prof_estimate_row, total_ns.value),
    REAL("total_low_ns", "from", NS, 1, prof_estimate_row, total_ns.low),
    REAL("total_high_ns", "to", NS, 1, prof_estimate_row, total_ns.high),
    REAL("count", "Count", COUNT, 1, prof_estimate_row, count.value),
    REAL("count_low", "from", COUNT, 1, prof_estimate_row, count.low),
    REAL("count_high", "to", COUNT, 1, prof_estimate_row, count.high),
    INT64("recorded", "Recorded", COUNT, 2, prof_estimate_row, recorded),
    STRING("kind", "Kind", WORD, 3, prof_estimate_row, kind),
    STRING("name", "What", NAME, 1, prof_estimate_row, name),
    {0},
};

static void estimate_totals(const struct prof_report_data *data, char *out, size_t size)
{
    snprintf(
        out, size, "from %s of %s; the other tables have only these",
        prof_counted(data->estimates.recorded, "recorded iteration", "recorded iterations").text,
        prof_count(data->estimates.iterations).text);
}

const struct prof_report_table prof_report_estimates_table = {
    .name = "estimates",
    .part = PROF_PART_KERNELS,
    .title = "Estimates for the whole run",
    .none = "every iteration was recorded",
    .help = "What the whole run did, estimated from the iterations that were recorded "
            "(--overhead=PERCENT), with 95 % intervals.",
    .screen_rows = 6,
    .optional = true,
    .totals = estimate_totals,
    .first_rows = 6,
    ROWS(prof_estimate_row, estimate, estimates.rows, estimates.count),
};

/* ---- kernels --------------------------------------------------------------------------------- */

/* Of the launch configuration, where all launches have the same. */
#define CONFIG(kind, key, title, unit, rank, member)                                               \
    INDIRECT(kind, key, title, unit, rank, prof_kernel_row, config, member)

/* Blocks of a thread block cluster. */
static struct prof_report_value kernel_cluster(const struct prof_report_data *data, const void *row)
{
    const struct prof_config *config = ((const struct prof_kernel_row *)row)->config;
    const int64_t *shape = config ? config->cluster : NULL;
    int64_t blocks = 1;
    (void)data;
    for (int i = 0; shape && i < 3; i++)
        blocks *= shape[i] > 0 && shape[i] <= UINT16_MAX ? shape[i] : 0;
    return prof_report_int(shape && blocks ? blocks : PROF_UNKNOWN);
}

/* Warps that fit on a unit of the device with this launch configuration, of all that it has room
 * for. Not known where the kernel has several configurations, or devices that differ in it. */
static struct prof_report_value kernel_occupancy(const struct prof_report_data *data,
                                                 const void *row)
{
    const struct prof_device *devices;
    size_t count = prof_devices(data->capture, &devices);
    double share = count
                       ? prof_live_occupancy(devices, ((const struct prof_kernel_row *)row)->config)
                       : (double)NAN;
    for (size_t i = 1; i < count; i++) {
        double other =
            prof_live_occupancy(&devices[i], ((const struct prof_kernel_row *)row)->config);
        if (other < share || other > share)
            share = (double)NAN;
    }
    return prof_report_real(share);
}

static const struct prof_report_column kernel_columns[] = {
    TIMES(prof_kernel_row),
    INT64("unfinished", "Unfinished", COUNT, 0, prof_kernel_row, unfinished),
    INT64("failed", "Failed", COUNT, 0, prof_kernel_row, failed),
    REAL("queue_delay_ns", "Queued", NS, 0, prof_kernel_row, queue_delay_ns),
    REAL("submit_delay_ns", "Submitted", NS, 0, prof_kernel_row, submit_delay_ns),
    REAL("launch_delay_ns", "Launch delay", NS, 0, prof_kernel_row, launch_delay_ns),
    REAL("api_ns", "Launch call", NS, 0, prof_kernel_row, api_ns),
    INT64("graph_nodes", "In graphs", COUNT, 4, prof_kernel_row, graph_nodes),
    STRING("created_by", "Made by", WORD, 5, prof_kernel_row, created_by),
    COMPUTED("occupancy", "Occupancy", SHARE, 8, kernel_occupancy),
    PROF_COLUMN("library", "Library", WORD, 9, PROF_STORED(STRING, prof_kernel_row, library),
                .blank = true),
    INT64("configs", "Configs", COUNT, 0, prof_kernel_row, configs),
    CONFIG(INT64, "grid_x", "GrdX", NUMBER, 0, grid[0]),
    CONFIG(INT64, "grid_y", "GrdY", NUMBER, 0, grid[1]),
    CONFIG(INT64, "grid_z", "GrdZ", NUMBER, 0, grid[2]),
    CONFIG(INT64, "block_x", "BlkX", NUMBER, 0, block[0]),
    CONFIG(INT64, "block_y", "BlkY", NUMBER, 0, block[1]),
    CONFIG(INT64, "block_z", "BlkZ", NUMBER, 0, block[2]),
    COMPUTED("cluster_blocks", "Cluster", NUMBER, 0, kernel_cluster, .in_top = true),
    PROF_COLUMN("registers", "Reg/Trd", NUMBER, 0,
                THROUGH(INT64, prof_kernel_row, config, registers), .in_top = true),
    CONFIG(INT64, "shared_static_bytes", "StcSMem", BYTES, 0, shared_static),
    CONFIG(INT64, "shared_dynamic_bytes", "DymSMem", BYTES, 0, shared_dynamic),
    PROF_COLUMN("local_bytes", "Local/Trd", BYTES, 0,
                THROUGH(INT64, prof_kernel_row, config, local_bytes), .in_top = true),
    STRING("full_name", "Full name", NAME, 0, prof_kernel_row, full_name),
    STRING("name", "Kernel", NAME, 1, prof_kernel_row, name),
    {0},
};

static const struct prof_report_column kernel_config_columns[] = {
    CONFIG(XYZ, "grid", "Grid", WORD, 1, grid),
    CONFIG(XYZ, "block", "Block", WORD, 1, block),
    INT64("total_ns", "Total", NS, 1, prof_kernel_row, duration_ns.sum),
    INT64("count", "Count", COUNT, 1, prof_kernel_row, duration_ns.count),
    REAL("average_ns", "Average", NS, 1, prof_kernel_row, duration_ns.mean),
    REAL("median_ns", "Median", NS, 1, prof_kernel_row, duration_ns.median),
    INT64("min_ns", "Min", NS, 1, prof_kernel_row, duration_ns.min),
    INT64("max_ns", "Max", NS, 1, prof_kernel_row, duration_ns.max),
    REAL("p95_ns", "p95", NS, 1, prof_kernel_row, duration_ns.p95),
    COMPUTED("occupancy", "Occupancy", SHARE, 1, kernel_occupancy),
    CONFIG(INT64, "registers", "Reg/Trd", NUMBER, 1, registers),
    CONFIG(INT64, "shared_static_bytes", "StcSMem", BYTES, 1, shared_static),
    CONFIG(INT64, "shared_dynamic_bytes", "DymSMem", BYTES, 1, shared_dynamic),
    CONFIG(INT64, "local_bytes", "Local/Trd", BYTES, 1, local_bytes),
    STRING("name", "Kernel", NAME, 0, prof_kernel_row, name),
    {0},
};

/* What a row of the kernels' table unfolds on the HTML page. */
const struct prof_report_table prof_report_kernel_configs_table = {
    .name = "kernel_configs",
    .title = "Launch configurations",
    .none = "no launch configurations",
    .columns = kernel_config_columns,
    .row_bytes = sizeof(struct prof_kernel_row),
};

static void kernel_totals(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_kernel_summary *all = &data->kernels;
    int64_t nodes = prof_report_kernels_in_graphs(data);
    const char *what = nodes               ? all->kernels == 1 ? "execution" : "executions"
                       : all->kernels == 1 ? "launch"
                                           : "launches";
    int64_t others = data->filter ? 0 : prof_other_kernels(data->capture); /* in one row */
    int64_t count = (int64_t)all->count + (others ? others - 1 : 0);
    snprintf(out, size, "%s %s of %s kernel%s, %s", prof_count(all->kernels).text, what,
             prof_count(count).text, count == 1 ? "" : "s", prof_duration_ns(all->listed_ns).text);
    if (nodes > 0)
        prof_append(out, size, "; %s in graphs", prof_count(nodes).text);
    if (all->unfinished > 0)
        prof_append(out, size, "; %s not seen to end", prof_count(all->unfinished).text);
    prof_report_append_wall(data, out, size);
}

const struct prof_report_table prof_report_kernels_table = {
    .name = "kernels",
    .part = PROF_PART_KERNELS,
    .unfolds = true,
    .in_summaries = true, /* by the sums per second */
    .title = "Kernels",
    .none = "no kernels",
    .help = "Share is of the kernel time listed, Of wall of the run's length: the latter sums to "
            "more than 100 % when kernels overlap, on one device or on several.",
    .screen_rows = 10,
    .totals = kernel_totals,
    .first_rows = 5,
    .name_cells = PROF_REPORT_KERNEL_CELLS,
    ROWS(prof_kernel_row, kernel, kernels.rows, kernels.count),
};

/* ---- transfers ------------------------------------------------------------------------------- */

/* Kind 0 is "not known"; a fill has no source. */
ROW_CELL(transfer_source, prof_transfer_row, transfer,
         prof_report_text(transfer->source_kind > 0 ? transfer->source_text : NULL))

ROW_CELL(transfer_target, prof_transfer_row, transfer,
         prof_report_text(transfer->target_kind > 0 ? transfer->target_text : NULL))

static const struct prof_report_column transfer_columns[] = {
    INT64("total_ns", "Total", NS, 1, prof_transfer_row, duration_ns.sum),
    REAL("share", "Share", SHARE, 2, prof_transfer_row, share),
    REAL("wall_share", "Of wall", SHARE, 7, prof_transfer_row, wall_share),
    INT64("count", "Count", COUNT, 1, prof_transfer_row, duration_ns.count),
    INT64("bytes", "Bytes", BYTES, 1, prof_transfer_row, bytes.sum),
    REAL("rate_bytes_per_s", "Speed", RATE, 1, prof_transfer_row, mean_rate),
    REAL("average_ns", "Average", NS, 5, prof_transfer_row, duration_ns.mean),
    REAL("median_ns", "Median", NS, 0, prof_transfer_row, duration_ns.median),
    INT64("min_ns", "Min", NS, 0, prof_transfer_row, duration_ns.min),
    INT64("max_ns", "Max", NS, 6, prof_transfer_row, duration_ns.max),
    REAL("stddev_ns", "StdDev", NS, 0, prof_transfer_row, duration_ns.stddev),
    REAL("average_bytes", "Avg size", BYTES, 0, prof_transfer_row, bytes.mean),
    REAL("median_bytes", "Med size", BYTES, 0, prof_transfer_row, bytes.median),
    INT64("min_bytes", "Min size", BYTES, 0, prof_transfer_row, bytes.min),
    INT64("max_bytes", "Max size", BYTES, 0, prof_transfer_row, bytes.max),
    REAL("median_rate_bytes_per_s", "Med speed", RATE, 0, prof_transfer_row, rate.median),
    INT64("blocking", "Blocking", COUNT, 4, prof_transfer_row, blocking),
    INT64("unfinished", "Unfinished", COUNT, 0, prof_transfer_row, unfinished),
    COMPUTED("source", "From", WORD, 4, transfer_source),
    COMPUTED("target", "To", WORD, 4, transfer_target),
    STRING("name", "Kind", WORD, 1, prof_transfer_row, kind_text),
    {0},
};

static void transfer_totals(const struct prof_report_data *data, char *out, size_t size)
{
    prof_memory_operations_text(&data->transfers.total, out, size);
    prof_report_append_wall(data, out, size);
}

const struct prof_report_table prof_report_transfers_table = {
    .name = "transfers",
    .part = PROF_PART_TRANSFERS,
    .title = "Memcpy and memset",
    .none = "no memcpys or memsets",
    .help = "Speed is bytes over the time of the same operations, in powers of 1000.",
    .screen_rows = 6,
    .totals = transfer_totals,
    .first_rows = 3,
    ROWS(prof_transfer_row, transfer, transfers.rows, transfers.count),
};

/* ---- calls and waits ------------------------------------------------------------------------- */

static const struct prof_report_column api_columns[] = {
    TIMES(prof_api_row),
    INT64("failed", "Failed", COUNT, 4, prof_api_row, failed),
    STRING("name", "Call", NAME, 1, prof_api_row, name),
    {0},
};

static void api_totals(const struct prof_report_data *data, char *out, size_t size)
{
    snprintf(out, size, "%s call%s, %s on the host", prof_count(data->api.calls).text,
             data->api.calls == 1 ? "" : "s", prof_duration_ns(data->api.listed_ns).text);
}

const struct prof_report_table prof_report_api_table = {
    .name = "api",
    .part_order = 1,
    .title = "API calls",
    .none = "no API calls",
    .help = "Host time inside the calls, summed over threads.",
    .screen_rows = 6,
    .totals = api_totals,
    ROWS(prof_api_row, api, api.rows, api.count),
};

static const struct prof_report_column wait_columns[] = {
    TIMES(prof_sync_row),
    STRING("kind", "Waits for", WORD, 1, prof_sync_row, kind_text),
    STRING("name", "Call", NAME, 1, prof_sync_row, api_name),
    {0},
};

static void wait_totals(const struct prof_report_data *data, char *out, size_t size)
{
    snprintf(out, size, "%s, host blocked for %s",
             prof_counted(data->waits.waits, "call", "calls").text,
             prof_duration_ns(data->waits.listed_ns).text);
}

const struct prof_report_table prof_report_waits_table = {
    .name = "waits",
    .part_order = 1,
    .title = "Synchronizations",
    .none = "no synchronizations",
    .help = "Time the host, or a stream, waited for the device.",
    .screen_rows = 4,
    .totals = wait_totals,
    ROWS(prof_sync_row, wait, waits.rows, waits.count),
};

/* ---- ranges ---------------------------------------------------------------------------------- */

CELL(range_style,
     prof_report_text(((const struct prof_range_row *)row)->style == PROF_RANGE_PUSH_POP
                          ? "push/pop"
                          : "start/end"))

static const struct prof_report_column range_columns[] = {
    INT64("total_ns", "Total", NS, 1, prof_range_row, duration_ns.sum),
    REAL("share", "Share", SHARE, 0, prof_range_row, share),
    REAL("wall_share", "Of wall", SHARE, 3, prof_range_row, wall_share),
    INT64("count", "Count", COUNT, 1, prof_range_row, duration_ns.count),
    REAL("average_ns", "Average", NS, 2, prof_range_row, duration_ns.mean),
    REAL("median_ns", "Median", NS, 0, prof_range_row, duration_ns.median),
    INT64("min_ns", "Min", NS, 0, prof_range_row, duration_ns.min),
    INT64("max_ns", "Max", NS, 7, prof_range_row, duration_ns.max),
    REAL("stddev_ns", "StdDev", NS, 0, prof_range_row, duration_ns.stddev),
    INT64("self_ns", "Self", NS, 4, prof_range_row, self_ns),
    INT64("kernel_ns", "GPU time", NS, 1, prof_range_row, kernel_ns),
    INT64("kernels", "Kernels", COUNT, 3, prof_range_row, kernels),
    INT64("memcpy_memset_ns", "Memcpy, memset", NS, 5, prof_range_row, memcpy_memset_ns),
    INT64("memcpys", "Memcpys", COUNT, 0, prof_range_row, memcpys),
    INT64("memsets", "Memsets", COUNT, 0, prof_range_row, memsets),
    ENERGY("Energy", 2, prof_range_row, energy),
    INT64("open", "Open", COUNT, 0, prof_range_row, open),
    COMPUTED("style", "Style", WORD, 0, range_style),
    STRING("domain", "Domain", NAME, 0, prof_range_row, domain),
    STRING("name", "Range", NAME, 1, prof_range_row, name),
    {0},
};

static void range_totals(const struct prof_report_data *data, char *out, size_t size)
{
    snprintf(out, size, "%s range%s", prof_count(data->ranges.ranges).text,
             data->ranges.ranges == 1 ? "" : "s");
    if (data->ranges.open > 0)
        prof_append(out, size, ", %s never closed", prof_count(data->ranges.open).text);
}

const struct prof_report_table prof_report_ranges_table = {
    .name = "ranges",
    .title = "NVTX ranges",
    .none = "no NVTX ranges",
    .help = "GPU time is the sum of the kernels launched inside the range; nested ranges count the "
            "same kernel each. A range that was never closed lasts to the end and has all later "
            "kernels of its thread.",
    .screen_rows = 6,
    .totals = range_totals,
    ROWS(prof_range_row, range, ranges.rows, ranges.count),
};

/* ---- lines of the program -------------------------------------------------------------------- */

#define LINE(row) ((const struct prof_launch_line *)(row))

CELL(line_pass, prof_report_text(LINE(row)->backward ? "backward" : NULL))

/* Of the line's device time. */
CELL(line_work_share, prof_report_real(LINE(row)->device_ns > 0 ? (double)LINE(row)->work_ns /
                                                                      (double)LINE(row)->device_ns
                                                                : (double)NAN))

static const struct prof_report_column line_columns[] = {
    INT64("total_ns", "Total", NS, 1, prof_launch_line, device_ns),
    REAL("share", "Share", SHARE, 1, prof_launch_line, share),
    REAL("wall_share", "Of wall", SHARE, 3, prof_launch_line, wall_share),
    INT64("count", "Count", COUNT, 2, prof_launch_line, count),
    INT64("bytes", "Bytes", BYTES, 0, prof_launch_line, bytes),
    STRING("where", "Line", NAME, 1, prof_launch_line, where),
    STRING("function", "Function", NAME, 0, prof_launch_line, function),
    STRING("file", "File", NAME, 0, prof_launch_line, file),
    INT64("line", "Line number", NUMBER, 0, prof_launch_line, line),
    STRING("module", "Module", NAME, 0, prof_launch_line, module),
    STRING("via", "Via", NAME, 0, prof_launch_line, via),
    COMPUTED("pass", "Pass", WORD, 0, line_pass),
    INT64("works", "Kinds", COUNT, 0, prof_launch_line, works),
    COMPUTED("most_share", "Of it", SHARE, 0, line_work_share),
    STRING("most", "Most of it", NAME, 1, prof_launch_line, work),
    {0},
};

static void line_totals(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_launch_lines *lines = &data->lines;
    snprintf(out, size, "%s, %s", prof_counted((int64_t)lines->count, "place", "places").text,
             prof_duration_ns(lines->device_ns - lines->unknown_ns).text);
    if (lines->unknown_operations)
        prof_append(out, size, "; %s without a stack, %s",
                    prof_counted(lines->unknown_operations, "operation", "operations").text,
                    prof_duration_ns(lines->unknown_ns).text);
    prof_report_append_wall(data, out, size);
}

const struct prof_report_table prof_report_lines_table = {
    .name = "lines",
    .part = PROF_PART_KERNELS,
    .title = "Lines that launch",
    .none = "no host stacks were taken (--stacks)",
    .help = "Device work by the line of the program that launched it (perfkit run --stacks); "
            "backward: by the line that called PyTorch's operator forward.",
    .screen_rows = 8,
    .optional = true,
    .totals = line_totals,
    .first_rows = 4,
    ROWS(prof_launch_line, line, lines.rows, lines.count),
};

/* ---- what only some programs have ------------------------------------------------------------ */

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

static void totals_of(const struct prof_report_data *data, enum prof_activity which,
                      const char *what, char *out, size_t size)
{
    const struct prof_activity_summary *all = &data->activities[which];
    snprintf(out, size, "%s %s%s, %s", prof_count(all->events).text, what,
             all->events == 1 ? "" : "s", prof_duration_ns(all->listed_ns).text);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static const struct prof_report_column graph_columns[] = {
    ACTIVITY_TIMES,
    BY_ID(INT64, "pid", "Process", NUMBER, 4, prof_activity_row, process, process, pid),
    INT64("graph", "Graph", NUMBER, 1, prof_activity_row, kind),
    {0},
};

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
    ROWS(prof_activity_row, graph, activities[PROF_ACTIVITY_GRAPHS].rows,
         activities[PROF_ACTIVITY_GRAPHS].count),
};

/* ---- overhead and JIT ------------------------------------------------------------------------ */

static const struct prof_report_column overhead_columns[] = {
    ACTIVITY_TIMES,
    INT64("kind", "Kind", NUMBER, 0, prof_activity_row, kind),
    STRING("name", "What", WORD, 1, prof_activity_row, kind_text),
    {0},
};

static void overhead_totals(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_activity_summary *all = &data->activities[PROF_ACTIVITY_OVERHEAD];
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
    ROWS(prof_activity_row, overhead, activities[PROF_ACTIVITY_OVERHEAD].rows,
         activities[PROF_ACTIVITY_OVERHEAD].count),
};

static const struct prof_report_column jit_columns[] = {
    ACTIVITY_TIMES,
    STRING("name", "What", WORD, 1, prof_activity_row, kind_text),
    {0},
};

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
    ROWS(prof_activity_row, jit, activities[PROF_ACTIVITY_JIT].rows,
         activities[PROF_ACTIVITY_JIT].count),
};

/* ---- unified memory -------------------------------------------------------------------------- */

static const struct prof_report_column migration_columns[] = {
    ACTIVITY_TIMES,
    INT64("bytes", "Bytes", BYTES, 1, prof_activity_row, bytes),
    INT64("faults", "Faults", COUNT, 2, prof_activity_row, faults),
    STRING("name", "What", WORD, 1, prof_activity_row, kind_text),
    {0},
};

static void migration_totals(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_activity_summary *all = &data->activities[PROF_ACTIVITY_MIGRATIONS];
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
    ROWS(prof_activity_row, migration, activities[PROF_ACTIVITY_MIGRATIONS].rows,
         activities[PROF_ACTIVITY_MIGRATIONS].count),
};

/* ---- memory pools ---------------------------------------------------------------------------- */

static const struct prof_report_column pool_columns[] = {
    INT64("peak_bytes", "Reserved", BYTES, 1, prof_pool, peak_bytes),
    INT64("peak_used_bytes", "Used", BYTES, 1, prof_pool, peak_used_bytes),
    INT64("unused_bytes", "Unused", BYTES, 2, prof_pool, unused_bytes),
    INT64("threshold_bytes", "Kept up to", BYTES, 3, prof_pool, threshold_bytes),
    INT64("trims", "Trims", COUNT, 4, prof_pool, trims),
    INT64("made_ns", "Made", MOMENT, 2, prof_pool, made_ns),
    INT64("destroyed_ns", "Destroyed", MOMENT, 2, prof_pool, destroyed_ns),
    INT64("address", "Address", NUMBER, 0, prof_pool, address),
    BY_ID(INT64, "pid", "Process", NUMBER, 5, prof_pool, process, process, pid),
    OF_ID("name", "Device", NAME, 1, prof_pool, device, prof_report_device_name),
    {0},
};

const struct prof_report_table prof_report_pools_table = {
    .name = "pools",
    .part = PROF_PART_MEMORY,
    .part_order = 2,
    .title = "Memory pools",
    .none = "no memory pools",
    .help = "Reserved is what a pool held at most, Used what allocations took of it, Unused the "
            "most that it held unused.",
    .screen_rows = 4,
    .optional = true,
    ROWS(prof_pool, pool, pools.rows, pools.count),
};
