/* See ceiling.h. JSON, so that a user can read, copy and correct what a device was measured at; one
 * file per device, so that two devices measured at once do not write over each other. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "libprof/base/json.h"
#include "libprof/base/utf8.h"
#include "libprof/store/ceiling.h"
#include "libprof/store/schema.h"

#define KEY "perfkit_ceilings" /* 1, the version */
#define FIELD_BYTES 512

/* UTF-8 without control characters, cut to the size of the field. */
static void copy_field(char *to, size_t size, const char *from)
{
    uint32_t code;
    size_t used = 0, bytes;
    for (; from && *from && used + 1 < size; from += bytes ? bytes : 1) {
        bytes = prof_report_utf8(from, strnlen(from, 4), &code);
        if (used + bytes >= size)
            break;
        if (!bytes || code < ' ' || code == 0x7f)
            to[used++] = ' ';
        else
            memcpy(to + used, from, bytes), used += bytes;
    }
    to[used] = '\0';
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

static bool same_field(const cJSON *root, const char *key, const char *want)
{
    char clean[FIELD_BYTES];
    const char *have = prof_document_text(root, key);
    copy_field(clean, sizeof clean, want);
    return strcmp(have ? have : "", clean) == 0;
}

/* Rows that make no sense are left out. */
static void read_ceiling_rows(struct prof_ceiling_file *file, const cJSON *list)
{
    const cJSON *row;
    cJSON_ArrayForEach(row, list)
    {
        const char *name = prof_document_text(row, "name");
        int64_t date_s;
        if (name &&
            prof_document_int(cJSON_GetObjectItemCaseSensitive(row, "measured_at_s"), &date_s))
            prof_ceiling_set(file, name, prof_document_real(row, "value"), date_s,
                             prof_document_text(row, "how"));
    }
}

enum prof_status prof_ceiling_read(const char *folder, struct prof_ceiling_file *file,
                                   struct prof_error *err)
{
    char path[4096];
    struct prof_error why = {0};
    cJSON *root = NULL;
    enum prof_status status = prof_ceiling_path(folder, file, path, sizeof path, err);
    file->count = 0;
    if (status)
        return status;
    status = prof_document_read(path, &root, &why);
    if (status && status != PROF_FORMAT)
        return prof_fail(err, status, "%s", why.message);
    bool ours = prof_document_real(root, KEY) == 1 && same_field(root, "api", file->api) &&
                same_field(root, "uuid", file->uuid) && same_field(root, "driver", file->driver) &&
                (file->uuid[0] || same_field(root, "name", file->name));
    if (ours)
        read_ceiling_rows(file, cJSON_GetObjectItemCaseSensitive(root, "ceilings"));
    cJSON_Delete(root);
    if (ours)
        return PROF_OK;
    return prof_fail(err, PROF_FORMAT, "%s%s: measure again, with perfkit device --measure",
                     status ? why.message : path,
                     status ? "" : " holds no ceilings of this device that this perfkit reads");
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_ceiling_field(cJSON *root, const char *key, const char *text, bool *failed)
{
    char clean[FIELD_BYTES];
    copy_field(clean, sizeof clean, text);
    prof_document_add_text(root, key, *clean ? clean : NULL, failed);
}

enum prof_status prof_ceiling_write(const char *folder, const struct prof_ceiling_file *file,
                                    struct prof_error *err)
{
    char path[4096];
    bool failed = false;
    PROF_TRY(prof_ceiling_path(folder, file, path, sizeof path, err));
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return prof_fail_errno(err, PROF_IO, "cannot make the folder %s", folder);
    cJSON *root = cJSON_CreateObject();
    prof_document_add_int(root, KEY, 1, &failed);
    write_ceiling_field(root, "api", file->api, &failed);
    write_ceiling_field(root, "name", file->name, &failed);
    write_ceiling_field(root, "uuid", file->uuid, &failed);
    write_ceiling_field(root, "driver", file->driver, &failed);
    cJSON *list = prof_document_add(root, "ceilings", cJSON_CreateArray(), &failed);
    for (size_t i = 0; i < file->count; i++) {
        cJSON *row = prof_document_add(list, NULL, cJSON_CreateObject(), &failed);
        prof_document_add_text(row, "name", file->rows[i].name, &failed);
        prof_document_add(row, "value", cJSON_CreateNumber(file->rows[i].value), &failed);
        prof_document_add_int(row, "measured_at_s", file->rows[i].date_s, &failed);
        write_ceiling_field(row, "how", file->rows[i].how, &failed);
    }
    enum prof_status status =
        failed ? prof_out_of_memory(err) : prof_document_write(path, root, err);
    cJSON_Delete(root);
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

/* `unread`: why the first file that is there could not be read; the others are attached. */
static enum prof_status attach_all(struct prof_store *store, const char *folder,
                                   struct prof_error *unread, struct prof_error *err)
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
        struct prof_error why = {0};
        if (prof_ceiling_read(folder, &file, &why) == PROF_OK)
            status = insert(store, sqlite3_column_int64(row, 0), &file, err);
        else if (why.status != PROF_NOTFOUND && !unread->status)
            *unread = why;
    }
    if (sqlite3_finalize(row) && !status)
        status = prof_store_fail(store, "read", err);
    return status;
}

enum prof_status prof_ceiling_attach(struct prof_store *store, const char *folder, bool costs,
                                     struct prof_error *err)
{
    sqlite3 *db = prof_store_db(store);
    bool alone = sqlite3_get_autocommit(db);
    struct prof_error unread = {0};
    enum prof_status status =
        sqlite3_exec(db, "SAVEPOINT ceiling; DELETE FROM ceiling", NULL, NULL, NULL)
            ? prof_store_fail(store, "write to", err)
            : attach_all(store, folder, &unread, err);
    if (!status && !costs &&
        sqlite3_exec(db, "DELETE FROM ceiling WHERE name GLOB 'record_*'", NULL, NULL, NULL))
        status = prof_store_fail(store, "write to", err);
    if (status)
        sqlite3_exec(db, "ROLLBACK TO ceiling", NULL, NULL, NULL);
    if (sqlite3_exec(db, "RELEASE ceiling", NULL, NULL, NULL) && !status)
        status = prof_store_fail(store, "write to", err);
    if (status && alone) /* a commit that failed leaves its transaction open */
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    if (!status && unread.status)
        status = prof_fail(err, unread.status, "%s", unread.message);
    return status;
}
