/* FLOP of PyTorch's operators by their inputs, against figures computed by hand with the formulas of
 * torch.utils.flop_counter; and inputs that are not what they should be. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/gpu/operator_flop.h"
#include "tests/check_main.h"

#define CONV "{\"sizes\":[[8,3,32,32],[16,3,5,5],[16],[],[],[],[],[],[]],\"types\":[\"float\"],"       \
             "\"arguments\":[\"\",\"\",\"\",\"[2, 2]\",\"[2]\",\"[1, 1]\",\"%s\",\"[0, 0]\",\"1\"]}"
/* grad [8,16,16,16], x [8,3,32,32], weight [16,3,5,5] */
#define BACK "{\"sizes\":[[8,16,16,16],[8,3,32,32],[16,3,5,5],[],[],[],[],[],[],[],[]],\"arguments\":[" \
             "\"\",\"\",\"\",\"[16]\",\"[2, 2]\",\"[2, 2]\",\"[1, 1]\",\"%s\",\"[0, 0]\",\"1\",\"%s\"]}"
#define QKV "[2,8,128,64],[2,8,256,64],[2,8,256,32]"

static const struct {
    const char *name, *inputs;
    double flop; /* NaN = not known */
    enum prof_element element;
} known[] = {
    {"aten::mm", "{\"sizes\":[[64, 32], [32, 8]]}", 2.0 * 64 * 32 * 8, PROF_ELEMENT_UNKNOWN},
    {"aten::mm", "{\"sizes\":[[64,32],[32,8]],\"types\":[\"c10::BFloat16\",\"c10::BFloat16\"]}",
     2.0 * 64 * 32 * 8, PROF_ELEMENT_BF16},
    {"aten::addmm", "{\"sizes\":[[8],[64,32],[32,8],[],[]],\"types\":[\"float\",\"c10::Half\"]}",
     2.0 * 64 * 32 * 8, PROF_ELEMENT_FP16},
    {"aten::bmm", "{\"sizes\":[[4,64,32],[4,32,8]],\"types\":[\"double\"]}",
     2.0 * 4 * 64 * 32 * 8, PROF_ELEMENT_FP64},
    {"aten::baddbmm", "{\"sizes\":[[4,64,8],[4,64,32],[4,32,8]]}", 2.0 * 4 * 64 * 32 * 8, 0},
    {"aten::linear", "{\"sizes\":[[4,10,32],[8,32],[8]],\"types\":[\"float\"]}",
     2.0 * 40 * 32 * 8, PROF_ELEMENT_FP32},
    {"aten::matmul", "{\"sizes\":[[5,1,64,32],[7,32,8]]}", 2.0 * 35 * 64 * 32 * 8, 0},
    {"aten::matmul", "{\"sizes\":[[32],[32]]}", 64, 0},
    {"aten::matmul", "{\"sizes\":[[64,32],[32]]}", 2.0 * 64 * 32, 0},
    {"aten::mm", "{\"sizes\":[[0,32],[32,8]]}", 0, 0},
    {"aten::_scaled_mm", "{\"sizes\":[[64,32],[32,8]],\"types\":[\"c10::Float8_e4m3fn\"]}",
     2.0 * 64 * 32 * 8, PROF_ELEMENT_FP8},
    {"aten::_scaled_dot_product_flash_attention", "{\"sizes\":[" QKV "]}",
     2.0 * 16 * 128 * 256 * (64 + 32), 0},
    {"aten::_scaled_dot_product_cudnn_attention_backward", "{\"sizes\":[[2,8,128,32]," QKV "]}",
     2.0 * 16 * 128 * 256 * (3 * 64 + 2 * 32), 0},
    {"aten::_scaled_dot_product_efficient_attention", /* fewer heads of key and value */
     "{\"sizes\":[[2,8,128,64],[2,2,256,64],[2,2,256,64]]}", 2.0 * 16 * 128 * 256 * 128, 0},
    /* what is not said */
    {"aten::mm", NULL, NAN, 0},
    {"aten::mm", "{\"sizes\":[[64,32],[]]}", NAN, 0},
    {"aten::mm", "{\"sizes\":[[64,32],[31,8]]}", NAN, 0},
    {"aten::mm", "{\"sizes\":[[64,32],[32,8]],\"types\":[\"c10::complex<float>\"]}", NAN, 0},
    {"aten::convolution", "{\"sizes\":[[8,3,32,32],[16,3,5,5],[16]]}", NAN, 0},
    {"aten::add", "{\"sizes\":[[64,32],[64,32]]}", NAN, 0},
    {NULL, "{\"sizes\":[[64,32],[32,8]]}", NAN, 0},
};

START_TEST(formulas_by_hand)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct prof_operator_flop found = prof_operator_flop(known[i].name, known[i].inputs);
        ck_assert_msg(isnan(known[i].flop) ? isnan(found.flop) : found.flop == known[i].flop,
                      "%zu: %s %s: %g", i, known[i].name ? known[i].name : "NULL",
                      known[i].inputs ? known[i].inputs : "NULL", found.flop);
        ck_assert(!found.unreadable);
        if (!isnan(known[i].flop))
            ck_assert_int_eq(found.element, known[i].element);
    }
    ck_assert(prof_operator_flop("aten::mm", NULL).formula);
    ck_assert(!prof_operator_flop("aten::add", NULL).formula);
}
END_TEST

START_TEST(convolutions_by_hand)
{
    char text[600];
    double weight = 16 * 3 * 5 * 5;
    snprintf(text, sizeof text, CONV, "False"); /* (32 + 2 * 2 - 5) / 2 + 1 = 16 */
    ck_assert_double_eq(prof_operator_flop("aten::convolution", text).flop, 2 * 8 * weight * 256);
    snprintf(text, sizeof text, CONV, "True");
    ck_assert_double_eq(prof_operator_flop("aten::_convolution", text).flop, 2 * 8 * weight * 1024);
    snprintf(text, sizeof text, CONV, "perhaps");
    ck_assert(isnan(prof_operator_flop("aten::convolution", text).flop));
    static const struct {
        const char *transposed, *wanted;
        double times;
    } backward[] = {{"False", "[True, True, False]", 2 * 256},
                    {"False", "[False, True, True]", 256},
                    {"False", "[True, False, False]", 256},
                    {"True", "[True, True, False]", 2 * 1024}};
    for (size_t i = 0; i < sizeof backward / sizeof *backward; i++) {
        snprintf(text, sizeof text, BACK, backward[i].transposed, backward[i].wanted);
        ck_assert_double_eq(prof_operator_flop("aten::convolution_backward", text).flop,
                            2 * 8 * weight * backward[i].times);
    }
}
END_TEST

/* Anything may be in a file: no FLOP, and it is said where the text is not what it should be. */
START_TEST(hostile_inputs)
{
    static const struct {
        const char *inputs;
        bool unreadable;
    } hostile[] = {
        {"", true},
        {"null", true},
        {"[[64,32],[32,8]]", true},
        {"{\"sizes\":[[64,32],[32,8]]", true},
        {"{\"sizes\":{\"0\":[64,32]}}", true},
        {"{\"sizes\":[[1e200,1e200],[1e200,1e200]]}", false},
        {"{\"sizes\":[[9007199254740992,9007199254740992],[9007199254740992,9007199254740992]]}",
         true},
        {"{\"sizes\":[[99999999999999999999999,2],[2,3]]}", false},
        {"{\"sizes\":[[-64,32],[32,8]]}", false},
        {"{\"sizes\":[[1.5,32],[32,8]]}", false},
        {"{\"sizes\":[[[64],32],[32,8]]}", false},
        {"{\"sizes\":[[\"x\",32],[32,8]]}", false},
        {"{\"sizes\":[[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,64,32],[32,8]]}", false},
        {"{\"sizes\":[],\"types\":7,\"arguments\":[[[]]]}", false},
        {"{\"sizes\":[[64,32],[32,8]],\"types\":[[\"float\"]],\"sizes\":[]}", true},
    };
    static const char *const names[] = {"aten::mm", "aten::linear", "aten::matmul",
                                        "aten::convolution", "aten::convolution_backward",
                                        "aten::_scaled_dot_product_flash_attention_backward"};
    char *deep = malloc(100001);
    memset(deep, '[', 100000);
    deep[100000] = '\0';
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
            struct prof_operator_flop found = prof_operator_flop(names[n], hostile[i].inputs);
            ck_assert_msg(isnan(found.flop), "%s %s", names[n], hostile[i].inputs);
            if (n == 0)
                ck_assert_msg(found.unreadable == hostile[i].unreadable, "%s", hostile[i].inputs);
        }
        ck_assert(prof_operator_flop(names[n], deep).unreadable);
    }
    free(deep);
}
END_TEST

CHECK_MAIN("FLOP of operators", formulas_by_hand, convolutions_by_hand, hostile_inputs)
