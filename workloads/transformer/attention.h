/* The shapes of the model's products, for the device and for the reference alike. */
#ifndef WORKLOADS_TRANSFORMER_ATTENTION_H
#define WORKLOADS_TRANSFORMER_ATTENTION_H

#include <math.h>

#include "kernels/matmul/matmul.h"
#include "workloads/transformer/training.h"

/* Whole matrices without gaps. */
static inline struct matmul_shape dense_shape(uint32_t m, uint32_t n, uint32_t k, uint32_t flags)
{
    return (struct matmul_shape){.m = m,
                                 .n = n,
                                 .k = k,
                                 .flags = flags,
                                 .outer = 1,
                                 .inner = 1,
                                 .a.stride = flags & MATMUL_A_TRANSPOSED ? m : k,
                                 .b.stride = flags & MATMUL_B_TRANSPOSED ? k : n,
                                 .c.stride = n};
}

/* The products of attention, one for each head of each sequence: what they multiply, and what the
 * result is written to. Queries, keys and values stand side by side in the rows of qkv. */
enum attention_product {
    ATTENTION_SCORES,         /* queries keys'          qkv, qkv            scores */
    ATTENTION_CONTEXT,        /* scores values          scores, qkv         context */
    ATTENTION_VALUE_GRADIENT, /* scores' of context     scores, context     qkv */
    ATTENTION_SCORE_GRADIENT, /* of context values'     context, qkv        scores */
    ATTENTION_QUERY_GRADIENT, /* of scores keys         scores, qkv         qkv */
    ATTENTION_KEY_GRADIENT,   /* of scores' queries     scores, qkv         qkv */
};

static inline size_t attention_scores(const struct shape *s, uint32_t sequences)
{
    return (size_t)sequences * s->heads * s->length * s->length;
}

static inline double attention_scale(const struct shape *s)
{
    return 1 / sqrt((double)s->width / s->heads);
}

struct matmul_shape attention_shape(const struct shape *shape, uint32_t sequences,
                                    enum attention_product which);

#endif
