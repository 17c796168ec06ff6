/* perfkit merge: the captures of a distributed run as one. Says whose clocks were compared how, and
 * with which error: times of two hosts are worth no more than that. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/commands.h"
#include "cli/exchange.h"
#include "cli/option_rows.h"
#include "libprof/base/format.h"
#include "libprof/include/prof.h"
#include "libprof/store/merge.h"

#define MOST_LINES 8 /* of files, before the rest is only counted */

struct merge_options {
    const char *output;
    bool summary, subset, force, quiet;
};

#define AT(field) .offset = offsetof(struct merge_options, field)
static const struct cli_option merge_options[] = {
    {.name = "output",
     .letter = 'o',
     .type = CLI_FILE,
     AT(output),
     .argument = "OUT",
     .text = "capture to write (needed)"},
    {.name = "summary",
     .letter = 's',
     .type = CLI_FLAG,
     AT(summary),
     .text = "no events: only what each kernel took in each second, processes and the trust block; "
             "for very many ranks"},
    {.name = "subset",
     .type = CLI_FLAG,
     AT(subset),
     .text = "ranks that none of the files has are left out on purpose"},
    CLI_FORCE_ROW(merge_options, force, "replace the file if it exists"),
    CLI_QUIET_ROW(merge_options, quiet, "print no summary, only errors and what is missing"),
    {0},
};

static const struct cli_text_row merge_examples[] = {
    {"perfkit merge train-*.sqlite -o train.sqlite", "All ranks of a run."},
    {"perfkit merge --subset train-[0-7].sqlite -o node0.sqlite", "Those of one node."},
    {"perfkit merge --summary train-*.sqlite -o train.sqlite", "Totals of thousands of ranks."},
    {0},
};

static const struct cli_text_row merge_statuses[] = {
    {"0", "Everything is in OUT."},
    {"1", "OUT could not be written; nothing is there."},
    {"2", "Wrong usage, or a file that is no capture, or not of a version that this perfkit reads; "
          "nothing was written."},
    {"3",
     "OUT was written and is incomplete: a rank is in no file, or a file was damaged, cut short "
     "or not finished. Standard error and the capture's trust block name it."},
    {0},
};

/* A thousand files at once need a thousand descriptors. */
static void open_many(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void print_clock_offset(const char *name, const struct prof_merge_part *part)
{
    char drift[48] = "";
    if (part->drift != 0)
        snprintf(drift, sizeof drift, " and %+.3f us/s", part->drift / 1e3);
    const char *sign = part->offset_ns < 0 ? "-" : "+";
    struct prof_text offset = prof_duration(fabs((double)part->offset_ns));
    if (part->clock == PROF_MERGE_COLLECTIVES)
        cli_say(name, "%s: clock %s%s%s, half of %s collectives within %s", part->path, sign,
                offset.text, drift, prof_count((int64_t)part->compared).text,
                prof_duration_ns(part->error_ns).text);
    else if (part->clock == PROF_MERGE_REALTIME)
        cli_say(name, "%s: clock %s%s by the wall clock, error not known", part->path, sign,
                offset.text);
    else
        cli_say(name, "%s: clock not known, begins with the first file", part->path);
}

/* Files of one host were compared once, and follow each other. */
static bool is_same_host(const struct prof_merge_part *a, const struct prof_merge_part *b)
{
    return a && a->clock == b->clock && a->host && b->host && !strcmp(a->host, b->host) &&
           a->compared == b->compared && a->error_ns == b->error_ns;
}

/* Files on the first one's clock need no words. */
static void print_clocks(const char *name, const struct prof_merge_result *result)
{
    size_t same = 0, others = 0, hosts = 0;
    int64_t worst = -1;
    const struct prof_merge_part *before = NULL;
    for (size_t i = 0; i < result->count; i++) {
        const struct prof_merge_part *part = &result->parts[i];
        bool exact = part->clock == PROF_MERGE_SAME;
        same += exact && !part->left_out;
        if (exact || part->left_out)
            continue;
        others++;
        if (part->clock == PROF_MERGE_COLLECTIVES && part->error_ns > worst)
            worst = part->error_ns;
        if (!is_same_host(before, part) && hosts++ < MOST_LINES)
            print_clock_offset(name, part);
        before = part;
    }
    if (hosts > MOST_LINES)
        cli_say(name, "and so on for %s: table merged_part",
                prof_counted((int64_t)(hosts - MOST_LINES), "host", "hosts").text);
    if (!others)
        cli_say(name, "clocks: %zu file%s of one clock: exact", same, same == 1 ? "" : "s");
    else if (worst >= 0)
        cli_say(name,
                "clocks: exact for %zu of %zu files, within %s for the worst of those compared by "
                "collectives",
                same, same + others, prof_duration_ns(worst).text);
}

static void print_missing_parts(const char *name, const struct prof_merge_result *result)
{
    size_t said = 0;
    for (size_t i = 0; i < result->count; i++) {
        const struct prof_merge_part *part = &result->parts[i];
        if (part->missing && said++ < MOST_LINES)
            cli_say(name, "%s: %s%s", part->path, part->left_out ? "left out: " : "",
                    part->missing);
    }
    if (said > MOST_LINES)
        cli_say(name, "and so on for %s",
                prof_counted((int64_t)(said - MOST_LINES), "file", "files").text);
    for (int i = 0; i < result->note_count; i++)
        cli_say(name, "note: %s", result->notes[i]);
}

/* "; AT RISK": that of the worst part. "" when OUT is no file that can be read back. */
static const char *merged_trust_status(const char *output, char status[64])
{
    struct prof_capture *capture = NULL;
    struct prof_trust trust;
    status[0] = '\0';
    if (!prof_open(output, &capture, NULL) && !prof_trust(capture, &trust, NULL)) {
        snprintf(status, 64, "; %s", prof_trust_status_words(trust.status));
        prof_trust_free(&trust);
    }
    prof_close(capture);
    return status;
}

static void print_merge_result(const char *name, const struct prof_merge_result *result,
                               const char *output)
{
    size_t files = 0;
    char status[64];
    for (size_t i = 0; i < result->count; i++)
        files += !result->parts[i].left_out;
    cli_say(name, "wrote %s: %s of %s%s", output,
            prof_counted((int64_t)result->rows, "event", "events").text,
            prof_counted((int64_t)files, "file", "files").text,
            merged_trust_status(output, status));
}

static int merge_run(const struct cli_command *command, int argc, char **argv)
{
    struct merge_options asked = {0};
    struct cli_operands operands;
    struct prof_merge_result result;
    struct prof_error err = {0};
    struct exchange_shown shown;
    int exit_status;
    if (!cli_parse(command, argc, argv, &asked, &operands, &exit_status))
        return exit_status;
    if (!asked.output) {
        cli_say(command->name, "where to? name the capture to write with -o");
        return CLI_USAGE;
    }
    if (!exchange_is_file(command, asked.output))
        return CLI_USAGE;
    open_many();
    exchange_begin(&shown, command->name, "events", asked.quiet);
    struct prof_merge_options options = {
        .file = {.overwrite = asked.force, .progress = exchange_show, .user = &shown},
        .summary = asked.summary,
        .subset = asked.subset,
    };
    enum prof_status status =
        prof_merge((const char *const *)operands.values, (size_t)operands.count, asked.output,
                   &options, &result, &err);
    exit_status = exchange_end(&shown, asked.output, status, &err);
    if (exit_status)
        return exit_status;
    bool complete = result.complete;
    print_missing_parts(command->name, &result);
    if (!asked.quiet) {
        print_clocks(command->name, &result);
        print_merge_result(command->name, &result, asked.output);
    }
    prof_merge_result_free(&result);
    return complete ? CLI_OK : CLI_REFUSED;
}

const struct cli_command merge_command = {
    .name = "merge",
    .summary = "make one capture of those of a distributed run",
    .operands = "FILE... -o OUT",
    .text =
        "Reads the captures that the processes or hosts of one run wrote and makes one of them, on "
        "which everything works as on any other. Times are brought to one clock: exactly for "
        "files of one host, by the ends of collectives between hosts, else by the wall clock; the "
        "error is printed and kept (table merged_part).\n\n"
        "A file that is cut short is left out, one that is damaged is read as far as it goes, one "
        "that is given twice counts once, a rank that no file has is named.",
    .options = merge_options,
    .examples = merge_examples,
    .statuses = merge_statuses,
    .operand = CLI_FILE,
    .least = 1,
    .most = UINT_MAX,
    .usage_status = CLI_USAGE,
    .run = merge_run,
};
