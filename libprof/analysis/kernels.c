/* Kernel summary: one scan of the table `kernel`, grouped by name or launch configuration. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/call_tree.h"
#include "libprof/analysis/group.h"
#include "libprof/analysis/scope.h"
#include "libprof/base/saturate.h"
#include "libprof/gpu/names.h"

/* ---- from sums by second --------------------------------------------------------------------- */

/* Totals of a thousand ranks are worth a table, though no single kernel is known (perfkit merge
 * --summary). */

#define BUCKETS 48

struct sum {
    const struct prof_config *config;
    int64_t count, sum_ns, min_ns, max_ns;
    uint64_t histogram[BUCKETS];
};

struct sums_work {
    struct prof_capture *capture;
    struct prof_scope scope;
    struct prof_groups sums; /* by name */
};

enum { SECOND, STREAM, CONFIG, COUNT, SUM, MIN, MAX, HISTOGRAM };

static struct sum *rollup_sum_of(struct sums_work *w, int64_t id)
{
    const struct prof_config *config = prof_config(w->capture, id);
    const char *name = config && config->name ? config->name : "";
    bool fresh;
    struct sum *s = prof_group_of_bytes(&w->sums, name, strlen(name), &fresh);
    if (s && fresh)
        *s = (struct sum){.config = config, .min_ns = INT64_MAX, .max_ns = INT64_MIN};
    return s;
}

static void add_histogram(struct sum *s, sqlite3_stmt *row)
{
    const unsigned char *bytes = sqlite3_column_blob(row, HISTOGRAM);
    int count = bytes ? sqlite3_column_bytes(row, HISTOGRAM) / 4 : 0;
    for (int i = 0; i < count && i < BUCKETS; i++)
        s->histogram[i] += (uint64_t)bytes[4 * i] | (uint64_t)bytes[4 * i + 1] << 8 |
                           (uint64_t)bytes[4 * i + 2] << 16 | (uint64_t)bytes[4 * i + 3] << 24;
}

static bool add_rollup_row(void *user, sqlite3_stmt *row)
{
    struct sums_work *w = user;
    int64_t second = sqlite3_column_int64(row, SECOND), config = prof_column_id(row, CONFIG);
    if (w->scope.by_time &&
        (second < w->scope.begin_ns / 1000000000 ||
         (w->scope.end_ns != INT64_MAX && second > (w->scope.end_ns - 1) / 1000000000)))
        return true;
    if (!prof_scope_place(&w->scope, prof_column_id(row, STREAM), 0, 0, 0) ||
        !prof_scope_config(&w->scope, config))
        return true;
    struct sum *s = rollup_sum_of(w, config);
    if (!s)
        return false;
    int64_t count = sqlite3_column_int64(row, COUNT), sum = sqlite3_column_int64(row, SUM);
    int64_t min = sqlite3_column_int64(row, MIN), max = sqlite3_column_int64(row, MAX);
    s->count = prof_add(s->count, count);
    s->sum_ns = prof_add(s->sum_ns, sum);
    s->min_ns = min < s->min_ns ? min : s->min_ns;
    s->max_ns = max > s->max_ns ? max : s->max_ns;
    add_histogram(s, row);
    return true;
}

/* Geometric middle of the bucket that holds the middle value, within what was seen. */
static double histogram_median(const struct sum *s)
{
    uint64_t total = 0, seen = 0;
    for (int i = 0; i < BUCKETS; i++)
        total += s->histogram[i];
    if (!total)
        return NAN;
    for (int i = 0; i < BUCKETS; i++) {
        seen += s->histogram[i];
        if (seen > total / 2) {
            double middle = ldexp(sqrt(2), i);
            return middle < (double)s->min_ns   ? (double)s->min_ns
                   : middle > (double)s->max_ns ? (double)s->max_ns
                                                : middle;
        }
    }
    return NAN;
}

PROF_ORDER(by_kernel_duration, struct prof_kernel_row,
           prof_order(x->duration_ns.sum, y->duration_ns.sum, x->name, y->name))

/* Are there sums, and no kernel? */
static bool has_sums_only(struct prof_capture *capture)
{
    return prof_sql_number(
        capture->db, 0, "SELECT NOT EXISTS(SELECT 1 FROM kernel) AND EXISTS(SELECT 1 FROM rollup)");
}

/* By kernel name whatever the grouping: count, sum, min, max and mean are exact, the median is off
 * by at most a factor of sqrt(2), what sums do not show is unknown. A filter's times are taken in
 * whole seconds. result->wall_ns is set. */
static enum prof_status summarise_sums(struct prof_capture *capture,
                                       const struct prof_filter *filter,
                                       struct prof_kernel_summary *result, struct prof_error *err)
{
    static const struct prof_row_shape shape = PROF_ROW_SHAPE(prof_kernel_row, by_kernel_duration);
    struct sums_work w = {.capture = capture, .sums = PROF_GROUPS(struct sum, 0)};
    enum prof_status status = prof_scope_open(&w.scope, capture, filter, err);
    if (!status)
        status = prof_scan(capture,
                           "SELECT second, stream, config, count, sum, min, max, histogram FROM "
                           "rollup WHERE " PROF_SOUND_ROLLUP,
                           add_rollup_row, &w, err);
    if (!status && !(result->rows = calloc(w.sums.count + 1, sizeof *result->rows)))
        status = prof_out_of_memory(err);
    for (size_t i = 0; !status && i < w.sums.count; i++) {
        const struct sum *s = prof_group_at(&w.sums, i);
        result->rows[result->count++] = (struct prof_kernel_row){
            .name = s->config ? s->config->name : NULL,
            .full_name = s->config ? s->config->full_name : NULL,
            .library = prof_library_text(prof_name_library(s->config ? s->config->name : NULL)),
            .duration_ns = {.count = s->count,
                            .sum = s->sum_ns,
                            .within = s->sum_ns,
                            .min = s->min_ns,
                            .max = s->max_ns,
                            .mean = s->count ? (double)s->sum_ns / (double)s->count : NAN,
                            .median = histogram_median(s),
                            .p95 = NAN,
                            .p99 = NAN,
                            .stddev = NAN,
                            .quantile_error = sqrt(2) - 1},
            .queue_delay_ns = NAN,
            .submit_delay_ns = NAN,
            .launch_delay_ns = NAN,
            .api_ns = NAN,
        };
        result->kernels = prof_add(result->kernels, s->count);
    }
    if (!status)
        result->listed_ns = prof_finish_rows(&shape, result->rows, result->count, result->wall_ns);
    prof_groups_free(&w.sums);
    prof_scope_close(&w.scope);
    return status;
}

/* ---- one by one ------------------------------------------------------------------------------ */

struct group {
    struct prof_gather duration, queue, submit, launch, api;
    const struct prof_config *config; /* first seen */
    int64_t configs;
    int64_t unfinished, failed;
    int64_t graph_nodes;
    const char *api_name;
    bool apis_differ;
    struct prof_graph_node node; /* of the first that ran as one */
};

struct work {
    struct prof_capture *capture;
    enum prof_group by;
    uint32_t *group_of_config; /* per index of capture->configs, the last for unknown ones */
    struct prof_groups groups;
    struct prof_spread_budget delays;
};

/* Name, and by shape grid and block before it. NULL: out of memory. */
static struct group *group_of_name(struct work *w, const struct prof_config *config, bool *fresh)
{
    size_t shape = sizeof config->grid + sizeof config->block, length = strlen(config->name);
    if (w->by == PROF_BY_NAME)
        return prof_group_of_bytes(&w->groups, config->name, length, fresh);
    PROF_FREED char *key = malloc(shape + length);
    if (!key)
        return NULL;
    memcpy(key, config->grid, sizeof config->grid);
    memcpy(key + sizeof config->grid, config->block, sizeof config->block);
    memcpy(key + shape, config->name, length);
    return prof_group_of_bytes(&w->groups, key, shape + length, fresh);
}

static struct group *kernel_group(struct work *w, int64_t config_id)
{
    size_t i = prof_config_index(w->capture, config_id);
    if (i == SIZE_MAX)
        i = w->capture->configs.count;
    if (w->group_of_config[i] != PROF_NO_GROUP)
        return prof_group_at(&w->groups, w->group_of_config[i]);
    const struct prof_config *config =
        i < w->capture->configs.count ? &w->capture->configs.data[i] : NULL;
    bool fresh = true, alone = w->by == PROF_BY_CONFIG || !config || !config->name;
    struct group *g = alone ? prof_group_add(&w->groups) : group_of_name(w, config, &fresh);
    if (!g)
        return NULL;
    if (fresh)
        g->config = config;
    g->configs++;
    w->group_of_config[i] = (uint32_t)(g - (struct group *)prof_group_at(&w->groups, 0));
    return g;
}

static void add_api(struct group *g, const struct prof_stream *s)
{
    const char *api = s ? s->api : NULL;
    if (!g->api_name)
        g->api_name = api;
    else if (api && api != g->api_name && strcmp(api, g->api_name))
        g->apis_differ = true;
}

static bool add_kernel_execution(void *user, const struct prof_event_row *row)
{
    struct work *w = user;
    struct group *g = kernel_group(w, row->config);
    if (!g)
        return false;
    const struct prof_stream *stream = prof_stream(w->capture, row->stream);
    add_api(g, stream);
    if (row->graph_node != PROF_UNKNOWN && !g->graph_nodes++)
        g->node = (struct prof_graph_node){.process = stream ? stream->process : 0,
                                           .node = row->graph_node};
    if (row->flags & 4)
        g->failed++;
    if (row->start_ns == PROF_UNKNOWN || row->duration_ns == PROF_UNKNOWN) {
        g->unfinished++;
        return true;
    }
    prof_measure_event(&w->groups, &g->duration, row);
    const int64_t delays[] = {row->queue_delay_ns, row->submit_delay_ns, row->lead_ns,
                              row->call_duration_ns};
    struct prof_gather *gathers[] = {&g->queue, &g->submit, &g->launch, &g->api};
    for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++)
        if (delays[i] != PROF_UNKNOWN)
            prof_gather_add(gathers[i], &w->delays, delays[i]);
    return true;
}

static enum prof_status scan_kernels(struct work *w, const struct prof_filter *filter,
                                     struct prof_error *err)
{
    size_t configs = w->capture->configs.count + 1;
    w->group_of_config = malloc(configs * sizeof *w->group_of_config);
    if (!w->group_of_config)
        return prof_out_of_memory(err);
    memset(w->group_of_config, 0xff, configs * sizeof *w->group_of_config);
    struct prof_event_query query = {
        .tables = PROF_OPS(KERNEL),
        .fields = PROF_FIELD(DURATION) | PROF_FIELD(STREAM) | PROF_FIELD(CONFIG) |
                  PROF_FIELD(CALL) | PROF_FIELD(CALL_DURATION) | PROF_FIELD(QUEUE_DELAY) |
                  PROF_FIELD(SUBMIT_DELAY) | PROF_FIELD(FLAGS) | PROF_FIELD(GRAPH_NODE),
        .filter = filter,
    };
    return prof_event_rows(w->capture, &query, add_kernel_execution, w, err);
}

/* One question for all groups: each costs a look at the graphs' tables. */
static enum prof_status find_creators(struct work *w, struct prof_error *err)
{
    PROF_FREED PROF_ARRAY(struct prof_graph_node *) wanted = {0};
    enum prof_status status = PROF_OK;
    for (size_t i = 0; !status && i < w->groups.count; i++) {
        struct group *g = prof_group_at(&w->groups, i);
        struct prof_graph_node **slot = g->graph_nodes ? prof_array_add(&wanted) : NULL;
        if (slot)
            *slot = &g->node;
        else if (g->graph_nodes)
            status = prof_out_of_memory(err);
    }
    if (!status && wanted.count)
        status = prof_graph_creators(w->capture, wanted.data, wanted.count, err);
    return status;
}

PROF_ORDER(by_kernel_total, struct prof_kernel_row,
           prof_order(x->duration_ns.sum, y->duration_ns.sum, x->name, y->name),
           x->config && y->config ? PROF_ASCENDING(config->id) : 0)

static bool make_kernel_summary_rows(struct work *w, struct prof_kernel_summary *result)
{
    result->rows = calloc(w->groups.count + 1, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->groups.count; i++) {
        struct group *g = prof_group_at(&w->groups, i);
        struct prof_kernel_row *r = &result->rows[result->count++];
        r->name = g->config ? g->config->name : NULL;
        r->full_name = g->config ? g->config->full_name : NULL;
        r->library = prof_library_text(prof_name_library(r->name));
        r->config = g->configs == 1 || w->by == PROF_BY_SHAPE ? g->config : NULL;
        r->api = g->apis_differ ? NULL : g->api_name;
        r->configs = g->config ? g->configs : 0;
        r->duration_ns = prof_gather_result(&g->duration);
        r->unfinished = g->unfinished;
        r->failed = g->failed;
        r->queue_delay_ns = prof_gather_median(&g->queue);
        r->submit_delay_ns = prof_gather_median(&g->submit);
        r->launch_delay_ns = prof_gather_median(&g->launch);
        r->api_ns = prof_gather_median(&g->api);
        r->graph_nodes = g->graph_nodes;
        r->created_by = prof_string(w->capture, g->node.created_by, NULL);
        if (!prof_gather_histogram(&g->duration, &r->histogram))
            return false;
        result->kernels += r->duration_ns.count + r->unfinished;
        result->unfinished += r->unfinished;
    }
    static const struct prof_row_shape shape = PROF_ROW_SHAPE(prof_kernel_row, by_kernel_total);
    result->listed_ns = prof_finish_rows(&shape, result->rows, result->count, result->wall_ns);
    return true;
}

enum prof_status prof_kernel_summary(struct prof_capture *capture, const struct prof_filter *filter,
                                     enum prof_group group, struct prof_kernel_summary *result,
                                     struct prof_error *err)
{
    struct work w = {.capture = capture, .by = group, .groups = PROF_GROUPS(struct group, 5)};
    *result = (struct prof_kernel_summary){0};
    PROF_TRY(prof_begin(capture, err)); /* the rows, their graph nodes, and whether there are any */
    result->wall_ns = prof_wall_ns(capture, filter);
    enum prof_status status;
    if (!(filter && filter->range) && has_sums_only(capture)) {
        status = summarise_sums(capture, filter, result, err);
        prof_end(capture);
        return status;
    }
    status = scan_kernels(&w, filter, err);
    status = status ?: find_creators(&w, err);
    prof_end(capture);
    if (!status && !make_kernel_summary_rows(&w, result)) {
        prof_kernel_summary_free(result);
        status = prof_out_of_memory(err);
    }
    prof_groups_free(&w.groups);
    free(w.group_of_config);
    return status;
}

void prof_kernel_summary_free(struct prof_kernel_summary *result)
{
    for (size_t i = 0; i < result->count; i++)
        prof_histogram_free(&result->rows[i].histogram);
    free(result->rows);
    *result = (struct prof_kernel_summary){0};
}
