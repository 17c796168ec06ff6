/* What `perfkit run` records and when, beyond --trace: the options, their checks, their way to the
 * collector, and the clock of --delay and --duration. */
#ifndef PERFKIT_CLI_RUN_SCOPE_H
#define PERFKIT_CLI_RUN_SCOPE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/control.h"

#define SCOPE_ALWAYS UINT64_MAX /* --duration was not given: it cannot be reached by a time */

struct scope_options {
    uint64_t delay_ns;    /* 0 = none */
    uint64_t duration_ns; /* 0 = none; SCOPE_ALWAYS before scope_check */
    const char *range;    /* --capture-range */
    const char *kernel;
    const char *dump;
    unsigned cupti, graph, managed; /* indexes into scope_cupti and so on */
    bool dormant;
};
extern const char *const scope_cupti[], *const scope_graph[], *const scope_managed[];

struct scope {
    const struct scope_options *asked;
    struct control control;
    char dump[PATH_MAX];  /* absolute */
    bool made_dump;       /* the folder was not there before */
    uint64_t opens_at_ns; /* CLOCK_MONOTONIC; 0 = nothing to do */
    uint64_t closes_at_ns;
};

/* Make the control page, and the folder of --cupti-dump. */
enum prof_status scope_prepare(struct scope *scope, const struct scope_options *options,
                               const char *folder, struct prof_error *err);

/* False, said on stderr, when a regular expression cannot be used; `option` as in "--kernel=". */
bool scope_check_pattern(const char *command, const char *option, const char *pattern);

/* Append text to an option of the collector: '%', ',' and what could end a variable as %XX. Returns
 * the bytes used then, more than fit in `size` when it did not fit. */
size_t scope_append_escaped(char *text, size_t used, size_t size, const char *from, size_t bytes);

/* Nothing was started: leave nothing behind. */
void scope_undo(struct scope *scope);

/* The capture begins: no process of the target is there yet. */
void scope_ready(struct scope *scope);

/* Do what is due; returns the milliseconds to the next thing to do, or -1. */
int scope_step(struct scope *scope);

/* What to say of a capture without a record, as far as the windows tell; NULL = they were no
 * hindrance. */
const char *scope_why_nothing(const struct scope *scope, char *text, size_t size);

#endif
