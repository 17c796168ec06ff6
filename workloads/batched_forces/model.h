/* The network on a device from inside: what model.c sets up and components.c launches. */
#ifndef WORKLOADS_BATCHED_FORCES_MODEL_H
#define WORKLOADS_BATCHED_FORCES_MODEL_H

#include "workloads/batched_forces/workload.h"

enum kernel {
    NEIGHBOUR_COUNT,
    NEIGHBOUR_SCAN,
    NEIGHBOUR_FILL,
    EDGE_GATHER,
    EDGE_SUBTRACT,
    EDGE_LENGTH,
    EDGE_NORMALISE,
    EDGE_FUSED,
    EDGE_FORCES,
    RBF_SUBTRACT,
    RBF_SQUARE,
    RBF_SCALE,
    RBF_EXP,
    RBF_ANGLE,
    RBF_COSINE,
    RBF_SHIFT,
    RBF_MASK,
    RBF_MULTIPLY,
    RBF_FUSED,
    RBF_BACKWARD,
    MESSAGE_EMBED,
    MESSAGE_FILTER,
    MESSAGE_GATHER,
    MESSAGE_UPDATE,
    MESSAGE_UPDATE_BACKWARD,
    MESSAGE_GATHER_BACKWARD,
    MESSAGE_FILTER_BACKWARD,
    READOUT_HIDDEN,
    READOUT_ENERGY,
    READOUT_BACKWARD,
    KERNELS
};

/* What a pass computes, in the order of the formulas; scratch that the next pass overwrites. */
enum buffer {
    COUNT,
    ROW,
    RECEIVER,
    SENDER,
    SENDER_POSITION,
    RECEIVER_POSITION,
    VECTOR,
    DISTANCE,
    DIRECTION,
    CUT,
    BASIS,
    A,
    DA,
    G,
    HIDDEN,
    BASIS_GRADIENT,
    PAIR_GRADIENT,
    H, /* one more than layers */
    Z = H + MAX_LAYERS + 1,
    FILTER = Z + MAX_LAYERS,
    BUFFERS = FILTER + MAX_LAYERS
};

/* The parts of a pass's input and output; each becomes a view of one buffer. */
enum part { POSITIONS, SPECIES_OF, MOLECULE_OF, FIRST, INPUT_PARTS };
enum { FORCES, ENERGIES, OUTPUT_PARTS };

enum weight {
    EMBEDDING,
    READOUT_WEIGHT,
    READOUT_TRANSPOSED,
    READOUT_BIAS,
    ENERGY,
    LAYER_WEIGHTS, /* five for each layer */
    WEIGHTS = LAYER_WEIGHTS + 5 * MAX_LAYERS
};
enum layer_weight { FILTER_W, FILTER_T, UPDATE_W, UPDATE_T, BIAS };

struct pass {
    uint32_t first_molecule, molecules, atoms;
    uint32_t edges; /* as the host counts them, for the declared work */
};

struct model {
    struct session *session;
    const struct molecules *set;
    struct network shape; /* its sizes; the weights are on the device */
    struct model_form form;
    struct pass *passes;
    uint32_t pass_count, batch;
    uint32_t max_atoms, max_edges; /* of a pass; the edges with room to spare */
    struct dev_kernel *kernel[KERNELS];
    struct dev_buffer *buffer[BUFFERS];
    struct dev_buffer *weight[WEIGHTS];
    struct dev_buffer *input, *in[INPUT_PARTS];
    struct dev_buffer *output, *out[OUTPUT_PARTS];
    size_t in_offset[INPUT_PARTS + 1], out_offset[OUTPUT_PARTS + 1]; /* last: the whole */
    struct dev_host *host_in, *host_out;                             /* of all passes */
    double (*times)[COMPONENTS];                                     /* per step, ns */
    size_t steps, steps_capacity;
};

/* Looks up every kernel. 0, or -1 (dev_error_text). */
int model_find_kernels(struct model *model);

/* What each component enqueues for one pass. */
extern int (*const component_functions[COMPONENTS])(struct model *, const struct pass *);

#endif
