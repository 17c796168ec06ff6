/* What is kept of a run: sketches of times, and a run as a JSON document and back, also damaged
 * ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/compare/metric.h"
#include "libprof/analysis/compare/noise.h"
#include "libprof/base/json.h"
#include "tests/check_main.h"
#include "tests/failing_json.h"

START_TEST(sketch_of_known_values)
{
    double values[100];
    for (int i = 0; i < 100; i++)
        values[i] = exp((i * 37 % 100) / 100.0);
    values[3] = 1e12; /* one outlier moves nothing but the maximum and the sum */
    struct prof_sketch s;
    ck_assert(prof_sketch_make(values, 100, &s));
    ck_assert_int_eq(s.count, 100);
    ck_assert_int_eq(s.batches, 16);
    ck_assert(fabs(s.log_mean - 0.495) < 0.01);
    ck_assert(fabs(log(s.quantile[7]) - 0.49) < 0.02);
    ck_assert(s.quantile[14] > 9e11f);
    ck_assert(!prof_sketch_multimodal(&s));
}
END_TEST

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorted as the C library sorts, for every small number of values, also equal ones. */
START_TEST(quantiles_of_any_count)
{
    static const int cycles[] = {7919, 1, 3, 17};
    double values[300];
    for (size_t count = 1; count <= 300; count++) {
        for (size_t c = 0; c < sizeof cycles / sizeof *cycles; c++) {
            for (size_t i = 0; i < count; i++)
                values[i] = 1 + (double)((i * 31 + count) % (size_t)cycles[c]);
            struct prof_sketch s;
            ck_assert(prof_sketch_make(values, count, &s));
            qsort(values, count, sizeof *values, by_value);
            for (int q = 0; q < PROF_SKETCH_QUANTILES; q++) {
                double rank = ceil(prof_sketch_at[q] * (double)count) - 1;
                double expected = values[rank < 0 ? 0 : (size_t)rank];
                ck_assert(fabs(s.quantile[q] - expected) < 1e-5 * expected);
            }
        }
    }
}
END_TEST

START_TEST(small_and_odd_sketches)
{
    struct prof_sketch s;
    ck_assert(prof_sketch_make(NULL, 0, &s));
    ck_assert_int_eq(s.count, 0);
    const double one[] = {8}, odd[] = {0, -1, NAN, 5, INFINITY};
    ck_assert(prof_sketch_make(one, 1, &s));
    ck_assert(fabs(s.log_mean - log(8)) < 1e-12 && !s.batches);
    ck_assert(isnan(prof_sketch_variance(&s)));
    ck_assert(prof_sketch_make(odd, 5, &s));
    ck_assert(isfinite(s.log_mean) && isfinite(s.sum));
}
END_TEST

START_TEST(modes_drift_and_neighbours)
{
    double two[200], rising[200], even[200];
    for (int i = 0; i < 200; i++) {
        double small = (i * 61 % 199) / 199.0 * 0.01;
        two[i] = (i % 2 ? 1.2 : 1.0) * (1 + small);
        rising[i] = (1 + 0.1 * i / 200) * (1 + small);
        even[i] = 1 + small;
    }
    struct prof_sketch a, b, c;
    ck_assert(prof_sketch_make(two, 200, &a) && prof_sketch_make(rising, 200, &b) &&
              prof_sketch_make(even, 200, &c));
    ck_assert(prof_sketch_multimodal(&a) && !prof_sketch_multimodal(&c));
    ck_assert(prof_sketch_drift(&b) > 0.06 && fabs(prof_sketch_drift(&c)) < 0.005);
    ck_assert(prof_sketch_correlation(&b) > 0.5);
    /* what depends on the place in the run drops out of pairs */
    ck_assert(prof_sketch_variance(&b) > 1e-5);
    ck_assert(prof_sketch_paired_variance(&b, &b) == 0);
    ck_assert(isnan(prof_sketch_paired_variance(&a, &(struct prof_sketch){.count = 3})));
}
END_TEST

static struct prof_run sample(void)
{
    struct prof_run run;
    bool failed = false;
    prof_run_init(&run);
    run.iteration = prof_run_text(&run, "step", 4, &failed);
    run.iterations = 12;
    run.steady_ns = 123456789;
    run.complete = true;
    run.clock_hz = 1.7e9;
    run.environment = calloc(2, sizeof *run.environment);
    run.environment[run.environment_count++] =
        (struct prof_environment){"device", prof_run_text(&run, "H200", 4, &failed), 0};
    run.environment[run.environment_count++] =
        (struct prof_environment){"driver", NULL, PROF_ENVIRONMENT_SOFT};
    run.metrics = calloc(3, sizeof *run.metrics);
    const double times[] = {5, 6, 7, 8};
    run.metrics[0] = (struct prof_metric){.family = PROF_METRIC_KERNEL,
                                          .name = "gemm<128>",
                                          .place = "step/forward",
                                          .grid = {264, 1, 1},
                                          .block = {PROF_UNKNOWN, PROF_UNKNOWN, PROF_UNKNOWN}};
    ck_assert(prof_sketch_make(times, 4, &run.metrics[0].sketch));
    run.metrics[1] = (struct prof_metric){.family = PROF_METRIC_COPIES,
                                          .name = "HtoD",
                                          .place = "step",
                                          .inside = 7,
                                          .outside = INT64_MAX};
    run.metrics[2] = (struct prof_metric){
        .family = PROF_METRIC_FINDING, .name = "launch-bound", .place = "", .inside = 1};
    run.count = 3;
    ck_assert(!failed);
    return run;
}

START_TEST(text_and_back)
{
    struct prof_run run = sample(), back;
    char *json, *again;
    ck_assert(!prof_run_encode(&run, &json, NULL));
    ck_assert_uint_lt(strlen(json), 1000);
    ck_assert(!prof_run_decode(json, &back, NULL));
    ck_assert_str_eq(back.iteration, "step");
    ck_assert_int_eq(back.iterations, 12);
    ck_assert(back.complete && !back.why_incomplete && back.clock_hz == 1.7e9);
    ck_assert_int_eq(back.wall_ns, PROF_UNKNOWN);
    ck_assert_uint_eq(back.environment_count, 2);
    ck_assert_str_eq(back.environment[0].value, "H200");
    ck_assert_ptr_null(back.environment[1].value);
    ck_assert_int_eq(back.environment[1].level, PROF_ENVIRONMENT_SOFT);
    ck_assert_uint_eq(back.count, 3);
    const struct prof_metric *kernel = &back.metrics[0];
    ck_assert_str_eq(kernel->place, "step/forward");
    ck_assert_int_eq(kernel->grid[0], 264);
    ck_assert_int_eq(kernel->block[2], PROF_UNKNOWN);
    ck_assert(!memcmp(&kernel->sketch, &run.metrics[0].sketch, sizeof kernel->sketch));
    ck_assert_int_eq(back.metrics[1].outside, INT64_MAX);
    char text[200];
    prof_metric_text(kernel, text, sizeof text);
    ck_assert_str_eq(text, "kernel:gemm<128> (264,1,1)");
    prof_metric_text(&back.metrics[1], text, sizeof text);
    ck_assert_str_eq(text, "copies:HtoD @step");
    ck_assert(!prof_run_encode(&back, &again, NULL));
    ck_assert_str_eq(again, json);
    free(again);
    free(json);
    prof_run_free(&run);
    prof_run_free(&back);
}
END_TEST

/* Numbers that a double rounds, and texts that are no UTF-8, come back as they were. */
START_TEST(what_json_alone_would_lose)
{
    static const int64_t counts[] = {9007199254740991, 9007199254740993, -9007199254740993,
                                     INT64_MAX - 1,    INT64_MIN,        2147483648};
    static const double reals[] = {0.1, 1.0 / 3, 123456789.123456789, 5e-324,
                                   1.7976931348623157e308};
    struct prof_run run = sample(), back;
    char *json;
    bool failed = false;
    run.metrics[1].name = prof_run_text(&run, "a\xff\n\"b", 5, &failed);
    ck_assert(!failed);
    ck_assert_str_eq(run.metrics[1].name, "a\\xff\n\"b");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        run.metrics[1].inside = counts[i];
        run.metrics[0].sketch.sum = reals[i % 5];
        run.metrics[0].sketch.quantile[3] = (float)reals[i % 3];
        ck_assert(!prof_run_encode(&run, &json, NULL));
        ck_assert(!prof_run_decode(json, &back, NULL));
        ck_assert_int_eq(back.metrics[1].inside, counts[i]);
        ck_assert_str_eq(back.metrics[1].name, "a\\xff\n\"b");
        ck_assert(back.metrics[0].sketch.sum == reals[i % 5]);
        ck_assert(back.metrics[0].sketch.quantile[3] == (float)reals[i % 3]);
        free(json);
        prof_run_free(&back);
    }
    prof_run_free(&run);
}
END_TEST

/* Cut anywhere, and with any byte changed: an error or a run, never a crash; ASan and UBSan watch.
 */
START_TEST(damaged_texts)
{
    struct prof_run run = sample(), back;
    char *json;
    struct prof_error err = {0};
    ck_assert(!prof_run_encode(&run, &json, NULL));
    size_t length = strlen(json);
    for (size_t cut = 0; cut < length; cut++) {
        char *part = strndup(json, cut);
        ck_assert_int_eq(prof_run_decode(part, &back, &err), PROF_CORRUPT);
        free(part);
    }
    for (size_t at = 0; at < length; at++) {
        for (int value = 0; value < 256; value += 5) {
            char old = json[at];
            json[at] = (char)value;
            if (!prof_run_decode(json, &back, &err))
                prof_run_free(&back);
            json[at] = old;
        }
    }
    free(json);
    prof_run_free(&run);
}
END_TEST

/* Each allocation of cJSON fails once. */
START_TEST(out_of_memory)
{
    struct prof_run run = sample(), back;
    char *json, *again;
    ck_assert(!prof_run_encode(&run, &json, NULL));
    let_json_fail();
    bool encoded = false, decoded = false;
    for (long most = 0; !encoded || !decoded; most++) {
        allocations_allowed = most;
        enum prof_status status = prof_run_encode(&run, &again, NULL);
        ck_assert(status == (again ? PROF_OK : PROF_NOMEM));
        encoded = !status;
        if (encoded)
            ck_assert_str_eq(again, json);
        free(again);
        allocations_allowed = most;
        status = prof_run_decode(json, &back, NULL);
        ck_assert(status == PROF_OK || status == PROF_NOMEM);
        decoded = !status;
        if (decoded)
            prof_run_free(&back);
        ck_assert_int_lt(most, 1000);
    }
    cJSON_InitHooks(NULL);
    free(json);
    prof_run_free(&run);
}
END_TEST

/* JSON, and an object, but not what a run says. */
START_TEST(values_that_are_wrong)
{
#define HEAD "{\"perfkit_run\":1,\"iteration_source\":\"run\","
    static const char *const right[] = {
        HEAD "\"metrics\":[]}", HEAD "\"a word of tomorrow\":[1]}",
        HEAD "\"metrics\":[{\"family\":\"syncs\",\"outside\":\"9007199254740993\"}]}"};
    static const char *const wrong[] = {
        "[]",
        "1",
        "\"run\"",
        "{}",
        "{\"perfkit_run\":1}",
        "{\"perfkit_run\":\"x\"}",
        "{\"perfkit_run\":1,\"iteration_source\":\"never\"}",
        HEAD "\"iterations\":-1}",
        HEAD "\"iterations\":1.5}",
        HEAD "\"iterations\":1e300}",
        HEAD "\"steady_ns\":\"12x\"}",
        HEAD "\"steady_ns\":\"99999999999999999999\"}",
        HEAD "\"clock_hz\":1e999}",
        HEAD "\"clock_hz\":\"1\"}",
        HEAD "\"iteration\":7}",
        HEAD "\"metrics\":{}}",
        HEAD "\"metrics\":[1]}",
        HEAD "\"metrics\":[{\"family\":\"nothing\"}]}",
        HEAD "\"metrics\":[{\"family\":\"syncs\"},{\"family\":\"syncs\"}]}",
        HEAD "\"metrics\":[{\"family\":\"kernel\",\"grid\":[1,1],\"block\":[1,1,1]}]}",
        HEAD "\"metrics\":[{\"family\":\"wall\",\"count\":1,\"sum\":1,\"log_mean\":1,"
             "\"batches\":17}]}",
        HEAD "\"metrics\":[{\"family\":\"wall\",\"count\":1,\"sum\":1,\"log_mean\":1,"
             "\"batches\":1,\"batch\":[1e39]}]}",
        HEAD "\"metrics\":[{\"family\":\"wall\",\"count\":1,\"sum\":1,\"log_mean\":1,"
             "\"batches\":1,\"batch\":[1,2]}]}",
        HEAD "\"environment\":[{\"name\":\"cpu\",\"level\":\"firm\"}]}",
        HEAD "\"skipped\":1,\"skipped\":2}"};
    struct prof_error err = {0};
    struct prof_run run;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        ck_assert_msg(!prof_run_decode(right[i], &run, &err), "%s: %s", right[i], err.message);
        prof_run_free(&run);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(prof_run_decode(wrong[i], &run, &err) == PROF_CORRUPT, "%s", wrong[i]);
    ck_assert_int_eq(prof_run_decode("{\"perfkit_run\":2}", &run, &err), PROF_VERSION);
    ck_assert(strstr(err.message, "later perfkit"));
}
END_TEST

START_TEST(names)
{
    for (enum prof_metric_family f = 0; f < PROF_METRICS; f++)
        ck_assert_int_eq(prof_metric_named(prof_metric_info(f)->name), f);
    ck_assert_int_eq(prof_metric_named("nothing"), PROF_METRICS);
    ck_assert_str_eq(prof_verdict_name(PROF_VERDICT_FAIL), "FAIL");
    ck_assert_str_eq(prof_reason_code(PROF_REASON_FEW_RUNS), "few-runs");
    ck_assert(prof_policy_default(PROF_METRIC_WALL).min_effect == 0.03);
}
END_TEST

CHECK_MAIN("run", sketch_of_known_values, quantiles_of_any_count, small_and_odd_sketches,
           modes_drift_and_neighbours, text_and_back, what_json_alone_would_lose, damaged_texts,
           out_of_memory, values_that_are_wrong, names)
