/* The variants, and the way from one to its result rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/rbf/rbf.h"
#include "perfkit/annotate.h"
#include "workloads/common/grow.h"
#include "workloads/batched_forces/workload.h"

static const uint32_t all_batches[] = {1, 4, 8, 16, 32, 0};
static const uint32_t one_and_sixteen[] = {1, 16, 0};

const struct variant variants[] = {
    {.name = "separate",
     .summary = "energies and forces; edge features and radial basis one operation a launch",
     .operation = COMPONENTS,
     .with_next = true,
     .batches = all_batches},
    {.name = "fused",
     .summary = "energies and forces; edge features and radial basis in one launch each",
     .form = {.edges_fused = true, .rbf_fused = true},
     .operation = COMPONENTS,
     .batches = all_batches},
    {.name = "rbf-separate",
     .summary = "radial basis and cutoff alone, one operation a launch",
     .form = {.edges_fused = true},
     .operation = RBF,
     .with_next = true,
     .batches = one_and_sixteen},
    {.name = "rbf-fused",
     .summary = "radial basis and cutoff alone, in one launch",
     .form = {.edges_fused = true, .rbf_fused = true},
     .operation = RBF,
     .batches = one_and_sixteen},
    {.name = "edge-separate",
     .summary = "edge features alone, one operation a launch",
     .form = {.rbf_fused = true},
     .operation = EDGES,
     .with_next = true,
     .batches = one_and_sixteen},
    {.name = "edge-fused",
     .summary = "edge features alone, in one launch",
     .form = {.edges_fused = true, .rbf_fused = true},
     .operation = EDGES,
     .batches = one_and_sixteen},
    {.name = "components-separate",
     .summary = "separate, waiting after each component: the component table",
     .form = {.apart = true},
     .operation = COMPONENTS,
     .with_next = true,
     .batches = one_and_sixteen},
    {.name = "components-fused",
     .summary = "fused, waiting after each component: the component table",
     .form = {.edges_fused = true, .rbf_fused = true, .apart = true},
     .operation = COMPONENTS,
     .batches = one_and_sixteen},
};
const size_t variant_count = sizeof variants / sizeof variants[0];

struct state {
    struct model *model;
    const struct variant *variant;
    struct dev_queue *queue;
    char name[48]; /* of the ranges: each batch size by itself */
};

static int step(void *argument)
{
    struct state *s = argument;
    enum component operation = s->variant->operation;
    int result;

    if (operation == COMPONENTS)
        return model_step(s->model);
    for (int i = 0; i < OPERATIONS_PER_STEP; i++)
        if (model_components(s->model, operation, operation + 1) != 0)
            return -1;
    perfkit_range_push("wait");
    result = dev_queue_finish(s->queue);
    perfkit_range_pop();
    return result;
}

static int open(const struct run *run, const struct choice *choice, struct state *state)
{
    const struct variant *variant = choice->variant;
    struct model *model;

    if (model_open(run->session, run->set, run->network, variant->form, choice->batch, &model) != 0)
        return -1;
    state->model = model;
    state->queue = run->session->queue;
    if (variant->operation == COMPONENTS)
        return 0;
    if (model_components(model, TRANSFER_IN, variant->operation) == 0) /* what it works on */
        return dev_queue_finish(run->session->queue);
    return -1;
}

/* ---- verification ---------------------------------------------------------------------------- */

/* Energies by themselves and forces by themselves: a norm over both would hide the smaller. */
static int verify_forces(const struct run *run, struct model *model, struct check *check)
{
    const struct molecules *set = run->set;
    float *energies = malloc(set->count * sizeof energies[0]);
    float *forces = malloc(3 * (size_t)set->atoms * sizeof forces[0]);
    int result = -1;

    check->tolerance = 1e-3;
    if (energies && forces && model_poison(model) == 0 && model_step(model) == 0) {
        for (uint32_t m = 0; m < set->count; m++) {
            const float *energy, *force;
            size_t at = 3 * (size_t)set->first[m];

            model_results(model, m, &energy, &force);
            energies[m] = *energy;
            for (size_t i = at; i < 3 * (size_t)set->first[m + 1]; i++)
                forces[i] = force[i - at];
        }
        check_note(check, relative_error(energies, run->reference->energies, set->count));
        check_note(check, relative_error(forces, run->reference->forces, 3 * (size_t)set->atoms));
        result = 0;
    }
    free(energies);
    free(forces);
    return result;
}

/* Distances, directions and basis of the first pass's edges in double precision, in one array:
 * [distances | directions | basis]. */
static double *edge_reference(const struct run *run, const struct edge_list *list, size_t edges)
{
    uint32_t functions = run->network->functions;
    double *out = malloc((edges ? edges : 1) * (4 + functions) * sizeof out[0]);

    for (size_t e = 0; out && e < edges; e++) {
        const float *from = run->set->positions + 3 * (size_t)list->receiver[e];
        const float *to = run->set->positions + 3 * (size_t)list->sender[e];
        double squared = 0;

        for (int c = 0; c < 3; c++)
            squared += ((double)to[c] - (double)from[c]) * ((double)to[c] - (double)from[c]);
        out[e] = sqrt(squared);
        for (size_t c = 0; c < 3; c++)
            out[edges + 3 * e + c] = ((double)to[c] - (double)from[c]) / out[e];
        for (uint32_t k = 0; k < functions; k++)
            out[4 * edges + e * functions + k] =
                rbf_reference(out[e], (double)run->network->spacing * k,
                              (double)run->network->gamma, (double)CUTOFF, NULL);
    }
    return out;
}

static int verify_operation(const struct run *run, struct model *model, enum component operation,
                            struct check *check)
{
    struct edge_list list;
    double *reference = NULL;
    int64_t edges = -1;

    check->tolerance = 1e-5;
    if (model_poison(model) == 0 && model_components(model, TRANSFER_IN, operation + 1) == 0)
        edges = model_edges(model, &list);
    else
        list = (struct edge_list){0};
    if (edges >= 0)
        reference = edge_reference(run, &list, (size_t)edges);
    if (reference && operation == EDGES) {
        check_note(check, relative_error(list.distance, reference, (size_t)edges));
        check_note(check, relative_error(list.direction, reference + edges, 3 * (size_t)edges));
    } else if (reference) {
        check_note(check, relative_error(list.rbf, reference + 4 * edges,
                                         (size_t)edges * run->network->functions));
    }
    free(reference);
    edge_list_free(&list);
    return reference ? 0 : -1;
}

static int verify(const struct run *run, const struct state *state, struct check *check)
{
    enum component operation = state->variant->operation;

    if (operation == COMPONENTS)
        return verify_forces(run, state->model, check);
    return verify_operation(run, state->model, operation, check);
}

/* ---- running --------------------------------------------------------------------------------- */

static struct result *add_rows(struct results *results, size_t count)
{
    void *rows = results->rows;
    struct result *first =
        grow(&rows, &results->count, &results->capacity, count, sizeof results->rows[0]);

    results->rows = rows;
    return first;
}

static int prepare(const struct run *run, const struct choice *choice, struct state *state,
                   struct result *row)
{
    const struct molecules *set = run->set;
    int status;

    state->variant = choice->variant;
    snprintf(state->name, sizeof state->name, "%s, batch %u", choice->variant->name, choice->batch);
    *row = (struct result){
        .variant = choice->variant, .batch = choice->batch, .molecules = set->count};
    row->atoms = set->atoms;
    row->edges = count_edges(set, 0, set->count, CUTOFF);
    perfkit_range_push(state->name);
    perfkit_range_push("setup");
    status = open(run, choice, state);
    perfkit_range_pop();
    if (status == 0 && run->reference) {
        perfkit_range_push("verify");
        status = verify(run, state, &row->check);
        perfkit_range_pop();
    }
    perfkit_range_pop();
    return status;
}

/* First without the device's events, which take longer than a small launch; then with them, for
 * the kernels' times. */
static int measure_both(const struct run *run, struct subject *subjects, size_t count)
{
    const struct common_options *common = &run->options->common;
    struct stats wall[RUN_TOGETHER], host[RUN_TOGETHER];
    bool apart = false;
    int status;

    run->session->untimed = true;
    status = measure(run->session, subjects, count, common->iterations, common->warmup);
    run->session->untimed = false;
    if (status != 0)
        return status;
    for (size_t i = 0; i < count; i++) {
        struct state *state = subjects[i].context;

        wall[i] = subjects[i].result.wall;
        host[i] = subjects[i].result.host;
        subjects[i].result.kernel = subjects[i].result.transfer = stats_of(NULL, 0);
        if (state->variant->form.apart)
            apart = true; /* its times are those of the components */
    }
    if (apart || common->wall_only)
        return 0;
    status = measure(run->session, subjects, count, common->iterations, 1);
    for (size_t i = 0; i < count; i++) {
        subjects[i].result.wall = wall[i];
        subjects[i].result.host = host[i];
    }
    return status;
}

int run_choices(const struct run *run, const struct choice *choices, size_t count,
                struct results *results)
{
    struct state states[RUN_TOGETHER] = {{.model = NULL}};
    struct subject subjects[RUN_TOGETHER] = {{0}};
    struct result *rows = add_rows(results, count);
    int status = rows ? 0 : -1;

    dev_clear_error(run->session->dev);
    for (size_t i = 0; i < count && status == 0; i++) {
        status = prepare(run, &choices[i], &states[i], &rows[i]);
        subjects[i] = (struct subject){.name = states[i].name, .step = step, .context = &states[i]};
    }
    if (status == 0)
        status = measure_both(run, subjects, count);
    for (size_t i = 0; i < count && status == 0; i++) {
        rows[i].measured = subjects[i].result;
        if (choices[i].variant->form.apart)
            model_component_times(states[i].model, run->options->common.iterations,
                                  rows[i].component_ns);
    }
    if (status != 0) {
        const char *why = dev_error_text(run->session->dev);

        fprintf(stderr, "batched_forces: %s: %s\n", choices->variant->name,
                *why ? why : "out of memory");
    }
    perfkit_range_push("teardown");
    for (size_t i = 0; i < count; i++)
        model_close(states[i].model);
    perfkit_range_pop();
    return status;
}
