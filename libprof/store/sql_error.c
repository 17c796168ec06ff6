/* SQLite's failures as a status and a sentence with the remedy; see store.h.
 *
 * SQLite's own sentence for a write that failed is "disk I/O error"; the system's reason stands in
 * the file's last errno, which it keeps for the file and not for every statement. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "libprof/store/store.h"

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
