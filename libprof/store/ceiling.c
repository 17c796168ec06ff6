/* See ceiling.h. Text, so that a user can read, copy and correct what a device was measured at; one
 * file per device, so that two devices measured at once do not write over each other. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/regular.h"
#include "libprof/store/ceiling.h"
#include "libprof/store/schema.h"

#define MAGIC "perfkit-ceilings\t1"
#define LINE_BYTES 512

/* A field: no tabs, no line breaks, not longer than its place. */
static void copy_field(char *to, size_t size, const char *from)
{
    size_t i = 0;
    for (; from && from[i] && i + 1 < size; i++)
        to[i] = (unsigned char)from[i] < ' ' || from[i] == 0x7f ? ' ' : from[i];
    to[i] = '\0';
}

bool prof_ceiling_set(struct prof_ceiling_file *file, const char *name, double value,
                      int64_t date_s, const char *how)
{
    size_t i = 0;
    if (!*name || strlen(name) >= sizeof file->rows[0].name || !isfinite(value) || value <= 0)
        return false;
    while (i < file->count && strcmp(file->rows[i].name, name) != 0)
        i++;
    if (i == PROF_CEILING_ROWS)
        return false;
    struct prof_ceiling_row *row = &file->rows[i];
    *row = (struct prof_ceiling_row){.value = value, .date_s = date_s};
    copy_field(row->name, sizeof row->name, name);
    copy_field(row->how, sizeof row->how, how);
    if (i == file->count)
        file->count++;
    return true;
}

void prof_ceiling_unset(struct prof_ceiling_file *file, const char *name)
{
    size_t kept = 0;
    for (size_t i = 0; i < file->count; i++)
        if (strcmp(file->rows[i].name, name) != 0)
            file->rows[kept++] = file->rows[i];
    file->count = kept;
}

enum prof_status prof_ceiling_path(const char *folder, const struct prof_ceiling_file *file,
                                   char *path, size_t size, struct prof_error *err)
{
    int length = snprintf(path, size, "%s/", folder);
    size_t begin = (size_t)length;
    if (length > 0 && begin < size)
        length += snprintf(path + begin, size - begin, "%s-%s-%s.ceilings", file->api,
                           file->uuid[0] ? file->uuid : file->name, file->driver);
    if (length < 0 || (size_t)length >= size)
        return prof_fail(err, PROF_INVALID, "the path of the folder %.80s... is too long", folder);
    for (char *c = path + begin; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+._", *c))
            *c = '_';
    return PROF_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool same_field(const char *have, const char *want)
{
    char clean[LINE_BYTES];
    copy_field(clean, sizeof clean, want);
    return strcmp(have, clean) == 0;
}

/* "ceiling", name, value, date, how. Rows that make no sense are left out. */
static void read_ceiling_row(struct prof_ceiling_file *file, char *fields)
{
    char *name = strsep(&fields, "\t"), *value = strsep(&fields, "\t");
    char *date = strsep(&fields, "\t"), *end = NULL;
    if (!name || !value || !date)
        return;
    double number = strtod(value, &end);
    if (end != value && !*end)
        prof_ceiling_set(file, name, number, strtoll(date, NULL, 10), fields);
}

/* True when the line is a row, or says of the device what we know of it. */
static bool read_ceiling_line(struct prof_ceiling_file *file, char *line)
{
    char *rest = line, *word = strsep(&rest, "\t");
    if (strcmp(word, "ceiling") == 0)
        read_ceiling_row(file, rest);
    else if (strcmp(word, "api") == 0)
        return rest && same_field(rest, file->api);
    else if (strcmp(word, "uuid") == 0)
        return rest && same_field(rest, file->uuid);
    else if (strcmp(word, "driver") == 0)
        return rest && same_field(rest, file->driver);
    else if (strcmp(word, "name") == 0)
        return rest && (file->uuid[0] || same_field(rest, file->name));
    return true; /* words of later versions */
}

enum prof_status prof_ceiling_read(const char *folder, struct prof_ceiling_file *file,
                                   struct prof_error *err)
{
    char path[4096], line[LINE_BYTES];
    enum prof_status status = prof_ceiling_path(folder, file, path, sizeof path, err);
    if (status)
        return status;
    file->count = 0;
    FILE *in = prof_read_regular(path);
    if (!in)
        return prof_fail_errno(err, errno == ENOENT || errno == ENOTDIR ? PROF_NOTFOUND : PROF_IO,
                               "cannot read %s", path);
    bool ours = fgets(line, sizeof line, in) && strcmp(line, MAGIC "\n") == 0;
    while (ours && fgets(line, sizeof line, in)) {
        line[strcspn(line, "\n")] = '\0';
        ours = read_ceiling_line(file, line);
    }
    fclose(in);
    if (!ours) {
        file->count = 0;
        return prof_fail(err, PROF_FORMAT,
                         "%s holds no ceilings of this device: remove it, or measure again", path);
    }
    return PROF_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_ceiling_field(FILE *out, const char *word, const char *text)
{
    char clean[LINE_BYTES];
    copy_field(clean, sizeof clean, text);
    fprintf(out, "%s\t%s\n", word, clean);
}

enum prof_status prof_ceiling_write(const char *folder, const struct prof_ceiling_file *file,
                                    struct prof_error *err)
{
    char path[4096], fresh[4096 + 16];
    enum prof_status status = prof_ceiling_path(folder, file, path, sizeof path, err);
    if (status)
        return status;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return prof_fail_errno(err, PROF_IO, "cannot make the folder %s", folder);
    snprintf(fresh, sizeof fresh, "%s.%ld", path, (long)getpid());
    FILE *out = fopen(fresh, "we");
    if (!out)
        return prof_fail_errno(err, PROF_IO, "cannot write %s", fresh);
    fputs(MAGIC "\n", out);
    write_ceiling_field(out, "api", file->api);
    write_ceiling_field(out, "name", file->name);
    write_ceiling_field(out, "uuid", file->uuid);
    write_ceiling_field(out, "driver", file->driver);
    for (size_t i = 0; i < file->count; i++)
        fprintf(out, "ceiling\t%s\t%.17g\t%lld\t%s\n", file->rows[i].name, file->rows[i].value,
                (long long)file->rows[i].date_s, file->rows[i].how);
    bool written = fflush(out) == 0 && !ferror(out);
    written = fclose(out) == 0 && written;
    if (written && rename(fresh, path) == 0)
        return PROF_OK;
    status = prof_fail_errno(err, PROF_IO, "cannot write %s", path);
    unlink(fresh);
    return status;
}

/* ---- into a capture -------------------------------------------------------------------------- */

static enum prof_status insert(struct prof_store *store, int64_t device,
                               const struct prof_ceiling_file *file, struct prof_error *err)
{
    sqlite3_stmt *to;
    if (prof_schema_insert(prof_store_db(store), SCHEMA_ceiling, 1, false, &to))
        return prof_store_fail(store, "write to", err);
    for (size_t i = 0; i < file->count; i++) {
        const struct prof_ceiling_row *row = &file->rows[i];
        sqlite3_bind_int64(to, COLUMN_AT(ceiling, device), device);
        sqlite3_bind_text(to, COLUMN_AT(ceiling, name), row->name, -1, SQLITE_STATIC);
        sqlite3_bind_double(to, COLUMN_AT(ceiling, value), row->value);
        sqlite3_bind_int64(to, COLUMN_AT(ceiling, measured_at), row->date_s);
        sqlite3_bind_text(to, COLUMN_AT(ceiling, how), *row->how ? row->how : NULL, -1,
                          SQLITE_STATIC);
        sqlite3_step(to);
        if (sqlite3_reset(to))
            break;
    }
    return sqlite3_finalize(to) ? prof_store_fail(store, "write to", err) : PROF_OK;
}

static const char *column_text_or_empty(sqlite3_stmt *row, int column)
{
    const char *value = (const char *)sqlite3_column_text(row, column);
    return value ? value : "";
}

static enum prof_status attach_all(struct prof_store *store, const char *folder,
                                   struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    sqlite3_stmt *row;
    if (sqlite3_prepare_v2(prof_store_db(store),
                           "SELECT id, api, name, uuid, driver FROM device ORDER BY id", -1, &row,
                           NULL))
        return prof_store_fail(store, "read", err);
    while (!status && sqlite3_step(row) == SQLITE_ROW) {
        struct prof_ceiling_file file = {.count = 0};
        copy_field(file.api, sizeof file.api, column_text_or_empty(row, 1));
        copy_field(file.name, sizeof file.name, column_text_or_empty(row, 2));
        copy_field(file.uuid, sizeof file.uuid, column_text_or_empty(row, 3));
        copy_field(file.driver, sizeof file.driver, column_text_or_empty(row, 4));
        if (prof_ceiling_read(folder, &file, NULL) == PROF_OK)
            status = insert(store, sqlite3_column_int64(row, 0), &file, err);
    }
    if (sqlite3_finalize(row) && !status)
        status = prof_store_fail(store, "read", err);
    return status;
}

enum prof_status prof_ceiling_attach(struct prof_store *store, const char *folder,
                                     struct prof_error *err)
{
    sqlite3 *db = prof_store_db(store);
    if (sqlite3_exec(db, "SAVEPOINT ceiling; DELETE FROM ceiling", NULL, NULL, NULL))
        return prof_store_fail(store, "write to", err);
    enum prof_status status = attach_all(store, folder, err);
    if (status)
        sqlite3_exec(db, "ROLLBACK TO ceiling", NULL, NULL, NULL);
    if (sqlite3_exec(db, "RELEASE ceiling", NULL, NULL, NULL) && !status)
        status = prof_store_fail(store, "write to", err);
    return status;
}
