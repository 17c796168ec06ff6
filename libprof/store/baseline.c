/* Histories of runs: append, read, list, remove, hand to another project. What the numbers inside a
 * run mean is not known here; that a measurement is never lost and never counted twice is. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <zlib.h>

#include "libprof/base/json.h"
#include "libprof/base/regular.h"
#include "libprof/store/baseline.h"

enum prof_status prof_baseline_check_name(const char *name, struct prof_error *err)
{
    if (!*name)
        return prof_fail(err, PROF_INVALID, "a baseline needs a name");
    if (strlen(name) > PROF_BASELINE_NAME_BYTES)
        return prof_fail(err, PROF_INVALID, "the name of a baseline has at most %d bytes",
                         PROF_BASELINE_NAME_BYTES);
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return prof_fail(err, PROF_INVALID,
                             "the name of a baseline may not hold control characters");
    return PROF_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The names of kernels and NVTX ranges are most of a run, and repeat: compressed, it is a tenth.
 * 1 = in, 0 = it was there, -1 = an error. */
static int insert_run(const struct prof_baseline_file *file, int64_t baseline, int64_t session,
                      const struct prof_baseline_run *run)
{
    static const char insert[] =
        "INSERT INTO run(session, baseline, identity, capture, recorded_s, metrics) "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT(baseline, identity) DO NOTHING";
    uLong length = strlen(run->metrics), size = compressBound(length);
    PROF_FREED Bytef *packed = malloc(size);
    if (!packed)
        return -1;
    compress2(packed, &size, (const Bytef *)run->metrics, length, Z_BEST_COMPRESSION);
    PROF_FINALIZED sqlite3_stmt *to =
        size < length
            ? prof_baseline_prepare(file, insert, "iittib", session, baseline, run->identity,
                                    run->capture, run->recorded_s, packed, (size_t)size)
            : prof_baseline_prepare(file, insert, "iittit", session, baseline, run->identity,
                                    run->capture, run->recorded_s, run->metrics);
    int code = to ? sqlite3_step(to) : SQLITE_ERROR;
    return code != SQLITE_DONE ? -1 : sqlite3_changes(file->db) != 0;
}

/* Id of the session with this label in the baseline, 0 = none, -1 = an error. */
static int64_t find_session(const struct prof_baseline_file *file, int64_t baseline,
                            const char *label)
{
    PROF_FINALIZED sqlite3_stmt *row = prof_baseline_prepare(
        file, "SELECT id FROM session WHERE baseline = ?1 AND label = ?2", "it", baseline, label);
    int code = row ? sqlite3_step(row) : SQLITE_ERROR;
    return code == SQLITE_ROW ? sqlite3_column_int64(row, 0) : code == SQLITE_DONE ? 0 : -1;
}

static int64_t make_session(const struct prof_baseline_file *file, int64_t baseline,
                            const struct prof_baseline_session *session)
{
    int64_t saved = session->saved_s ? session->saved_s : (int64_t)time(NULL);
    return prof_baseline_do(file,
                            "INSERT INTO session(baseline, saved_s, label, commit_id) "
                            "VALUES(?1, ?2, ?3, ?4)",
                            "iitt", baseline, saved, session->label, session->commit)
               ? sqlite3_last_insert_rowid(file->db)
               : -1;
}

static bool append_session(const struct prof_baseline_file *file, int64_t baseline,
                           const struct prof_baseline_session *session, size_t *added)
{
    int64_t id = session->label ? find_session(file, baseline, session->label) : 0;
    bool found = id > 0;
    if (!id)
        id = make_session(file, baseline, session);
    size_t before = *added;
    for (size_t i = 0; id > 0 && i < session->run_count; i++) {
        int in = insert_run(file, baseline, id, &session->runs[i]);
        if (in < 0)
            return false;
        *added += (size_t)in;
    }
    if (id > 0 && !found && *added == before) /* nothing new: no session either */
        return prof_baseline_do(file, "DELETE FROM session WHERE id = ?1", "i", id);
    return id > 0;
}

static int64_t find_or_make(const struct prof_baseline_file *file, const char *name)
{
    int64_t id = prof_baseline_id(file, name);
    if (id)
        return id;
    return prof_baseline_do(file, "INSERT INTO baseline(name) VALUES(?1)", "t", name)
               ? sqlite3_last_insert_rowid(file->db)
               : -1;
}

enum prof_status prof_baseline_append(struct prof_baseline_file *file, const char *name,
                                      const struct prof_baseline_session *sessions, size_t count,
                                      size_t *added, struct prof_error *err)
{
    *added = 0;
    enum prof_status status = prof_baseline_check_name(name, err);
    status = status ?: prof_baseline_begin(file, err);
    if (status)
        return status;
    int64_t id = find_or_make(file, name);
    bool written = id > 0;
    for (size_t i = 0; written && i < count; i++)
        written = append_session(file, id, &sessions[i], added);
    if (!written)
        status = prof_baseline_fail(file, "write to", err);
    if (!status && !*added) /* the baseline may have been made for it */
        return sqlite3_exec(file->db, "ROLLBACK", NULL, NULL, NULL)
                   ? prof_baseline_fail(file, "write to", err)
                   : PROF_OK;
    return prof_baseline_end(file, status, err);
}

static int64_t count_sessions(const struct prof_baseline_file *file, int64_t baseline)
{
    PROF_FINALIZED sqlite3_stmt *row = prof_baseline_prepare(
        file, "SELECT count(*) FROM session WHERE baseline = ?1", "i", baseline);
    return row && sqlite3_step(row) == SQLITE_ROW ? sqlite3_column_int64(row, 0) : -1;
}

/* The sessions before the last `keep`. */
#define OLD_SESSIONS                                                                               \
    "(SELECT id FROM session WHERE baseline = ?1 ORDER BY id DESC LIMIT -1 OFFSET ?2)"

enum prof_status prof_baseline_remove(struct prof_baseline_file *file, const char *name,
                                      size_t keep, size_t *removed, struct prof_error *err)
{
    static const char *const steps[] = {
        "DELETE FROM run WHERE session IN " OLD_SESSIONS,
        "DELETE FROM session WHERE id IN " OLD_SESSIONS,
        "DELETE FROM baseline WHERE id = ?1 AND ?2 = 0",
    };
    enum prof_status status = prof_baseline_begin(file, err);
    if (status)
        return status;
    int64_t id = prof_baseline_id(file, name);
    int64_t before = id > 0 ? count_sessions(file, id) : 0, after = 0;
    if (id == 0)
        status = prof_baseline_unknown(file, name, err);
    bool done = id >= 0 && before >= 0;
    for (size_t i = 0; done && !status && i < sizeof steps / sizeof steps[0]; i++)
        done = prof_baseline_do(file, steps[i], "ii", id, (int64_t)keep);
    if (done && !status)
        done = (after = count_sessions(file, id)) >= 0;
    if (!done)
        status = prof_baseline_fail(file, "write to", err);
    *removed = status ? 0 : (size_t)(before - after);
    return prof_baseline_end(file, status, err);
}

/* ---- reading --------------------------------------------------------------------------------- */

static char *copy_baseline_text(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? strdup(text) : NULL;
}

/* The JSON of a run, also one that an earlier perfkit kept as it is. What is damaged becomes a text
 * that is no JSON, which its reader refuses with the number of the session. NULL: out of memory. */
static char *read_run_metrics(sqlite3_stmt *row, int column)
{
    if (sqlite3_column_type(row, column) != SQLITE_BLOB)
        return copy_baseline_text(row, column);
    const Bytef *packed = sqlite3_column_blob(row, column);
    uLong packed_size = (uLong)sqlite3_column_bytes(row, column), room = packed_size * 8 + 1024;
    for (;; room *= 2) {
        uLong size = room - 1;
        char *text = malloc(room);
        int code = text ? uncompress((Bytef *)text, &size, packed, packed_size) : Z_MEM_ERROR;
        bool grow = code == Z_BUF_ERROR && room <= PROF_DOCUMENT_BYTES;
        if (code == Z_OK) {
            text[size] = '\0';
            return text;
        }
        free(text);
        if (!grow)
            return code == Z_MEM_ERROR ? NULL : strdup("");
    }
}

static bool read_run(sqlite3_stmt *row, struct prof_baseline_run *run)
{
    *run = (struct prof_baseline_run){
        .identity = copy_baseline_text(row, 1),
        .capture = copy_baseline_text(row, 2),
        .recorded_s = sqlite3_column_int64(row, 3),
        .metrics = read_run_metrics(row, 4),
    };
    return run->metrics && run->identity;
}

static bool read_runs(const struct prof_baseline_file *file, struct prof_baseline_session *session)
{
    PROF_ARRAY(struct prof_baseline_run) runs = {0};
    sqlite3_stmt *row = prof_baseline_prepare(
        file,
        "SELECT id, identity, capture, recorded_s, metrics FROM run WHERE session = ?1 ORDER BY id",
        "i", session->id);
    bool good = row != NULL;
    int code = SQLITE_DONE;
    while (good && (code = sqlite3_step(row)) == SQLITE_ROW) {
        struct prof_baseline_run *run = prof_array_add(&runs);
        good = run && read_run(row, run);
    }
    sqlite3_finalize(row);
    session->runs = runs.data;
    session->run_count = runs.count;
    return good && code == SQLITE_DONE;
}

static bool read_sessions(const struct prof_baseline_file *file, int64_t baseline, size_t count,
                          struct prof_baseline *result)
{
    PROF_ARRAY(struct prof_baseline_session) sessions = {0};
    sqlite3_stmt *row = prof_baseline_prepare(
        file,
        "SELECT * FROM (SELECT id, saved_s, label, commit_id FROM session WHERE baseline = ?1 "
        "ORDER BY id DESC LIMIT ?2) ORDER BY id",
        "ii", baseline, count ? (int64_t)count : (int64_t)-1);
    bool good = row != NULL;
    int code = SQLITE_DONE;
    while (good && (code = sqlite3_step(row)) == SQLITE_ROW) {
        struct prof_baseline_session *session = prof_array_add(&sessions);
        if (session)
            *session = (struct prof_baseline_session){
                .id = sqlite3_column_int64(row, 0),
                .saved_s = sqlite3_column_int64(row, 1),
                .label = copy_baseline_text(row, 2),
                .commit = copy_baseline_text(row, 3),
            };
        good = session && read_runs(file, session);
    }
    sqlite3_finalize(row);
    result->sessions = sessions.data;
    result->session_count = sessions.count;
    return good && code == SQLITE_DONE;
}

enum prof_status prof_baseline_load(struct prof_baseline_file *file, const char *name,
                                    size_t sessions, struct prof_baseline *result,
                                    struct prof_error *err)
{
    *result = (struct prof_baseline){0};
    enum prof_status status = prof_baseline_begin(file, err);
    if (status)
        return status;
    int64_t id = prof_baseline_id(file, name);
    if (id == 0)
        status = prof_baseline_unknown(file, name, err);
    else if (id < 0 || !(result->name = strdup(name)) || !read_sessions(file, id, sessions, result))
        status = prof_baseline_fail(file, "read", err);
    status = prof_baseline_end(file, status, err);
    if (status)
        prof_baseline_free(result);
    return status;
}

static void free_run(struct prof_baseline_run *run)
{
    free(run->identity);
    free(run->capture);
    free(run->metrics);
}

void prof_baseline_session_free(struct prof_baseline_session *session)
{
    for (size_t i = 0; i < session->run_count; i++)
        free_run(&session->runs[i]);
    free(session->runs);
    free(session->label);
    free(session->commit);
    *session = (struct prof_baseline_session){0};
}

void prof_baseline_free(struct prof_baseline *result)
{
    for (size_t i = 0; i < result->session_count; i++)
        prof_baseline_session_free(&result->sessions[i]);
    free(result->sessions);
    free(result->name);
    *result = (struct prof_baseline){0};
}

enum prof_status prof_baseline_summaries(struct prof_baseline_file *file,
                                         struct prof_baseline_list *result, struct prof_error *err)
{
    PROF_ARRAY(struct prof_baseline_summary) rows = {0};
    sqlite3_stmt *row = prof_baseline_prepare(
        file,
        "SELECT name, (SELECT count(*) FROM session WHERE baseline = b.id), count(r.id), "
        "ifnull(sum(length(CAST(r.metrics AS BLOB))), 0), (SELECT min(saved_s) FROM session WHERE "
        "baseline = b.id), (SELECT max(saved_s) FROM session WHERE baseline = b.id) FROM baseline "
        "b LEFT JOIN run r ON r.baseline = b.id GROUP BY b.id ORDER BY name",
        "");
    bool good = row != NULL;
    int code = SQLITE_DONE;
    while (good && (code = sqlite3_step(row)) == SQLITE_ROW) {
        struct prof_baseline_summary *next = prof_array_add(&rows);
        if (next)
            *next = (struct prof_baseline_summary){
                .name = copy_baseline_text(row, 0),
                .sessions = sqlite3_column_int64(row, 1),
                .runs = sqlite3_column_int64(row, 2),
                .metrics_bytes = sqlite3_column_int64(row, 3),
                .first_s = sqlite3_column_int64(row, 4),
                .last_s = sqlite3_column_int64(row, 5),
            };
        good = next && next->name;
    }
    enum prof_status status =
        good && code == SQLITE_DONE ? PROF_OK : prof_baseline_fail(file, "read", err);
    sqlite3_finalize(row);
    *result = (struct prof_baseline_list){rows.data, rows.count};
    if (status)
        prof_baseline_summaries_free(result);
    return status;
}

void prof_baseline_summaries_free(struct prof_baseline_list *result)
{
    for (size_t i = 0; i < result->count; i++)
        free(result->rows[i].name);
    free(result->rows);
    *result = (struct prof_baseline_list){0};
}

/* ---- exports --------------------------------------------------------------------------------- */

#define EXPORT_KEY "perfkit_baseline" /* 1, the version */

static void add_exported_run(cJSON *to, const struct prof_baseline_run *run, bool *failed)
{
    prof_document_add_text(to, "identity", run->identity, failed);
    prof_document_add_text(to, "capture", run->capture, failed);
    prof_document_add_int(to, "recorded_s", run->recorded_s, failed);
    prof_document_add(to, "metrics", cJSON_CreateRaw(run->metrics), failed);
}

static void add_exported_sessions(cJSON *to, const struct prof_baseline *baseline, bool *failed)
{
    for (size_t i = 0; i < baseline->session_count; i++) {
        const struct prof_baseline_session *session = &baseline->sessions[i];
        cJSON *row = prof_document_add(to, NULL, cJSON_CreateObject(), failed);
        prof_document_add_int(row, "saved_s", session->saved_s, failed);
        prof_document_add_text(row, "label", session->label, failed);
        prof_document_add_text(row, "commit", session->commit, failed);
        cJSON *runs = prof_document_add(row, "runs", cJSON_CreateArray(), failed);
        for (size_t r = 0; r < session->run_count; r++)
            add_exported_run(prof_document_add(runs, NULL, cJSON_CreateObject(), failed),
                             &session->runs[r], failed);
    }
}

/* What is put into the document as it is must be JSON. */
static enum prof_status check_metrics(const struct prof_baseline *baseline, struct prof_error *err)
{
    for (size_t i = 0; i < baseline->session_count; i++) {
        const struct prof_baseline_session *session = &baseline->sessions[i];
        for (size_t r = 0; r < session->run_count; r++) {
            cJSON *root;
            struct prof_error why = {0};
            const char *text = session->runs[r].metrics;
            enum prof_status status =
                prof_document_parse(text, strlen(text), "a kept run", &root, &why);
            cJSON_Delete(root);
            if (status)
                return prof_fail(err, status == PROF_FORMAT ? PROF_CORRUPT : status,
                                 "baseline '%s', session %lld: %s", baseline->name,
                                 (long long)session->id, why.message);
        }
    }
    return PROF_OK;
}

enum prof_status prof_baseline_export(const struct prof_baseline *baseline, const char *path,
                                      bool overwrite, struct prof_error *err)
{
    bool failed = false;
    if (prof_replaceable(path, err))
        return err->status;
    if (!overwrite && access(path, F_OK) == 0)
        return prof_fail(err, PROF_EXISTS, "%s exists already: choose another name, or --force",
                         path);
    PROF_TRY(check_metrics(baseline, err));
    cJSON *root = cJSON_CreateObject();
    prof_document_add_int(root, EXPORT_KEY, 1, &failed);
    prof_document_add_text(root, "name", baseline->name, &failed);
    add_exported_sessions(prof_document_add(root, "sessions", cJSON_CreateArray(), &failed),
                          baseline, &failed);
    enum prof_status status =
        failed ? prof_out_of_memory(err) : prof_document_write(path, root, err);
    cJSON_Delete(root);
    return status;
}

/* What of an export is read into, and what went wrong. */
struct export_reader {
    bool damaged, failed; /* failed: out of memory */
};

static char *read_exported_text(struct export_reader *in, const cJSON *from, const char *key,
                                bool required)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, key);
    const char *text = cJSON_GetStringValue(item);
    char *copy = text ? strdup(text) : NULL;
    in->failed |= text && !copy;
    in->damaged |= !text && (required || (item && !cJSON_IsNull(item)));
    return copy;
}

static int64_t read_exported_time(struct export_reader *in, const cJSON *from, const char *key)
{
    int64_t time_s = 0;
    in->damaged |= !prof_document_int(cJSON_GetObjectItemCaseSensitive(from, key), &time_s);
    return time_s;
}

/* Room for the members of an array. */
static void *make_exported_rows(struct export_reader *in, const cJSON *list, size_t size)
{
    void *rows = calloc((size_t)cJSON_GetArraySize(list) + 1, size);
    in->failed |= !rows;
    in->damaged |= !cJSON_IsArray(list);
    return rows;
}

static void read_exported_run(struct export_reader *in, const cJSON *from,
                              struct prof_baseline_run *run)
{
    cJSON *metrics = cJSON_GetObjectItemCaseSensitive(from, "metrics");
    run->identity = read_exported_text(in, from, "identity", true);
    run->capture = read_exported_text(in, from, "capture", false);
    run->recorded_s = read_exported_time(in, from, "recorded_s");
    in->damaged |= !cJSON_IsObject(metrics);
    if (in->damaged || in->failed)
        return;
    run->metrics = prof_document_print(metrics, false);
    in->failed |= !run->metrics;
}

static void read_exported_session(struct export_reader *in, const cJSON *from,
                                  struct prof_baseline_session *session)
{
    const cJSON *row, *runs = cJSON_GetObjectItemCaseSensitive(from, "runs");
    session->saved_s = read_exported_time(in, from, "saved_s");
    session->label = read_exported_text(in, from, "label", false);
    session->commit = read_exported_text(in, from, "commit", false);
    session->runs = make_exported_rows(in, runs, sizeof *session->runs);
    if (in->damaged || in->failed)
        return;
    cJSON_ArrayForEach(row, runs) read_exported_run(in, row, &session->runs[session->run_count++]);
}

enum prof_status prof_baseline_read_export(const char *path, struct prof_baseline *result,
                                           struct prof_error *err)
{
    struct export_reader in = {0};
    cJSON *root;
    *result = (struct prof_baseline){0};
    PROF_TRY(prof_document_read(path, &root, err));
    const cJSON *row, *sessions = cJSON_GetObjectItemCaseSensitive(root, "sessions");
    in.damaged = prof_document_real(root, EXPORT_KEY) != 1;
    result->name = read_exported_text(&in, root, "name", true);
    result->sessions = make_exported_rows(&in, sessions, sizeof *result->sessions);
    cJSON_ArrayForEach(row, sessions) if (!in.damaged && !in.failed)
    {
        struct prof_baseline_session *session = &result->sessions[result->session_count++];
        session->id = (int64_t)result->session_count; /* for messages */
        read_exported_session(&in, row, session);
    }
    cJSON_Delete(root);
    if (!in.damaged && !in.failed)
        return PROF_OK;
    prof_baseline_free(result);
    return in.failed ? prof_out_of_memory(err)
                     : prof_fail(err, PROF_FORMAT,
                                 "%s is not what this perfkit's baseline export wrote: export it "
                                 "again",
                                 path);
}
