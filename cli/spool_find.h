/* Spool folders whose perfkit was killed, or still runs: where `run` makes them by itself, and those
 * that captures of the working folder name. */
#ifndef PERFKIT_CLI_SPOOL_FIND_H
#define PERFKIT_CLI_SPOOL_FIND_H

#include <limits.h>
#include <stdbool.h>

/* Called for each: the folder, the file that was written to, the file that it was to become (both ""
 * when perfkit was killed before it named them). Returns false to stop. */
typedef bool (*spool_found)(void *context, const char *folder, const char *live, const char *final);
void spool_find(spool_found found, void *context);
/* The same below a folder that was given with --spool-dir. */
void spool_find_below(const char *base, spool_found found, void *context);

/* The same for those that a perfkit serves now. */
void spool_find_running(spool_found found, void *context);
/* Is it such a folder, and this user's? */
bool spool_is_running(const char *folder);

/* Is the absolute path that of a folder whose perfkit was killed before it named its capture? It
 * holds nothing but the lock, if that. */
bool spool_is_stillborn(const char *folder);

/* The folder that belongs to a capture file; false when there is none. */
bool spool_find_for(const char *capture, char folder[PATH_MAX]);

#endif
