/* Making, publishing and opening capture files; see store.h.
 *
 * A new capture is made in memory, and its file gets a name when the tables and first rows are in
 * it: a reader finds no file or a whole one, and who is killed before leaves nothing behind. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/base/regular.h"
#include "libprof/store/schema.h"
#include "libprof/store/store.h"

/* Measured with 2 M events of which 80 % kernels: pages of 4, 8, 16, 32 KiB give the same file size
 * within 0.4 %, write in 2.0, 1.6, 1.8, 1.4 s and scan kernels in 1.03, 0.84, 0.76, 0.74 s; an
 * empty capture grows with the page (0.11, 0.21, 0.38, 0.75 MB). */
#define PAGE_BYTES 16384
#define PUBLISH_NS (3 * 1000000000ull)
#define READER_WAIT_MS 5000

struct prof_store {
    sqlite3 *db;
    char *path;
    bool unseen;                    /* in memory until prof_store_appear */
    struct capture_written written; /* before prof_store_appear its file has no name */
};

static bool pragma(sqlite3 *db, const char *name, long value)
{
    char sql[128];
    snprintf(sql, sizeof sql, "PRAGMA %s=%ld", name, value);
    return prof_sql_run(db, sql);
}

static bool answers(sqlite3 *db, const char *sql, const char *expected)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        return false;
    bool same = false;
    if (sqlite3_step(statement) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(statement, 0);
        same = text && !strcmp(text, expected);
    }
    return sqlite3_finalize(statement) == SQLITE_OK && same;
}

static enum prof_status new_store(const char *path, struct prof_store **store,
                                  struct prof_error *err)
{
    *store = calloc(1, sizeof **store);
    char *own = *store ? strdup(path) : NULL;
    if (!own) {
        free(*store);
        *store = NULL;
        return prof_out_of_memory(err);
    }
    (*store)->path = own;
    (*store)->written.fd = -1;
    return PROF_OK;
}

/* SQLite sorts large indexes in temporary files. They belong beside the capture, where there must
 * be room anyway and where a full disk is rightly named; a full TMPDIR must not end a recording. */
static void use_folder_for_temporary_files(const char *path)
{
    if (getenv("SQLITE_TMPDIR"))
        return;
    sqlite3_free(sqlite3_temp_directory);
    sqlite3_temp_directory = capture_folder(path);
}

static enum prof_status fill_new(struct prof_store *store, struct prof_error *err)
{
    sqlite3 *db = store->db;
    PROF_FREED char *script = prof_schema_script();
    if (!script)
        return prof_out_of_memory(err);
    bool ok = pragma(db, "page_size", PAGE_BYTES) && prof_sql_run(db, "PRAGMA synchronous=OFF") &&
              prof_sql_run(db, "PRAGMA journal_mode=OFF") && prof_sql_run(db, "BEGIN") &&
              pragma(db, "application_id", PROF_APPLICATION_ID) &&
              pragma(db, "user_version", PROF_FORMAT_VERSION) && prof_sql_run(db, script) &&
              prof_sql_run(db, "COMMIT");
    return ok ? PROF_OK : prof_store_fail(store, "create", err);
}

/* What has the name is kept, or removed with its side files, which else were replayed into ours. */
static enum prof_status clear_name(const char *path, bool overwrite, struct prof_error *err)
{
    struct stat info;
    bool there = !lstat(path, &info);
    if (!overwrite && (there || capture_side_bytes(path, "-wal") >= 0 ||
                       capture_side_bytes(path, "-journal") >= 0))
        return prof_fail(err, PROF_EXISTS, "%s exists already: choose another name or overwrite it",
                         path);
    if (!there && errno != ENOENT)
        return prof_fail_errno(err, PROF_IO, overwrite ? "cannot replace %s" : "cannot create %s",
                               path);
    if (there && S_ISDIR(info.st_mode))
        return prof_fail(err, PROF_INVALID, "%s is a folder: give a file name", path);
    if (there && prof_store_is_written(path))
        return prof_fail(err, PROF_BUSY, STORE_WRITTEN, path);
    if (there && unlink(path))
        return prof_fail_errno(err, PROF_IO, "cannot replace %s", path);
    if (overwrite)
        capture_remove_side_files(path);
    return PROF_OK;
}

static enum prof_status create(const char *path, bool overwrite, bool alone,
                               struct prof_store **store, struct prof_error *err)
{
    *store = NULL;
    PROF_TRY(clear_name(path, overwrite, err));
    PROF_TRY(new_store(path, store, err));
    int fd = (*store)->written.fd = alone ? capture_new_file(path) : capture_nameless_file(path);
    bool can = fd >= 0 || (!alone && (errno == EOPNOTSUPP || errno == EISDIR));
    enum prof_status status =
        can ? PROF_OK : prof_fail_errno(err, PROF_IO, "cannot create %s", path);
    (*store)->unseen = !alone;
    use_folder_for_temporary_files(path);
    if (!status && capture_open_database(alone ? path : ":memory:", &(*store)->db,
                                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX))
        status = prof_store_fail(*store, "create", err);
    status = status ?: fill_new(*store, err);
    if (!status) {
        if (alone)
            capture_written_add(&(*store)->written, path);
        return PROF_OK;
    }
    if (alone && fd >= 0)
        unlink(path);
    prof_store_close(*store);
    *store = NULL;
    return status;
}

/* A view in a table's place may be without end; none of ours is one. */
static bool has_views_for_tables(sqlite3 *db)
{
    PROF_FINALIZED sqlite3_stmt *names = NULL;
    bool found = false;
    sqlite3_prepare_v2(db, "SELECT name FROM sqlite_schema WHERE type = 'view'", -1, &names, NULL);
    while (names && !found && sqlite3_step(names) == SQLITE_ROW)
        for (const struct prof_table *table = prof_tables; table->name && !found; table++)
            found = !sqlite3_stricmp(table->name, (const char *)sqlite3_column_text(names, 0));
    return found;
}

/* The first read takes the locks and checks the size: errors show here. */
static int probe(sqlite3 *db)
{
    sqlite3_busy_timeout(db, READER_WAIT_MS);
    if (has_views_for_tables(db))
        return SQLITE_OK; /* refused before anything is read of them */
    return sqlite3_exec(db, "SELECT id FROM capture LIMIT 1", NULL, NULL, NULL);
}

static int open_immutable(struct prof_store *store)
{
    PROF_SQL_FREED char *uri = capture_uri(store->path, "immutable=1");
    sqlite3_close(store->db);
    store->db = NULL;
    if (!uri)
        return SQLITE_NOMEM;
    int code = capture_open_database(uri, &store->db,
                                     SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI);
    return code ? code : probe(store->db);
}

static int open_to_read(struct prof_store *store)
{
    sqlite3_close(store->db);
    store->db = NULL;
    int code =
        capture_open_database(store->path, &store->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX);
    return code ? code : probe(store->db);
}

/* Who wrote into the closed file (the names of stacks come last) was killed: what it had begun is
 * undone, which SQLite does for those that may write only. */
static bool undo_journal(const char *path)
{
    sqlite3 *db = NULL;
    bool ok = capture_side_bytes(path, "-journal") >= 0 &&
              !capture_open_database(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX) &&
              !probe(db);
    sqlite3_close(db);
    return ok;
}

static bool is_refused(int code)
{
    return (code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_READONLY;
}

/* `remedy`: of a folder where SQLite cannot have its side files. */
static enum prof_status open_to_write(struct prof_store *store, const char *remedy,
                                      struct prof_error *err)
{
    sqlite3_close(store->db);
    store->db = NULL;
    if (capture_open_database(store->path, &store->db,
                              SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX) ||
        probe(store->db) || !prof_sql_run(store->db, "PRAGMA synchronous=OFF"))
        return prof_store_fail(store, "open", err);
    if (answers(store->db, "PRAGMA journal_mode=WAL", "wal")) {
        capture_written_add(&store->written, store->path);
        return PROF_OK;
    }
    int code = sqlite3_errcode(store->db);
    return prof_sql_status(code) == PROF_OK || is_refused(code)
               ? prof_fail(err, PROF_IO, "cannot write %s%s", store->path, remedy)
               : prof_store_fail(store, "write", err);
}

/* False with EEXIST: another file has the name. */
static bool give_name(struct prof_store *store, const unsigned char *image, size_t bytes)
{
    char nameless[32];
    int own = store->written.fd;
    snprintf(nameless, sizeof nameless, "/proc/self/fd/%d", own);
    if (own >= 0 && prof_write_all(own, image, bytes) && capture_lock(own)) {
        if (!linkat(AT_FDCWD, nameless, AT_FDCWD, store->path, AT_SYMLINK_FOLLOW))
            return true;
        if (errno == EEXIST)
            return false;
    }
    capture_written_remove(&store->written);
    int fd =
        capture_new_file(store->path); /* file systems without nameless files: empty for a moment */
    bool ok = fd >= 0 && prof_write_all(fd, image, bytes);
    int reason = errno;
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && !ok)
        unlink(store->path);
    errno = reason;
    return ok;
}

/* In WAL mode from its first moment: neither the tables nor the mode come under a reader. */
enum prof_status prof_store_appear(struct prof_store *store, struct prof_error *err)
{
    if (!store->unseen)
        return PROF_OK;
    sqlite3_int64 bytes;
    unsigned char *image = sqlite3_serialize(store->db, "main", &bytes, 0);
    if (!image)
        return prof_out_of_memory(err);
    capture_image_to_wal(image);
    int reason = give_name(store, image, (size_t)bytes) ? 0 : errno;
    sqlite3_free(image);
    errno = reason;
    if (reason)
        return reason == EEXIST
                   ? prof_fail(err, PROF_EXISTS,
                               "%s exists already: choose another name or overwrite it",
                               store->path)
                   : prof_fail_errno(err, PROF_IO, "cannot create %s", store->path);
    store->unseen = false;
    return open_to_write(store, " in WAL mode (a network filesystem?): record to a local folder",
                         err);
}

bool prof_store_appeared(const struct prof_store *store)
{
    return store && !store->unseen;
}

enum prof_status prof_store_begin(const char *path, bool overwrite, struct prof_store **store,
                                  struct prof_error *err)
{
    return create(path, overwrite, false, store, err);
}

enum prof_status prof_store_create(const char *path, bool overwrite, struct prof_store **store,
                                   struct prof_error *err)
{
    PROF_TRY(create(path, overwrite, false, store, err));
    enum prof_status status = prof_store_appear(*store, err);
    if (!status)
        return PROF_OK;
    if (prof_store_appeared(*store))
        unlink(path);
    prof_store_close(*store);
    *store = NULL;
    return status;
}

enum prof_status prof_store_create_alone(const char *path, struct prof_store **store,
                                         struct prof_error *err)
{
    return create(path, true, true, store, err);
}

static bool is_closed(sqlite3 *db)
{
    return prof_sql_number(
               db, 1, "SELECT count(*) FROM capture WHERE state IN ('recording', 'closing')") == 0;
}

static enum prof_status fail_side_files(const char *path, struct prof_error *err)
{
    static const char *const suffixes[] = {"-wal", "-journal"};
    char side[PATH_MAX];
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        int length = snprintf(side, sizeof side, "%s%s", path, suffixes[i]);
        if (length > 0 && length < (int)sizeof side && access(side, R_OK) && errno != ENOENT)
            return prof_fail_errno(err, PROF_ACCESS,
                                   "cannot read %s, which holds a part of the capture", side);
    }
    return prof_fail(err, PROF_ACCESS,
                     "%s has unmerged side files in a folder that cannot be written: copy it with "
                     "its -wal or -journal to a folder of yours",
                     path);
}

enum prof_status prof_store_open(const char *path, struct prof_store **store,
                                 struct prof_error *err)
{
    *store = NULL;
    PROF_TRY(capture_check_header(path, err));
    PROF_TRY(new_store(path, store, err));
    enum prof_status status = PROF_OK;
    int code = open_to_read(*store);
    if (is_refused(code) && undo_journal(path))
        code = open_to_read(*store);
    if (is_refused(code)) {
        /* A file in WAL mode in a folder that cannot hold -shm. Without -wal everything is in the
         * main file; with it, ignoring it would show an old state as if it were the whole. */
        if (capture_side_bytes(path, "-wal") >= 0 || capture_side_bytes(path, "-journal") >= 0) {
            status = fail_side_files(path, err);
            goto out;
        }
        code = open_immutable(*store);
        if (!code && !is_closed((*store)->db)) {
            status = prof_fail(err, PROF_BUSY,
                               "%s is being recorded in a folder that cannot be written by you: "
                               "read it when it is complete",
                               path);
            goto out;
        }
    }
    if (!code && has_views_for_tables((*store)->db))
        status = prof_fail(err, PROF_FORMAT, "%s is no capture of perfkit: it has views for tables",
                           path);
    else if (code || (code = prof_schema_complete((*store)->db, false)) != SQLITE_OK)
        status = prof_store_fail_code(*store, code, "read", err);
out:
    if (status) {
        prof_store_close(*store);
        *store = NULL;
    }
    return status;
}

enum prof_status prof_store_reopen(const char *path, struct prof_store **store,
                                   struct prof_error *err)
{
    *store = NULL;
    PROF_TRY(capture_check_header(path, err));
    use_folder_for_temporary_files(path);
    PROF_TRY(new_store(path, store, err));
    enum prof_status status = open_to_write(*store, ": is the folder writable?", err);
    int code = status ? SQLITE_OK : prof_schema_complete((*store)->db, true);
    if (code)
        status = prof_store_fail_code(*store, code, "open", err);
    if (status) {
        prof_store_close(*store);
        *store = NULL;
    }
    return status;
}

sqlite3 *prof_store_db(const struct prof_store *store)
{
    return store->db;
}

const char *prof_store_path(const struct prof_store *store)
{
    return store->path;
}

/* SQLite deletes the -wal before the header says so: a reader of that moment makes an empty one,
 * which it may not delete. False: another program has a lock. */
static bool remove_empty_wal(sqlite3 *db, const char *path)
{
    if (capture_side_bytes(path, "-wal"))
        return true;
    bool locked = prof_sql_run(db, "BEGIN EXCLUSIVE");
    if (locked && answers(db, "PRAGMA journal_mode", "delete") && !capture_side_bytes(path, "-wal"))
        capture_remove_side_files(path);
    return locked && prof_sql_run(db, "ROLLBACK");
}

static bool leave_wal(sqlite3 *db, const char *path, uint64_t patience_ns)
{
    uint64_t deadline = prof_now_ns() + patience_ns;
    sqlite3_busy_timeout(db, 0);
    for (;;) {
        sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        bool left = answers(db, "PRAGMA journal_mode=DELETE", "delete");
        if ((left && remove_empty_wal(db, path)) || prof_now_ns() >= deadline)
            return left;
        usleep(20000);
    }
}

enum prof_status prof_store_publish(struct prof_store *store, struct prof_error *err)
{
    if (!leave_wal(store->db, store->path, PUBLISH_NS)) {
        int code = sqlite3_errcode(store->db) & 0xff;
        if (code != SQLITE_BUSY && code != SQLITE_LOCKED && code != SQLITE_OK)
            return prof_store_fail(store, "finish", err);
        return prof_fail(err, PROF_BUSY,
                         "%s is open in another program and keeps its -wal file: keep both "
                         "together until the next perfkit report joins them",
                         store->path);
    }
    if (!capture_sync_file(store->path))
        return prof_fail_errno(err, PROF_IO, "cannot write %s to disk", store->path);
    return PROF_OK;
}

bool prof_store_settle(const char *path)
{
    if (capture_is_written_here(path))
        return false;
    int64_t log_bytes = capture_side_bytes(path, "-wal");
    if (!capture_file_is_wal(path) && log_bytes)
        return log_bytes < 0;
    struct prof_store *store;
    if (access(path, W_OK) || capture_check_header(path, NULL) || new_store(path, &store, NULL))
        return false;
    bool done =
        !capture_open_database(path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX) &&
        !probe(store->db) && !has_views_for_tables(store->db) && is_closed(store->db) &&
        leave_wal(store->db, path, 0);
    prof_store_close(store);
    return done;
}

void prof_store_close(struct prof_store *store)
{
    if (!store)
        return;
    sqlite3_close_v2(store->db);
    capture_written_remove(&store->written);
    prof_look_close(-1);
    free(store->path);
    free(store);
}

/* ---- failures of SQLite ---------------------------------------------------------------------- */

/* SQLite's failures as a status and a sentence with the remedy; see store.h.
 *
 * SQLite's own sentence for a write that failed is "disk I/O error"; the system's reason stands in
 * the file's last errno, which it keeps for the file and not for every statement. */

bool prof_sql_run(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

int64_t prof_sql_number(sqlite3 *db, int64_t otherwise, const char *format, ...)
{
    PROF_FINALIZED sqlite3_stmt *row = NULL;
    va_list args;
    va_start(args, format);
    PROF_SQL_FREED char *sql = sqlite3_vmprintf(format, args);
    va_end(args);
    if (sql && !sqlite3_prepare_v2(db, sql, -1, &row, NULL) && sqlite3_step(row) == SQLITE_ROW &&
        sqlite3_column_type(row, 0) != SQLITE_NULL)
        otherwise = sqlite3_column_int64(row, 0);
    return otherwise;
}

enum prof_status prof_sql_status(int code)
{
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return PROF_OK;
    case SQLITE_NOMEM:
        return PROF_NOMEM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return PROF_BUSY;
    case SQLITE_FULL:
        return PROF_FULL;
    case SQLITE_CORRUPT:
        return PROF_CORRUPT;
    case SQLITE_NOTADB:
        return PROF_FORMAT;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return PROF_IO;
    default:
        return PROF_SQL;
    }
}

/* What the system said last of a file of SQLite's; 0 = nothing. */
static int file_errno(sqlite3 *db, int which)
{
    sqlite3_file *file = NULL;
    int cause = 0;
    if (sqlite3_file_control(db, "main", which, &file) == SQLITE_OK && file && file->pMethods)
        file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &cause);
    return cause;
}

const char *prof_sql_reason(sqlite3 *db)
{
    int code = sqlite3_errcode(db) & 0xff;
    if (code != SQLITE_IOERR && code != SQLITE_CANTOPEN)
        return sqlite3_errmsg(db);
    int cause = sqlite3_system_errno(db); /* not kept for every statement */
    if (cause <= 0)
        cause = file_errno(db, SQLITE_FCNTL_JOURNAL_POINTER); /* or the -wal */
    if (cause <= 0)
        cause = file_errno(db, SQLITE_FCNTL_FILE_POINTER);
    if (cause == EFBIG)
        return "File too large: raise the limit of file sizes (ulimit -f)";
    if (code == SQLITE_CANTOPEN &&
        cause == ENOENT) /* of a second try, by which SQLite forgot the first */
        cause = 0;
    return cause > 0 ? strerror(cause) : sqlite3_errmsg(db);
}

enum prof_status prof_store_fail_code(const struct prof_store *store, int code, const char *doing,
                                      struct prof_error *err)
{
    enum prof_status status = prof_sql_status(code);
    if (status == PROF_OK) /* a caller that failed for another reason has not named it */
        return prof_fail(err, PROF_SQL, "cannot %s %s: SQLite names no reason", doing,
                         prof_store_path(store));
    if (status == PROF_CORRUPT)
        return prof_fail(err, status, "%s is damaged or cut short: copy it again, or record anew",
                         prof_store_path(store));
    if (status == PROF_FULL && sqlite3_db_readonly(prof_store_db(store), "main") == 1)
        return prof_fail(
            err, status,
            "cannot %s %s: the folder for temporary files is full: name another one by "
            "TMPDIR",
            doing, prof_store_path(store));
    if (status == PROF_FULL)
        return prof_fail(err, status, "cannot %s %s: the disk is full", doing,
                         prof_store_path(store));
    sqlite3 *db = prof_store_db(store);
    bool last = (sqlite3_errcode(db) & 0xff) == (code & 0xff); /* SQLite knows more of that one */
    return prof_fail(err, status, "cannot %s %s: %s", doing, prof_store_path(store),
                     last ? prof_sql_reason(db) : sqlite3_errstr(code));
}

enum prof_status prof_store_fail(const struct prof_store *store, const char *doing,
                                 struct prof_error *err)
{
    return prof_store_fail_code(store, sqlite3_errcode(prof_store_db(store)), doing, err);
}
