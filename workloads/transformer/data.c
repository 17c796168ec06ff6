/* Where a model's weights stand, its first weights, and the corpus. */
#include <math.h>
#include <stdlib.h>

#include "workloads/common/random.h"
#include "workloads/transformer/training.h"

#define FOLLOWERS 4 /* tokens that usually come after a token */

double weights_of(const struct shape *s)
{
    double layer = s->width * (4.0 * s->width + 2.0 * s->hidden + 4);

    return s->width * (2.0 * s->vocabulary + s->length) + s->layers * layer;
}

double largest_matrix_of(const struct shape *s)
{
    double rows = (double)s->sequences * s->length;
    double features = rows * (s->hidden > s->vocabulary ? s->hidden : s->vocabulary);

    return fmax(features, rows * s->heads * s->length);
}

static uint32_t take(uint32_t *next, uint32_t floats)
{
    uint32_t at = *next;

    *next += floats;
    return at;
}

struct layout layout_of(const struct shape *s)
{
    struct layout layout = {.count = 0};
    uint32_t next = 0;

    layout.tokens = take(&next, s->vocabulary * s->width);
    layout.positions = take(&next, s->length * s->width);
    for (uint32_t l = 0; l < s->layers; l++) {
        struct layer_layout *layer = &layout.layer[l];

        layer->qkv = take(&next, 3 * s->width * s->width);
        layer->out = take(&next, s->width * s->width);
        layer->norm1 = take(&next, 2 * s->width);
        layer->up = take(&next, s->width * s->hidden);
        layer->down = take(&next, s->hidden * s->width);
        layer->norm2 = take(&next, 2 * s->width);
    }
    layout.head = take(&next, s->width * s->vocabulary);
    layout.count = next;
    return layout;
}

static void fill(struct random *random, float *to, uint32_t count, float size)
{
    for (uint32_t i = 0; i < count; i++)
        to[i] = size * random_signed(random);
}

/* Of a matrix with `in` rows: variance 1 / in. */
static void fill_matrix(struct random *random, float *to, uint32_t in, uint32_t out)
{
    fill(random, to, in * out, sqrtf(3.0f / (float)in));
}

static void fill_norm(float *to, uint32_t width)
{
    for (uint32_t i = 0; i < width; i++) {
        to[i] = 1;
        to[width + i] = 0;
    }
}

float *weights_make(const struct shape *s, uint64_t seed)
{
    struct layout layout = layout_of(s);
    struct random random = {.state = seed * 2 + 1};
    float *weights = malloc(layout.count * sizeof weights[0]);

    if (!weights)
        return NULL;
    fill(&random, weights + layout.tokens, s->vocabulary * s->width, 1);
    fill(&random, weights + layout.positions, s->length * s->width, 1);
    for (uint32_t l = 0; l < s->layers; l++) {
        const struct layer_layout *layer = &layout.layer[l];

        fill_matrix(&random, weights + layer->qkv, s->width, 3 * s->width);
        fill_matrix(&random, weights + layer->out, s->width, s->width);
        fill_norm(weights + layer->norm1, s->width);
        fill_matrix(&random, weights + layer->up, s->width, s->hidden);
        fill_matrix(&random, weights + layer->down, s->hidden, s->width);
        fill_norm(weights + layer->norm2, s->width);
    }
    fill_matrix(&random, weights + layout.head, s->width, s->vocabulary);
    return weights;
}

/* Frequent tokens are the low ones: the square of a uniform number. */
static uint32_t any_token(struct random *random, uint32_t vocabulary)
{
    float unit = random_unit(random);
    uint32_t token = (uint32_t)(unit * unit * (float)vocabulary);

    return token < vocabulary ? token : vocabulary - 1;
}

/* One of those that usually follow `token`, the same for a token everywhere. */
static uint32_t follower(struct random *random, uint32_t token, uint64_t seed, uint32_t vocabulary)
{
    struct random own = {.state = seed + token * 0x51edu};

    own.state = random_u64(&own) + random_below(random, FOLLOWERS);
    return any_token(&own, vocabulary);
}

uint32_t *corpus_make(const struct shape *s, uint64_t seed)
{
    size_t count = CORPUS_BATCHES * batch_tokens(s);
    struct random random = {.state = seed * 2};
    uint32_t *tokens = malloc(count * sizeof tokens[0]);

    for (size_t i = 0; tokens && i < count; i++) {
        if (i % (s->length + 1) == 0 || random_below(&random, 4) == 0)
            tokens[i] = any_token(&random, s->vocabulary);
        else
            tokens[i] = follower(&random, tokens[i - 1], seed, s->vocabulary);
    }
    return tokens;
}
