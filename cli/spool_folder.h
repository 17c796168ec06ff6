/* The private folder of one run: where it is made, who owns it, which capture it feeds, and how it
 * goes away. `run` makes it, `recover` finds its way by it.
 *
 *     owner      pid and start time of the perfkit that serves it, locked (flock) while it lives
 *     capture    "live PATH" (the SQLite file written to), "final PATH" and "start NS" (capture's
 *                start_mono_ns), a line each
 *     inner      the captures of other perfkit runs that the program started, one path a line
 *     lifecycle, control, *.spool    see libprof/spool
 *     *.cubin    machine code that was sampled (--stalls) */
#ifndef PERFKIT_CLI_SPOOL_FOLDER_H
#define PERFKIT_CLI_SPOOL_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "libprof/base/error.h"
#include "libprof/spool/control.h"

struct spool_folder {
    char path[PATH_MAX]; /* absolute; "" = none */
    int owner_fd;        /* holds the lock; -1 = none */
};

/* Where spool folders are made, the best first; one of them may be NULL. */
#define SPOOL_BASES 3
const char *const *spool_bases(void);

/* Make a folder of mode 0700 below `base`, or, when base is NULL, below the first of /dev/shm,
 * TMPDIR and /tmp that has `room_bytes` free (the roomiest when none has). Takes the lock. */
enum prof_status spool_folder_make(struct spool_folder *folder, const char *base,
                                   uint64_t room_bytes, struct prof_error *err);

/* Open an existing one and take its lock. PROF_BUSY with the owner's pid when it is served,
 * PROF_FORMAT when it is no spool folder. */
enum prof_status spool_folder_adopt(struct spool_folder *folder, const char *path,
                                    struct prof_error *err);

/* Environment variables carry the collector's path: where it holds what they cannot carry, it
 * becomes that of a link in the folder. False when the folder's path is no better; `collector` is
 * then as it was. */
bool spool_folder_plain_collector(const struct spool_folder *folder, char collector[PATH_MAX]);

/* Which capture a folder feeds. The start distinguishes it from another that replaced it. */
struct spool_capture {
    char live[PATH_MAX], final[PATH_MAX];
    uint64_t start_ns; /* capture's start_mono_ns; 0 = not known */
};
enum prof_status spool_folder_write_capture(const struct spool_folder *folder, const char *live,
                                            const char *final, uint64_t start_ns,
                                            struct prof_error *err);
enum prof_status spool_folder_read_capture(const struct spool_folder *folder,
                                           struct spool_capture *capture, struct prof_error *err);

/* Processes that were started to record into it and still run, by their environment. */
unsigned spool_folder_users(const struct spool_folder *folder);

/* A perfkit run inside a recorded program notes in the outer one (its folder by PERFKIT_DIR, or
 * NULL) where that part of the program goes. */
void spool_folder_note_in_outer(const char *outer, const char *final);
/* How many did, and the first one's capture. */
unsigned spool_folder_inner(const struct spool_folder *folder, char first[PATH_MAX]);

/* Does a folder hold anything but the lock? */
bool spool_folder_has_more(const char *path);

/* Remove the folder and the files in it, and let the lock go. */
void spool_folder_remove(struct spool_folder *folder);
/* Let the lock go and leave the folder for `perfkit recover`. */
void spool_folder_leave(struct spool_folder *folder);

/* ---- the control page ------------------------------------------------------------------------ */

/* perfkit's side of the control page (libprof/spool/control.h): made by `run`, changed by its clock
 * and by `ctl`. Writers take turns by a lock on the file. */

struct control {
    struct control_page *page; /* NULL = none */
    int fd;
};

/* Make the page of a new spool folder. `range`: --capture-range as given, or NULL. */
enum prof_status control_make(struct control *control, const char *folder, bool open, bool limited,
                              const char *range, struct prof_error *err);

/* Open the page of a running capture. */
enum prof_status control_find(struct control *control, const char *folder, struct prof_error *err);

/* Open or close the window. *changed_ns: since when it is so. PROF_BUSY when another writer keeps
 * the lock. */
enum prof_status control_set(struct control *control, bool open, enum wire_window_reason reason,
                             uint64_t *changed_ns, struct prof_error *err);

void control_close(struct control *control);

#endif
