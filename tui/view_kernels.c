/* The kernels: how often, how long, how launched, what bounds them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_stack.h"
#include "tui/views.h"

#define KERNEL_COLUMNS(COLUMN)                                                                     \
    COLUMN(NAME, "name", "Kernel", NAME, 0, 0)                                                     \
    COLUMN(CALLS_S, "count_per_s", "calls/s", RATIO, 8, 0)                                         \
    COLUMN(TOTAL, "total_ns", "time", NS, 9, 0)                                                    \
    COLUMN(GPU, "share", "kern%", SHARE, 7, 0)                                                     \
    COLUMN(WALL, "wall_share", "wall%", SHARE, 7, 0)                                               \
    COLUMN(MEAN, "average_ns", "mean", NS, 8, 0)                                                   \
    COLUMN(P95, "p95_ns", "~p95", NS, 8, 1)                                                        \
    COLUMN(SHAPE, "shape", "grid x block", WORD, 20, 3)                                            \
    COLUMN(OCCUPANCY, "occupancy", "occ%", SHARE, 7, 4, .if_known = true)                          \
    COLUMN(BOUND, "bound", "bound", WORD, 8, 4, .if_known = true)                                  \
    COLUMN(ROOF, "roof_share", "roof%", SHARE, 7, 6, .if_known = true)                             \
    COLUMN(SPARK, NULL, "last minute", WORD, 20, 5, .spark = true)                                 \
    COLUMN(CALLS, "count", "calls", COUNT, 11, 2)                                                  \
    COLUMN(RUN_CALLS, "all_count", "all calls", COUNT, 12, 6)                                      \
    COLUMN(RUN_NS, "all_ns", "all time", NS, 9, 7)                                                 \
    COLUMN(LEAST, "min_ns", "min", NS, 8, 8)                                                       \
    COLUMN(MOST, "max_ns", "max", NS, 8, 9)                                                        \
    COLUMN(CONFIGS, "configs", NULL, COUNT, 0, 0)
TUI_COLUMNS(columns, KERNEL_COLUMNS)

/* Behind them columns of the report's table (in_top). */
enum { REPORTED = sizeof columns / sizeof *columns, MAX_COLUMNS = REPORTED + 16 };

/* The columns above, and those that the kernels' table of a report says top has too: the last ones
 * of a narrow screen. Returns how many. */
static size_t kernel_view_columns(const struct tui_column **all)
{
    static struct tui_column joined[MAX_COLUMNS];
    const struct prof_report_column *c = prof_report_table("kernels")->columns;
    size_t count = REPORTED;
    memcpy(joined, columns, sizeof columns);
    for (; c->key && count < MAX_COLUMNS; c++) {
        if (!c->in_top)
            continue;
        joined[count].column = *c;
        joined[count].column.rank = (int)count;
        joined[count].width = 9;
        joined[count++].if_known = true;
    }
    *all = joined;
    return count;
}

double tui_wall_share(const struct tui_model *model, int64_t ns)
{
    double wall = model->window_s ? model->window_length_s * 1e9 : (double)model->wall_ns;
    if (!model->window_s && model->wall_ns == PROF_UNKNOWN)
        return NAN;
    return wall > 0 ? (double)ns / wall : NAN;
}

double tui_per_second(const struct tui_model *model, int64_t count)
{
    return tui_wall_share(model, count) * 1e9;
}

static double tui_occupancy(const struct tui_model *model, const struct tui_cell *cell)
{
    const struct prof_config *config = tui_model_config(model, cell->config);
    const struct tui_stream *on = tui_model_stream(model, cell->stream);
    return prof_live_occupancy(on ? tui_model_device(model, on->values.device) : NULL, config);
}

/* Theoretical occupancy, 0..1; NaN. */
static double tui_mean(const struct tui_sum *sum)
{
    return sum->count > 0 ? (double)sum->sum_ns / (double)sum->count : NAN;
}

static int64_t rounded(double ns)
{
    return isnan(ns) ? PROF_UNKNOWN : (int64_t)llround(ns);
}

/* What occupancy and shape of a kernel with several configurations are: those of the one it spent
 * most time in. One pass over the cells for all kernels. */
static const struct tui_cell **largest_cells(const struct tui_model *model)
{
    const struct tui_cell **largest =
        calloc(model->kernels.count + 1, sizeof(const struct tui_cell *));
    for (size_t i = 0; largest && i < model->cells.count; i++) {
        const struct tui_cell *cell = &model->cells.data[i];
        const struct tui_cell **slot = &largest[cell->kernel];
        if (!*slot || cell->window.sum_ns > (*slot)->window.sum_ns)
            *slot = cell;
    }
    return largest;
}

static uint32_t spark_full(const struct tui_kernel *kernel)
{
    uint32_t most = 1;
    for (int i = 0; i < TUI_SPARK; i++)
        most = kernel->spark_us[i] > most ? kernel->spark_us[i] : most;
    return most;
}

static void add_bound(struct tui_table *table, const struct tui_bound *bound)
{
    if (!bound)
        return;
    tui_table_text(table, BOUND, prof_bound_text(bound->bound));
    tui_table_real(table, ROOF, bound->roof_share);
}

static void add_kernel_row(struct tui_table *table, const struct tui_view_input *input, size_t i,
                           const struct tui_cell *cell)
{
    const struct tui_model *model = input->model;
    const struct tui_kernel *k = &model->kernels.data[i];
    const struct prof_config *config = cell ? tui_model_config(model, cell->config) : NULL;
    const struct tui_sum *w = &k->window;
    tui_table_row(table, (int64_t)i, 0, w->count ? TUI_NORMAL : TUI_DIM);
    tui_table_text(table, NAME, *k->name ? k->name : NULL);
    tui_table_real(table, CALLS_S, tui_per_second(model, w->count));
    tui_table_number(table, TOTAL, w->sum_ns);
    tui_table_real(table, GPU,
                   model->window.sum_ns > 0 ? (double)w->sum_ns / (double)model->window.sum_ns
                                            : NAN);
    tui_table_real(table, WALL, tui_wall_share(model, w->sum_ns));
    tui_table_real(table, MEAN, tui_mean(w));
    tui_table_number(table, P95, rounded(tui_quantile(w, 0.95)));
    tui_table_format(table, SHAPE, k->configs > 1 ? "%s +%lld" : "%s",
                     prof_launch_shape(config).text, (long long)k->configs - 1);
    tui_table_real(table, OCCUPANCY, cell ? tui_occupancy(model, cell) : NAN);
    add_bound(table, tui_kept_bound(input->kept, k->name));
    tui_table_spark(table, SPARK, k->spark_us, spark_full(k));
    tui_table_number(table, CALLS, w->count);
    tui_table_number(table, RUN_CALLS, k->total.count);
    tui_table_number(table, RUN_NS, k->total.sum_ns);
    tui_table_number(table, LEAST, k->total.count ? k->total.min_ns : PROF_UNKNOWN);
    tui_table_number(table, MOST, k->total.count ? k->total.max_ns : PROF_UNKNOWN);
    tui_table_number(table, CONFIGS, k->configs);
    const struct prof_kernel_row reported = {.name = k->name, .config = config};
    for (size_t c = REPORTED; c < table->column_count; c++)
        tui_table_put(table, c, prof_report_value(NULL, &table->columns[c].column, &reported));
}

void tui_fill_kernels(struct tui_table *table, const struct tui_view_input *input)
{
    const struct tui_model *model = input->model;
    const struct tui_column *all;
    size_t count = kernel_view_columns(&all);
    tui_table_begin(table, all, count);
    table->sort = TOTAL;
    PROF_FREED const struct tui_cell **largest = largest_cells(model);
    for (size_t i = 0; i < model->kernels.count; i++)
        add_kernel_row(table, input, i, largest ? largest[i] : NULL);
    if (!model->kernels.count && model->ever_read)
        tui_table_note(table, "No kernel has ended so far.");
}

/* ---- one kernel ------------------------------------------------------------------------------ */

/* All about one kernel: what bounds it, how long it takes, how it is launched, from where. */

const struct tui_column tui_text_column[1] = {TUI_COLUMN("text", "", WORD, 4000, 0)};

static void show_histogram(struct tui_table *table, const struct tui_sum *sum, bool ascii)
{
    uint64_t most = 1;
    int first = -1, last = -1;
    for (int i = 0; i < PROF_LIVE_BUCKETS; i++) {
        if (!sum->histogram.counts[i])
            continue;
        first = first < 0 ? i : first;
        last = i;
        most = sum->histogram.counts[i] > most ? sum->histogram.counts[i] : most;
    }
    tui_table_line(table, TUI_STRONG, "Durations (from a histogram of powers of two)");
    for (int i = first; first >= 0 && i <= last; i++) {
        char bar[200] = "";
        uint64_t count = sum->histogram.counts[i];
        int length = (int)ceil((double)count * 40 / (double)most);
        for (int k = 0; k < length; k++)
            strcat(bar, ascii ? "#" : "\xe2\x96\x88");
        tui_table_line(table, TUI_NORMAL, "  from %8s  %12s  %s", prof_duration(ldexp(1, i)).text,
                       prof_count((int64_t)count).text, bar);
    }
}

PROF_POINTER_ORDER(by_window, struct tui_cell, PROF_DESCENDING(total.sum_ns))

static void show_cells(struct tui_table *table, const struct tui_model *model, uint32_t kernel)
{
    PROF_FREED const struct tui_cell **list =
        calloc(model->cells.count + 1, sizeof(const struct tui_cell *));
    size_t count = 0;
    for (size_t i = 0; list && i < model->cells.count; i++) {
        if (model->cells.data[i].kernel == kernel)
            list[count++] = &model->cells.data[i];
    }
    if (list)
        qsort(list, count, sizeof *list, by_window);
    tui_table_line(table, TUI_STRONG, "Launch configurations and streams (since the start)");
    tui_table_line(table, TUI_DIM, "  %-22s %11s %9s %8s %5s %8s %7s  %s", "grid x block", "calls",
                   "time", "mean", "regs", "shared", "occ%", "stream");
    for (size_t i = 0; i < count && i < 20; i++) {
        const struct prof_config *c = tui_model_config(model, list[i]->config);
        const struct tui_stream *stream = tui_model_stream(model, list[i]->stream);
        int64_t shared = c && c->shared_static != PROF_UNKNOWN && c->shared_dynamic != PROF_UNKNOWN
                             ? prof_add(c->shared_static, c->shared_dynamic)
                             : PROF_UNKNOWN;
        char where[80];
        tui_stream_name(stream, where, sizeof where);
        tui_table_line(table, TUI_NORMAL, "  %-22s %11s %9s %8s %5s %8s %7s  %s",
                       prof_launch_shape(c).text, prof_count(list[i]->total.count).text,
                       prof_duration_ns(list[i]->total.sum_ns).text,
                       prof_duration(tui_mean(&list[i]->total)).text,
                       prof_count(c ? c->registers : PROF_UNKNOWN).text, prof_bytes_of(shared).text,
                       prof_percent(tui_occupancy(model, list[i])).text, where);
    }
    if (count > 20)
        tui_table_line(table, TUI_DIM, "  and %zu more", count - 20);
}

static const char *extent_of(const struct tui_view_input *input)
{
    return input->filter.begin_ns ? "of the last events" : "all of the capture";
}

struct way {
    size_t node;
    int64_t ns, count;
};

PROF_ORDER(by_way_time, struct way, (x->ns < y->ns) - (x->ns > y->ns))

/* Who launched it: NVTX path and API call, out of the last events. */
static void show_ways(struct tui_table *table, const struct tui_view_input *input, const char *name)
{
    struct prof_flame flame;
    struct way ways[256];
    size_t count = 0;
    if (!input->tail ||
        prof_flame_of_ranges(input->tail, &input->filter, PROF_FLAME_DEVICE_NS, &flame, NULL)) {
        tui_table_line(table, TUI_DIM, "  n/a: the file cannot be read at present");
        return;
    }
    for (size_t i = 0; i < flame.count && count < 256; i++) {
        const struct prof_flame_node *node = &flame.nodes[i];
        if (node->kind == PROF_FLAME_KERNEL && node->name && !strcmp(node->name, name))
            ways[count++] = (struct way){i, node->self, node->count};
    }
    qsort(ways, count, sizeof *ways, by_way_time);
    for (size_t i = 0; i < count && i < 12; i++) {
        char path[400];
        prof_flame_path(&flame, flame.nodes[ways[i].node].parent, path, sizeof path);
        tui_table_line(table, TUI_NORMAL, "  %9s %10s  %s", prof_duration_ns(ways[i].ns).text,
                       prof_count(ways[i].count).text, *path ? path : "(no call known)");
    }
    if (!count)
        tui_table_line(table, TUI_DIM, "  none among the last events");
    prof_flame_free(&flame);
}

#define MOST_CALLERS 8
#define MOST_FRAMES 5

/* Call stacks that are the same in the frames that are shown: those nearest to the program's
 * author, from the one on that distinguishes callers. */
struct caller {
    uint32_t path[MOST_FRAMES]; /* numbers of places */
    size_t depth;
    int64_t ns, count;
};

struct callers {
    struct prof_names known; /* path -> number */
    PROF_ARRAY(struct caller) list;
};

static void near_frames(const struct prof_caller_sums *sums, const struct prof_caller_row *row,
                        struct caller *out)
{
    enum prof_nearness nearest = PROF_NEAR_NOTHING;
    *out = (struct caller){.depth = 0};
    for (size_t i = 0; i < row->depth; i++) {
        enum prof_nearness its = prof_frame_nearness(&sums->places[row->path[i]]);
        nearest = its < nearest ? its : nearest;
    }
    for (size_t i = row->told; i < row->depth && out->depth < MOST_FRAMES; i++) {
        if (prof_frame_nearness(&sums->places[row->path[i]]) == nearest)
            out->path[out->depth++] = row->path[i];
    }
}

static bool add_kernel_caller(struct callers *callers, const struct prof_caller_sums *sums,
                              const struct prof_caller_row *row)
{
    struct caller caller;
    near_frames(sums, row, &caller);
    const char *key = (const char *)caller.path;
    size_t size = caller.depth * sizeof *caller.path;
    uint32_t *known = prof_names_get(&callers->known, key, size);
    struct caller *at = known ? &callers->list.data[*known] : prof_array_add(&callers->list);
    if (!at ||
        (!known && !prof_names_put(&callers->known, key, size, (uint32_t)callers->list.count - 1)))
        return false;
    if (!known)
        *at = caller;
    at->ns = prof_add(at->ns, row->cost.device_ns);
    at->count = prof_add(at->count, row->cost.count);
    return true;
}

PROF_ORDER(by_caller_time, struct caller, (x->ns < y->ns) - (x->ns > y->ns))

static void show_caller(struct tui_table *table, const struct prof_frame *places,
                        const struct caller *caller)
{
    char line[400];
    for (size_t i = 0; i < caller->depth; i++) {
        prof_frame_text(&places[caller->path[i]], line, sizeof line);
        if (!i)
            tui_table_line(table, TUI_NORMAL, "  %9s %10s  %s", prof_duration_ns(caller->ns).text,
                           prof_count(caller->count).text, line);
        else
            tui_table_line(table, TUI_DIM, "  %9s %10s    by %s", "", "", line);
    }
}

static void show_all_callers(struct tui_table *table, const struct tui_view_input *input,
                             const struct prof_frame *places, struct callers *callers)
{
    size_t count = callers->list.count;
    if (!count) {
        tui_table_line(table, TUI_DIM, "  by which lines: not recorded (perfkit run --stacks)");
        return;
    }
    qsort(callers->list.data, count, sizeof *callers->list.data, by_caller_time);
    tui_table_line(table, TUI_NORMAL, "%s", "");
    tui_table_line(table, TUI_STRONG, "Launched by (call stacks), %s", extent_of(input));
    for (size_t i = 0; i < count && i < MOST_CALLERS; i++)
        show_caller(table, places, &callers->list.data[i]);
    if (count > MOST_CALLERS)
        tui_table_line(table, TUI_DIM, "  and %zu more", count - MOST_CALLERS);
    if (tui_model_is_live(input->model))
        tui_table_line(table, TUI_DIM,
                       "  (native functions get their names when the run has ended)");
}

/* Which lines launched it, by call stack, out of the last events. */
static void show_callers(struct tui_table *table, const struct tui_view_input *input,
                         const char *name)
{
    struct prof_caller_sums sums;
    struct callers callers = {0};
    if (!input->tail || prof_caller_sums(input->tail, &input->filter, &sums, NULL))
        return;
    for (size_t i = 0; i < sums.count; i++) {
        const struct prof_caller_row *row = &sums.rows[i];
        if (row->kind == PROF_FLAME_KERNEL && row->depth && !strcmp(row->work, name))
            table->failed |= !add_kernel_caller(&callers, &sums, row);
    }
    show_all_callers(table, input, sums.places, &callers);
    prof_names_free(&callers.known);
    prof_array_free(&callers.list);
    prof_caller_sums_free(&sums);
}

/* What holds it back, under the roofline; or what is missing to say so. */
static void show_bound(struct tui_table *table, const struct tui_view_input *input,
                       const char *name)
{
    struct prof_roofline roofline;
    if (!input->tail ||
        prof_roofline(input->tail, &input->filter, PROF_ROOFLINE_KERNELS, &roofline, NULL))
        return;
    for (size_t i = 0; i < roofline.count; i++) {
        const struct prof_roofline_point *p = &roofline.points[i];
        if (!p->name || strcmp(p->name, name) != 0)
            continue;
        if (p->bound == PROF_BOUND_NONE)
            tui_table_line(table, TUI_NORMAL, "bound by:        not known (%s)",
                           p->why ? p->why : "");
        else
            tui_table_line(table, TUI_NORMAL, "bound by:        %s, at %s of the nearest roof",
                           prof_bound_text(p->bound), prof_percent(p->roof_share).text);
    }
    prof_roofline_free(&roofline);
}

void tui_fill_kernel(struct tui_table *table, const struct tui_view_input *input)
{
    const struct tui_model *model = input->model;
    tui_table_begin(table, tui_text_column, 1);
    table->in_order = true;
    if (input->target < 0 || (size_t)input->target >= model->kernels.count)
        return;
    const struct tui_kernel *k = &model->kernels.data[input->target];
    const char *name = *k->name ? k->name : "n/a";
    for (size_t length; *name; name += length) { /* over as many lines as it needs */
        length = tui_line_length(name, 76);
        tui_table_line(table, TUI_STRONG, "%.*s", (int)length, name);
    }
    tui_table_line(table, TUI_NORMAL, "since the start: %s, %s, mean %s, min %s, max %s",
                   prof_counted(k->total.count, "call", "calls").text,
                   prof_duration_ns(k->total.sum_ns).text, prof_duration(tui_mean(&k->total)).text,
                   prof_duration_ns(k->total.count ? k->total.min_ns : PROF_UNKNOWN).text,
                   prof_duration_ns(k->total.count ? k->total.max_ns : PROF_UNKNOWN).text);
    tui_table_line(table, TUI_NORMAL, "in the window:   %s, %s, mean %s, ~p95 %s",
                   prof_counted(k->window.count, "call", "calls").text,
                   prof_duration_ns(k->window.sum_ns).text,
                   prof_duration(tui_mean(&k->window)).text,
                   prof_duration(tui_quantile(&k->window, 0.95)).text);
    show_bound(table, input, k->name);
    tui_table_line(table, TUI_NORMAL, "%s", "");
    show_histogram(table, &k->window, input->ascii);
    tui_table_line(table, TUI_NORMAL, "%s", "");
    show_cells(table, model, (uint32_t)input->target);
    tui_table_line(table, TUI_NORMAL, "%s", "");
    tui_table_line(table, TUI_STRONG, "Launched from (NVTX ranges; API call), %s",
                   extent_of(input));
    show_ways(table, input, k->name);
    show_callers(table, input, k->name);
}
