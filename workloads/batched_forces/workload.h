/* What the files of this workload share: its options, its data, the network on the device, and the
 * interface of a variant. */
#ifndef WORKLOADS_BATCHED_FORCES_WORKLOAD_H
#define WORKLOADS_BATCHED_FORCES_WORKLOAD_H

#include "workloads/common/claims.h"
#include "workloads/common/measure.h"
#include "workloads/common/options.h"

#define CUTOFF 5.0f /* angstrom */
#define SKIN 0.3f   /* room for neighbours that come nearer, in the capacity of the edge list */
#define SPECIES 4
#define MAX_LAYERS 8

struct forces_options {
    struct common_options common; /* first: options.h */
    int set;                      /* enum molecule_kind */
    uint32_t molecules;
    uint32_t atoms; /* of the largest generated molecule */
    uint32_t batch; /* molecules per launch; 0: the variant's own sizes */
    uint32_t width;
    uint32_t functions;
    uint32_t layers;
};

enum molecule_kind { SET_BENZENE, SET_MIXED };

/* ---- data ------------------------------------------------------------------------------------ */

/* Molecule m has the atoms first[m] .. first[m+1]-1. */
struct molecules {
    uint32_t count, atoms;
    uint32_t *first;
    uint32_t *species;
    float *positions; /* [atom][3], angstrom */
};

/* Matrices are [in][out]; each stands with its transpose beside it where the way back needs one. */
struct network {
    uint32_t width, width_log2, functions, layers;
    float gamma, spacing; /* of the radial basis */
    float *embedding;     /* [SPECIES][width] */
    struct layer {
        float *filter, *filter_transposed; /* [functions][width] */
        float *update, *update_transposed; /* [width][width] */
        float *bias;
    } layer[MAX_LAYERS];
    float *readout, *readout_transposed; /* [width][width] */
    float *readout_bias, *energy;        /* [width] */
};

/* Both come from the options' seed. -1 when memory ran out. */
int molecules_make(const struct forces_options *options, struct molecules *set);
void molecules_free(struct molecules *set);
int network_make(const struct forces_options *options, struct network *network);
void network_free(struct network *network);

/* Directed pairs of the molecules first .. last-1 that are nearer than `cutoff`. */
uint32_t count_edges(const struct molecules *set, uint32_t first, uint32_t last, float cutoff);

/* ---- the reference --------------------------------------------------------------------------- */

struct reference {
    double *energies; /* [molecule] */
    double *forces;   /* [atom][3] */
    /* Of the forces against central differences of the energy, relative; in double both. */
    double difference_error;
};

#define DIFFERENCE_TOLERANCE 1e-5

int reference_make(const struct network *network, const struct molecules *set, uint64_t seed,
                   struct reference *reference);
void reference_free(struct reference *reference);

/* ---- the network on a device ----------------------------------------------------------------- */

enum component {
    TRANSFER_IN,
    NEIGHBOURS,
    EDGES,
    RBF,
    MESSAGES,
    READOUT,
    BACKWARD,
    TRANSFER_OUT,
    COMPONENTS
};

extern const char *const component_names[COMPONENTS]; /* of the ranges, too */

struct model_form {
    bool edges_fused, rbf_fused;
    bool apart; /* wait for the device after each component, so that its time can be told */
};

struct model;

/* Puts the weights on the device and lays out the molecules in passes of `batch`. 0, or -1
 * (dev_error_text). */
int model_open(struct session *session, const struct molecules *set, const struct network *network,
               struct model_form form, uint32_t batch, struct model **out);
void model_close(struct model *model);

/* Energies and forces of all molecules, pass by pass: positions in, forces out. */
int model_step(struct model *model);
int model_poison(struct model *model);
/* Where the last step left the results of a molecule; forces are [atom][3]. */
void model_results(const struct model *model, uint32_t molecule, const float **energy,
                   const float **forces);

/* Runs the components begin .. end-1 of the first pass. */
int model_components(struct model *model, enum component begin, enum component end);

/* Mean times of the components over the last `steps` steps, ns; only apart. */
void model_component_times(const struct model *model, uint32_t steps, double ns[COMPONENTS]);

/* Reads back the edges of the first pass and one of their features; a NULL is left out. Returns
 * the number of edges, or -1. */
struct edge_list {
    uint32_t *row, *receiver, *sender;
    float *distance, *direction, *rbf;
};
int64_t model_edges(struct model *model, struct edge_list *edges);
void edge_list_free(struct edge_list *edges);

/* ---- variants -------------------------------------------------------------------------------- */

struct run {
    const struct forces_options *options;
    const struct molecules *set;
    const struct network *network;
    const struct reference *reference; /* NULL without --verify */
    struct session *session;
};

struct variant {
    const char *name;
    const char *summary;
    struct model_form form;
    enum component operation; /* COMPONENTS: the whole computation; else this one alone */
    bool with_next;           /* measured in turn with the next variant, at the same batches */
    const uint32_t *batches;  /* those measured without --batch; ends with 0 */
};

extern const struct variant variants[];
extern const size_t variant_count;

struct result {
    const struct variant *variant;
    uint32_t batch, molecules, atoms, edges;
    struct measurement measured; /* wall from runs without device events, kernel from runs with */
    double component_ns[COMPONENTS];
    struct check check;
};

struct results {
    struct result *rows;
    size_t count, capacity;
    double ceiling; /* copy bandwidth of the device, bytes/s; NaN when it cannot be had */
};

#define RUN_TOGETHER 10

struct choice {
    const struct variant *variant;
    uint32_t batch;
};

/* Measures (and with --verify checks) up to RUN_TOGETHER choices in turn, adding a row each: what
 * the rows are compared for must not depend on when each was measured. 0, or -1 after saying on
 * stderr what failed. */
int run_choices(const struct run *run, const struct choice *choices, size_t count,
                struct results *results);

/* A variant of a single operation repeats it within a step, as one would in a timed loop, so that
 * waiting for the end does not hide it. */
#define OPERATIONS_PER_STEP 32

/* ---- claims and output ----------------------------------------------------------------------- */

/* The components of a step together. */
double components_total_ns(const struct result *row);

/* The claims of the seed document that the results are about. */
void claims_evaluate(const struct results *results, const struct dev_info *info,
                     struct claims *claims);

void print_results(const struct forces_options *options, const struct dev_info *info,
                   const struct reference *reference, const struct results *results);

#endif
