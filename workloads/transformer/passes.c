/* What a training step enqueues: the forward pass, the backward pass, and Adam. Each operation is
 * one launch with its declared work. Activations and their gradients are written where the next
 * operation needs them, so that there are no copies in between:
 *
 *   qkv = in Wqkv;  scores = softmax(queries keys' / sqrt(head), causal);  context = scores values
 *   sum1 = in + context Wout;    norm1 = normalised sum1
 *   hidden = max(0, norm1 Wup);  sum2 = norm1 + hidden Wdown;  norm2 = normalised sum2
 *
 * norm2 is the next layer's in, or what the logits are made of.
 */
#include "kernels/adam/adam.h"
#include "kernels/embedding/embedding.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/softmax/softmax.h"
#include "workloads/transformer/attention.h"
#include "workloads/transformer/model.h"

#define ITEMS 256 /* of kernels with an item per element or row */
#define SMALL 256 /* a side below which TILES_ADAPTIVE takes the small tiles */

static const struct {
    const struct dev_module *module;
    const char *name;
} kernels[PRODUCT] = {
    [EMBEDDING_LOOKUP] = {&embedding_module, "embedding_lookup"},
    [EMBEDDING_TOKENS] = {&embedding_module, "embedding_tokens"},
    [EMBEDDING_POSITIONS] = {&embedding_module, "embedding_positions"},
    [SOFTMAX_ROWS] = {&softmax_module, "softmax_rows"},
    [SOFTMAX_BACKWARD] = {&softmax_module, "softmax_backward"},
    [SOFTMAX_LOSS] = {&softmax_module, "softmax_loss"},
    [LAYER_NORM] = {&layer_norm_module, "layer_norm"},
    [LAYER_NORM_BACKWARD] = {&layer_norm_module, "layer_norm_backward"},
    [LAYER_NORM_WEIGHTS] = {&layer_norm_module, "layer_norm_weights"},
    [ADAM] = {&adam_module, "adam"},
    [MATMUL_SUM] = {&matmul_module, "matmul_sum"},
};

int model_find_kernels(struct model *m)
{
    struct dev *dev = m->session->dev;
    int products = dev_info(dev)->backend == DEV_CUDA ? MATMUL_KERNELS : MATMUL_BLOCK128;

    for (int k = 0; k < PRODUCT; k++)
        if (dev_kernel(dev, kernels[k].module, kernels[k].name, &m->kernel[k]) != 0)
            return -1;
    for (int k = 0; k < products; k++)
        if (dev_kernel(dev, &matmul_module, matmul_kernel_name((enum matmul_kernel)k),
                       &m->kernel[PRODUCT + k]) != 0)
            return -1;
    return 0;
}

static int launch(struct model *m, enum kernel kernel, struct dev_grid grid,
                  const struct dev_arg *args, size_t count, double flop, double floats_read,
                  double floats_written)
{
    const struct work work = {kernels[kernel].name, flop, 4 * floats_read, 4 * floats_written};

    return session_launch(m->session, m->session->queue, m->kernel[kernel], grid, args, count,
                          &work);
}

#define LAUNCH(m, kernel, grid, args, flop, read, written)                                         \
    launch(m, kernel, grid, args, sizeof(args) / sizeof(args)[0], flop, read, written)

static struct dev_buffer *of_layer(const struct model *m, uint32_t layer, enum layer_matrix which)
{
    return m->matrix[layer_matrix(layer, which)];
}

/* The input of a layer; of the one behind the last: what the logits are made of. */
static struct dev_buffer *input_of(const struct model *m, uint32_t layer)
{
    return layer == 0 ? m->matrix[INPUT] : of_layer(m, layer - 1, NORM2);
}

/* ---- products -------------------------------------------------------------------------------- */

static enum matmul_kernel choose(const struct model *m, const struct matmul_shape *shape)
{
    switch (m->form.tiles) {
    case TILES_16:
        break;
    case TILES_ADAPTIVE:
        if (shape->m < SMALL || shape->n < SMALL || shape->k < SMALL)
            return MATMUL_TILE8;
        break;
    case TILES_BLOCKS:
    case TILES_LIBRARY:
        return matmul_best(dev_info(m->session->dev), shape);
    }
    return MATMUL_TILE16;
}

static int product_by(struct model *m, enum matmul_kernel kernel, const struct matmul_shape *shape,
                      struct dev_buffer *a, struct dev_buffer *b, struct dev_buffer *c,
                      struct dev_buffer *d)
{
    const struct work work = {matmul_kernel_name(kernel), matmul_flop(shape),
                              matmul_bytes_read(shape), matmul_bytes_written(shape)};
    struct dev_arg args[MATMUL_ARGUMENTS];

    matmul_arguments(shape, a, b, c, d, args);
    return session_launch(m->session, m->session->queue, m->kernel[PRODUCT + (int)kernel],
                          matmul_grid(dev_info(m->session->dev), kernel, shape), args,
                          MATMUL_ARGUMENTS, &work);
}

static int sum_parts(struct model *m, const struct matmul_shape *shape, uint32_t parts,
                     struct dev_buffer *c, struct dev_buffer *d)
{
    double elements = (double)shape->m * shape->n;
    struct dev_arg args[MATMUL_SUM_ARGUMENTS];

    matmul_sum_arguments(shape, parts, m->buffer[PARTS], c, d, args);
    return LAUNCH(m, MATMUL_SUM, dev_grid_for((size_t)shape->m * shape->n, MATMUL_SUM_ITEMS), args,
                  parts * elements,
                  (parts + (shape->flags & (MATMUL_ADD | MATMUL_GATE) ? 1 : 0)) * elements,
                  elements);
}

/* The products of one outer index. `add`: to what C holds. */
static int call_library(struct model *m, const struct matmul_shape *shape, uint32_t outer,
                        struct dev_buffer *a, struct dev_buffer *b, struct dev_buffer *c, bool add)
{
    size_t o = outer;
    struct matmul_shape one = *shape;
    struct gemm_library_product product = {
        .library = m->library,
        .m = shape->m,
        .n = shape->n,
        .k = shape->k,
        .batch = shape->inner,
        .a_transposed = shape->flags & MATMUL_A_TRANSPOSED,
        .b_transposed = shape->flags & MATMUL_B_TRANSPOSED,
        .beta = add ? 1 : 0,
        .a = (const float *)dev_buffer_address(a) + shape->a.offset + o * shape->a.outer,
        .b = (const float *)dev_buffer_address(b) + shape->b.offset + o * shape->b.outer,
        .c = (float *)dev_buffer_address(c) + shape->c.offset + o * shape->c.outer,
        .a_part = {shape->a.stride, shape->a.inner},
        .b_part = {shape->b.stride, shape->b.inner},
        .c_part = {shape->c.stride, shape->c.inner}};

    one.outer = 1;
    {
        const struct work work = {"cublas", matmul_flop(&one), matmul_bytes_read(&one),
                                  matmul_bytes_written(&one)};

        return session_call(m->session, m->session->queue, gemm_library_multiply, &product, &work);
    }
}

/* cuBLAS adds to C; what else the flags say is done by a launch of our own. */
static int product_by_library(struct model *m, const struct matmul_shape *shape,
                              struct dev_buffer *a, struct dev_buffer *b, struct dev_buffer *c,
                              struct dev_buffer *d)
{
    bool add = shape->flags & MATMUL_ADD && c == d;
    bool rest = shape->flags & (MATMUL_RELU | MATMUL_GATE | (add ? 0 : MATMUL_ADD));
    struct matmul_shape plain = rest ? matmul_split(shape, 1) : *shape;

    for (uint32_t outer = 0; outer < plain.outer; outer++)
        if (call_library(m, &plain, outer, a, b, rest ? m->buffer[PARTS] : c, add && !rest) != 0)
            return -1;
    return rest ? sum_parts(m, shape, 1, c, d) : 0;
}

static int product(struct model *m, const struct matmul_shape *shape, struct dev_buffer *a,
                   struct dev_buffer *b, struct dev_buffer *c, struct dev_buffer *d)
{
    enum matmul_kernel kernel = choose(m, shape);
    uint32_t parts =
        m->form.tiles == TILES_BLOCKS ? matmul_parts(dev_info(m->session->dev), kernel, shape) : 1;
    struct matmul_shape split;

    if (m->library)
        return product_by_library(m, shape, a, b, c, d);
    if (parts == 1)
        return product_by(m, kernel, shape, a, b, c, d);
    split = matmul_split(shape, parts);
    if (product_by(m, kernel, &split, a, b, m->buffer[PARTS], m->buffer[PARTS]) != 0)
        return -1;
    return sum_parts(m, shape, parts, c, d);
}

/* c = a W (+ d), W [in][out] at `weight`. */
static int apply(struct model *m, struct dev_buffer *a, uint32_t weight, uint32_t in, uint32_t out,
                 uint32_t flags, struct dev_buffer *c, struct dev_buffer *d)
{
    struct matmul_shape shape = dense_shape(m->pass_rows, out, in, flags);

    shape.b.offset = weight;
    return product(m, &shape, a, m->buffer[WEIGHTS], c, d);
}

/* The gradient by the input of the above: c = g W' (+ c). */
static int apply_back(struct model *m, struct dev_buffer *g, uint32_t weight, uint32_t in,
                      uint32_t out, uint32_t flags, struct dev_buffer *c)
{
    struct matmul_shape shape = dense_shape(m->pass_rows, in, out, flags | MATMUL_B_TRANSPOSED);

    shape.b.offset = weight;
    return product(m, &shape, g, m->buffer[WEIGHTS], c, c);
}

/* The gradient by the weights: a' g is added. */
static int apply_weights(struct model *m, struct dev_buffer *a, struct dev_buffer *g,
                         uint32_t weight, uint32_t in, uint32_t out)
{
    struct matmul_shape shape =
        dense_shape(in, out, m->pass_rows, MATMUL_A_TRANSPOSED | MATMUL_ADD);

    shape.c.offset = weight;
    return product(m, &shape, a, g, m->buffer[GRADIENT], m->buffer[GRADIENT]);
}

static int attend(struct model *m, enum attention_product which, struct dev_buffer *a,
                  struct dev_buffer *b, struct dev_buffer *c)
{
    struct matmul_shape shape = attention_shape(&m->shape, m->pass_sequences, which);

    return product(m, &shape, a, b, c, c);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* period: of the causal mask, or 0. */
static int softmax(struct model *m, struct dev_buffer *x, uint32_t rows, uint32_t columns,
                   uint32_t period, float scale)
{
    struct dev_grid grid = softmax_grid(rows, columns);
    double elements = (double)rows * columns;
    const struct dev_arg args[] = {dev_arg_buffer(x), dev_arg_u32(columns), dev_arg_u32(period),
                                   dev_arg_f32(scale), softmax_local(grid)};

    return LAUNCH(m, SOFTMAX_ROWS, grid, args, SOFTMAX_ROWS_FLOP * elements, elements, elements);
}

static int norm(struct model *m, struct dev_buffer *in, uint32_t offset, struct dev_buffer *stats,
                struct dev_buffer *out)
{
    uint32_t rows = m->pass_rows, width = m->shape.width;
    double elements = (double)rows * width;
    const struct dev_arg args[] = {dev_arg_buffer(in),  dev_arg_buffer(m->buffer[WEIGHTS]),
                                   dev_arg_buffer(out), dev_arg_buffer(stats),
                                   dev_arg_u32(offset), dev_arg_u32(width),
                                   layer_norm_local()};

    return LAUNCH(m, LAYER_NORM, layer_norm_grid(rows), args, LAYER_NORM_FLOP * elements,
                  elements + 2.0 * width, elements + 2.0 * rows);
}

/* First the gradient by the norm's weights: the second launch overwrites what it is made of. */
static int norm_backward(struct model *m, struct dev_buffer *in, uint32_t offset,
                         struct dev_buffer *stats)
{
    uint32_t rows = m->pass_rows, width = m->shape.width;
    double elements = (double)rows * width;
    const struct dev_arg weight_args[] = {
        dev_arg_buffer(m->buffer[G]), dev_arg_buffer(in),
        dev_arg_buffer(stats),        dev_arg_buffer(m->buffer[GRADIENT]),
        dev_arg_u32(offset),          dev_arg_u32(rows),
        dev_arg_u32(width),           layer_norm_weights_local()};
    const struct dev_arg args[] = {dev_arg_buffer(m->buffer[G]),
                                   dev_arg_buffer(in),
                                   dev_arg_buffer(m->buffer[WEIGHTS]),
                                   dev_arg_buffer(stats),
                                   dev_arg_u32(offset),
                                   dev_arg_u32(width),
                                   layer_norm_local()};

    if (LAUNCH(m, LAYER_NORM_WEIGHTS, layer_norm_weights_grid(width), weight_args,
               LAYER_NORM_WEIGHTS_FLOP * elements, 2 * elements + 2.0 * rows + 2.0 * width,
               2.0 * width) != 0)
        return -1;
    return LAUNCH(m, LAYER_NORM_BACKWARD, layer_norm_grid(rows), args,
                  LAYER_NORM_BACKWARD_FLOP * elements, 2 * elements + 2.0 * rows + width, elements);
}

/* ---- forward --------------------------------------------------------------------------------- */

int pass_embed(struct model *m)
{
    uint32_t rows = m->pass_rows, width = m->shape.width;
    double elements = (double)rows * width;
    const struct dev_arg args[] = {dev_arg_buffer(m->buffer[WEIGHTS]),
                                   dev_arg_buffer(m->buffer[TOKENS]),
                                   dev_arg_buffer(m->matrix[INPUT]),
                                   dev_arg_u32(rows),
                                   dev_arg_u32(width),
                                   dev_arg_u32(m->shape.length),
                                   dev_arg_u32(m->layout.positions)};

    return LAUNCH(m, EMBEDDING_LOOKUP, dev_grid_for((size_t)rows * width, ITEMS), args, elements,
                  2 * elements + rows, elements);
}

static int layer_forward(struct model *m, uint32_t l)
{
    const struct shape *s = &m->shape;
    const struct layer_layout *at = &m->layout.layer[l];
    struct dev_buffer *in = input_of(m, l), *qkv = of_layer(m, l, QKV);
    struct dev_buffer *scores = of_layer(m, l, SCORES), *context = of_layer(m, l, CONTEXT);
    struct dev_buffer *sum1 = of_layer(m, l, SUM1), *norm1 = of_layer(m, l, NORM1);
    struct dev_buffer *hidden = of_layer(m, l, HIDDEN), *sum2 = of_layer(m, l, SUM2);

    if (apply(m, in, at->qkv, s->width, 3 * s->width, 0, qkv, qkv) != 0 ||
        attend(m, ATTENTION_SCORES, qkv, qkv, scores) != 0 ||
        softmax(m, scores, m->pass_rows * s->heads, s->length, s->length,
                (float)attention_scale(s)) != 0 ||
        attend(m, ATTENTION_CONTEXT, scores, qkv, context) != 0 ||
        apply(m, context, at->out, s->width, s->width, MATMUL_ADD, sum1, in) != 0 ||
        norm(m, sum1, at->norm1, m->buffer[STATS + 2 * l], norm1) != 0 ||
        apply(m, norm1, at->up, s->width, s->hidden, MATMUL_RELU, hidden, hidden) != 0 ||
        apply(m, hidden, at->down, s->hidden, s->width, MATMUL_ADD, sum2, norm1) != 0)
        return -1;
    return norm(m, sum2, at->norm2, m->buffer[STATS + 2 * l + 1], of_layer(m, l, NORM2));
}

int pass_forward(struct model *m)
{
    const struct shape *s = &m->shape;
    struct dev_buffer *logits = m->matrix[LOGITS];

    for (uint32_t l = 0; l < s->layers; l++)
        if (layer_forward(m, l) != 0)
            return -1;
    if (apply(m, input_of(m, s->layers), m->layout.head, s->width, s->vocabulary, 0, logits,
              logits) != 0)
        return -1;
    return softmax(m, logits, m->pass_rows, s->vocabulary, 0, 1);
}

/* ---- backward -------------------------------------------------------------------------------- */

static int loss(struct model *m, uint32_t first_row)
{
    uint32_t rows = m->pass_rows;
    const struct dev_arg args[] = {dev_arg_buffer(m->matrix[LOGITS]),
                                   dev_arg_buffer(m->buffer[TOKENS]),
                                   dev_arg_buffer(m->buffer[LOSSES]),
                                   dev_arg_u32(first_row),
                                   dev_arg_u32(rows),
                                   dev_arg_u32(m->shape.vocabulary),
                                   dev_arg_u32(m->shape.length)};

    return LAUNCH(m, SOFTMAX_LOSS, dev_grid_for(rows, ITEMS), args, 2.0 * rows, 2.0 * rows,
                  2.0 * rows);
}

static int scores_backward(struct model *m, struct dev_buffer *scores)
{
    const struct shape *s = &m->shape;
    uint32_t rows = m->pass_rows * s->heads;
    struct dev_grid grid = softmax_grid(rows, s->length);
    double elements = (double)rows * s->length;
    const struct dev_arg args[] = {
        dev_arg_buffer(scores), dev_arg_buffer(m->buffer[SCORE_GRADIENT]), dev_arg_u32(s->length),
        dev_arg_u32(s->length), dev_arg_f32((float)attention_scale(s)),    softmax_local(grid)};

    return LAUNCH(m, SOFTMAX_BACKWARD, grid, args, SOFTMAX_BACKWARD_FLOP * elements, 2 * elements,
                  elements);
}

static int attention_backward(struct model *m, uint32_t l)
{
    struct dev_buffer *qkv = of_layer(m, l, QKV), *scores = of_layer(m, l, SCORES);
    struct dev_buffer *by_context = m->buffer[CONTEXT_GRADIENT];
    struct dev_buffer *by_qkv = m->buffer[QKV_GRADIENT], *by_scores = m->buffer[SCORE_GRADIENT];

    if (attend(m, ATTENTION_VALUE_GRADIENT, scores, by_context, by_qkv) != 0 ||
        attend(m, ATTENTION_SCORE_GRADIENT, by_context, qkv, by_scores) != 0 ||
        scores_backward(m, scores) != 0 ||
        attend(m, ATTENTION_QUERY_GRADIENT, by_scores, qkv, by_qkv) != 0)
        return -1;
    return attend(m, ATTENTION_KEY_GRADIENT, by_scores, qkv, by_qkv);
}

/* G: from the gradient by the layer's output to the one by its input. HIDDEN becomes its own
 * gradient, once the weights behind it have had theirs. */
static int layer_backward(struct model *m, uint32_t l)
{
    const struct shape *s = &m->shape;
    const struct layer_layout *at = &m->layout.layer[l];
    struct dev_buffer *g = m->buffer[G], *hidden = of_layer(m, l, HIDDEN);
    struct dev_buffer *by_context = m->buffer[CONTEXT_GRADIENT], *by_qkv = m->buffer[QKV_GRADIENT];

    if (norm_backward(m, of_layer(m, l, SUM2), at->norm2, m->buffer[STATS + 2 * l + 1]) != 0 ||
        apply_weights(m, hidden, g, at->down, s->hidden, s->width) != 0 ||
        apply_back(m, g, at->down, s->hidden, s->width, MATMUL_GATE, hidden) != 0 ||
        apply_weights(m, of_layer(m, l, NORM1), hidden, at->up, s->width, s->hidden) != 0 ||
        apply_back(m, hidden, at->up, s->width, s->hidden, MATMUL_ADD, g) != 0 ||
        norm_backward(m, of_layer(m, l, SUM1), at->norm1, m->buffer[STATS + 2 * l]) != 0 ||
        apply_weights(m, of_layer(m, l, CONTEXT), g, at->out, s->width, s->width) != 0 ||
        apply_back(m, g, at->out, s->width, s->width, 0, by_context) != 0 ||
        attention_backward(m, l) != 0 ||
        apply_weights(m, input_of(m, l), by_qkv, at->qkv, s->width, 3 * s->width) != 0)
        return -1;
    return apply_back(m, by_qkv, at->qkv, s->width, 3 * s->width, MATMUL_ADD, g);
}

static int embedding_backward(struct model *m)
{
    uint32_t rows = m->pass_rows, width = m->shape.width, length = m->shape.length;
    double elements = (double)rows * width, sequence = (double)length * width;
    const struct dev_arg token_args[] = {dev_arg_buffer(m->buffer[G]),
                                         dev_arg_buffer(m->buffer[TOKENS]),
                                         dev_arg_buffer(m->buffer[GRADIENT]),
                                         dev_arg_u32(rows),
                                         dev_arg_u32(width),
                                         dev_arg_u32(length)};
    const struct dev_arg args[] = {dev_arg_buffer(m->buffer[G]),
                                   dev_arg_buffer(m->buffer[GRADIENT]),
                                   dev_arg_u32(rows),
                                   dev_arg_u32(width),
                                   dev_arg_u32(length),
                                   dev_arg_u32(m->layout.positions)};

    if (LAUNCH(m, EMBEDDING_TOKENS, ((struct dev_grid){rows, EMBEDDING_ITEMS}), token_args,
               elements, 2 * elements + rows, elements) != 0)
        return -1;
    return LAUNCH(m, EMBEDDING_POSITIONS, dev_grid_for((size_t)length * width, ITEMS), args,
                  elements, elements + sequence, sequence);
}

/* From `from` to where the gradient was told of before nothing changes any more. */
static int gradient_ready(struct model *m, uint32_t from)
{
    uint32_t end = m->exchanged;

    if (!m->exchange || !m->last_pass)
        return 0;
    m->exchanged = from;
    return m->exchange->ready(m->exchange->context, from, end);
}

int pass_backward(struct model *m, uint32_t first_row)
{
    const struct shape *s = &m->shape;
    struct dev_buffer *logits = m->matrix[LOGITS];

    m->exchanged = m->layout.count;
    if (loss(m, first_row) != 0 ||
        apply_weights(m, input_of(m, s->layers), logits, m->layout.head, s->width, s->vocabulary) !=
            0 ||
        gradient_ready(m, m->layout.head) != 0 ||
        apply_back(m, logits, m->layout.head, s->width, s->vocabulary, 0, m->buffer[G]) != 0)
        return -1;
    for (uint32_t l = s->layers; l-- > 0;)
        if (layer_backward(m, l) != 0 || gradient_ready(m, m->layout.layer[l].qkv) != 0)
            return -1;
    return embedding_backward(m) == 0 ? gradient_ready(m, 0) : -1;
}

int pass_update(struct model *m)
{
    uint32_t n = m->layout.count, step = m->step + 1;
    size_t rows = m->exchange ? m->exchange->batch_rows : rows_of(&m->shape);
    const struct dev_arg args[] = {dev_arg_buffer(m->buffer[WEIGHTS]),
                                   dev_arg_buffer(m->buffer[GRADIENT]),
                                   dev_arg_buffer(m->buffer[MEAN]),
                                   dev_arg_buffer(m->buffer[SQUARE]),
                                   dev_arg_u32(n),
                                   dev_arg_f32(1.0f / (float)rows),
                                   dev_arg_f32((float)LEARNING_RATE),
                                   dev_arg_f32((float)adam_factor(ADAM_B1, step)),
                                   dev_arg_f32((float)adam_factor(ADAM_B2, step))};

    return LAUNCH(m, ADAM, adam_grid(n), args, (double)ADAM_FLOP * n, 4.0 * n, 3.0 * n);
}
