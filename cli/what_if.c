/* perfkit what-if: how long an iteration would take after a change, and what limits it then. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/find_capture.h"
#include "libprof/base/format.h"
#include "libprof/include/prof.h"
#include "libprof/include/prof_what_if.h"
#include "report/columns.h"

struct what_if_options {
    struct cli_texts set;
    const char *iteration;
    unsigned format, skip;
    bool json;
};

static const struct cli_option what_if_option_table[] = {
    CLI_OPTION(
        what_if_options, set, "set", 's', TEXTS, "WHAT[=VALUE]",
        "a change: kernel:GLOB, memcpy, memcpy:h2d, memset, sync, alloc, build, launch or "
        "host =0.5x (the share that stays), =12us (what each takes) or =0 (gone); "
        "fuse:A,B[=VALUE], overlap:h2d, wait, graph, device=H100; rank2:kernel:GLOB=0.5x "
        "for one rank's. It may be repeated: each change is predicted alone, then all together"),
    CLI_FORMAT_ROWS(what_if_options, format, json),
    CLI_ITERATION_ROW(what_if_options, iteration),
    CLI_SKIP_ROW(what_if_options, skip),
    {0},
};

static const struct cli_text_row what_if_statuses[] = {
    {"0", "Iteration times were predicted."},
    {"2",
     "The command line is wrong, a change fits nothing, or the file cannot be read or written."},
    {"3", "Refused: nothing repeats, or the replay does not reproduce the recorded time."},
    {0},
};

static const struct cli_text_row what_if_examples[] = {
    {"perfkit what-if run.sqlite --set 'kernel:*gemm*=0.5x' --set memcpy=0",
     "Matrix products twice as fast, no memcpys; each, and both."},
    {"perfkit what-if run.sqlite --set 'fuse:add,mul' --set overlap:h2d",
     "Runs of two kernels as one, uploads beside the kernels."},
    {0},
};

#define WHAT_IF(row) ((const struct prof_what_if_row *)(row))

CELL(what_if_change, prof_report_text(WHAT_IF(row)->change ? WHAT_IF(row)->change : "all of them"))
CELL(what_if_limit, prof_report_text(prof_limit_text(WHAT_IF(row)->limit)))
CELL(what_if_limit_name, prof_report_text(prof_limit_name(WHAT_IF(row)->limit)))
CELL(what_if_limit_share, prof_report_real(WHAT_IF(row)->share[WHAT_IF(row)->limit]))

#define SHARE_COLUMN(kind, name, text)                                                             \
    REAL("share_" name, text, SHARE, 0, prof_what_if_row, share[PROF_LIMIT_##kind]),

/* clang-format off */
#define PREDICTED_COLUMNS                                                                          \
    COMPUTED("change", "Change", WORD, 1, what_if_change),                                         \
    INT64("changed", "Changed", COUNT, 4, prof_what_if_row, changed),                              \
    REAL("predicted_ns", "Predicted", NS, 1, prof_what_if_row, predicted_ns),                      \
    REAL("low_ns", "At least", NS, 3, prof_what_if_row, low_ns),                                   \
    REAL("high_ns", "At most", NS, 3, prof_what_if_row, high_ns),                                  \
    REAL("host_free_ns", "Without host", NS, 2, prof_what_if_row, host_free_ns),                   \
    REAL("saved_ns", "Saves", NS, 1, prof_what_if_row, saved_ns),                                  \
    REAL("speedup", "Speedup", RATIO, 2, prof_what_if_row, speedup)
#define BARE_COLUMNS                                                                               \
    REAL("bare_ns", "Unrecorded", NS, 1, prof_what_if_row, bare_ns),                               \
    REAL("bare_low_ns", "from", NS, 1, prof_what_if_row, bare_low_ns),                             \
    REAL("bare_high_ns", "to", NS, 1, prof_what_if_row, bare_high_ns),                             \
    REAL("bare_saved_ns", "Saves then", NS, 2, prof_what_if_row, bare_saved_ns),                   \
    REAL("bare_speedup", "Speedup then", RATIO, 0, prof_what_if_row, bare_speedup)
#define LIMIT_COLUMNS                                                                              \
    COMPUTED("limit_text", "Then limited by", WORD, 1, what_if_limit),                             \
    COMPUTED("limit_share", "Share", SHARE, 2, what_if_limit_share),                               \
    COMPUTED("limit", "Limit", WORD, 0, what_if_limit_name),                                       \
    PROF_LIMIT_KINDS(SHARE_COLUMN)                                                                 \
    STRING("why_none", "Why none", WORD, 0, prof_what_if_row, why_none)
/* clang-format on */

static const struct prof_report_column what_if_columns[] = {PREDICTED_COLUMNS,
                                                            BARE_COLUMNS,
                                                            LIMIT_COLUMNS,
                                                            {0}},
                                       recorded_columns[] = {PREDICTED_COLUMNS, LIMIT_COLUMNS, {0}};

#define WHAT_IF_TABLE(columns_)                                                                    \
    {                                                                                              \
        .name = "changes",                                                                         \
        .title = "Predicted time of the median iteration, 95 % interval over the iterations",      \
        .none = "no change was given: add --set CHANGE", .columns = columns_,                      \
        .row_bytes = sizeof(struct prof_what_if_row)                                               \
    }
static const struct prof_report_table what_if_table = WHAT_IF_TABLE(what_if_columns),
                                      recorded_table = WHAT_IF_TABLE(recorded_columns);

/* Is anything known of iterations without perfkit? */
static bool has_bare_times(const struct prof_what_if *w)
{
    bool any = !isnan(w->bare_ns);
    for (size_t i = 0; i < w->count; i++)
        any |= w->rows[i].why_none != NULL;
    return any;
}

/* Changes without a prediction, each with what is possible; a reason once for neighbours. */
static void print_refused_rows(const struct prof_what_if *w)
{
    const char *why = NULL;
    for (size_t i = 0; i < w->count; i++) {
        const struct prof_what_if_row *row = &w->rows[i];
        if (!row->why_none)
            continue;
        if (why && strcmp(why, row->why_none))
            printf("%-10s %s\n", "", why);
        why = row->why_none;
        printf("%-10s %s: anything from %s to %s is possible without perfkit\n", "n/a",
               row->change ? row->change : "all of them", prof_duration(row->bare_low_ns).text,
               prof_duration(row->bare_high_ns).text);
    }
    if (!why)
        return;
    printf("%-10s %s\n", "", why);
    if (w->why_no_bare[0]) {
        printf("%-10s ", "");
        cli_print_wrapped(stdout, w->why_no_bare, 11, 11, 100);
    }
}

static void print_what_if_head(const void *result)
{
    const struct prof_what_if *w = result;
    if (w->why_none[0])
        printf("%-10s %s\n", "Refused", w->why_none);
    if (w->iterations) {
        printf("%-10s %s, 95 %%: %s to %s, median of %s", "Recorded",
               prof_duration(w->median_ns).text, prof_duration(w->low_ns).text,
               prof_duration(w->high_ns).text,
               prof_counted(w->iterations, "iteration", "iterations").text);
        printf(w->phase ? " of \"%s\"\n" : "\n", w->phase);
        printf("%-10s %s (%+.1f %%), limited by %s (%s of the critical path)\n", "Replayed",
               prof_duration(w->replayed_ns).text, 100 * (w->replayed_ns / w->median_ns - 1),
               prof_limit_text(w->limit), prof_percent(w->share[w->limit]).text);
    }
    if (!isnan(w->bare_ns)) {
        printf("%-10s %s%s, %s to %s: recording made an iteration %.2fx as long", "Unrecorded",
               w->estimated ? "about " : "", prof_duration(w->bare_ns).text,
               prof_duration(w->bare_low_ns).text, prof_duration(w->bare_high_ns).text,
               w->overhead);
        printf(w->estimated ? " (estimated)\n" : "\n");
    }
    if (w->ranks[0])
        printf("%-10s %s\n", "Ranks", w->ranks);
    bool by_host = false;
    for (size_t i = 0; i < w->count; i++)
        by_host |= w->rows[i].limit == PROF_LIMIT_HOST;
    if (by_host)
        printf("%-10s %s\n%-10s %s\n", "Host",
               "its time between API calls is taken as recorded. If the change shortens it too, an",
               "", "iteration takes less, at least \"Without host\": try --set host=0.5x");
    for (size_t i = 0; i < w->count; i++)
        if (w->rows[i].change && !w->rows[i].changed && !(fabs(w->rows[i].saved_ns) >= 1))
            printf("%-10s %s: these iterations have nothing of it; -i names others\n", "No effect",
                   w->rows[i].change);
    print_refused_rows(w);
    if (!w->why_none[0])
        putchar('\n');
}

static void put_what_if_head(struct prof_json *json, const void *result)
{
    const struct prof_what_if *w = result;
    prof_json_int(json, "perfkit_what_if", 1);
    prof_json_string(json, "phase", w->phase);
    prof_json_int(json, "iterations", w->iterations);
    prof_json_real(json, "median_ns", w->median_ns);
    prof_json_real(json, "low_ns", w->low_ns);
    prof_json_real(json, "high_ns", w->high_ns);
    prof_json_real(json, "replayed_ns", w->replayed_ns);
    prof_json_real(json, "bare_ns", w->bare_ns);
    prof_json_real(json, "bare_low_ns", w->bare_low_ns);
    prof_json_real(json, "bare_high_ns", w->bare_high_ns);
    prof_json_real(json, "overhead", w->overhead);
    prof_json_bool(json, "estimated", w->estimated);
    prof_json_real(json, "recording_ns", w->recording_ns);
    prof_json_string(json, "why_no_bare", w->why_no_bare[0] ? w->why_no_bare : NULL);
    prof_json_object(json, "share");
    for (int b = 0; b < PROF_LIMITS; b++)
        prof_json_real(json, prof_limit_name((enum prof_limit)b), w->share[b]);
    prof_json_end(json);
    prof_json_int(json, "joined", w->joined);
    prof_json_string(json, "ranks", w->ranks[0] ? w->ranks : NULL);
    prof_json_string(json, "why_none", w->why_none[0] ? w->why_none : NULL);
}

static int what_if_run(const struct cli_command *command, void *given,
                       const struct cli_operands *operands, struct prof_error *err)
{
    const struct what_if_options *args = given;
    CLI_CLOSED struct prof_capture *capture = NULL;
    struct prof_what_if result = {0};
    (void)command;
    const struct prof_filter filter = CLI_ITERATION_FILTER(args->iteration, args->skip);
    bool any = filter.iteration || filter.skips;
    enum prof_status status = prof_open(operands->values[0], &capture, err);
    if (!status)
        status = prof_what_if(capture, any ? &filter : NULL, args->set.values, args->set.count,
                              &result, err);
    unsigned format = args->json ? PROF_REPORT_JSON : args->format;
    bool brief = format == PROF_REPORT_TEXT && !has_bare_times(&result);
    const struct cli_document document = {.table = brief ? &recorded_table : &what_if_table,
                                          .rows = result.rows,
                                          .count = result.count,
                                          .refused = result.why_none[0],
                                          .text_head = print_what_if_head,
                                          .json_head = put_what_if_head,
                                          .result = &result};
    status = status ?: cli_print_document(&document, format, err);
    bool refused = result.why_none[0];
    prof_what_if_free(&result);
    return status ? CLI_USAGE : refused ? CLI_REFUSED : CLI_OK;
}

const struct cli_command what_if_command = {
    .name = "what-if",
    .summary = "predict the time of an iteration after a change",
    .operands = "FILE",
    .text = "Replays the calls and operations of a capture with a change and says how long the "
            "median iteration would take, and what limits it then: the host, API calls, launches, "
            "kernels or memcpys. Kernels do not slow each other down in the replay; ranks of one "
            "capture wait for each other in collectives. Where the "
            "replay of what was recorded is more than 5 % off, nothing is predicted.",
    .options = what_if_option_table,
    CLI_OPTIONS_ARE(what_if_options, .skip = CLI_NO_SKIP),
    .examples = what_if_examples,
    .statuses = what_if_statuses,
    .write_status = CLI_USAGE,
    .operand = CLI_FILE,
    .least = 1,
    .most = 1,
    .run = what_if_run,
};
