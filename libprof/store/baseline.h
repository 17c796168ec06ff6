/* Baselines: what earlier runs of a program were like, kept for the gate. One SQLite file of a
 * project (.perfkit/baselines.sqlite) holds named baselines; a baseline is a history of sessions
 * (one `perfkit baseline save`, one CI job), a session has one or several runs.
 *
 * A run is kept as its reduced metrics and its environment, a JSON document (prof_compare.h makes
 * and reads it; its content is not known here), compressed in the file.
 *
 * Every change is one transaction under SQLite's write lock: several processes may save at once,
 * and a process that is killed leaves the state before. Files that are not ours are never written
 * to. Not thread-safe. */
#ifndef PERFKIT_STORE_BASELINE_H
#define PERFKIT_STORE_BASELINE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/array.h"
#include "libprof/base/error.h"
#include "libprof/store/schema.h"

#define PROF_BASELINE_APPLICATION_ID 0x50464b42 /* "PFKB" */
#define PROF_BASELINE_VERSION 3
#define PROF_BASELINE_NAME_BYTES 200

struct prof_baseline_file;

struct prof_baseline_run {
    char *identity;     /* recognises the same capture, saved twice: see prof_baseline_append */
    char *capture;      /* the path that was saved; NULL = not known */
    int64_t recorded_s; /* when the run began, seconds since 1970 */
    char *metrics;      /* JSON */
};

struct prof_baseline_session {
    int64_t id;      /* rising with time of saving; unique in the file, never used again */
    int64_t saved_s; /* seconds since 1970 */
    char *label;     /* NULL = unnamed */
    char *commit;    /* of the project when it was saved; NULL = not known */
    struct prof_baseline_run *runs;
    size_t run_count;
};

struct prof_baseline {
    char *name;
    struct prof_baseline_session *sessions; /* oldest first */
    size_t session_count;
};

struct prof_baseline_summary {
    char *name;
    int64_t sessions, runs, metrics_bytes; /* as they are in the file */
    int64_t first_s, last_s; /* when the first and the last session were saved */
};

struct prof_baseline_list {
    struct prof_baseline_summary *rows; /* by name */
    size_t count;
};

/* Open for reading: PROF_NOTFOUND when there is no such file. For writing: made, with the folder it
 * stands in, when there is none. PROF_FORMAT: another program's file, or no file; PROF_VERSION:
 * written by a newer perfkit; PROF_CORRUPT: damaged or cut short; PROF_BUSY: another process keeps
 * it locked. */
enum prof_status prof_baseline_open(const char *path, bool write, struct prof_baseline_file **file,
                                    struct prof_error *err);
void prof_baseline_close(struct prof_baseline_file *file); /* NULL allowed */

/* PROF_INVALID, with the reason, for what cannot be a name: empty, too long, control characters. */
enum prof_status prof_baseline_check_name(const char *name, struct prof_error *err);

/* Append sessions to the baseline (made when there is none), all of them or none. A session with
 * the label of one that is there is added to it. Runs whose identity the baseline has already are
 * left out: the same measurement twice is not two measurements. *added: how many runs came in;
 * without any nothing is changed. A saved_s of 0 becomes now; ids are given anew. */
enum prof_status prof_baseline_append(struct prof_baseline_file *file, const char *name,
                                      const struct prof_baseline_session *sessions, size_t count,
                                      size_t *added, struct prof_error *err);

/* Read a baseline with its last `sessions` sessions (0 = all). PROF_NOTFOUND: no such baseline; the
 * message lists those that there are. */
enum prof_status prof_baseline_load(struct prof_baseline_file *file, const char *name,
                                    size_t sessions, struct prof_baseline *result,
                                    struct prof_error *err);
void prof_baseline_free(struct prof_baseline *result);
void prof_baseline_session_free(struct prof_baseline_session *session);

enum prof_status prof_baseline_summaries(struct prof_baseline_file *file,
                                         struct prof_baseline_list *result, struct prof_error *err);
void prof_baseline_summaries_free(struct prof_baseline_list *result);

/* Remove a baseline; with `keep` all but its last so many sessions. *removed: sessions. */
enum prof_status prof_baseline_remove(struct prof_baseline_file *file, const char *name,
                                      size_t keep, size_t *removed, struct prof_error *err);

/* Write the baseline alone as a JSON document, which appears whole or not at all. PROF_EXISTS
 * unless `overwrite`; PROF_CORRUPT when a run's metrics are no JSON. */
enum prof_status prof_baseline_export(const struct prof_baseline *baseline, const char *path,
                                      bool overwrite, struct prof_error *err);
/* Read such a document. PROF_FORMAT: it is none. */
enum prof_status prof_baseline_read_export(const char *path, struct prof_baseline *result,
                                           struct prof_error *err);

/* ---- the file -------------------------------------------------------------------------------- */

/* What the parts of the baseline store share: the open file, its statements, its errors. */

struct prof_baseline_file {
    sqlite3 *db;
    char *path;
    bool write;
};

/* The connection's last error as a status and a sentence; `doing` as in "cannot <doing> FILE". */
enum prof_status prof_baseline_fail(const struct prof_baseline_file *file, const char *doing,
                                    struct prof_error *err);

/* Prepare, with text and numbers bound to ?1, ?2, ... by `types`: 't' const char * (NULL allowed),
 * 'i' int64_t, 'b' const void * and size_t. NULL on an error, which is then the connection's. */
sqlite3_stmt *prof_baseline_prepare(const struct prof_baseline_file *file, const char *sql,
                                    const char *types, ...);

/* prof_baseline_prepare, one step, finalize: for statements without rows. */
bool prof_baseline_do(const struct prof_baseline_file *file, const char *sql, const char *types,
                      ...);

/* The write lock, for a change that is made whole or not at all. `end` keeps it, or undoes it when
 * `status` is not PROF_OK; it returns status, or what went wrong at the end. */
enum prof_status prof_baseline_begin(const struct prof_baseline_file *file, struct prof_error *err);
enum prof_status prof_baseline_end(const struct prof_baseline_file *file, enum prof_status status,
                                   struct prof_error *err);

/* Id of the baseline of that name; 0 = there is none, -1 = an error, which is the connection's. */
int64_t prof_baseline_id(const struct prof_baseline_file *file, const char *name);

/* PROF_NOTFOUND with the names that there are. */
enum prof_status prof_baseline_unknown(const struct prof_baseline_file *file, const char *name,
                                       struct prof_error *err);

#endif
