/* Shared by the files of this folder: notes, files that appear only when whole, SQL errors with the
 * name of the file they happened in. */
#ifndef PERFKIT_STORE_EXCHANGE_PARTS_H
#define PERFKIT_STORE_EXCHANGE_PARTS_H

#include <stdbool.h>

#include <sqlite3.h>

#include "libprof/store/exchange.h"
#include "libprof/base/error.h"

/* Add a sentence; false when out of memory. */
bool exchange_note(struct prof_exchange_result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Is `output` free to be written? PROF_EXISTS unless `overwrite`; a folder, a capture that is being
 * recorded and `input` itself are refused always. */
enum prof_status exchange_output_free(const char *output, const char *input, bool overwrite,
                                      struct prof_error *err);

/* A new empty file beside `output`; its name is malloc'ed. */
enum prof_status exchange_temporary(const char *output, char **temporary, struct prof_error *err);

/* Make sure that `temporary`, which is to be `output`, is on the disk. */
enum prof_status exchange_sync(const char *temporary, const char *output, struct prof_error *err);

/* Give it the name `output`. */
enum prof_status exchange_put(const char *temporary, const char *output, bool overwrite,
                              struct prof_error *err);

/* Check now and then, also within one long statement (a sort), whether to go on. Both pointers live
 * as long as the connection. */
struct exchange_watch {
    const struct prof_exchange_options *options;
    const struct prof_exchange_result *result;
};
void exchange_watch(sqlite3 *db, struct exchange_watch *watch);

/* The connection's last error as a status and a sentence, "cannot <doing> <path>: ...". */
enum prof_status exchange_sql_fail(sqlite3 *db, const char *doing, const char *path,
                                   struct prof_error *err);

/* prepare, or a sentence. */
enum prof_status exchange_prepare(sqlite3 *db, const char *path, const char *sql,
                                  sqlite3_stmt **out, struct prof_error *err);

/* A note where the capture was still being recorded as the export read it. */
enum prof_status exchange_note_unfinished(sqlite3 *db, const char *path,
                                          struct prof_exchange_result *result,
                                          struct prof_error *err);

/* ---- folders that appear only when whole ----------------------------------------------------- */

/* Folders that appear under their name only when they are whole. */

/* Can a folder be put at `output`? Yes where nothing is, or an empty folder; with `overwrite` also
 * where a folder holds nothing but files whose names end in `suffix`, which replacing it removes.
 * PROF_EXISTS, PROF_INVALID not such a folder. */
enum prof_status folder_free(const char *output, const char *suffix, bool overwrite,
                             struct prof_error *err);

/* A new empty folder beside `output`; its name is malloc'ed. PROF_IO, PROF_NOMEM. */
enum prof_status folder_temporary(const char *output, char **temporary, struct prof_error *err);

/* Gives it the name `output`, after folder_free said that it can, and removes what was there. */
enum prof_status folder_put(const char *temporary, const char *output, const char *suffix,
                            struct prof_error *err);

/* Removes a folder and the files in it whose names end in `suffix`; NULL allowed. Not an error when
 * something remains. */
void folder_remove(const char *path, const char *suffix);

#endif
