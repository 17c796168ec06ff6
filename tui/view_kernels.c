/* The kernels: how often, how long, how launched, what bounds them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "tui/views.h"

enum {
    NAME,
    CALLS_S,
    TOTAL,
    GPU,
    WALL,
    MEAN,
    P95,
    SHAPE,
    OCCUPANCY,
    BOUND,
    ROOF,
    SPARK,
    CALLS,
    RUN_CALLS,
    RUN_NS,
    LEAST,
    MOST,
    CONFIGS
};

static const struct tui_column columns[] = {
    [NAME] = {"name", "Kernel", TUI_NAME, 0, 0},
    [CALLS_S] = {"calls_per_s", "calls/s", TUI_REAL, 8, 0},
    [TOTAL] = {"time_ns", "time", TUI_NS, 9, 0},
    [GPU] = {"share", "kern%", TUI_SHARE, 7, 0},
    [WALL] = {"wall_share", "wall%", TUI_SHARE, 7, 0},
    [MEAN] = {"mean_ns", "mean", TUI_NS, 8, 0},
    [P95] = {"p95_ns", "~p95", TUI_NS, 8, 1},
    [SHAPE] = {"shape", "grid x block", TUI_TEXT, 20, 3},
    [OCCUPANCY] = {"occupancy", "occ%", TUI_SHARE, 7, 4, .if_known = true},
    [BOUND] = {"bound", "bound", TUI_TEXT, 8, 4, .if_known = true},
    [ROOF] = {"roof_share", "roof%", TUI_SHARE, 7, 6, .if_known = true},
    [SPARK] = {NULL, "last minute", TUI_SPARKLINE, 20, 5},
    [CALLS] = {"calls", "calls", TUI_COUNT, 11, 2},
    [RUN_CALLS] = {"total_calls", "all calls", TUI_COUNT, 12, 6},
    [RUN_NS] = {"total_ns", "all time", TUI_NS, 9, 7},
    [LEAST] = {"min_ns", "min", TUI_NS, 8, 8},
    [MOST] = {"max_ns", "max", TUI_NS, 8, 9},
    [CONFIGS] = {"configurations", NULL, TUI_COUNT, 0, 0},
};

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

static const struct prof_device *device_of_stream(const struct tui_model *model, int64_t stream)
{
    const struct tui_stream *s = tui_model_stream(model, stream);
    const struct tui_device *d = s ? tui_model_device(model, s->values.device) : NULL;
    return d ? &d->values : NULL;
}

double tui_occupancy(const struct tui_model *model, const struct tui_cell *cell)
{
    const struct tui_config *config = tui_model_config(model, cell->config);
    return prof_live_occupancy(device_of_stream(model, cell->stream),
                               config ? &config->values : NULL);
}

double tui_mean(const struct tui_sum *sum)
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
    const struct tui_config *config = cell ? tui_model_config(model, cell->config) : NULL;
    const struct tui_sum *w = &k->window;
    tui_table_row(table, (int64_t)i, 0, w->count ? TUI_NORMAL : TUI_DIM);
    tui_table_text(table, NAME, *k->name ? k->name : NULL);
    tui_table_real(table, CALLS_S, tui_per_second(model, w->count));
    tui_table_number(table, TOTAL, w->sum_ns);
    tui_table_real(table, GPU,
                   model->window.sum_ns > 0 ? (double)w->sum_ns / (double)model->window.sum_ns
                                            : NAN);
    tui_table_real(table, WALL, tui_wall_share(model, w->sum_ns));
    tui_table_number(table, MEAN, rounded(tui_mean(w)));
    tui_table_number(table, P95, rounded(tui_quantile(w, 0.95)));
    tui_table_format(table, SHAPE, k->configs > 1 ? "%s +%lld" : "%s",
                     prof_launch_shape(config ? &config->values : NULL).text,
                     (long long)k->configs - 1);
    tui_table_real(table, OCCUPANCY, cell ? tui_occupancy(model, cell) : NAN);
    add_bound(table, tui_kept_bound(input->kept, k->name));
    tui_table_spark(table, SPARK, k->spark_us, spark_full(k));
    tui_table_number(table, CALLS, w->count);
    tui_table_number(table, RUN_CALLS, k->total.count);
    tui_table_number(table, RUN_NS, k->total.sum_ns);
    tui_table_number(table, LEAST, k->total.count ? k->total.min_ns : PROF_UNKNOWN);
    tui_table_number(table, MOST, k->total.count ? k->total.max_ns : PROF_UNKNOWN);
    tui_table_number(table, CONFIGS, k->configs);
}

void tui_fill_kernels(struct tui_table *table, const struct tui_view_input *input)
{
    const struct tui_model *model = input->model;
    tui_table_begin(table, columns, sizeof columns / sizeof *columns);
    table->sort = TOTAL;
    const struct tui_cell **largest = largest_cells(model);
    for (size_t i = 0; i < model->kernels.count; i++)
        add_kernel_row(table, input, i, largest ? largest[i] : NULL);
    free(largest);
    if (!model->kernels.count && model->ever_read)
        tui_table_note(table, "No kernel has ended so far.");
}
