/* What export and import share: notes, and files that appear under their name only when they are
 * whole, because a script that finds a file takes it for finished. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/regular.h"
#include "libprof/store/exchange/parts.h"
#include "libprof/store/store.h"

bool exchange_note(struct prof_exchange_result *result, const char *format, ...)
{
    char **grown = realloc(result->notes, sizeof *grown * (size_t)(result->note_count + 1));
    if (!grown)
        return false;
    result->notes = grown;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&grown[result->note_count], format, args);
    va_end(args);
    if (length < 0)
        return false;
    result->note_count++;
    return true;
}

void prof_exchange_result_free(struct prof_exchange_result *result)
{
    for (int i = 0; i < result->note_count; i++)
        free(result->notes[i]);
    free(result->notes);
    *result = (struct prof_exchange_result){0};
}

static bool has_side_file(const char *path)
{
    PROF_FREED char *wal = NULL;
    return asprintf(&wal, "%s-wal", path) >= 0 && access(wal, F_OK) == 0;
}

enum prof_status exchange_output_free(const char *output, const char *input, bool overwrite,
                                      struct prof_error *err)
{
    struct stat out, in;
    enum prof_status status = prof_replaceable(output, err);
    if (status || stat(output, &out))
        return status;
    if (!stat(input, &in) && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
        return prof_fail(err, PROF_INVALID, "%s is the file to read: give another name", output);
    if (!overwrite)
        return prof_fail(err, PROF_EXISTS, "%s exists already: choose another name, or --force",
                         output);
    if (prof_store_is_written(output))
        return prof_fail(err, PROF_BUSY, STORE_WRITTEN, output);
    if (has_side_file(output))
        return prof_fail(err, PROF_BUSY,
                         "%s is being written by another program: give another name", output);
    return PROF_OK;
}

enum prof_status exchange_temporary(const char *output, char **temporary, struct prof_error *err)
{
    mode_t mask = umask(0);
    umask(mask);
    *temporary = NULL;
    if (asprintf(temporary, "%s.XXXXXX", output) < 0) {
        *temporary = NULL;
        return prof_out_of_memory(err);
    }
    int fd = mkostemp(*temporary, O_CLOEXEC);
    if (fd < 0) {
        free(*temporary);
        *temporary = NULL;
        return prof_fail_errno(err, PROF_IO, "cannot write %s", output);
    }
    fchmod(fd, 0666 & ~mask);
    close(fd);
    return PROF_OK;
}

enum prof_status exchange_sync(const char *temporary, const char *output, struct prof_error *err)
{
    int fd = open(temporary, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && !fsync(fd);
    enum prof_status status =
        ok ? PROF_OK : prof_fail_errno(err, PROF_IO, "cannot write %s", output);
    if (fd >= 0)
        close(fd);
    return status;
}

enum prof_status exchange_put(const char *temporary, const char *output, bool overwrite,
                              struct prof_error *err)
{
    if (overwrite ? rename(temporary, output) : link(temporary, output)) {
        if (!overwrite && errno != EEXIST && !rename(temporary, output))
            return PROF_OK; /* a filesystem without links */
        return errno == EEXIST
                   ? prof_fail(err, PROF_EXISTS, "%s exists already: choose another name", output)
                   : prof_fail_errno(err, PROF_IO, "cannot write %s", output);
    }
    if (!overwrite)
        unlink(temporary);
    return PROF_OK;
}

static int on_steps(void *context)
{
    const struct exchange_watch *watch = context;
    return !watch->options->progress(watch->options->user, watch->result->rows);
}

void exchange_watch(sqlite3 *db, struct exchange_watch *watch)
{
    if (watch->options->progress)
        sqlite3_progress_handler(db, 1000000, on_steps, watch); /* some 20 ms */
}

enum prof_status exchange_sql_fail(sqlite3 *db, const char *doing, const char *path,
                                   struct prof_error *err)
{
    switch (sqlite3_errcode(db) & 0xff) {
    case SQLITE_FULL:
        return prof_fail(err, PROF_FULL, "cannot %s %s: the disk is full", doing, path);
    case SQLITE_OK: /* the text of a statement had no memory: it did not come to SQLite */
    case SQLITE_NOMEM:
        return prof_out_of_memory(err);
    case SQLITE_INTERRUPT:
        return prof_fail(err, PROF_INVALID, "interrupted: nothing was written");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return prof_fail(err, PROF_CORRUPT, "cannot %s %s: it is damaged or cut short", doing,
                         path);
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return prof_fail(err, PROF_IO, "cannot %s %s: %s", doing, path, prof_sql_reason(db));
    default:
        return prof_fail(err, PROF_SQL, "cannot %s %s: %s", doing, path, sqlite3_errmsg(db));
    }
}

enum prof_status exchange_prepare(sqlite3 *db, const char *path, const char *sql,
                                  sqlite3_stmt **out, struct prof_error *err)
{
    if (sqlite3_prepare_v2(db, sql, -1, out, NULL) != SQLITE_OK)
        return exchange_sql_fail(db, "read", path, err);
    return PROF_OK;
}

/* ---- folders --------------------------------------------------------------------------------- */

/* Folders that appear whole: made beside their place, then renamed. What stands there is
 * swapped with the new one, so that the name always leads to a whole folder, and removed after. */

/* Counts what is in the folder; *foreign: what has another name or is no file. */
static enum prof_status count_folder_files(const char *path, const char *suffix, size_t *count,
                                           size_t *foreign, struct prof_error *err)
{
    PROF_DIR_CLOSED DIR *folder = opendir(path);
    *count = *foreign = 0;
    if (!folder)
        return prof_fail_errno(err, PROF_IO, "cannot read %s", path);
    for (const struct dirent *entry; (entry = readdir(folder));) {
        struct stat info;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        ++*count;
        if (!prof_ends_with(entry->d_name, suffix) ||
            fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) ||
            !S_ISREG(info.st_mode))
            ++*foreign;
    }
    return PROF_OK;
}

enum prof_status folder_free(const char *output, const char *suffix, bool overwrite,
                             struct prof_error *err)
{
    struct stat info;
    size_t count, foreign;
    if (lstat(output, &info))
        return errno == ENOENT ? PROF_OK : prof_fail_errno(err, PROF_IO, "cannot write %s", output);
    if (!S_ISDIR(info.st_mode))
        return prof_fail(err, PROF_INVALID, "%s is not a folder: give another name", output);
    enum prof_status status = count_folder_files(output, suffix, &count, &foreign, err);
    if (status || !count)
        return status;
    if (!overwrite)
        return prof_fail(err, PROF_EXISTS, "%s exists already: choose another name, or --force",
                         output);
    if (foreign)
        return prof_fail(err, PROF_INVALID,
                         "%s holds other things than *%s, which would be lost: give another name",
                         output, suffix);
    return PROF_OK;
}

enum prof_status folder_temporary(const char *output, char **temporary, struct prof_error *err)
{
    mode_t mask = umask(0);
    umask(mask);
    if (asprintf(temporary, "%s.XXXXXX", output) < 0) {
        *temporary = NULL;
        return prof_out_of_memory(err);
    }
    if (!mkdtemp(*temporary)) {
        free(*temporary);
        *temporary = NULL;
        return prof_fail_errno(err, PROF_IO, "cannot write %s", output);
    }
    chmod(*temporary, 0777 & ~mask);
    return PROF_OK;
}

static void sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

/* On a filesystem that cannot swap: away with the old one first. */
static bool replace(const char *temporary, const char *output, const char *suffix)
{
    folder_remove(output, suffix);
    return !rename(temporary, output);
}

enum prof_status folder_put(const char *temporary, const char *output, const char *suffix,
                            struct prof_error *err)
{
    sync_folder(temporary);
    if (!rename(temporary, output)) /* nothing there, or an empty folder */
        return PROF_OK;
    if ((errno == ENOTEMPTY || errno == EEXIST) &&
        !renameat2(AT_FDCWD, temporary, AT_FDCWD, output, RENAME_EXCHANGE)) {
        folder_remove(temporary, suffix);
        return PROF_OK;
    }
    if ((errno == EINVAL || errno == ENOSYS) && replace(temporary, output, suffix))
        return PROF_OK;
    return prof_fail_errno(err, PROF_IO, "cannot write %s", output);
}

void folder_remove(const char *path, const char *suffix)
{
    PROF_DIR_CLOSED DIR *folder = path ? opendir(path) : NULL;
    if (!folder)
        return;
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (prof_ends_with(entry->d_name, suffix))
            unlinkat(dirfd(folder), entry->d_name, 0);
    rmdir(path);
}

enum prof_status exchange_note_unfinished(sqlite3 *db, const char *path,
                                          struct prof_exchange_result *result,
                                          struct prof_error *err)
{
    sqlite3_stmt *row = NULL;
    enum prof_status status = exchange_prepare(
        db, path, "SELECT 1 FROM capture WHERE state IN ('recording', 'closing')", &row, err);
    if (!status && sqlite3_step(row) == SQLITE_ROW &&
        !exchange_note(result, "the capture is still being recorded, or perfkit was killed "
                               "(`perfkit recover` finishes it): what comes later is not here"))
        status = prof_out_of_memory(err);
    if (sqlite3_finalize(row) != SQLITE_OK && !status)
        status = exchange_sql_fail(db, "read", path, err);
    return status;
}
