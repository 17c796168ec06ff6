/* perfkit ab: two commands against each other on this machine, now. The runs take turns (ABBA BAAB,
 * the Thue-Morse order), so that what drifts meanwhile (clocks, temperature, neighbours) falls on
 * both alike; no stored history can be as fair. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/gate.h"
#include "libprof/base/clock.h"
#include "libprof/base/format.h"
#include "report/gate.h"

#define DEFAULT_RUNS 5
#define SESSION 1 /* all of it is one */

struct options {
    struct gate_options gate;
    const char *lines[2], *keep, *warmup, *scan;
    unsigned runs, max_runs;
};

enum { BASE, CAND };
static const char *const side_names[] = {"base", "cand"};

#define AT(field) .offset = offsetof(struct options, field)
static const struct cli_option options_table[] = {
    {.name = "base",
     .letter = 'a',
     .type = CLI_TEXT,
     AT(lines[BASE]),
     .argument = "CMD",
     .group = "What is run",
     .text = "the command to compare with, for the shell"},
    {.name = "cand",
     .letter = 'b',
     .type = CLI_TEXT,
     AT(lines[CAND]),
     .argument = "CMD",
     .text = "the command that is compared with it"},
    CLI_OPTION(options, runs, "runs", 'n', COUNT, "N", "runs of each", .fallback = "5"),
    CLI_OPTION(options, max_runs, "max-runs", 0, COUNT, "N",
               "when nothing can be decided, and so many runs of each may do it, make them and "
               "compare all together",
               .fallback = "as --runs"),
    CLI_OPTION(options, warmup, "warmup", 'w', TEXT, "N",
               "runs of each before, which are not recorded; 0 = none", .fallback = "1"),
    CLI_OPTION(
        options, scan, "parameter-scan", 0, TEXT, "NAME=VALUES",
        "compare once for each value, which replaces {NAME} in both commands: VALUE,VALUE... "
        "or MIN:MAX or MIN:MAX:STEP (whole numbers); a line each"),
    CLI_OPTION(options, keep, "keep", 'k', FOLDER, "DIR",
               "keep the captures there (base-1.sqlite, cand-1.sqlite, ...)"),
    GATE_RUN_ROWS(options, gate),
    GATE_JUDGE_ROWS(options, gate),
    GATE_OUTPUT_ROWS(options, gate),
    {0},
};

static const struct cli_text_row examples[] = {
    {"perfkit ab --base './old --steps 50' --cand './new --steps 50'",
     "Five runs of each, in turns."},
    {"perfkit ab -n 8 --base ./old --cand ./new --strict --markdown ab.md",
     "More runs find smaller changes; undecided is not good enough."},
    {"perfkit ab -n 5 --max-runs 10 --base ./old --cand ./new",
     "Five runs of each, and five more where those can still decide."},
    {"perfkit ab --base './a -t {t}' --cand './b -t {t}' --parameter-scan t=1,2,4",
     "From how many threads on the new one is faster."},
    {0},
};

/* Which side has the first turn of pair `i`: 0 1 1 0 1 0 0 1 ... Differences of a linear or
 * quadratic drift cancel over each four pairs. */
static unsigned first_of(unsigned i)
{
    return (unsigned)__builtin_parity(i);
}

static enum prof_status warm_up(struct gate_recorder *recorder, const struct options *args,
                                unsigned count, struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    for (unsigned i = 0; !status && i < 2 * count; i++) {
        char turn[64];
        snprintf(turn, sizeof turn, "warm-up %u of %u: %s", i + 1, 2 * count, side_names[i % 2]);
        gate_show_turn("ab", turn, 0, 0, 0, args->gate.show_output);
        status = gate_record_warm(recorder, args->lines[i % 2], err);
    }
    return status;
}

/* Pairs until there are `runs` of each, of the `all` that are planned. */
static enum prof_status record_up_to(struct gate_recorder *recorder, const struct options *args,
                                     unsigned runs, unsigned all, uint64_t *begun_ns,
                                     struct gate_runs sides[2], struct prof_error *err)
{
    struct prof_run_options iterations = gate_iterations(&args->gate);
    enum prof_status status = PROF_OK;
    *begun_ns = *begun_ns ? *begun_ns : prof_now_ns();
    for (unsigned turn = 2 * (unsigned)sides[BASE].count; !status && turn < 2 * runs; turn++) {
        unsigned pair = turn / 2, side = first_of(pair) ^ (turn % 2);
        char text[64];
        snprintf(text, sizeof text, "run %u of %u: %s", turn + 1, 2 * all, side_names[side]);
        gate_show_turn("ab", text, *begun_ns, turn, 2 * all - turn, args->gate.show_output);
        status = gate_record(recorder, side_names[side], pair + 1, args->lines[side], &iterations,
                             SESSION, &sides[side], err);
        if (status && !recorder->signal) {
            char message[sizeof err->message];
            snprintf(message, sizeof message, "%s", err->message);
            prof_fail(err, status, "%s, run %u: %s", side_names[side], pair + 1, message);
        }
    }
    return status;
}

/* Whether the first pair shows that more of them say no more: no time can be compared. Sides of
 * which nothing can be compared at all are an error. */
static enum prof_status look_at_pair(const struct options *args, const struct gate_config *config,
                                     const struct gate_runs sides[2], bool *enough,
                                     struct prof_error *err)
{
    struct prof_comparison first = {0};
    enum prof_status status =
        gate_compare(&args->gate, config, &sides[BASE], &sides[CAND], true, 1, &first, err);
    bool gated = false;
    for (size_t i = 0; !status && i < first.count; i++)
        gated |= first.rows[i].gated;
    *enough = !status && (first.times_refused || !gated);
    prof_comparison_free(&first);
    return status;
}

/* Record and compare; where that is undecided, once more with more runs. */
static enum prof_status compare_recorded(struct gate_recorder *recorder, const struct options *args,
                                         const struct gate_config *config,
                                         struct gate_runs sides[2], struct prof_comparison *result,
                                         struct prof_error *err)
{
    unsigned looks = args->max_runs > args->runs ? 2 : 1;
    uint64_t begun_ns = 0;
    bool enough = false;
    enum prof_status status = record_up_to(recorder, args, 1, args->runs, &begun_ns, sides, err);
    if (!status && args->runs > 1)
        status = look_at_pair(args, config, sides, &enough, err);
    for (unsigned look = 0; !status && look < looks; look++) {
        if (look && (enough || !prof_comparison_wants(result, args->max_runs)))
            break;
        prof_comparison_free(result);
        unsigned runs = look ? args->max_runs : args->runs;
        if (!enough)
            status = record_up_to(recorder, args, runs, runs, &begun_ns, sides, err);
        status = status ? status
                        : gate_compare(&args->gate, config, &sides[BASE], &sides[CAND], true, looks,
                                       result, err);
    }
    return status;
}

static int write_ab_report(const struct options *args, const struct gate_config *config,
                           const struct gate_runs sides[2], const struct prof_comparison *result)
{
    char texts[2][400];
    for (int side = BASE; side <= CAND; side++)
        snprintf(texts[side], sizeof texts[side], "%s of: %.300s",
                 prof_counted((int64_t)sides[side].count, "run", "runs").text, args->lines[side]);
    struct prof_gate_report report = {
        .comparison = result,
        .base = texts[BASE],
        .cand = texts[CAND],
        .files = (const char *const *)sides[CAND].names,
        .file_count = args->keep ? sides[CAND].count : 0,
    };
    return gate_write_results("ab", &args->gate, config, &report);
}

static bool check_ab_options(const struct options *args, unsigned *warmup)
{
    char *end = NULL;
    *warmup = args->warmup ? (unsigned)strtoul(args->warmup, &end, 10) : 1;
    if (!args->lines[BASE] || !args->lines[CAND])
        return cli_refuse("ab", "give both commands: --base CMD --cand CMD");
    if (args->max_runs && args->max_runs < args->runs)
        return cli_refuse("ab",
                          "--max-runs %u is less than the %u of --runs: give more, or leave it out",
                          args->max_runs, args->runs);
    if (end && (*args->warmup < '0' || *args->warmup > '9' || *end || *warmup > 1000))
        return cli_refuse("ab", "--warmup: '%s' is not a count: give 0 to 1000", args->warmup);
    return true;
}

/* Records and compares; prints the report, or with `label` the answer alone. */
static int compare_commands(const struct options *args, const struct gate_config *config,
                            unsigned warmup, const char *label)
{
    struct gate_recorder recorder;
    struct gate_runs sides[2] = {0};
    struct prof_comparison result = {0};
    struct prof_error err = {0};
    enum prof_status status = gate_record_open(&recorder, "ab", &args->gate, args->keep, &err);
    status = status ?: warm_up(&recorder, args, warmup, &err);
    status = status ?: compare_recorded(&recorder, args, config, sides, &result, &err);
    cli_wipe_progress();
    if (status)
        cli_say("ab", "%s%s%s", label ? label : "", label ? ": " : "", err.message);
    gate_record_close(&recorder);
    int exit_status = CLI_USAGE;
    if (!status && label) {
        struct prof_gate_report report = {
            .comparison = &result, .judged = true, .strict = args->gate.strict};
        PROF_FREED char *answer = prof_gate_answer(&report);
        PROF_FREED char *line =
            answer ? prof_gate_format("%s: %s", prof_verdict_name(result.verdict), answer)
                   : prof_gate_headline(&report);
        printf("%s: %s\n", label, line ? line : "n/a");
        fflush(stdout);
        exit_status = gate_exit_status(&result, args->gate.strict);
    } else if (!status) {
        exit_status = write_ab_report(args, config, sides, &result);
    }
    prof_comparison_free(&result);
    gate_runs_free(&sides[BASE]);
    gate_runs_free(&sides[CAND]);
    return exit_status;
}

/* ---- for each value of a parameter ----------------------------------------------------------- */

#define MOST_VALUES 100

struct scan {
    char name[64], *values[MOST_VALUES];
    size_t count;
};

static bool add_scan_value(struct scan *scan, const char *text, size_t length)
{
    if (!length || scan->count == MOST_VALUES)
        return false;
    scan->values[scan->count] = strndup(text, length);
    return scan->values[scan->count++] != NULL;
}

/* "t=1,2,4", "t=1:8", "t=0:100:25". */
static bool parse_scan(const char *text, struct scan *scan)
{
    const char *equals = strchr(text, '=');
    long long from, to, step = 1;
    int end = -1;
    size_t length = equals ? (size_t)(equals - text) : 0;
    if (!length || length >= sizeof scan->name || memchr(text, '{', length))
        return false;
    snprintf(scan->name, sizeof scan->name, "%.*s", (int)length, text);
    bool spans = (sscanf(++equals, "%lld:%lld%n", &from, &to, &end) == 2 && !equals[end]) ||
                 (sscanf(equals, "%lld:%lld:%lld%n", &from, &to, &step, &end) == 3 && !equals[end]);
    if (spans) {
        bool more = step > 0 && from <= to;
        while (more) {
            char number[32];
            int digits = snprintf(number, sizeof number, "%lld", from);
            if (!add_scan_value(scan, number, (size_t)digits))
                return false;
            more = !__builtin_add_overflow(from, step, &from) && from <= to;
        }
        return scan->count > 0;
    }
    if (sscanf(equals, "%lld:%n", &from, &end) == 1 && end > 0 && !strchr(equals, ','))
        return false; /* meant as a span */
    for (;; equals++) {
        size_t value = strcspn(equals, ",");
        if (!add_scan_value(scan, equals, value))
            return false;
        equals += value;
        if (!*equals)
            return true;
    }
}

/* The line with the value in place of each {NAME}; NULL = out of memory. */
static char *with_value(const char *line, const char *name, const char *value)
{
    char mark[80], *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    snprintf(mark, sizeof mark, "{%s}", name);
    for (const char *next; out && (next = strstr(line, mark)); line = next + strlen(mark))
        fprintf(out, "%.*s%s", (int)(next - line), line, value);
    if (!out || fputs(line, out) < 0 || fclose(out))
        return NULL;
    return text;
}

static int scan_parameter(const struct options *args, const struct gate_config *config,
                          unsigned warmup, const struct scan *scan)
{
    int worst = CLI_OK;
    for (size_t i = 0; i < scan->count && worst != CLI_USAGE; i++) {
        struct options one = *args;
        char label[200], *lines[2];
        snprintf(label, sizeof label, "%s=%.100s", scan->name, scan->values[i]);
        for (int side = BASE; side <= CAND; side++)
            one.lines[side] = lines[side] =
                with_value(args->lines[side], scan->name, scan->values[i]);
        int status =
            lines[BASE] && lines[CAND] ? compare_commands(&one, config, warmup, label) : CLI_USAGE;
        if (status && worst != CLI_REGRESSION)
            worst = status;
        free(lines[BASE]);
        free(lines[CAND]);
    }
    return worst;
}

static bool check_scan(const struct options *args, struct scan *scan)
{
    const struct gate_options *gate = &args->gate;
    if (!args->scan)
        return true;
    if (!parse_scan(args->scan, scan))
        return cli_refuse(
            "ab",
            "--parameter-scan: '%s' is not NAME=VALUE,VALUE... or NAME=MIN:MAX[:STEP] of "
            "at most %d values",
            args->scan, MOST_VALUES);
    char mark[80];
    snprintf(mark, sizeof mark, "{%s}", scan->name);
    if (!strstr(args->lines[BASE], mark) && !strstr(args->lines[CAND], mark))
        return cli_refuse("ab", "--parameter-scan: neither command has %s", mark);
    if (args->keep || gate->format || gate->json || gate->github || gate->markdown || gate->junit ||
        gate->json_file)
        return cli_refuse(
            "ab", "--parameter-scan prints a line for each value: give it without --keep and "
                  "without other formats");
    return true;
}

static int ab_run(const struct cli_command *command, void *given,
                  const struct cli_operands *operands, struct prof_error *err)
{
    struct options *args = given;
    struct gate_config config;
    struct scan scan = {0};
    int exit_status = CLI_USAGE;
    unsigned warmup;
    (void)operands, (void)err;
    if (check_ab_options(args, &warmup) &&
        gate_configure(command->name, &args->gate, NULL, &config)) {
        if (check_scan(args, &scan))
            exit_status = args->scan ? scan_parameter(args, &config, warmup, &scan)
                                     : compare_commands(args, &config, warmup, NULL);
        gate_config_free(&config);
    }
    for (size_t i = 0; i < scan.count; i++)
        free(scan.values[i]);
    return exit_status;
}

const struct cli_command ab_command = {
    .name = "ab",
    .summary = "run two commands in turns and compare the second with the first",
    .operands = "",
    .text = "Records both commands N times in the order ABBA BAAB ..., so that drift falls on both "
            "alike, and compares the second with the first as perfkit gate does, with each run as "
            "a unit. The honest comparison for a CI job that can build both versions; no baseline "
            "is needed. With --max-runs it is decided twice where need be, at half the risk of a "
            "false alarm each time. A command that does not end with 0 ends the comparison. What "
            "the commands print is shown where one fails. Where the first pair shows that "
            "nothing can be compared, no further one is made.",
    .options = options_table,
    CLI_OPTIONS_ARE(options, .runs = DEFAULT_RUNS, .gate.skip = CLI_NO_SKIP),
    .examples = examples,
    .statuses = gate_statuses,
    .write_status = CLI_USAGE,
    .usage_status = CLI_USAGE,
    .run = ab_run,
};
