/* What the result says of itself: the row of `capture`, and those lines of the trust block that are
 * about no single process. A thousand files mostly say the same, which is said once; what only some
 * say names them. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/saturate.h"
#include "libprof/store/merge/parts.h"

/* ---- lines ----------------------------------------------------------------------------------- */

static char *copied(const char *text)
{
    return text ? strdup(text) : NULL;
}

static struct merge_line *add_line(struct merge *m, const struct merge_line *like)
{
    struct merge_line *line = prof_array_add(&m->lines);
    if (!line)
        return NULL;
    *line = (struct merge_line){.subject = copied(like->subject),
                                .item = copied(like->item),
                                .note = copied(like->note),
                                .level = copied(like->level),
                                .code = copied(like->code)};
    bool ok = (line->subject || !like->subject) && (line->item || !like->item) &&
              (line->note || !like->note) && (line->level || !like->level) &&
              (line->code || !like->code);
    return ok ? line : NULL;
}

static struct merge_line line_with(enum prof_health_code code, const char *note)
{
    const struct prof_health *h = &prof_health[code];
    return (struct merge_line){.subject = (char *)h->subject,
                               .item = (char *)h->item,
                               .note = (char *)note,
                               .level = (char *)prof_health_level_text(h->level),
                               .code = (char *)h->code};
}

static bool add_result_note(struct prof_merge_result *result, const char *text)
{
    char **grown = realloc(result->notes, sizeof *grown * (size_t)(result->note_count + 1));
    if (!grown)
        return false;
    result->notes = grown;
    grown[result->note_count] = strdup(text);
    return grown[result->note_count++] != NULL;
}

bool merge_note(struct merge *m, enum prof_health_code code, const char *format, ...)
{
    PROF_FREED char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0)
        return false;
    struct merge_line line = line_with(code, text);
    return add_line(m, &line) && add_result_note(m->result, text);
}

/* The line with this subject, item and note. */
static struct merge_line *line_of(struct merge *m, const struct merge_line *like)
{
    PROF_FREED char *key = NULL;
    int length = asprintf(&key, "%s%c%s%c%s", like->subject ? like->subject : "", 1,
                          like->item ? like->item : "", 1, like->note ? like->note : "");
    if (length < 0)
        return NULL;
    uint32_t *known = prof_names_get(&m->line_of, key, (size_t)length);
    struct merge_line *line = known ? &m->lines.data[*known] : add_line(m, like);
    if (line && !known &&
        !prof_names_put(&m->line_of, key, (size_t)length, (uint32_t)m->lines.count - 1))
        line = NULL;
    return line;
}

enum prof_status merge_add_lines(struct merge *m, struct merge_input *in)
{
    sqlite3_stmt *row = NULL;
    bool ok = true;
    sqlite3_prepare_v2(in->db,
                       "SELECT subject, item, note, level, code, value FROM capture_health WHERE "
                       "process IS NULL ORDER BY id",
                       -1, &row, NULL);
    while (row && ok && sqlite3_step(row) == SQLITE_ROW) {
        struct merge_line theirs = {.subject = (char *)sqlite3_column_text(row, 0),
                                    .item = (char *)sqlite3_column_text(row, 1),
                                    .note = (char *)sqlite3_column_text(row, 2),
                                    .level = (char *)sqlite3_column_text(row, 3),
                                    .code = (char *)sqlite3_column_text(row, 4)};
        struct merge_line *line = line_of(m, &theirs);
        ok = line != NULL;
        if (!ok)
            break;
        if (!line->files++)
            line->path = in->path;
        line->has_value |= sqlite3_column_type(row, 5) != SQLITE_NULL;
        line->value = prof_add(line->value, sqlite3_column_int64(row, 5));
    }
    merge_input_end(in, row);
    return ok ? PROF_OK : prof_out_of_memory(m->err);
}

/* With the files that say it, unless all do. */
static char *whole_note(const struct merge_line *line, size_t files)
{
    char *text = NULL;
    const char *note = line->note ? line->note : "";
    int length = 0;
    if (!line->files || line->files == files)
        return copied(line->note);
    if (line->files == 1)
        length = asprintf(&text, "%s: %s", line->path, note);
    else
        length =
            asprintf(&text, "%zu of %zu files, as %s: %s", line->files, files, line->path, note);
    return length < 0 ? NULL : text;
}

static enum prof_status write_health_line(struct merge *m, sqlite3_stmt *sql,
                                          const struct merge_line *line, const char *note)
{
    int table = merge_plan_find(&m->plan, "capture_health");
    sqlite3_bind_int64(sql, COLUMN_AT(capture_health, id), ++m->last[table]);
    sqlite3_bind_text(sql, COLUMN_AT(capture_health, subject), line->subject, -1, SQLITE_STATIC);
    sqlite3_bind_text(sql, COLUMN_AT(capture_health, item), line->item, -1, SQLITE_STATIC);
    if (line->has_value)
        sqlite3_bind_int64(sql, COLUMN_AT(capture_health, value), line->value);
    else
        sqlite3_bind_null(sql, COLUMN_AT(capture_health, value));
    sqlite3_bind_text(sql, COLUMN_AT(capture_health, note), note, -1, SQLITE_STATIC);
    sqlite3_bind_text(sql, COLUMN_AT(capture_health, level), line->level, -1, SQLITE_STATIC);
    sqlite3_bind_text(sql, COLUMN_AT(capture_health, code), line->code, -1, SQLITE_STATIC);
    int code = sqlite3_step(sql);
    sqlite3_reset(sql);
    return code == SQLITE_DONE ? PROF_OK : merge_write_fail(m);
}

/* "out-3.sqlite (node7, rank 3): it is cut short" */
static char *part_note(const struct prof_merge_part *part)
{
    char *text;
    const char *host = part->host ? part->host : "", *ranks = part->ranks ? part->ranks : "";
    bool both = *host && *ranks;
    if (asprintf(&text, "%s%s%s%s%s%s%s: %s", part->path, *host || *ranks ? " (" : "", host,
                 both ? ", " : "", *ranks ? "rank " : "", ranks, *host || *ranks ? ")" : "",
                 part->missing) < 0)
        return NULL;
    return text;
}

static enum prof_status write_parts(struct merge *m, sqlite3_stmt *sql)
{
    enum prof_status status = PROF_OK;
    for (size_t i = 0; !status && i < m->result->count; i++) {
        const struct prof_merge_part *part = &m->result->parts[i];
        if (!part->missing)
            continue;
        char *note = part_note(part);
        m->result->complete &= part->twice; /* which is no loss */
        struct merge_line line =
            line_with(part->twice ? PROF_HEALTH_part_copy : PROF_HEALTH_part_incomplete, note);
        status = note ? write_health_line(m, sql, &line, note) : prof_out_of_memory(m->err);
        free(note);
    }
    return status;
}

static size_t files_in(const struct merge *m)
{
    size_t files = 0;
    for (size_t i = 0; i < m->result->count; i++)
        files += !m->result->parts[i].left_out;
    return files;
}

enum prof_status merge_write_lines(struct merge *m)
{
    PROF_FINALIZED sqlite3_stmt *sql = NULL;
    enum prof_status status = PROF_OK;
    if (prof_schema_insert(m->out, SCHEMA_capture_health, 1, false, &sql))
        return merge_write_fail(m);
    for (size_t i = 0; !status && i < m->lines.count; i++) {
        const struct merge_line *line = &m->lines.data[i];
        char *note = whole_note(line, files_in(m));
        status = note || !line->note ? write_health_line(m, sql, line, note)
                                     : prof_out_of_memory(m->err);
        free(note);
    }
    return status ?: write_parts(m, sql);
}

void merge_free_lines(struct merge *m)
{
    for (size_t i = 0; i < m->lines.count; i++) {
        free(m->lines.data[i].subject);
        free(m->lines.data[i].item);
        free(m->lines.data[i].note);
        free(m->lines.data[i].level);
        free(m->lines.data[i].code);
    }
    prof_array_free(&m->lines);
    prof_names_free(&m->line_of);
}

/* ---- the row of capture ---------------------------------------------------------------------- */

/* What all files say, else NULL. */
#define COMMON(m, member) common(m, offsetof(struct merge_input, member))

static const char *common(const struct merge *m, size_t member)
{
    const char *value = NULL;
    bool first = true;
    for (size_t i = 0; i < m->all_count; i++) {
        const struct merge_input *in = &m->all[i];
        if (in->gone)
            continue;
        const char *its;
        memcpy(&its, (const char *)in + member, sizeof its);
        if (!first && (!value || !its || strcmp(value, its) != 0))
            return NULL;
        value = its;
        first = false;
    }
    return value;
}

/* The first failure; success only when all succeeded. */
static void exit_of(const struct merge *m, int64_t *status, int64_t *signal)
{
    *status = *signal = PROF_MERGE_UNKNOWN;
    bool all_known = true;
    for (size_t i = 0; i < m->all_count; i++) {
        const struct merge_input *in = &m->all[i];
        if (in->gone)
            continue;
        if (in->signal != PROF_MERGE_UNKNOWN) {
            *status = PROF_MERGE_UNKNOWN;
            *signal = in->signal;
            return;
        }
        all_known &= in->status != PROF_MERGE_UNKNOWN;
        if (in->status > 0 && *status <= 0)
            *status = in->status;
        else if (in->status == 0 && *status == PROF_MERGE_UNKNOWN)
            *status = 0;
    }
    if (!all_known && *status == 0)
        *status = PROF_MERGE_UNKNOWN;
}

static void bind_known_value(sqlite3_stmt *sql, int at, int64_t value)
{
    if (value != PROF_MERGE_UNKNOWN)
        sqlite3_bind_int64(sql, at, value);
}

static int64_t common_count(const struct merge *m)
{
    int64_t value = PROF_MERGE_UNKNOWN;
    for (size_t i = 0; i < m->all_count; i++) {
        const struct merge_input *in = &m->all[i];
        if (in->gone)
            continue;
        if (value != PROF_MERGE_UNKNOWN && in->cpu_count != value)
            return PROF_MERGE_UNKNOWN;
        value = in->cpu_count;
    }
    return value;
}

/* Kernels that some files left out on purpose are said even where the filters differ. */
static bool note_filters(struct merge *m)
{
    bool ok = true;
    for (size_t i = 0; ok && !COMMON(m, filter) && i < m->all_count; i++) {
        const struct merge_input *in = &m->all[i];
        if (!in->gone && in->filter)
            ok = merge_note(m, PROF_HEALTH_part_filtered,
                            "%s: only kernels whose name matches \"%s\" have rows", in->path,
                            in->filter);
    }
    return ok;
}

enum prof_status merge_write_capture(struct merge *m)
{
    PROF_FINALIZED sqlite3_stmt *sql = NULL;
    int64_t status, signal;
    exit_of(m, &status, &signal);
    if (!note_filters(m))
        return prof_out_of_memory(m->err);
    if (prof_schema_insert(m->out, SCHEMA_capture, 1, false, &sql))
        return merge_write_fail(m);
    const struct {
        int at;
        const char *text;
    } texts[] = {{COLUMN_AT(capture, state), "merged"},
                 {COLUMN_AT(capture, perfkit_version), PERFKIT_VERSION},
                 {COLUMN_AT(capture, command), COMMON(m, command)},
                 {COLUMN_AT(capture, directory), COMMON(m, directory)},
                 {COLUMN_AT(capture, host), COMMON(m, host)},
                 {COLUMN_AT(capture, boot_id), COMMON(m, boot_id)},
                 {COLUMN_AT(capture, kernel), COMMON(m, kernel)},
                 {COLUMN_AT(capture, cpu), COMMON(m, cpu)},
                 {COLUMN_AT(capture, trace), COMMON(m, trace)},
                 {COLUMN_AT(capture, kernel_filter), COMMON(m, filter)}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        sqlite3_bind_text(sql, texts[i].at, texts[i].text, -1, SQLITE_STATIC);
    bind_known_value(sql, COLUMN_AT(capture, cpu_count), common_count(m));
    bind_known_value(sql, COLUMN_AT(capture, start_realtime_ns), m->zero_realtime_ns);
    sqlite3_bind_int64(sql, COLUMN_AT(capture, start_mono_ns), m->zero_mono_ns);
    bind_known_value(sql, COLUMN_AT(capture, duration), m->duration_ns);
    bind_known_value(sql, COLUMN_AT(capture, exit_status), status);
    bind_known_value(sql, COLUMN_AT(capture, exit_signal), signal);
    int code = sqlite3_step(sql);
    return code == SQLITE_DONE ? PROF_OK : merge_write_fail(m);
}
