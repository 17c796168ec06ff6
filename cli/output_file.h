/* What a report must not be written over. */
#ifndef PERFKIT_CLI_OUTPUT_FILE_H
#define PERFKIT_CLI_OUTPUT_FILE_H

#include <stdbool.h>

/* An SQLite file, as captures and baselines are, by its first bytes. */
bool cli_is_database(const char *path);

/* One regular file by both names, or one name where there is none yet; /dev/null may be named
 * often. */
bool cli_same_file(const char *a, const char *b);

#endif
