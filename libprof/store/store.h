/* A capture file on disk: made, published, opened. SQL lives in libprof only; others go through
 * libprof/include/prof.h.
 *
 * While it is written the file is in WAL mode (readers never wait for the writer, a killed writer
 * leaves whole transactions). Published, it is one file in rollback-journal mode without side
 * files, which can be copied, mailed and read from a read-only folder. */
#ifndef PERFKIT_STORE_STORE_H
#define PERFKIT_STORE_STORE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "libprof/base/error.h"
#include "libprof/store/schema.h"

struct prof_store;

/* Does a store of this process or of another one write to the file? */
bool prof_store_is_written(const char *path);
#define STORE_WRITTEN "%s is being written by perfkit: let it finish, or choose another name"

/* Make a new capture with all tables and views of tables.def, empty, open for writing. An existing
 * file, or a side file of it, is refused (PROF_EXISTS) unless `overwrite`, which removes them
 * first. On failure no file is left behind and *store is NULL. */
enum prof_status prof_store_create(const char *path, bool overwrite, struct prof_store **store,
                                   struct prof_error *err);

/* As prof_store_create, but there is no file before prof_store_appear, which also makes another
 * connection: for a writer whose first rows must be there when it is found (the row of table
 * capture). Until then no statement may be kept prepared. PROF_EXISTS of prof_store_appear: another
 * file has taken the name meanwhile. */
enum prof_status prof_store_begin(const char *path, bool overwrite, struct prof_store **store,
                                  struct prof_error *err);
enum prof_status prof_store_appear(struct prof_store *store, struct prof_error *err);
bool prof_store_appeared(const struct prof_store *store); /* false of NULL */

/* As prof_store_create with `overwrite`, for a file that no other program opens before it is whole:
 * without a journal and without WAL, so also on network filesystems. After an error of SQLite the
 * file is of no use; nothing has to be published. */
enum prof_status prof_store_create_alone(const char *path, struct prof_store **store,
                                         struct prof_error *err);

/* Open an existing capture for writing on (recover, merge, the conversion of a file left in WAL).
 * Errors as prof_store_open. */
enum prof_status prof_store_reopen(const char *path, struct prof_store **store,
                                   struct prof_error *err);

/* Open a capture for reading, also one that is being written.
 * PROF_NOTFOUND no such file; PROF_FORMAT not SQLite or not ours; PROF_VERSION written by a newer
 * perfkit; PROF_CORRUPT cut short or damaged; PROF_IO not readable. One sentence with the remedy in
 * *err. */
enum prof_status prof_store_open(const char *path, struct prof_store **store,
                                 struct prof_error *err);

/* The connection, owned by the store; one thread at a time. */
sqlite3 *prof_store_db(const struct prof_store *store);

/* The path it was opened with; lives as long as the store. */
const char *prof_store_path(const struct prof_store *store);

/* Finish a written capture: checkpoint, leave WAL mode, sync to disk. While readers are attached it
 * retries for 3 s, then returns PROF_BUSY: everything is in the files, readable, but -wal stays.
 * No statement may be active on the connection. The store stays open. */
enum prof_status prof_store_publish(struct prof_store *store, struct prof_error *err);

/* Turn a closed capture that was left in WAL mode into one file, if no program uses it and the
 * folder can be written; otherwise leave it as it is. Not an error either way: true = it is one
 * file. */
bool prof_store_settle(const char *path);

/* NULL allowed. */
void prof_store_close(struct prof_store *store);

/* What a result code of SQLite, primary or extended, is among ours; PROF_SQL for the rest. */
enum prof_status prof_sql_status(int code);

/* Runs statements that return no rows; false: one failed. */
bool prof_sql_run(sqlite3 *db, const char *sql);

/* The first number of a query, whose text is sqlite3_mprintf's; `otherwise` where it fails, has no
 * row or NULL. */
int64_t prof_sql_number(sqlite3 *db, int64_t otherwise, const char *format, ...);

/* Why the connection's last statement failed, for people: SQLite calls every fault of a file "disk
 * I/O error", the system's own word says which. Valid until the connection is used again. */
const char *prof_sql_reason(sqlite3 *db);

/* For the SQL of libprof: turn the connection's last error into a status and a sentence.
 * `doing` as in "cannot <doing> FILE". */
enum prof_status prof_store_fail(const struct prof_store *store, const char *doing,
                                 struct prof_error *err);
/* The same of a code that SQLite returned earlier. */
enum prof_status prof_store_fail_code(const struct prof_store *store, int code, const char *doing,
                                      struct prof_error *err);

/* ---- files of a capture ---------------------------------------------------------------------- */

/* The files of a capture as files, without SQLite: what stands at the beginning of one, what lies
 * beside it, and which ones this process writes. */

struct sqlite3;

/* A capture that this process writes. Its file is locked (flock, which SQLite's locks of ranges do
 * not meet) as long as `fd` is open: another process that is to replace it learns that it is used,
 * whatever its state says and wherever its spool is (prof_store_is_written). */
struct capture_written {
    int fd; /* -1 = none yet */
    struct capture_written *next;
    dev_t device;
    ino_t inode;
};

void capture_written_add(struct capture_written *file, const char *path);
/* Also of one that was not added. Unlocks `fd` and closes it (prof_look_close). */
void capture_written_remove(struct capture_written *file);
/* False when the descriptor cannot be locked; true where the file system has no locks. */
bool capture_lock(int fd);
bool capture_is_written_here(const char *path);

/* Size of PATH-wal, PATH-journal; -1: there is none. */
int64_t capture_side_bytes(const char *path, const char *suffix);
void capture_remove_side_files(const char *path);

/* sqlite3_open_v2 of a capture, apart from looks at it in other threads (libprof/base/regular.h). */
int capture_open_database(const char *path, struct sqlite3 **db, int flags);

/* The folder of a path, by sqlite3_malloc. */
char *capture_folder(const char *path);

/* Descriptors, or -1 with errno. The second one's file has no name, in the folder of `path`:
 * whether files can be made there is known before there is one. */
int capture_new_file(const char *path);
int capture_nameless_file(const char *path);

/* One sync of the finished file instead of SQLite's two of every page (log, then file). */
bool capture_sync_file(const char *path);

/* "file:PATH?how", of which SQLite reads no part of the path as its own; by sqlite3_malloc. */
char *capture_uri(const char *path, const char *how);

/* The first bytes of a file, which may be SQLite's; zeros where it has fewer. */
struct capture_head {
    unsigned char bytes[100];
    size_t got;
    uint64_t file_bytes;
};

/* PROF_NOTFOUND: no such file; PROF_FORMAT: not a regular one; PROF_ACCESS, PROF_IO. */
enum prof_status capture_read_head(const char *path, struct capture_head *head,
                                   struct prof_error *err);
bool capture_head_is_sqlite(const struct capture_head *head);
uint32_t capture_head_application(const struct capture_head *head); /* application_id */

/* Checks of the first bytes of a file, before SQLite opens it. Not of one that this process writes:
 * its newest header may be in the -wal file still. */
enum prof_status capture_check_header(const char *path, struct prof_error *err);

/* Of the header: is the file, or shall its image in memory be, in WAL mode? */
bool capture_file_is_wal(const char *path);
void capture_image_to_wal(unsigned char *image);

#endif
