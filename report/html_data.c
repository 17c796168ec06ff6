/* The page's data but for the timeline: the head, the tables by their descriptions, busy shares,
 * memory over time and the flame graph. Tables travel as columns plus rows of bare values, so that
 * the page sorts and formats them by unit without knowing any of them. */
#include <stdlib.h>
#include <string.h>

#include "report/html.h"
#include "report/table.h"
#include "report/writers.h"

#define SHAPE 1
/* What a page can draw without becoming slow. */
#define FLAME_NODES 20000
#define MEMORY_POINTS 2000

static void put_columns(struct prof_json *json, const struct prof_report_table *table)
{
    static const char *const units[] = {
        [PROF_UNIT_NAME] = "name",   [PROF_UNIT_WORD] = "word", [PROF_UNIT_NUMBER] = "number",
        [PROF_UNIT_COUNT] = "count", [PROF_UNIT_NS] = "ns",     [PROF_UNIT_MOMENT] = "moment",
        [PROF_UNIT_BYTES] = "bytes", [PROF_UNIT_RATE] = "rate", [PROF_UNIT_SHARE] = "share",
        [PROF_UNIT_FLOPS] = "flops", [PROF_UNIT_RATIO] = "ratio",
    };
    prof_json_array(json, "columns");
    for (const struct prof_report_column *column = table->columns; column->key; column++) {
        prof_json_object(json, NULL);
        prof_json_string(json, "key", column->key);
        prof_json_string(json, "title", column->title);
        prof_json_string(json, "unit", units[column->unit]);
        prof_json_bool(json, "shown", column->rank != 0);
        prof_json_end(json);
    }
    prof_json_end(json);
}

static void put_table(struct prof_json *json, const struct prof_report_data *data,
                      const struct prof_report_table *table, size_t top)
{
    size_t count = 0;
    const char *rows = table->rows(data, &count);
    char totals[256] = "";
    if (table->totals && count)
        table->totals(data, totals, sizeof totals);
    prof_json_object(json, NULL);
    prof_json_string(json, "name", table->name);
    prof_json_string(json, "title", table->title);
    prof_json_string(json, "none", table->none);
    prof_json_string(json, "help", table->help);
    prof_json_string(json, "totals", totals);
    put_columns(json, table);
    prof_json_uint(json, "total_rows", count);
    prof_json_array(json, "rows");
    for (size_t i = 0; i < prof_report_limit(count, top, 0); i++) {
        prof_json_array(json, NULL);
        for (const struct prof_report_column *column = table->columns; column->key; column++)
            prof_report_json_value(json, NULL,
                                   prof_report_value(data, column, rows + i * table->row_bytes));
        prof_json_end(json);
    }
    prof_json_end(json);
    prof_json_end(json);
}

static void put_shares(struct prof_json *json, const char *key, const double *shares, size_t count)
{
    prof_json_array(json, key);
    for (size_t i = 0; shares && i < count; i++)
        prof_json_fixed(json, NULL, shares[i], 3);
    prof_json_end(json);
}

static void put_busy(struct prof_json *json, const struct prof_report_data *data)
{
    prof_json_array(json, "busy");
    for (size_t i = 0; i < data->utilisation.count; i++) {
        const struct prof_utilisation_row *row = &data->utilisation.rows[i];
        const struct prof_device *device = prof_device(data->capture, row->device);
        char label[64];
        prof_report_device_label(device, label, sizeof label);
        prof_json_object(json, NULL);
        prof_json_string(json, "label", label);
        prof_json_string(json, "name", device ? device->name : NULL);
        prof_json_known(json, "busy_ns", row->busy_ns);
        prof_json_known(json, "window_ns", row->window_ns);
        put_shares(json, "kernels", row->kernel_share, data->utilisation.buckets);
        put_shares(json, "transfers", row->transfer_share, data->utilisation.buckets);
        put_shares(json, "all", row->busy_share, data->utilisation.buckets);
        prof_json_end(json);
    }
    prof_json_end(json);
}

void prof_html_put_summary(struct prof_json *json, const struct prof_report_data *data, size_t top)
{
    char steps[PROF_REPORT_STEPS][PROF_REPORT_STEP_BYTES];
    size_t count = prof_report_next_steps(data, steps);
    prof_json_int(json, "perfkit_report", SHAPE);
    prof_report_json_capture(json, data);
    prof_json_bool(json, "filtered", data->filter != NULL);
    prof_json_known(json, "wall_ns", data->wall_ns);
    prof_json_int(json, "kernels", data->kernels.kernels);
    prof_json_int(json, "transfers", data->transfers.transfers);
    prof_json_known(json, "transfer_bytes", data->transfers.bytes);
    prof_json_known(json, "peak_bytes", data->memory.total.peak_bytes);
    prof_json_known(json, "leaks", data->memory.total.leaks);
    prof_json_known(json, "leaked_bytes", data->memory.total.leaked_bytes);
    prof_report_json_trust(json, data);
    prof_report_json_devices(json, data);
    prof_json_array(json, "next");
    for (size_t i = 0; i < count; i++)
        prof_json_string(json, NULL, steps[i]);
    prof_json_end(json);
    put_busy(json, data);
    prof_json_array(json, "tables");
    for (const struct prof_report_table *table = prof_report_tables; table->name; table++)
        if (prof_report_worth(data, table))
            put_table(json, data, table, top);
    prof_json_end(json);
}

enum prof_status prof_html_put_memory(struct prof_json *json, const struct prof_report_data *data,
                                      struct prof_error *err)
{
    struct prof_memory_timeline timeline;
    enum prof_status status =
        prof_memory_timeline(data->capture, data->filter, -1, MEMORY_POINTS, &timeline, err);
    if (!status) {
        prof_json_object(json, "memory");
        prof_json_known(json, "peak_bytes", timeline.peak_bytes);
        prof_json_known(json, "peak_ns", timeline.peak_ns);
        prof_json_bool(json, "thinned", timeline.thinned);
        prof_json_array(json, "points");
        for (size_t i = 0; i < timeline.count; i++) {
            prof_json_array(json, NULL);
            prof_json_int(json, NULL, timeline.points[i].time_ns);
            prof_json_int(json, NULL, timeline.points[i].bytes);
            prof_json_int(json, NULL, timeline.points[i].peak_bytes);
            prof_json_end(json);
        }
        prof_json_end(json);
        prof_json_end(json);
    }
    prof_memory_timeline_free(&timeline);
    return status;
}

static int largest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* The smallest total that is drawn: with it at most FLAME_NODES stay. A parent's total is never
 * below its child's, so what stays is a tree. -1 = out of memory. */
static int64_t flame_floor(const struct prof_flame *flame)
{
    if (flame->count <= FLAME_NODES)
        return 0;
    int64_t *totals = malloc(flame->count * sizeof *totals);
    if (!totals)
        return -1;
    for (size_t i = 0; i < flame->count; i++)
        totals[i] = flame->nodes[i].total;
    qsort(totals, flame->count, sizeof *totals, largest_first);
    int64_t floor = totals[FLAME_NODES] + 1;
    free(totals);
    return floor;
}

static void put_nodes(struct prof_json *json, const struct prof_flame *flame, int64_t floor,
                      uint32_t *place)
{
    static const char *const kinds[] = {
        [PROF_FLAME_ROOT] = "root",     [PROF_FLAME_PROCESS] = "process",
        [PROF_FLAME_RANGE] = "range",   [PROF_FLAME_API] = "api",
        [PROF_FLAME_KERNEL] = "kernel", [PROF_FLAME_TRANSFER] = "transfer",
        [PROF_FLAME_MEMSET] = "memset",
    };
    uint32_t next = 0;
    prof_json_array(json, "nodes");
    for (size_t i = 0; i < flame->count; i++) {
        const struct prof_flame_node *node = &flame->nodes[i];
        if (i && node->total < floor)
            continue;
        place[i] = next++;
        prof_json_array(json, NULL);
        prof_json_int(json, NULL, i ? (int64_t)place[node->parent] : -1);
        prof_json_string(json, NULL, kinds[node->kind]);
        prof_json_string(json, NULL, i ? node->name : "all");
        prof_json_int(json, NULL, node->self);
        prof_json_int(json, NULL, node->total);
        prof_json_int(json, NULL, node->count);
        prof_json_end(json);
    }
    prof_json_end(json);
    prof_json_uint(json, "left_out", flame->count - next);
}

enum prof_status prof_html_put_flame(struct prof_json *json, const struct prof_report_data *data,
                                     struct prof_error *err)
{
    struct prof_flame flame = {0};
    uint32_t *place = NULL;
    enum prof_status status =
        prof_flame(data->capture, data->filter, PROF_FLAME_DEVICE_NS, &flame, err);
    int64_t floor = status ? 0 : flame_floor(&flame);
    if (!status && flame.count) {
        place = calloc(flame.count, sizeof *place);
        if (!place || floor < 0)
            status = prof_fail(err, PROF_NOMEM, "cannot write the flame graph: out of memory");
    }
    if (!status) {
        prof_json_object(json, "flame");
        put_nodes(json, &flame, floor, place);
        prof_json_end(json);
    }
    free(place);
    prof_flame_free(&flame);
    return status;
}
