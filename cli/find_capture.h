/* Which capture or recording a user means. */
#ifndef PERFKIT_CLI_FIND_CAPTURE_H
#define PERFKIT_CLI_FIND_CAPTURE_H

#include <limits.h>
#include <stdbool.h>

#include "cli/spool_folder.h"
#include "libprof/base/error.h"
#include "libprof/include/prof.h"
#include "libprof/spool/layout.h"

/* ---- the newest of a folder ------------------------------------------------------------------ */

/* Is `name`, seen from the open folder (or AT_FDCWD), a capture by the mark inside the file? */
bool is_capture_file(int folder, const char *name);

/* The capture of `folder` that was written to last, by the mark inside the file, whatever its
 * *.sqlite name. PROF_NOTFOUND when there is none. */
enum prof_status newest_capture(const char *folder, char out[PATH_MAX], struct prof_error *err);

/* As PROF_FREED, of a capture; NULL: none is open. */
#define CLI_CLOSED __attribute__((cleanup(cli_closed)))
static inline void cli_closed(struct prof_capture **capture)
{
    prof_close(*capture);
}

/* Open the capture at `path`, NULL = the newest of this folder. One that was interrupted is named
 * on standard error, with its remedy. */
enum prof_status cli_open_capture(const char *command, const char *path,
                                  struct prof_capture **capture, struct prof_error *err);

/* ---- spool folders --------------------------------------------------------------------------- */

/* A spool folder of this user, and the capture that it feeds: live and final are "" where perfkit
 * was killed before it named them. */
struct spool_found {
    char folder[PATH_MAX];
    struct spool_capture capture;
};

struct spool_list { /* PROF_ARRAY; whose memory runs out, holds what was found until then */
    struct spool_found *data;
    size_t count, capacity;
};

/* Those whose perfkit was killed: where `run` makes them by itself, and those that captures of the
 * working folder name; or those below a folder that was given with --spool-dir. */
void spool_find(struct spool_list *list);
void spool_find_below(const char *base, struct spool_list *list);
/* Those that a perfkit serves now, where `run` makes them by itself. */
void spool_find_running(struct spool_list *list);
/* That of the capture with this absolute path, live or final. */
bool spool_find_running_of(const char *path, struct spool_found *found);

/* Is the absolute path that of a folder whose perfkit was killed before it named its capture? It
 * holds nothing but the lock, if that. */
bool spool_is_stillborn(const char *folder);

/* Called for each spool of the folder that has a whole header. False: the folder cannot be read. */
typedef void (*spool_header_found)(void *context, const struct spool_header *header,
                                   int64_t disk_bytes);
bool spool_headers(const char *folder, spool_header_found found, void *context);

/* The folder that belongs to a capture file; false when there is none. */
bool spool_find_for(const char *capture, char folder[PATH_MAX]);

/* ---- running captures ------------------------------------------------------------------------ */

/* Which running capture a user means, by its file, by a process, or because there is only one: its
 * spool folder, served by a living perfkit of this user. `operand`: a capture file, a pid, or NULL
 * for the only one. PROF_NOTFOUND when there is none, PROF_INVALID when there are several
 * (`several`, where it is not NULL, is then set: print a list). */
enum prof_status ctl_find(const char *operand, struct spool_found *found, bool *several,
                          struct prof_error *err);

#endif
