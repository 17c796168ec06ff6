/* Variants from options to result rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perfkit/annotate.h"
#include "workloads/rollout/workload.h"

#define SET_MAX 8        /* variants of a set */
#define PROFILED_STEPS 4 /* with an event for each launch */
#define BEYOND_CACHE 4   /* times the cache */
#define CACHE_ASSUMED (64 << 20)

/* Relative to the double reference after a few steps: fp32 adds up roundings of 6e-8, fp16 of
 * 5e-4, bf16 of 4e-3, each some twenty times a step. */
static const double tolerances[STORAGE_COUNT] = {1e-4, 1e-2, 6e-2};

/* What all variants of a set have in common. */
struct job {
    struct rollout_options options; /* with the steps of the set */
    const struct model *model;
    struct dev *dev;
    struct references *references;
};

/* One variant that is being measured. */
struct runner {
    struct rollout *rollout; /* NULL when it cannot run here */
    struct result *result;
    double *wall, *device; /* samples */
};

static int failed(const char *what, const struct dev *dev)
{
    const char *why = dev_error_text(dev);

    fprintf(stderr, "rollout: %s: %s\n", what, *why ? why : "out of memory");
    return -1;
}

/* The storage that the device computes with when `asked` is wanted; a warning for each step down,
 * once per run. */
static enum storage fall_back(const struct rollout_options *options, const struct dev_info *info,
                              enum storage asked)
{
    static bool warned[STORAGE_COUNT];
    bool stores_all = info->backend != DEV_CUDA; /* and computes in float */
    bool bf16 = options->without < WITHOUT_BF16 && (stores_all || info->bf16);
    bool fp16 = options->without < WITHOUT_FP16 && (stores_all || info->fp16);

    if (asked == STORAGE_BF16 && !bf16) {
        if (!warned[STORAGE_BF16])
            fprintf(stderr, "rollout: %s has no bf16: computing in fp16 instead\n", info->name);
        warned[STORAGE_BF16] = true;
        asked = STORAGE_F16;
    }
    if (asked == STORAGE_F16 && !fp16) {
        if (!warned[STORAGE_F16])
            fprintf(stderr, "rollout: %s has no fp16: computing in fp32 instead\n", info->name);
        warned[STORAGE_F16] = true;
        asked = STORAGE_F32;
    }
    return asked;
}

/* ---- verification ---------------------------------------------------------------------------- */

/* Runs the steps from poisoned outputs; the state and the trajectory's last slot must both be
 * what the reference has. */
static int verify(const struct job *job, struct rollout *rollout, struct result *result)
{
    const struct rollout_options *options = &job->options;
    size_t states = rollout_state_elements(rollout);
    const double *expected =
        reference_state(job->references, options, job->model, result->variant->group_norm);
    float *state = malloc(2 * states * sizeof state[0]);
    int status = -1;

    if (expected && state) {
        uint32_t last = options->verify_steps - 1;
        struct errors trajectory;

        if (rollout_rewind(rollout, true) == 0 &&
            rollout_steps(rollout, options->verify_steps) == 0 &&
            rollout_read(rollout, state, last, state + states) == 0) {
            result->reference = errors_between(state, expected, states);
            trajectory = errors_between(state + states, expected, states);
            if (!(trajectory.norm <= result->reference.norm))
                result->reference.norm = trajectory.norm;
            result->checked_steps = options->verify_steps;
            status = 0;
        }
    }
    free(state);
    return status;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static int run_once(const struct rollout_options *options, struct dev_queue *queue,
                    struct runner *runner, const char *phase, double *wall, double *device)
{
    struct dev_event *begin = NULL, *end = NULL;
    uint64_t start_ns, ns = 0;
    int result;

    perfkit_range_push(runner->result->variant->name);
    perfkit_range_push(phase);
    start_ns = now_ns();
    result = rollout_rewind(runner->rollout, false) || dev_mark(queue, &begin) ||
             rollout_steps(runner->rollout, options->steps) || dev_mark(queue, &end) ||
             dev_queue_finish(queue);
    *wall = (double)(now_ns() - start_ns);
    perfkit_range_pop();
    perfkit_range_pop();
    if (result == 0)
        result = dev_elapsed_ns(begin, end, &ns);
    *device = (double)ns;
    dev_event_release(begin);
    dev_event_release(end);
    return result;
}

static int measure_set(const struct rollout_options *options, struct dev_queue *queue,
                       struct runner *runners, size_t count)
{
    uint32_t rounds = options->common.warmup + options->common.iterations;
    double wall, device;

    for (uint32_t i = 0; i < rounds; i++) {
        bool warmup = i < options->common.warmup;

        for (size_t s = 0; s < count; s++) {
            if (!runners[s].rollout)
                continue;
            if (run_once(options, queue, &runners[s], warmup ? "warmup" : "rollout", &wall,
                         &device) != 0)
                return -1;
            if (!warmup) {
                runners[s].wall[i - options->common.warmup] = wall;
                runners[s].device[i - options->common.warmup] = device;
            }
        }
    }
    return 0;
}

/* How the final state differs from the fp32 variant's, which comes first in its set. */
static int compare_with_fp32(struct runner *runners, size_t count, uint32_t last)
{
    size_t states;
    float *state, *trajectory;
    double *fp32;
    int result = 0;

    if (!runners[0].rollout || runners[0].result->storage != STORAGE_F32)
        return 0;
    states = rollout_state_elements(runners[0].rollout);
    state = malloc(states * sizeof state[0]);
    trajectory = malloc(states * sizeof trajectory[0]);
    fp32 = malloc(states * sizeof fp32[0]);
    if (!state || !trajectory || !fp32)
        result = -1;
    for (size_t s = 0; s < count && result == 0; s++) {
        if (!runners[s].rollout)
            continue;
        result = rollout_read(runners[s].rollout, state, last, trajectory);
        for (size_t i = 0; s == 0 && i < states; i++)
            fp32[i] = (double)state[i];
        if (s > 0 && result == 0)
            runners[s].result->fp32 = errors_between(state, fp32, states);
    }
    free(state);
    free(trajectory);
    free(fp32);
    return result;
}

/* ---- sets ------------------------------------------------------------------------------------ */

/* Whether a rollout that could not be opened asked for more memory than there is, and if so what
 * it needs, for its row. Close to a limit the driver's own needs decide, so it is believed. */
static bool out_of_memory(const struct rollout_options *options, const struct dev *dev,
                          struct result *result)
{
    const double mib = 1024 * 1024;
    struct dev_memory memory = dev_memory(dev);
    uint64_t capacity = memory.limit_bytes ? memory.limit_bytes : dev_info(dev)->global_bytes;
    uint64_t bytes[MEMORY_KINDS], needed = memory.used_bytes;

    rollout_estimate(options, result->storage, result->batch, bytes);
    for (int kind = 0; kind < MEMORY_KINDS; kind++)
        needed += bytes[kind];
    if (needed <= capacity && !(options->memory_limit && strstr(dev_error_text(dev), "memory")))
        return false;
    snprintf(result->skipped, sizeof result->skipped, "out of memory: %.1f of %.1f MiB needed",
             (double)needed / mib, (double)capacity / mib);
    return true;
}

/* Why a variant is not even tried here, or NULL. */
static const char *left_out(const struct rollout_options *options, const struct dev_info *info,
                            const struct variant *variant)
{
    bool by_name = options->common.variant != NULL;

    if (variant->graph && !info->graphs)
        return "the backend has no graphs";
    if (variant->set != SET_BEYOND_CACHE)
        return NULL;
    if (info->is_cpu)
        return "too slow on cores, whose cache is large";
    if (!by_name && options->common.preset != PRESET_SEED)
        return "takes --preset seed, or its name";
    return !by_name && options->memory_limit ? "takes its name under --memory-limit" : NULL;
}

/* What a variant cannot do here is a row that says so; anything else is a failure. */
static int open_runner(const struct job *job, struct dev_queue *queue, struct runner *runner)
{
    const struct rollout_options *options = &job->options;
    struct dev *dev = job->dev;
    struct result *result = runner->result;
    const struct variant *variant = result->variant;
    bool library =
        variant->convolution == CONVOLUTION_CUDNN || variant->convolution == CONVOLUTION_CUDNN_BEST;
    const char *why = left_out(options, dev_info(dev), variant);
    int status;

    if (why) {
        snprintf(result->skipped, sizeof result->skipped, "not available: %s", why);
        return 0;
    }
    perfkit_range_push(variant->name);
    perfkit_range_push("setup");
    status =
        rollout_open(options, job->model, variant, result->storage, dev, queue, &runner->rollout);
    perfkit_range_pop();
    if (status != 0 && library) {
        snprintf(result->skipped, sizeof result->skipped, "not available: %.200s",
                 dev_error_text(dev));
        status = 0;
    } else if (status != 0 && out_of_memory(options, dev, result)) {
        status = 0;
    } else if (status == 0) {
        memcpy(result->memory, rollout_memory(runner->rollout), sizeof result->memory);
        result->compile_ns = rollout_compile_ns(runner->rollout);
        if (options->common.verify) {
            perfkit_range_push("verify");
            status = verify(job, runner->rollout, result);
            perfkit_range_pop();
        }
    }
    perfkit_range_pop();
    return status;
}

static int finish_runner(const struct rollout_options *options, struct runner *runner)
{
    struct result *result = runner->result;
    uint32_t steps = options->steps < PROFILED_STEPS ? options->steps : PROFILED_STEPS;
    int status;

    if (!runner->rollout)
        return 0;
    result->wall = stats_of(runner->wall, options->common.iterations);
    result->device = stats_of(runner->device, options->common.iterations);
    perfkit_range_push(result->variant->name);
    perfkit_range_push("profile");
    status = rollout_rewind(runner->rollout, false) ||
             rollout_profile(runner->rollout, steps, result->part_ns, &result->empty_ns);
    perfkit_range_pop();
    perfkit_range_pop();
    memcpy(result->tally, rollout_step_tally(runner->rollout), sizeof result->tally);
    return status;
}

static int run_set(const struct job *job, struct result *results, size_t count)
{
    const struct rollout_options *options = &job->options;
    struct dev *dev = job->dev;
    size_t samples = options->common.iterations;
    struct runner runners[SET_MAX] = {{0}};
    double *storage = calloc(2 * SET_MAX * samples, sizeof storage[0]);
    struct dev_queue *queue = NULL;
    int status;

    dev_clear_error(dev);
    status = storage ? dev_queue_create(dev, &queue) : -1;
    for (size_t s = 0; s < count && status == 0; s++) {
        runners[s] = (struct runner){.result = &results[s],
                                     .wall = storage + 2 * s * samples,
                                     .device = storage + (2 * s + 1) * samples};
        status = open_runner(job, queue, &runners[s]);
    }
    if (status == 0)
        status = measure_set(options, queue, runners, count);
    if (status == 0 && results[0].variant->set == SET_PRECISION)
        status = compare_with_fp32(runners, count, options->steps - 1);
    for (size_t s = 0; s < count && status == 0; s++)
        status = finish_runner(options, &runners[s]);
    perfkit_range_push("teardown");
    for (size_t s = 0; s < count; s++)
        rollout_close(runners[s].rollout);
    dev_queue_destroy(queue);
    perfkit_range_pop();
    free(storage);
    return status;
}

static void describe(const struct rollout_options *options, const struct dev_info *info,
                     const struct variant *variant, struct result *result)
{
    uint64_t bytes[MEMORY_KINDS];

    *result = (struct result){.variant = variant,
                              .storage = fall_back(options, info, variant->storage),
                              .batch = variant->batch ? variant->batch : options->batch,
                              .steps = options->steps};
    result->images = result->batch * options->realisations;
    result->tolerance = tolerances[result->storage];
    rollout_estimate(options, result->storage, result->batch, bytes);
    result->projected_bytes = (double)memory_sum(bytes);
}

/* Initial states whose fields no cache holds, as far as kernels can number their elements. */
static uint32_t batch_beyond_cache(const struct rollout_options *options,
                                   const struct dev_info *info)
{
    uint64_t cache = info->cache_bytes ? info->cache_bytes : CACHE_ASSUMED;
    uint64_t plane = (uint64_t)options->grid * options->grid * options->realisations;
    uint64_t widest = options->channels > options->fields ? options->channels : options->fields;
    uint64_t wanted =
        BEYOND_CACHE * cache / (plane * options->channels * storage_bytes(STORAGE_F16)) + 1;
    uint64_t most = UINT32_MAX / 4 / (plane * widest);

    return (uint32_t)(wanted < most ? wanted : most);
}

/* The options that the variants of a set are run with. */
static struct rollout_options options_of_set(const struct rollout_options *asked, int set,
                                             const struct dev_info *info)
{
    struct rollout_options options = *asked;

    if (set != SET_PRECISION)
        options.steps = asked->compare_steps;
    if (set == SET_BEYOND_CACHE) {
        options.batch = batch_beyond_cache(asked, info);
        options.steps = asked->steps < PROFILED_STEPS ? asked->steps : PROFILED_STEPS;
        options.common.verify = false;
    }
    return options;
}

/* Variants `*next` and on, up to the end of their set; rows are added for those asked for. */
static int run_next_set(struct job *job, const struct rollout_options *asked, size_t *next,
                        struct result *results, size_t *count)
{
    int which = variants[*next].set;
    size_t set = *count;

    job->options = options_of_set(asked, which, dev_info(job->dev));
    for (; *next < variant_count && variants[*next].set == which; ++*next) {
        const struct variant *variant = &variants[*next];

        if (!asked->common.variant || strcmp(asked->common.variant, variant->name) == 0)
            describe(&job->options, dev_info(job->dev), variant, &results[(*count)++]);
    }
    while (set < *count) {
        /* Under a limit one at a time: a set together takes a multiple of the memory. */
        size_t together = asked->memory_limit ? 1 : *count - set;

        if (run_set(job, &results[set], together) != 0)
            return failed(results[set].variant->name, job->dev);
        set += together;
    }
    return 0;
}

int run_variants(const struct rollout_options *options, const struct model *model, struct dev *dev,
                 struct result *results, size_t *count)
{
    struct references references = {{NULL, NULL}};
    struct job job = {.options = *options, .model = model, .dev = dev, .references = &references};
    int status = 0;

    *count = 0;
    for (size_t next = 0; next < variant_count && status == 0;)
        status = run_next_set(&job, options, &next, results, count);
    references_free(&references);
    return status;
}
