/* Rows of option tables that several commands have: the word, its letter and its kind are written
 * once, as CONTRIBUTING.md ("Words of the command line") promises them. `says` is the row's
 * text. */
#ifndef PERFKIT_CLI_OPTION_ROWS_H
#define PERFKIT_CLI_OPTION_ROWS_H

#include <limits.h>

#include "cli/command.h"

#define CLI_FLAG_ROW_(options, member, word, short_, says)                                         \
    {                                                                                              \
        .name = word, .letter = short_, .type = CLI_FLAG, .text = says,                            \
        .offset = offsetof(struct options, member)                                                 \
    }
#define CLI_FORCE_ROW(options, member, says) CLI_FLAG_ROW_(options, member, "force", 'f', says)
#define CLI_QUIET_ROW(options, member, says) CLI_FLAG_ROW_(options, member, "quiet", 'q', says)
#define CLI_JSON_ROW(options, member, says) CLI_FLAG_ROW_(options, member, "json", 0, says)

/* Of every command that reports by iterations: libprof/include/prof_iterations.h. */
#define CLI_ITERATION_ROW(options, member)                                                         \
    {                                                                                              \
        .name = "iteration", .letter = 'i', .type = CLI_TEXT, .argument = "RANGE[@DOMAIN]",        \
        .fallback = "step or alike, else the outermost range that repeats",                        \
        .text = "the NVTX range that is one iteration; also a phase as reports name it",           \
        .offset = offsetof(struct options, member)                                                 \
    }
#define CLI_SKIP_ROW(options, member)                                                              \
    {                                                                                              \
        .name = "skip", .type = CLI_COUNT, .zero = true, .argument = "N",                          \
        .fallback = "1 of 4 or more, and those that compile at first",                             \
        .text = "iterations of each phase to leave out at the start, as warm-up",                  \
        .offset = offsetof(struct options, member)                                                 \
    }
#define CLI_NO_SKIP UINT_MAX
#define CLI_RUN_OPTIONS(iteration_, skip_)                                                         \
    {                                                                                              \
        .iteration = iteration_, .skip = (skip_) == CLI_NO_SKIP ? PROF_UNKNOWN : (int64_t)(skip_)  \
    }
#define CLI_ITERATION_FILTER(iteration_, skip_)                                                    \
    {                                                                                              \
        .iteration = iteration_, .skips = (skip_) != CLI_NO_SKIP,                                  \
        .skip = (skip_) == CLI_NO_SKIP ? 0 : (int64_t)(skip_)                                      \
    }
#define CLI_BASELINES_ROW(options, member)                                                         \
    {                                                                                              \
        .name = "baselines", .type = CLI_FILE, .argument = "FILE",                                 \
        .fallback = ".perfkit/baselines.sqlite of this folder or project",                         \
        .text = "the file of baselines", .offset = offsetof(struct options, member)                \
    }

#endif
