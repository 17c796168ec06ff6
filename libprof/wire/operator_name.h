/* How PyTorch writes its operators as NVTX ranges (torch/csrc/profiler/util.cpp, getNvtxStr):
 *
 *   aten::mm, seq = 5, op_id = 7, sizes = [[64, 32], [32, 8]], input_op_ids = [(6,0), (0,0)]
 *
 * where all behind the name may be absent. Kept whole, every call would be a name of its own. */
#ifndef PERFKIT_WIRE_OPERATOR_NAME_H
#define PERFKIT_WIRE_OPERATOR_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct wire_operator_name {
    size_t length;        /* of the name alone */
    const char *sizes;    /* "[[64, 32], [32, 8]]", in the text; NULL = absent */
    size_t sizes_length;
    bool has_sequence;
    uint64_t sequence; /* by it a backward operator finds the forward one that it belongs to */
};

/* Does text[0..length) end with `label` and a number? Then it is taken off. */
static inline bool wire_take_number(const char *text, size_t *length, const char *label,
                                    uint64_t *number)
{
    size_t digits = *length, name = strlen(label);
    while (digits > 0 && text[digits - 1] >= '0' && text[digits - 1] <= '9')
        digits--;
    if (digits == *length || *length - digits > 19 || digits <= name ||
        memcmp(text + digits - name, label, name) != 0)
        return false;
    *number = 0;
    for (size_t i = digits; i < *length; i++)
        *number = *number * 10 + (uint64_t)(text[i] - '0');
    *length = digits - name;
    return true;
}

/* The same for a list in brackets, of numbers and lists. */
static inline bool wire_take_list(const char *text, size_t *length, const char *label,
                                  const char **list, size_t *list_length)
{
    size_t at = *length, name = strlen(label);
    if (!at || text[at - 1] != ']')
        return false;
    while (at > 0 && text[at - 1] && strchr("[](), -0123456789", text[at - 1]))
        at--;
    at++; /* the blank that ends the label */
    if (at <= name || text[at] != '[' || memcmp(text + at - name, label, name) != 0)
        return false;
    *list = text + at;
    *list_length = *length - at;
    *length = at - name;
    return true;
}

static inline struct wire_operator_name wire_operator_name(const char *text, size_t length)
{
    struct wire_operator_name name = {.length = length};
    uint64_t operation;
    const char *list;
    size_t list_length;
    wire_take_list(text, &name.length, ", input_op_ids = ", &list, &list_length);
    wire_take_list(text, &name.length, ", sizes = ", &name.sizes, &name.sizes_length);
    wire_take_number(text, &name.length, ", op_id = ", &operation);
    name.has_sequence = wire_take_number(text, &name.length, ", seq = ", &name.sequence);
    return name;
}

/* Longer lists (of operators on all parameters of a model) are not kept. */
#define WIRE_INPUTS_BYTES 2000u

/* The text for range_inputs, "null" where the sizes are too long; returns its length. */
static inline size_t wire_operator_inputs(const struct wire_operator_name *name,
                                          char out[WIRE_INPUTS_BYTES])
{
    int length = snprintf(out, WIRE_INPUTS_BYTES, "{\"sizes\":%.*s}",
                          name->sizes_length < WIRE_INPUTS_BYTES ? (int)name->sizes_length : 0,
                          name->sizes);
    if (name->sizes_length >= WIRE_INPUTS_BYTES || length >= (int)WIRE_INPUTS_BYTES)
        length = snprintf(out, WIRE_INPUTS_BYTES, "null");
    return (size_t)length;
}

#endif
