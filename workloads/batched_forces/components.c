/* The components of a pass: what is launched for each, over which grids, and the work that is
 * declared with it.
 */
#include "kernels/edge/edge.h"
#include "kernels/message/message.h"
#include "kernels/neighbour/neighbour.h"
#include "kernels/rbf/rbf.h"
#include "kernels/readout/readout.h"
#include "workloads/batched_forces/model.h"

#define PI 3.14159265f

const char *const component_names[COMPONENTS] = {
    [TRANSFER_IN] = "transfer in", [NEIGHBOURS] = "neighbour search", [EDGES] = "edge features",
    [RBF] = "rbf and cutoff",      [MESSAGES] = "message passing",    [READOUT] = "readout",
    [BACKWARD] = "backward",       [TRANSFER_OUT] = "transfer out",
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

int model_find_kernels(struct model *m)
{
    for (int i = 0; i < KERNELS; i++)
        if (dev_kernel(m->session->dev, kernels[i].module, kernels[i].name, &m->kernel[i]) != 0)
            return -1;
    return 0;
}

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

    return LAUNCH(m, RBF_FUSED, rbf_fused_grid(m->max_edges, m->shape.functions),
                  RBF_FUNCTION_FLOP * values + RBF_CUTOFF_FLOP * e, e, values, buffer(m, DISTANCE),
                  buffer(m, ROW), buffer(m, BASIS), dev_arg_u32(pass->atoms),
                  dev_arg_u32(m->shape.functions), dev_arg_f32(m->shape.gamma),
                  dev_arg_f32(m->shape.spacing), dev_arg_f32(CUTOFF),
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

int (*const component_functions[COMPONENTS])(struct model *, const struct pass *) = {
    [TRANSFER_IN] = transfer_in,
    [NEIGHBOURS] = neighbours,
    [EDGES] = edges,
    [RBF] = rbf,
    [MESSAGES] = messages,
    [READOUT] = readout,
    [BACKWARD] = backward,
    [TRANSFER_OUT] = transfer_out,
};
