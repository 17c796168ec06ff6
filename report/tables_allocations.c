/* The tables of allocations by kind of memory, and of those that were never freed. By call path:
 * tables_memory.c. */
#include <stdio.h>

#include "report/columns.h"

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

const struct prof_report_table prof_report_memory_table = {
    .name = "memory",
    .part = PROF_PART_MEMORY,
    .title = "Memory",
    .none = "no allocations",
    .help = "Peak is the most that was allocated at one moment; leaks were never freed.",
    .screen_rows = 6,
    .totals = memory_totals,
    .total_row = memory_total,
    .first_rows = PROF_HEADING_ONLY,
    ROWS(prof_memory_row, memory),
};

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
    return prof_report_pid(data, ((const struct prof_allocation *)row)->process);
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

const struct prof_report_table prof_report_leaks_table = {
    .name = "leaks",
    .part = PROF_PART_MEMORY,
    .part_order = 2,
    .title = "Largest leaks",
    .none = "no leaks",
    .help = "Allocations that were not freed when their process ended.",
    .screen_rows = 3,
    .least_rows = 1,
    ROWS(prof_allocation, leak),
};
