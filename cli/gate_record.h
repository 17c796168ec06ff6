/* Records a command line with `perfkit run`, for the commands that make their own runs: gate
 * --rerun and ab. */
#ifndef PERFKIT_CLI_GATE_RECORD_H
#define PERFKIT_CLI_GATE_RECORD_H

#include <limits.h>

#include "cli/gate_runs.h"

struct gate_recorder {
    const char *command;   /* of perfkit, for messages */
    char folder[PATH_MAX]; /* where the captures go */
    bool keep;             /* the user asked for them: they stay */
    bool interrupted;      /* somebody ended it; see gate_record_close */
    int signal;
};

/* `keep`: folder to keep the captures in, made when it is not there; NULL = a private one that goes
 * with gate_record_close. */
enum prof_status gate_record_open(struct gate_recorder *recorder, const char *command,
                                  const char *keep, struct prof_error *err);

/* Run `line` with the shell without recording it: its caches, and those of the machine, are warm
 * then. */
enum prof_status gate_record_warm(struct gate_recorder *recorder, const char *line,
                                  struct prof_error *err);

/* Record `line` into NAME-NUMBER.sqlite and append it to the runs. What the program writes to its
 * standard output goes to standard error: ours is for the report. PROF_SYSTEM: it did not end with
 * 0; a run that failed says nothing about speed. */
enum prof_status gate_record(struct gate_recorder *recorder, const char *name, unsigned number,
                             const char *line, const struct prof_run_options *iterations,
                             int64_t session, struct gate_runs *runs, struct prof_error *err);

/* Remove what is not to be kept. Ends perfkit by the signal that interrupted it, if one did. */
void gate_record_close(struct gate_recorder *recorder);

#endif
