/* What gate, ab and diff have in common on the command line, and how a comparison leaves perfkit:
 * on standard output, into files, as an exit status. */
#ifndef PERFKIT_CLI_GATE_OUTPUT_H
#define PERFKIT_CLI_GATE_OUTPUT_H

#include "cli/gate_config.h"
#include "cli/gate_runs.h"
#include "cli/option_rows.h"
#include "report/gate.h"

struct gate_options {
    const char *config, *iteration;
    bool strict, allow_single;
    unsigned format, top;
    unsigned skip; /* CLI_NO_SKIP = not given; set before cli_parse */
    bool json, github;
    const char *json_file, *junit, *markdown;
};

/* In the order of prof_gate_writers. */
extern const char *const gate_formats[];

/* Rows for the option table of a command whose options hold `member`. */
#define GATE_JUDGE_ROWS(options, member)                                                           \
    {.name = "config",                                                                             \
     .letter = 'c',                                                                                \
     .type = CLI_FILE,                                                                             \
     .offset = offsetof(struct options, member.config),                                            \
     .argument = "FILE",                                                                           \
     .fallback = "perfkit.gate of this folder or project",                                         \
     .group = "What is compared",                                                                  \
     .text = "metrics, tolerances, smallest effects that matter and what is ignored"},             \
        CLI_ITERATION_ROW(options, member.iteration), CLI_SKIP_ROW(options, member.skip),          \
        {.name = "strict",                                                                         \
         .type = CLI_FLAG,                                                                         \
         .offset = offsetof(struct options, member.strict),                                        \
         .text = "end with 4 when nothing can be decided, instead of 0 and a warning"},            \
    {                                                                                              \
        .name = "allow-single", .type = CLI_FLAG,                                                  \
        .offset = offsetof(struct options, member.allow_single),                                   \
        .text = "let times fail on fewer than three runs, which is a weaker statement"             \
    }

#define GATE_OUTPUT_ROWS(options, member)                                                          \
    {.name = "format",                                                                             \
     .type = CLI_CHOICE,                                                                           \
     .offset = offsetof(struct options, member.format),                                            \
     .argument = "NAME",                                                                           \
     .fallback = "text",                                                                           \
     .group = "Output",                                                                            \
     .text = "on standard output: text, markdown, junit, github or json",                          \
     .words = gate_formats},                                                                       \
        CLI_JSON_ROW(options, member.json, "the same as --format json"),                           \
        {.name = "github",                                                                         \
         .type = CLI_FLAG,                                                                         \
         .offset = offsetof(struct options, member.github),                                        \
         .text = "annotations for GitHub Actions on standard output too"},                         \
        {.name = "markdown",                                                                       \
         .type = CLI_FILE,                                                                         \
         .offset = offsetof(struct options, member.markdown),                                      \
         .argument = "OUT",                                                                        \
         .text = "also into a file, for a comment or a job's summary"},                            \
        {.name = "junit",                                                                          \
         .type = CLI_FILE,                                                                         \
         .offset = offsetof(struct options, member.junit),                                         \
         .argument = "OUT",                                                                        \
         .text = "also into a file, as JUnit XML"},                                                \
        {.name = "json-file",                                                                      \
         .type = CLI_FILE,                                                                         \
         .offset = offsetof(struct options, member.json_file),                                     \
         .argument = "OUT",                                                                        \
         .text = "also into a file, as JSON"},                                                     \
    {                                                                                              \
        .name = "top", .type = CLI_COUNT, .offset = offsetof(struct options, member.top),          \
        .argument = "N", .text = "rows of each list at most"                                       \
    }

/* Exit statuses of gate and ab, for help. */
extern const struct cli_text_row gate_statuses[];

/* Compare as the options and the configuration say. `interleaved`, `looks`: see prof_compare.h. */
enum prof_status gate_compare(const struct gate_options *options, const struct gate_config *config,
                              const struct gate_runs *base, const struct gate_runs *cand,
                              bool interleaved, unsigned looks, struct prof_comparison *result,
                              struct prof_error *err);

/* Fill in what report the options ask for, write it to standard output and into files. Returns the
 * exit status: by the verdict, or CLI_USAGE when something could not be written. */
int gate_write_results(const char *command, const struct gate_options *options,
                       const struct gate_config *config, struct prof_gate_report *report);

/* What is an iteration, once gate_configure has looked into the configuration. */
struct prof_run_options gate_iterations(const struct gate_options *options);

/* The configuration for a command; false when what is wrong was said. */
bool gate_configure(const char *command, struct gate_options *options, const char *baselines,
                    struct gate_config *config);

#endif
