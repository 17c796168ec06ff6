/* Every table and column that a report shows. A new column is a new line here; the formats follow.
 *
 * Order of columns: numbers first, the name last, because names are long and numbers are compared
 * down a column. Keys carry the unit; titles are what people read. */
#include <stdio.h>
#include <string.h>

#include "report/columns.h"

static struct prof_report_value share_value(int64_t part, int64_t whole)
{
    struct prof_report_value value = {0};
    if (part != PROF_UNKNOWN && whole > 0) {
        value.kind = PROF_VALUE_REAL;
        value.real = (double)part / (double)whole;
    }
    return value;
}

void prof_report_say_wall(const struct prof_report_data *data, char *out, size_t size, size_t used)
{
    if (data->utilisation.count > 1 && used < size)
        snprintf(out + used, size - used, "; of wall: 100 %% is one of %s devices",
                 prof_count((int64_t)data->utilisation.count).text);
}

/* ---- devices ------------------------------------------------------------------------------ */

#define UTIL(row) ((const struct prof_utilisation_row *)(row))

static struct prof_report_value util_name(const struct prof_report_data *data, const void *row)
{
    const struct prof_device *device = prof_device(data->capture, UTIL(row)->device);
    return prof_report_text(device ? device->name : NULL);
}

static struct prof_report_value util_title(const struct prof_report_data *data, const void *row)
{
    const struct prof_device *device = prof_device(data->capture, UTIL(row)->device);
    return prof_report_text(device ? device->title : NULL);
}

static struct prof_report_value util_api(const struct prof_report_data *data, const void *row)
{
    const struct prof_device *device = prof_device(data->capture, UTIL(row)->device);
    return prof_report_text(device ? device->api : NULL);
}

static struct prof_report_value util_ordinal(const struct prof_report_data *data, const void *row)
{
    const struct prof_device *device = prof_device(data->capture, UTIL(row)->device);
    return prof_report_int(device ? device->ordinal : PROF_UNKNOWN);
}

static struct prof_report_value util_busy(const struct prof_report_data *data, const void *row)
{
    (void)data;
    return share_value(UTIL(row)->busy_ns, UTIL(row)->window_ns);
}

static const struct prof_report_column device_columns[] = {
    COMPUTED("busy_share", "Busy", SHARE, 1, util_busy),
    INT64("busy_ns", "Busy time", NS, 1, prof_utilisation_row, busy_ns),
    INT64("idle_ns", "Idle", NS, 2, prof_utilisation_row, idle_ns),
    INT64("kernel_ns", "Kernels", NS, 3, prof_utilisation_row, kernel_ns),
    INT64("transfer_ns", "Transfers", NS, 4, prof_utilisation_row, transfer_ns),
    INT64("overlap_ns", "Overlap", NS, 5, prof_utilisation_row, overlap_ns),
    INT64("gap_ns", "Gaps", NS, 0, prof_utilisation_row, gap_ns),
    INT64("gap_count", "Gap count", COUNT, 0, prof_utilisation_row, gap_count),
    INT64("kernel_sum_ns", "Kernel sum", NS, 0, prof_utilisation_row, kernel_sum_ns),
    INT64("transfer_sum_ns", "Transfer sum", NS, 0, prof_utilisation_row, transfer_sum_ns),
    INT64("kernels", "Kernel count", COUNT, 0, prof_utilisation_row, kernels),
    INT64("transfers", "Transfer count", COUNT, 0, prof_utilisation_row, transfers),
    INT64("unfinished", "Unfinished", COUNT, 0, prof_utilisation_row, unfinished),
    INT64("graphs", "Graph count", COUNT, 0, prof_utilisation_row, graphs),
    INT64("max_concurrent_kernels", "Most at once", COUNT, 6, prof_utilisation_row,
          max_concurrent_kernels),
    INT64("first_ns", "First", MOMENT, 0, prof_utilisation_row, first_ns),
    INT64("last_ns", "Last", MOMENT, 0, prof_utilisation_row, last_ns),
    INT64("window_ns", "Window", NS, 0, prof_utilisation_row, window_ns),
    INT64("device", "Device id", NUMBER, 0, prof_utilisation_row, device),
    COMPUTED("ordinal", "Ordinal", NUMBER, 0, util_ordinal),
    COMPUTED("api", "API", WORD, 4, util_api),
    COMPUTED("title", "Device", NAME, 1, util_title),
    COMPUTED("name", "Name", NAME, 1, util_name),
    {0},
};

static const void *device_rows(const struct prof_report_data *data, size_t *count)
{
    *count = data->utilisation.count;
    return data->utilisation.rows;
}

static struct prof_report_value gap_device(const struct prof_report_data *data, const void *row)
{
    return prof_report_device_name(data, ((const struct prof_report_gap *)row)->device);
}

static const struct prof_report_column gap_columns[] = {
    INT64("duration_ns", "Idle for", NS, 1, prof_report_gap, gap.duration_ns),
    INT64("start_ns", "From", MOMENT, 1, prof_report_gap, gap.start_ns),
    INT64("before_ns", "Busy before", NS, 3, prof_report_gap, gap.before_ns),
    INT64("device", "Device id", NUMBER, 0, prof_report_gap, device),
    COMPUTED("name", "Device", NAME, 1, gap_device),
    {0},
};

static const void *gap_rows(const struct prof_report_data *data, size_t *count)
{
    *count = data->gap_count;
    return data->gaps;
}

/* ---- kernels ------------------------------------------------------------------------------ */

#define CONFIG(name, unit_member)                                                                  \
    static struct prof_report_value kernel_##name(const struct prof_report_data *data,             \
                                                  const void *row)                                 \
    {                                                                                              \
        const struct prof_config *config = ((const struct prof_kernel_row *)row)->config;          \
        (void)data;                                                                                \
        return prof_report_int(config ? config->unit_member : PROF_UNKNOWN);                             \
    }
CONFIG(grid_x, grid[0])
CONFIG(grid_y, grid[1])
CONFIG(grid_z, grid[2])
CONFIG(block_x, block[0])
CONFIG(block_y, block[1])
CONFIG(block_z, block[2])
CONFIG(registers, registers)
CONFIG(shared_static, shared_static)
CONFIG(shared_dynamic, shared_dynamic)
CONFIG(local, local_bytes)

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
    INT64("configs", "Configs", COUNT, 0, prof_kernel_row, configs),
    COMPUTED("grid_x", "GrdX", NUMBER, 0, kernel_grid_x),
    COMPUTED("grid_y", "GrdY", NUMBER, 0, kernel_grid_y),
    COMPUTED("grid_z", "GrdZ", NUMBER, 0, kernel_grid_z),
    COMPUTED("block_x", "BlkX", NUMBER, 0, kernel_block_x),
    COMPUTED("block_y", "BlkY", NUMBER, 0, kernel_block_y),
    COMPUTED("block_z", "BlkZ", NUMBER, 0, kernel_block_z),
    COMPUTED("registers", "Reg/Trd", NUMBER, 0, kernel_registers),
    COMPUTED("shared_static_bytes", "StcSMem", BYTES, 0, kernel_shared_static),
    COMPUTED("shared_dynamic_bytes", "DymSMem", BYTES, 0, kernel_shared_dynamic),
    COMPUTED("local_bytes", "Local/Trd", BYTES, 0, kernel_local),
    STRING("full_name", "Full name", NAME, 0, prof_kernel_row, full_name),
    STRING("name", "Kernel", NAME, 1, prof_kernel_row, name),
    {0},
};

static const void *kernel_rows(const struct prof_report_data *data, size_t *count)
{
    *count = data->kernels.count;
    return data->kernels.rows;
}

static void kernel_totals(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_kernel_summary *all = &data->kernels;
    int64_t nodes = 0;
    for (size_t i = 0; i < all->count; i++)
        nodes += all->rows[i].graph_nodes;
    const char *what = nodes             ? all->kernels == 1 ? "execution" : "executions"
                       : all->kernels == 1 ? "launch"
                                           : "launches";
    int n = snprintf(out, size, "%s %s of %s kernel%s, %s", prof_count(all->kernels).text, what,
                     prof_count((int64_t)all->count).text, all->count == 1 ? "" : "s",
                     prof_duration_ns(all->listed_ns).text);
    if (nodes > 0 && n > 0 && (size_t)n < size)
        n += snprintf(out + n, size - (size_t)n, "; %s in graphs", prof_count(nodes).text);
    if (all->unfinished > 0 && n > 0 && (size_t)n < size)
        n += snprintf(out + n, size - (size_t)n, "; %s not seen to end",
                      prof_count(all->unfinished).text);
    if (n > 0)
        prof_report_say_wall(data, out, size, (size_t)n);
}

/* ---- transfers ---------------------------------------------------------------------------- */

/* Kind 0 is "not known"; a fill has no source. */
static struct prof_report_value transfer_source(const struct prof_report_data *data,
                                                const void *row)
{
    const struct prof_transfer_row *transfer = row;
    (void)data;
    return prof_report_text(transfer->source_kind > 0 ? transfer->source_text : NULL);
}

static struct prof_report_value transfer_target(const struct prof_report_data *data,
                                                const void *row)
{
    const struct prof_transfer_row *transfer = row;
    (void)data;
    return prof_report_text(transfer->target_kind > 0 ? transfer->target_text : NULL);
}

static const struct prof_report_column transfer_columns[] = {
    INT64("total_ns", "Total", NS, 1, prof_transfer_row, duration_ns.sum),
    REAL("share", "Share", SHARE, 2, prof_transfer_row, share),
    REAL("wall_share", "Of wall", SHARE, 3, prof_transfer_row, wall_share),
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

static const void *transfer_rows(const struct prof_report_data *data, size_t *count)
{
    *count = data->transfers.count;
    return data->transfers.rows;
}

static void transfer_totals(const struct prof_report_data *data, char *out, size_t size)
{
    int n =
        snprintf(out, size, "%s transfer%s, %s copied, %s",
                 prof_count(data->transfers.transfers).text,
                 data->transfers.transfers == 1 ? "" : "s",
                 prof_bytes_of(data->transfers.bytes).text,
                 prof_duration_ns(data->transfers.listed_ns).text);
    if (n > 0)
        prof_report_say_wall(data, out, size, (size_t)n);
}

/* ---- calls and waits ---------------------------------------------------------------------- */

static const struct prof_report_column api_columns[] = {
    TIMES(prof_api_row),
    INT64("failed", "Failed", COUNT, 4, prof_api_row, failed),
    STRING("name", "Call", NAME, 1, prof_api_row, name),
    {0},
};

static const void *api_rows(const struct prof_report_data *data, size_t *count)
{
    *count = data->api.count;
    return data->api.rows;
}

static void api_totals(const struct prof_report_data *data, char *out, size_t size)
{
    snprintf(out, size, "%s call%s, %s on the host", prof_count(data->api.calls).text,
             data->api.calls == 1 ? "" : "s", prof_duration_ns(data->api.listed_ns).text);
}

static const struct prof_report_column wait_columns[] = {
    TIMES(prof_sync_row),
    STRING("kind", "Waits for", WORD, 1, prof_sync_row, kind_text),
    STRING("name", "Call", NAME, 1, prof_sync_row, api_name),
    {0},
};

static const void *wait_rows(const struct prof_report_data *data, size_t *count)
{
    *count = data->waits.count;
    return data->waits.rows;
}

static void wait_totals(const struct prof_report_data *data, char *out, size_t size)
{
    snprintf(out, size, "%s wait%s, the host stood still for %s",
             prof_count(data->waits.waits).text, data->waits.waits == 1 ? "" : "s",
             prof_duration_ns(data->waits.listed_ns).text);
}

/* ---- ranges ------------------------------------------------------------------------------- */

static struct prof_report_value range_style(const struct prof_report_data *data, const void *row)
{
    (void)data;
    return prof_report_text(((const struct prof_range_row *)row)->style == PROF_RANGE_PUSH_POP
                          ? "push/pop"
                          : "start/end");
}

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
    INT64("transfer_ns", "Copy time", NS, 5, prof_range_row, transfer_ns),
    INT64("transfers", "Copies", COUNT, 0, prof_range_row, transfers),
    INT64("open", "Open", COUNT, 0, prof_range_row, open),
    COMPUTED("style", "Style", WORD, 0, range_style),
    STRING("domain", "Domain", NAME, 0, prof_range_row, domain),
    STRING("name", "Range", NAME, 1, prof_range_row, name),
    {0},
};

static const void *range_rows(const struct prof_report_data *data, size_t *count)
{
    *count = data->ranges.count;
    return data->ranges.rows;
}

static void range_totals(const struct prof_report_data *data, char *out, size_t size)
{
    int n = snprintf(out, size, "%s range%s", prof_count(data->ranges.ranges).text,
                     data->ranges.ranges == 1 ? "" : "s");
    if (data->ranges.open > 0 && n > 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, ", %s never closed",
                 prof_count(data->ranges.open).text);
}

/* ---- memory ------------------------------------------------------------------------------- */

static const struct prof_report_column memory_columns[] = {
    INT64("peak_bytes", "Peak", BYTES, 1, prof_memory_row, peak_bytes),
    INT64("peak_ns", "At", MOMENT, 3, prof_memory_row, peak_ns),
    INT64("count", "Allocations", COUNT, 1, prof_memory_row, bytes.count),
    INT64("total_bytes", "Total", BYTES, 2, prof_memory_row, bytes.sum),
    REAL("average_bytes", "Average", BYTES, 5, prof_memory_row, bytes.mean),
    INT64("min_bytes", "Min", BYTES, 0, prof_memory_row, bytes.min),
    INT64("max_bytes", "Max", BYTES, 4, prof_memory_row, bytes.max),
    INT64("freed", "Freed", COUNT, 3, prof_memory_row, freed),
    INT64("leaks", "Leaks", COUNT, 1, prof_memory_row, leaks),
    INT64("leaked_bytes", "Leaked", BYTES, 1, prof_memory_row, leaked_bytes),
    STRING("name", "Memory", WORD, 1, prof_memory_row, kind_text),
    {0},
};

static const void *memory_rows(const struct prof_report_data *data, size_t *count)
{
    *count = data->memory.count;
    return data->memory.rows;
}

static const void *memory_total(const struct prof_report_data *data)
{
    return &data->memory.total;
}

static void memory_totals(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_memory_row *all = &data->memory.total;
    int n = snprintf(out, size, "peak %s at %s", prof_bytes_of(all->peak_bytes).text,
                     prof_duration_ns(all->peak_ns).text);
    if (n < 0 || (size_t)n >= size)
        return;
    if (all->leaks > 0)
        snprintf(out + n, size - (size_t)n, ", %s of %s allocations %s (%s)",
                 prof_count(all->leaks).text, prof_count(all->bytes.count).text,
                 prof_report_is_live(data->info) ? "not freed so far" : "never freed",
                 prof_bytes_of(all->leaked_bytes).text);
    else
        snprintf(out + n, size - (size_t)n, ", everything freed");
}

static struct prof_report_value leak_kind(const struct prof_report_data *data, const void *row)
{
    (void)data;
    return prof_report_text(prof_memory_kind_text(((const struct prof_allocation *)row)->kind));
}

static struct prof_report_value leak_device(const struct prof_report_data *data, const void *row)
{
    return prof_report_device_name(data, ((const struct prof_allocation *)row)->device);
}

static struct prof_report_value leak_pid(const struct prof_report_data *data, const void *row)
{
    const struct prof_process *process =
        prof_process(data->capture, ((const struct prof_allocation *)row)->process);
    return prof_report_int(process ? process->pid : PROF_UNKNOWN);
}

static const struct prof_report_column leak_columns[] = {
    INT64("bytes", "Bytes", BYTES, 1, prof_allocation, bytes),
    INT64("start_ns", "Allocated at", MOMENT, 1, prof_allocation, start_ns),
    INT64("address", "Address", NUMBER, 0, prof_allocation, address),
    COMPUTED("pid", "Process", NUMBER, 2, leak_pid),
    COMPUTED("kind", "Memory", WORD, 1, leak_kind),
    COMPUTED("name", "Device", NAME, 1, leak_device),
    {0},
};

static const void *leak_rows(const struct prof_report_data *data, size_t *count)
{
    *count = data->memory.leak_count;
    return data->memory.leaks;
}

/* ---- processes and trust ------------------------------------------------------------------ */

static const struct prof_report_column process_columns[] = {
    INT64("pid", "Process", NUMBER, 1, prof_process, pid),
    INT64("parent_pid", "Parent", NUMBER, 3, prof_process, parent_pid),
    INT64("start_ns", "Start", MOMENT, 2, prof_process, start_ns),
    INT64("end_ns", "End", MOMENT, 2, prof_process, end_ns),
    STRING("end_reason", "Ended by", WORD, 1, prof_process, end_reason),
    INT64("exit_status", "Status", NUMBER, 1, prof_process, exit_status),
    INT64("exit_signal", "Signal", NUMBER, 2, prof_process, exit_signal),
    INT64("rank", "Rank", NUMBER, 0, prof_process, rank),
    STRING("host", "Host", NAME, 0, prof_process, host),
    STRING("name", "Command", NAME, 1, prof_process, command),
    {0},
};

static const void *process_rows(const struct prof_report_data *data, size_t *count)
{
    *count = data->process_count;
    return data->processes;
}

static const struct prof_report_column balance_columns[] = {
    INT64("called", "Called", COUNT, 1, prof_balance, called),
    INT64("recorded", "Recorded", COUNT, 1, prof_balance, recorded),
    INT64("failed", "Failed", COUNT, 1, prof_balance, failed),
    INT64("captured", "In graphs", COUNT, 1, prof_balance, captured),
    INT64("dropped", "Dropped", COUNT, 1, prof_balance, dropped),
    INT64("outstanding", "Outstanding", COUNT, 1, prof_balance, outstanding),
    INT64("filtered", "Filtered", COUNT, 4, prof_balance, filtered),
    INT64("uncalled", "Uncalled", COUNT, 5, prof_balance, uncalled),
    INT64("remainder", "Missing", COUNT, 1, prof_balance, remainder),
    STRING("name", "What", WORD, 1, prof_balance, subject),
    {0},
};

static const void *balance_rows(const struct prof_report_data *data, size_t *count)
{
    *count = data->trust.total_count;
    return data->trust.totals;
}

/* clang-format off */
const struct prof_report_table prof_report_tables[] = {
    {.name = "devices", .title = "Devices", .none = "no device was used",
     .help = "Busy is the union of kernels, whole graphs, copies and fills; overlap is the time when kernels and "
             "transfers ran at once; idle is the rest of the wall time.",
     ROWS(prof_utilisation_row, device)},
    {.name = "gaps", .title = "Longest idle times", .none = "no gaps",
     .help = "Times between the first and the last operation of a device when it had nothing to do.",
     .screen_rows = 3, ROWS(prof_report_gap, gap)},
    {.name = "ranks", .title = "Ranks", .none = "no ranks",
     .help = "Times are unions within the iterations, or from first to last operation: exposed is "
             "collectives while no other kernel ran, waiting is in them until the last rank had come; "
             "came last counts the collectives that all others waited for.",
     .screen_rows = 16, .optional = true, .worth = prof_report_rank_worth,
     .totals = prof_report_rank_totals, ROWS(prof_rank_row, prof_report_rank)},
    {.name = "collectives", .title = "Collectives", .none = "no collective operations",
     .help = "By communicator, operation and message, over all ranks; without waiting is the time from "
             "the last arrival on; algorithm and bus bandwidth are those of nccl-tests.",
     .screen_rows = 8, .optional = true, .totals = prof_report_collective_totals,
     ROWS(prof_collective_row, prof_report_collective)},
    {.name = "late_ranks", .title = "Latest arrivals", .none = "no rank came late",
     .help = "Collectives that all others waited for: late is after the second last, the cause what its "
             "device did longer than the others' since the collective before.",
     .screen_rows = 8, .optional = true, ROWS(prof_rank_late, prof_report_late)},
    {.name = "rank_links", .title = "Bandwidth between ranks", .none = "none is known",
     .help = "Of messages of 1 MiB and more, by communicator, or by sender and receiver; usual is the "
             "median of the others of as many ranks.",
     .screen_rows = 8, .optional = true, .worth = prof_report_link_worth,
     ROWS(prof_rank_link, prof_report_link)},
    {.name = "network", .title = "Network ports", .none = "no network port carried anything",
     .help = "Bytes of all programs of the host while perfkit recorded; of link is the larger rate of both "
             "directions.",
     .screen_rows = 8, .optional = true, ROWS(prof_rank_port, prof_report_port)},
    {.name = "rank_differences", .title = "What ranks do otherwise", .none = "all do the same",
     .help = "Exact counts within the iterations that differ from those of most ranks.",
     .screen_rows = 8, .optional = true, ROWS(prof_rank_difference, prof_report_difference)},
    {.name = "rank_iterations", .title = "Iterations across ranks", .none = "no range repeats on every rank",
     .help = "What each rank's device did in each iteration; slowest is the one that waited least, for "
             "which the others waited.",
     .screen_rows = 16, .optional = true, .worth = prof_report_rank_worth,
     ROWS(prof_rank_iteration, prof_report_iteration)},
    {.name = "kernels", .title = "Kernels", .none = "no kernels",
     .help = "Share is of the kernel time listed, Of wall of the run's length: the latter sums to "
             "more than 100 % when kernels overlap, on one device or on several.",
     .screen_rows = 10, .totals = kernel_totals, ROWS(prof_kernel_row, kernel)},
    {.name = "counters", .title = "Hardware counters", .none = "none were sampled",
     .help = "Bytes a second and shares of the pipes' peaks while the kernel ran; joint: of all that "
             "ran with it, shared: other programs used the device too.",
     .screen_rows = 10, .optional = true, .totals = prof_report_counter_totals,
     ROWS(prof_counter_row, prof_report_counter)},
    {.name = "counter_values", .title = "Every counter", .none = "none were sampled",
     .help = "Every counter of every kernel, per second of kernel time and per launch.",
     .optional = true, .worth = prof_report_counter_value_worth,
     ROWS(prof_report_counter_value, prof_report_counter_value)},
    {.name = "exact_counts", .title = "Counted launches", .none = "none were counted one by one",
     .help = "FLOP and bytes of a launch, by counting some of each configuration. Error: of the FLOP; "
             "n/a: not everything that they are made of was counted.",
     .screen_rows = 10, .optional = true, ROWS(prof_exact_row, prof_report_exact)},
    {.name = "roofline", .title = "Roofline", .none = "no kernels",
     .help = "How near each kernel is to the nearest roof of its device, and what holds it back; "
             "FLOP/B is of device memory. n/a: work or ceilings are not known, `why` says which.",
     .screen_rows = 8, .optional = true, .worth = prof_report_roofline_worth,
     .totals = prof_report_roofline_totals, ROWS(prof_roofline_point, prof_report_roofline)},
    {.name = "roofline_configs", .title = "Roofline by launch configuration", .none = "no kernels",
     .help = "The same for each grid and block that a kernel was launched with.",
     .screen_rows = 4, .optional = true, .worth = prof_report_roofline_config_worth,
     ROWS(prof_roofline_point, prof_report_roofline_config)},
    {.name = "roofline_ranges", .title = "Roofline of NVTX ranges", .none = "no NVTX ranges",
     .help = "What holds each range back: its device work is what was called inside; link is the "
             "copies between host and device.",
     .screen_rows = 6, .optional = true, .worth = prof_report_roofline_range_worth,
     .totals = prof_report_roofline_range_totals,
     ROWS(prof_roofline_point, prof_report_roofline_range)},
    {.name = "ceilings", .title = "Ceilings", .none = "no ceilings are known",
     .help = "What the devices can do: measured by perfkit device --measure, or theoretical.",
     .optional = true, .worth = prof_report_never_worth,
     ROWS(prof_ceiling, prof_report_ceiling)},
    {.name = "graphs", .title = "Graphs", .none = "no graphs were recorded as a whole",
     .help = "Executions of CUDA graphs that were recorded as a whole, without their nodes.",
     .screen_rows = 6, .optional = true, .totals = prof_report_graph_totals,
     ROWS(prof_activity_row, prof_report_graph)},
    {.name = "lines", .title = "Launched from", .none = "no host stacks were taken (--stacks)",
     .help = "Device work by the line of the program that asked for it (perfkit run --stacks); "
             "backward: by the line that called PyTorch's operator forward.",
     .screen_rows = 8, .optional = true, .totals = prof_report_line_totals,
     ROWS(prof_launch_line, prof_report_line)},
    {.name = "transfers", .title = "Transfers", .none = "no transfers",
     .help = "Speed is bytes over the time of the same transfers, in powers of 1000.",
     .screen_rows = 6, .totals = transfer_totals, ROWS(prof_transfer_row, transfer)},
    {.name = "api", .title = "API calls", .none = "no API calls",
     .help = "Host time inside the calls, summed over threads.",
     .screen_rows = 6, .totals = api_totals, ROWS(prof_api_row, api)},
    {.name = "waits", .title = "Waits", .none = "no waits",
     .help = "Time the host, or a stream, waited for the device.",
     .screen_rows = 4, .totals = wait_totals, ROWS(prof_sync_row, wait)},
    {.name = "overhead", .title = "Overhead", .none = "no overhead was told",
     .help = "Host time that the driver or the profiler took from the program, summed over threads.",
     .screen_rows = 6, .optional = true, .totals = prof_report_overhead_totals,
     ROWS(prof_activity_row, prof_report_overhead)},
    {.name = "jit", .title = "Code compiled at run time", .none = "none",
     .help = "Device code that the driver compiled while the program ran, or loaded from its cache.",
     .screen_rows = 4, .optional = true, .totals = prof_report_jit_totals,
     ROWS(prof_activity_row, prof_report_jit)},
    {.name = "migrations", .title = "Unified memory", .none = "none moved",
     .help = "Managed memory that moved to where it was needed, and the faults that made it move.",
     .screen_rows = 8, .optional = true, .totals = prof_report_migration_totals,
     ROWS(prof_activity_row, prof_report_migration)},
    {.name = "ranges", .title = "NVTX ranges", .none = "no NVTX ranges",
     .help = "GPU time is the sum of the kernels launched inside the range; nested ranges count the "
             "same kernel each.",
     .screen_rows = 6, .totals = range_totals, ROWS(prof_range_row, range)},
    {.name = "memory", .title = "Memory", .none = "no allocations",
     .help = "Peak is the most that was allocated at one moment; leaks were never freed.",
     .screen_rows = 6, .totals = memory_totals, .total_row = memory_total,
     ROWS(prof_memory_row, memory)},
    {.name = "leaks", .title = "Largest leaks", .none = "no leaks",
     .help = "Allocations that were not freed when their process ended.",
     .screen_rows = 3, ROWS(prof_allocation, leak)},
    {.name = "pools", .title = "Memory pools", .none = "no memory pools",
     .help = "Reserved is what a pool held at most, Used what allocations took of it.",
     .screen_rows = 4, .optional = true, ROWS(prof_pool, prof_report_pool)},
    {.name = "host", .title = "Where the host was",
     .none = "the host was not sampled (--cpu-sample)",
     .help = "Time of threads by samples: those that launch device work first, by their time while no "
             "device worked (Device idle: running and blocked then), the others by what they ran.",
     .screen_rows = 8, .optional = true, .totals = prof_report_host_totals,
     ROWS(prof_cpu_function, prof_report_host)},
    {.name = "host_threads", .title = "Time of threads",
     .none = "the host was not sampled (--cpu-sample)",
     .help = "Running includes the kernel's time for the thread; preempted is ready to run without a "
             "processor.",
     .screen_rows = 6, .optional = true, ROWS(prof_cpu_thread, prof_report_host_thread)},
    {.name = "streams", .title = "Streams", .none = "no streams",
     .help = "Streams and queues that did something, or have a name; a lower priority number goes "
             "first.",
     .screen_rows = 8, .optional = true, .worth = prof_report_stream_worth,
     ROWS(prof_report_stream, prof_report_stream)},
    {.name = "contexts", .title = "Contexts", .none = "no contexts",
     .help = "A green context has some of its device's SMs.",
     .screen_rows = 6, .optional = true, .worth = prof_report_context_worth,
     ROWS(prof_context, prof_report_context)},
    {.name = "threads", .title = "Threads", .none = "no threads",
     .help = "Threads that made calls or ranges, by the names the program gave them.",
     .screen_rows = 6, .optional = true, .worth = prof_report_thread_worth,
     ROWS(prof_thread, prof_report_thread)},
    {.name = "processes", .title = "Processes", .none = "no processes",
     .help = "The processes of the run.", .screen_rows = 5, ROWS(prof_process, process)},
    {.name = "balance", .title = "Calls and records", .none = "no calls were counted",
     .help = "Called = recorded + failed + in graphs + dropped + outstanding + missing; missing and "
             "dropped must be 0.",
     ROWS(prof_balance, balance)},
    {0},
};
/* clang-format on */
