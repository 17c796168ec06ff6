/* Names of files that commands write: what differs between the processes of a distributed run, and
 * what a report must not be written over. */
#ifndef PERFKIT_CLI_OUTPUT_NAME_H
#define PERFKIT_CLI_OUTPUT_NAME_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "libprof/base/error.h"

/* `pattern` with %h (host), %p (process id of this perfkit), %r (rank of the distributed run),
 * %q{NAME} (an environment variable) and %% replaced. Text of the host and of variables stays as it
 * is, but for control characters, which become '_'. PROF_INVALID with the remedy: an unknown
 * pattern, a variable that is not set, no rank, a name that is too long. */
enum prof_status output_name(const char *pattern, char name[PATH_MAX], struct prof_error *err);

/* As help and messages list them. */
#define OUTPUT_PATTERNS                                                                            \
    "%h (host), %p (process id of perfkit), %r (rank), %q{NAME} (environment variable), %% (a "    \
    "per "                                                                                         \
    "cent sign)"

/* A file that a command writes beside its standard output. */
struct cli_output_file {
    const char *option, *path; /* path NULL = not requested */
    const char *writer;        /* of report/, where the command names one */
};

/* May `command` write all of them? Each may replace an older report, but no capture and no history
 * (`report --html run.sqlite`, the page's name being forgotten) and no other of the same command.
 * "-" is not looked at. False after it has said why. */
bool cli_outputs_are_free(const char *command, const struct cli_output_file *files, size_t count);

/* An SQLite file, as captures and baselines are, by its first bytes. */
bool cli_is_database(const char *path);

/* One regular file by both names, or one name where there is none yet; /dev/null may be named
 * often. */
bool cli_same_file(const char *a, const char *b);

/* ---- reports that a signal interrupts -------------------------------------------------------- */

/* From now on Ctrl-C, SIGTERM and the like remove the unfinished file of a report before they end
 * perfkit, as they would have. For commands that call prof_report_save. */
void cli_leave_no_half_report(void);

#endif
