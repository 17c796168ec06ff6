/* perfkit ab: two commands against each other on this machine, now. The runs take turns (ABBA BAAB,
 * the Thue-Morse order), so that what drifts meanwhile (clocks, temperature, neighbours) falls on
 * both alike; no stored history can be as fair. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/gate.h"
#include "libprof/base/clock.h"
#include "libprof/base/format.h"

#define DEFAULT_RUNS 5
#define SESSION 1 /* all of it is one */

struct options {
    struct gate_options gate;
    const char *lines[2], *keep, *warmup;
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
    {0},
};

/* Which side has the first turn of pair `i`: 0 1 1 0 1 0 0 1 ... Differences of a linear or
 * quadratic drift cancel over each four pairs. */
static unsigned first_of(unsigned i)
{
    return (unsigned)__builtin_parity(i);
}

/* On a terminal a line that is written over, with the time that is left by the turns so far;
 * `printed`: what the runs print stands between. */
static void show_turn(const char *what, unsigned turn, unsigned turns, const char *side,
                      bool printed, const uint64_t *begun_ns)
{
    if (printed || !isatty(STDERR_FILENO))
        cli_say("ab", "%s %u of %u: %s", what, turn + 1, turns, side);
    else if (!begun_ns || !turn)
        cli_show_progress("ab", "%s %u of %u: %s", what, turn + 1, turns, side);
    else
        cli_show_progress(
            "ab", "%s %u of %u: %s, about %s left", what, turn + 1, turns, side,
            prof_duration((double)(prof_now_ns() - *begun_ns) / turn * (turns - turn)).text);
}

static enum prof_status warm_up(struct gate_recorder *recorder, const struct options *args,
                                unsigned count, struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    for (unsigned i = 0; !status && i < 2 * count; i++) {
        show_turn("warm-up", i, 2 * count, side_names[i % 2], args->gate.show_output, NULL);
        status = gate_record_warm(recorder, args->lines[i % 2], err);
    }
    return status;
}

/* Pairs until there are `runs` of each. */
static enum prof_status record_up_to(struct gate_recorder *recorder, const struct options *args,
                                     unsigned runs, uint64_t *begun_ns, struct gate_runs sides[2],
                                     struct prof_error *err)
{
    struct prof_run_options iterations = gate_iterations(&args->gate);
    enum prof_status status = PROF_OK;
    *begun_ns = *begun_ns ? *begun_ns : prof_now_ns();
    for (unsigned turn = 2 * (unsigned)sides[BASE].count; !status && turn < 2 * runs; turn++) {
        unsigned pair = turn / 2, side = first_of(pair) ^ (turn % 2);
        show_turn("run", turn, 2 * runs, side_names[side], args->gate.show_output, begun_ns);
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
    enum prof_status status = record_up_to(recorder, args, 1, &begun_ns, sides, err);
    if (!status && args->runs > 1)
        status = look_at_pair(args, config, sides, &enough, err);
    for (unsigned look = 0; !status && look < looks; look++) {
        if (look && (enough || !prof_comparison_wants(result, args->max_runs)))
            break;
        prof_comparison_free(result);
        if (!enough)
            status = record_up_to(recorder, args, look ? args->max_runs : args->runs, &begun_ns,
                                  sides, err);
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
    if (!args->lines[BASE] || !args->lines[CAND]) {
        cli_say("ab", "give both commands: --base CMD --cand CMD");
        return false;
    }
    if (args->max_runs && args->max_runs < args->runs) {
        cli_say("ab", "--max-runs %u is less than the %u of --runs: give more, or leave it out",
                args->max_runs, args->runs);
        return false;
    }
    if (end && (*args->warmup < '0' || *args->warmup > '9' || *end || *warmup > 1000)) {
        cli_say("ab", "--warmup: '%s' is not a count: give 0 to 1000", args->warmup);
        return false;
    }
    return true;
}

static int ab_run(const struct cli_command *command, int argc, char **argv)
{
    struct options args = {.runs = DEFAULT_RUNS, .gate.skip = CLI_NO_SKIP};
    struct cli_operands none;
    struct gate_config config;
    struct gate_recorder recorder;
    struct gate_runs sides[2] = {0};
    struct prof_comparison result = {0};
    struct prof_error err = {0};
    int exit_status;
    unsigned warmup;
    if (!cli_parse(command, argc, argv, &args, &none, &exit_status))
        return exit_status;
    if (!check_ab_options(&args, &warmup) ||
        !gate_configure(command->name, &args.gate, NULL, &config))
        return CLI_USAGE;
    enum prof_status status =
        gate_record_open(&recorder, command->name, &args.gate, args.keep, &err);
    status = status ? status : warm_up(&recorder, &args, warmup, &err);
    status = status ? status : compare_recorded(&recorder, &args, &config, sides, &result, &err);
    cli_wipe_progress();
    if (status)
        cli_say(command->name, "%s", err.message);
    gate_record_close(&recorder);
    exit_status = status ? CLI_USAGE : write_ab_report(&args, &config, sides, &result);
    prof_comparison_free(&result);
    gate_runs_free(&sides[BASE]);
    gate_runs_free(&sides[CAND]);
    gate_config_free(&config);
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
    .examples = examples,
    .statuses = gate_statuses,
    .usage_status = CLI_USAGE,
    .run = ab_run,
};
