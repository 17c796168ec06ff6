/* The writers of comparisons, on one made by hand: what stands in each format, and that no name of
 * the program gets out of its place. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/include/prof_compare.h"
#include "report/gate.h"
#include "tests/check_main.h"

#define HOSTILE "gemm\n::error::owned ]]> <b>&\"'\x1b[31m %0A ##[error]x\xef\xbf\xbe\x01\xff|@me"

static const struct prof_metric metric = {.family = PROF_METRIC_KERNEL,
                                          .name = HOSTILE,
                                          .place = "step/forward",
                                          .grid = {264, 1, 1},
                                          .block = {256, 1, 1}};
static const struct prof_metric launches = {
    .family = PROF_METRIC_LAUNCHES, .name = "relu", .place = ""};

static struct prof_compared slow(void)
{
    return (struct prof_compared){.family = PROF_METRIC_KERNEL,
                                  .base = &metric,
                                  .cand = &metric,
                                  .base_name = metric.name,
                                  .cand_name = metric.name,
                                  .place = metric.place,
                                  .verdict = PROF_VERDICT_FAIL,
                                  .reason = PROF_REASON_SLOWER,
                                  .override = -1,
                                  .gated = true,
                                  .base_value = 1.2e6,
                                  .cand_value = 1.26e6,
                                  .base_low = NAN,
                                  .base_high = NAN,
                                  .outside_base = NAN,
                                  .outside_cand = NAN,
                                  .base_count = 1,
                                  .cand_count = 1,
                                  .effect = 0.05,
                                  .residual = 0.05,
                                  .ci_low = 0.035,
                                  .ci_high = 0.068,
                                  .p = 1e-5,
                                  .p_adjusted = 4e-3,
                                  .p_faster = 1,
                                  .mde = 0.026,
                                  .df = 8,
                                  .runs_needed = 3,
                                  .share = 0.4,
                                  .delta_ns = 60000};
}

static struct prof_compared more_launches(void)
{
    struct prof_compared row = slow();
    row.family = PROF_METRIC_LAUNCHES;
    row.base = row.cand = &launches;
    row.base_name = row.cand_name = "relu";
    row.place = "";
    row.reason = PROF_REASON_GREW;
    row.base_value = 1;
    row.cand_value = 2;
    row.effect = row.ci_low = row.ci_high = row.p_adjusted = row.mde = row.delta_ns = NAN;
    row.outside_base = row.outside_cand = 0;
    row.base_low = row.base_high = 1;
    return row;
}

static struct prof_compared undecided(void)
{
    struct prof_compared row = slow();
    row.verdict = PROF_VERDICT_UNDERPOWERED;
    row.reason = PROF_REASON_NOISE;
    row.runs_needed = 8;
    row.policy.reason = "because";
    return row;
}

/* Within one run it may be certain; how runs differ is not known. */
START_TEST(what_is_not_decided_has_no_p)
{
    struct prof_compared row = undecided();
    struct prof_comparison c = {.iteration_source = PROF_ITERATION_STEP};
    row.p_adjusted = 1e-6;
    char *text = prof_gate_change(&c, &row);
    ck_assert_ptr_nonnull(text);
    ck_assert_ptr_null(strstr(text, "p<"));
    free(text);
    row.verdict = PROF_VERDICT_FAIL;
    text = prof_gate_change(&c, &row);
    ck_assert_ptr_nonnull(strstr(text, ", p<0.0001"));
    ck_assert_ptr_nonnull(strstr(text, "+60.0 us per iteration"));
    free(text);
    c.iteration_source = PROF_ITERATION_RUN; /* nothing repeats: values are of the whole run */
    text = prof_gate_change(&c, &row);
    ck_assert_ptr_nonnull(strstr(text, "+60.0 us per run"));
    free(text);
}
END_TEST

/* In the unit of the time, without an exponent, however small or large. */
START_TEST(the_answer_has_the_spread_of_both_sides)
{
    static const struct {
        double base_sd, cand_sd;
        const char *text;
    } rows[] = {{0.4e6, 0.5e6, ": 12.3 ms \u00b1 0.40 -> 13.5 ms \u00b1 0.50"},
                {520, 0, ": 12.3 ms \u00b1 520 ns -> 13.5 ms \u00b1 0.00"},
                {120e6, 4.56e6, ": 12.3 ms \u00b1 120 -> 13.5 ms \u00b1 4.6"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct prof_compared row = slow();
        row.family = PROF_METRIC_WALL;
        row.residual = 0.1;
        row.base_typical = 12.3e6;
        row.cand_typical = 13.5e6;
        row.base_sd = rows[i].base_sd;
        row.cand_sd = rows[i].cand_sd;
        struct prof_comparison c = {.rows = &row, .count = 1, .base_units = 5, .cand_units = 5};
        struct prof_gate_report report = {.comparison = &c};
        char *text = prof_gate_answer(&report);
        ck_assert_ptr_nonnull(text);
        ck_assert_str_eq(strrchr(text, ':'), rows[i].text);
        free(text);
    }
}
END_TEST

/* Two lines, one verdict: the first is a measurement, and says neither "slower" nor "no difference"
 * of what the second leaves open. */
START_TEST(the_answer_does_not_contradict_the_verdict)
{
    static const struct {
        enum prof_verdict whole, row;
        double low, high;
        const char *answer, *headline;
    } cases[] = {
        {PROF_VERDICT_UNDERPOWERED, PROF_VERDICT_UNDERPOWERED, -0.1, 0.3,
         "candidate took 1.10x [0.90, 1.30] as long per iteration: ", "UNDERPOWERED: not decided"},
        {PROF_VERDICT_UNDERPOWERED, PROF_VERDICT_PASS, -0.1, 0.3, "candidate took 1.10x",
         "UNDERPOWERED: not decided"},
        {PROF_VERDICT_SUSPECT, PROF_VERDICT_SUSPECT, 0.05, 0.15, "candidate took 1.10x",
         "SUSPECT: probably worse"},
        {PROF_VERDICT_PASS, PROF_VERDICT_UNDERPOWERED, 0.05, 0.15, "candidate took 1.10x",
         "PASS: none of 2 gated metrics is worse (1 too noisy to decide)"},
        {PROF_VERDICT_PASS, PROF_VERDICT_PASS, -0.1, 0.3,
         "no difference in time: candidate took 1.10x [0.90, 1.30] as long per iteration: ",
         "PASS: none of 2 gated metrics is worse"},
        {PROF_VERDICT_PASS, PROF_VERDICT_PASS, 0.05, 0.15,
         "candidate is 1.10x [1.05, 1.15] slower per iteration: ",
         "PASS: none of 2 gated metrics is worse by as much as matters"},
        {PROF_VERDICT_FAIL, PROF_VERDICT_PASS, -0.1, 0.3, "no difference in time: candidate took",
         "FAIL: 1 of 2 gated metrics is worse"},
        {PROF_VERDICT_FAIL, PROF_VERDICT_FAIL, 0.05, 0.15, "candidate is 1.10x [1.05, 1.15] slower",
         "FAIL: 1 of 2 gated metrics is worse"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct prof_compared row = slow();
        row.family = PROF_METRIC_WALL;
        row.verdict = cases[i].row;
        row.residual = 0.1;
        row.ci_low = cases[i].low;
        row.ci_high = cases[i].high;
        struct prof_comparison c = {
            .rows = &row, .count = 1, .base_units = 5, .cand_units = 5, .verdict = cases[i].whole};
        c.verdicts[cases[i].row]++;
        c.verdicts[cases[i].whole == cases[i].row ? PROF_VERDICT_PASS : cases[i].whole]++;
        struct prof_gate_report report = {.comparison = &c};
        char *answer = prof_gate_answer(&report), *headline = prof_gate_headline(&report);
        ck_assert_ptr_nonnull(answer);
        ck_assert_ptr_nonnull(headline);
        ck_assert_msg(!strncmp(answer, cases[i].answer, strlen(cases[i].answer)), "%zu: %s", i,
                      answer);
        ck_assert_msg(!strncmp(headline, cases[i].headline, strlen(cases[i].headline)), "%zu: %s",
                      i, headline);
        free(answer);
        free(headline);
        c.base_units = c.cand_units = 1;
        answer = prof_gate_answer(&report);
        bool open = cases[i].whole == PROF_VERDICT_UNDERPOWERED ||
                    cases[i].whole == PROF_VERDICT_SUSPECT ||
                    cases[i].row == PROF_VERDICT_UNDERPOWERED;
        ck_assert_msg((strstr(answer, "cannot show whether") != NULL) == open, "%zu: %s", i,
                      answer);
        free(answer);
        c.times_refused = true; /* then no time is compared */
        ck_assert_ptr_null(prof_gate_answer(&report));
    }
}
END_TEST

enum { ROWS = 40 };
static struct prof_compared rows[ROWS];
static const struct prof_environment_difference difference = {"driver", "580\n::warning::x", NULL,
                                                              PROF_ENVIRONMENT_SOFT};
static const char *const files[] = {"a.sqlite"};
static const char *const notes[] = {"perfkit.gate:3: expired\n::error::no"};

static struct prof_comparison comparison(size_t slow_rows)
{
    struct prof_comparison c = {
        .verdict = PROF_VERDICT_FAIL,
        .reason = PROF_REASON_GREW,
        .rows = rows,
        .count = slow_rows + 2,
        .differences = (struct prof_environment_difference *)&difference,
        .difference_count = 1,
        .base_units = 10,
        .cand_units = 3,
        .base_runs = 10,
        .cand_runs = 3,
        .alpha = 0.01,
        .iteration = HOSTILE,
        .iteration_source = PROF_ITERATION_STEP,
        .base_iterations = 40,
        .cand_iterations = 40,
        .shift = 0.001,
        .shift_removed = 0.001,
        .shift_p = 0.4,
        .overdispersion = 1.2,
        .median_mde = 0.026,
        .wall_mde = NAN,
        .runs_needed = 4,
    };
    rows[0] = more_launches();
    for (size_t i = 1; i <= slow_rows; i++)
        rows[i] = slow();
    rows[slow_rows + 1] = undecided();
    c.verdicts[PROF_VERDICT_FAIL] = slow_rows + 1;
    c.verdicts[PROF_VERDICT_UNDERPOWERED] = 1;
    c.verdicts[PROF_VERDICT_PASS] = 20;
    return c;
}

static char *write_as(const char *name, const struct prof_comparison *c)
{
    struct prof_gate_report report = {.comparison = c,
                                      .base = "main: 10 sessions, 10 runs",
                                      .cand = "3 runs: a.sqlite, ...",
                                      .base_name = "main",
                                      .files = files,
                                      .file_count = 1,
                                      .notes = notes,
                                      .note_count = 1,
                                      .judged = true,
                                      .exit_status = 1};
    struct prof_error err = {0};
    char *data = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&data, &size);
    const struct prof_gate_writer *writer = prof_gate_writer(prof_gate_writers, name);
    ck_assert_ptr_nonnull(writer);
    ck_assert_msg(!writer->write(&report, out, &err), "%s", err.message);
    fclose(out);
    return data;
}

#define ck_has(text, part) ck_assert_msg(strstr(text, part), "no \"%s\" in:\n%s", part, text)
#define ck_lacks(text, part) ck_assert_msg(!strstr(text, part), "\"%s\" is in:\n%s", part, text)

/* Neither control characters nor anything that is not UTF-8. */
static void ck_clean(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        ck_assert_msg((*p >= ' ' || *p == '\n') && *p != 0x7f && *p != 0xff, "byte %u in:\n%s", *p,
                      text);
}

static size_t occurrences(const char *text, const char *part)
{
    size_t count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

/* A page's lines are wrapped: as one. */
static void join_lines(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++)
        if (*from != '\n' && (*from != ' ' || from == text || from[1] != ' '))
            *to++ = *from;
    *to = '\0';
}

/* The answer and the verdict too, whose names may be long. */
START_TEST(text_keeps_to_its_width)
{
    struct prof_compared row = slow();
    row.family = PROF_METRIC_WALL;
    row.residual = 0.1;
    struct prof_comparison c = {.rows = &row,
                                .count = 1,
                                .base_units = 5,
                                .cand_units = 5,
                                .verdict = PROF_VERDICT_UNDERPOWERED};
    c.verdicts[PROF_VERDICT_UNDERPOWERED] = 1;
    struct prof_gate_report report = {.comparison = &c, .judged = true, .width = 60};
    struct prof_error err = {0};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    ck_assert(!prof_gate_write_text(&report, out, &err));
    fclose(out);
    ck_assert_msg(strstr(text, "candidate took 1.10x"), "%s", text);
    ck_assert_msg(strstr(text, "with --strict"), "%s", text);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        ck_assert_msg(strlen(line) <= 60, "%zu: %s", strlen(line), line);
    free(text);
}
END_TEST

START_TEST(text_says_what_moved_and_where)
{
    struct prof_comparison c = comparison(1);
    char *text = write_as("text", &c);
    ck_clean(text);
    ck_has(text, "FAIL: 2 of 23 gated metrics are worse\n");
    ck_has(text, "launches relu\n             1 -> 2 (+1)\n             more than in the baseline");
    ck_has(text, "1.20 ms -> 1.26 ms, +5.0 % (95 %: +3.5 % to +6.8 %), +60.0 us per");
    ck_has(text, "step/forward");
    ck_has(text, "about 8 runs a side are needed to decide");
    ck_has(text, "other times 2.6 %");
    ck_has(text, "wall time n/a");
    ck_lacks(text, "\n::");
    ck_lacks(text, "nan");
    join_lines(text);
    ck_has(text, "configured: because");
    free(text);
}
END_TEST

/* Wherever a line is wrapped: what a CI service would take for a command does not begin one. */
START_TEST(no_wrapped_line_begins_a_command)
{
    struct prof_comparison c = comparison(1);
    char name[400] = "", *text;
    for (size_t i = 0; i < 30; i++)
        strcat(name, i % 2 ? " ::error::x" : " ##[error]x");
    c.iteration = name;
    rows[0].place = name;
    text = write_as("text", &c);
    ck_assert_uint_gt(occurrences(text, " ::error::x"), 15);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        line += strspn(line, " ");
        ck_assert_msg(strncmp(line, "::", 2) && strncmp(line, "##[", 3), "%s", line);
    }
    free(text);
}
END_TEST

START_TEST(what_noise_hides_is_told_in_readable_numbers)
{
    static const struct {
        double mde;
        const char *text, *found;
    } cases[] = {
        {0.026, "less than 2.6 % may", "found: wall time 2.6 %"},
        {8.5, "less than 850.0 % may", "found: wall time 850.0 %"},
        {280.869, "even a slowdown of 10x may", "found: wall time not known"},
        {1e300, "even a slowdown of 10x may", "found: wall time not known"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct prof_comparison c = comparison(1);
        for (size_t r = 0; r < c.count; r++)
            c.rows[r].mde = cases[i].mde;
        c.wall_mde = cases[i].mde;
        char *text = write_as("text", &c);
        join_lines(text);
        ck_has(text, cases[i].text);
        ck_has(text, cases[i].found);
        free(text);
    }
}
END_TEST

/* What is no measurement is not shown as one. */
START_TEST(what_not_known_says_why)
{
    static const struct {
        size_t units, runs;
        const char *why;
    } cases[] = {{1, 5, "known: the baseline is one session"},
                 {1, 1, "known: the baseline is one run"},
                 {4, 9, "known: too few runs for their noise"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct prof_comparison c = comparison(1);
        c.base_units = cases[i].units;
        c.base_runs = cases[i].runs;
        c.wall_mde = c.median_mde = 1e9;
        char *text = write_as("text", &c);
        join_lines(text);
        ck_has(text, cases[i].why);
        ck_assert_ptr_null(strstr(text, "10,000"));
        free(text);
    }
}
END_TEST

START_TEST(annotations_are_single_lines_and_at_most_ten)
{
    struct prof_comparison c = comparison(30);
    char *text = write_as("github", &c);
    ck_clean(text);
    ck_assert_uint_eq(occurrences(text, "\n::error title=") + occurrences(text, "\n::warning"), 11);
    ck_assert_uint_eq(occurrences(text, "\n::error title="), 10); /* GitHub shows no more */
    ck_has(text, "... and 22 more metrics");
    ck_lacks(text, "\n::error::");
    ck_lacks(text, "##[");
    ck_has(text, "%250A"); /* the name's own %0A */
    free(text);
}
END_TEST

START_TEST(junit_is_one_well_formed_document)
{
    struct prof_comparison c = comparison(2);
    char *text = write_as("junit", &c);
    ck_clean(text);
    ck_lacks(text, "]]>");
    ck_lacks(text, "<b>");
    ck_lacks(text, "\xef\xbf\xbe");
    ck_assert_uint_eq(occurrences(text, "<failure type=\"slower\""), 2);
    ck_assert_uint_eq(occurrences(text, "<failure type=\"grew\""), 1);
    ck_assert_uint_eq(occurrences(text, "<skipped "), 1);
    ck_has(text, "tests=\"5\" failures=\"3\" errors=\"0\">"); /* Jenkins: no `skipped` here */
    ck_has(text, "failures=\"2\" errors=\"0\" skipped=\"1\">");
    ck_lacks(text, "<error");
    free(text);
    c.times_refused = true;
    c.note = "another device";
    text = write_as("junit", &c);
    ck_has(text, "<error type=\"refused\" message=\"not compared: another device\"/>");
    free(text);
}
END_TEST

START_TEST(markdown_keeps_its_cells)
{
    struct prof_comparison c = comparison(1);
    char *text = write_as("markdown", &c);
    ck_clean(text);
    ck_lacks(text, "<b>");
    ck_lacks(text, "@me");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        size_t bars = 0;
        if (*line != '|')
            continue;
        for (char *p = line; *p; p++)
            bars += *p == '|' && (p == line || p[-1] != '\\');
        ck_assert_msg(bars == 5, "%zu bars: %s", bars, line);
    }
    free(text);
}
END_TEST

START_TEST(json_has_null_for_what_is_unknown)
{
    struct prof_comparison c = comparison(1);
    char *text = write_as("json", &c);
    ck_clean(text);
    ck_has(text, "\"schema\": \"perfkit-gate\"");
    ck_has(text, "\"wall_mde\": null");
    ck_has(text, "\"verdict\": \"FAIL\"");
    ck_has(text, "\"exit_status\": 1");
    ck_has(text, "\"effect\": null");
    ck_has(text, "\"effect\": 0.05");
    free(text);
}
END_TEST

/* Counts that differ stand beside sums; what one side alone has is new or gone, not slower. */
START_TEST(sums_and_what_one_side_has)
{
    struct prof_comparison c = comparison(0);
    c.count = 1;
    rows[0] = slow();
    rows[0].base_count = 40;
    rows[0].cand_count = 1;
    rows[0].summed = true;
    char *text = write_as("text", &c);
    join_lines(text);
    ck_has(text, "1.20 ms -> 1.26 ms, +5.0 % (95 %: +3.5 % to +6.8 %), +60.0 us per iteration "
                 "(40 -> 1 launch)");
    free(text);
    rows[0].summed = false; /* what is judged stands beside the sums */
    rows[0].cand_count = 40;
    rows[0].base_typical = 30000;
    rows[0].cand_typical = 31500;
    text = write_as("text", &c);
    join_lines(text);
    ck_has(text,
           "1.20 ms -> 1.26 ms, +5.0 %, +60.0 us per iteration (40 launches); a typical launch "
           "30.0 us -> 31.5 us, +5.0 % (95 %: +3.5 % to +6.8 %)");
    free(text);
    rows[0].summed = true;
    rows[0].cand_count = 1;
    rows[0].match = PROF_MATCH_ADDED;
    rows[0].base_value = rows[0].base_count = NAN;
    text = write_as("text", &c);
    ck_has(text, "new: 1.26 ms per iteration (1 launch)");
    free(text);
    rows[0].effect = 1239;
    ck_assert_str_eq(prof_gate_percent(rows[0].effect).text, "> 10x");
}
END_TEST

/* A PASS that says nothing of the host says so where everybody looks. */
START_TEST(a_limited_pass_says_so)
{
    static const char *const formats[] = {"text", "markdown", "junit", "github"};
    struct prof_comparison c = comparison(0);
    c.verdict = PROF_VERDICT_PASS;
    c.reason = PROF_REASON_HOST_NOISE;
    c.limited = true;
    c.wall_mde = 0.45;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        char *text = write_as(formats[i], &c);
        join_lines(text);
        ck_has(text, "wall time up to 45.0");
        free(text);
    }
    char *text = write_as("json", &c);
    ck_has(text, "\"limited\": true");
    ck_has(text, "\"reason\": \"host-noise\"");
    free(text);
    c.limited = false;
    text = write_as("text", &c);
    ck_lacks(text, "wall time is less than");
    free(text);
}
END_TEST

/* Registers of a kernel that the other side has not: its launches tell that. */
START_TEST(a_kernel_of_one_side_differs_by_its_launches)
{
    struct prof_compared row = {.family = PROF_METRIC_REGISTERS,
                                .match = PROF_MATCH_ADDED,
                                .reason = PROF_REASON_ADDED,
                                .base_value = NAN,
                                .cand_value = 114};
    ck_assert(!prof_gate_count_differs(&row));
    row.match = PROF_MATCH_RENAMED;
    row.base_value = 32;
    ck_assert(prof_gate_count_differs(&row));
    row.match = PROF_MATCH_ADDED;
    row.family = PROF_METRIC_LAUNCHES;
    ck_assert(prof_gate_count_differs(&row));
    row.family = PROF_METRIC_LOCAL_BYTES; /* a new kernel that spills is news */
    ck_assert(prof_gate_count_differs(&row));
}
END_TEST

/* A text that there is no memory for is not left out in silence: whichever it is, the writer fails.
 */
int __real_vasprintf(char **text, const char *format, va_list args);
int __wrap_vasprintf(char **text, const char *format, va_list args);
static int until; /* texts until one fails; 0 = none fails */

int __wrap_vasprintf(char **text, const char *format, va_list args)
{
    return until > 0 && --until == 0 ? -1 : __real_vasprintf(text, format, args);
}

START_TEST(a_text_without_memory_fails_the_writer)
{
    static const enum prof_environment_level levels[] = {PROF_ENVIRONMENT_HARD,
                                                         PROF_ENVIRONMENT_SOFT};
    struct prof_comparison c = comparison(1);
    struct prof_environment_difference differences[] = {
        {.name = "driver", .base = "1", .cand = "2", .level = levels[0]},
        {.name = "clock", .base = "1", .cand = "2", .level = levels[1]}};
    c.differences = differences;
    c.difference_count = 2;
    struct prof_gate_report report = {.base = "a",
                                      .cand = "b",
                                      .comparison = &c,
                                      .judged = true,
                                      .notes = notes,
                                      .note_count = 1};
    for (const struct prof_gate_writer *format = prof_gate_writers; format->name; format++) {
        enum prof_status status;
        int n = 0;
        do {
            FILE *out = fopen("/dev/null", "w");
            struct prof_error err = {0};
            until = ++n;
            status = format->write(&report, out, &err);
            bool failed = until == 0;
            ck_assert_msg((status == PROF_NOMEM) == failed, "%s, text %d: %s", format->name, n,
                          err.message);
            fclose(out);
        } while (status);
    }
    until = 0;
}
END_TEST

CHECK_MAIN("gate_writers", a_text_without_memory_fails_the_writer, no_wrapped_line_begins_a_command,
           a_kernel_of_one_side_differs_by_its_launches, text_keeps_to_its_width,
           text_says_what_moved_and_where, a_limited_pass_says_so, sums_and_what_one_side_has,
           what_noise_hides_is_told_in_readable_numbers, what_not_known_says_why,
           annotations_are_single_lines_and_at_most_ten, junit_is_one_well_formed_document,
           markdown_keeps_its_cells, json_has_null_for_what_is_unknown,
           what_is_not_decided_has_no_p, the_answer_has_the_spread_of_both_sides,
           the_answer_does_not_contradict_the_verdict)
