/* Stacks become a tree of rows: a stack is its innermost frame and the stack of its callers, so
 * what two stacks share is in the file once, and a row names a whole call path. Frames are
 * addresses as of the module that is mapped there; names come after the run (symbolize.c). */
#include <stdio.h>
#include <string.h>

#include "libprof/store/ingest_private.h"
#include "libprof/store/ingest_stack.h"
#include "libprof/store/python_lines.h"

/* What makes two frames the same row. */
struct frame_key {
    int64_t process;
    uint64_t address, module; /* native; for Python the function and the file */
    int64_t function;         /* native, where it came with a name */
    uint32_t kind, line;
};

static uint64_t stack_key(int64_t parent, int64_t frame)
{
    return (uint64_t)parent << 32 | (uint32_t)frame;
}

static struct frame_key frame_key_of(int64_t process, const struct ingest_entry *entry,
                                     int64_t module)
{
    struct frame_key key;
    memset(&key, 0, sizeof key); /* it is compared by its bytes */
    key.process = process;
    key.kind = entry->kind;
    if (entry->kind == PROF_STORE_FRAME_PYTHON) {
        key.address = (uint64_t)entry->function;
        key.module = (uint64_t)entry->file;
        key.line = entry->line;
    } else if (entry->kind != PROF_STORE_FRAME_MISSING) {
        key.address = entry->address;
        key.module = (uint64_t)module;
        key.function = entry->function;
    }
    return key;
}

static enum prof_status write_symbol(struct prof_ingest *ingest, const struct ingest_entry *entry)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_symbol];
    ingest_bind(sql, COLUMN_AT(symbol, frame), ingest->last_frame);
    ingest_bind(sql, COLUMN_AT(symbol, level), 0);
    ingest_bind(sql, COLUMN_AT(symbol, function), entry->function);
    ingest_bind_known(sql, COLUMN_AT(symbol, file), entry->file);
    ingest_bind_known(sql, COLUMN_AT(symbol, line), entry->line);
    return ingest_insert(ingest, SCHEMA_symbol);
}

/* Numbers of frames and stacks have 32 bits in memory. */
static bool is_full(struct prof_ingest *ingest, int64_t last)
{
    if (last < UINT32_MAX)
        return false;
    prof_fail(&ingest->error, PROF_FULL,
              "cannot write %s: it has more than 4,294,967,294 different call stacks",
              prof_store_path(ingest->store));
    return true;
}

static int64_t frame_row(struct prof_ingest *ingest, int64_t process,
                         const struct ingest_entry *entry)
{
    bool native = entry->kind == PROF_STORE_FRAME_NATIVE;
    const struct ingest_object *object =
        native && !entry->module ? ingest_object_at(ingest, process, entry->address) : NULL;
    int64_t module = object ? object->row : entry->module;
    struct frame_key key = frame_key_of(process, entry, module);
    uint32_t *known = prof_names_get(&ingest->frames, (const char *)&key, sizeof key);
    if (known)
        return *known;
    if (is_full(ingest, ingest->last_frame))
        return 0;
    sqlite3_stmt *sql = ingest->insert[SCHEMA_frame];
    ingest_bind(sql, COLUMN_AT(frame, id), ++ingest->last_frame);
    ingest_bind(sql, COLUMN_AT(frame, process), process);
    ingest_bind(sql, COLUMN_AT(frame, kind), entry->kind);
    ingest_bind_if(sql, COLUMN_AT(frame, address), native || entry->kind == PROF_STORE_FRAME_KERNEL,
                   (int64_t)entry->address);
    ingest_bind_known(sql, COLUMN_AT(frame, module), module);
    if (object)
        ingest_bind(sql, COLUMN_AT(frame, offset), (int64_t)(entry->address - object->start));
    else
        sqlite3_bind_null(sql, COLUMN_AT(frame, offset));
    if (ingest_insert(ingest, SCHEMA_frame) != PROF_OK)
        return 0;
    bool put = prof_names_put(&ingest->frames, (const char *)&key, sizeof key,
                              (uint32_t)ingest->last_frame);
    enum prof_status status = ingest_memory(ingest, put, "frames of stacks");
    if (!status && entry->function)
        status = write_symbol(ingest, entry);
    return status ? 0 : ingest->last_frame;
}

static int64_t stack_row(struct prof_ingest *ingest, int64_t parent, int64_t frame, int64_t depth)
{
    uint64_t *known = prof_map_get(&ingest->stacks, stack_key(parent, frame));
    if (known)
        return (int64_t)*known;
    if (is_full(ingest, ingest->last_stack))
        return 0;
    sqlite3_stmt *sql = ingest->insert[SCHEMA_stack];
    ingest_bind(sql, COLUMN_AT(stack, id), ++ingest->last_stack);
    ingest_bind_known(sql, COLUMN_AT(stack, parent), parent);
    ingest_bind(sql, COLUMN_AT(stack, frame), frame);
    ingest_bind(sql, COLUMN_AT(stack, depth), depth);
    if (ingest_insert(ingest, SCHEMA_stack) != PROF_OK)
        return 0;
    bool put =
        prof_map_put(&ingest->stacks, stack_key(parent, frame), (uint64_t)ingest->last_stack);
    return ingest_memory(ingest, put, "stacks") ? 0 : ingest->last_stack;
}

int64_t ingest_stack(struct prof_ingest *ingest, int64_t process,
                     const struct ingest_entry *entries, size_t count)
{
    int64_t row = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t frame = frame_row(ingest, process, &entries[count - 1 - i]);
        row = frame ? stack_row(ingest, row, frame, (int64_t)i + 1) : 0;
        if (!row)
            return 0;
    }
    return count ? row : -1;
}

/* After a restart: what is in the file is known again. */
static enum prof_status load_frames(struct prof_ingest *ingest)
{
    sqlite3_stmt *row;
    enum prof_status status = ingest_query(
        ingest,
        "SELECT f.id,f.process,f.kind,f.address,f.module,s.function,s.file,s.line FROM frame f "
        "LEFT JOIN symbol s ON f.kind=2 AND s.frame=f.id ORDER BY f.id",
        &row);
    while (!status && sqlite3_step(row) == SQLITE_ROW) {
        struct ingest_entry entry = {.kind = (enum prof_store_frame)sqlite3_column_int(row, 2),
                                     .address = (uint64_t)sqlite3_column_int64(row, 3),
                                     .function = sqlite3_column_int64(row, 5),
                                     .file = sqlite3_column_int64(row, 6),
                                     .line = (uint32_t)sqlite3_column_int64(row, 7)};
        struct frame_key key =
            frame_key_of(sqlite3_column_int64(row, 1), &entry, sqlite3_column_int64(row, 4));
        ingest->last_frame = sqlite3_column_int64(row, 0);
        bool put = prof_names_put(&ingest->frames, (const char *)&key, sizeof key,
                                  (uint32_t)ingest->last_frame);
        status = ingest_memory(ingest, put, "frames of stacks");
    }
    return ingest_query_end(ingest, row, status);
}

enum prof_status ingest_stacks_load(struct prof_ingest *ingest)
{
    sqlite3_stmt *row;
    ingest->last_frame = ingest->last_stack = 0;
    PROF_TRY(load_frames(ingest));
    enum prof_status status =
        ingest_query(ingest, "SELECT id,parent,frame FROM stack ORDER BY id", &row);
    while (!status && sqlite3_step(row) == SQLITE_ROW) {
        ingest->last_stack = sqlite3_column_int64(row, 0);
        uint64_t key = stack_key(sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2));
        bool put = prof_map_put(&ingest->stacks, key, (uint64_t)ingest->last_stack);
        status = ingest_memory(ingest, put, "stacks");
    }
    return ingest_query_end(ingest, row, status);
}

void ingest_stacks_free(struct prof_ingest *ingest)
{
    prof_names_free(&ingest->frames);
    prof_map_free(&ingest->stacks);
}

/* ---- Python ---------------------------------------------------------------------------------- */

/* Python frames of stacks. The collector sends each code object once, with the interpreter's table
 * of lines, and of a frame only which instruction of which code it was at; here that becomes a
 * function, a file and a line. A killed perfkit finds the definitions again in the state of the
 * capture. */

#define MOST_TABLE (1u << 20) /* bytes; the collector sends no more than 64 KiB */
static const char unnamed[] = "(Python)";

static struct ingest_code *code_of(struct ingest_spool *spool, uint32_t id)
{
    const uint64_t *at = id ? prof_map_get(&spool->code_at, id) : NULL;
    return at ? &spool->codes.data[*at] : NULL;
}

static struct ingest_code *new_code(struct ingest_spool *spool, const struct wire_python_code *code)
{
    struct ingest_code *made = prof_array_add(&spool->codes);
    if (!made || !prof_map_put(&spool->code_at, code->head.aux, spool->codes.count - 1))
        return NULL;
    *made = (struct ingest_code){.function = ingest_global(spool, code->function, WIRE_STRING),
                                 .file = ingest_global(spool, code->file, WIRE_STRING),
                                 .first_line = code->first_line,
                                 .version = code->version};
    return made;
}

/* Parts come in order: one that does not fit is of a damaged spool and is left out, with what
 * follows. */
static bool add_python_code_part(struct ingest_spool *spool, const struct wire_python_code *code)
{
    struct ingest_code *known = code_of(spool, code->head.aux);
    if (!known && code->head.aux)
        known = new_code(spool, code);
    if (!known)
        return code->head.aux == 0;
    if (code->at != known->table.count || known->table.count + code->bytes > MOST_TABLE)
        return true;
    return prof_array_append(&known->table, code->table, code->bytes);
}

enum prof_status ingest_python_code(struct prof_ingest *ingest, struct ingest_spool *spool,
                                    const struct wire_python_code *code)
{
    char key[64];
    snprintf(key, sizeof key, "python %lld %010u %07u", (long long)spool->id, code->head.aux,
             code->at);
    sqlite3_stmt *sql = ingest->sql[INGEST_SQL_STATE];
    ingest_bind_text(ingest, sql, 1, key);
    ingest_check(ingest, sqlite3_bind_blob(sql, 2, code, code->head.size, SQLITE_STATIC));
    PROF_TRY(ingest_run(ingest, INGEST_SQL_STATE));
    return ingest_memory(ingest, add_python_code_part(spool, code), "Python code");
}

enum prof_status ingest_python_load(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    sqlite3_stmt *sql;
    char low[48], high[48];
    snprintf(low, sizeof low, "python %lld ", (long long)spool->id);
    snprintf(high, sizeof high, "python %lld!", (long long)spool->id); /* '!' follows ' ' */
    enum prof_status status = ingest_query(
        ingest, "SELECT value FROM ingest_state WHERE key>=?1 AND key<?2 ORDER BY key", &sql);
    sqlite3_bind_text(sql, 1, low, -1, SQLITE_STATIC);
    sqlite3_bind_text(sql, 2, high, -1, SQLITE_STATIC);
    while (!status && sqlite3_step(sql) == SQLITE_ROW) {
        _Alignas(8) unsigned char record[WIRE_MAX_RECORD];
        size_t bytes = (size_t)sqlite3_column_bytes(sql, 0), offset = 0;
        bool damaged = false;
        if (bytes > sizeof record)
            continue;
        memcpy(record, sqlite3_column_blob(sql, 0), bytes);
        const struct wire_head *head = prof_spool_next(record, bytes, &offset, &damaged);
        if (head && head->type == WIRE_PYTHON_CODE)
            status = ingest_memory(
                ingest,
                add_python_code_part(spool, (const struct wire_python_code *)(const void *)head),
                "Python code");
    }
    return ingest_query_end(ingest, sql, status);
}

enum prof_status ingest_python_entry(struct prof_ingest *ingest, struct ingest_spool *spool,
                                     uint64_t value, struct ingest_entry *entry)
{
    const struct ingest_code *code = code_of(spool, (uint32_t)(value >> 32));
    *entry = (struct ingest_entry){.kind = PROF_STORE_FRAME_PYTHON};
    if (code) {
        entry->function = code->function;
        entry->file = code->file;
        entry->line = prof_python_line(code->version, code->table.data, code->table.count,
                                       code->first_line, (uint32_t)value);
    }
    if (!entry->function)
        entry->function = ingest_string_row(ingest, unnamed, strlen(unnamed));
    return ingest->error.status; /* of a text that has no row */
}

void ingest_python_free(struct ingest_spool *spool)
{
    for (size_t i = 0; i < spool->codes.count; i++)
        prof_array_free(&spool->codes.data[i].table);
    prof_array_free(&spool->codes);
    prof_map_free(&spool->code_at);
}
