/* What every workload stands on: statistics, the JSON writer, options, and the verification that
 * must not let a NaN pass.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check_main.h"
#include "workloads/common/claims.h"
#include "workloads/common/json.h"
#include "workloads/common/measure.h"
#include "workloads/common/options.h"
#include "workloads/common/random.h"
#include "workloads/common/report.h"

START_TEST(statistics)
{
    double odd[] = {5, 1, 100, 3, 2}, even[] = {4, 1, 3, 2}, one[] = {7};
    struct stats s = stats_of(odd, 5);

    ck_assert(s.median == 3 && s.min == 1 && s.max == 100 && s.mad == 2 && s.count == 5);
    s = stats_of(even, 4);
    ck_assert(s.median == 2.5 && s.mad == 1);
    s = stats_of(one, 1);
    ck_assert(s.mean == 7 && s.median == 7 && s.mad == 0);
    s = stats_of(NULL, 0);
    ck_assert(isnan(s.mean) && isnan(s.median) && isnan(s.min) && s.count == 0);
}
END_TEST

static enum claim_verdict judge(enum claim_test test, enum claim_unit unit, double before,
                                double after, double claimed, const char *excuse)
{
    struct claim claim = {.before = "before",
                          .before_value = before,
                          .after_value = after,
                          .unit = unit,
                          .test = test,
                          .claimed = claimed,
                          .excuse = excuse};

    return claim_verdict(&claim);
}

START_TEST(verdicts_of_claims)
{
    struct claims claims = {0};
    struct claim *claim = claims_add(&claims, "name", "seed");

    /* less time is better, a larger share is better */
    ck_assert_int_eq(judge(CLAIM_GAIN_AT_LEAST, CLAIM_NS, 30, 10, 3, NULL), VERDICT_REACHED);
    ck_assert_int_eq(judge(CLAIM_GAIN_AT_LEAST, CLAIM_NS, 10, 30, 3, NULL), VERDICT_MISSED);
    ck_assert_int_eq(judge(CLAIM_GAIN_AT_LEAST, CLAIM_SHARE, 0.3, 0.9, 3, NULL), VERDICT_REACHED);
    ck_assert_int_eq(judge(CLAIM_GAIN_AT_LEAST, CLAIM_NS, 20, 10, 3, "why"), VERDICT_DIFFERS);
    ck_assert_int_eq(judge(CLAIM_GAIN_AT_LEAST, CLAIM_NS, 30, 10, 3, "why"), VERDICT_REACHED);
    /* everything gone is the largest gain there is */
    ck_assert_int_eq(judge(CLAIM_GAIN_AT_LEAST, CLAIM_COUNT, 320, 0, 10, NULL), VERDICT_REACHED);
    ck_assert_int_eq(judge(CLAIM_GAIN_AT_MOST, CLAIM_NS, 10, 20, 1, NULL), VERDICT_REACHED);
    ck_assert_int_eq(judge(CLAIM_GAIN_AT_MOST, CLAIM_NS, 20, 10, 1, NULL), VERDICT_MISSED);
    ck_assert_int_eq(judge(CLAIM_AT_LEAST, CLAIM_SHARE, NAN, 0.6, 0.5, NULL), VERDICT_REACHED);
    ck_assert_int_eq(judge(CLAIM_AT_LEAST, CLAIM_SHARE, NAN, 0.4, 0.5, NULL), VERDICT_MISSED);
    ck_assert_int_eq(judge(CLAIM_AT_MOST, CLAIM_RATIO, NAN, 1.2, 1.1, NULL), VERDICT_MISSED);
    ck_assert_int_eq(judge(CLAIM_GAIN_AT_LEAST, CLAIM_NS, 30, 10, 0, NULL), VERDICT_MEASURED);
    /* what is not there is not a miss */
    ck_assert_int_eq(judge(CLAIM_GAIN_AT_LEAST, CLAIM_NS, NAN, 10, 3, "why"), VERDICT_UNSHOWN);
    ck_assert_int_eq(judge(CLAIM_AT_LEAST, CLAIM_SHARE, 1, NAN, 0.5, NULL), VERDICT_UNSHOWN);
    ck_assert_int_eq(claim_verdict(claim), VERDICT_UNSHOWN);
    claim->before_value = 20;
    claim->after_value = 10;
    claim->claimed = 1;
    ck_assert_int_eq(claim_verdict(claim), VERDICT_REACHED);
    claim->unavailable = "not on this device";
    ck_assert_int_eq(claim_verdict(claim), VERDICT_UNSHOWN);
    for (int i = 0; i < 100; i++)
        ck_assert_ptr_nonnull(claims_add(&claims, "more", "seed"));
    ck_assert(claims.count == 101 && strcmp(claims.rows[0].claim, "name") == 0);
    claims_free(&claims);
}
END_TEST

START_TEST(verification_catches)
{
    double reference[] = {3, 4}, zeros[] = {0, 0};
    float same[] = {3, 4}, off[] = {3, 4.5f}, poisoned[] = {3, NAN}, nothing[] = {0, 0};
    struct check check = {.tolerance = 0.2};

    ck_assert(relative_error(same, reference, 2) == 0);
    ck_assert(fabs(relative_error(off, reference, 2) - 0.1) < 1e-12);
    ck_assert(isnan(relative_error(poisoned, reference, 2)));
    ck_assert(relative_error(nothing, zeros, 2) == 0);
    ck_assert(isinf(relative_error(same, zeros, 2)));
    check_note(&check, 0);
    ck_assert(check.done && check_passed(&check));
    check_note(&check, 0.1);
    check_note(&check, 0.05);
    ck_assert(check.error == 0.1 && check_passed(&check));
    check_note(&check, NAN);
    check_note(&check, 0);
    ck_assert(!check_passed(&check)); /* a NaN stays */
    check = (struct check){.tolerance = 0.2};
    check_note(&check, 0.3);
    ck_assert(!check_passed(&check));
}
END_TEST

START_TEST(json_is_quoted)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    struct json json = {.file = file};

    json_object_begin(&json, NULL);
    json_text(&json, "a \"b\"\\", "line\nend\x01");
    json_text(&json, "none", NULL);
    json_number(&json, "nan", NAN);
    json_number(&json, "x", 1.5);
    json_array_begin(&json, "list");
    json_integer(&json, NULL, 18446744073709551615u);
    json_bool(&json, NULL, false);
    json_array_end(&json);
    json_array_begin(&json, "empty");
    json_array_end(&json);
    json_object_end(&json);
    fclose(file);
    ck_assert_str_eq(text, "{\n\t\"a \\\"b\\\"\\\\\":\t\"line\\nend\\u0001\",\n\t\"none\":\tnull,\n"
                           "\t\"nan\":\tnull,\n\t\"x\":\t1.5,\n"
                           "\t\"list\":\t[18446744073709551615, false],\n\t\"empty\":\t[]\n}\n");
    free(text);
}
END_TEST

/* Two results, of which the second could not be measured. */
static void printed_row(struct output *out, const void *context, size_t index)
{
    const double *ns = context;

    output_text(out, "variant", "<variant", index ? "far" : "near");
    if (output_skipped(out, index ? "no device" : "")) {
        output_note(out, "far: not available: no device");
        return;
    }
    output_duration(out, "wall_ns", "wall", ns[index]);
    output_count(out, "launches", NULL, 3);
    output_number(out, NULL, "MB", 1, 1e-6, 2.5e6);
}

START_TEST(a_row_is_table_and_json)
{
    static const double ns[] = {1500, NAN};
    static const char table[] =
        "variant     wall   MB\nnear     1500 ns  2.5\nfar          n/a  n/a\n"
        "  far: not available: no device\n";
    static const char members[] = "\"results\":\t[{\n\t\t\t\"variant\":\t\"near\",\n"
                                  "\t\t\t\"wall_ns\":\t1500,\n\t\t\t\"launches\":\t3\n\t\t}, {\n"
                                  "\t\t\t\"variant\":\t\"far\",\n"
                                  "\t\t\t\"skipped\":\t\"no device\"\n\t\t}]\n}\n";
    struct dev_info info = {.backend = DEV_CPU};

    for (int json = 0; json < 2; json++) {
        char text[4096] = {0};
        struct common_options common = {.json = json};
        FILE *file = tmpfile();
        struct output out;
        const char *found;

        ck_assert_int_ge(dup2(fileno(file), STDOUT_FILENO), 0);
        output_begin(&out, "test", &info, &common);
        output_rows(&out, "results", NULL, 2, printed_row, ns);
        output_end(&out, NULL);
        fflush(stdout);
        ck_assert_int_gt(pread(fileno(file), text, sizeof text - 1, 0), 0);
        found = strstr(text, json ? "\"results\"" : "variant");
        ck_assert_ptr_nonnull(found);
        ck_assert_str_eq(found, json ? members : table);
        fclose(file);
    }
}
END_TEST

struct values {
    struct common_options common;
    uint32_t size;
    uint64_t limit;
    bool fast;
};

static void preset(int number, void *values)
{
    ((struct values *)values)->size = number == PRESET_SEED ? 1000 : 10;
}

static const struct option_row own_rows[] = {
    {"size", OPTION_U32, "N", offsetof(struct values, size), NULL, "how much", 1, 1000},
    {"fast", OPTION_FLAG, NULL, offsetof(struct values, fast), NULL, "quick", 0, 0},
    {"limit", OPTION_BYTES, "BYTES", offsetof(struct values, limit), NULL, "room", 0, 0},
};
static const struct option_set own_set = {"test", "A test.", own_rows, 3, preset, NULL};

static int parse(struct values *values, int argc, const char *const *argv)
{
    *values = (struct values){.size = 5};
    return options_parse(&own_set, argc, (char **)(uintptr_t)argv, values);
}

#define PARSE(values, ...)                                                                         \
    parse(values, sizeof((const char *[]){"test", __VA_ARGS__}) / sizeof(char *),                  \
          (const char *[]){"test", __VA_ARGS__})

START_TEST(options_parse_and_complain)
{
    struct values v;

    ck_assert_int_eq(PARSE(&v, "--size", "7", "--fast", "--backend=cpu", "--seed", "9"), 0);
    ck_assert(v.size == 7 && v.fast && v.common.backend == DEV_CPU && v.common.seed == 9);
    ck_assert_int_eq(PARSE(&v, "--siz", "8"), 0); /* the beginning of one name */
    ck_assert_uint_eq(v.size, 8);
    /* A preset gives way to an explicit size, wherever it stands. */
    ck_assert_int_eq(PARSE(&v, "--size", "7", "--preset", "seed"), 0);
    ck_assert_uint_eq(v.size, 7);
    ck_assert_int_eq(PARSE(&v, "--preset", "seed"), 0);
    ck_assert_uint_eq(v.size, 1000);
    ck_assert_int_ne(PARSE(&v, "--size", "0"), 0);
    ck_assert_int_ne(PARSE(&v, "--size", "-3"), 0);
    ck_assert_int_ne(PARSE(&v, "--size", "7x"), 0);
    ck_assert_int_ne(PARSE(&v, "--size", "4294967296"), 0);
    ck_assert_int_ne(PARSE(&v, "--size", "1001"), 0);
    ck_assert_int_ne(PARSE(&v, "--size", " 7"), 0);
    ck_assert_int_ne(PARSE(&v, "--size", "+7"), 0);
    ck_assert_int_ne(PARSE(&v, "--size", ""), 0);
    ck_assert_int_ne(PARSE(&v, "--size", "7K"), 0);
    ck_assert_int_ne(PARSE(&v, "--iterations", "4294967295"), 0);
    ck_assert_int_ne(PARSE(&v, "--seed", " -1"), 0);
    ck_assert_int_ne(PARSE(&v, "--seed", "18446744073709551616"), 0);
    ck_assert_int_ne(PARSE(&v, "--size"), 0);
    ck_assert_int_ne(PARSE(&v, "--fast=1"), 0);
    ck_assert_int_ne(PARSE(&v, "--backend", "metal"), 0);
    ck_assert_int_ne(PARSE(&v, "stray"), 0);
}
END_TEST

START_TEST(options_read_bytes)
{
    const char *const none[] = {"nan", "inf", "-1",  "8X",   "8GB",
                                "G",   ".",   "1.5", "0x10", "9999999999T"};
    struct values v;

    ck_assert_int_eq(PARSE(&v, "--limit", "1.5K"), 0);
    ck_assert_uint_eq(v.limit, 1536);
    ck_assert_int_eq(PARSE(&v, "--limit", "8G"), 0);
    ck_assert_uint_eq(v.limit, (uint64_t)8 << 30);
    ck_assert_int_eq(PARSE(&v, "--limit", "18446744073709551615"), 0);
    ck_assert_uint_eq(v.limit, UINT64_MAX);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        ck_assert_msg(PARSE(&v, "--limit", none[i]) != 0, "%s", none[i]);
}
END_TEST

START_TEST(random_numbers_are_never_zero)
{
    struct random a = {.state = 1}, b = {.state = 1};
    double sum = 0;

    for (int i = 0; i < 100000; i++) {
        float x = random_unit(&a);

        ck_assert(x > 0 && x <= 1);
        ck_assert(x == random_unit(&b));
        ck_assert_uint_lt(random_below(&a, 10), 10);
        random_below(&b, 10);
        sum += (double)x;
    }
    ck_assert(fabs(sum / 100000 - 0.5) < 0.01);
}
END_TEST

static int count_step(void *context)
{
    ++*(int *)context;
    return 0;
}

static int always_fails(void *context)
{
    (void)context;
    return -1;
}

START_TEST(measuring_repeats_and_stops)
{
    struct session session;
    struct dev *dev;
    char why[256];
    int counts[2] = {0, 0};
    struct subject subjects[] = {{.name = "counted", .step = count_step, .context = &counts[0]},
                                 {.name = "counted", .step = count_step, .context = &counts[1]}};
    struct subject broken = {.name = "broken", .step = always_fails};

    ck_assert_int_eq(dev_open(DEV_CPU, 1, &dev, why, sizeof why), 0);
    ck_assert_int_eq(session_open(&session, dev), 0);
    ck_assert_int_eq(measure(&session, subjects, 2, 5, 2), 0);
    ck_assert_int_eq(counts[0], 7);
    ck_assert_int_eq(counts[1], 7);
    ck_assert_uint_eq(subjects[1].result.wall.count, 5);
    ck_assert(isnan(subjects[0].result.transfer.median)); /* none is not zero */
    ck_assert_int_ne(measure(&session, &broken, 1, 5, 2), 0);
    session_close(&session);
    dev_close(dev);
}
END_TEST

struct copier {
    struct session *session;
    struct dev_buffer *buffer;
    int events; /* commands of the session that had an event in the last step */
};

static int copy_step(void *context)
{
    struct copier *c = context;
    float number = 1;
    int result = 0;

    for (int i = 0; i < 3 && result == 0; i++)
        result = session_write(c->session, c->session->queue, c->buffer, &number, sizeof number,
                               DEV_BLOCKING);
    c->events = (int)c->session->command_count;
    return result;
}

START_TEST(a_whole_step_has_no_events_inside)
{
    struct session session;
    struct dev *dev;
    char why[256];
    struct copier copier[2] = {{.session = &session}, {.session = &session}};
    struct subject subjects[] = {
        {.name = "each", .step = copy_step, .context = &copier[0]},
        {.name = "whole", .step = copy_step, .context = &copier[1], .whole = true}};

    ck_assert_int_eq(dev_open(DEV_CPU, 1, &dev, why, sizeof why), 0);
    ck_assert_int_eq(session_open(&session, dev), 0);
    ck_assert_int_eq(dev_alloc(dev, sizeof(float), &copier[0].buffer), 0);
    copier[1].buffer = copier[0].buffer;
    ck_assert_int_eq(measure(&session, subjects, 2, 3, 1), 0);
    ck_assert_int_eq(copier[0].events, 3);
    ck_assert_int_eq(copier[1].events, 0);
    ck_assert_uint_eq(subjects[1].result.tally.transfers, 3); /* counted all the same */
    ck_assert_uint_eq(subjects[1].result.tally.transfer_bytes, 3 * sizeof(float));
    ck_assert_uint_eq(subjects[0].result.transfer.count, 3);
    ck_assert(isnan(subjects[1].result.transfer.median));
    ck_assert_double_gt(subjects[1].result.kernel.median, 0);
    ck_assert_double_le(subjects[1].result.kernel.median, subjects[1].result.wall.max);
    dev_free(copier[0].buffer);
    session_close(&session);
    dev_close(dev);
}
END_TEST

CHECK_MAIN("workload common", statistics, verdicts_of_claims, verification_catches, json_is_quoted,
           a_row_is_table_and_json, options_parse_and_complain, options_read_bytes,
           random_numbers_are_never_zero, measuring_repeats_and_stops,
           a_whole_step_has_no_events_inside)
