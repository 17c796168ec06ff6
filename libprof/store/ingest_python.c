/* Python frames of stacks. The collector sends each code object once, with the interpreter's table
 * of lines, and of a frame only which instruction of which code it was at; here that becomes a
 * function, a file and a line. A killed perfkit finds the definitions again in the state of the
 * capture. */
#include <stdio.h>
#include <string.h>

#include "libprof/store/python_lines.h"
#include "libprof/store/ingest_define.h"
#include "libprof/store/ingest_private.h"
#include "libprof/store/ingest_stack.h"

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
    if (code->bytes == 0)
        return true;
    if (!prof_array_reserve(&known->table, code->bytes))
        return false;
    memcpy(known->table.data + known->table.count, code->table, code->bytes);
    known->table.count += code->bytes;
    return true;
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
