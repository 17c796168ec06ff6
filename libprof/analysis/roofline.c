/* The roofline of kernels and launch configurations: gathers times and work of each, per device,
 * and has every point judged. Ranges are gathered in roofline_ranges.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/roofline.h"
#include "libprof/base/saturate.h"

/* Put rates into a point that has its times and its declared work: bytes of counters take the place
 * of declared ones. The rates stand for all launches, as a sample does. */
static void prof_roofline_count(struct prof_roofline_point *point,
                                struct prof_roofline_facts *facts,
                                const struct prof_roofline_rates *rates);

struct gathered {
    const struct prof_config *config; /* of the first kernel; NULL = not known */
    bool several_configs;
    int64_t device; /* physical */
    int64_t count, time_ns;
    int64_t calls, call_ns, longest_call_ns;
    struct prof_roofline_sum work;
    struct prof_roofline_exact exact;
};

struct prof_roofline_gather {
    struct prof_capture *capture;
    const struct prof_filter *filter;
    enum prof_roofline_group by;
    uint32_t *kernel_of_config; /* prof_kernel_of_configs */
    struct prof_map by_key;
    PROF_ARRAY(struct gathered) points;
    struct prof_declared declared;
    struct prof_roofline_counters counters;
    struct prof_exact exact;
};

static uint32_t point_of(struct prof_roofline_gather *w, int64_t config_id, int64_t device)
{
    size_t place = device ? prof_index_of(&w->capture->devices, device) + 1 : 0;
    size_t index = prof_config_index(w->capture, config_id);
    const struct prof_config *config = index == SIZE_MAX ? NULL : &w->capture->configs.data[index];
    bool known = config && (w->by == PROF_ROOFLINE_CONFIGS || (config->name && *config->name));
    uint64_t subject = known ? w->kernel_of_config[index] : w->capture->configs.count;
    bool fresh;
    uint32_t number = prof_group_number(&w->by_key, subject << 32 | place, &fresh);
    if (number == PROF_NO_GROUP)
        return PROF_NO_GROUP;
    if (fresh) {
        struct gathered *g = prof_array_add(&w->points);
        if (!g)
            return PROF_NO_GROUP;
        *g = (struct gathered){.config = config, .device = device};
    }
    struct gathered *g = &w->points.data[number];
    g->several_configs |= g->config != config;
    return number;
}

static void count_roofline_kernel(const struct prof_roofline_gather *w, struct gathered *g,
                                  const struct prof_event_row *op)
{
    if (op->start_ns == PROF_UNKNOWN || op->duration_ns == PROF_UNKNOWN)
        return;
    const struct prof_exact_row *exact =
        w->exact.count ? prof_exact_find(&w->exact, prof_config(w->capture, op->config), g->device)
                       : NULL;
    if (exact)
        prof_roofline_exact_add(&g->exact, exact, op->duration_ns);
    g->count++;
    g->time_ns = prof_add(g->time_ns, op->duration_ns);
    if (op->call_duration_ns != PROF_UNKNOWN) {
        g->calls++;
        g->call_ns = prof_add(g->call_ns, op->call_duration_ns);
        g->longest_call_ns = prof_max(g->longest_call_ns, op->call_duration_ns);
    }
}

/* What a call took on average, without the longest: the first one may have loaded the kernel. */
static double typical_call_ns(const struct gathered *g)
{
    if (g->calls < 2)
        return g->calls ? (double)g->call_ns : NAN;
    return (double)prof_subtract(g->call_ns, g->longest_call_ns) / (double)(g->calls - 1);
}

bool prof_roofline_gather_op(void *user, const struct prof_event_row *op)
{
    struct prof_roofline_gather *w = user;
    struct prof_declaration *declaration =
        op->call_ns == PROF_UNKNOWN || !w->declared.list.count
            ? NULL
            : prof_declared_at(&w->declared, op->thread, op->call_ns);
    if (op->kind == PROF_OP_GRAPH && declaration)
        declaration->incomplete = true; /* kernels that are not listed */
    if (op->kind != PROF_OP_KERNEL)
        return true;
    const struct prof_stream *stream = prof_stream(w->capture, op->stream);
    const struct prof_device *device = stream ? prof_device(w->capture, stream->device) : NULL;
    uint32_t number = point_of(w, op->config, device ? device->physical : 0);
    if (number == PROF_NO_GROUP)
        return false;
    if (op->in_scope)
        count_roofline_kernel(w, &w->points.data[number], op);
    if (declaration)
        prof_declared_launch(declaration, number, op->in_scope, op->duration_ns);
    return true;
}

static void share_declared_work(struct prof_roofline_gather *w)
{
    for (size_t i = 0; i < w->declared.list.count; i++) {
        const struct prof_declaration *d = &w->declared.list.data[i];
        if (prof_declared_whole(d))
            prof_roofline_add(&w->points.data[d->point].work, d);
    }
}

static void finish_point(struct prof_roofline_gather *w, const struct gathered *g,
                         const struct prof_ceilings *ceilings, struct prof_roofline_point *point)
{
    *point = prof_roofline_blank();
    point->name = g->config ? g->config->name : NULL;
    point->config = g->several_configs ? NULL : g->config;
    point->device = g->device;
    point->count = g->count;
    point->time_ns = point->busy_ns = g->time_ns;
    struct prof_roofline_facts facts = {.launch_ns = typical_call_ns(g)};
    prof_roofline_declared(point, &g->work);
    prof_roofline_exact_put(point, &facts, &g->exact, ceilings);
    struct prof_roofline_rates rates;
    const struct prof_config *config = w->by == PROF_ROOFLINE_CONFIGS ? g->config : NULL;
    if (prof_roofline_counted(&w->counters, point->name, config, g->device, &rates))
        prof_roofline_count(point, &facts, &rates);
    prof_roofline_place(point, &facts, ceilings, prof_device(w->capture, g->device));
}

static bool make_roofline_points(struct prof_roofline_gather *w, struct prof_roofline *result)
{
    if (!w->points.count)
        return true;
    result->points = calloc(w->points.count, sizeof *result->points);
    if (!result->points)
        return false;
    for (size_t i = 0; i < w->points.count; i++)
        if (w->points.data[i].count)
            finish_point(w, &w->points.data[i], &result->ceilings,
                         &result->points[result->count++]);
    return true;
}

enum prof_status prof_roofline_gather_open(struct prof_roofline_gather **gather,
                                           struct prof_capture *capture,
                                           const struct prof_filter *filter,
                                           enum prof_roofline_group by, struct prof_error *err)
{
    struct prof_roofline_gather *w = *gather = calloc(1, sizeof *w);
    if (!w)
        return prof_out_of_memory(err);
    w->capture = capture;
    w->filter = filter;
    w->by = by;
    w->kernel_of_config = prof_kernel_of_configs(capture, by == PROF_ROOFLINE_CONFIGS);
    if (!w->kernel_of_config)
        return prof_out_of_memory(err);
    PROF_TRY(prof_begin(capture, err));
    enum prof_status status = prof_declared_open(&w->declared, capture, err);
    status = status ?: prof_exact(capture, &w->exact, err);
    prof_end(capture);
    return status;
}

void prof_roofline_gather_close(struct prof_roofline_gather *w)
{
    if (!w)
        return;
    prof_array_free(&w->points);
    free(w->kernel_of_config);
    prof_map_free(&w->by_key);
    prof_declared_close(&w->declared);
    prof_roofline_counters_close(&w->counters);
    prof_exact_free(&w->exact);
    free(w);
}

static int by_point_time(const void *a, const void *b)
{
    const struct prof_roofline_point *x = a, *y = b;
    int64_t c = x->config ? x->config->id : 0, d = y->config ? y->config->id : 0;
    return prof_order(x->time_ns, y->time_ns, x->name, y->name) ?:
           PROF_COMPARE(x->device, y->device) ?: PROF_COMPARE(c, d);
}

static void finish_roofline(struct prof_roofline *result)
{
    if (result->count)
        qsort(result->points, result->count, sizeof *result->points, by_point_time);
    for (size_t i = 0; i < result->count; i++) {
        result->placed += result->points[i].bound != PROF_BOUND_NONE;
        result->time_ns = prof_add(result->time_ns, result->points[i].time_ns);
    }
}

enum prof_status prof_roofline_gather_finish(struct prof_roofline_gather *w,
                                             struct prof_roofline *result, struct prof_error *err)
{
    *result = (struct prof_roofline){0};
    enum prof_status status = prof_ceilings(w->capture, &result->ceilings, err);
    if (!status)
        status = prof_roofline_counters_open(
            &w->counters, w->capture, w->filter,
            w->by == PROF_ROOFLINE_CONFIGS ? PROF_BY_CONFIG : PROF_BY_NAME, err);
    if (!status)
        share_declared_work(w);
    if (!status && !make_roofline_points(w, result))
        status = prof_out_of_memory(err);
    if (status)
        prof_roofline_free(result);
    else
        finish_roofline(result);
    return status;
}

/* One transaction around what declared work and operations are read in. Every kernel is seen, also
 * those outside of the filter: a declaration that has some of them cannot be shared out. */
static enum prof_status kernels(struct prof_capture *capture, const struct prof_filter *filter,
                                enum prof_roofline_group by, struct prof_roofline *result,
                                struct prof_error *err)
{
    struct prof_roofline_gather *w = NULL;
    struct prof_event_query query = {.tables = PROF_OPS(KERNEL) | PROF_OPS(GRAPH),
                                     .fields = PROF_FIELDS_ROOFLINE,
                                     .filter = filter,
                                     .mark = true};
    PROF_TRY(prof_begin(capture, err));
    enum prof_status status = prof_roofline_gather_open(&w, capture, filter, by, err);
    status = status ?: prof_event_rows(capture, &query, prof_roofline_gather_op, w, err);
    prof_end(capture);
    status = status ?: prof_roofline_gather_finish(w, result, err);
    prof_roofline_gather_close(w);
    return status;
}

enum prof_status prof_roofline(struct prof_capture *capture, const struct prof_filter *filter,
                               enum prof_roofline_group group, struct prof_roofline *result,
                               struct prof_error *err)
{
    *result = (struct prof_roofline){0};
    if (group != PROF_ROOFLINE_RANGES)
        return kernels(capture, filter, group, result, err);
    enum prof_status status = prof_ceilings(capture, &result->ceilings, err);
    status = status ?: prof_roofline_ranges(capture, filter, result, err);
    if (status)
        prof_roofline_free(result);
    else
        finish_roofline(result);
    return status;
}

void prof_roofline_free(struct prof_roofline *result)
{
    free(result->points);
    prof_ceilings_free(&result->ceilings);
    *result = (struct prof_roofline){0};
}

/* ---- work by counters ------------------------------------------------------------------------ */

/* See roofline_counters.h. */

/* The counters of a pipe; chips differ in which of them they have. */
static const struct {
    const char *counter;
    enum prof_ceiling_kind pipe;
    bool assumed;
} pipes[] = {
    {"fma", PROF_CEILING_FP32, false},
    {"fma_busy", PROF_CEILING_FP32, false},
    {"fma_heavy", PROF_CEILING_FP32, false},
    {"fp64", PROF_CEILING_FP64, false},
    {"fp64_instructions", PROF_CEILING_FP64, false},
    {"tensor", PROF_CEILING_TENSOR_FP16, true},
};

static uint64_t config_and_device_key(const struct prof_capture *capture,
                                      const struct prof_config *config, int64_t device)
{
    size_t c = prof_config_index(capture, config ? config->id : 0);
    size_t d = prof_index_of(&capture->devices, device);
    return (uint64_t)(uint32_t)c << 32 | (uint32_t)d;
}

enum prof_status prof_roofline_counters_open(struct prof_roofline_counters *counters,
                                             struct prof_capture *capture,
                                             const struct prof_filter *filter,
                                             enum prof_group group, struct prof_error *err)
{
    *counters = (struct prof_roofline_counters){.capture = capture};
    enum prof_status status = prof_counter_summary(capture, filter, group, &counters->summary, err);
    for (size_t i = 0; !status && group == PROF_BY_CONFIG && i < counters->summary.count; i++) {
        const struct prof_counter_row *row = &counters->summary.rows[i];
        if (!prof_map_put(&counters->by_config,
                          config_and_device_key(capture, row->config, row->device), i))
            status = prof_out_of_memory(err);
    }
    return status;
}

void prof_roofline_counters_close(struct prof_roofline_counters *counters)
{
    prof_map_free(&counters->by_config);
    prof_counter_summary_free(&counters->summary);
}

static const struct prof_counter_row *find_row(const struct prof_roofline_counters *counters,
                                               const char *name, const struct prof_config *config,
                                               int64_t device)
{
    const struct prof_counter_summary *all = &counters->summary;
    if (config) {
        uint64_t *at = prof_map_get(&counters->by_config,
                                    config_and_device_key(counters->capture, config, device));
        return at ? &all->rows[*at] : NULL;
    }
    for (size_t i = 0; i < all->count; i++) {
        const struct prof_counter_row *row = &all->rows[i];
        if (row->device == device && row->name && name && strcmp(row->name, name) == 0)
            return row;
    }
    return NULL;
}

static const struct prof_counter_value *
roofline_counter_value(const struct prof_roofline_counters *counters,
                       const struct prof_counter_row *row, const char *name)
{
    int at = prof_counter_find(&counters->summary, name);
    return at < 0 ? NULL : &row->values[at];
}

static double roofline_counter_rate(const struct prof_roofline_counters *counters,
                                    const struct prof_counter_row *row, const char *name)
{
    const struct prof_counter_value *value = roofline_counter_value(counters, row, name);
    return value ? value->rate : NAN;
}

bool prof_roofline_counted(const struct prof_roofline_counters *counters, const char *name,
                           const struct prof_config *config, int64_t device,
                           struct prof_roofline_rates *rates)
{
    const struct prof_counter_row *row = find_row(counters, name, config, device);
    *rates = (struct prof_roofline_rates){
        .dram = NAN, .l2 = NAN, .pipe = PROF_CEILINGS, .pipe_share = NAN};
    if (!row || !row->known || row->joint || row->shared)
        return false;
    rates->dram = roofline_counter_rate(counters, row, "dram_read_bytes") +
                  roofline_counter_rate(counters, row, "dram_write_bytes");
    rates->l2 = roofline_counter_rate(counters, row, "l2_bytes");
    double busiest = -1;
    for (size_t i = 0; i < sizeof pipes / sizeof pipes[0]; i++) {
        const struct prof_counter_value *value =
            roofline_counter_value(counters, row, pipes[i].counter);
        if (!value || !(value->share > busiest))
            continue;
        rates->pipe = pipes[i].pipe;
        rates->pipe_assumed = pipes[i].assumed;
        rates->pipe_share = busiest = value->share;
    }
    /* Half precision in the same pipe, two numbers to an instruction. */
    if (rates->pipe == PROF_CEILING_FP32 && roofline_counter_rate(counters, row, "fma_fp16") >
                                                0.5 * roofline_counter_rate(counters, row, "fma"))
        rates->pipe = PROF_CEILING_FP16;
    return true;
}

static void count_roof(struct prof_roof *roof, double rate, int64_t ns)
{
    if (isnan(rate))
        return;
    roof->source = PROF_WORK_COUNTERS;
    roof->bytes = rate * (double)ns * 1e-9;
}

static void prof_roofline_count(struct prof_roofline_point *point,
                                struct prof_roofline_facts *facts,
                                const struct prof_roofline_rates *rates)
{
    if (!point->flop_source) { /* else the bytes are those of the launches whose FLOP are known */
        point->worked = point->count;
        point->worked_ns = point->time_ns;
    }
    count_roof(&point->roofs[PROF_ROOF_DRAM], rates->dram, point->worked_ns);
    count_roof(&point->roofs[PROF_ROOF_L2], rates->l2, point->worked_ns);
    /* exact counts know better than samples of pipes */
    if (point->flop_source == PROF_WORK_COUNTERS)
        return;
    facts->pipe_counted = rates->pipe != PROF_CEILINGS;
    if (facts->pipe_counted) {
        point->pipe = rates->pipe;
        point->pipe_assumed = rates->pipe_assumed;
        point->pipe_share = rates->pipe_share;
    }
}

/* ---- work that programs declare -------------------------------------------------------------- */

PROF_ORDER(by_declared_begin, struct prof_declaration, PROF_ASCENDING(thread),
           PROF_ASCENDING(begin))

/* NULL, and numbers that no work can be, are not known. */
static double amount(sqlite3_stmt *row, int column)
{
    double value =
        sqlite3_column_type(row, column) == SQLITE_NULL ? NAN : sqlite3_column_double(row, column);
    return value >= 0 && isfinite(value) ? value : NAN;
}

enum prof_status prof_declared_open(struct prof_declared *declared, struct prof_capture *capture,
                                    struct prof_error *err)
{
    *declared = (struct prof_declared){0};
    sqlite3_stmt *row;
    PROF_TRY(prof_query(capture,
                        "SELECT range.id, thread, start, duration, flop, bytes_read, bytes_written "
                        "FROM work JOIN range ON range.id = work.range",
                        &row, err));
    while (prof_row(row)) {
        struct prof_declaration *d = prof_array_add(&declared->list);
        if (!d) {
            sqlite3_finalize(row);
            return prof_out_of_memory(err);
        }
        int64_t begin = prof_column_int(row, 2), duration = prof_column_size(row, 3);
        *d = (struct prof_declaration){
            .range = prof_column_id(row, 0),
            .thread = prof_column_id(row, 1),
            .begin = begin,
            .end = duration == PROF_UNKNOWN ? INT64_MAX : prof_add(begin, duration),
            .flop = amount(row, 4),
            .bytes = amount(row, 5) + amount(row, 6),
        };
    }
    prof_array_sort(&declared->list, by_declared_begin);
    return prof_query_end(capture, row, err);
}

void prof_declared_close(struct prof_declared *declared)
{
    prof_array_free(&declared->list);
}

struct prof_declaration *prof_declared_at(struct prof_declared *declared, int64_t thread,
                                          int64_t call_ns)
{
    struct prof_declaration *list = declared->list.data;
    size_t low;
    PROF_FIND_FIRST(low, at, declared->list.count,
                    list[at].thread > thread ||
                        (list[at].thread == thread && list[at].begin > call_ns));
    struct prof_declaration *last = low ? &list[low - 1] : NULL;
    return last && last->thread == thread && call_ns < last->end ? last : NULL;
}

void prof_declared_launch(struct prof_declaration *d, uint32_t point, bool counted,
                          int64_t duration_ns)
{
    if (d->launches && d->point != point)
        d->mixed = true;
    d->point = point;
    d->launches++;
    if (!counted || duration_ns == PROF_UNKNOWN)
        d->incomplete = true;
    else
        d->duration_ns = prof_add(d->duration_ns, duration_ns);
}
