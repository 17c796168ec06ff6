/* The file of baselines: made, opened, locked, and distinguished from other files. It is the
 * project's memory, so it is never written to before it is known to be ours and whole, and always
 * with a rollback journal synced to disk: a CI job may be killed at any instant. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libprof/base/format.h"
#include "libprof/store/baseline.h"
#include "libprof/store/store.h"

#define WAIT_MS 30000 /* for another job that saves: a save takes milliseconds */

#define OLDEST_VERSION 2 /* with metrics as text; the tables are the same */

static const char schema[] =
    "CREATE TABLE baseline ( -- a name for a history of runs\n"
    "  id INTEGER PRIMARY KEY,\n"
    "  name TEXT NOT NULL UNIQUE);\n"
    "CREATE TABLE session ( -- one `perfkit baseline save`: runs of one machine at one time\n"
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,\n"
    "  baseline INTEGER NOT NULL, -- baseline.id\n"
    "  saved_s INTEGER NOT NULL, -- seconds since 1970\n"
    "  label TEXT, -- given by the user, unique in its baseline\n"
    "  commit_id TEXT, -- of the project\n"
    "  UNIQUE (baseline, label));\n"
    "CREATE TABLE run ( -- one capture, reduced\n"
    "  id INTEGER PRIMARY KEY,\n"
    "  session INTEGER NOT NULL, -- session.id\n"
    "  baseline INTEGER NOT NULL, -- baseline.id\n"
    "  identity TEXT NOT NULL, -- host, boot and start of the capture\n"
    "  capture TEXT, -- path that was saved\n"
    "  recorded_s INTEGER, -- seconds since 1970\n"
    "  metrics NOT NULL, -- JSON, with what it was measured on; a BLOB is compressed by zlib\n"
    "  UNIQUE (baseline, identity));\n";

/* Every column that is read or written, so that a file with our number but other tables is refused.
 */
static const char *const shape[] = {
    "SELECT id, name FROM baseline",
    "SELECT id, baseline, saved_s, label, commit_id FROM session",
    "SELECT id, session, baseline, identity, capture, recorded_s, metrics FROM run",
};

enum prof_status prof_baseline_fail(const struct prof_baseline_file *file, const char *doing,
                                    struct prof_error *err)
{
    enum prof_status status = prof_sql_status(sqlite3_errcode(file->db));
    switch (status) {
    case PROF_OK: /* a copy of what was read had no memory */
        return prof_out_of_memory(err);
    case PROF_FORMAT:
        return prof_fail(err, status,
                         "%s is not a file of baselines: give the one that perfkit "
                         "baseline save wrote",
                         file->path);
    case PROF_CORRUPT:
        return prof_fail(err, status,
                         "%s is damaged or cut short: put a copy in its place, or move it away and "
                         "save anew",
                         file->path);
    case PROF_FULL:
        return prof_fail(err, status, "cannot %s %s: the disk is full", doing, file->path);
    case PROF_BUSY:
        return prof_fail(err, status,
                         "cannot %s %s: another process has kept it locked for %d s: try again",
                         doing, file->path, WAIT_MS / 1000);
    default:
        return prof_fail(err, status ? status : PROF_SQL, "cannot %s %s: %s", doing, file->path,
                         prof_sql_reason(file->db));
    }
}

/* ---- statements ------------------------------------------------------------------------------ */

static sqlite3_stmt *prepare_baseline_query(const struct prof_baseline_file *file, const char *sql,
                                            const char *types, va_list values)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(file->db, sql, -1, &statement, NULL))
        return NULL;
    int code = SQLITE_OK;
    for (int i = 0; types[i] && code == SQLITE_OK; i++) {
        if (types[i] == 't') {
            code = sqlite3_bind_text(statement, i + 1, va_arg(values, const char *), -1,
                                     SQLITE_TRANSIENT);
        } else if (types[i] == 'b') {
            const void *bytes = va_arg(values, const void *);
            code = sqlite3_bind_blob64(statement, i + 1, bytes, va_arg(values, size_t),
                                       SQLITE_TRANSIENT);
        } else {
            code = sqlite3_bind_int64(statement, i + 1, va_arg(values, int64_t));
        }
    }
    if (code == SQLITE_OK)
        return statement;
    sqlite3_finalize(statement);
    return NULL;
}

sqlite3_stmt *prof_baseline_prepare(const struct prof_baseline_file *file, const char *sql,
                                    const char *types, ...)
{
    va_list values;
    va_start(values, types);
    sqlite3_stmt *statement = prepare_baseline_query(file, sql, types, values);
    va_end(values);
    return statement;
}

bool prof_baseline_do(const struct prof_baseline_file *file, const char *sql, const char *types,
                      ...)
{
    va_list values;
    va_start(values, types);
    PROF_FINALIZED sqlite3_stmt *statement = prepare_baseline_query(file, sql, types, values);
    va_end(values);
    return statement && sqlite3_step(statement) == SQLITE_DONE;
}

/* False: SQLite failed. */
static bool query_baseline_number(const struct prof_baseline_file *file, const char *sql,
                                  int64_t *answer)
{
    PROF_FINALIZED sqlite3_stmt *statement = prof_baseline_prepare(file, sql, "");
    bool found = statement && sqlite3_step(statement) == SQLITE_ROW;
    *answer = found ? sqlite3_column_int64(statement, 0) : 0;
    return found;
}

enum prof_status prof_baseline_begin(const struct prof_baseline_file *file, struct prof_error *err)
{
    const char *begin = file->write ? "BEGIN IMMEDIATE" : "BEGIN";
    return sqlite3_exec(file->db, begin, NULL, NULL, NULL)
               ? prof_baseline_fail(file, file->write ? "write to" : "read", err)
               : PROF_OK;
}

enum prof_status prof_baseline_end(const struct prof_baseline_file *file, enum prof_status status,
                                   struct prof_error *err)
{
    if (!status && !sqlite3_exec(file->db, "COMMIT", NULL, NULL, NULL))
        return PROF_OK;
    status = status ?: prof_baseline_fail(file, "write to", err);
    sqlite3_exec(file->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

int64_t prof_baseline_id(const struct prof_baseline_file *file, const char *name)
{
    PROF_FINALIZED sqlite3_stmt *row =
        prof_baseline_prepare(file, "SELECT id FROM baseline WHERE name = ?1", "t", name);
    int code = row ? sqlite3_step(row) : SQLITE_ERROR;
    return code == SQLITE_ROW ? sqlite3_column_int64(row, 0) : code == SQLITE_DONE ? 0 : -1;
}

enum prof_status prof_baseline_unknown(const struct prof_baseline_file *file, const char *name,
                                       struct prof_error *err)
{
    char names[256] = "";
    size_t count = 0;
    sqlite3_stmt *row = prof_baseline_prepare(file, "SELECT name FROM baseline ORDER BY name", "");
    for (; row && sqlite3_step(row) == SQLITE_ROW; count++)
        prof_append(names, sizeof names, "%s%s", count ? ", " : "",
                    (const char *)sqlite3_column_text(row, 0));
    sqlite3_finalize(row);
    if (!count)
        return prof_fail(err, PROF_NOTFOUND,
                         "%s holds no baselines: save one with perfkit baseline save %s FILE",
                         file->path, name);
    return prof_fail(err, PROF_NOTFOUND, "there is no baseline '%s' in %s, which holds %s%s", name,
                     file->path, names, strlen(names) >= sizeof names - 1 ? "..." : "");
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Checks of the first bytes, before SQLite opens the file: it would take part in the locks of
 * another program's database, and might play back its journal. */
static enum prof_status check_baseline_header(const char *path, bool *exists,
                                              struct prof_error *err)
{
    struct capture_head head;
    struct prof_error why;
    enum prof_status status = capture_read_head(path, &head, &why);
    *exists = status != PROF_NOTFOUND;
    if (!*exists)
        return PROF_OK;
    if (status) /* what a gate cannot read has failed, it is not called wrongly */
        return prof_fail(err, status == PROF_ACCESS ? PROF_IO : status, "%s", why.message);
    if (!head.got) /* another process is making it */
        return PROF_OK;
    if (!capture_head_is_sqlite(&head))
        return prof_fail(err, PROF_FORMAT,
                         "%s is not a file of baselines: give the one that "
                         "perfkit baseline save wrote",
                         path);
    if (head.got < sizeof head.bytes)
        return prof_fail(err, PROF_CORRUPT, "%s is cut short: put a copy in its place", path);
    if (capture_head_application(&head) == PROF_BASELINE_APPLICATION_ID)
        return PROF_OK;
    return prof_fail(err, PROF_FORMAT, "%s is %s, not a file of baselines: give another name", path,
                     capture_head_application(&head) == PROF_APPLICATION_ID
                         ? "a capture"
                         : "an SQLite file of another program");
}

static enum prof_status make_folder_of(const char *path, struct prof_error *err)
{
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return PROF_OK;
    PROF_FREED char *folder = strndup(path, (size_t)(slash - path));
    if (!folder)
        return prof_out_of_memory(err);
    enum prof_status status = PROF_OK;
    if (mkdir(folder, 0777) && errno != EEXIST)
        status = prof_fail_errno(err, PROF_IO, "cannot make the folder %s", folder);
    return status;
}

static bool set_baseline_version(const struct prof_baseline_file *file)
{
    char sql[64];
    snprintf(sql, sizeof sql, "PRAGMA user_version=%d", PROF_BASELINE_VERSION);
    return !sqlite3_exec(file->db, sql, NULL, NULL, NULL);
}

/* Under the write lock: of several processes that find an empty file the first fills it. */
static enum prof_status create_baseline_tables(struct prof_baseline_file *file,
                                               struct prof_error *err)
{
    char sql[96];
    snprintf(sql, sizeof sql, "PRAGMA application_id=%d", PROF_BASELINE_APPLICATION_ID);
    return sqlite3_exec(file->db, sql, NULL, NULL, NULL) || !set_baseline_version(file) ||
                   sqlite3_exec(file->db, schema, NULL, NULL, NULL)
               ? prof_baseline_fail(file, "create", err)
               : PROF_OK;
}

/* Whose file it is, how new, and that it is whole. Views and triggers would do things of their own
 * at each of our statements. */
static enum prof_status check(struct prof_baseline_file *file, struct prof_error *err)
{
    int64_t version, others = 0;
    if (!query_baseline_number(file, "PRAGMA user_version", &version))
        return prof_baseline_fail(file, "read", err);
    if (version < OLDEST_VERSION)
        return prof_fail(err, PROF_VERSION,
                         "%s was written by an earlier perfkit (version %lld, this one reads %d "
                         "and later): move it away and save the baselines anew",
                         file->path, (long long)version, OLDEST_VERSION);
    if (version > PROF_BASELINE_VERSION)
        return prof_fail(err, PROF_VERSION,
                         "%s was written by a newer perfkit (version %lld, this one reads up to "
                         "%d): update perfkit",
                         file->path, (long long)version, PROF_BASELINE_VERSION);
    sqlite3_stmt *row = prof_baseline_prepare(file, "PRAGMA quick_check(1)", "");
    int code = row ? sqlite3_step(row) : SQLITE_ERROR;
    const char *answer = code == SQLITE_ROW ? (const char *)sqlite3_column_text(row, 0) : NULL;
    bool whole = answer && strcmp(answer, "ok") == 0;
    bool told = answer != NULL;
    sqlite3_finalize(row);
    if (!told)
        return prof_baseline_fail(file, "read", err);
    for (size_t i = 0; whole && i < sizeof shape / sizeof shape[0]; i++) {
        row = prof_baseline_prepare(file, shape[i], "");
        whole = row != NULL;
        if (!whole && sqlite3_errcode(file->db) != SQLITE_ERROR) /* not: no such column */
            return prof_baseline_fail(file, "read", err);
        sqlite3_finalize(row);
    }
    if (whole && !query_baseline_number(file,
                                        "SELECT count(*) FROM sqlite_schema WHERE type NOT IN "
                                        "('table', 'index')",
                                        &others))
        return prof_baseline_fail(file, "read", err);
    whole = whole && !others;
    if (!whole)
        return prof_fail(
            err, PROF_CORRUPT,
            "%s is damaged or was changed by another program: put a copy in its place, "
            "or move it away and save anew",
            file->path);
    /* An earlier perfkit must not take a compressed run for a damaged one. */
    if (file->write && version < PROF_BASELINE_VERSION && !set_baseline_version(file))
        return prof_baseline_fail(file, "write to", err);
    return PROF_OK;
}

static enum prof_status prepare_file(struct prof_baseline_file *file, struct prof_error *err)
{
    enum prof_status status = prof_baseline_begin(file, err);
    if (status)
        return status;
    int64_t application, tables;
    if (!query_baseline_number(file, "PRAGMA application_id", &application) ||
        !query_baseline_number(file, "SELECT count(*) FROM sqlite_schema", &tables))
        status = prof_baseline_fail(file, "read", err);
    else if (!application && !tables && file->write)
        status = create_baseline_tables(file, err);
    else if (application != PROF_BASELINE_APPLICATION_ID)
        status = prof_fail(err, PROF_FORMAT,
                           "%s is empty, not a file of baselines: save one with "
                           "perfkit baseline save",
                           file->path);
    else
        status = check(file, err);
    return prof_baseline_end(file, status, err);
}

static enum prof_status connect(struct prof_baseline_file *file, struct prof_error *err)
{
    /* Also for reading: what a killed writer left half-done must be undone, where we may. */
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(file->path, &file->db, flags | (file->write ? SQLITE_OPEN_CREATE : 0),
                        NULL))
        return prof_baseline_fail(file, "open", err);
    sqlite3_busy_timeout(file->db, WAIT_MS);
    sqlite3_db_config(file->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_exec(file->db, "PRAGMA trusted_schema=OFF; PRAGMA synchronous=FULL", NULL, NULL, NULL);
    return prepare_file(file, err);
}

enum prof_status prof_baseline_open(const char *path, bool write, struct prof_baseline_file **file,
                                    struct prof_error *err)
{
    bool exists;
    *file = NULL;
    enum prof_status status = check_baseline_header(path, &exists, err);
    if (!status && !exists && !write)
        status =
            prof_fail(err, PROF_NOTFOUND, "%s: no such file: perfkit baseline save makes it", path);
    if (!status && !exists)
        status = make_folder_of(path, err);
    if (status)
        return status;
    struct prof_baseline_file *made = calloc(1, sizeof *made);
    if (made)
        made->path = strdup(path);
    if (!made || !made->path) {
        free(made);
        return prof_out_of_memory(err);
    }
    made->write = write;
    status = connect(made, err);
    if (status) {
        prof_baseline_close(made);
        return status;
    }
    *file = made;
    return PROF_OK;
}

void prof_baseline_close(struct prof_baseline_file *file)
{
    if (!file)
        return;
    sqlite3_close(file->db);
    free(file->path);
    free(file);
}
