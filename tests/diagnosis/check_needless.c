/* Operators of PyTorch that change nothing: graphs without a backward pass, gradients that are
 * filled and then added to, casts and copies. See scene.h. */
#include <string.h>

#include "tests/check_main.h"
#include "tests/diagnosis/programs.h"

#define MUL "void at::native::elementwise_kernel<MulFunctor>(int)"
#define ADD "void at::native::elementwise_kernel<AddFunctor>(int)"

/* An operator on a thread of the scene, with the number of the graph's node that it makes or uses.
 */
static void number_operator(struct scene *s, int side, const char *name, int config, int node)
{
    scene_as(s, side);
    scene_push(s, name);
    scene_host(s, 20 * US);
    scene_kernel(s, 0, config, 2 * US);
    scene_pop(s);
    scene_sql(s,
              "INSERT INTO range_field(range, name, value) SELECT (SELECT max(id) FROM range), id, "
              "%d FROM string WHERE value = 'seq'",
              node);
}

static bool abstains(const struct prof_findings *findings, const char *rule)
{
    bool found = false;
    for (size_t i = 0; i < findings->abstention_count; i++)
        found |= !strcmp(findings->abstentions[i].rule->id, rule);
    return found;
}

/* 0: inference. 1: a backward pass that computes the forward pass again makes nodes that it does
 * not use. 2: one that uses none of a forward pass. 3: as 0, recorded in windows. */
START_TEST(a_graph_without_a_backward_pass_is_needless)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    scene_second(&s, false, false);
    int config = scene_config(&s, MUL, 1320, 256, 32);
    scene_push(&s, "seq");
    scene_pop(&s);
    for (int i = 0; i < STEPS; i++) {
        scene_as(&s, 0);
        scene_push(&s, "step");
        for (int k = 0; k < 12; k++)
            number_operator(&s, 0, "aten::mul", config, 12 * i + k);
        for (int k = 0; k < 12 && _i == 1; k++) {
            number_operator(&s, 1, "aten::mul", config, 100000 + 12 * i + k);
            number_operator(&s, 1, "MulBackward0", config, 12 * i + k);
        }
        if (_i == 2)
            number_operator(&s, 1, "MulBackward0", config, 100000 + i);
        scene_as(&s, 0);
        scene_sync(&s);
        scene_pop(&s);
        if (_i == 3 && i == STEPS / 2) {
            scene_host(&s, 100 * US);
            scene_sql(&s,
                      "INSERT INTO recording(process, start, begins, reason) VALUES"
                      "(1, %lld, 0, 6), (1, %lld, 1, 6)",
                      (long long)(s.host - 90 * US), (long long)(s.host - 10 * US));
        }
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    findings_check(&findings);
    const struct prof_finding *finding = finding_of(&findings, "needless-operators");
    ck_assert_int_eq(finding != NULL, _i == 0 || _i == 2);
    ck_assert_int_eq(abstains(&findings, "needless-operators"), _i == 3);
    if (finding)
        ck_assert_double_eq_tol(number_of(finding, "nodes"), 12 * STEPS, 24);
    scene_done(capture, &findings);
}
END_TEST

/* A backward pass that adds to the gradients of three parameters, or stores them. */
static void accumulate(struct scene *s, const int *configs, bool adds)
{
    for (int parameter = 0; parameter < 3; parameter++) {
        scene_push(s, "autograd::engine::evaluate_function: MulBackward0");
        scene_kernel(s, 0, configs[0], 20 * US);
        scene_pop(s);
        scene_push(s, "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad");
        scene_push(s, "torch::autograd::AccumulateGrad");
        scene_push(s, adds ? "aten::add_" : "aten::detach");
        scene_kernel(s, 0, configs[1], 30 * US);
        scene_pop(s);
        scene_pop(s);
        scene_pop(s);
    }
}

/* One kernel fills all gradients, and four backward passes add to them: only what the first one
 * adds could be stored. 1: nothing is added to what was filled. */
START_TEST(only_first_gradients_are_needlessly_added)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int configs[3] = {scene_config(&s, MUL, 1320, 256, 32), scene_config(&s, ADD, 1320, 256, 32),
                      scene_config(&s,
                                   "void at::native::multi_tensor_apply_kernel<ZeroFunctor>(int)",
                                   1320, 256, 32)};
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        scene_push(&s, "Optimizer.zero_grad#SGD.zero_grad");
        scene_kernel(&s, 0, configs[2], 10 * US);
        scene_pop(&s);
        for (int k = 0; k < 4; k++) {
            scene_push(&s, "aten::mul");
            scene_kernel(&s, 0, configs[0], 20 * US);
            scene_pop(&s);
            accumulate(&s, configs, _i == 0);
        }
        scene_sync(&s);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    findings_check(&findings);
    const struct prof_finding *finding = finding_of(&findings, "needless-operators");
    ck_assert_int_eq(finding != NULL, _i == 0);
    if (finding)
        ck_assert_double_eq_tol(number_of(finding, "needless_kernel_ns"),
                                (double)(STEPS * (10 + 3 * 30) * US), 200e3);
    scene_done(capture, &findings);
}
END_TEST

/* A kernel in operators within each other. */
static void run_within(struct scene *s, const char *const *operators, int config, int64_t ns)
{
    int depth = 0;
    for (; operators[depth]; depth++)
        scene_push(s, operators[depth]);
    scene_kernel(s, 0, config, ns);
    while (depth--)
        scene_pop(s);
}

/* torch.autocast converts weights. 1: a backward pass comes, and an optimizer needs them as they
 * are. 2: the program converts its input. 3: a tensor is laid out anew. 4: an operator does so
 * itself. */
START_TEST(casts_and_copies_are_needless)
{
    static const char *const copies[][6] = {
        {"aten::linear", "aten::to", "aten::_to_copy", "aten::copy_", NULL},
        {"aten::linear", "aten::to", "aten::_to_copy", "aten::copy_", NULL},
        {"aten::to", "aten::_to_copy", "aten::copy_", NULL},
        {"Block.attention", "aten::contiguous", "aten::clone", "aten::copy_", NULL},
        {"aten::native_layer_norm", "aten::contiguous", "aten::clone", "aten::copy_", NULL},
    };
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, MUL, 1320, 256, 32), copy = scene_config(&s, ADD, 1320, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = 0; k < 4; k++) {
            run_within(&s, copies[_i], copy, 40 * US);
            run_within(&s, (const char *const[]){"aten::linear", "aten::addmm", NULL}, config,
                       100 * US);
        }
        if (_i == 1)
            run_within(&s,
                       (const char *const[]){"autograd::engine::evaluate_function: AddmmBackward0",
                                             "aten::mm", NULL},
                       config, 100 * US);
        scene_sync(&s);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    findings_check(&findings);
    const struct prof_finding *finding = finding_of(&findings, "needless-operators");
    ck_assert_int_eq(finding != NULL, _i == 0 || _i == 3);
    if (finding) {
        ck_assert_int_gt(finding->severity, PROF_SEVERITY_INFO);
        ck_assert_double_eq_tol(number_of(finding, _i ? "copies" : "casts"), 4 * STEPS, 8);
        ck_assert_double_eq_tol(number_of(finding, "needless_kernel_ns"),
                                (double)(STEPS * 4 * 40 * US), 400e3);
    }
    scene_done(capture, &findings);
}
END_TEST

CHECK_MAIN_LOOPS("needless", {a_graph_without_a_backward_pass_is_needless, 4},
                 {only_first_gradients_are_needlessly_added, 2}, {casts_and_copies_are_needless, 5})
