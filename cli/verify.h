/* The log of scores that `perfkit verify --log` keeps. */
#ifndef PERFKIT_CLI_VERIFY_H
#define PERFKIT_CLI_VERIFY_H

#include "libprof/include/prof_verify.h"

#define VERIFY_LOG ".perfkit/verify.jsonl"

/* Append one line of JSON; makes the file, and the folder of VERIFY_LOG. A result that compared
 * nothing is left out. */
enum prof_status verify_log_add(const char *path, char *const files[2],
                                const struct prof_verify *result, struct prof_error *err);
/* What the log holds, on standard output. */
enum prof_status verify_log_print(const char *path, unsigned format, struct prof_error *err);

#endif
