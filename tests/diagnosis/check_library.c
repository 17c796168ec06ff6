/* What a library does by itself in the program's process, as XLA: it compiles, and copies on a
 * thread of its own. See scene.h. */
#include <string.h>

#include "tests/check_main.h"
#include "tests/diagnosis/programs.h"

#define MUL "void at::native::elementwise_kernel<MulFunctor>(int)"
#define ADD "void at::native::elementwise_kernel<AddFunctor>(int)"
#define XLA "loop_multiply_fusion"

/* The second thread goes on where the first one is, or the other way round. */
static void switch_thread(struct scene *s, int side)
{
    int64_t now = s->host;
    scene_as(s, side);
    s->host = now;
}

/* A new shape in each iteration: the library compiles for it, and tries kernels on a thread of its
 * own. 1: its ranges are not known as compiling. 2: it compiles beside a thread that launches. */
START_TEST(what_a_library_compiles_is_no_loop)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    scene_second(&s, false, false);
    int config = scene_config(&s, MUL, 1320, 256, 32), tried = scene_config(&s, ADD, 1320, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        if (_i == 2)
            switch_thread(&s, 1);
        scene_push(&s, _i == 1 ? "Elaborate:#module=f#" : "XlaCompile:#module=f#");
        scene_host(&s, 400 * US);
        scene_call(&s, "cuModuleLoadData", 20 * US);
        if (_i < 2)
            switch_thread(&s, 1);
        for (int k = 0; k < 3 && _i < 2; k++) {
            scene_push(&s, "XlaModule:#hlo_module=gemm#");
            scene_kernel(&s, 0, tried, 20 * US);
            scene_sync(&s);
            scene_pop(&s);
            scene_host(&s, 300 * US);
        }
        if (_i == 2)
            scene_pop(&s);
        switch_thread(&s, 0);
        if (_i < 2)
            scene_pop(&s);
        scene_kernel(&s, 0, config, 100 * US);
        scene_sync(&s);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    findings_check(&findings);
    const struct prof_finding *finding = finding_of(&findings, "compile-in-loop");
    const struct prof_finding *host = finding_of(&findings, "host-starvation");
    ck_assert_uint_eq(findings.phase_count, _i == 1 ? 2 : 1);
    ck_assert((finding && finding->severity == PROF_SEVERITY_CRITICAL) == (_i == 0));
    ck_assert((host && host->severity > PROF_SEVERITY_INFO) == (_i > 0));
    if (_i == 0) {
        ck_assert_double_eq(number_of(finding, "calls"), STEPS - 1);
        ck_assert_int_ge(finding->bound_ns, (STEPS - 1) * (int64_t)(1200 * US));
        ck_assert_int_eq(finding->whatif_ns, PROF_UNKNOWN);
    }
    scene_done(capture, &findings);
}
END_TEST

/* PyTorch compiles in each iteration, of which nothing is seen but the range of --pytorch. 1: a
 * range of the program's own of that name. */
START_TEST(what_pytorch_compiles_is_no_work_of_the_host)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, MUL, 1320, 256, 32);
    scene_sql(&s, "INSERT INTO string(id, value) VALUES(50, 'torch.compile'), (51, 'PyTorch')");
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        scene_host(&s, 150 * US);
        scene_sql(&s,
                  "INSERT INTO range(start, duration, thread, end_thread, name, domain) "
                  "VALUES(%lld, %d, 1, 1, 50, %s)",
                  (long long)s.host, (int)(1800 * US), _i == 0 ? "51" : "NULL");
        scene_host(&s, 1800 * US);
        scene_kernel(&s, 0, config, 1000 * US);
        scene_sync(&s);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    findings_check(&findings);
    const struct prof_finding *finding = finding_of(&findings, "compile-in-loop");
    const struct prof_finding *host = finding_of(&findings, "host-starvation");
    ck_assert((finding && finding->severity == PROF_SEVERITY_CRITICAL) == (_i == 0));
    ck_assert((host && host->severity == PROF_SEVERITY_CRITICAL) == (_i == 1));
    if (finding) {
        ck_assert_int_ge(finding->bound_ns, (STEPS - 1) * (int64_t)(1900 * US));
        /* it traces what it compiles */
        ck_assert_double_ge(number_of(finding, "idle_host_beside_ns"), (STEPS - 1) * 90.0 * US);
    }
    scene_done(capture, &findings);
}
END_TEST

/* A table of the host's is an argument in each iteration: 0: the library fills page-locked memory
 * from it, and copies that. 1: the program copies its own page-locked memory. 2: on a thread of its
 * own, and no library is there. */
START_TEST(what_a_library_stages_is_pageable)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    scene_sql(&s, "UPDATE process SET command = 'python3 train.py'");
    if (_i != 1)
        scene_second(&s, false, false);
    int config = scene_config(&s, _i == 2 ? MUL : XLA, 1320, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        if (_i != 1)
            switch_thread(&s, 1);
        scene_host(&s, 1500 * US);
        scene_copy(&s, 0, SCENE_UP, SCENE_PINNED, 8 << 20, 200 * US, false);
        int64_t there = s.stream[0];
        if (_i != 1)
            switch_thread(&s, 0);
        s.stream[0] = there;
        scene_kernel(&s, 0, config, 300 * US);
        scene_pop(&s);
        s.host = s.stream[0]; /* the next one is asked for then */
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    findings_check(&findings);
    const struct prof_finding *finding = finding_of(&findings, "pageable-copy");
    const struct prof_finding *host = finding_of(&findings, "host-starvation");
    ck_assert((finding != NULL) == (_i == 0));
    ck_assert((host && host->severity > PROF_SEVERITY_INFO) == (_i > 0));
    if (finding) {
        ck_assert_int_eq(finding->severity, PROF_SEVERITY_CRITICAL);
        ck_assert_int_ge(finding->bound_ns, (STEPS - 1) * (int64_t)(1700 * US));
        ck_assert_ptr_nonnull(strstr(finding->seen, "a thread that only copies"));
    }
    scene_done(capture, &findings);
}
END_TEST

/* float(loss) in each iteration: the library's thread copies it when the kernels are done, and the
 * program is blocked until then, in no call. 0: that. 1: in C, where a result for each iteration is
 * what a program is for. 2: the next iteration is launched meanwhile. 3: all are read after the
 * last one. 4: a thread of the program's own reads. */
START_TEST(what_a_library_reads_is_awaited)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    if (_i != 1)
        scene_sql(&s, "UPDATE process SET command = 'python3 train.py'");
    scene_second(&s, false, false);
    int config = scene_config(&s, _i == 4 ? MUL : XLA, 1320, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        scene_kernel(&s, 0, config, 500 * US);
        int64_t launched = s.host;
        scene_host(&s, s.stream[0] - s.host);
        for (int k = 0; k < (_i == 3 ? (i % 20 == 19) * 20 : 1); k++) {
            switch_thread(&s, 1);
            scene_host(&s, k ? 10 * US : 150 * US);
            scene_copy(&s, 0, SCENE_DOWN, SCENE_PINNED, 4, 2 * US, false);
            s.host = s.stream[0];
            switch_thread(&s, 0);
        }
        if (_i == 2 || _i == 3)
            s.host = launched;
        scene_host(&s, 50 * US);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    findings_check(&findings);
    const struct prof_finding *finding = finding_of(&findings, "scalar-readback");
    ck_assert((finding != NULL) == (_i == 0));
    if (finding) {
        ck_assert_int_eq(finding->severity, PROF_SEVERITY_CRITICAL);
        ck_assert_int_ge(finding->bound_ns, (STEPS - 2) * (int64_t)(190 * US));
        ck_assert_int_eq(finding->whatif_ns, PROF_UNKNOWN);
        ck_assert_ptr_null(finding_of(&findings, "host-starvation"));
    }
    scene_done(capture, &findings);
}
END_TEST

/* Numbers for each operator: 0: the library uploads them, and they go with the launches. 1: the
 * program does. */
START_TEST(arguments_are_no_transfers)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    scene_sql(&s, "UPDATE process SET command = 'python3 train.py'");
    if (_i == 0)
        scene_second(&s, false, false);
    int config = scene_config(&s, XLA, 132, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = 0; k < 12; k++) {
            if (_i == 0)
                switch_thread(&s, 1);
            scene_host(&s, 100 * US);
            for (int n = 0; n < 3; n++)
                scene_copy(&s, 0, SCENE_UP, SCENE_PINNED, 4, 1 * US, false);
            if (_i == 0)
                switch_thread(&s, 0);
            scene_kernel(&s, 0, config, 2 * US);
        }
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    findings_check(&findings);
    const struct prof_finding *graph = finding_of(&findings, "graph-candidate");
    ck_assert((finding_of(&findings, "small-transfers") != NULL) == (_i == 1));
    ck_assert_ptr_nonnull(graph);
    if (_i == 0) /* Python's way to the arguments is the way to their kernel */
        ck_assert_double_ge(number_of(graph, "python_ns"), (STEPS - 1) * 12 * 90e3);
    scene_done(capture, &findings);
}
END_TEST

CHECK_MAIN_LOOPS("library", {what_a_library_compiles_is_no_loop, 3},
                 {what_pytorch_compiles_is_no_work_of_the_host, 2},
                 {what_a_library_stages_is_pageable, 3}, {what_a_library_reads_is_awaited, 5},
                 {arguments_are_no_transfers, 2})
