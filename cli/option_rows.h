/* Rows of option tables that several commands have: the word, its letter and its kind are written
 * once, as CONTRIBUTING.md ("Words of the command line") promises them. `says` is the row's
 * text. */
#ifndef PERFKIT_CLI_OPTION_ROWS_H
#define PERFKIT_CLI_OPTION_ROWS_H

#include "cli/command.h"

#define CLI_FLAG_ROW_(options, member, word, short_, says)                                         \
    {                                                                                              \
        .name = word, .letter = short_, .type = CLI_FLAG, .text = says,                            \
        .offset = offsetof(struct options, member)                                                 \
    }
#define CLI_FORCE_ROW(options, member, says) CLI_FLAG_ROW_(options, member, "force", 'f', says)
#define CLI_QUIET_ROW(options, member, says) CLI_FLAG_ROW_(options, member, "quiet", 'q', says)
#define CLI_JSON_ROW(options, member, says) CLI_FLAG_ROW_(options, member, "json", 0, says)

/* Of the commands that compare runs. */
#define CLI_ITERATION_ROW(options, member, says)                                                   \
    {                                                                                              \
        .name = "iteration", .letter = 'i', .type = CLI_TEXT, .argument = "RANGE",                 \
        .fallback = "step, else the longest range that repeats", .text = says,                     \
        .offset = offsetof(struct options, member)                                                 \
    }
#define CLI_BASELINES_ROW(options, member)                                                         \
    {                                                                                              \
        .name = "baselines", .type = CLI_FILE, .argument = "FILE",                                 \
        .fallback = ".perfkit/baselines.sqlite of this folder or project",                         \
        .text = "the file of baselines", .offset = offsetof(struct options, member)                \
    }

#endif
