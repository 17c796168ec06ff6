/* The formulas, and what is read of an operator's inputs for them. Inputs come from files that may
 * hold anything: sizes are whole numbers from 0 to 2^53, of at most MOST_DIMENSIONS dimensions. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/json.h"
#include "libprof/gpu/operator_flop.h"

#define MOST_DIMENSIONS 16
#define MOST_FLOP 1e24 /* more was not computed by one operator: 16 minutes of 1 EFLOP/s are 1e21 */

struct shape {
    int count; /* 0 = no tensor */
    double size[MOST_DIMENSIONS];
};

struct inputs {
    const cJSON *sizes, *types, *arguments; /* arrays, or NULL */
};

static bool read_input_sizes(const struct inputs *in, int at, struct shape *shape)
{
    const cJSON *list = in->sizes ? cJSON_GetArrayItem(in->sizes, at) : NULL, *item;
    *shape = (struct shape){0};
    if (!cJSON_IsArray(list))
        return false;
    cJSON_ArrayForEach(item, list)
    {
        int64_t value;
        if (shape->count == MOST_DIMENSIONS || !prof_document_int(item, &value) || value < 0 ||
            value > (INT64_C(1) << 53))
            return false;
        shape->size[shape->count++] = (double)value;
    }
    return shape->count > 0;
}

static double product_of_sizes(const struct shape *shape, int from, int to)
{
    double all = 1;
    for (int i = from; i < to; i++)
        all *= shape->size[i];
    return all;
}

/* ---- products of matrices -------------------------------------------------------------------- */

/* [..., m, k] x [..., k, n] with broadcast batches; vectors have the missing 1. */
static double matmul(const struct shape *a, const struct shape *b)
{
    struct shape x = *a, y = *b;
    if (x.count == 1)
        x = (struct shape){2, {1, a->size[0]}};
    if (y.count == 1)
        y = (struct shape){2, {b->size[0], 1}};
    if (x.size[x.count - 1] != y.size[y.count - 2])
        return NAN;
    int batches = (x.count > y.count ? x.count : y.count) - 2;
    double all = 2 * x.size[x.count - 2] * x.size[x.count - 1] * y.size[y.count - 1];
    for (int i = 0; i < batches; i++) {
        int p = x.count - 3 - i, q = y.count - 3 - i;
        double of_x = p >= 0 ? x.size[p] : 1, of_y = q >= 0 ? y.size[q] : 1;
        if (of_x != of_y && of_x != 1 && of_y != 1)
            return NAN;
        all *= of_x == 1 ? of_y : of_x;
    }
    return all;
}

/* mm, bmm; behind a first input that is added: addmm, baddbmm. `first`: of the two. */
static double product_flop(const struct inputs *in, int first)
{
    struct shape a, b;
    return read_input_sizes(in, first, &a) && read_input_sizes(in, first + 1, &b) ? matmul(&a, &b) : NAN;
}

/* linear(x [..., k], weight [n, k]) */
static double linear_flop(const struct inputs *in, int first)
{
    struct shape x, weight;
    if (!read_input_sizes(in, first, &x) || !read_input_sizes(in, first + 1, &weight) || weight.count != 2 ||
        x.size[x.count - 1] != weight.size[1])
        return NAN;
    return 2 * product_of_sizes(&x, 0, x.count) * weight.size[0];
}

/* ---- convolutions ---------------------------------------------------------------------------- */

static const char *argument(const struct inputs *in, int at)
{
    const cJSON *item = in->arguments ? cJSON_GetArrayItem(in->arguments, at) : NULL;
    return item ? cJSON_GetStringValue(item) : NULL;
}

/* -1: it is neither */
static int flag(const char *text)
{
    return !text ? -1 : !strcmp(text, "True") ? 1 : !strcmp(text, "False") ? 0 : -1;
}

/* "[1, 2]": for each of `count` dimensions a number from `least` on; one number is for all. */
static bool read_numbers(const char *text, int count, double least, double out[MOST_DIMENSIONS])
{
    int read = 0;
    if (!text || *text++ != '[')
        return false;
    for (; *text && *text != ']'; text += *text == ',') {
        char *end;
        long long value = strtoll(text, &end, 10);
        if (end == text || (*end != ',' && *end != ']') || read == count ||
            (double)value < least || value > (1LL << 53))
            return false;
        out[read++] = (double)value;
        text = end;
    }
    for (int i = read; read == 1 && i < count; i++)
        out[i] = out[0];
    return *text == ']' && (read == count || read == 1);
}

/* convolution(x [n, c, ...], weight [o, c/groups, ...], bias, stride, padding, dilation,
 * transposed, ...): each point of the output, of a transposed one of the input, takes all of the
 * weight. */
static double convolution_flop(const struct inputs *in, int first)
{
    struct shape x, weight;
    double stride[MOST_DIMENSIONS], padding[MOST_DIMENSIONS], dilation[MOST_DIMENSIONS];
    int transposed = flag(argument(in, first + 6));
    if (!read_input_sizes(in, first, &x) || !read_input_sizes(in, first + 1, &weight) || x.count < 3 ||
        x.count != weight.count || transposed < 0)
        return NAN;
    double all = 2 * x.size[0] * product_of_sizes(&weight, 0, weight.count);
    if (transposed)
        return all * product_of_sizes(&x, 2, x.count);
    int count = x.count - 2;
    if (!read_numbers(argument(in, first + 3), count, 1, stride) ||
        !read_numbers(argument(in, first + 4), count, 0, padding) ||
        !read_numbers(argument(in, first + 5), count, 1, dilation))
        return NAN;
    for (int i = 0; i < count; i++) {
        double covered = dilation[i] * (weight.size[i + 2] - 1) + 1;
        double room = x.size[i + 2] + 2 * padding[i] - covered;
        if (room < 0)
            return NAN;
        all *= floor(room / stride[i]) + 1;
    }
    return all;
}

/* convolution_backward(grad, x, weight, bias sizes, stride, padding, dilation, transposed, output
 * padding, groups, which gradients): that of x and that of the weight take as much as the forward
 * pass. */
static double convolution_backward_flop(const struct inputs *in, int first)
{
    struct shape grad, x, weight;
    int transposed = flag(argument(in, first + 7));
    const char *wanted = argument(in, first + 10);
    if (!read_input_sizes(in, first, &grad) || !read_input_sizes(in, first + 1, &x) ||
        !read_input_sizes(in, first + 2, &weight) || x.count < 3 || x.count != weight.count ||
        x.count != grad.count || transposed < 0 || !wanted || *wanted != '[')
        return NAN;
    const char *second = strchr(wanted, ',');
    if (!second)
        return NAN;
    int gradients = !strncmp(wanted + 1, "True", 4) + !strncmp(second, ", True", 6);
    return gradients * 2 * x.size[0] * product_of_sizes(&weight, 0, weight.count) *
           product_of_sizes(transposed ? &x : &grad, 2, x.count);
}

/* ---- attention ------------------------------------------------------------------------------- */

/* query [b, h, q, d], key [b, h', k, d], value [b, h', k, v], where h' divides h: the products
 * with the key and with the value take `d_times` x d and `v_times` x v for each score. */
static double attention(const struct inputs *in, int first, int d_times, int v_times)
{
    struct shape q, k, v;
    if (!read_input_sizes(in, first, &q) || !read_input_sizes(in, first + 1, &k) ||
        !read_input_sizes(in, first + 2, &v) || q.count != 4 || k.count != 4 || v.count != 4 ||
        q.size[0] != k.size[0] || q.size[0] != v.size[0] || k.size[1] != v.size[1] ||
        k.size[2] != v.size[2] || q.size[3] != k.size[3] || !(k.size[1] > 0) ||
        fmod(q.size[1], k.size[1]) != 0)
        return NAN;
    return 2 * q.size[0] * q.size[1] * q.size[2] * k.size[2] *
           (d_times * q.size[3] + v_times * v.size[3]);
}

static double attention_flop(const struct inputs *in, int first)
{
    return attention(in, first, 1, 1);
}

/* grad, query, key, value: the scores once more, then the gradients of scores, value, query, key */
static double attention_backward_flop(const struct inputs *in, int first)
{
    return attention(in, first + 1, 3, 2);
}

/* ---- operators ------------------------------------------------------------------------------- */

/* `first`: of the inputs that the formula takes. linear and matmul call the others, where those are
 * recorded. */
static const struct formula {
    const char *name;
    double (*flop)(const struct inputs *in, int first);
    int first;
} formulas[] = {
    {"aten::mm", product_flop, 0},
    {"aten::bmm", product_flop, 0},
    {"aten::addmm", product_flop, 1},
    {"aten::_addmm_activation", product_flop, 1},
    {"aten::baddbmm", product_flop, 1},
    {"aten::_scaled_mm", product_flop, 0},
    {"aten::matmul", product_flop, 0},
    {"aten::linear", linear_flop, 0},
    {"aten::convolution", convolution_flop, 0},
    {"aten::_convolution", convolution_flop, 0},
    {"aten::convolution_backward", convolution_backward_flop, 0},
#define ATTENTION(name)                                                                            \
    {"aten::_scaled_dot_product_" name, attention_flop, 0},                                        \
    {                                                                                              \
        "aten::_scaled_dot_product_" name "_backward", attention_backward_flop, 0                  \
    }
    ATTENTION("flash_attention"),
    ATTENTION("efficient_attention"),
    ATTENTION("cudnn_attention"),
    ATTENTION("fused_attention_overrideable"),
#undef ATTENTION
};

static const struct formula *formula_of(const char *name)
{
    for (size_t i = 0; name && i < sizeof formulas / sizeof formulas[0]; i++)
        if (!strcmp(name, formulas[i].name))
            return &formulas[i];
    return NULL;
}

/* Of the type's name; false for types that are not counted. */
static bool element_of(const char *type, enum prof_element *element)
{
    static const char *const names[] = {
#define NAME(id, text) text,
        PROF_ELEMENTS(NAME)
#undef NAME
    };
    *element = PROF_ELEMENT_UNKNOWN;
    if (!type)
        return true;
    for (size_t i = 1; i < sizeof names / sizeof *names; i++) {
        if (!strncmp(type, names[i], strlen(names[i])) &&
            (i == PROF_ELEMENT_FP8 || !type[strlen(names[i])])) {
            *element = (enum prof_element)i;
            return true;
        }
    }
    return !*type;
}

static const cJSON *list_of(const cJSON *root, const char *key)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, key);
    return cJSON_IsArray(list) ? list : NULL;
}

struct prof_operator_flop prof_operator_flop(const char *name, const char *inputs)
{
    const struct formula *formula = formula_of(name);
    struct prof_operator_flop result = {.formula = formula != NULL, .flop = NAN};
    cJSON *root = NULL;
    if (!formula || !inputs)
        return result;
    if (prof_document_parse(inputs, strlen(inputs), "inputs", &root, NULL)) {
        result.unreadable = true;
        return result;
    }
    const struct inputs in = {list_of(root, "sizes"), list_of(root, "types"),
                              list_of(root, "arguments")};
    const cJSON *type = in.types ? cJSON_GetArrayItem(in.types, formula->first) : NULL;
    bool counted = element_of(type ? cJSON_GetStringValue(type) : NULL, &result.element);
    double flop = in.sizes ? formula->flop(&in, formula->first) : NAN;
    result.unreadable = !in.sizes || flop > MOST_FLOP;
    result.flop = counted && !result.unreadable ? flop : NAN;
    cJSON_Delete(root);
    return result;
}
