/* The network on a device. A pass takes a batch of molecules, which stand one after the other as
 * if they were one molecule without edges in between: one upload of everything the batch needs,
 * the launches of all components over all its atoms and edges, one download of forces and
 * energies. The number of launches does not depend on the batch.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/edge/edge.h"
#include "kernels/message/message.h"
#include "kernels/neighbour/neighbour.h"
#include "kernels/rbf/rbf.h"
#include "kernels/readout/readout.h"
#include "perfkit/annotate.h"
#include "workloads/batched_forces/workload.h"

#define PI 3.14159265f

const char *const component_names[COMPONENTS] = {
    [TRANSFER_IN] = "transfer in", [NEIGHBOURS] = "neighbour search", [EDGES] = "edge features",
    [RBF] = "rbf and cutoff",      [MESSAGES] = "message passing",    [READOUT] = "readout",
    [BACKWARD] = "backward",       [TRANSFER_OUT] = "transfer out",
};

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

static const struct {
    const struct dev_module *module;
    const char *name;
} kernels[KERNELS] = {
    [NEIGHBOUR_COUNT] = {&neighbour_module, "neighbour_count"},
    [NEIGHBOUR_SCAN] = {&neighbour_module, "neighbour_scan"},
    [NEIGHBOUR_FILL] = {&neighbour_module, "neighbour_fill"},
    [EDGE_GATHER] = {&edge_module, "edge_gather"},
    [EDGE_SUBTRACT] = {&edge_module, "edge_subtract"},
    [EDGE_LENGTH] = {&edge_module, "edge_length"},
    [EDGE_NORMALISE] = {&edge_module, "edge_normalise"},
    [EDGE_FUSED] = {&edge_module, "edge_fused"},
    [EDGE_FORCES] = {&edge_module, "edge_forces"},
    [RBF_SUBTRACT] = {&rbf_module, "rbf_subtract"},
    [RBF_SQUARE] = {&rbf_module, "rbf_square"},
    [RBF_SCALE] = {&rbf_module, "rbf_scale"},
    [RBF_EXP] = {&rbf_module, "rbf_exp"},
    [RBF_ANGLE] = {&rbf_module, "rbf_angle"},
    [RBF_COSINE] = {&rbf_module, "rbf_cosine"},
    [RBF_SHIFT] = {&rbf_module, "rbf_shift"},
    [RBF_MASK] = {&rbf_module, "rbf_mask"},
    [RBF_MULTIPLY] = {&rbf_module, "rbf_multiply"},
    [RBF_FUSED] = {&rbf_module, "rbf_fused"},
    [RBF_BACKWARD] = {&rbf_module, "rbf_backward"},
    [MESSAGE_EMBED] = {&message_module, "message_embed"},
    [MESSAGE_FILTER] = {&message_module, "message_filter"},
    [MESSAGE_GATHER] = {&message_module, "message_gather"},
    [MESSAGE_UPDATE] = {&message_module, "message_update"},
    [MESSAGE_UPDATE_BACKWARD] = {&message_module, "message_update_backward"},
    [MESSAGE_GATHER_BACKWARD] = {&message_module, "message_gather_backward"},
    [MESSAGE_FILTER_BACKWARD] = {&message_module, "message_filter_backward"},
    [READOUT_HIDDEN] = {&readout_module, "readout_hidden"},
    [READOUT_ENERGY] = {&readout_module, "readout_energy"},
    [READOUT_BACKWARD] = {&readout_module, "readout_backward"},
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

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- launches ------------------------------------------------------------------------------- */

static int launch(struct model *m, enum kernel kernel, struct dev_grid grid,
                  const struct dev_arg *args, size_t arg_count, double flop, double floats_read,
                  double floats_written)
{
    struct work work = {kernels[kernel].name, flop, 4 * floats_read, 4 * floats_written};

    return session_launch(m->session, m->session->queue, m->kernel[kernel], grid, args, arg_count,
                          &work);
}

/* Reads and writes in numbers of four bytes, each value once. */
#define LAUNCH(m, kernel, grid, flop, floats_read, floats_written, ...)                            \
    launch(m, kernel, grid, (const struct dev_arg[]){__VA_ARGS__},                                 \
           sizeof((const struct dev_arg[]){__VA_ARGS__}) / sizeof(struct dev_arg), flop,           \
           floats_read, floats_written)

static struct dev_arg buffer(const struct model *m, int index)
{
    return dev_arg_buffer(m->buffer[index]);
}

static struct dev_arg weight(const struct model *m, int index)
{
    return dev_arg_buffer(m->weight[index]);
}

static struct dev_arg layer_weight(const struct model *m, uint32_t layer, enum layer_weight which)
{
    return dev_arg_buffer(m->weight[LAYER_WEIGHTS + 5 * layer + which]);
}

static int transfer_in(struct model *m, const struct pass *pass)
{
    size_t bytes = m->in_offset[INPUT_PARTS];
    const char *from = dev_host_pointer(m->host_in);

    return session_write(m->session, m->session->queue, m->input,
                         from + (size_t)(pass - m->passes) * bytes, bytes, DEV_ASYNC);
}

static int transfer_out(struct model *m, const struct pass *pass)
{
    size_t bytes = m->out_offset[OUTPUT_PARTS];
    char *to = dev_host_pointer(m->host_out);

    return session_read(m->session, m->session->queue, m->output,
                        to + (size_t)(pass - m->passes) * bytes, bytes, DEV_BLOCKING);
}

static int neighbours(struct model *m, const struct pass *pass)
{
    struct dev_arg positions = dev_arg_buffer(m->in[POSITIONS]),
                   first = dev_arg_buffer(m->in[FIRST]);
    struct dev_arg molecule_of = dev_arg_buffer(m->in[MOLECULE_OF]);
    struct dev_arg atoms = dev_arg_u32(pass->atoms), cutoff2 = dev_arg_f32(CUTOFF * CUTOFF);
    struct dev_grid per_atom = dev_grid_for(pass->atoms, 64);
    double n = pass->atoms, e = pass->edges;
    double pairs = n * (n / pass->molecules - 1);

    if (LAUNCH(m, NEIGHBOUR_COUNT, per_atom, NEIGHBOUR_PAIR_FLOP * pairs, 6 * n, n, positions,
               molecule_of, first, buffer(m, COUNT), atoms, cutoff2) != 0 ||
        LAUNCH(m, NEIGHBOUR_SCAN, ((struct dev_grid){1, NEIGHBOUR_SCAN_ITEMS}), n, n, n + 1,
               buffer(m, COUNT), buffer(m, ROW), atoms,
               dev_arg_local(NEIGHBOUR_SCAN_ITEMS * sizeof(uint32_t))) != 0)
        return -1;
    return LAUNCH(m, NEIGHBOUR_FILL, per_atom, NEIGHBOUR_PAIR_FLOP * pairs, 7 * n, 2 * e, positions,
                  molecule_of, first, buffer(m, ROW), buffer(m, RECEIVER), buffer(m, SENDER), atoms,
                  dev_arg_u32(m->max_edges), cutoff2);
}

static int edges_fused(struct model *m, const struct pass *pass)
{
    double n = pass->atoms, e = pass->edges;

    return LAUNCH(m, EDGE_FUSED, dev_grid_for(m->max_edges, EDGE_GROUP_ITEMS), EDGE_FUSED_FLOP * e,
                  2 * e + 3 * n, 4 * e, dev_arg_buffer(m->in[POSITIONS]), buffer(m, RECEIVER),
                  buffer(m, SENDER), buffer(m, ROW), buffer(m, DISTANCE), buffer(m, DIRECTION),
                  dev_arg_u32(pass->atoms));
}

static int edges_separate(struct model *m, const struct pass *pass)
{
    struct dev_grid per_edge = dev_grid_for(m->max_edges, EDGE_GROUP_ITEMS);
    struct dev_grid per_component = dev_grid_for(3 * (size_t)m->max_edges, EDGE_GROUP_ITEMS);
    struct dev_arg positions = dev_arg_buffer(m->in[POSITIONS]), atoms = dev_arg_u32(pass->atoms);
    double n = pass->atoms, e = pass->edges;

    if (LAUNCH(m, EDGE_GATHER, per_component, 0, e + 3 * n, 3 * e, positions, buffer(m, SENDER),
               buffer(m, ROW), buffer(m, SENDER_POSITION), atoms) != 0 ||
        LAUNCH(m, EDGE_GATHER, per_component, 0, e + 3 * n, 3 * e, positions, buffer(m, RECEIVER),
               buffer(m, ROW), buffer(m, RECEIVER_POSITION), atoms) != 0 ||
        LAUNCH(m, EDGE_SUBTRACT, per_component, 3 * e, 6 * e, 3 * e, buffer(m, SENDER_POSITION),
               buffer(m, RECEIVER_POSITION), buffer(m, ROW), buffer(m, VECTOR), atoms) != 0 ||
        LAUNCH(m, EDGE_LENGTH, per_edge, EDGE_LENGTH_FLOP * e, 3 * e, e, buffer(m, VECTOR),
               buffer(m, ROW), buffer(m, DISTANCE), atoms) != 0)
        return -1;
    return LAUNCH(m, EDGE_NORMALISE, per_component, 3 * e, 4 * e, 3 * e, buffer(m, VECTOR),
                  buffer(m, DISTANCE), buffer(m, ROW), buffer(m, DIRECTION), atoms);
}

static int edges(struct model *m, const struct pass *pass)
{
    return m->form.edges_fused ? edges_fused(m, pass) : edges_separate(m, pass);
}

static int rbf_fused(struct model *m, const struct pass *pass)
{
    double e = pass->edges, values = e * m->shape.functions;

    return LAUNCH(
        m, RBF_FUSED,
        ((struct dev_grid){dev_grid_for(m->max_edges, RBF_TILE_EDGES).groups, RBF_GROUP_ITEMS}),
        RBF_FUNCTION_FLOP * values + RBF_CUTOFF_FLOP * e, e, values, buffer(m, DISTANCE),
        buffer(m, ROW), buffer(m, BASIS), dev_arg_u32(pass->atoms), dev_arg_u32(m->shape.functions),
        dev_arg_f32(m->shape.gamma), dev_arg_f32(m->shape.spacing), dev_arg_f32(CUTOFF),
        dev_arg_local(RBF_TILE_LOCAL_BYTES));
}

static int rbf_separate(struct model *m, const struct pass *pass)
{
    uint32_t functions = m->shape.functions;
    struct dev_grid per_edge = dev_grid_for(m->max_edges, RBF_GROUP_ITEMS);
    struct dev_grid per_value = dev_grid_for((size_t)m->max_edges * functions, RBF_GROUP_ITEMS);
    struct dev_arg t = buffer(m, BASIS), c = buffer(m, CUT), distance = buffer(m, DISTANCE);
    struct dev_arg row = buffer(m, ROW), atoms = dev_arg_u32(pass->atoms),
                   k = dev_arg_u32(functions);
    double e = pass->edges, v = e * functions;

    if (LAUNCH(m, RBF_SUBTRACT, per_value, 2 * v, e, v, distance, row, t, atoms, k,
               dev_arg_f32(m->shape.spacing)) != 0 ||
        LAUNCH(m, RBF_SQUARE, per_value, v, v, v, t, row, atoms, k) != 0 ||
        LAUNCH(m, RBF_SCALE, per_value, v, v, v, t, row, atoms, k, dev_arg_f32(-m->shape.gamma)) !=
            0 ||
        LAUNCH(m, RBF_EXP, per_value, v, v, v, t, row, atoms, k) != 0 ||
        LAUNCH(m, RBF_ANGLE, per_edge, e, e, e, distance, row, c, atoms,
               dev_arg_f32(PI / CUTOFF)) != 0 ||
        LAUNCH(m, RBF_COSINE, per_edge, e, e, e, c, row, atoms) != 0 ||
        LAUNCH(m, RBF_SHIFT, per_edge, 2 * e, e, e, c, row, atoms) != 0 ||
        LAUNCH(m, RBF_MASK, per_edge, e, 2 * e, e, distance, row, c, atoms, dev_arg_f32(CUTOFF)) !=
            0)
        return -1;
    return LAUNCH(m, RBF_MULTIPLY, per_value, v, v + e, v, c, row, t, atoms, k);
}

static int rbf(struct model *m, const struct pass *pass)
{
    return m->form.rbf_fused ? rbf_fused(m, pass) : rbf_separate(m, pass);
}

/* Groups of one item per feature, one for each tile. */
static struct dev_grid tiles(const struct model *m, uint32_t elements, uint32_t tile)
{
    return (struct dev_grid){dev_grid_for(elements, tile).groups, m->shape.width};
}

static int layer_forward(struct model *m, const struct pass *pass, uint32_t l)
{
    uint32_t width = m->shape.width, functions = m->shape.functions;
    struct dev_arg atoms = dev_arg_u32(pass->atoms), row = buffer(m, ROW);
    struct dev_arg filter = buffer(m, FILTER + (int)l), h = buffer(m, H + (int)l);
    double n = (double)pass->atoms * width, e = (double)pass->edges * width, k = functions;

    if (LAUNCH(m, MESSAGE_FILTER, tiles(m, m->max_edges, MESSAGE_TILE_EDGES), 2 * e * k,
               pass->edges * k + k * width, e, buffer(m, BASIS), layer_weight(m, l, FILTER_W), row,
               filter, atoms, dev_arg_u32(functions), dev_arg_u32(width),
               dev_arg_local(MESSAGE_TILE_EDGES * functions * sizeof(float))) != 0 ||
        LAUNCH(m, MESSAGE_GATHER, dev_grid_for((size_t)n, MESSAGE_GROUP_ITEMS), 2 * e,
               e + n + pass->edges, n, h, filter, row, buffer(m, SENDER), buffer(m, A), atoms,
               dev_arg_u32(m->shape.width_log2)) != 0)
        return -1;
    return LAUNCH(m, MESSAGE_UPDATE, tiles(m, pass->atoms, MESSAGE_TILE_ATOMS),
                  n * (2 * width + MESSAGE_SILU_FLOP + 1), 2 * n + (double)width * width, 2 * n,
                  buffer(m, A), layer_weight(m, l, UPDATE_W), layer_weight(m, l, BIAS), h,
                  buffer(m, Z + (int)l), buffer(m, H + (int)l + 1), atoms, dev_arg_u32(width),
                  dev_arg_local(MESSAGE_TILE_ATOMS * width * sizeof(float)));
}

static int messages(struct model *m, const struct pass *pass)
{
    double n = (double)pass->atoms * m->shape.width;

    if (LAUNCH(m, MESSAGE_EMBED, dev_grid_for((size_t)n, MESSAGE_GROUP_ITEMS), 0,
               pass->atoms + SPECIES * m->shape.width, n, dev_arg_buffer(m->in[SPECIES_OF]),
               weight(m, EMBEDDING), buffer(m, H), dev_arg_u32(pass->atoms),
               dev_arg_u32(m->shape.width_log2)) != 0)
        return -1;
    for (uint32_t l = 0; l < m->shape.layers; l++)
        if (layer_forward(m, pass, l) != 0)
            return -1;
    return 0;
}

static int readout(struct model *m, const struct pass *pass)
{
    uint32_t width = m->shape.width;
    double n = (double)pass->atoms * width;

    if (LAUNCH(m, READOUT_HIDDEN, tiles(m, pass->atoms, READOUT_TILE_ATOMS), 2 * n * width,
               n + (double)width * width, n, buffer(m, H + (int)m->shape.layers),
               weight(m, READOUT_WEIGHT), weight(m, READOUT_BIAS), buffer(m, HIDDEN),
               dev_arg_u32(pass->atoms), dev_arg_u32(width),
               dev_arg_local(READOUT_TILE_ATOMS * width * sizeof(float))) != 0)
        return -1;
    return LAUNCH(m, READOUT_ENERGY, ((struct dev_grid){pass->molecules, width}),
                  (MESSAGE_SILU_FLOP + 1) * n, n + width, pass->molecules, buffer(m, HIDDEN),
                  weight(m, ENERGY), dev_arg_buffer(m->in[FIRST]), dev_arg_buffer(m->out[ENERGIES]),
                  dev_arg_u32(width), dev_arg_local(width * sizeof(float)));
}

static int layer_backward(struct model *m, const struct pass *pass, uint32_t l)
{
    uint32_t width = m->shape.width, functions = m->shape.functions;
    struct dev_arg atoms = dev_arg_u32(pass->atoms), row = buffer(m, ROW), da = buffer(m, DA);
    double n = (double)pass->atoms * width, e = (double)pass->edges * width, k = functions;
    bool last = l + 1 == m->shape.layers;

    if (LAUNCH(m, MESSAGE_UPDATE_BACKWARD, tiles(m, pass->atoms, MESSAGE_TILE_ATOMS),
               n * (2 * width + MESSAGE_SILU_SLOPE_FLOP + 1), 2 * n + (double)width * width, n,
               buffer(m, G), buffer(m, Z + (int)l), layer_weight(m, l, UPDATE_T), da, atoms,
               dev_arg_u32(width), dev_arg_local(MESSAGE_TILE_ATOMS * width * sizeof(float))) != 0)
        return -1;
    /* The features that the first layer begins with do not depend on the positions. */
    if (l > 0 &&
        LAUNCH(m, MESSAGE_GATHER_BACKWARD, dev_grid_for((size_t)n, MESSAGE_GROUP_ITEMS), 2 * e + n,
               e + 2 * n + pass->edges, n, da, buffer(m, FILTER + (int)l), row, buffer(m, SENDER),
               buffer(m, G), atoms, dev_arg_u32(m->shape.width_log2)) != 0)
        return -1;
    return LAUNCH(m, MESSAGE_FILTER_BACKWARD, tiles(m, m->max_edges, MESSAGE_TILE_EDGES),
                  e * (2 * k + 3), 2 * n + k * width + pass->edges * (last ? 2 : 2 + k),
                  pass->edges * k, da, buffer(m, H + (int)l), layer_weight(m, l, FILTER_T), row,
                  buffer(m, RECEIVER), buffer(m, SENDER), buffer(m, BASIS_GRADIENT), atoms,
                  dev_arg_u32(functions), dev_arg_u32(width), dev_arg_u32(!last),
                  dev_arg_local(MESSAGE_TILE_EDGES * width * sizeof(float)));
}

static int backward(struct model *m, const struct pass *pass)
{
    uint32_t width = m->shape.width;
    struct dev_arg atoms = dev_arg_u32(pass->atoms);
    double n = (double)pass->atoms * width, e = pass->edges, v = e * m->shape.functions;

    if (LAUNCH(m, READOUT_BACKWARD, tiles(m, pass->atoms, READOUT_TILE_ATOMS),
               n * (2 * width + MESSAGE_SILU_SLOPE_FLOP + 1), n + (double)width * width, n,
               buffer(m, HIDDEN), weight(m, ENERGY), weight(m, READOUT_TRANSPOSED), buffer(m, G),
               atoms, dev_arg_u32(width),
               dev_arg_local(READOUT_TILE_ATOMS * width * sizeof(float))) != 0)
        return -1;
    for (uint32_t l = m->shape.layers; l > 0; l--)
        if (layer_backward(m, pass, l - 1) != 0)
            return -1;
    if (LAUNCH(m, RBF_BACKWARD, dev_grid_for(m->max_edges, RBF_GROUP_ITEMS), RBF_BACKWARD_FLOP * v,
               v + e, e, buffer(m, BASIS_GRADIENT), buffer(m, DISTANCE), buffer(m, ROW),
               buffer(m, PAIR_GRADIENT), atoms, dev_arg_u32(m->shape.functions),
               dev_arg_f32(m->shape.gamma), dev_arg_f32(m->shape.spacing),
               dev_arg_f32(CUTOFF)) != 0)
        return -1;
    return LAUNCH(m, EDGE_FORCES, dev_grid_for(pass->atoms, 64), 6 * e, 4 * e + pass->atoms,
                  3 * (double)pass->atoms, buffer(m, PAIR_GRADIENT), buffer(m, DIRECTION),
                  buffer(m, ROW), dev_arg_buffer(m->out[FORCES]), atoms);
}

static int (*const component_functions[COMPONENTS])(struct model *, const struct pass *) = {
    [TRANSFER_IN] = transfer_in,
    [NEIGHBOURS] = neighbours,
    [EDGES] = edges,
    [RBF] = rbf,
    [MESSAGES] = messages,
    [READOUT] = readout,
    [BACKWARD] = backward,
    [TRANSFER_OUT] = transfer_out,
};

/* ---- steps ---------------------------------------------------------------------------------- */

static int run_components(struct model *m, const struct pass *pass, enum component begin,
                          enum component end, double times[COMPONENTS])
{
    double start = now_ns();

    for (int c = (int)begin; c < (int)end; c++) {
        int result;
        double stop;

        perfkit_range_push(component_names[c]);
        result = component_functions[c](m, pass);
        if (result == 0 && m->form.apart)
            result = dev_queue_finish(m->session->queue);
        perfkit_range_pop();
        if (result != 0)
            return -1;
        stop = now_ns();
        times[c] += stop - start;
        start = stop; /* without a gap: the components sum to the step */
    }
    return 0;
}

/* The times of a new step, all zero; NULL when memory ran out. */
static double *next_times(struct model *m)
{
    if (m->steps == m->steps_capacity) {
        size_t capacity = m->steps_capacity ? 2 * m->steps_capacity : 32;
        void *times = realloc(m->times, capacity * sizeof m->times[0]);

        if (!times)
            return NULL;
        m->times = times;
        m->steps_capacity = capacity;
    }
    memset(m->times[m->steps], 0, sizeof m->times[0]);
    return m->times[m->steps++];
}

int model_step(struct model *m)
{
    double *times = next_times(m);

    if (!times)
        return -1;
    for (uint32_t p = 0; p < m->pass_count; p++)
        if (run_components(m, &m->passes[p], TRANSFER_IN, COMPONENTS, times) != 0)
            return -1;
    return 0;
}

int model_components(struct model *m, enum component begin, enum component end)
{
    double times[COMPONENTS] = {0};

    return run_components(m, m->passes, begin, end, times);
}

uint32_t model_passes(const struct model *m)
{
    return m->pass_count;
}

void model_component_times(const struct model *m, uint32_t steps, double ns[COMPONENTS])
{
    size_t count = steps < m->steps ? steps : m->steps;

    for (int c = 0; c < COMPONENTS; c++) {
        ns[c] = 0;
        for (size_t s = m->steps - count; s < m->steps; s++)
            ns[c] += m->times[s][c] / (double)count;
    }
}

int model_poison(struct model *m)
{
    for (int i = 0; i < BUFFERS; i++)
        if (m->buffer[i] && dev_fill(m->session->queue, m->buffer[i], 0xff, NULL) != 0)
            return -1;
    memset(dev_host_pointer(m->host_out), 0xff, m->out_offset[OUTPUT_PARTS] * m->pass_count);
    return dev_fill(m->session->queue, m->output, 0xff, NULL);
}

void model_results(const struct model *m, uint32_t molecule, const float **energy,
                   const float **forces)
{
    uint32_t p = molecule / m->batch, first = m->passes[p].first_molecule;
    const char *out = (const char *)dev_host_pointer(m->host_out) + p * m->out_offset[OUTPUT_PARTS];

    *energy = (const float *)(const void *)(out + m->out_offset[ENERGIES]) + (molecule - first);
    *forces = (const float *)(const void *)(out + m->out_offset[FORCES]) +
              3 * (size_t)(m->set->first[molecule] - m->set->first[first]);
}

static void *read_back(struct model *m, int index, size_t bytes)
{
    void *to = malloc(bytes ? bytes : 1);

    if (to && dev_read(m->session->queue, m->buffer[index], 0, to, bytes, DEV_BLOCKING, NULL) == 0)
        return to;
    free(to);
    return NULL;
}

int64_t model_edges(struct model *m, struct edge_list *list)
{
    uint32_t atoms = m->passes[0].atoms;
    size_t edges;

    *list = (struct edge_list){0};
    list->row = read_back(m, ROW, (atoms + 1) * sizeof(uint32_t));
    if (!list->row || list->row[atoms] > m->max_edges)
        return -1;
    edges = list->row[atoms];
    list->receiver = read_back(m, RECEIVER, edges * sizeof(uint32_t));
    list->sender = read_back(m, SENDER, edges * sizeof(uint32_t));
    list->distance = read_back(m, DISTANCE, edges * sizeof(float));
    list->direction = read_back(m, DIRECTION, 3 * edges * sizeof(float));
    list->rbf = read_back(m, BASIS, edges * m->shape.functions * sizeof(float));
    if (!list->receiver || !list->sender || !list->distance || !list->direction || !list->rbf)
        return -1;
    return (int64_t)edges;
}

void edge_list_free(struct edge_list *list)
{
    free(list->row);
    free(list->receiver);
    free(list->sender);
    free(list->distance);
    free(list->direction);
    free(list->rbf);
    *list = (struct edge_list){0};
}

/* ---- setting up ----------------------------------------------------------------------------- */

static int make_passes(struct model *m)
{
    const struct molecules *set = m->set;

    m->pass_count = (set->count + m->batch - 1) / m->batch;
    m->passes = calloc(m->pass_count, sizeof m->passes[0]);
    if (!m->passes)
        return -1;
    for (uint32_t p = 0; p < m->pass_count; p++) {
        struct pass *pass = &m->passes[p];
        uint32_t first = p * m->batch, left = set->count - first, capacity;

        pass->first_molecule = first;
        pass->molecules = left < m->batch ? left : m->batch;
        pass->atoms = set->first[first + pass->molecules] - set->first[first];
        pass->edges = count_edges(set, first, first + pass->molecules, CUTOFF);
        capacity = count_edges(set, first, first + pass->molecules, CUTOFF + SKIN);
        m->max_atoms = pass->atoms > m->max_atoms ? pass->atoms : m->max_atoms;
        m->max_edges = capacity > m->max_edges ? capacity : m->max_edges;
    }
    if (m->max_edges == 0)
        m->max_edges = 1;
    return 0;
}

/* Offsets of parts of `bytes` each, aligned so that views can begin there. */
static void lay_out(const size_t *bytes, size_t parts, size_t *offset)
{
    offset[0] = 0;
    for (size_t i = 0; i < parts; i++)
        offset[i + 1] = offset[i] + (bytes[i] + DEV_VIEW_ALIGN_BYTES - 1) / DEV_VIEW_ALIGN_BYTES *
                                        DEV_VIEW_ALIGN_BYTES;
}

static int make_views(struct dev *dev, const size_t *offset, size_t parts,
                      struct dev_buffer **whole, struct dev_buffer **views)
{
    if (dev_alloc(dev, offset[parts], whole) != 0)
        return -1;
    for (size_t i = 0; i < parts; i++)
        if (dev_view(*whole, offset[i], offset[i + 1] - offset[i], &views[i]) != 0)
            return -1;
    return 0;
}

/* Writes what each pass uploads, atoms and molecules numbered from the pass's first. */
static void collate(struct model *m)
{
    const struct molecules *set = m->set;

    for (uint32_t p = 0; p < m->pass_count; p++) {
        const struct pass *pass = &m->passes[p];
        char *to = (char *)dev_host_pointer(m->host_in) + p * m->in_offset[INPUT_PARTS];
        uint32_t *molecule_of = (void *)(to + m->in_offset[MOLECULE_OF]);
        uint32_t *first = (void *)(to + m->in_offset[FIRST]);
        size_t at = set->first[pass->first_molecule];

        memset(to, 0, m->in_offset[INPUT_PARTS]);
        memcpy(to + m->in_offset[POSITIONS], set->positions + 3 * at,
               3 * pass->atoms * sizeof(float));
        memcpy(to + m->in_offset[SPECIES_OF], set->species + at, pass->atoms * sizeof(uint32_t));
        for (uint32_t i = 0; i <= pass->molecules; i++)
            first[i] = set->first[pass->first_molecule + i] - (uint32_t)at;
        for (uint32_t i = 0; i < pass->molecules; i++)
            for (uint32_t a = first[i]; a < first[i + 1]; a++)
                molecule_of[a] = i;
    }
}

static int make_transfers(struct model *m)
{
    const size_t in_bytes[INPUT_PARTS] = {[POSITIONS] = 3 * (size_t)m->max_atoms * sizeof(float),
                                          [SPECIES_OF] = m->max_atoms * sizeof(uint32_t),
                                          [MOLECULE_OF] = m->max_atoms * sizeof(uint32_t),
                                          [FIRST] = ((size_t)m->batch + 1) * sizeof(uint32_t)};
    const size_t out_bytes[OUTPUT_PARTS] = {
        [FORCES] = 3 * (size_t)m->max_atoms * sizeof(float), [ENERGIES] = m->batch * sizeof(float)};
    struct dev *dev = m->session->dev;

    lay_out(in_bytes, INPUT_PARTS, m->in_offset);
    lay_out(out_bytes, OUTPUT_PARTS, m->out_offset);
    if (make_views(dev, m->in_offset, INPUT_PARTS, &m->input, m->in) != 0 ||
        make_views(dev, m->out_offset, OUTPUT_PARTS, &m->output, m->out) != 0 ||
        dev_alloc_host(dev, m->in_offset[INPUT_PARTS] * m->pass_count, &m->host_in) != 0 ||
        dev_alloc_host(dev, m->out_offset[OUTPUT_PARTS] * m->pass_count, &m->host_out) != 0)
        return -1;
    collate(m);
    return 0;
}

static int make_buffers(struct model *m)
{
    size_t atoms = m->max_atoms, e = m->max_edges, width = m->shape.width;
    size_t basis = e * m->shape.functions, features = atoms * width;
    size_t floats[BUFFERS] = {
        [COUNT] = atoms,     [ROW] = atoms + 1,   [RECEIVER] = e,      [SENDER] = e,
        [DISTANCE] = e,      [DIRECTION] = 3 * e, [BASIS] = basis,     [A] = features,
        [DA] = features,     [G] = features,      [HIDDEN] = features, [BASIS_GRADIENT] = basis,
        [PAIR_GRADIENT] = e, [H] = features};

    if (!m->form.edges_fused)
        floats[SENDER_POSITION] = floats[RECEIVER_POSITION] = floats[VECTOR] = 3 * e;
    if (!m->form.rbf_fused)
        floats[CUT] = e;
    for (uint32_t l = 0; l < m->shape.layers; l++) {
        floats[H + l + 1] = floats[Z + l] = features;
        floats[FILTER + l] = e * width;
    }
    for (int i = 0; i < BUFFERS; i++)
        if (floats[i] && dev_alloc(m->session->dev, 4 * floats[i], &m->buffer[i]) != 0)
            return -1;
    return 0;
}

static int upload(struct model *m, int index, const float *from, size_t count)
{
    struct dev_buffer **to = &m->weight[index];

    if (dev_alloc(m->session->dev, count * sizeof from[0], to) != 0)
        return -1;
    return dev_write(m->session->queue, *to, 0, from, count * sizeof from[0], DEV_BLOCKING, NULL);
}

static int upload_weights(struct model *m, const struct network *n)
{
    size_t width = n->width, square = width * width, filter = width * n->functions;

    if (upload(m, EMBEDDING, n->embedding, SPECIES * width) != 0 ||
        upload(m, READOUT_WEIGHT, n->readout, square) != 0 ||
        upload(m, READOUT_TRANSPOSED, n->readout_transposed, square) != 0 ||
        upload(m, READOUT_BIAS, n->readout_bias, width) != 0 ||
        upload(m, ENERGY, n->energy, width) != 0)
        return -1;
    for (uint32_t l = 0; l < n->layers; l++) {
        const struct layer *layer = &n->layer[l];
        int base = LAYER_WEIGHTS + 5 * (int)l;

        if (upload(m, base + FILTER_W, layer->filter, filter) != 0 ||
            upload(m, base + FILTER_T, layer->filter_transposed, filter) != 0 ||
            upload(m, base + UPDATE_W, layer->update, square) != 0 ||
            upload(m, base + UPDATE_T, layer->update_transposed, square) != 0 ||
            upload(m, base + BIAS, layer->bias, width) != 0)
            return -1;
    }
    return 0;
}

int model_open(struct session *session, const struct molecules *set, const struct network *network,
               struct model_form form, uint32_t batch, struct model **out)
{
    struct model *m = calloc(1, sizeof *m);
    int result;

    if (!m)
        return -1;
    m->session = session;
    m->set = set;
    m->shape = *network;
    m->form = form;
    m->batch = batch < set->count ? batch : set->count;
    result = make_passes(m) != 0 || make_transfers(m) != 0 || make_buffers(m) != 0 ||
             upload_weights(m, network) != 0;
    for (int i = 0; i < KERNELS && result == 0; i++)
        result = dev_kernel(session->dev, kernels[i].module, kernels[i].name, &m->kernel[i]);
    if (result != 0) {
        model_close(m);
        return -1;
    }
    *out = m;
    return 0;
}

void model_close(struct model *m)
{
    if (!m)
        return;
    for (int i = 0; i < BUFFERS; i++)
        dev_free(m->buffer[i]);
    for (int i = 0; i < WEIGHTS; i++)
        dev_free(m->weight[i]);
    for (int i = 0; i < INPUT_PARTS; i++)
        dev_free(m->in[i]);
    for (int i = 0; i < OUTPUT_PARTS; i++)
        dev_free(m->out[i]);
    dev_free(m->input);
    dev_free(m->output);
    dev_free_host(m->host_in);
    dev_free_host(m->host_out);
    free(m->passes);
    free(m->times);
    free(m);
}
