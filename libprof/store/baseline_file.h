/* What the parts of the baseline store share: the open file, its statements, its errors. */
#ifndef PERFKIT_STORE_BASELINE_FILE_H
#define PERFKIT_STORE_BASELINE_FILE_H

#include <sqlite3.h>

#include "libprof/store/baseline.h"
#include "libprof/store/schema.h"

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
