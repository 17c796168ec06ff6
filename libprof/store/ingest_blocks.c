/* Blocks of a framework's caching allocator, out of the files that its hook leaves in the spool
 * folder (collectors/python/pytorch/_perfkit_blocks.py says what is in them). They are not
 * allocations of the driver's: a table of their own, so that no byte is counted twice. Read once,
 * in the transaction that ends the capture. Lines that make no sense are passed over and counted.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/regular.h"
#include "libprof/store/ingest_define.h"
#include "libprof/store/ingest_private.h"
#include "libprof/store/ingest_record.h"
#include "libprof/store/ingest_state.h"
#include "libprof/store/ingest_stack.h"

#define SUFFIX ".blocks"
#define DEEPEST 64
#define MOST_DEVICES 64

struct open_block {
    int64_t row;
    uint64_t start;
};

struct blocks {
    struct prof_ingest *ingest;
    int64_t process, realtime_ns;
    int64_t devices[MOST_DEVICES];          /* row by ordinal; -1 = not asked yet, 0 = none */
    PROF_ARRAY(struct ingest_entry) frames; /* by id - 1 */
    PROF_ARRAY(int64_t) stacks;             /* stack.id by id - 1 */
    struct prof_map live;                   /* device and address -> block.id */
    int64_t bad;
};

/* 0 = no row; -1 = failed */
static int64_t query_block_number(struct prof_ingest *ingest, enum ingest_sql which, int64_t a,
                                  int64_t b)
{
    sqlite3_stmt *sql = ingest->sql[which];
    ingest_bind(sql, 1, a);
    if (sqlite3_bind_parameter_count(sql) > 1)
        ingest_bind(sql, 2, b);
    int code = sqlite3_step(sql);
    int64_t answer = code == SQLITE_ROW ? sqlite3_column_int64(sql, 0) : 0;
    sqlite3_reset(sql);
    return code == SQLITE_ROW || code == SQLITE_DONE ? answer : -1;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* `count` decimal numbers from *at on, each after one space; false when they are not all there. */
static bool numbers(const char **at, int64_t *out, int count)
{
    for (int i = 0; i < count; i++) {
        char *end;
        if (**at != ' ')
            return false;
        out[i] = strtoll(*at + 1, &end, 10);
        if (end == *at + 1 || out[i] < 0)
            return false;
        *at = end;
    }
    return true;
}

/* F ID LINE FILE<TAB>FUNCTION */
static bool add_block_frame(struct blocks *b, const char *at)
{
    int64_t n[2];
    const char *tab;
    if (!numbers(&at, n, 2) || *at != ' ' || !(tab = strchr(at, '\t')) ||
        n[0] != (int64_t)b->frames.count + 1) {
        b->bad++;
        return true;
    }
    const char *file = at + 1, *name = tab + 1;
    struct ingest_entry *entry = prof_array_add(&b->frames);
    if (!entry)
        return false;
    *entry = (struct ingest_entry){
        .kind = PROF_STORE_FRAME_PYTHON,
        .function = ingest_string_row(b->ingest, name, strlen(name)),
        .file = tab > file ? ingest_string_row(b->ingest, file, (size_t)(tab - file)) : 0,
        .line = n[1] > INT32_MAX ? 0 : (uint32_t)n[1],
    };
    return entry->function > 0 && entry->file >= 0;
}

/* S ID FRAME,FRAME,... */
static bool add_block_stack(struct blocks *b, const char *at)
{
    struct ingest_entry entries[DEEPEST];
    size_t count = 0;
    int64_t id;
    bool good = numbers(&at, &id, 1) && id == (int64_t)b->stacks.count + 1 && *at == ' ';
    while (good && count < DEEPEST && *at) {
        char *end;
        int64_t frame = strtoll(at + 1, &end, 10);
        good = end > at + 1 && frame > 0 && frame <= (int64_t)b->frames.count;
        if (good)
            entries[count++] = b->frames.data[frame - 1];
        at = end;
    }
    if (!good || !count) {
        b->bad++;
        return true;
    }
    int64_t row = ingest_stack(b->ingest, b->process, entries, count);
    int64_t *slot = row > 0 ? prof_array_add(&b->stacks) : NULL;
    if (slot)
        *slot = row;
    return slot != NULL;
}

/* Microseconds since 1970 as ns since the capture's start. */
static bool relative(const struct blocks *b, int64_t us, int64_t *ns)
{
    return !__builtin_mul_overflow(us, 1000, ns) &&
           !__builtin_sub_overflow(*ns, b->realtime_ns, ns);
}

static uint64_t block_key(int64_t device, int64_t address)
{
    return (uint64_t)address * 0x9e3779b97f4a7c15ull + (uint64_t)device;
}

static bool block_device_row(struct blocks *b, int64_t ordinal, int64_t *row)
{
    *row = 0;
    if (ordinal >= MOST_DEVICES)
        return true;
    if (b->devices[ordinal] < 0)
        b->devices[ordinal] =
            query_block_number(b->ingest, INGEST_SQL_DEVICE_AT, b->process, ordinal);
    *row = b->devices[ordinal];
    return *row >= 0;
}

/* A DEVICE US ADDRESS BYTES STACK */
static bool ingest_block_line(struct blocks *b, const char *at)
{
    int64_t n[5], start, device;
    if (!numbers(&at, n, 5) || !relative(b, n[1], &start) || n[4] > (int64_t)b->stacks.count) {
        b->bad++;
        return true;
    }
    if (!block_device_row(b, n[0], &device))
        return false;
    sqlite3_stmt *sql = b->ingest->insert[SCHEMA_block];
    ingest_bind(sql, COLUMN_AT(block, process), b->process);
    ingest_bind_known(sql, COLUMN_AT(block, device), device);
    ingest_bind(sql, COLUMN_AT(block, start), start);
    ingest_bind(sql, COLUMN_AT(block, bytes), n[3]);
    ingest_bind(sql, COLUMN_AT(block, address), n[2]);
    ingest_bind_known(sql, COLUMN_AT(block, stack), n[4] ? b->stacks.data[n[4] - 1] : 0);
    return ingest_insert(b->ingest, SCHEMA_block) &&
           prof_map_put(&b->live, block_key(n[0], n[2]),
                        (uint64_t)sqlite3_last_insert_rowid(b->ingest->db));
}

/* D DEVICE US ADDRESS. Of blocks from before the history begins nothing is known. */
static bool end_block(struct blocks *b, const char *at)
{
    int64_t n[3], end;
    uint64_t row;
    if (!numbers(&at, n, 3) || !relative(b, n[1], &end)) {
        b->bad++;
        return true;
    }
    if (!prof_map_remove(&b->live, block_key(n[0], n[2]), &row))
        return true;
    ingest_bind(b->ingest->sql[INGEST_SQL_BLOCK_END], 1, (int64_t)row);
    ingest_bind(b->ingest->sql[INGEST_SQL_BLOCK_END], 2, end);
    return ingest_run(b->ingest, INGEST_SQL_BLOCK_END);
}

static bool take_line(struct blocks *b, const char *line)
{
    switch (line[0]) {
    case 'F':
        return add_block_frame(b, line + 1);
    case 'S':
        return add_block_stack(b, line + 1);
    case 'A':
        return ingest_block_line(b, line + 1);
    case 'D':
        return end_block(b, line + 1);
    default:
        b->bad++;
        return true;
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool take_lines(struct blocks *b, FILE *in)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    bool ok = true;
    while (ok && (length = getline(&line, &room, in)) > 0) {
        if (line[length - 1] == '\n')
            line[length - 1] = 0;
        ok = take_line(b, line);
    }
    free(line);
    return ok;
}

static bool note_bad_lines(struct blocks *b)
{
    static const char note[] = "lines of PyTorch's memory history made no sense: left out";
    return !b->bad ||
           ingest_health_line(b->ingest, b->process, PROF_HEALTH_block_bad, NULL, &b->bad, note);
}

static bool take_file(struct prof_ingest *ingest, FILE *in)
{
    struct blocks b = {.ingest = ingest};
    int64_t pid;
    if (fscanf(in, "perfkit-blocks 1 %" SCNd64 "\n", &pid) != 1)
        return true;
    b.process = query_block_number(ingest, INGEST_SQL_PROCESS_LAST, pid, 0);
    b.realtime_ns = query_block_number(ingest, INGEST_SQL_REALTIME, 0, 0);
    for (int i = 0; i < MOST_DEVICES; i++)
        b.devices[i] = -1;
    bool ok = b.process >= 0 && b.realtime_ns >= 0;
    if (ok && b.process)
        ok = take_lines(&b, in) && note_bad_lines(&b);
    prof_array_free(&b.frames);
    prof_array_free(&b.stacks);
    prof_map_free(&b.live);
    return ok;
}

bool ingest_blocks_finish(struct prof_ingest *ingest)
{
    DIR *folder = opendir(ingest->directory);
    bool ok = true;
    for (struct dirent *entry; ok && folder && (entry = readdir(folder));) {
        char path[4096];
        size_t length = strlen(entry->d_name), suffix = strlen(SUFFIX);
        if (length <= suffix || strcmp(entry->d_name + length - suffix, SUFFIX) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", ingest->directory, entry->d_name);
        FILE *in = prof_read_regular(path);
        ok = !in || take_file(ingest, in);
        if (in)
            fclose(in);
    }
    if (folder)
        closedir(folder);
    return ok;
}
