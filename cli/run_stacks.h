/* `perfkit run --stacks`: whose call stacks are taken, and how often. */
#ifndef PERFKIT_CLI_RUN_STACKS_H
#define PERFKIT_CLI_RUN_STACKS_H

#include <stdbool.h>
#include <stddef.h>

#define STACKS_ALL "launch,alloc,sync"
#define STACKS_MOST_DEPTH 250u /* as the collector's */

struct stacks_options {
    const char *kinds; /* KIND[:N],...; NULL = none */
    unsigned depth;    /* 0 = the collector's own */
};

/* False, said on stderr, when an option is wrong. */
bool stacks_check(const char *command, const struct stacks_options *options, const char *trace);

/* Options for the collector, begun with a comma; "" without --stacks. False: they do not fit. */
bool stacks_hand_over(const struct stacks_options *options, char *text, size_t size);

/* One sentence on what is taken, for the capture. False: nothing. */
bool stacks_note(const struct stacks_options *options, char *text, size_t size);

#endif
