/* Each rule with a program that has its fault, the mended one, and a near miss: it must speak on
 * the first, with a bound that covers what mending gains and is at most twice that, and
 * not on the other two. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/check_main.h"
#include "tests/diagnosis/programs.h"

START_TEST(it_speaks_on_the_fault_only)
{
    const struct program *program = &programs[_i];
    int64_t wall[3];
    int64_t bound = 0, alone = 0, whatif = PROF_UNKNOWN;
    double bound_share = 0, alone_share = 0;
    bool hint =
        false; /* where the fault is more than a hint, a hint is no wrong answer elsewhere */
    for (enum version which = BAD; which <= NEAR; which++) {
        struct prof_findings findings;
        struct prof_error err = {0};
        struct prof_capture *capture = program_run(program, which, NULL, &wall[which]);
        ck_assert_msg(!prof_findings(capture, NULL, &findings, &err), "%s", err.message);
        const struct prof_finding *finding = finding_of(&findings, program->rule);
        if ((which == BAD) != (finding != NULL))
            findings_list(&findings);
        ck_assert_msg(which != BAD || finding, "%s: silent on the fault", program->rule);
        hint = which == BAD ? finding->hint : hint;
        ck_assert_msg(which == BAD || !finding || (finding->hint && !hint), "%s: speaks on the %s",
                      program->rule, which == FIXED ? "mended program" : "near miss");
        findings_check(&findings);
        if (which == BAD) {
            alone = finding->alone_ns;
            bound = finding->bound_ns;
            bound_share = finding->bound_share;
            alone_share = finding->alone_share;
            whatif = finding->whatif_ns;
        }
        prof_findings_free(&findings);
        prof_close(capture);
    }
    if (program->no_price) {
        ck_assert_int_eq(bound, PROF_UNKNOWN);
        return;
    }
    ck_assert_int_ge(alone, bound);
    /* As shares: what is judged begins with the first launch, and may miss a part of a step. */
    double gain = (double)(wall[BAD] - wall[FIXED]) / (double)wall[BAD];
    double replayed = (double)whatif / (double)(wall[BAD] - wall[FIXED]);
    ck_assert_msg(whatif == PROF_UNKNOWN || (replayed >= 0.9 && replayed <= 1.6),
                  "%s: replay %.3f ms, gain %.3f ms", program->rule, (double)whatif / 1e6,
                  (double)(wall[BAD] - wall[FIXED]) / 1e6);
    ck_assert_msg(alone_share >= gain * 0.98, "%s: mended alone it gains %.1f %%, told %.1f %%",
                  program->rule, 100 * gain, 100 * alone_share);
    /* A bound assumes that what is removed costs nothing instead, and that all it claims goes. */
    ck_assert_msg(bound_share <= gain * 2.02, "%s: bound %.1f %%, gain %.1f %%", program->rule,
                  100 * bound_share, 100 * gain);
}
END_TEST

static struct prof_capture *bad_program(size_t number, const char *damage,
                                        struct prof_findings *findings)
{
    struct prof_error err = {0};
    struct prof_capture *capture = program_run(&programs[number], BAD, damage, NULL);
    ck_assert_msg(!prof_findings(capture, NULL, findings, &err), "%s", err.message);
    return capture;
}

/* Each step is a kernel that the host waits for, after `host_ns` of its own work where that is not
 * 0; then the step is a range. */
static struct prof_capture *kernel_loop(const char *name, int64_t blocks, int64_t registers,
                                        int64_t ns, int64_t host_ns, struct prof_findings *findings)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, name, blocks, 256, registers);
    for (int i = 0; i < STEPS; i++) {
        if (host_ns)
            scene_push(&s, "step");
        scene_host(&s, host_ns);
        scene_kernel(&s, 0, config, ns);
        scene_sync(&s);
        if (host_ns)
            scene_pop(&s);
    }
    return scene_findings(&s, findings);
}

/* Memory that is not freed in the iterations: only where each needs more the sentence says so. 0:
 * sizes grow; 1: they are the same (a leak); 2: likewise, and all of it is freed behind the last
 * iteration. */
START_TEST(memory_that_is_kept_need_not_grow)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "kernel", 13200, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = 0; k < 2; k++) {
            int64_t start = s.host;
            scene_call(&s, "cudaMalloc", 90 * US);
            scene_lifetime(&s, start, PROF_UNKNOWN, (_i ? 40 : i + 1) * (1 + k) * 2048, 3);
            scene_kernel(&s, 0, config, 50 * US);
            scene_sync(&s);
        }
        scene_pop(&s);
    }
    if (_i == 2) {
        scene_host(&s, 1000 * US);
        scene_sql(&s, "UPDATE allocation SET \"end\" = %lld", (long long)s.host);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    findings_list(&findings);
    findings_check(&findings);
    const struct prof_finding *finding = finding_of(&findings, "alloc-in-loop");
    ck_assert_ptr_nonnull(finding);
    ck_assert_int_eq(strstr(finding->seen, "needs more than those before") != NULL, _i == 0);
    ck_assert_int_eq(strstr(finding->seen, "made and not freed in the iterations") != NULL,
                     _i != 0);
    scene_done(capture, &findings);
}
END_TEST

/* Two rules that blame the same kernel are paid once for it: what each leaves less of it. */
START_TEST(a_kernel_is_paid_for_once)
{
    struct prof_findings findings;
    /* 168 registers: one block a unit, 140 blocks in 1.06 rounds, an eighth of the threads */
    struct prof_capture *capture = kernel_loop("tile", 140, 168, 500 * US, 0, &findings);
    const struct prof_finding *tail = finding_of(&findings, "tail-effect");
    const struct prof_finding *hot_one = finding_of(&findings, "hot-kernel");
    ck_assert_ptr_nonnull(tail);
    ck_assert_ptr_nonnull(hot_one);
    ck_assert_int_eq(tail->bound_ns, tail->alone_ns);
    ck_assert_int_lt(hot_one->bound_ns, hot_one->alone_ns);
    findings_check(&findings);
    scene_done(capture, &findings);
}
END_TEST

/* Two large blocks fill a unit, and start at once: 144 of them leave most units half of the time.
 * 1: two for each unit. 2: a library's. 3: blocks of which four fill a unit. */
START_TEST(large_blocks_that_start_at_once_have_rounds)
{
    struct prof_findings findings;
    struct prof_capture *capture =
        kernel_loop(_i == 2 ? "nvjet_sm90_tst_128x128" : "product", _i == 1 ? 264 : 144,
                    _i == 3 ? 56 : 120, 500 * US, 0, &findings);
    const struct prof_finding *tail = finding_of(&findings, "tail-effect");
    ck_assert_int_eq(tail != NULL, _i == 0);
    if (tail)
        ck_assert_double_eq_tol(number_of(tail, "rounds"), 144.0 / 132, 0.001);
    ck_assert_int_eq(finding_of(&findings, "low-occupancy") != NULL, _i == 1 || _i == 3);
    findings_check(&findings);
    scene_done(capture, &findings);
}
END_TEST

/* Which copies are small is a matter of their sizes: a run whose link was slower counts as many. */
START_TEST(small_copies_are_counted_by_size)
{
    double counts[2];
    for (int slow = 0; slow < 2; slow++) {
        struct scene s;
        struct prof_findings findings;
        scene_open(&s, "cuda", "gpu");
        int config = scene_config(&s, "kernel", 13200, 256, 32);
        for (int i = 0; i < STEPS; i++) {
            scene_push(&s, "step");
            scene_copy(&s, 0, SCENE_UP, SCENE_PINNED, INT64_C(4) << 20, (slow ? 500 : 400) * US,
                       false);
            for (int c = 0; c < 40; c++)
                scene_copy(&s, 0, SCENE_UP, SCENE_PINNED, 1024, 2 * US, false);
            for (int c = 0; c < 20; c++)
                scene_copy(&s, 0, SCENE_UP, SCENE_PINNED, 48 << 10, 6 * US, false);
            scene_kernel(&s, 0, config, 300 * US);
            scene_sync(&s);
            scene_pop(&s);
        }
        struct prof_capture *capture = scene_findings(&s, &findings);
        const struct prof_finding *finding = finding_of(&findings, "small-transfers");
        ck_assert_ptr_nonnull(finding);
        const struct prof_number *worth = number_named(finding, "worthwhile_bytes");
        ck_assert_int_eq(worth->value < (48 << 10), slow);
        counts[slow] = number_named(finding, "small_memcpys_per_iteration")->value;
        findings_check(&findings);
        scene_done(capture, &findings);
    }
    ck_assert_double_eq(counts[0], 60);
    ck_assert_double_eq(counts[1], 60);
}
END_TEST

/* Kernels that follow each other in every step are a chain of each, also where the host was once
 * late with one of them, and where the device takes its time to the next one that is queued. */
START_TEST(a_late_kernel_breaks_no_chain)
{
    struct scene s;
    struct prof_findings findings;
    int configs[4];
    scene_open(&s, "cuda", "gpu");
    s.gap_ns = _i ? 30 * US : 1 * US;
    for (int i = 0; i < 4; i++)
        configs[i] = scene_config(&s, (const char *[]){"a", "b", "c", "d"}[i], 13200, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int c = 0; c < 4; c++) {
            if (i % 9 == 2 && c == i % 4)
                scene_host(&s, 200 * US);
            scene_kernel(&s, 0, configs[c], 15 * US);
        }
        scene_sync(&s);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    const struct prof_finding *finding = finding_of(&findings, "fusion-candidate");
    ck_assert_ptr_nonnull(finding);
    ck_assert_double_eq(number_named(finding, "chains")->value, STEPS - 1);
    ck_assert_double_eq(number_named(finding, "kernels")->value, 4 * (STEPS - 1));
    findings_check(&findings);
    scene_done(capture, &findings);
}
END_TEST

/* What an interpreter takes between launches is told with them, and not again as the host's work;
 * in another program it is its own. */
START_TEST(an_interpreters_way_is_launching)
{
    size_t p = 0;
    while (strcmp(programs[p].rule, "graph-candidate") ||
           strcmp(programs[p + 1].rule, "launch-bound"))
        p++;
    struct prof_findings findings;
    const char *name = "UPDATE process SET command = './pythonic python3'";
    struct prof_capture *capture = bad_program(p, _i ? name : NULL, &findings);
    const struct prof_finding *starvation = finding_of(&findings, "host-starvation");
    const struct prof_finding *graph = finding_of(&findings, "graph-candidate");
    ck_assert_ptr_nonnull(graph);
    ck_assert_int_eq(starvation != NULL, _i);
    ck_assert_int_eq(strstr(graph->seen, " of Python") != NULL, !_i);
    ck_assert(!_i == (graph->bound_share > 0.5));
    findings_check(&findings);
    scene_done(capture, &findings);
}
END_TEST

/* A device that takes 7 us from one kernel to the next does so too where the host is a little too
 * slow for it: launching costs what comes on top. */
START_TEST(the_devices_own_way_is_no_launching)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "opencl", "gpu");
    int brief = scene_config(&s, "brief", 264, 256, 32),
        lasts = scene_config(&s, "long", 264, 256, 32);
    s.gap_ns = 7 * US;
    s.launch_ns = _i ? 8400 : 7600;
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        scene_kernel(&s, 0, lasts, 300 * US);
        for (int k = 0; k < 20; k++) /* queued */
            scene_kernel(&s, 0, brief, 1 * US);
        scene_sync(&s);
        for (int k = 0; k < 40; k++)
            scene_kernel(&s, 0, brief, 1 * US);
        scene_sync(&s);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    const struct prof_finding *finding = finding_of(&findings, "launch-bound");
    ck_assert_ptr_nonnull(finding);
    ck_assert_double_lt(number_of(finding, "idle_ns"), 1.5 * US * number_of(finding, "kernels"));
    findings_check(&findings);
    scene_done(capture, &findings);
}
END_TEST

/* What fusing saves between kernels: the idle time there or the host's from launch to launch. */
START_TEST(a_chain_is_paid_for_its_longer_way)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int config[4];
    static const char *const names[] = {"add", "scale", "shift", "gelu"};
    for (int k = 0; k < 4; k++)
        config[k] = scene_config(&s, names[k], 264, 256, 32);
    s.gap_ns = 2 * US;
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = 0; k < 4; k++) {
            scene_push(&s, "launch");
            scene_kernel(&s, 0, config[k], 15 * US);
            scene_pop(&s);
            scene_work(&s, 1e6, 64e6);
        }
        scene_sync(&s);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    const struct prof_finding *finding = finding_of(&findings, "fusion-candidate");
    ck_assert_ptr_nonnull(finding);
    double chains = number_of(finding, "chains");
    ck_assert_double_eq(number_of(finding, "between_ns"), chains * 3 * (double)s.launch_ns);
    findings_check(&findings);
    scene_done(capture, &findings);
}
END_TEST

/* Long kernels of the program's own, of which nothing is known but their launches. 0: equally many
 * threads that share nothing and live for 8 us. 1: of another grid. 2: that share memory. 3: that
 * live for longer. */
START_TEST(short_lived_threads_are_a_chain)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    static const char *const names[] = {"affine", "silu", "gate"};
    int config[3];
    for (int k = 0; k < 3; k++)
        config[k] = scene_config(&s, names[k], _i == 1 && k == 1 ? 26400 : 13200, 256, 24);
    if (_i == 2)
        scene_sql(&s, "UPDATE launch_config SET shared_static = 1024 WHERE id = %d", config[1]);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int k = 0; k < 3; k++)
            scene_kernel(&s, 0, config[k], (_i == 3 ? 200 : 100 + 10 * k) * US);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    const struct prof_finding *finding = finding_of(&findings, "fusion-candidate");
    ck_assert((finding != NULL) == (_i == 0));
    if (finding) { /* the shortest is left */
        ck_assert_int_gt(finding->severity, PROF_SEVERITY_INFO);
        ck_assert_int_ge(finding->alone_ns, (STEPS - 1) * (int64_t)(230 * US));
        ck_assert_int_le(finding->alone_ns, STEPS * (int64_t)(240 * US));
    }
    findings_check(&findings);
    scene_done(capture, &findings);
}
END_TEST

/* Power alone lowers the clock of any device at full load: nothing to fix. Heat is. */
START_TEST(power_is_information)
{
    struct prof_findings findings;
    const char *hot = "UPDATE device_clock SET reasons = reasons | 32 WHERE reasons";
    size_t p = 0;
    while (strcmp(programs[p].rule, "clock-throttling"))
        p++;
    struct prof_capture *capture = bad_program(p, _i ? hot : NULL, &findings);
    const struct prof_finding *finding = finding_of(&findings, "clock-throttling");
    ck_assert_ptr_nonnull(finding);
    ck_assert_int_eq(finding->severity, _i ? PROF_SEVERITY_CRITICAL : PROF_SEVERITY_INFO);
    ck_assert_double_gt(finding->bound_share, 0.2);
    scene_done(capture, &findings);
}
END_TEST

/* Index of a rule's first row. */
static size_t place_of(const struct prof_findings *findings, const char *rule)
{
    size_t i = 0;
    while (i < findings->count && strcmp(findings->rows[i].rule->id, rule) != 0)
        i++;
    return i;
}

/* No kernel is shorter than its start: what takes 1 us with few blocks takes that with many. */
START_TEST(a_kernels_start_stays)
{
    struct prof_findings findings;
    struct prof_capture *capture = kernel_loop("tiny", 8, 32, (_i ? 20 : 1) * US, 0, &findings);
    const struct prof_finding *grid = finding_of(&findings, "small-grid");
    ck_assert((grid != NULL) == _i);
    if (grid) { /* 8 blocks where 132 units hold 8 each, and 1 of 20 us is the start */
        ck_assert_int_eq(grid->alone_ns * 20 * 1056 / (int64_t)(20 * US * 19 * 1048), STEPS - 1);
        /* expected no more of than 124 of 132 units could do */
        ck_assert_double_eq_tol(grid->confidence, 0.4 * 124 * 1056 / (132.0 * 1048), 1e-9);
    }
    findings_check(&findings);
    scene_done(capture, &findings);
}
END_TEST

/* hot-kernel says where the time goes: a warning at most, and behind what names a cause. */
START_TEST(causes_come_first)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "body", 13200, 256, 32);
    scene_sql(&s, "INSERT INTO ceiling(device, name, value) VALUES(1, 'fp32', 6e13), "
                  "(1, 'dram_copy', 4e12)");
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        scene_call(&s, "cuModuleLoadData", 200 * US);
        scene_push(&s, "launch");
        scene_kernel(&s, 0, config, 500 * US);
        scene_pop(&s);
        /* declared: a twentieth of the arithmetic's roof. Else bytes that only L2 can move */
        scene_work(&s, _i ? 1e6 : 0.05 * 6e13 * 500e-6, _i ? 6e12 * 500e-6 : 1e6);
        scene_sync(&s);
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    const struct prof_finding *cause = finding_of(&findings, "compile-in-loop");
    const struct prof_finding *hot_one = finding_of(&findings, "hot-kernel");
    findings_list(&findings);
    ck_assert(cause && hot_one);
    ck_assert_int_eq(cause->severity, PROF_SEVERITY_CRITICAL);
    ck_assert_int_eq(hot_one->severity, _i ? PROF_SEVERITY_INFO : PROF_SEVERITY_WARNING);
    ck_assert((strstr(hot_one->seen, "of its roof") != NULL) == !_i);
    ck_assert_double_gt((double)hot_one->bound_ns * hot_one->confidence,
                        _i ? 0 : (double)cause->bound_ns * cause->confidence);
    ck_assert_uint_lt(place_of(&findings, "compile-in-loop"), place_of(&findings, "hot-kernel"));
    scene_done(capture, &findings);
}
END_TEST

/* A library's kernels are built for few threads a unit, and by nobody else. */
START_TEST(a_librarys_occupancy_is_its_own)
{
    static const char *const names[] = {
        "body",
        "nvjet_sm90_hsh_64x48_64x15_2x4_h_bz_NNT",
        "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16_stage4_warpsize2x2x1_"
        "tensor16x8x8",
        "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(int)",
        "ampere_sgemm_128x64_nn",
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128>(int)",
        "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1>(int)",
        "void cutlass::Kernel<Gemm>(int)",
        "void at::native::(anonymous namespace)::softmax_warp_forward<c10::Half, 11, false>(int)",
        "triton_poi_fused_add_gelu_0",
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>(int)"};
    struct prof_findings findings;
    struct prof_capture *capture = kernel_loop(names[_i], 13200, 168, 500 * US, 0, &findings);
    bool own = _i == 0 || _i == 7;
    ck_assert_msg((finding_of(&findings, "low-occupancy") != NULL) == own, "%s", names[_i]);
    scene_done(capture, &findings);
}
END_TEST

/* A million blocks of one warp: only where a unit ends one each 78 ns is starting them the fault,
 * not where each takes 144, and only then is it more than information. */
START_TEST(tiny_blocks_take_their_start)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int64_t threads = _i == 2 ? 256 : 32, rounds = 200;
    int config = scene_config(&s, "body", 132 * 32 * rounds, threads, 16);
    for (int i = 0; i < STEPS; i++)
        scene_kernel(&s, 0, config, rounds * (_i == 1 ? 4600 : 2500));
    struct prof_capture *capture = scene_findings(&s, &findings);
    const struct prof_finding *finding = finding_of(&findings, "low-occupancy");
    ck_assert_int_eq(finding != NULL, _i < 2);
    if (finding) {
        bool tiny = _i == 0;
        ck_assert_int_eq(strstr(finding->seen, "most of it to start") != NULL, tiny);
        ck_assert_int_eq(finding->severity > PROF_SEVERITY_INFO, tiny);
        ck_assert_int_eq(finding->bound_share > 0.9, tiny);
    }
    scene_done(capture, &findings);
}
END_TEST

/* Phases whose iterations compile for a part of their time, and whether the rule is told, and how
 * severe it is: each limit from below and from above. Compiling leaves the device idle and nothing
 * else does but the calls. A severity goes by what is expected of it. */
#define PHASES 3
#define COMPILES 0.8 /* confidence of compile-in-loop */

static const struct {
    struct {
        int iterations;
        double share; /* of an iteration */
    } phases[PHASES];
    int severity; /* -1 = not told */
} savings[] = {
    {{{20, 0.007}}, -1},
    {{{20, 0.011}}, PROF_SEVERITY_INFO},
    {{{20, 0.045}}, PROF_SEVERITY_INFO},
    {{{20, 0.055}}, PROF_SEVERITY_WARNING},
    {{{20, 0.18}}, PROF_SEVERITY_WARNING},
    {{{20, 0.22}}, PROF_SEVERITY_CRITICAL},
    /* half of a phase that is little of the run */
    {{{11, 0.5}, {690, 0}}, -1},                    /* what is told goes by the bound: 0.9 % */
    {{{11, 0.5}, {445, 0}}, PROF_SEVERITY_WARNING}, /* 1.1 % */
    {{{11, 0.5}, {102, 0}}, PROF_SEVERITY_WARNING}, /* 4.5 % */
    {{{11, 0.5}, {82, 0}}, PROF_SEVERITY_CRITICAL}, /* 5.5 % */
    /* what each phase saves is the weight of its share: 4.4 %, 5.5 %, 18 %, 22 % */
    {{{20, 0.052}, {20, 0.03}}, PROF_SEVERITY_INFO},
    {{{20, 0.065}, {20, 0.035}}, PROF_SEVERITY_WARNING},
    {{{20, 0.21}, {20, 0.12}, {20, 0.03}}, PROF_SEVERITY_WARNING},
    {{{20, 0.25}, {20, 0.16}, {20, 0.03}}, PROF_SEVERITY_CRITICAL},
};

START_TEST(a_rule_has_one_severity)
{
    static const char *const names[PHASES] = {"first", "second", "third"};
    struct scene s;
    struct prof_findings findings;
    size_t told = 0, compiling = 0;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 13200, 256, 32);
    for (int p = 0; p < PHASES && savings[_i].phases[p].iterations; p++) {
        double share = savings[_i].phases[p].share / COMPILES;
        compiling += share > 0;
        scene_push(&s, names[p]);
        for (int i = 0; i < savings[_i].phases[p].iterations; i++) {
            scene_push(&s, "step");
            if (share > 0)
                scene_call(&s, "cuModuleLoadData", (int64_t)(share * 20000 * (double)US));
            scene_kernel(&s, 0, config, (int64_t)((1 - share) * 20000 * (double)US));
            scene_sync(&s);
            scene_pop(&s);
        }
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    for (size_t i = 0; i < findings.count; i++) {
        if (strcmp(findings.rows[i].rule->id, "compile-in-loop") != 0)
            continue;
        told++;
        ck_assert_int_eq((int)findings.rows[i].severity, savings[_i].severity);
        ck_assert_uint_eq(findings.rows[i].phases, compiling);
        ck_assert_int_ge(findings.rows[i].rule_bound_ns, findings.rows[i].bound_ns);
    }
    if ((savings[_i].severity < 0) != (told == 0))
        findings_list(&findings);
    ck_assert_int_eq(told == 0, savings[_i].severity < 0);
    findings_check(&findings);
    scene_done(capture, &findings);
}
END_TEST

/* No rule waits for a larger part of the time than what is told begins with: near 3 % is info. */
START_TEST(a_small_part_is_info)
{
    struct prof_findings findings;
    struct prof_capture *capture = kernel_loop("work", 13200, 32, 20000 * US, 600 * US, &findings);
    const struct prof_finding *finding = finding_of(&findings, "host-starvation");
    ck_assert(finding && finding->severity == PROF_SEVERITY_INFO && !finding->hint);
    scene_done(capture, &findings);
}
END_TEST

/* Waits for numbers that are read back are one fault, told once. */
START_TEST(a_readbacks_wait_is_no_sync_stall)
{
    struct scene s;
    struct prof_findings findings;
    scene_open(&s, "cuda", "gpu");
    int config = scene_config(&s, "work", 13200, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int n = 0; n < 3; n++) { /* the last wait is the one that a step needs */
            scene_kernel(&s, 0, config, 50 * US);
            if (n < 2)
                scene_copy(&s, 0, SCENE_DOWN, SCENE_PINNED, 4, 2 * US, false);
            scene_sync(&s);
        }
        scene_pop(&s);
    }
    struct prof_capture *capture = scene_findings(&s, &findings);
    ck_assert_ptr_nonnull(finding_of(&findings, "scalar-readback"));
    ck_assert_ptr_null(finding_of(&findings, "sync-stall"));
    scene_done(capture, &findings);
}
END_TEST

/* What the program asked for and is not in the capture may be what looks idle. */
START_TEST(lost_work_is_not_idle_time)
{
    static const char *const losses[] = {
        "INSERT INTO capture_health(process, subject, item, value) VALUES(1, 'launch', 'called', "
        "1000), "
        "(1, 'launch', 'recorded', 980), (1, 'launch', 'dropped', 20)",
        "INSERT INTO capture_health(process, subject, item, value) VALUES(1, 'launch', 'called', "
        "1000), "
        "(1, 'launch', 'recorded', 980)",
        "UPDATE kernel SET start = NULL, duration = NULL, api_lead = start - api_lead WHERE id % "
        "20 = 3",
        "INSERT INTO capture_health(process, subject, item, value) VALUES(1, 'launch', 'called', "
        "1000), "
        "(1, 'launch', 'recorded', 995), (1, 'launch', 'dropped', 5)",
    };
    static const char *const rules[] = {"host-starvation", "graph-candidate", "launch-bound",
                                        "sync-stall"};
    for (size_t p = 0; p < program_count; p++) {
        bool idles = false;
        for (size_t r = 0; r < sizeof rules / sizeof *rules; r++)
            idles |= !strcmp(programs[p].rule, rules[r]);
        if (!idles)
            continue;
        struct prof_findings findings;
        struct prof_capture *capture = bad_program(p, losses[_i], &findings);
        const struct prof_finding *finding = finding_of(&findings, programs[p].rule);
        bool told = false;
        for (size_t i = 0; i < findings.abstention_count; i++)
            told |= !strcmp(findings.abstentions[i].rule->id, programs[p].rule);
        ck_assert_msg((finding != NULL) == (_i == 3), "%s", programs[p].rule);
        ck_assert_msg(told == (_i < 3), "%s", programs[p].rule);
        scene_done(capture, &findings);
    }
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------- */

/* Numbers that no device tells and no run makes: an answer or none, but no nonsense (the sanitizers
 * watch too). */
static const char *const damages[] = {
    "UPDATE device SET warp = 4611686018427387904",
    "UPDATE device SET max_threads_per_unit = 9223372036854775807, registers_per_unit = -1",
    "UPDATE launch_config SET registers = 9223372036854775807",
    "UPDATE launch_config SET grid_x = 9223372036854775807, block_x = 9223372036854775807",
    "UPDATE kernel SET rowid = 4000000000 WHERE rowid = 1",
    "UPDATE kernel SET api_lead = NULL",
    "UPDATE kernel SET api_lead = NULL WHERE rowid % 3 = 0",
    "INSERT INTO device_clock(device, start, sm_mhz, sm_max_mhz, reasons) SELECT 1, start, "
    "9223372036854775807, 9223372036854775807, 9223372036854775807 FROM kernel",
    "UPDATE kernel SET start = start + 60000000000 WHERE rowid % 2",
    "UPDATE kernel SET duration = 9223372036854775807 WHERE rowid % 5 = 0",
    "UPDATE range SET duration = duration + start + 1000000, start = -1000000 WHERE rowid < 3",
    "UPDATE capture SET duration = 1",
    "UPDATE string SET value = ''",
    "DELETE FROM kernel WHERE rowid > 1",
    "DELETE FROM kernel",
};

START_TEST(damage_makes_no_nonsense)
{
    static const size_t which[] = {0, 14, 22, 26};
    for (size_t p = 0; p < sizeof which / sizeof *which; p++) {
        struct prof_findings findings;
        struct prof_capture *capture = bad_program(which[p], damages[_i], &findings);
        ck_assert_int_ge(findings.begin_ns, 0);
        ck_assert_int_ge(findings.window_ns, 0);
        findings_check(&findings);
        for (size_t i = 0; i < findings.count; i++) {
            double share = findings.rows[i].bound_share;
            ck_assert(isnan(share) || (share >= 0 && share <= 1));
            for (size_t n = 0; n < findings.rows[i].number_count; n++)
                ck_assert(!(findings.rows[i].numbers[n].value < 0));
            ck_assert_ptr_null(strstr(findings.rows[i].seen, "-9,2"));
        }
        scene_done(capture, &findings);
    }
}
END_TEST

/* Every rule that can speak has a program; the others say what they miss. */
START_TEST(every_rule_is_covered)
{
    static const char *const silent[] = {"host-cache-misses",
                                         /* check_rank_rules.c */
                                         "rank-straggler", "exposed-collectives", "uneven-ranks",
                                         "slow-link", "rank-differs"};
    const struct prof_rule_page *page;
    for (size_t i = 0; (page = prof_rule_page(i)); i++) {
        bool known = false;
        for (size_t p = 0; p < program_count; p++)
            known |= !strcmp(programs[p].rule, page->id);
        for (size_t p = 0; p < sizeof silent / sizeof silent[0]; p++)
            known |= !strcmp(silent[p], page->id);
        ck_assert_msg(known, "no program for rule %s", page->id);
        ck_assert_ptr_eq(prof_rule_find(page->id), page);
        ck_assert(page->title && page->fires && page->why && page->fix && page->bound &&
                  page->limits && page->needs);
        /* A terminal of 80 columns shows its first sentence in a line, indented by 4. */
        const char *end = strstr(page->fix, ". ");
        size_t first = end ? (size_t)(end - page->fix) + 1 : strlen(page->fix);
        ck_assert_msg(first >= 40 && first <= 76, "%s: %zu columns", page->id, first);
        ck_assert_msg(page->fix[strlen(page->fix) - 1] == '.', "%s", page->id);
    }
    ck_assert_ptr_null(prof_rule_find("no-such-rule"));
    ck_assert_ptr_null(prof_rule_find(NULL));
}
END_TEST

CHECK_MAIN_LOOPS("rules", {it_speaks_on_the_fault_only, (int)program_count},
                 {memory_that_is_kept_need_not_grow, 3}, {a_kernel_is_paid_for_once, 1},
                 {large_blocks_that_start_at_once_have_rounds, 4},
                 {small_copies_are_counted_by_size, 1}, {a_late_kernel_breaks_no_chain, 2},
                 {a_rule_has_one_severity, sizeof savings / sizeof savings[0]},
                 {a_small_part_is_info, 1}, {a_readbacks_wait_is_no_sync_stall, 1},
                 {the_devices_own_way_is_no_launching, 2}, {a_chain_is_paid_for_its_longer_way, 1},
                 {short_lived_threads_are_a_chain, 4}, {power_is_information, 2},
                 {a_kernels_start_stays, 2}, {causes_come_first, 2},
                 {a_librarys_occupancy_is_its_own, 11}, {tiny_blocks_take_their_start, 3},
                 {an_interpreters_way_is_launching, 2}, {lost_work_is_not_idle_time, 4},
                 {damage_makes_no_nonsense, sizeof damages / sizeof damages[0]},
                 {every_rule_is_covered, 1})
