/* The options that choose a part of a capture, for every command that reports on one. */
#ifndef PERFKIT_CLI_FILTER_H
#define PERFKIT_CLI_FILTER_H

#include "cli/command.h"
#include "libprof/include/prof.h"

/* As typed. Set to CLI_NO_FILTER before cli_parse. */
struct cli_filter_options {
    uint64_t from, to; /* ns; CLI_NO_TIME = not given */
    const char *nvtx, *process, *device, *stream, *kernel;
    const char *iteration;
    unsigned skip; /* CLI_NO_SKIP = not given */
};
#define CLI_NO_TIME UINT64_MAX
#define CLI_NO_FILTER                                                                              \
    {                                                                                              \
        .from = CLI_NO_TIME, .to = CLI_NO_TIME, .skip = CLI_NO_SKIP                                \
    }

/* Rows for the option table of a command whose options hold `member`. */
#define CLI_FILTER_ROWS(options, member)                                                           \
    {.name = "from",                                                                               \
     .type = CLI_TIME,                                                                             \
     .offset = offsetof(struct options, member.from),                                              \
     .argument = "TIME",                                                                           \
     .group = "Of a part of the capture",                                                          \
     .text = "what starts at or after this time; seconds since the capture's start, or with ms, "  \
             "us"},                                                                                \
        {.name = "to",                                                                             \
         .type = CLI_TIME,                                                                         \
         .offset = offsetof(struct options, member.to),                                            \
         .argument = "TIME",                                                                       \
         .text = "what starts before it"},                                                         \
        {.name = "nvtx",                                                                           \
         .type = CLI_TEXT,                                                                         \
         .offset = offsetof(struct options, member.nvtx),                                          \
         .argument = "NAME[@DOMAIN]",                                                              \
         .text =                                                                                   \
             "what was called inside NVTX ranges of that name; `NAME@`: of the default domain, "   \
             "`\\@`: a plain @"},                                                                  \
        {.name = "process",                                                                        \
         .type = CLI_TEXT,                                                                         \
         .offset = offsetof(struct options, member.process),                                       \
         .argument = "PID",                                                                        \
         .text = "what that process did"},                                                         \
        {.name = "device",                                                                         \
         .type = CLI_TEXT,                                                                         \
         .offset = offsetof(struct options, member.device),                                        \
         .argument = "DEVICE",                                                                     \
         .text = "what ran on it; its number, cuda:N, opencl:N, its UUID, or a part of its name"}, \
        {.name = "stream",                                                                         \
         .type = CLI_TEXT,                                                                         \
         .offset = offsetof(struct options, member.stream),                                        \
         .argument = "STREAM",                                                                     \
         .text = "what ran in streams of that number or name"},                                    \
        {.name = "kernel",                                                                         \
         .letter = 'k',                                                                            \
         .type = CLI_TEXT,                                                                         \
         .offset = offsetof(struct options, member.kernel),                                        \
         .argument = "REGEX",                                                                      \
         .text = "kernels whose readable name matches it, a POSIX extended regular expression"},   \
        CLI_ITERATION_ROW(options, member.iteration), CLI_SKIP_ROW(options, member.skip)

struct cli_filter {
    struct prof_filter filter;
    bool any; /* something was chosen: else pass NULL */
    /* what `filter` borrows */
    int64_t *streams;
    char *range;
};

/* Is anything chosen? */
bool cli_filter_any(const struct cli_filter_options *options);

/* Find what the options name in the capture. PROF_NOTFOUND says what there is instead; PROF_INVALID
 * for a name that fits several things, a bad pattern or an empty range of time. The result borrows
 * the options' texts; free it in any case. */
enum prof_status cli_filter_find(struct prof_capture *capture,
                                 const struct cli_filter_options *options,
                                 struct cli_filter *filter, struct prof_error *err);
void cli_filter_free(struct cli_filter *filter);

#endif
