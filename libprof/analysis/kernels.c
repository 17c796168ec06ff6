/* Kernel summary: one scan of the table `kernel`, grouped by name or launch configuration. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/graph_nodes.h"
#include "libprof/analysis/group.h"
#include "libprof/analysis/kernel_sums.h"
#include "libprof/analysis/scope.h"
#include "libprof/analysis/spread.h"

struct group {
    const struct prof_config *config; /* first seen */
    int64_t configs;
    int64_t unfinished, failed;
    int64_t graph_nodes;
    const char *api_name;
    bool apis_differ;
    struct prof_graph_node node; /* of the first that ran as one */
    struct prof_gather duration, queue, submit, launch, api;
};

struct work {
    struct prof_capture *capture;
    struct prof_scope scope;
    enum prof_group by;
    uint32_t *group_of_config; /* per index of capture->configs, the last for unknown ones */
    struct prof_names by_name;
    PROF_ARRAY(struct group) groups;
    struct prof_spread_budget durations, delays;
};

static uint32_t new_group(struct work *w, const struct prof_config *config)
{
    struct group *g = prof_array_add(&w->groups);
    if (!g)
        return PROF_NO_GROUP;
    *g = (struct group){.config = config};
    return (uint32_t)(w->groups.count - 1);
}

static uint32_t group_of_key(struct work *w, const struct prof_config *config, const char *key,
                             size_t length)
{
    uint32_t *known = prof_names_get(&w->by_name, key, length);
    if (known)
        return *known;
    uint32_t group = new_group(w, config);
    if (group != PROF_NO_GROUP && !prof_names_put(&w->by_name, key, length, group))
        return PROF_NO_GROUP;
    return group;
}

/* Grid and block with the name behind them. */
static uint32_t group_of_shape(struct work *w, const struct prof_config *config)
{
    size_t shape = sizeof config->grid + sizeof config->block, length = strlen(config->name);
    char *key = malloc(shape + length);
    if (!key)
        return PROF_NO_GROUP;
    memcpy(key, config->grid, sizeof config->grid);
    memcpy(key + sizeof config->grid, config->block, sizeof config->block);
    memcpy(key + shape, config->name, length);
    uint32_t group = group_of_key(w, config, key, shape + length);
    free(key);
    return group;
}

static uint32_t assign_group(struct work *w, const struct prof_config *config)
{
    if (w->by == PROF_BY_CONFIG || !config || !config->name)
        return new_group(w, config);
    if (w->by == PROF_BY_SHAPE)
        return group_of_shape(w, config);
    return group_of_key(w, config, config->name, strlen(config->name));
}

static struct group *kernel_group(struct work *w, int64_t config)
{
    size_t i = prof_config_index(w->capture, config);
    if (i == SIZE_MAX)
        i = w->capture->configs.count;
    if (w->group_of_config[i] == PROF_NO_GROUP) {
        uint32_t group =
            assign_group(w, i < w->capture->configs.count ? &w->capture->configs.data[i] : NULL);
        if (group == PROF_NO_GROUP)
            return NULL;
        w->group_of_config[i] = group;
        w->groups.data[group].configs++;
    }
    return &w->groups.data[w->group_of_config[i]];
}

enum {
    START,
    DURATION,
    STREAM,
    CONFIG,
    THREAD,
    LEAD,
    API_DURATION,
    QUEUE,
    SUBMIT,
    FLAGS,
    NODE,
    CORRELATION
};
static const char select_kernels[] =
    "SELECT start, duration, stream, config, thread, api_lead, api_duration, queue_delay, "
    "submit_delay, flags, graph_node, correlation FROM kernel";

static void gather_known(struct prof_gather *gather, struct prof_spread_budget *budget,
                         int64_t value)
{
    if (value != PROF_UNKNOWN)
        prof_gather_add(gather, budget, value);
}

static void add_api(struct group *g, const struct prof_stream *s)
{
    const char *api = s ? s->api : NULL;
    if (!g->api_name)
        g->api_name = api;
    else if (api && api != g->api_name && strcmp(api, g->api_name))
        g->apis_differ = true;
}

static void add_group_node(struct group *g, int64_t node, const struct prof_stream *s)
{
    if (!g->graph_nodes++)
        g->node = (struct prof_graph_node){.process = s ? s->process : 0, .node = node};
}

static bool add_kernel_launch_row(void *user, sqlite3_stmt *row)
{
    struct work *w = user;
    int64_t start = prof_column_int(row, START), lead = prof_column_int(row, LEAD);
    int64_t config = prof_column_id(row, CONFIG);
    struct prof_row_place place = {prof_column_id(row, STREAM), prof_column_id(row, THREAD), start,
                                   lead, CORRELATION};
    if (!prof_scope_row(&w->scope, row, &place) || !prof_scope_config(&w->scope, config))
        return true;
    struct group *g = kernel_group(w, config);
    if (!g)
        return false;
    int64_t flags = sqlite3_column_int64(row, FLAGS), node = prof_column_int(row, NODE);
    const struct prof_stream *stream = prof_stream(w->capture, place.stream);
    add_api(g, stream);
    if (node != PROF_UNKNOWN)
        add_group_node(g, node, stream);
    if (flags & 4)
        g->failed++;
    int64_t duration = prof_column_size(row, DURATION);
    if (start == PROF_UNKNOWN || duration == PROF_UNKNOWN) {
        g->unfinished++;
        return true;
    }
    prof_gather_add(&g->duration, &w->durations, duration);
    if (lead != PROF_UNKNOWN)
        prof_gather_add(&g->launch, &w->delays, lead);
    gather_known(&g->api, &w->delays, prof_column_size(row, API_DURATION));
    gather_known(&g->queue, &w->delays, prof_column_int(row, QUEUE));
    gather_known(&g->submit, &w->delays, prof_column_int(row, SUBMIT));
    return true;
}

static enum prof_status scan_kernels(struct work *w, struct prof_error *err)
{
    size_t configs = w->capture->configs.count + 1;
    w->group_of_config = malloc(configs * sizeof *w->group_of_config);
    if (!w->group_of_config)
        return prof_out_of_memory(err);
    memset(w->group_of_config, 0xff, configs * sizeof *w->group_of_config);
    return prof_scan(w->capture, select_kernels, add_kernel_launch_row, w, err);
}

/* One question for all groups: each costs a look at the graphs' tables. */
static enum prof_status find_creators(struct work *w, struct prof_error *err)
{
    PROF_ARRAY(struct prof_graph_node *) wanted = {0};
    enum prof_status status = PROF_OK;
    for (size_t i = 0; !status && i < w->groups.count; i++) {
        struct prof_graph_node **slot =
            w->groups.data[i].graph_nodes ? prof_array_add(&wanted) : NULL;
        if (slot)
            *slot = &w->groups.data[i].node;
        else if (w->groups.data[i].graph_nodes)
            status = prof_out_of_memory(err);
    }
    if (!status && wanted.count)
        status = prof_graph_creators(w->capture, wanted.data, wanted.count, err);
    prof_array_free(&wanted);
    return status;
}

static int by_kernel_total(const void *a, const void *b)
{
    const struct prof_kernel_row *x = a, *y = b;
    int names = prof_order(x->duration_ns.sum, y->duration_ns.sum, x->name, y->name);
    if (names || !x->config || !y->config)
        return names;
    return (x->config->id > y->config->id) - (x->config->id < y->config->id);
}

static bool make_kernel_summary_rows(struct work *w, struct prof_kernel_summary *result)
{
    if (!w->groups.count)
        return true;
    result->rows = calloc(w->groups.count, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < w->groups.count; i++) {
        struct group *g = &w->groups.data[i];
        struct prof_kernel_row *r = &result->rows[result->count++];
        r->name = g->config ? g->config->name : NULL;
        r->full_name = g->config ? g->config->full_name : NULL;
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
    struct work w = {.capture = capture, .by = group};
    *result = (struct prof_kernel_summary){.wall_ns = prof_wall_ns(capture, filter)};
    if (!(filter && filter->range) && prof_has_sums_only(capture))
        return prof_kernel_sums(capture, filter, result, err);
    enum prof_status status = prof_scope_open(&w.scope, capture, filter, err);
    if (!status)
        status = scan_kernels(&w, err);
    if (!status)
        status = find_creators(&w, err);
    if (!status && !make_kernel_summary_rows(&w, result)) {
        prof_kernel_summary_free(result);
        status = prof_out_of_memory(err);
    }
    for (size_t i = 0; i < w.groups.count; i++) {
        struct group *g = &w.groups.data[i];
        struct prof_gather *gathers[] = {&g->duration, &g->queue, &g->submit, &g->launch, &g->api};
        for (size_t j = 0; j < sizeof gathers / sizeof gathers[0]; j++)
            prof_gather_free(gathers[j]);
    }
    prof_array_free(&w.groups);
    prof_names_free(&w.by_name);
    free(w.group_of_config);
    prof_scope_close(&w.scope);
    return status;
}

void prof_kernel_summary_free(struct prof_kernel_summary *result)
{
    for (size_t i = 0; i < result->count; i++)
        prof_histogram_free(&result->rows[i].histogram);
    free(result->rows);
    *result = (struct prof_kernel_summary){0};
}
