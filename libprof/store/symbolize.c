/* See symbolize.h. Frames of one object file are looked up together, whichever process or address
 * it was loaded at, and each distinct place once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/map.h"
#include "libprof/base/regular.h"
#include "libprof/store/schema.h"
#include "libprof/store/symbolize.h"

#define TIMEOUT_MS 180000u /* a file */

/* A file to look up. */
struct source {
    enum symbols_source kind;
    uint32_t path, build_id; /* offsets in texts */
    int64_t segment, not_after_s, not_before_s;
};

struct frame {
    uint32_t source;
    uint64_t address; /* as the source counts */
    int64_t id;
    bool named;
};

struct work {
    sqlite3 *db;
    struct prof_store *store;
    const struct prof_symbolize_options *options;
    struct prof_symbolize_result *result;
    struct prof_error *err; /* filled by each function that fails */
    char *folders;
    int64_t start_s, last_symbol;
    PROF_ARRAY(char) texts;
    PROF_ARRAY(struct source) sources;
    PROF_ARRAY(struct frame) frames;
    PROF_ARRAY(uint64_t) addresses;
    struct prof_names source_keys; /* what makes a source -> number */
    struct prof_names strings;     /* -> string.id */
    sqlite3_stmt *add_string, *add_symbol, *add_frame, *set_module;
    bool own_kernel;  /* the machine runs the kernel that the capture was made on */
    size_t done;      /* frames, of files before this one */
    const char *path; /* of this one */
};

static const char *work_text(const struct work *w, uint32_t offset)
{
    return w->texts.data + offset;
}

static enum prof_status symbolize_no_memory(struct work *w)
{
    return prof_fail(w->err, PROF_NOMEM, "cannot name the stacks of %s: out of memory",
                     prof_store_path(w->store));
}

/* PROF_OK when SQLite's code is none of a failure. */
static enum prof_status check_symbol_sql(struct work *w, int code)
{
    if (prof_sql_status(code) == PROF_OK)
        return PROF_OK;
    return prof_store_fail_code(w->store, code, "name the stacks of", w->err);
}

static enum prof_status run_symbol_insert(struct work *w, sqlite3_stmt *statement)
{
    int code = sqlite3_step(statement);
    sqlite3_reset(statement);
    return check_symbol_sql(w, code);
}

static bool keep_text(struct work *w, const char *text, uint32_t *offset)
{
    size_t bytes = text ? strlen(text) + 1 : 1;
    *offset = (uint32_t)w->texts.count;
    return prof_array_append(&w->texts, text ? text : "", bytes) && w->texts.count < UINT32_MAX;
}

static enum prof_status prepare_symbol_query(struct work *w, const char *sql,
                                             sqlite3_stmt **statement)
{
    return check_symbol_sql(w, sqlite3_prepare_v2(w->db, sql, -1, statement, NULL));
}

static enum prof_status run_symbol_sql(struct work *w, const char *sql)
{
    return check_symbol_sql(w, sqlite3_exec(w->db, sql, NULL, NULL, NULL));
}

/* 0 where there is no row. */
static enum prof_status query_symbol_number(struct work *w, const char *sql, int64_t *value)
{
    sqlite3_stmt *row;
    PROF_TRY(prepare_symbol_query(w, sql, &row));
    *value = sqlite3_step(row) == SQLITE_ROW ? sqlite3_column_int64(row, 0) : 0;
    return check_symbol_sql(w, sqlite3_finalize(row));
}

/* ---- what to look up ------------------------------------------------------------------------- */

/* The number of a source, made when new; UINT32_MAX: out of memory. Its texts are those from
 * `texts` on, and go when it is known. */
static uint32_t find_source(struct work *w, const struct source *source, size_t texts)
{
    char key[2 * SYMBOLS_MOST_PATH];
    int length = snprintf(key, sizeof key, "%d %lld %lld %s %s", (int)source->kind,
                          (long long)source->segment, (long long)source->not_before_s,
                          work_text(w, source->build_id), work_text(w, source->path));
    size_t bytes = length < (int)sizeof key ? (size_t)length : sizeof key - 1;
    uint32_t *known = prof_names_get(&w->source_keys, key, bytes);
    if (known) {
        struct source *same = &w->sources.data[*known];
        if (source->not_after_s < same->not_after_s)
            same->not_after_s = source->not_after_s;
        w->texts.count = texts;
        return *known;
    }
    uint32_t number = (uint32_t)w->sources.count;
    struct source *added = prof_array_add(&w->sources);
    if (!added || !prof_names_put(&w->source_keys, key, bytes, number))
        return UINT32_MAX;
    *added = *source;
    return number;
}

static int64_t seconds_of(const struct work *w, int64_t ns)
{
    return w->start_s ? w->start_s + ns / 1000000000 + 1 : 0;
}

/* A frame in a module: by its place in the file. */
static bool in_module(struct work *w, sqlite3_stmt *row, struct frame *frame)
{
    const char *path = (const char *)sqlite3_column_text(row, 3);
    struct source source = {
        .kind = path && strcmp(path, "[vdso]") == 0 ? SYMBOLS_VDSO : SYMBOLS_ELF,
        .segment = sqlite3_column_type(row, 5) == SQLITE_NULL ? -1 : sqlite3_column_int64(row, 5),
        .not_after_s = seconds_of(w, sqlite3_column_int64(row, 6))};
    size_t texts = w->texts.count;
    bool ok = keep_text(w, path, &source.path) &&
              keep_text(w, (const char *)sqlite3_column_text(row, 4), &source.build_id);
    frame->address = (uint64_t)sqlite3_column_int64(row, 2);
    frame->source = ok ? find_source(w, &source, texts) : UINT32_MAX;
    return frame->source != UINT32_MAX;
}

/* Code that is in no file: a JIT's. */
static bool in_no_module(struct work *w, sqlite3_stmt *row, struct frame *frame)
{
    char path[SYMBOLS_MOST_PATH];
    const char *folder = w->options->map_folder ? w->options->map_folder : "/tmp";
    struct source source = {.kind = SYMBOLS_PERF_MAP, .segment = -1};
    snprintf(path, sizeof path, "%s/perf-%lld.map", folder,
             (long long)sqlite3_column_int64(row, 7));
    if (sqlite3_column_type(row, 8) != SQLITE_NULL && w->start_s)
        source.not_before_s = w->start_s + sqlite3_column_int64(row, 8) / 1000000000 - 1;
    const char *dump = (const char *)sqlite3_column_text(row, 9);
    if (dump) {
        source.kind = SYMBOLS_JITDUMP;
        source.not_before_s = 0;
    }
    size_t texts = w->texts.count;
    bool ok = keep_text(w, dump ? dump : path, &source.path) && keep_text(w, "", &source.build_id);
    frame->address = (uint64_t)sqlite3_column_int64(row, 1);
    frame->source = ok ? find_source(w, &source, texts) : UINT32_MAX;
    return frame->source != UINT32_MAX;
}

/* A jitdump is known by the page of it that its process maps for profilers to see. */
static const char frames_sql[] =
    "SELECT f.id, f.address, f.offset, m.path, m.build_id, m.segment, m.start, p.pid, p.start, "
    "CASE WHEN m.id IS NULL THEN (SELECT d.path FROM module d WHERE d.process=f.process AND d.path "
    "GLOB '*/jit-'||p.pid||'.dump' LIMIT 1) END FROM frame f LEFT JOIN module m ON m.id=f.module "
    "LEFT JOIN process p ON p.id=f.process WHERE f.kind=1";

static enum prof_status read_unnamed_frames(struct work *w)
{
    sqlite3_stmt *row;
    bool ok = true;
    PROF_TRY(prepare_symbol_query(w, frames_sql, &row));
    while (ok && sqlite3_step(row) == SQLITE_ROW) {
        struct frame *frame = prof_array_add(&w->frames);
        ok = frame != NULL;
        if (!ok)
            break;
        *frame = (struct frame){.id = sqlite3_column_int64(row, 0)};
        ok = sqlite3_column_type(row, 3) == SQLITE_NULL ? in_no_module(w, row, frame)
                                                        : in_module(w, row, frame);
    }
    int code = sqlite3_finalize(row);
    return ok ? check_symbol_sql(w, code) : symbolize_no_memory(w);
}

PROF_ORDER(by_source_and_address, struct frame, PROF_ASCENDING(source), PROF_ASCENDING(address),
           PROF_ASCENDING(id))

/* ---- what comes back ------------------------------------------------------------------------- */

/* *row = 0: the answer has no such text. */
static enum prof_status string_row(struct work *w, const struct symbol_answer *answer,
                                   uint32_t number, int64_t *row)
{
    *row = 0;
    if (!number)
        return PROF_OK;
    const struct symbol_text *text = &answer->texts.data[number - 1];
    const char *bytes = answer->bytes.data ? answer->bytes.data + text->offset : "";
    uint32_t *known = prof_names_get(&w->strings, bytes, text->length);
    if (known) {
        *row = *known;
        return PROF_OK;
    }
    sqlite3_bind_text(w->add_string, COLUMN_AT(string, value), bytes, (int)text->length,
                      SQLITE_STATIC);
    PROF_TRY(run_symbol_insert(w, w->add_string));
    *row = sqlite3_last_insert_rowid(w->db);
    return prof_names_put(&w->strings, bytes, text->length, (uint32_t)*row)
               ? PROF_OK
               : symbolize_no_memory(w);
}

static void bind_positive(sqlite3_stmt *statement, int at, int64_t value)
{
    if (value > 0)
        sqlite3_bind_int64(statement, at, value);
    else
        sqlite3_bind_null(statement, at);
}

static enum prof_status write_level(struct work *w, int64_t frame, uint32_t number,
                                    int64_t function, int64_t file, uint32_t line)
{
    sqlite3_bind_int64(w->add_symbol, COLUMN_AT(symbol, frame), frame);
    sqlite3_bind_int64(w->add_symbol, COLUMN_AT(symbol, level), number);
    bind_positive(w->add_symbol, COLUMN_AT(symbol, function), function);
    bind_positive(w->add_symbol, COLUMN_AT(symbol, file), file);
    bind_positive(w->add_symbol, COLUMN_AT(symbol, line), line);
    return run_symbol_insert(w, w->add_symbol);
}

static enum prof_status write_frame(struct work *w, struct frame *frame,
                                    const struct symbol_answer *answer,
                                    const struct symbol_span *span)
{
    for (uint32_t i = 0; i < span->count; i++) {
        const struct symbols_level *level = &answer->levels.data[span->first + i];
        int64_t function, file;
        PROF_TRY(string_row(w, answer, level->function, &function));
        PROF_TRY(string_row(w, answer, level->file, &file));
        PROF_TRY(write_level(w, frame->id, i, function, file, level->line));
    }
    sqlite3_bind_int64(w->add_frame, 1, frame->id);
    frame->named = true;
    return run_symbol_insert(w, w->add_frame);
}

/* ---- one file -------------------------------------------------------------------------------- */

static const char *const qualities[] = {[SYMBOLS_EXPORTED] = "exported names",
                                        [SYMBOLS_NAMES] = "names",
                                        [SYMBOLS_LINES] = "names and lines"};

static enum prof_status write_module_symbols(struct work *w, const struct source *source,
                                             const struct symbol_answer *answer,
                                             const char *trouble)
{
    char text[sizeof answer->note + 200];
    if (answer->quality == SYMBOLS_NOTHING)
        snprintf(text, sizeof text, "none: %s", answer->note);
    else if (trouble)
        snprintf(text, sizeof text, "%s; no lines: %s", qualities[answer->quality], trouble);
    else
        snprintf(text, sizeof text, "%s%s%s", qualities[answer->quality],
                 *answer->note ? " of " : "", answer->note);
    sqlite3_bind_text(w->set_module, 1, text, -1, SQLITE_STATIC);
    sqlite3_bind_text(w->set_module, 2, work_text(w, source->path), -1, SQLITE_STATIC);
    sqlite3_bind_text(w->set_module, 3, work_text(w, source->build_id), -1, SQLITE_STATIC);
    if (source->segment < 0)
        sqlite3_bind_null(w->set_module, 4);
    else
        sqlite3_bind_int64(w->set_module, 4, source->segment);
    sqlite3_bind_int(w->set_module, 5, answer->quality == SYMBOLS_NOTHING);
    return run_symbol_insert(w, w->set_module);
}

/* Debug information that breaks its reader leaves the symbol table. */
static bool wants_to_stop(void *user)
{
    struct work *w = user;
    const struct prof_symbolize_options *options = w->options;
    if (options->progress && !options->progress(options->user, w->done, w->frames.count, w->path))
        w->result->stopped = true;
    return w->result->stopped;
}

static enum prof_status ask_helper(struct work *w, const struct source *source,
                                   struct symbol_answer *answer, char trouble[128])
{
    struct symbol_question question = {.helper = w->options->helper,
                                       .source = source->kind,
                                       .path = work_text(w, source->path),
                                       .build_id = work_text(w, source->build_id),
                                       .folders = w->folders,
                                       .segment = source->segment,
                                       .not_after_s = source->not_after_s,
                                       .not_before_s = source->not_before_s,
                                       .addresses = w->addresses.data,
                                       .count = (uint32_t)w->addresses.count,
                                       .timeout_ms = TIMEOUT_MS,
                                       .stop = wants_to_stop,
                                       .user = w};
    trouble[0] = '\0';
    if (source->kind == SYMBOLS_VDSO && !w->own_kernel) {
        *answer = (struct symbol_answer){0};
        snprintf(answer->note, sizeof answer->note,
                 "it is of another kernel than this machine runs");
        answer->spans = calloc(w->addresses.count + 1, sizeof *answer->spans);
        return answer->spans ? PROF_OK : symbolize_no_memory(w);
    }
    enum prof_status status = symbol_ask(&question, answer, w->err);
    if (status || answer->stopped || !answer->broken || source->kind != SYMBOLS_ELF)
        return status;
    snprintf(trouble, 128, "%.127s", answer->note);
    symbol_answer_free(answer);
    question.flags = SYMBOLS_NO_DWARF;
    return symbol_ask(&question, answer, w->err);
}

static enum prof_status write_answer(struct work *w, const struct source *source,
                                     struct frame *frames, size_t count,
                                     const struct symbol_answer *answer, const char *trouble)
{
    size_t place = 0;
    for (size_t i = 0; i < count; i++) {
        place += i && frames[i].address != frames[i - 1].address;
        if (answer->spans[place].count)
            PROF_TRY(write_frame(w, &frames[i], answer, &answer->spans[place]));
    }
    return write_module_symbols(w, source, answer, *trouble ? trouble : NULL);
}

/* Keep the largest gaps, in order. */
static void note_symbol_gap(struct prof_symbolize_result *result, const char *path, const char *why,
                            uint64_t frames)
{
    struct prof_symbolize_gap gap = {.frames = frames};
    size_t length = strlen(path), at = result->gap_count;
    snprintf(gap.path, sizeof gap.path, "%s",
             path + (length < sizeof gap.path ? 0 : length - sizeof gap.path + 1));
    snprintf(gap.why, sizeof gap.why, "%.150s", why);
    while (at > 0 && result->gaps[at - 1].frames < frames)
        at--;
    if (at == PROF_SYMBOLIZE_GAPS)
        return;
    if (result->gap_count < PROF_SYMBOLIZE_GAPS)
        result->gap_count++;
    memmove(&result->gaps[at + 1], &result->gaps[at],
            (result->gap_count - at - 1) * sizeof *result->gaps);
    result->gaps[at] = gap;
}

/* Frames [first, first + count) are of one source. */
static enum prof_status name_file(struct work *w, size_t first, size_t count)
{
    struct frame *frames = w->frames.data + first;
    const struct source *source = &w->sources.data[frames->source];
    struct symbol_answer answer;
    char trouble[128];
    w->addresses.count = 0;
    if (!prof_array_reserve(&w->addresses, count))
        return symbolize_no_memory(w);
    for (size_t i = 0; i < count; i++) {
        if (!i || frames[i].address != frames[i - 1].address)
            w->addresses.data[w->addresses.count++] = frames[i].address;
    }
    enum prof_status status = ask_helper(w, source, &answer, trouble);
    if (!status && answer.stopped) {
        symbol_answer_free(&answer);
        return PROF_OK;
    }
    status = status ?: write_answer(w, source, frames, count, &answer, trouble);
    bool file = source->kind == SYMBOLS_ELF || source->kind == SYMBOLS_VDSO;
    if (!status && answer.quality == SYMBOLS_NOTHING)
        note_symbol_gap(w->result, file ? work_text(w, source->path) : "code in no file",
                        answer.note, count);
    w->result->files += file;
    w->result->files_without += file && answer.quality == SYMBOLS_NOTHING;
    w->result->files_broken += file && (answer.broken || *trouble);
    symbol_answer_free(&answer);
    return status;
}

static enum prof_status name_files(struct work *w)
{
    enum prof_status status = PROF_OK;
    for (size_t first = 0, count; !status && first < w->frames.count; first += count) {
        uint32_t source = w->frames.data[first].source;
        for (count = 1;
             first + count < w->frames.count && w->frames.data[first + count].source == source;)
            count++;
        w->done = first;
        w->path = work_text(w, w->sources.data[source].path);
        if (wants_to_stop(w))
            return PROF_OK;
        status = name_file(w, first, count);
    }
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum prof_status load_symbol_strings(struct work *w)
{
    sqlite3_stmt *row;
    bool ok = true;
    PROF_TRY(prepare_symbol_query(w,
                                  "SELECT id, value FROM string WHERE id IN (SELECT function FROM "
                                  "symbol UNION SELECT file FROM symbol)",
                                  &row));
    while (ok && sqlite3_step(row) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(row, 1);
        ok = prof_names_put(&w->strings, text ? text : "", (size_t)sqlite3_column_bytes(row, 1),
                            (uint32_t)sqlite3_column_int64(row, 0));
    }
    int code = sqlite3_finalize(row);
    return ok ? check_symbol_sql(w, code) : symbolize_no_memory(w);
}

static enum prof_status read_own_kernel(struct work *w)
{
    char here[64];
    sqlite3_stmt *row;
    prof_first_line("/proc/sys/kernel/random/boot_id", here, sizeof here);
    PROF_TRY(prepare_symbol_query(w, "SELECT boot_id FROM capture", &row));
    w->own_kernel = sqlite3_step(row) == SQLITE_ROW && sqlite3_column_text(row, 0) && *here &&
                    strcmp((const char *)sqlite3_column_text(row, 0), here) == 0;
    return check_symbol_sql(w, sqlite3_finalize(row));
}

/* Names from before make room where new ones came. */
static enum prof_status begin_symbolize(struct work *w)
{
    PROF_TRY(
        query_symbol_number(w, "SELECT start_realtime_ns/1000000000 FROM capture", &w->start_s));
    PROF_TRY(query_symbol_number(w, "SELECT max(id) FROM symbol", &w->last_symbol));
    PROF_TRY(read_own_kernel(w));
    PROF_TRY(run_symbol_sql(w, "CREATE TEMP TABLE named(frame INTEGER PRIMARY KEY)"));
    PROF_TRY(load_symbol_strings(w));
    PROF_TRY(
        check_symbol_sql(w, prof_schema_insert(w->db, SCHEMA_string, 1, false, &w->add_string)));
    PROF_TRY(
        check_symbol_sql(w, prof_schema_insert(w->db, SCHEMA_symbol, 1, false, &w->add_symbol)));
    PROF_TRY(prepare_symbol_query(w, "INSERT OR IGNORE INTO named VALUES(?1)", &w->add_frame));
    return prepare_symbol_query(
        w,
        "UPDATE module SET symbols=?1 WHERE path=?2 AND coalesce(build_id,'')=?3 AND "
        "segment IS ?4 AND (symbols IS NULL OR symbols LIKE 'none:%' OR NOT ?5)",
        &w->set_module);
}

static enum prof_status end_symbolize(struct work *w)
{
    char sql[128];
    int64_t named, lines;
    snprintf(sql, sizeof sql,
             "DELETE FROM symbol WHERE id<=%lld AND frame IN (SELECT frame FROM named)",
             (long long)w->last_symbol);
    if (w->last_symbol)
        PROF_TRY(run_symbol_sql(w, sql));
    PROF_TRY(query_symbol_number(w,
                                 "SELECT count(DISTINCT s.frame) FROM symbol s JOIN frame f "
                                 "ON f.id=s.frame WHERE f.kind=1",
                                 &named));
    PROF_TRY(query_symbol_number(w,
                                 "SELECT count(DISTINCT s.frame) FROM symbol s JOIN frame f "
                                 "ON f.id=s.frame WHERE f.kind=1 AND s.line NOT NULL",
                                 &lines));
    w->result->frames = w->frames.count;
    w->result->named = (uint64_t)named;
    w->result->lines = (uint64_t)lines;
    PROF_TRY(run_symbol_sql(w, "DROP TABLE named"));
    return run_symbol_sql(w, "COMMIT");
}

static bool join_folders(struct work *w)
{
    size_t bytes = 1;
    for (const char *const *f = w->options->folders; f && *f; f++)
        bytes += strlen(*f) + 1;
    char *at = w->folders = calloc(bytes, 1);
    for (const char *const *f = w->options->folders; at && f && *f; f++)
        at = stpcpy(at, *f) + 1;
    return at != NULL;
}

static void free_symbolize_work(struct work *w)
{
    sqlite3_finalize(w->add_string);
    sqlite3_finalize(w->add_symbol);
    sqlite3_finalize(w->add_frame);
    sqlite3_finalize(w->set_module);
    free(w->folders);
    prof_array_free(&w->texts);
    prof_array_free(&w->sources);
    prof_array_free(&w->frames);
    prof_array_free(&w->addresses);
    prof_names_free(&w->source_keys);
    prof_names_free(&w->strings);
}

bool prof_symbolize_has(struct prof_store *store)
{
    return prof_sql_number(prof_store_db(store), 0, "SELECT 1 FROM frame WHERE kind=1 LIMIT 1");
}

static enum prof_status name_capture_stacks(struct work *w)
{
    if (!join_folders(w))
        return symbolize_no_memory(w);
    PROF_TRY(begin_symbolize(w));
    PROF_TRY(read_unnamed_frames(w));
    prof_array_sort(&w->frames, by_source_and_address);
    PROF_TRY(name_files(w));
    return end_symbolize(w);
}

enum prof_status prof_symbolize(struct prof_store *store,
                                const struct prof_symbolize_options *options,
                                struct prof_symbolize_result *result, struct prof_error *err)
{
    struct prof_error unwanted;
    struct work w = {.db = prof_store_db(store),
                     .store = store,
                     .options = options,
                     .result = result,
                     .err = err ? err : &unwanted};
    *result = (struct prof_symbolize_result){0};
    if (!prof_symbolize_has(store))
        return PROF_OK;
    PROF_TRY(run_symbol_sql(&w, "BEGIN IMMEDIATE"));
    enum prof_status status = name_capture_stacks(&w);
    free_symbolize_work(&w);
    if (status)
        sqlite3_exec(w.db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}
