/* The parts of perfkit top: which capture it shows, and what perfkit itself costs. */
#ifndef PERFKIT_CLI_TOP_H
#define PERFKIT_CLI_TOP_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "libprof/base/error.h"
#include "tui/app.h"

/* ---- the capture ----------------------------------------------------------------------------- */

/* Which capture `perfkit top` shows: one that is named, one that is running, one that it starts. */

struct top_capture {
    char path[PATH_MAX];  /* to read */
    char final[PATH_MAX]; /* where it will be; "" = it stays there */
    /* Started by us: */
    pid_t recorder;        /* 0 = not ours */
    char output[PATH_MAX]; /* what the program prints */
};

/* A capture file. One that is being recorded is found where it grows. */
void top_named(const char *file, struct top_capture *capture);

/* The running capture of this user; a question on the terminal chooses among several if `choose`.
 * PROF_NOTFOUND without one, PROF_INVALID when it is not clear which: the message lists them. */
enum prof_status top_running(bool choose, struct top_capture *capture, struct prof_error *err);

/* Start `perfkit run -o FILE RUN_OPTIONS -- COMMAND` (both end with NULL) in a process group of its
 * own, its input /dev/null and what it prints in a file (`output`, NULL: FILE with .out). `file`:
 * of the capture, NULL: as `perfkit run` chooses; `force`: it may exist. Returns when the capture
 * can be read. *status: of `perfkit run` where it ended before. */
enum prof_status top_start(char **command, char **run_options, bool force, const char *file,
                           const char *output, struct top_capture *capture, int *status,
                           struct prof_error *err);

/* Is a capture served by a living recorder? For tui_model.is_served. */
bool top_is_served(void *context, const char *spool);

/* ---- what perfkit costs ---------------------------------------------------------------------- */

/* What perfkit itself costs while it records, for the view Health of `perfkit top`. */

struct top_usage {
    int64_t pid;
    double cpu_s;
    uint64_t at_ns;
};

struct top_measure {
    const struct tui_model *model;
    struct top_usage recorder, own;
    uint64_t busy_ticks, all_ticks; /* of the machine, at the last look */
};

/* For tui_app.measure; context: struct top_measure. */
void top_measure(void *context, struct tui_health *health);

#endif
