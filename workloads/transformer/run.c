/* From variants to result rows: those that are compared run in turn. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perfkit/annotate.h"
#include "workloads/common/grow.h"
#include "workloads/common/start.h"
#include "workloads/transformer/workload.h"

#define TOGETHER 10
#define SHAPES 6       /* different ones of a run */
#define CPU_SHARE 16   /* of the sequences: the CPU takes its time, and each is alike */
#define TOLERANCE 2e-5 /* single precision through thousands of terms of both signs */
/* A gate that is open in one computation and shut in the other takes its part of the gradients with
 * it: a share f of the gates changes a gradient by about sqrt(f) of its norm. Thousands of tokens
 * have a few such gates, so no single precision gradient is nearer than that. */
#define GATES_TOLERANCE 2
#define CURVE_TOLERANCE 1e-2

/* What models of one shape begin with, and what they must come to. */
struct data {
    struct shape shape;
    float *weights;
    uint32_t *corpus;
    struct reference reference;
};

struct runner {
    const struct run *run;
    struct data data[SHAPES];
    size_t data_count;
};

struct state {
    const struct variant *variant;
    const struct data *data;
    struct model *model;
    struct result *row;
    struct cache_counters *cache; /* NULL: not counted */
    double references, misses;
    uint32_t counted; /* steps */
};

/* ---- data ------------------------------------------------------------------------------------ */

static int make_data(const struct run *run, struct data *data)
{
    uint64_t seed = run->options->common.seed;
    int result = -1;

    perfkit_range_push("data");
    data->weights = weights_make(&data->shape, seed);
    data->corpus = corpus_make(&data->shape, seed);
    perfkit_range_pop();
    if (data->weights && data->corpus)
        result = 0;
    if (result == 0 && run->options->common.verify) {
        perfkit_range_push("reference");
        result = reference_make(&data->shape, data->weights, data->corpus, &data->reference);
        perfkit_range_pop();
    }
    return result;
}

/* The data of a variant's shape, made at its first use; NULL when memory ran out. */
static const struct data *data_of(struct runner *runner, const struct variant *variant)
{
    struct shape shape = shape_of(runner->run->options, variant->width);
    struct data *data;

    if (variant->on_cpu)
        shape.sequences = (shape.sequences + CPU_SHARE - 1) / CPU_SHARE;
    for (size_t i = 0; i < runner->data_count; i++)
        if (runner->data[i].shape.width == shape.width &&
            runner->data[i].shape.sequences == shape.sequences)
            return &runner->data[i];
    data = &runner->data[runner->data_count++];
    data->shape = shape;
    return make_data(runner->run, data) == 0 ? data : NULL;
}

static void free_data(struct runner *runner)
{
    for (size_t i = 0; i < runner->data_count; i++) {
        free(runner->data[i].weights);
        free(runner->data[i].corpus);
        reference_free(&runner->data[i].reference);
    }
}

/* ---- verification ---------------------------------------------------------------------------- */

/* The first step by its losses and gradients, and the next ones by their losses and the weights in
 * the end. Those agree less: Adam's first steps move a weight by the sign of its gradient, however
 * small that is, so the last digit of one step is a whole step of the next. */
static int verify_steps(const struct data *data, struct model *model, float *values,
                        struct result *row)
{
    size_t rows = rows_of(&data->shape), steps;
    const double *curve;

    if (model_reset(model, true) != 0)
        return -1;
    for (uint32_t step = 0; step < VERIFY_STEPS; step++) {
        if (model_step(model) != 0)
            return -1;
        check_note(step == 0 ? &row->check : &row->curve,
                   relative_error(model_losses(model), data->reference.losses + step * rows, rows));
        if (step == 0) {
            if (model_read_gradient(model, values) != 0)
                return -1;
            reference_check_gradient(&data->reference, values, &row->check);
        }
    }
    if (model_read_weights(model, values) != 0)
        return -1;
    check_note(&row->curve,
               relative_error(values, data->reference.weights, layout_of(&data->shape).count));
    curve = model_curve(model, &steps);
    for (size_t step = CORPUS_BATCHES; step < steps; step++)
        if (!(curve[step] < curve[step - CORPUS_BATCHES])) /* the same batch again */
            check_note(&row->curve, NAN);
    return 0;
}

static int verify(const struct data *data, struct model *model, struct result *row)
{
    float *values = malloc(layout_of(&data->shape).count * sizeof values[0]);
    int result = values ? 0 : -1;

    row->check.tolerance = TOLERANCE + GATES_TOLERANCE * sqrt(data->reference.doubtful_gates);
    row->curve.tolerance = CURVE_TOLERANCE;
    if (result == 0)
        result = verify_steps(data, model, values, row);
    if (result == 0)
        result = model_reset(model, false);
    free(values);
    return result;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static int step(void *argument)
{
    struct state *s = argument;
    double references[2], misses[2];
    int result;

    if (!s->cache)
        return model_step(s->model);
    cache_read(s->cache, &references[0], &misses[0]);
    result = model_step(s->model);
    cache_read(s->cache, &references[1], &misses[1]);
    s->references += references[1] - references[0];
    s->misses += misses[1] - misses[0];
    s->counted++;
    return result;
}

static int prepare(struct runner *runner, struct session *session, struct state *state,
                   struct result *row)
{
    const struct variant *variant = state->variant;
    int status = -1;

    perfkit_range_push(variant->name);
    state->data = data_of(runner, variant);
    perfkit_range_push("setup");
    if (state->data) {
        *row = (struct result){.variant = variant, .shape = state->data->shape};
        status = model_open(session, &state->data->shape, variant->form, state->data->weights,
                            state->data->corpus, &state->model, row->skipped, sizeof row->skipped);
    }
    perfkit_range_pop();
    if (status == 0 && runner->run->options->common.verify) {
        perfkit_range_push("verify");
        status = verify(state->data, state->model, row);
        perfkit_range_pop();
    }
    perfkit_range_pop();
    return status;
}

/* First without the device's events, which take longer than a small launch; then with them, for
 * the times of kernels and copies. Waiting after each phase gives times of its own. */
static int measure_both(const struct run *run, struct session *session, struct subject *subjects,
                        size_t count)
{
    const struct common_options *common = &run->options->common;
    const struct state *first = subjects[0].context;
    struct stats wall[TOGETHER];
    int status;

    session->untimed = true;
    status = measure(session, subjects, count, common->iterations, common->warmup);
    session->untimed = false;
    if (status != 0)
        return status;
    for (size_t i = 0; i < count; i++) {
        wall[i] = subjects[i].result.wall;
        subjects[i].result.kernel = subjects[i].result.transfer = stats_of(NULL, 0);
    }
    if (first->variant->form.apart || common->wall_only)
        return 0;
    status = measure(session, subjects, count, common->iterations, 0);
    for (size_t i = 0; i < count; i++)
        subjects[i].result.wall = wall[i];
    return status;
}

static double mean_loss(const double *curve, size_t steps)
{
    double sum = 0;

    for (size_t i = 0; i < steps; i++)
        sum += curve[i];
    return sum / (double)steps;
}

static void finish(const struct run *run, const struct state *state,
                   const struct measurement *measured)
{
    struct result *row = state->row;
    size_t steps, few;
    const double *curve = model_curve(state->model, &steps);

    few = steps < CORPUS_BATCHES ? steps : CORPUS_BATCHES;
    row->measured = *measured;
    row->first_loss = mean_loss(curve, few);
    row->last_loss = mean_loss(curve + steps - few, few);
    row->pool_allocations = model_pool_allocations(state->model);
    row->cache_references = state->cache ? state->references / state->counted : NAN;
    row->cache_misses = state->cache ? state->misses / state->counted : NAN;
    if (state->variant->form.apart)
        model_component_times(state->model, run->options->common.iterations, row->component_ns);
}

static int run_group(struct runner *runner, struct session *session, const struct variant **group,
                     size_t count, struct cache_counters *cache)
{
    const struct run *run = runner->run;
    struct results *results = run->results;
    struct state states[TOGETHER] = {{.variant = NULL}};
    struct subject subjects[TOGETHER] = {{0}};
    void *grown = results->rows;
    struct result *rows =
        grow(&grown, &results->count, &results->capacity, count, sizeof *results->rows);
    size_t measured = 0;
    int status = rows ? 0 : -1;

    results->rows = grown;
    dev_clear_error(session->dev);
    for (size_t i = 0; i < count && status == 0; i++) {
        states[i] = (struct state){.variant = group[i], .cache = cache, .row = &rows[i]};
        status = prepare(runner, session, &states[i], &rows[i]);
        if (status == 0)
            subjects[measured++] =
                (struct subject){.name = group[i]->name, .step = step, .context = &states[i]};
        status = status == UNAVAILABLE ? 0 : status;
    }
    if (status == 0 && measured > 0)
        status = measure_both(run, session, subjects, measured);
    for (size_t i = 0; i < measured && status == 0; i++)
        finish(run, subjects[i].context, &subjects[i].result);
    if (status != 0) {
        const char *why = dev_error_text(session->dev);

        fprintf(stderr, "transformer: %s: %s\n", group[0]->name, *why ? why : "out of memory");
    }
    perfkit_range_push("teardown");
    for (size_t i = 0; i < count; i++)
        model_close(states[i].model);
    perfkit_range_pop();
    return status;
}

/* On a CPU device of their own, made after the counters, so that these see its threads. */
static int run_on_cpu(struct runner *runner, const struct variant **group, size_t count)
{
    struct results *results = runner->run->results;
    struct cache_counters cache;
    bool counted = cache_open(&cache, results->no_cache, sizeof results->no_cache) == 0;
    struct dev *dev = open_device("transformer", DEV_CPU, 0);
    struct session session;
    int status = -1;

    if (dev && session_open(&session, dev) == 0) {
        status = run_group(runner, &session, group, count, counted ? &cache : NULL);
        session_close(&session);
    }
    if (dev)
        close_device(dev);
    cache_close(&cache);
    return status;
}

static bool asked_for(const struct run *run, const struct variant *variant)
{
    const char *name = run->options->common.variant;

    return !name || strcmp(name, variant->name) == 0;
}

int run_variants(const struct run *run)
{
    struct runner runner = {.run = run};
    int status = 0;

    for (size_t i = 0; i < variant_count && status == 0;) {
        const struct variant *group[TOGETHER];
        bool on_cpu = variants[i].on_cpu, more = true;
        size_t count = 0;

        for (; more && count < TOGETHER; i++) {
            more = variants[i].with_next;
            if (asked_for(run, &variants[i]))
                group[count++] = &variants[i];
        }
        if (count && on_cpu)
            status = run_on_cpu(&runner, group, count);
        else if (count)
            status = run_group(&runner, run->session, group, count, NULL);
    }
    free_data(&runner);
    return status;
}
