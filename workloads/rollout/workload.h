/* What the files of this workload share: its options, the model, a rollout on a device, and the
 * results. */
#ifndef WORKLOADS_ROLLOUT_WORKLOAD_H
#define WORKLOADS_ROLLOUT_WORKLOAD_H

#include "kernels/conv2d/conv2d.h"
#include "kernels/norm/norm.h"
#include "workloads/common/claims.h"
#include "workloads/common/measure.h"
#include "workloads/common/options.h"

struct rollout_options {
    struct common_options common; /* first: options.h */
    uint32_t grid;                /* the fields are grid x grid */
    uint32_t fields;              /* channels of the state */
    uint32_t channels;            /* between the layers */
    uint32_t layers;
    uint32_t steps;
    uint32_t realisations;
    uint32_t batch; /* initial states; images = batch x realisations */
    uint32_t norm_groups;
    uint32_t verify_steps;
    uint32_t compare_steps; /* of rollouts that compare anything but precisions; 0: steps */
    uint64_t memory_limit;  /* bytes; 0: none */
    int without;            /* enum without */
};

/* Precisions that the device is taken not to have; each includes the ones before it. */
enum without { WITHOUT_NONE, WITHOUT_BF16, WITHOUT_FP16 };

/* ---- the model ------------------------------------------------------------------------------- */

#define HALF_PRECISION_TARGET 1.5 /* of half precision over fp32, the seed document's */
#define MAX_LAYERS 16
#define DROP 3277 /* of 65536: 5 % */
#define KEEP_SCALE (65536.0f / (65536 - DROP))
#define SIGMA 0.05f /* of the noise */
#define ALPHA 0.25f /* state = (1 - ALPHA) state + ALPHA operator(state) */

/* Layers of convolution, normalisation, GELU, dropout and noise; the last one is the convolution
 * alone, back to the channels of the state. */
struct model {
    uint32_t layers, grid, fields, channels;
    uint32_t seed;
    float *weight[MAX_LAYERS]; /* [out][in][3][3] */
    float *scale, *shift;      /* of the normalisations, one per channel */
};

int model_make(const struct rollout_options *options, struct model *model);
void model_free(struct model *model);
struct conv2d_shape model_conv2d(const struct model *model, uint32_t layer, uint32_t images);

/* The initial states, `images` of them: realisations of one start alike. */
void model_initial_state(const struct model *model, uint32_t images, uint32_t realisations,
                         float *state);

/* States after --verify-steps in double precision, by normalisation; made when first asked for. */
struct references {
    double *state[2]; /* instances, groups */
};

/* The state of at least as many images as any variant with this normalisation has; the
 * references' own. NULL when memory ran out. */
const double *reference_state(struct references *references, const struct rollout_options *options,
                              const struct model *model, bool group_norm);
void references_free(struct references *references);

/* ---- variants -------------------------------------------------------------------------------- */

enum convolution {
    CONVOLUTION_TILED,
    CONVOLUTION_DIRECT,
    CONVOLUTION_CUDNN,
    CONVOLUTION_CUDNN_BEST
};

struct variant {
    const char *name;
    const char *summary;
    enum storage storage;
    enum convolution convolution;
    bool group_norm;
    bool graph;
    uint32_t batch; /* 0: the option's */
    int set;        /* variants of a set are measured in turn, so that one change meets all */
};

enum {
    SET_PRECISION,
    SET_CONVOLUTION,
    SET_NORM,
    SET_BATCH_2,
    SET_BATCH_3,
    SET_GRAPH,
    SET_BEYOND_CACHE /* of a batch that no cache of the device holds; a few steps, not verified */
};

extern const struct variant variants[];
extern const size_t variant_count;

/* ---- one rollout on a device ----------------------------------------------------------------- */

enum memory {
    MEMORY_STATES,
    MEMORY_WEIGHTS,
    MEMORY_ACTIVATIONS,
    MEMORY_WORKSPACE,
    MEMORY_TRAJECTORIES,
    MEMORY_KINDS
};
extern const char *const memory_names[MEMORY_KINDS];

enum part { PART_CONVOLUTION, PART_NORM, PART_ACTIVATION, PART_NOISE, PART_STEP, PART_KINDS };
extern const char *const part_names[PART_KINDS];

struct rollout;

/* Allocates and fills everything; -1 with dev_error_text. NULL is allowed for close. */
int rollout_open(const struct rollout_options *options, const struct model *model,
                 const struct variant *variant, enum storage storage, struct dev *dev,
                 struct dev_queue *queue, struct rollout **out);
void rollout_close(struct rollout *rollout);

/* Back to the initial states; outputs are poisoned with NaN when `poison`. */
int rollout_rewind(struct rollout *rollout, bool poison);

/* Enqueues `steps` steps, each an NVTX range. */
int rollout_steps(struct rollout *rollout, uint32_t steps);

/* Runs `steps` steps with an event for each launch and adds up the parts' times, ns per step.
 * *empty_ns: the shortest launch, the one item that counts the steps: what a launch takes in any
 * case, as events see it. */
int rollout_profile(struct rollout *rollout, uint32_t steps, double part_ns[PART_KINDS],
                    double *empty_ns);

/* The state, and slot `step` of the trajectory, as floats. */
int rollout_read(struct rollout *rollout, float *state, uint32_t step, float *trajectory);

size_t rollout_state_elements(const struct rollout *rollout);
const uint64_t *rollout_memory(const struct rollout *rollout);
const struct tally *rollout_step_tally(const struct rollout *rollout); /* PART_KINDS of them */
double rollout_compile_ns(const struct rollout *rollout); /* of the graph; 0 without one */

/* The bytes that a rollout of `batch` initial states takes, by kind, workspace not included. */
void rollout_estimate(const struct rollout_options *options, enum storage storage, uint32_t batch,
                      uint64_t bytes[MEMORY_KINDS]);

/* ---- results --------------------------------------------------------------------------------- */

/* Of a state against another; relative to the other's elements, those below a thousandth of its
 * root mean square left out. */
struct errors {
    bool done;
    double max_absolute, mean_absolute, mean_relative;
    double norm; /* ||out - reference|| / ||reference|| */
};

struct errors errors_between(const float *out, const double *reference, size_t count);

struct result {
    const struct variant *variant;
    enum storage storage; /* after fallbacks */
    uint32_t images, batch;
    uint32_t steps;
    struct stats wall, device;  /* of a whole rollout, ns */
    double part_ns[PART_KINDS]; /* of one step */
    double empty_ns;            /* of a launch that does next to nothing */
    struct tally tally[PART_KINDS];
    uint64_t memory[MEMORY_KINDS];
    double projected_bytes; /* of the device's memory, before it was tried */
    double compile_ns;
    struct errors reference; /* against double precision after verify_steps */
    struct errors fp32;      /* against the fp32 variant after all steps */
    uint32_t checked_steps;
    double tolerance;
    char skipped[256]; /* why there is nothing to measure, or "" */
};

bool result_passed(const struct result *result); /* true when it was not checked */

struct results {
    const struct result *rows;
    size_t count;
    double ceiling;    /* bytes per second of copies within the device's memory, or NaN */
    uint64_t capacity; /* bytes of device memory that may be used */
    bool limited;      /* by --memory-limit */
};

double step_ns(const struct result *result);
/* Time per image and step: what batches of different sizes are compared by. */
double image_step_ns(const struct result *result);
/* The step at which the graph has earned its compilation; NaN when it never does. */
double break_even_steps(const struct result *eager, const struct result *graph);
/* Bytes per second that a part moves of those it declares; and in the time that empty launches
 * would leave of its own, infinite when they leave none. */
double part_bandwidth(const struct result *result, enum part part);
double part_bandwidth_beside_launches(const struct result *result, enum part part);
/* What one operation between the layers writes. */
double field_bytes(const struct result *result);
uint64_t memory_sum(const uint64_t bytes[MEMORY_KINDS]);

/* Measures the variants that the options ask for. -1 after saying on stderr what failed. */
int run_variants(const struct rollout_options *options, const struct model *model, struct dev *dev,
                 struct result *results, size_t *count);

/* The claims of the seed document that the results are about. */
void claims_evaluate(const struct results *results, const struct dev_info *info,
                     struct claims *claims);

/* Tables on stdout, or JSON with --json. */
void print_results(const struct rollout_options *options, const struct dev_info *info,
                   const struct results *results);

#endif
