/* Measures the hash kernels on one shape so that 10 % between them can be seen. The short ones take
 * a few microseconds, less than a host needs to launch them: events around each launch would mostly
 * time the host. Where the device has graphs, a sample is therefore a graph of many steps, and one
 * step its part; elsewhere the device's own clock is in the events already. The kernels take turns,
 * sample by sample, as often as a fixed time allows: most often where they are shortest.
 */
#include "workloads/hash_embedding/sweep_point.h"

#include <stdio.h>
#include <string.h>

#include "perfkit/annotate.h"

#define SAMPLE_NS 2e6  /* that a graph is to take: its launch is then below 1 % */
#define POINT_NS 150e6 /* that the samples of a shape are to take together */
#define MOST_REPETITIONS 256

static const struct variant *variant_of(enum hash_variant variant)
{
    for (size_t i = 0; i < hash_variant_count; i++)
        if (hash_variants[i].argument == (int)variant)
            return &hash_variants[i];
    return NULL;
}

static int contender_step(void *argument)
{
    struct contender *c = argument;
    struct work work = {c->row->name, 0, 0, 0};

    if (c->graph)
        return session_graph_launch(c->session, c->session->queue, c->graph, &work);
    return c->row->step(c->state);
}

static uint32_t between(double value, uint32_t least, uint32_t most)
{
    return value <= least ? least : value >= most ? most : (uint32_t)value;
}

/* Records as many steps as make a sample long, by what one of them took. */
static int record(struct contender *c, double step_ns)
{
    int status;

    c->repetitions = between(SAMPLE_NS / step_ns, 1, MOST_REPETITIONS);
    status = session_graph_begin(c->session, c->session->queue);
    for (uint32_t i = 0; i < c->repetitions && status == 0; i++)
        status = c->row->step(c->state);
    if (c->session->recording && session_graph_end(c->session, c->session->queue, &c->graph) != 0)
        status = -1;
    return status;
}

static struct stats per_step(struct stats ns, uint32_t repetitions)
{
    ns.mean /= repetitions;
    ns.median /= repetitions;
    ns.min /= repetitions;
    ns.max /= repetitions;
    ns.mad /= repetitions;
    return ns;
}

/* A first look at each, event by event, says how long the samples are to be and how many. */
static int take_turns(const struct hash_options *options, struct session *session,
                      struct point *point)
{
    bool graphs = dev_info(session->dev)->graphs;
    uint32_t asked = options->common.iterations, warmup = options->common.warmup;
    struct subject subjects[HASH_AUTO] = {{0}};
    double round_ns = 0;
    int status;

    for (size_t i = 0; i < point->count; i++)
        subjects[i] = (struct subject){.name = point->contenders[i].row->name,
                                       .step = contender_step,
                                       .context = &point->contenders[i]};
    status = measure(session, subjects, point->count, 1, warmup);
    for (size_t i = 0; i < point->count && status == 0; i++) {
        struct contender *c = &point->contenders[i];
        double step_ns = subjects[i].result.kernel.median;

        if (graphs)
            status = record(c, step_ns);
        subjects[i].whole = graphs;
        round_ns += step_ns * c->repetitions;
    }
    if (status != 0)
        return -1;
    point->rounds = between(POINT_NS / round_ns, asked, asked * POINT_MOST_ROUNDS);
    status = measure(session, subjects, point->count, point->rounds, graphs ? 1 : 0);
    for (size_t i = 0; i < point->count; i++)
        point->contenders[i].ns =
            per_step(subjects[i].result.kernel, point->contenders[i].repetitions);
    return status;
}

/* Opens the kernels that apply; with --verify each is checked as it is opened. */
static int open_contenders(struct run *run, struct point *point)
{
    const struct dev_info *info = dev_info(run->session->dev);
    enum hash_variant choice = hash_choose(info, &point->shape, NULL);

    for (int v = 0; v < HASH_AUTO; v++) {
        struct contender *c = &point->contenders[point->count];

        if (!hash_applies(info, &point->shape, (enum hash_variant)v))
            continue;
        *c = (struct contender){.variant = (enum hash_variant)v,
                                .row = variant_of((enum hash_variant)v),
                                .session = run->session,
                                .repetitions = 1};
        if (c->row->open(run, v, &c->state) != 0)
            return -1;
        if (c->variant == choice)
            point->chosen = point->count;
        point->count++;
        if (run->options->common.verify && c->row->verify(c->state, &c->check) != 0)
            return -1;
    }
    return 0;
}

static void close_contenders(struct point *point)
{
    for (size_t i = 0; i < point->count; i++) {
        dev_graph_free(point->contenders[i].graph);
        point->contenders[i].graph = NULL;
        point->contenders[i].row->close(point->contenders[i].state);
        point->contenders[i].state = NULL;
    }
}

int point_measure(const struct hash_options *options, struct session *session, struct point *point)
{
    struct dataset data;
    struct run run = {options, &data, session, 0};
    int status;

    perfkit_range_push("setup");
    status = dataset_make(options, &point->shape, &data);
    if (status != 0)
        dev_fail(session->dev, "data", "out of host memory");
    else
        status = open_contenders(&run, point);
    perfkit_range_pop();
    if (status == 0)
        status = take_turns(options, session, point);
    perfkit_range_push("teardown");
    close_contenders(point);
    for (size_t i = 1; i < point->count; i++)
        if (point->contenders[i].ns.median < point->contenders[point->best].ns.median)
            point->best = i;
    dataset_free(&data);
    perfkit_range_pop();
    return status;
}

double point_loss(const struct point *point)
{
    return point->contenders[point->chosen].ns.median / point->contenders[point->best].ns.median;
}

bool point_passed(const struct point *point)
{
    for (size_t i = 0; i < point->count; i++)
        if (point->contenders[i].check.done && !check_passed(&point->contenders[i].check))
            return false;
    return point_loss(point) <= ALLOWED_LOSS;
}

/* ---- output ---------------------------------------------------------------------------------- */

static const struct contender *contender_of(const struct point *point, int variant)
{
    for (size_t i = 0; i < point->count; i++)
        if ((int)point->contenders[i].variant == variant)
            return &point->contenders[i];
    return NULL;
}

static const char *order_name(const struct point *point)
{
    return point->shape.sorted ? "sorted" : "random";
}

static void shape_cells(struct table *table, const struct point *point)
{
    table_row(table);
    table_cell(table, "%u", point->shape.records);
    table_cell(table, "%u", point->shape.plots);
    table_cell(table, "%s", order_name(point));
}

static const char *name_of(const struct point *point, size_t contender)
{
    return hash_variant_name(point->contenders[contender].variant);
}

void point_row(struct table *table, const struct point *point)
{
    shape_cells(table, point);
    for (int v = 0; v < HASH_AUTO; v++) {
        const struct contender *c = contender_of(point, v);

        if (c)
            table_duration(table, c->ns.median);
        else
            table_cell(table, "-");
    }
    table_cell(table, "%s", name_of(point, point->chosen));
    table_cell(table, "%.2f", point_loss(point));
    table_cell(table, "%s", point_passed(point) ? "PASSED" : "FAILED");
}

void point_spread_row(struct table *table, const struct point *point)
{
    shape_cells(table, point);
    for (int v = 0; v < HASH_AUTO; v++) {
        const struct contender *c = contender_of(point, v);

        if (c) {
            table_duration(table, c->ns.median);
            table_duration(table, c->ns.mad);
        } else {
            table_cell(table, "-");
            table_cell(table, "-");
        }
    }
    table_cell(table, "%s", name_of(point, point->chosen));
    table_cell(table, "%s", name_of(point, point->best));
    table_cell(table, "%u", point->rounds);
}

void point_text(const struct point *point, char *text, size_t bytes)
{
    size_t used;

    snprintf(text, bytes, "%u %s rows of %u plots", point->shape.records, order_name(point),
             point->shape.plots);
    for (size_t i = 0; i < point->count; i++) {
        const struct contender *c = &point->contenders[i];

        used = strlen(text);
        snprintf(text + used, bytes - used, ", %s %.1f us +- %.1f", hash_variant_name(c->variant),
                 c->ns.median / 1e3, c->ns.mad / 1e3);
    }
}

void point_json(struct json *json, const struct point *point)
{
    json_object_begin(json, NULL);
    json_integer(json, "records", point->shape.records);
    json_integer(json, "plots", point->shape.plots);
    json_bool(json, "sorted", point->shape.sorted);
    json_integer(json, "rounds", point->rounds);
    json_object_begin(json, "kernel_ns");
    for (size_t i = 0; i < point->count; i++)
        json_number(json, name_of(point, i), point->contenders[i].ns.median);
    json_object_end(json);
    json_object_begin(json, "spread_ns");
    for (size_t i = 0; i < point->count; i++)
        json_number(json, name_of(point, i), point->contenders[i].ns.mad);
    json_object_end(json);
    json_object_begin(json, "repetitions");
    for (size_t i = 0; i < point->count; i++)
        json_integer(json, name_of(point, i), point->contenders[i].repetitions);
    json_object_end(json);
    json_object_begin(json, "relative_error");
    for (size_t i = 0; i < point->count; i++)
        if (point->contenders[i].check.done)
            json_number(json, name_of(point, i), point->contenders[i].check.error);
    json_object_end(json);
    json_text(json, "auto", name_of(point, point->chosen));
    json_text(json, "best", name_of(point, point->best));
    json_number(json, "auto_over_best", point_loss(point));
    json_bool(json, "passed", point_passed(point));
    json_object_end(json);
}
