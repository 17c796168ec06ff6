/* The products of attention as parts of larger matrices. */
#include "workloads/transformer/attention.h"

enum operand { QUERIES, KEYS, VALUES, SCORES, CONTEXT };

static struct matmul_part part_of(const struct shape *s, enum operand operand)
{
    uint32_t head = s->width / s->heads, square = s->length * s->length;

    if (operand == SCORES)
        return (struct matmul_part){
            .stride = s->length, .outer = s->heads * square, .inner = square};
    if (operand == CONTEXT)
        return (struct matmul_part){
            .stride = s->width, .outer = s->length * s->width, .inner = head};
    return (struct matmul_part){.offset = (uint32_t)operand * s->width,
                                .stride = 3 * s->width,
                                .outer = 3 * s->length * s->width,
                                .inner = head};
}

struct matmul_shape attention_shape(const struct shape *s, uint32_t sequences,
                                    enum attention_product which)
{
    static const struct {
        enum operand a, b, c;
        uint32_t flags;
    } products[] = {
        [ATTENTION_SCORES] = {QUERIES, KEYS, SCORES, MATMUL_B_TRANSPOSED},
        [ATTENTION_CONTEXT] = {SCORES, VALUES, CONTEXT, 0},
        [ATTENTION_VALUE_GRADIENT] = {SCORES, CONTEXT, VALUES, MATMUL_A_TRANSPOSED},
        [ATTENTION_SCORE_GRADIENT] = {CONTEXT, VALUES, SCORES, MATMUL_B_TRANSPOSED},
        [ATTENTION_QUERY_GRADIENT] = {SCORES, KEYS, QUERIES, 0},
        [ATTENTION_KEY_GRADIENT] = {SCORES, QUERIES, KEYS, MATMUL_A_TRANSPOSED},
    };
    uint32_t head = s->width / s->heads;
    bool to_scores = products[which].c == SCORES;

    return (struct matmul_shape){.m = s->length,
                                 .n = to_scores ? s->length : head,
                                 .k = to_scores ? head : s->length,
                                 .flags = products[which].flags,
                                 .outer = sequences,
                                 .inner = s->heads,
                                 .a = part_of(s, products[which].a),
                                 .b = part_of(s, products[which].b),
                                 .c = part_of(s, products[which].c)};
}
