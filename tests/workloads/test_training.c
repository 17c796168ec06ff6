/* The kernels of training on every backend that this machine has, against their references in
 * double precision; and those references against finite differences, up to the gradient of a whole
 * small model. Sizes that fit no tile and no group. A backend without a device is skipped and
 * named.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/adam/adam.h"
#include "kernels/embedding/embedding.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/softmax/softmax.h"
#include "tests/check_main.h"
#include "tests/workloads/on_device_reference.h"
#include "workloads/transformer/training.h"

#define STEP 1e-5 /* of differences */

static struct dev_buffer *put_tokens(const uint32_t *tokens, size_t count)
{
    return put_bytes(tokens, count * sizeof tokens[0]);
}

/* ---- softmax --------------------------------------------------------------------------------- */

static void check_softmax(uint32_t rows, uint32_t columns, uint32_t period, float scale)
{
    size_t count = (size_t)rows * columns;
    float *x = floats(count), *g = floats(count);
    double *p = doubles(x, count), *by_p = doubles(g, count);
    struct dev_buffer *x_buffer = put(x, count), *g_buffer = put(g, count);
    struct dev_grid grid = softmax_grid(rows, columns);
    const struct dev_arg forward[] = {dev_arg_buffer(x_buffer), dev_arg_u32(columns),
                                      dev_arg_u32(period), dev_arg_f32(scale), softmax_local(grid)};
    const struct dev_arg backward[] = {dev_arg_buffer(x_buffer), dev_arg_buffer(g_buffer),
                                       dev_arg_u32(columns),     dev_arg_u32(period),
                                       dev_arg_f32(scale),       softmax_local(grid)};

    softmax_rows_reference(p, rows, columns, period, (double)scale);
    softmax_backward_reference(p, by_p, rows, columns, period, (double)scale);
    launch(&softmax_module, "softmax_rows", grid, forward, COUNT(forward));
    launch(&softmax_module, "softmax_backward", grid, backward, COUNT(backward));
    expect(x_buffer, p, count, 1e-6);
    expect(g_buffer, by_p, count, 2e-6);
    free(x);
    free(g);
    free(p);
    free(by_p);
}

START_TEST(softmax_of_rows)
{
    if (!open_backend(_i))
        return;
    check_softmax(3, 1, 0, 1);
    check_softmax(5, 1000, 0, 4);
    check_softmax(34, 17, 17, 0.5f);
    check_softmax(3, 257, 0, 20);
    close_backend();
}
END_TEST

/* Large numbers, of either sign, neither overflow nor vanish. */
START_TEST(softmax_of_large_numbers)
{
    enum { COLUMNS = 70 };
    float x[2 * COLUMNS];
    double p[2 * COLUMNS];
    struct dev_grid grid = softmax_grid(2, COLUMNS);

    if (!open_backend(_i))
        return;
    for (int i = 0; i < COLUMNS; i++) {
        x[i] = 1e30f;
        x[COLUMNS + i] = i == 3 ? -1000.0f : -2000.0f;
        p[i] = 1.0 / COLUMNS;
        p[COLUMNS + i] = i == 3;
    }
    {
        struct dev_buffer *buffer = put(x, COUNT(x));
        const struct dev_arg args[] = {dev_arg_buffer(buffer), dev_arg_u32(COLUMNS), dev_arg_u32(0),
                                       dev_arg_f32(1), softmax_local(grid)};

        launch(&softmax_module, "softmax_rows", grid, args, COUNT(args));
        expect(buffer, p, COUNT(x), 1e-6);
    }
    close_backend();
}
END_TEST

START_TEST(loss_of_targets)
{
    enum { SEQUENCES = 3, LENGTH = 7, COLUMNS = 11, ROWS = SEQUENCES * LENGTH, FIRST = 5 };
    uint32_t tokens[SEQUENCES * (LENGTH + 1)];
    float p[ROWS * COLUMNS], losses[FIRST + ROWS];
    double reference[ROWS * COLUMNS], loss_reference[FIRST + ROWS];

    if (!open_backend(_i))
        return;
    for (size_t i = 0; i < COUNT(tokens); i++)
        tokens[i] = (uint32_t)(i * 7 % COLUMNS);
    for (size_t i = 0; i < COUNT(p); i++)
        reference[i] = (double)(p[i] = 0.55f + 0.5f * next_float());
    for (size_t i = 0; i < COUNT(losses); i++)
        loss_reference[i] = (double)(losses[i] = 9);
    softmax_loss_reference(reference, tokens, loss_reference + FIRST, ROWS, COLUMNS, LENGTH);
    {
        struct dev_buffer *p_buffer = put(p, COUNT(p)), *loss_buffer = put(losses, COUNT(losses));
        struct dev_buffer *token_buffer = put_tokens(tokens, COUNT(tokens));
        const struct dev_arg args[] = {dev_arg_buffer(p_buffer),    dev_arg_buffer(token_buffer),
                                       dev_arg_buffer(loss_buffer), dev_arg_u32(FIRST),
                                       dev_arg_u32(ROWS),           dev_arg_u32(COLUMNS),
                                       dev_arg_u32(LENGTH)};

        launch(&softmax_module, "softmax_loss", dev_grid_for(ROWS, 16), args, COUNT(args));
        expect(p_buffer, reference, COUNT(p), 1e-6);
        expect(loss_buffer, loss_reference, COUNT(losses), 1e-5);
        dev_free(token_buffer);
    }
    close_backend();
}
END_TEST

/* ---- normalisation --------------------------------------------------------------------------- */

static void check_norm(uint32_t rows, uint32_t columns)
{
    enum { OFFSET = 6 };
    size_t count = (size_t)rows * columns, weights = OFFSET + 2 * (size_t)columns;
    float *in = floats(count), *g = floats(count), *weight = floats(weights);
    float *gradient = floats(weights), *nothing = floats(2 * (size_t)rows);
    double *in_reference = doubles(in, count), *g_reference = doubles(g, count);
    double *weight_reference = doubles(weight, weights);
    double *gradient_reference = doubles(gradient, weights), *out = doubles(in, count);
    struct dev_buffer *in_buffer = put(in, count), *g_buffer = put(g, count);
    struct dev_buffer *weight_buffer = put(weight, weights), *out_buffer = put(in, count);
    struct dev_buffer *gradient_buffer = put(gradient, weights);
    struct dev_buffer *stats = put(nothing, 2 * (size_t)rows);
    const struct dev_arg forward[] = {dev_arg_buffer(in_buffer),  dev_arg_buffer(weight_buffer),
                                      dev_arg_buffer(out_buffer), dev_arg_buffer(stats),
                                      dev_arg_u32(OFFSET),        dev_arg_u32(columns),
                                      layer_norm_local()};
    const struct dev_arg by_weights[] = {dev_arg_buffer(g_buffer), dev_arg_buffer(in_buffer),
                                         dev_arg_buffer(stats),    dev_arg_buffer(gradient_buffer),
                                         dev_arg_u32(OFFSET),      dev_arg_u32(rows),
                                         dev_arg_u32(columns),     layer_norm_weights_local()};
    const struct dev_arg backward[] = {
        dev_arg_buffer(g_buffer), dev_arg_buffer(in_buffer), dev_arg_buffer(weight_buffer),
        dev_arg_buffer(stats),    dev_arg_u32(OFFSET),       dev_arg_u32(columns),
        layer_norm_local()};

    layer_norm_reference(in_reference, weight_reference + OFFSET, out, rows, columns);
    layer_norm_backward_reference(g_reference, in_reference, weight_reference + OFFSET,
                                  gradient_reference + OFFSET, rows, columns);
    launch(&layer_norm_module, "layer_norm", layer_norm_grid(rows), forward, COUNT(forward));
    launch(&layer_norm_module, "layer_norm_weights", layer_norm_weights_grid(columns), by_weights,
           COUNT(by_weights));
    launch(&layer_norm_module, "layer_norm_backward", layer_norm_grid(rows), backward,
           COUNT(backward));
    expect(out_buffer, out, count, 1e-5);
    expect(gradient_buffer, gradient_reference, weights, 1e-6 * rows + 1e-5);
    expect(g_buffer, g_reference, count, 2e-5);
    dev_free(in_buffer);
    dev_free(weight_buffer);
    dev_free(stats);
    free(in);
    free(g);
    free(weight);
    free(gradient);
    free(nothing);
    free(in_reference);
    free(g_reference);
    free(weight_reference);
    free(gradient_reference);
    free(out);
}

START_TEST(norm_of_rows)
{
    if (!open_backend(_i))
        return;
    check_norm(1, 8);
    check_norm(37, 20);
    check_norm(5, 300);
    close_backend();
}
END_TEST

/* ---- embedding and Adam ---------------------------------------------------------------------- */

START_TEST(embedding_and_back)
{
    enum { SEQUENCES = 3, LENGTH = 9, COLUMNS = 13, VOCABULARY = 6, ROWS = SEQUENCES * LENGTH };
    enum { POSITIONS = VOCABULARY * COLUMNS, WEIGHTS = POSITIONS + LENGTH * COLUMNS };
    uint32_t tokens[SEQUENCES * (LENGTH + 1)];
    float *weights, *g, *gradients;
    double *weight_reference, *g_reference, *gradient_reference, out[ROWS * COLUMNS];

    if (!open_backend(_i))
        return;
    for (size_t i = 0; i < COUNT(tokens); i++)
        tokens[i] = (uint32_t)(i * i % (VOCABULARY - 1)); /* repeated; one never comes */
    weights = floats(WEIGHTS);
    g = floats(ROWS * COLUMNS);
    gradients = floats(WEIGHTS);
    weight_reference = doubles(weights, WEIGHTS);
    g_reference = doubles(g, ROWS * COLUMNS);
    gradient_reference = doubles(gradients, WEIGHTS);
    embedding_reference(weight_reference, tokens, out, ROWS, COLUMNS, LENGTH, POSITIONS);
    embedding_backward_reference(g_reference, tokens, gradient_reference, ROWS, COLUMNS, LENGTH,
                                 POSITIONS);
    {
        struct dev_buffer *weight_buffer = put(weights, WEIGHTS),
                          *g_buffer = put(g, ROWS * COLUMNS);
        struct dev_buffer *gradient_buffer = put(gradients, WEIGHTS);
        struct dev_buffer *out_buffer = put(g, ROWS * COLUMNS);
        struct dev_buffer *token_buffer = put_tokens(tokens, COUNT(tokens));
        const struct dev_arg lookup[] = {
            dev_arg_buffer(weight_buffer), dev_arg_buffer(token_buffer),
            dev_arg_buffer(out_buffer),    dev_arg_u32(ROWS),
            dev_arg_u32(COLUMNS),          dev_arg_u32(LENGTH),
            dev_arg_u32(POSITIONS)};
        const struct dev_arg by_tokens[] = {
            dev_arg_buffer(g_buffer), dev_arg_buffer(token_buffer), dev_arg_buffer(gradient_buffer),
            dev_arg_u32(ROWS),        dev_arg_u32(COLUMNS),         dev_arg_u32(LENGTH)};
        const struct dev_arg by_positions[] = {
            dev_arg_buffer(g_buffer), dev_arg_buffer(gradient_buffer),
            dev_arg_u32(ROWS),        dev_arg_u32(COLUMNS),
            dev_arg_u32(LENGTH),      dev_arg_u32(POSITIONS)};

        launch(&embedding_module, "embedding_lookup", dev_grid_for(ROWS * COLUMNS, 64), lookup,
               COUNT(lookup));
        launch(&embedding_module, "embedding_tokens", (struct dev_grid){ROWS, EMBEDDING_ITEMS},
               by_tokens, COUNT(by_tokens));
        launch(&embedding_module, "embedding_positions", dev_grid_for(LENGTH * COLUMNS, 64),
               by_positions, COUNT(by_positions));
        expect(out_buffer, out, ROWS * COLUMNS, 1e-6);
        expect(gradient_buffer, gradient_reference, WEIGHTS, 1e-5);
        dev_free(weight_buffer);
        dev_free(g_buffer);
        dev_free(token_buffer);
    }
    free(weights);
    free(g);
    free(gradients);
    free(weight_reference);
    free(g_reference);
    free(gradient_reference);
    close_backend();
}
END_TEST

START_TEST(adam_moves_weights)
{
    enum { N = 1028, STEPS = 3 };
    float *weights, *gradients, zeros[N] = {0};
    double *weight_reference, *gradient_reference, m[N] = {0}, v[N] = {0};
    struct dev_buffer *weight_buffer, *gradient_buffer, *m_buffer, *v_buffer;

    if (!open_backend(_i))
        return;
    weights = floats(N);
    gradients = floats(N);
    gradients[5] = 0;
    weight_reference = doubles(weights, N);
    gradient_reference = doubles(gradients, N);
    weight_buffer = put(weights, N);
    gradient_buffer = put(gradients, N);
    m_buffer = put(zeros, N);
    v_buffer = put(zeros, N);
    for (uint32_t step = 1; step <= STEPS; step++) {
        const struct dev_arg args[] = {dev_arg_buffer(weight_buffer),
                                       dev_arg_buffer(gradient_buffer),
                                       dev_arg_buffer(m_buffer),
                                       dev_arg_buffer(v_buffer),
                                       dev_arg_u32(N),
                                       dev_arg_f32(0.25f),
                                       dev_arg_f32(0.01f),
                                       dev_arg_f32((float)adam_factor(ADAM_B1, step)),
                                       dev_arg_f32((float)adam_factor(ADAM_B2, step))};

        launch(&adam_module, "adam", adam_grid(N), args, COUNT(args));
        adam_reference(weight_reference, gradient_reference, m, v, N, 0.25, 0.01, step);
    }
    expect(weight_buffer, weight_reference, N, 1e-5);
    expect(m_buffer, m, N, 1e-6);
    expect(v_buffer, v, N, 1e-6);
    dev_free(gradient_buffer);
    free(weights);
    free(gradients);
    free(weight_reference);
    free(gradient_reference);
    close_backend();
}
END_TEST

/* ---- finite differences ---------------------------------------------------------------------- */

/* The reference's gradient by every weight of a small model of two layers. */
START_TEST(gradient_is_that_of_the_loss)
{
    const struct shape shape = {.sequences = 2,
                                .length = 5,
                                .width = 8,
                                .heads = 2,
                                .layers = 2,
                                .hidden = 12,
                                .vocabulary = 9};
    size_t count = layout_of(&shape).count;
    float *first = weights_make(&shape, 3);
    uint32_t *corpus = corpus_make(&shape, 3);
    double *weights = doubles(first, count), *gradient = malloc(count * sizeof gradient[0]);
    double difference = 0, norm = 0, losses[10], sum = 0, loss;

    ck_assert(corpus && gradient);
    loss = reference_loss(&shape, weights, corpus, losses, gradient, NULL);
    for (size_t row = 0; row < 10; row++)
        sum += losses[row];
    ck_assert_double_eq_tol(loss, sum, 1e-12);
    for (size_t i = 0; i < count; i++) {
        double kept = weights[i], above, below, slope;

        weights[i] = kept + STEP;
        above = reference_loss(&shape, weights, corpus, NULL, NULL, NULL);
        weights[i] = kept - STEP;
        below = reference_loss(&shape, weights, corpus, NULL, NULL, NULL);
        weights[i] = kept;
        slope = (above - below) / (2 * STEP);
        ck_assert_msg(fabs(slope - gradient[i]) <= 1e-5 * (1 + fabs(slope)), "[%zu] is %g, not %g",
                      i, gradient[i], slope);
        difference += (slope - gradient[i]) * (slope - gradient[i]);
        norm += slope * slope;
    }
    ck_assert_double_gt(norm, 0);
    ck_assert_double_le(sqrt(difference / norm), 1e-6);
    free(first);
    free(corpus);
    free(weights);
    free(gradient);
}
END_TEST

/* A later token must not change the losses of the rows before it. */
START_TEST(attention_is_causal)
{
    const struct shape shape = {.sequences = 1,
                                .length = 6,
                                .width = 8,
                                .heads = 2,
                                .layers = 2,
                                .hidden = 12,
                                .vocabulary = 9};
    float *first = weights_make(&shape, 3);
    uint32_t tokens[7] = {1, 2, 3, 4, 5, 6, 7};
    double *weights = doubles(first, layout_of(&shape).count), before[6], after[6];

    reference_loss(&shape, weights, tokens, before, NULL, NULL);
    tokens[4] = 8; /* the input of row 4, the target of row 3 */
    reference_loss(&shape, weights, tokens, after, NULL, NULL);
    for (int row = 0; row < 6; row++)
        ck_assert_int_eq(before[row] == after[row], row < 3);
    free(first);
    free(weights);
}
END_TEST

START_TEST(training_in_double_lowers_the_loss)
{
    const struct shape shape = {.sequences = 2,
                                .length = 16,
                                .width = 32,
                                .heads = 4,
                                .layers = 1,
                                .hidden = 128,
                                .vocabulary = 50};
    float *weights = weights_make(&shape, 1);
    uint32_t *corpus = corpus_make(&shape, 1);
    struct reference reference;
    size_t rows = rows_of(&shape);
    double first = 0, last = 0;

    ck_assert(weights && corpus);
    ck_assert_int_eq(reference_make(&shape, weights, corpus, &reference), 0);
    for (size_t row = 0; row < rows; row++) {
        first += reference.losses[row];
        last += reference.losses[CORPUS_BATCHES * rows + row]; /* the same batch again */
    }
    ck_assert_double_lt(last, first);
    reference_free(&reference);
    free(weights);
    free(corpus);
}
END_TEST

CHECK_MAIN_LOOPS("training", {softmax_of_rows, 3}, {softmax_of_large_numbers, 3},
                 {loss_of_targets, 3}, {norm_of_rows, 3}, {embedding_and_back, 3},
                 {adam_moves_weights, 3}, {gradient_is_that_of_the_loss, 1},
                 {attention_is_causal, 1}, {training_in_double_lowers_the_loss, 1})
