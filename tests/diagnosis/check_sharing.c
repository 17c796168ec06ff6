/* Runs of several devices, threads and processes: what is told of a device rests on what those do
 * that launch on it, and what two programs do side by side is no fault of either. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/gpu/names.h"
#include "report/findings.h"
#include "report/html.h"
#include "tests/check_main.h"
#include "tests/diagnosis/programs.h"

#define MIB (INT64_C(1) << 20)
#define MS INT64_C(1000000)

struct judged {
    struct prof_capture *capture;
    struct prof_findings findings;
};

static struct judged judge(struct scene *s)
{
    struct judged j = {.capture = scene_close(s)};
    struct prof_error err = {0};
    struct prof_filter all = {.skips = true}; /* the first iteration too */
    ck_assert_msg(!prof_findings(j.capture, &all, &j.findings, &err), "%s", err.message);
    findings_check(&j.findings);
    return j;
}

static void done(struct judged *j)
{
    prof_findings_free(&j->findings);
    prof_close(j->capture);
}

static void silent(const struct judged *j, const char *rule)
{
    if (finding_of(&j->findings, rule))
        findings_list(&j->findings);
    ck_assert_msg(!finding_of(&j->findings, rule), "%s speaks", rule);
}

/* Both threads do a step each, the one that is behind first. */
static void both(struct scene *s, void (*one_step)(struct scene *s, int number), int steps)
{
    for (int i = 0; i < steps; i++) {
        for (int side = 0; side < 2; side++) {
            scene_as(s, side);
            one_step(s, i);
        }
    }
}

static void put_text(FILE *out, const char *text)
{
    fputs(text, out);
}

/* A report of a program with kernels of these names tells what to call, in one framework's words.
 */
static void expect_call(struct prof_report_data *data, const char *kernel, const char *other,
                        const char *call)
{
    static const char *const words[] = {"cudaStream", "torch.", "jax."};
    struct prof_kernel_row rows[] = {
        {.name = kernel, .library = prof_library_text(prof_name_library(kernel))},
        {.name = other, .library = prof_library_text(prof_name_library(other))}};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    data->kernels = (struct prof_kernel_summary){.rows = rows, .count = 2};
    prof_report_markdown_findings(out, data, PROF_REPORT_FINDINGS_ALL, put_text);
    fclose(out);
    ck_assert_msg(strstr(text, call) != NULL, "%s", text);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        ck_assert_msg(strstr(call, words[i]) || !strstr(text, words[i]), "%s", text);
    free(text);
}

static int k[4];

static void twenty_short_ones(struct scene *s, int number)
{
    (void)number;
    scene_push(s, "step");
    for (int i = 0; i < 20; i++)
        scene_kernel(s, 0, k[i % 4], 1500);
    scene_sync(s);
    scene_pop(s);
}

/* Each rank's steps are its own: told is what one of them does in a step of its. */
START_TEST(ranks_have_steps_of_their_own)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    scene_second(&s, true, true);
    for (int i = 0; i < 4; i++)
        k[i] = scene_config(&s, (const char *[]){"add", "scale", "shift", "gelu"}[i], 264, 256, 32);
    both(&s, twenty_short_ones, STEPS);
    struct judged j = judge(&s);
    const struct prof_finding *finding = finding_of(&j.findings, "graph-candidate");
    ck_assert_int_eq(j.findings.steps, STEPS);
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(strstr(finding->seen, "the same 20 kernels"));
    ck_assert_uint_eq(finding->devices, 2);
    silent(&j, "launch-bound");
    /* A report says which device it is about. */
    struct prof_report_data data = {.capture = j.capture, .findings = j.findings};
    char line[300];
    prof_report_finding_price(&data, finding, line, sizeof line);
    ck_assert_msg(strstr(line, "; on GPU") && strstr(line, " and 1 more"), "%s", line);
    data.findings.waterfall_count = 1;
    prof_report_finding_price(&data, finding, line, sizeof line);
    ck_assert_msg(!strstr(line, " on GPU"), "%s", line);
    static const char cuda[] = "- with: cudaStreamBeginCapture", jax[] = "- with: jax.jit around";
    static const char torch[] = "- with: torch.compile(mode", aten[] = "void at::native::fill<4>";
    expect_call(&data, "gemm", NULL, cuda);
    expect_call(&data, aten, NULL, torch);
    expect_call(&data, "wrapped_tanh", "loop_multiply_tanh_fusion", jax);
    expect_call(&data, "gemm_fusion_dot_general_1", NULL, jax);
    expect_call(&data, "input_reduce_fusion_6", aten, torch);
    expect_call(&data, "wrapped_rows", NULL, cuda);
    expect_call(&data, "loop_add_fusion", "void tensorflow::functor::FillKernel<float>", cuda);
    done(&j);
}
END_TEST

static void second_allocates(struct scene *s, int number)
{
    (void)number;
    for (int i = 0; i < 4; i++) {
        int64_t start = s->host;
        if (s->side)
            scene_call(s, "cudaMalloc", 90 * US);
        scene_host(s, 12 * US);
        scene_kernel(s, 0, k[0], s->side ? 200 * US : 10 * US);
        if (!s->side)
            continue;
        scene_sync(s);
        scene_call(s, "cudaFree", 60 * US);
        scene_lifetime(s, start, s->host, MIB, 3);
    }
    scene_sync(s);
}

/* Who allocates holds up the device that it launches on, and not another thread's, also where it is
 * not known of which device the memory is. */
START_TEST(allocations_are_of_a_device)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    scene_second(&s, _i & 1, true);
    k[0] = scene_config(&s, "work", 13200, 256, 32);
    both(&s, second_allocates, STEPS);
    if (_i & 2)
        scene_sql(&s, "UPDATE allocation SET device = NULL");
    struct judged j = judge(&s);
    const struct prof_finding *finding = finding_of(&j.findings, "alloc-in-loop");
    ck_assert_ptr_nonnull(finding);
    ck_assert_int_eq(finding->device, 2);
    ck_assert_uint_eq(finding->devices, 1);
    finding = finding_of(&j.findings, "implicit-sync");
    ck_assert(!finding || finding->device == 2);
    done(&j);
}
END_TEST

static void one_down_one_up(struct scene *s, int number)
{
    (void)number;
    scene_kernel(s, 0, k[0], 300 * US);
    scene_copy(s, 0, s->side ? SCENE_UP : SCENE_DOWN, SCENE_PINNED, (s->side ? 1 : 4) * MIB,
               100 * US, true);
    scene_host(s, s->side ? 40 * US : 0);
}

/* What one program brings down and another one sends up is no trip of data. */
START_TEST(two_programs_pass_nothing_on)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    scene_second(&s, true, false);
    k[0] = scene_config(&s, "work", 13200, 256, 32);
    both(&s, one_down_one_up, STEPS);
    struct judged j = judge(&s);
    silent(&j, "host-round-trip");
    silent(&j, "repeated-upload");
    done(&j);
}
END_TEST

/* The second one's between two of the first one's. */
static void one_kernel(struct scene *s, int number)
{
    (void)number;
    scene_host(s, s->side ? 120 * US : 0);
    scene_kernel(s, 0, k[0], 100 * US);
    scene_host(s, s->side ? 120 * US : 240 * US);
}

/* One in its default stream, one in streams that would wait for that of their own process. */
START_TEST(default_streams_are_of_a_process)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    scene_second(&s, true, false);
    scene_sql(&s, "UPDATE stream SET is_default = (id = 1), non_blocking = 0");
    k[0] = scene_config(&s, "branch", 16, 256, 32);
    both(&s, one_kernel, STEPS);
    struct judged j = judge(&s);
    silent(&j, "implicit-sync");
    const struct prof_finding *finding = finding_of(&j.findings, "serial-streams");
    if (!finding)
        findings_list(&j.findings);
    ck_assert_ptr_nonnull(finding);
    ck_assert_ptr_nonnull(
        strstr(finding->seen, "2 streams of 2 processes run one after the other"));
    done(&j);
}
END_TEST

/* Two queues with a short row of work each, on the host's two processors. */
static void two_queues(struct scene *s, bool waits)
{
    scene_open(s, "opencl", "cpu");
    k[0] = scene_config(s, "sum", 1, 1, 0);
    for (int i = 0; i < STEPS; i++) {
        scene_push(s, "step");
        for (int queue = 0; queue < 2; queue++) {
            if (queue && waits)
                scene_sync(s);
            s->stream[queue] =
                s->stream[queue] > s->stream[!queue] ? s->stream[queue] : s->stream[!queue];
            scene_kernel(s, queue, k[0], 300 * US);
        }
        scene_sync(s);
        scene_pop(s);
    }
}

/* The program keeps them apart: a wait of the host, or an order that the runtime obeys. */
START_TEST(queues_in_turn_leave_processors_idle)
{
    for (int waits = 0; waits < 2; waits++) {
        struct scene s;
        two_queues(&s, waits);
        struct judged j = judge(&s);
        const struct prof_finding *finding = finding_of(&j.findings, "serial-streams");
        if (!finding)
            findings_list(&j.findings);
        ck_assert_ptr_nonnull(finding);
        ck_assert_int_gt(finding->severity, PROF_SEVERITY_INFO);
        done(&j);
    }
}
END_TEST

/* It does not: the runtime had both kernels, and the processors had other work. */
START_TEST(queues_that_were_ready_are_no_fault)
{
    struct scene s;
    two_queues(&s, false);
    scene_sql(&s, "UPDATE kernel SET submit_delay = CASE id %% 2 WHEN 0 THEN 300000 ELSE 9000 END");
    struct judged j = judge(&s);
    silent(&j, "serial-streams");
    done(&j);
}
END_TEST

/* Of two results a step, that the host waits for, one wait is needed. */
START_TEST(one_awaited_copy_a_step_is_needed)
{
    struct scene s;
    scene_open(&s, "opencl", "cpu");
    k[0] = scene_config(&s, "work", 64, 64, 0);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        scene_kernel(&s, 0, k[0], 900 * US);
        scene_copy(&s, 0, SCENE_DOWN, SCENE_PAGEABLE, 4096, 2 * US, true);
        scene_copy(&s, 0, SCENE_DOWN, SCENE_PAGEABLE, 4096, 2 * US, true);
        scene_pop(&s);
    }
    struct judged j = judge(&s);
    const struct prof_finding *finding = finding_of(&j.findings, "blocking-copy");
    ck_assert_ptr_nonnull(finding);
    const struct prof_number *share = NULL, *idle = NULL;
    for (size_t i = 0; i < finding->number_count; i++) {
        share = strcmp(finding->numbers[i].name, "avoidable_share") ? share : &finding->numbers[i];
        idle = strcmp(finding->numbers[i].name, "avoidable_idle_ns") ? idle : &finding->numbers[i];
    }
    ck_assert(share && idle);
    ck_assert_double_eq_tol(share->value, 0.5, 0.02);
    int64_t window = finding->typical_phase_ns;
    ck_assert_double_le(idle->value, 0.5 * (double)(window - STEPS * 900 * US) * 1.02);
    done(&j);
}
END_TEST

/* A device that takes part at the beginning only is not starved afterwards. */
START_TEST(a_device_that_is_done_does_not_wait)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    scene_second(&s, false, true);
    k[0] = scene_config(&s, "work", 13200, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        for (int side = 0; side <= (i < 8); side++) {
            scene_as(&s, side);
            scene_kernel(&s, 0, k[0], 300 * US);
            scene_sync(&s);
        }
    }
    struct judged j = judge(&s);
    silent(&j, "host-starvation");
    done(&j);
}
END_TEST

/* Both compile at one time: together they take no more of the run than it has. */
START_TEST(compiling_side_by_side_is_told_once)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    scene_second(&s, true, true);
    k[0] = scene_config(&s, "work", 13200, 256, 32);
    for (int side = 0; side < 2; side++) {
        scene_as(&s, side);
        scene_call(&s, "cuModuleLoadData", 80 * MS);
    }
    both(&s, one_kernel, STEPS);
    struct judged j = judge(&s);
    const struct prof_finding *finding = finding_of(&j.findings, "one-off-cost");
    ck_assert_ptr_nonnull(finding);
    ck_assert_str_eq(finding->numbers[0].name, "one_off_ns");
    ck_assert_double_eq_tol(finding->numbers[0].value, 80e6, 1);
    done(&j);
}
END_TEST

/* What was compiled before the selected part of a run is no share of that part. */
START_TEST(compiling_before_the_selected_part_does_not_count)
{
    struct scene s;
    struct prof_findings findings;
    struct prof_error err = {0};
    scene_open(&s, "cuda", "gpu");
    k[0] = scene_config(&s, "work", 13200, 256, 32);
    scene_call(&s, "cuModuleLoadData", 80 * MS);
    int64_t loaded = s.host;
    for (int i = 0; i < STEPS; i++) {
        one_kernel(&s, i);
        scene_sync(&s);
    }
    struct prof_capture *capture = scene_close(&s);
    const struct prof_filter after = {.begin_ns = loaded};
    const struct prof_filter half = {.begin_ns = loaded - 40 * MS};
    ck_assert(!prof_findings(capture, &after, &findings, &err));
    ck_assert_ptr_null(finding_of(&findings, "one-off-cost"));
    prof_findings_free(&findings);
    ck_assert(!prof_findings(capture, &half, &findings, &err));
    const struct prof_finding *finding = finding_of(&findings, "one-off-cost");
    ck_assert_ptr_nonnull(finding);
    ck_assert_double_eq_tol(finding->numbers[0].value, 40e6, 1);
    ck_assert_double_le(finding->numbers[1].value, 1);
    scene_done(capture, &findings);
}
END_TEST

/* One thread launches on two devices and waits for each once a step: none waits twice. */
START_TEST(a_wait_is_for_one_device)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    scene_second(&s, false, true);
    s.sides[1].thread = 1;
    k[0] = scene_config(&s, "work", 13200, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_push(&s, "step");
        for (int turn = 0; turn < 4; turn++) {
            int64_t host = s.host;
            scene_as(&s, turn % 2);
            s.host = host;
            if (turn < 2)
                scene_kernel(&s, 0, k[0], 200 * US);
            else
                scene_sync(&s);
        }
        scene_pop(&s);
    }
    struct judged j = judge(&s);
    silent(&j, "sync-stall");
    done(&j);
}
END_TEST

/* A worker that prepares data has ranges of its own, seldomer than steps, also such that are called
 * as the steps are: those are none. */
START_TEST(steps_are_of_threads_that_launch)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    scene_second(&s, _i % 2, false);
    for (int i = 0; i < 4; i++)
        k[i] = scene_config(&s, (const char *[]){"add", "scale", "shift", "gelu"}[i], 264, 256, 32);
    for (int i = 0; i < STEPS; i++) {
        scene_as(&s, 0);
        twenty_short_ones(&s, i);
        scene_as(&s, 1);
        if (i % 2) {
            scene_push(&s, _i < 2 ? "load" : "step");
            scene_host(&s, 100 * US);
            scene_pop(&s);
        }
        s.host = s.sides[0].host;
    }
    struct judged j = judge(&s);
    ck_assert_str_eq(j.findings.step_name, "step");
    ck_assert_int_eq(j.findings.steps, STEPS);
    done(&j);
}
END_TEST

/* What repeats all over the run, but seldomer than the part that is judged is long, is no step. */
START_TEST(what_is_rare_is_no_step)
{
    struct scene s;
    scene_open(&s, "cuda", "gpu");
    for (int i = 0; i < 4; i++)
        k[i] = scene_config(&s, (const char *[]){"add", "scale", "shift", "gelu"}[i], 264, 256, 32);
    for (int rare = 0; rare < 8; rare++) {
        scene_push(&s, "allocate");
        scene_host(&s, 100 * US);
        scene_pop(&s);
        scene_host(&s, 20 * MS);
        for (int i = 0; rare == 3 && i < STEPS; i++)
            twenty_short_ones(&s, i);
    }
    struct judged j = judge(&s);
    ck_assert_str_eq(j.findings.step_name, "step");
    ck_assert_int_eq(j.findings.steps, STEPS);
    done(&j);
}
END_TEST

static size_t occurrences(const char *text, const char *of)
{
    size_t count = 0;
    while ((text = strstr(text, of))) {
        count++;
        text += strlen(of);
    }
    return count;
}

/* A rule with several phases is one entry of the lists of the first findings, with the sum. */
START_TEST(a_rule_is_listed_once)
{
    struct scene s;
    char *lists[2] = {0};
    size_t sizes[2], rows = 0;
    scene_open(&s, "cuda", "gpu");
    for (int i = 0; i < 4; i++)
        k[i] = scene_config(&s, (const char *[]){"add", "scale", "shift", "gelu"}[i], 264, 256, 32);
    for (int phase = 0; phase < 2; phase++) {
        scene_push(&s, phase ? "second" : "first");
        for (int i = 0; i < STEPS; i++)
            twenty_short_ones(&s, i);
        scene_pop(&s);
    }
    struct judged j = judge(&s);
    for (size_t i = 0; i < j.findings.count; i++)
        rows += !strcmp(j.findings.rows[i].rule->id, "graph-candidate");
    ck_assert_uint_eq(rows, 2);
    struct prof_report_data data = {.capture = j.capture, .findings = j.findings};
    struct prof_html_page page = {.data = &data};
    for (int i = 0; i < 2; i++) {
        FILE *out = open_memstream(&lists[i], &sizes[i]);
        if (i)
            prof_html_put_top_findings(out, &page);
        else
            prof_report_markdown_findings(out, &data, PROF_REPORT_FINDINGS_TOP, put_text);
        fclose(out);
        ck_assert_msg(occurrences(lists[i], "in 2 phases") >= 1, "%s", lists[i]);
    }
    ck_assert_msg(occurrences(lists[0], "### graph-candidate") == 1, "%s", lists[0]);
    ck_assert_msg(occurrences(lists[1], finding_of(&j.findings, "graph-candidate")->rule->title) ==
                      1,
                  "%s", lists[1]);
    free(lists[0]);
    free(lists[1]);
    done(&j);
}
END_TEST

CHECK_MAIN_LOOPS("sharing", {ranks_have_steps_of_their_own, 1}, {allocations_are_of_a_device, 4},
                 {two_programs_pass_nothing_on, 1}, {default_streams_are_of_a_process, 1},
                 {queues_in_turn_leave_processors_idle, 1},
                 {queues_that_were_ready_are_no_fault, 1}, {one_awaited_copy_a_step_is_needed, 1},
                 {a_device_that_is_done_does_not_wait, 1}, {a_wait_is_for_one_device, 1},
                 {steps_are_of_threads_that_launch, 4}, {what_is_rare_is_no_step, 1},
                 {a_rule_is_listed_once, 1}, {compiling_side_by_side_is_told_once, 1},
                 {compiling_before_the_selected_part_does_not_count, 1})
