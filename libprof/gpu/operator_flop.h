/* FLOP of PyTorch's operators by their inputs: products of matrices, convolutions, attention. The
 * formulas are those of torch.utils.flop_counter (PyTorch 2.7), where a multiply-add is two; its
 * other operators have none. */
#ifndef PERFKIT_GPU_OPERATOR_FLOP_H
#define PERFKIT_GPU_OPERATOR_FLOP_H

#include <stdbool.h>

/* Type of the elements that are multiplied: id, what PyTorch calls it. */
#define PROF_ELEMENTS(X)                                                                           \
    X(UNKNOWN, "")                                                                                 \
    X(FP64, "double")                                                                              \
    X(FP32, "float") /* TF32 too: only the kernel shows it */                                      \
    X(FP16, "c10::Half")                                                                           \
    X(BF16, "c10::BFloat16")                                                                       \
    X(FP8, "c10::Float8_")

enum prof_element {
#define PROF_ELEMENT_ID(id, text) PROF_ELEMENT_##id,
    PROF_ELEMENTS(PROF_ELEMENT_ID)
#undef PROF_ELEMENT_ID
};

struct prof_operator_flop {
    bool formula;    /* the operator has one */
    bool unreadable; /* `inputs` is not what it should be */
    double flop;     /* NaN = not known: no formula, or the inputs do not say enough */
    enum prof_element element;
};

/* What operator `name` ("aten::mm") computes with `inputs`, a text of the table range_inputs: any
 * bytes; NULL = not recorded. Integers and complex numbers are not counted. */
struct prof_operator_flop prof_operator_flop(const char *name, const char *inputs);

#endif
