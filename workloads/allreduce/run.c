/* From variants to result rows. Every rank does the same in the same order, because an operation
 * that one of them left out would hang the others; what was measured is told to all, and rank 0
 * prints it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "perfkit/annotate.h"
#include "workloads/allreduce/workload.h"
#include "workloads/common/grow.h"

#define TOLERANCE 2e-5 /* as in transformer/run.c */
#define CURVE_TOLERANCE 1e-2

/* What all variants begin with. Weights and reference are those of the whole batch. */
struct data {
    struct shape whole, part;
    float *weights;
    uint32_t *corpus; /* this rank's part of each batch */
    struct reference reference;
};

/* A variant on its way. */
struct state {
    const struct run *run;
    const struct data *data;
    const struct variant *variant;
    struct model *model;
    struct comm *comm;
    struct model_exchange exchange;
    size_t bucket_floats;
    size_t pending_end; /* the gradient up to here is not sent */
    size_t pending_from;
    bool is_slow;                        /* this rank */
    struct dev_event *computed, *summed; /* marks around the wait for the sums */
    double exposed_ns, busy_ns;          /* of all timed steps */
    uint32_t timed_steps;
    uint32_t reductions; /* of the last step */
    struct result *row;
};

/* ---- data ------------------------------------------------------------------------------------ */

struct shape whole_shape(const struct allreduce_options *o)
{
    return (struct shape){.sequences = o->sequences,
                          .length = o->length,
                          .width = o->width,
                          .heads = o->heads,
                          .layers = o->layers,
                          .hidden = 4 * o->width,
                          .vocabulary = o->vocabulary};
}

static uint32_t *part_of_corpus(const struct data *data, const uint32_t *whole, uint32_t rank)
{
    size_t all = batch_tokens(&data->whole), own = batch_tokens(&data->part);
    uint32_t *part = malloc(CORPUS_BATCHES * own * sizeof part[0]);

    for (size_t batch = 0; part && batch < CORPUS_BATCHES; batch++)
        memcpy(part + batch * own, whole + batch * all + rank * own, own * sizeof part[0]);
    return part;
}

static int make_data(const struct run *run, struct data *data)
{
    const struct common_options *common = &run->options->common;
    uint32_t *whole;
    int result;

    data->whole = data->part = whole_shape(run->options);
    data->part.sequences /= run->meet->ranks;
    perfkit_range_push("data");
    data->weights = weights_make(&data->whole, common->seed);
    whole = corpus_make(&data->whole, common->seed);
    data->corpus = whole ? part_of_corpus(data, whole, run->meet->rank) : NULL;
    perfkit_range_pop();
    result = data->weights && data->corpus ? 0 : -1;
    if (result == 0 && common->verify && run->meet->rank == 0) {
        perfkit_range_push("reference");
        result = reference_make(&data->whole, data->weights, whole, &data->reference);
        perfkit_range_pop();
    }
    free(whole);
    return result;
}

static void free_data(struct data *data)
{
    free(data->weights);
    free(data->corpus);
    reference_free(&data->reference);
}

/* ---- buckets --------------------------------------------------------------------------------- */

static int send_bucket(struct state *s, size_t from)
{
    size_t count = s->pending_end - from;

    s->pending_end = from;
    s->reductions++;
    return s->comm->ops->reduce(s->comm, from, count);
}

/* Ranges come from the end to the beginning, so what is not sent lies together. */
static int ready(void *context, uint32_t from, uint32_t end)
{
    struct state *s = context;

    if (end == layout_of(&s->data->part).count)
        s->pending_end = end;
    s->pending_from = from;
    while (s->variant->overlap && s->pending_end - s->pending_from >= s->bucket_floats)
        if (send_bucket(s, s->pending_end - s->bucket_floats) != 0)
            return -1;
    return 0;
}

static int mark(struct state *s, struct dev_event **event)
{
    return s->run->session->untimed ? 0 : dev_mark(s->run->session->queue, event);
}

static int finish(void *context)
{
    struct state *s = context;

    if (mark(s, &s->computed) != 0)
        return -1;
    while (s->pending_end > 0) {
        bool whole = s->pending_end <= s->bucket_floats;

        if (send_bucket(s, whole ? 0 : s->pending_end - s->bucket_floats) != 0)
            return -1;
    }
    if (s->comm->ops->finish(s->comm) != 0)
        return -1;
    return mark(s, &s->summed);
}

/* ---- a step ---------------------------------------------------------------------------------- */

static void sleep_planted(uint32_t ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    perfkit_range_push("slow rank (planted)");
    nanosleep(&time, NULL);
    perfkit_range_pop();
}

static int take_times(struct state *s)
{
    uint64_t exposed = 0;
    double busy = 0;
    int result = 0;

    if (s->computed && s->summed) {
        result = dev_elapsed_ns(s->computed, s->summed, &exposed);
        if (s->comm->ops->take_time(s->comm, &busy) != 0)
            result = -1;
        s->exposed_ns += (double)exposed;
        s->busy_ns += busy;
        s->timed_steps++;
    }
    dev_event_release(s->computed);
    dev_event_release(s->summed);
    s->computed = s->summed = NULL;
    return result;
}

static int step(void *argument)
{
    struct state *s = argument;
    int result;

    s->reductions = 0;
    if (s->is_slow && s->run->options->slow_by == SLOW_BY_HOST)
        sleep_planted(s->run->options->slow_amount);
    result = model_step(s->model);
    return take_times(s) == 0 ? result : -1;
}

/* ---- verification ---------------------------------------------------------------------------- */

/* The losses of the whole batch's rows in their order. 0, or -1 when a rank is gone. */
static int gather_losses(const struct state *s, float *all)
{
    return meet_gather(s->run->meet, model_losses(s->model),
                       rows_of(&s->data->part) * sizeof(float), all);
}

static double mean_of(const float *losses, size_t rows)
{
    double sum = 0;

    for (size_t i = 0; i < rows; i++)
        sum += (double)losses[i];
    return sum / (double)rows;
}

static uint64_t hash_of(const float *values, size_t count)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < count; i++) {
        uint32_t bits;

        memcpy(&bits, &values[i], sizeof bits);
        hash = (hash ^ bits) * 0x100000001b3u;
    }
    return hash;
}

/* What rank 0 holds against the reference, after each step. */
static int check_step(struct state *s, uint32_t number, const float *losses, float *values)
{
    size_t rows = rows_of(&s->data->whole);
    struct result *row = s->row;
    const struct reference *reference = &s->data->reference;

    check_note(number == 0 ? &row->check : &row->curve,
               relative_error(losses, reference->losses + number * rows, rows));
    if (number > 0)
        return 0;
    if (model_read_gradient(s->model, values) != 0)
        return -1;
    reference_check_gradient(reference, values, &row->check);
    return 0;
}

static int verify_steps(struct state *s, float *losses, float *values)
{
    size_t rows = rows_of(&s->data->whole), count = layout_of(&s->data->whole).count;
    bool judge = s->run->meet->rank == 0;
    double mean[VERIFY_STEPS];

    if (model_reset(s->model, true) != 0)
        return -1;
    for (uint32_t i = 0; i < VERIFY_STEPS; i++) {
        if (step(s) != 0 || gather_losses(s, losses) != 0 ||
            (judge && check_step(s, i, losses, values) != 0))
            return -1;
        mean[i] = mean_of(losses, rows);
        if (i >= CORPUS_BATCHES && !(mean[i] < mean[i - CORPUS_BATCHES])) /* the same batch again */
            check_note(&s->row->curve, NAN);
    }
    if (model_read_weights(s->model, values) != 0)
        return -1;
    s->row->ranks[s->run->meet->rank].weights = hash_of(values, count);
    if (judge)
        check_note(&s->row->curve, relative_error(values, s->data->reference.weights, count));
    return 0;
}

static int verify(struct state *s)
{
    float *values = malloc(layout_of(&s->data->whole).count * sizeof values[0]);
    float *losses = malloc(rows_of(&s->data->whole) * sizeof losses[0]);
    int result = values && losses ? 0 : -1;

    s->row->check.tolerance = TOLERANCE;
    s->row->curve.tolerance = CURVE_TOLERANCE;
    if (result == 0)
        result = verify_steps(s, losses, values);
    if (result == 0)
        result = model_reset(s->model, false);
    free(values);
    free(losses);
    return result;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static int open_state(struct state *s)
{
    const struct run *run = s->run;
    struct result *row = s->row;
    size_t bucket = bucket_of(run->options, s->variant);
    struct form form = {.tiles = TILES_BLOCKS, .batched = true};

    s->bucket_floats = bucket == SIZE_MAX ? bucket : bucket / sizeof(float);
    if (s->variant->slow) {
        row->slow_rank = run->options->slow_rank < run->meet->ranks ? run->options->slow_rank
                                                                    : run->meet->ranks - 1;
        s->is_slow = row->slow_rank == run->meet->rank;
    }
    if (s->variant->nccl)
        comm_open_nccl(run->meet, run->session, &s->comm, row->skipped, sizeof row->skipped);
    else
        comm_open_shared(run->meet, run->session, layout_of(&s->data->part).count, &s->comm,
                         row->skipped, sizeof row->skipped);
    if (!s->comm)
        return UNAVAILABLE;
    s->exchange = (struct model_exchange){
        .batch_rows = (uint32_t)rows_of(&s->data->whole),
        .ready = ready,
        .finish = finish,
        .context = s,
        .rehearsals =
            s->is_slow && run->options->slow_by == SLOW_BY_DEVICE ? run->options->slow_amount : 0};
    if (model_open(run->session, &s->data->part, form, s->data->weights, s->data->corpus, &s->model,
                   row->skipped, sizeof row->skipped) != 0)
        return -1;
    model_set_exchange(s->model, &s->exchange);
    s->comm->gradient = model_gradient(s->model);
    return 0;
}

/* Mean loss of all ranks over the first and the last batches. */
static int note_losses(struct state *s)
{
    size_t steps, few;
    const double *curve = model_curve(s->model, &steps);
    double mine[2] = {0}, *all = malloc(s->run->meet->ranks * sizeof mine);
    int result = all ? 0 : -1;

    few = steps < CORPUS_BATCHES ? steps : CORPUS_BATCHES;
    for (size_t i = 0; i < few; i++) {
        mine[0] += curve[i] / (double)few;
        mine[1] += curve[steps - few + i] / (double)few;
    }
    if (result == 0)
        result = meet_gather(s->run->meet, mine, sizeof mine, all);
    for (uint32_t r = 0; result == 0 && r < s->run->meet->ranks; r++) {
        s->row->first_loss += all[2 * r] / s->run->meet->ranks;
        s->row->last_loss += all[2 * r + 1] / s->run->meet->ranks;
    }
    free(all);
    return result;
}

static int gather_ranks(struct state *s, const struct measurement *measured, double wall)
{
    const struct meet *meet = s->run->meet;
    struct result *row = s->row;
    struct rank_result mine = {.wall = wall,
                               .kernel = measured->kernel.median,
                               .exposed = s->exposed_ns / s->timed_steps,
                               .busy = s->busy_ns / s->timed_steps,
                               .weights = row->ranks[meet->rank].weights};

    if (meet_gather(s->run->meet, &mine, sizeof mine, row->ranks) != 0)
        return -1;
    for (uint32_t r = 0; s->run->options->common.verify && r < meet->ranks; r++)
        check_note(&row->replicas, row->ranks[r].weights == row->ranks[0].weights ? 0 : NAN);
    return 0;
}

/* First without the device's events, then with them: transformer/run.c. */
static int measure_state(struct state *s)
{
    const struct common_options *common = &s->run->options->common;
    struct session *session = s->run->session;
    struct subject subject = {.name = s->variant->name, .step = step, .context = s};
    struct stats wall;
    int status;

    session->untimed = true;
    status = measure(session, &subject, 1, common->iterations, common->warmup);
    session->untimed = false;
    wall = subject.result.wall;
    s->exposed_ns = s->busy_ns = 0;
    s->timed_steps = 0;
    if (status == 0)
        status = measure(session, &subject, 1, common->iterations, 0);
    if (status != 0)
        return status;
    subject.result.wall = wall;
    s->row->measured = subject.result;
    s->row->reductions = s->reductions;
    s->row->bytes = layout_of(&s->data->part).count * sizeof(float);
    if (note_losses(s) != 0)
        return -1;
    return gather_ranks(s, &subject.result, wall.median);
}

static int run_one(const struct run *run, const struct data *data, const struct variant *variant)
{
    struct results *results = run->results;
    void *rows = results->rows;
    struct result *row = grow(&rows, &results->count, &results->capacity, 1, sizeof *results->rows);
    struct state state = {.run = run, .data = data, .variant = variant, .row = row};
    int status = -1;

    results->rows = rows;
    if (!row)
        return -1;
    row->variant = variant;
    row->slow_rank = UINT32_MAX;
    row->ranks = calloc(run->meet->ranks, sizeof row->ranks[0]);
    dev_clear_error(run->session->dev);
    perfkit_range_push(variant->name);
    perfkit_range_push("setup");
    if (row->ranks)
        status = open_state(&state);
    perfkit_range_pop();
    if (status == 0 && run->options->common.verify) {
        perfkit_range_push("verify");
        status = verify(&state);
        perfkit_range_pop();
    }
    perfkit_range_pop();
    if (status == 0)
        status = measure_state(&state);
    perfkit_range_push("teardown");
    comm_close(state.comm);
    model_close(state.model);
    perfkit_range_pop();
    return status == UNAVAILABLE ? 0 : status;
}

int run_variants(const struct run *run)
{
    const char *wanted = run->options->common.variant;
    struct data data = {.weights = NULL};
    int status = make_data(run, &data);

    for (size_t i = 0; i < variant_count && status == 0; i++)
        if (!wanted || strcmp(wanted, variants[i].name) == 0)
            status = run_one(run, &data, &variants[i]);
    if (status != 0) {
        const char *why = dev_error_text(run->session->dev);

        fprintf(stderr, "allreduce: rank %u: %s\n", run->meet->rank,
                *why ? why : "out of memory, or another rank is gone");
    }
    free_data(&data);
    return status;
}
