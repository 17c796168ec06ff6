/* Training in double precision: the whole batch in one pass, put together from the kernels'
 * references. That its gradient is the loss's is proved by differences (tests/workloads).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/adam/adam.h"
#include "kernels/device/parallel.h"
#include "kernels/embedding/embedding.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/matmul/matmul.h"
#include "kernels/softmax/softmax.h"
#include "workloads/transformer/attention.h"
#include "workloads/transformer/training.h"

#define SINGLE_ERROR                                                                               \
    2e-6 /* of a gate's input in single precision: half a thousand terms of both signs */
#define SMALL_SOFTMAX 100000 /* logits, about 1 ms: not worth the start of a thread */

/* What a pass keeps of a layer for the way back. */
struct kept {
    double *qkv, *scores, *context, *sum1, *norm1, *hidden, *sum2, *norm2;
};

struct pass {
    const struct shape *shape;
    struct layout layout;
    const double *weights;
    const uint32_t *tokens;
    uint32_t rows;
    double *in; /* of the first layer */
    struct kept kept[MAX_LAYERS];
    double *logits;
    double *g, *context_gradient, *qkv_gradient, *score_gradient;
    double *memory;
};

/* The next `count` doubles of `memory`, which may not be there yet. */
static double *part(double *memory, size_t *used, size_t count)
{
    size_t at = *used;

    *used += count;
    return memory ? memory + at : NULL;
}

/* Lays the arrays out; returns how many doubles they take. */
static size_t lay_out(struct pass *p, double *memory)
{
    const struct shape *s = p->shape;
    size_t features = (size_t)p->rows * s->width, scores = attention_scores(s, s->sequences);
    size_t used = 0;

    p->in = part(memory, &used, features);
    for (uint32_t l = 0; l < s->layers; l++) {
        struct kept *kept = &p->kept[l];

        kept->qkv = part(memory, &used, 3 * features);
        kept->scores = part(memory, &used, scores);
        kept->context = part(memory, &used, features);
        kept->sum1 = part(memory, &used, features);
        kept->norm1 = part(memory, &used, features);
        kept->hidden = part(memory, &used, (size_t)p->rows * s->hidden);
        kept->sum2 = part(memory, &used, features);
        kept->norm2 = part(memory, &used, features);
    }
    p->logits = part(memory, &used, (size_t)p->rows * s->vocabulary);
    p->g = part(memory, &used, features);
    p->context_gradient = part(memory, &used, features);
    p->qkv_gradient = part(memory, &used, 3 * features);
    p->score_gradient = part(memory, &used, scores);
    return used;
}

static int pass_open(struct pass *p)
{
    p->memory = malloc(lay_out(p, NULL) * sizeof p->memory[0]);
    if (!p->memory)
        return -1;
    lay_out(p, p->memory);
    return 0;
}

/* c = a W, with flags; W stands at `weight`. */
static int apply(const struct pass *p, const double *a, uint32_t weight, uint32_t in, uint32_t out,
                 uint32_t flags, double *c, const double *d)
{
    struct matmul_shape shape = dense_shape(p->rows, out, in, flags);

    return matmul_reference(&shape, a, p->weights + weight, c, d);
}

/* The gradient by the input of the above: c = g W'. */
static int apply_back(const struct pass *p, const double *g, uint32_t weight, uint32_t in,
                      uint32_t out, uint32_t flags, double *c, const double *d)
{
    struct matmul_shape shape = dense_shape(p->rows, in, out, flags | MATMUL_B_TRANSPOSED);

    return matmul_reference(&shape, g, p->weights + weight, c, d);
}

/* The gradient by the weights: added to gradient. */
static int apply_weights(const struct pass *p, const double *a, const double *g, uint32_t weight,
                         uint32_t in, uint32_t out, double *gradient)
{
    struct matmul_shape shape = dense_shape(in, out, p->rows, MATMUL_A_TRANSPOSED | MATMUL_ADD);

    return matmul_reference(&shape, a, g, gradient + weight, gradient + weight);
}

static int attention_step(const struct pass *p, enum attention_product which, const double *a,
                          const double *b, double *c)
{
    struct matmul_shape shape = attention_shape(p->shape, p->shape->sequences, which);

    return matmul_reference(&shape, a, b, c, NULL);
}

static uint32_t score_rows(const struct pass *p)
{
    return p->rows * p->shape->heads;
}

static int layer_forward(struct pass *p, uint32_t l, const double *in)
{
    const struct shape *s = p->shape;
    const struct layer_layout *at = &p->layout.layer[l];
    struct kept *k = &p->kept[l];
    int failed = apply(p, in, at->qkv, s->width, 3 * s->width, 0, k->qkv, NULL);

    failed |= attention_step(p, ATTENTION_SCORES, k->qkv, k->qkv, k->scores);
    softmax_rows_reference(k->scores, score_rows(p), s->length, s->length, attention_scale(s));
    failed |= attention_step(p, ATTENTION_CONTEXT, k->scores, k->qkv, k->context);
    failed |= apply(p, k->context, at->out, s->width, s->width, MATMUL_ADD, k->sum1, in);
    layer_norm_reference(k->sum1, p->weights + at->norm1, k->norm1, p->rows, s->width);
    failed |= apply(p, k->norm1, at->up, s->width, s->hidden, MATMUL_RELU, k->hidden, NULL);
    failed |= apply(p, k->hidden, at->down, s->hidden, s->width, MATMUL_ADD, k->sum2, k->norm1);
    layer_norm_reference(k->sum2, p->weights + at->norm2, k->norm2, p->rows, s->width);
    return failed;
}

static int attention_backward(struct pass *p, const struct kept *k)
{
    const struct shape *s = p->shape;
    int failed = attention_step(p, ATTENTION_VALUE_GRADIENT, k->scores, p->context_gradient,
                                p->qkv_gradient);

    failed |=
        attention_step(p, ATTENTION_SCORE_GRADIENT, p->context_gradient, k->qkv, p->score_gradient);
    softmax_backward_reference(k->scores, p->score_gradient, score_rows(p), s->length, s->length,
                               attention_scale(s));
    failed |=
        attention_step(p, ATTENTION_QUERY_GRADIENT, p->score_gradient, k->qkv, p->qkv_gradient);
    failed |= attention_step(p, ATTENTION_KEY_GRADIENT, p->score_gradient, k->qkv, p->qkv_gradient);
    return failed;
}

/* p->g: from the gradient by the layer's output to the one by its input. */
static int layer_backward(struct pass *p, uint32_t l, const double *in, double *gradient)
{
    const struct shape *s = p->shape;
    const struct layer_layout *at = &p->layout.layer[l];
    struct kept *k = &p->kept[l];
    int failed;

    layer_norm_backward_reference(p->g, k->sum2, p->weights + at->norm2, gradient + at->norm2,
                                  p->rows, s->width);
    failed = apply_weights(p, k->hidden, p->g, at->down, s->hidden, s->width, gradient);
    failed |= apply_back(p, p->g, at->down, s->hidden, s->width, MATMUL_GATE, k->hidden, NULL);
    failed |= apply_weights(p, k->norm1, k->hidden, at->up, s->width, s->hidden, gradient);
    failed |= apply_back(p, k->hidden, at->up, s->width, s->hidden, MATMUL_ADD, p->g, p->g);
    layer_norm_backward_reference(p->g, k->sum1, p->weights + at->norm1, gradient + at->norm1,
                                  p->rows, s->width);
    failed |= apply_weights(p, k->context, p->g, at->out, s->width, s->width, gradient);
    failed |= apply_back(p, p->g, at->out, s->width, s->width, 0, p->context_gradient, NULL);
    failed |= attention_backward(p, k);
    failed |= apply_weights(p, in, p->qkv_gradient, at->qkv, s->width, 3 * s->width, gradient);
    failed |=
        apply_back(p, p->qkv_gradient, at->qkv, s->width, 3 * s->width, MATMUL_ADD, p->g, p->g);
    return failed;
}

static const double *layer_input(const struct pass *p, uint32_t l)
{
    return l == 0 ? p->in : p->kept[l - 1].norm2;
}

/* Half of what is computed beside the products, so it is shared out as they are. */
static void logits_softmax(void *context, uint64_t first, uint64_t end)
{
    const struct pass *p = context;
    uint32_t columns = p->shape->vocabulary;

    softmax_rows_reference(p->logits + first * columns, (uint32_t)(end - first), columns, 0, 1);
}

static int forward(struct pass *p, double *losses)
{
    const struct shape *s = p->shape;
    int failed = 0;

    embedding_reference(p->weights, p->tokens, p->in, p->rows, s->width, s->length,
                        p->layout.positions);
    for (uint32_t l = 0; l < s->layers; l++)
        failed |= layer_forward(p, l, layer_input(p, l));
    failed |= apply(p, layer_input(p, s->layers), p->layout.head, s->width, s->vocabulary, 0,
                    p->logits, NULL);
    parallel_for((size_t)p->rows * s->vocabulary < SMALL_SOFTMAX ? 1 : 0, p->rows, logits_softmax,
                 p);
    softmax_loss_reference(p->logits, p->tokens, losses, p->rows, s->vocabulary, s->length);
    return failed;
}

static int backward(struct pass *p, double *gradient)
{
    const struct shape *s = p->shape;
    int failed = apply_weights(p, layer_input(p, s->layers), p->logits, p->layout.head, s->width,
                               s->vocabulary, gradient);

    failed |= apply_back(p, p->logits, p->layout.head, s->width, s->vocabulary, 0, p->g, NULL);
    for (uint32_t l = s->layers; l-- > 0;)
        failed |= layer_backward(p, l, layer_input(p, l), gradient);
    embedding_backward_reference(p->g, p->tokens, gradient, p->rows, s->width, s->length,
                                 p->layout.positions);
    return failed;
}

/* Half of the gates that may open in one precision and stay shut in another are seen: those that
 * are open here. */
static double doubtful_gates(const struct pass *p)
{
    const struct shape *s = p->shape;
    size_t count = (size_t)p->rows * s->hidden, open = 0, doubtful = 0;

    for (uint32_t l = 0; l < s->layers; l++) {
        const double *hidden = p->kept[l].hidden;
        double squares = 0;
        size_t of_layer = 0;

        for (size_t i = 0; i < count; i++) {
            squares += hidden[i] * hidden[i];
            of_layer += hidden[i] > 0;
        }
        for (size_t i = 0; i < count; i++)
            doubtful += hidden[i] > 0 && hidden[i] * hidden[i] * (double)of_layer <
                                             SINGLE_ERROR * SINGLE_ERROR * squares;
        open += of_layer;
    }
    return open > 0 ? 2 * (double)doubtful / (double)open : 0;
}

double reference_loss(const struct shape *shape, const double *weights, const uint32_t *tokens,
                      double *losses, double *gradient, double *doubtful)
{
    struct pass pass = {.shape = shape,
                        .layout = layout_of(shape),
                        .weights = weights,
                        .tokens = tokens,
                        .rows = (uint32_t)rows_of(shape)};
    double *own = malloc(pass.rows * sizeof own[0]), sum = 0;
    int failed = !own || pass_open(&pass) != 0;

    if (!failed)
        failed = forward(&pass, own);
    for (uint32_t row = 0; row < pass.rows && !failed; row++)
        sum += own[row];
    if (!failed && losses)
        memcpy(losses, own, pass.rows * sizeof own[0]);
    if (!failed && doubtful)
        *doubtful = doubtful_gates(&pass);
    if (!failed && gradient) {
        memset(gradient, 0, pass.layout.count * sizeof gradient[0]);
        failed = backward(&pass, gradient);
    }
    free(pass.memory);
    free(own);
    return failed ? NAN : sum;
}

/* What training keeps between its steps. */
struct trainer {
    double *gradient, *m, *v;
};

static int train(const struct shape *shape, const uint32_t *corpus, struct reference *r,
                 struct trainer *t)
{
    size_t rows = rows_of(shape), count = layout_of(shape).count;

    for (uint32_t step = 0; step < VERIFY_STEPS; step++) {
        const uint32_t *tokens = corpus + step % CORPUS_BATCHES * batch_tokens(shape);

        if (isnan(reference_loss(shape, r->weights, tokens, r->losses + step * rows, t->gradient,
                                 step == 0 ? &r->doubtful_gates : NULL)))
            return -1;
        if (step == 0)
            memcpy(r->gradient, t->gradient, count * sizeof r->gradient[0]);
        adam_reference(r->weights, t->gradient, t->m, t->v, count, 1.0 / (double)rows,
                       LEARNING_RATE, step + 1);
    }
    return 0;
}

int reference_make(const struct shape *shape, const float *weights, const uint32_t *corpus,
                   struct reference *r)
{
    size_t count = layout_of(shape).count;
    struct trainer t = {.gradient = malloc(count * sizeof(double)),
                        .m = calloc(count, sizeof(double)),
                        .v = calloc(count, sizeof(double))};
    int result = -1;

    *r = (struct reference){.shape = *shape};
    r->losses = malloc(VERIFY_STEPS * rows_of(shape) * sizeof r->losses[0]);
    r->gradient = malloc(count * sizeof r->gradient[0]);
    r->weights = malloc(count * sizeof r->weights[0]);
    if (t.gradient && t.m && t.v && r->losses && r->gradient && r->weights) {
        for (size_t i = 0; i < count; i++)
            r->weights[i] = (double)weights[i];
        result = train(shape, corpus, r, &t);
    }
    free(t.gradient);
    free(t.m);
    free(t.v);
    if (result != 0)
        reference_free(r);
    return result;
}

void reference_free(struct reference *r)
{
    free(r->losses);
    free(r->gradient);
    free(r->weights);
    *r = (struct reference){0};
}

void reference_check_gradient(const struct reference *r, const float *gradient, struct check *check)
{
    struct layout layout = layout_of(&r->shape);
    uint32_t begin[3 + 6 * MAX_LAYERS + 1];
    size_t parts = 0;

    begin[parts++] = layout.tokens;
    begin[parts++] = layout.positions;
    for (uint32_t l = 0; l < r->shape.layers; l++) {
        const struct layer_layout *layer = &layout.layer[l];

        begin[parts++] = layer->qkv;
        begin[parts++] = layer->out;
        begin[parts++] = layer->norm1;
        begin[parts++] = layer->up;
        begin[parts++] = layer->down;
        begin[parts++] = layer->norm2;
    }
    begin[parts++] = layout.head;
    begin[parts] = layout.count;
    for (size_t i = 0; i < parts; i++)
        check_note(check, relative_error(gradient + begin[i], r->gradient + begin[i],
                                         begin[i + 1] - begin[i]));
}
