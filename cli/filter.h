/* The options that choose a part of a capture, for every command that reports on one. */
#ifndef PERFKIT_CLI_FILTER_H
#define PERFKIT_CLI_FILTER_H

#include "cli/command.h"
#include "libprof/include/prof.h"

/* As typed. CLI_NO_FILTER where nothing is. */
struct cli_filter_options {
    uint64_t from, to; /* ns; CLI_NO_TIME = not given */
    const char *nvtx, *process, *device, *stream, *kernel;
    const char *iteration;
    unsigned skip;            /* CLI_NO_SKIP = not given */
    unsigned number, slowest; /* which iteration; 0 = not given */
};
#define CLI_NO_TIME UINT64_MAX
#define CLI_NO_FILTER                                                                              \
    {                                                                                              \
        .from = CLI_NO_TIME, .to = CLI_NO_TIME, .skip = CLI_NO_SKIP                                \
    }

/* Rows for the option table of a command whose options hold `member`. */
#define CLI_FILTER_ROWS(options, member)                                                           \
    CLI_OPTION(                                                                                    \
        options, member.from, "from", 0, TIME, "TIME",                                             \
        "what starts at or after this time; seconds since the capture's start, or with ms, us",    \
        .group = "Of a part of the capture"),                                                      \
        CLI_OPTION(options, member.to, "to", 0, TIME, "TIME", "what starts before it"),            \
        CLI_OPTION(options, member.nvtx, "nvtx", 0, TEXT, "NAME[@DOMAIN]",                         \
                   "what was called inside NVTX ranges of that name; `NAME@`: of the default "     \
                   "domain, `\\@`: a plain @"),                                                    \
        CLI_OPTION(options, member.process, "process", 0, TEXT, "PID", "what that process did"),   \
        CLI_OPTION(                                                                                \
            options, member.device, "device", 0, TEXT, "DEVICE",                                   \
            "what ran on it; its number, cuda:N, opencl:N, its UUID, or a part of its name"),      \
        CLI_OPTION(options, member.stream, "stream", 0, TEXT, "STREAM",                            \
                   "what ran in streams of that number or name"),                                  \
        CLI_OPTION(options, member.kernel, "kernel", 'k', TEXT, "REGEX",                           \
                   "kernels whose readable name matches it, a POSIX extended regular expression"), \
        CLI_OPTION(options, member.number, "iteration-number", 0, COUNT, "N",                      \
                   "the time of the N-th iteration, as --iterations numbers them"),                \
        CLI_OPTION(options, member.slowest, "slowest", 0, COUNT, "K",                              \
                   "the time of the K-th slowest iteration after warm-up"),                        \
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
