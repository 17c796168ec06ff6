/* The table that answers which line launched this: device work by the program's lines. */
#include <stdio.h>

#include "report/columns.h"

#define LINE(row) ((const struct prof_launch_line *)(row))

static struct prof_report_value line_pass(const struct prof_report_data *data, const void *row)
{
    (void)data;
    return prof_report_text(LINE(row)->backward ? "backward" : NULL);
}

/* Of the line's device time. */
static struct prof_report_value line_work_share(const struct prof_report_data *data,
                                                const void *row)
{
    (void)data;
    if (LINE(row)->device_ns <= 0)
        return (struct prof_report_value){.kind = PROF_VALUE_NONE};
    return (struct prof_report_value){
        .kind = PROF_VALUE_REAL, .real = (double)LINE(row)->work_ns / (double)LINE(row)->device_ns};
}

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

static const void *line_rows(const struct prof_report_data *data, size_t *count)
{
    *count = data->lines.count;
    return data->lines.rows;
}

static void line_totals(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_launch_lines *lines = &data->lines;
    size_t used = (size_t)snprintf(out, size, "%s, %s",
                                   prof_counted((int64_t)lines->count, "place", "places").text,
                                   prof_duration_ns(lines->device_ns - lines->unknown_ns).text);
    if (lines->unknown_operations && used < size)
        used += (size_t)snprintf(
            out + used, size - used, "; %s without a stack, %s",
            prof_counted(lines->unknown_operations, "operation", "operations").text,
            prof_duration_ns(lines->unknown_ns).text);
    prof_report_append_wall(data, out, size, used);
}

const struct prof_report_table prof_report_lines_table = {
    .name = "lines",
    .part = PROF_PART_KERNELS,
    .title = "Launched from",
    .none = "no host stacks were taken (--stacks)",
    .help = "Device work by the line of the program that launched it (perfkit run --stacks); "
            "backward: by the line that called PyTorch's operator forward.",
    .screen_rows = 8,
    .optional = true,
    .totals = line_totals,
    .first_rows = 4,
    ROWS(prof_launch_line, line),
};
