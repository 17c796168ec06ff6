/* Allocations: a row is written when one is made and completed when it is freed. Records of several
 * threads may arrive out of order, and addresses are used again: a free belongs to the youngest
 * allocation of its id that is not younger than the free. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/regular.h"
#include "libprof/store/ingest_private.h"
#include "libprof/store/ingest_stack.h"

static uint64_t live_key(uint32_t source, uint64_t id)
{
    uint64_t h = (id + source) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 32);
}

bool ingest_live_add(struct ingest_spool *spool, uint32_t source, uint64_t id, uint64_t start,
                     int64_t row)
{
    uint64_t key = live_key(source, id);
    uint64_t *older = prof_map_get(&spool->live, key);
    uint32_t next = older ? (uint32_t)*older : 0;
    size_t at;
    if (spool->live_holes.count)
        at = spool->live_holes.data[--spool->live_holes.count];
    else {
        if (!prof_array_reserve(&spool->live_list, 1))
            return false;
        at = spool->live_list.count++;
    }
    spool->live_list.data[at] = (struct ingest_live){start, row, source, id, next};
    return prof_map_put(&spool->live, key, at + 1);
}

/* Take the allocation that a free at `time` ends; 0 = none known yet. */
static int64_t live_take(struct ingest_spool *spool, uint32_t source, uint64_t id, uint64_t time)
{
    uint64_t key = live_key(source, id);
    uint64_t *head = prof_map_get(&spool->live, key);
    uint32_t best = 0, before_best = 0, before = 0;
    for (uint32_t at = head ? (uint32_t)*head : 0; at;) {
        const struct ingest_live *live = &spool->live_list.data[at - 1];
        if (live->source == source && live->id == id && live->start <= time &&
            (!best || live->start > spool->live_list.data[best - 1].start)) {
            best = at;
            before_best = before;
        }
        before = at;
        at = live->next;
    }
    if (!best)
        return 0;
    uint32_t next = spool->live_list.data[best - 1].next;
    if (before_best)
        spool->live_list.data[before_best - 1].next = next;
    else if (next)
        *head = next;
    else
        prof_map_remove(&spool->live, key, NULL);
    uint32_t *hole = prof_array_add(&spool->live_holes);
    if (hole)
        *hole = best - 1;
    return spool->live_list.data[best - 1].row;
}

static enum prof_status write_freed(struct prof_ingest *ingest, struct ingest_spool *spool,
                                    int64_t row, uint64_t time, uint32_t tid)
{
    struct ingest_thread *thread = ingest_thread_of(ingest, spool, tid);
    if (!thread)
        return ingest->error.status;
    sqlite3_stmt *sql = ingest->sql[INGEST_SQL_FREED];
    ingest_bind(sql, 1, row);
    ingest_bind(sql, 2, (int64_t)(time - ingest->zero_ns));
    ingest_bind(sql, 3, thread->row);
    spool->tally[TALLY_FREE_RECORDED]++;
    return ingest_run(ingest, INGEST_SQL_FREED);
}

enum prof_status ingest_alloc(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                              const struct wire_alloc *alloc)
{
    uint32_t source = wire_space(alloc->head.flags);
    struct ingest_row *out;
    PROF_TRY(ingest_record_begin(ingest, spool, tid, &alloc->head, &out));
    row_set(out, COLUMN_AT(allocation, source), source);
    PROF_TRY(ingest_row_end(ingest, SCHEMA_allocation));
    int64_t row = sqlite3_last_insert_rowid(ingest->db);
    spool->tally[TALLY_ALLOC_RECORDED]++;

    /* Its free may have come before it. */
    size_t best = spool->freed.count;
    for (size_t i = 0; i < spool->freed.count; i++) {
        const struct wire_free *freed = &spool->freed.data[i].free;
        if (wire_space(freed->head.flags) == source && freed->id == alloc->id &&
            freed->time >= alloc->time &&
            (best == spool->freed.count || freed->time < spool->freed.data[best].free.time))
            best = i;
    }
    if (best == spool->freed.count)
        return ingest_memory(ingest, ingest_live_add(spool, source, alloc->id, alloc->time, row),
                             "allocations");
    struct ingest_freed freed = spool->freed.data[best];
    spool->freed.data[best] = spool->freed.data[--spool->freed.count];
    return write_freed(ingest, spool, row, freed.free.time, freed.tid);
}

enum prof_status ingest_alloc_failed(struct prof_ingest *ingest, struct ingest_spool *spool,
                                     uint32_t tid, const struct wire_alloc_failed *failed)
{
    struct ingest_row *row;
    PROF_TRY(ingest_record_begin(ingest, spool, tid, &failed->head, &row));
    /* A mistaken request may have any size. */
    row_known(row, COLUMN_AT(allocation_failure, bytes),
              failed->bytes > INT64_MAX ? INT64_MAX : (int64_t)failed->bytes);
    row_set(row, COLUMN_AT(allocation_failure, result), failed->result);
    row_set(row, COLUMN_AT(allocation_failure, source), wire_space(failed->head.flags));
    int64_t thread = row->values[COLUMN_AT(allocation_failure, thread) - 1];
    PROF_TRY(ingest_row_end(ingest, SCHEMA_allocation_failure));
    return ingest_ring_trigger(ingest, PROF_RING_ALLOCATION, spool->process, thread);
}

enum prof_status ingest_free(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                             const struct wire_free *record)
{
    if (record->tid)
        tid = record->tid;
    int64_t row = live_take(spool, wire_space(record->head.flags), record->id, record->time);
    if (row)
        return write_freed(ingest, spool, row, record->time, tid);
    /* Bounded: frees of memory allocated before the capture never find their allocation. */
    if (spool->freed.count >= 4096) {
        spool->tally[TALLY_FREE_UNMATCHED]++;
        spool->freed.data[0] = spool->freed.data[--spool->freed.count];
    }
    struct ingest_freed *kept = prof_array_add(&spool->freed);
    if (!kept)
        return ingest_no_memory(ingest, "frees that wait for their allocation");
    *kept = (struct ingest_freed){tid, *record};
    return PROF_OK;
}

/* ---- blocks of a framework ------------------------------------------------------------------- */

/* Blocks of a framework's caching allocator, out of the files that its hook leaves in the spool
 * folder (collectors/python/pytorch/_perfkit_blocks.py says what is in them). They are not
 * allocations of the driver's: a table of their own, so that no byte is counted twice. Read once,
 * in the transaction that ends the capture. Lines that make no sense are passed over and counted.
 */

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
    int64_t devices[MOST_DEVICES];          /* row by ordinal; -1 = not looked up yet, 0 = none */
    PROF_ARRAY(struct ingest_entry) frames; /* by id - 1 */
    PROF_ARRAY(int64_t) stacks;             /* stack.id by id - 1 */
    struct prof_map live;                   /* device and address -> block.id */
    int64_t bad;
};

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
static enum prof_status add_block_frame(struct blocks *b, const char *at)
{
    int64_t n[2];
    const char *tab;
    if (!numbers(&at, n, 2) || *at != ' ' || !(tab = strchr(at, '\t')) ||
        n[0] != (int64_t)b->frames.count + 1) {
        b->bad++;
        return PROF_OK;
    }
    const char *file = at + 1, *name = tab + 1;
    struct ingest_entry *entry = prof_array_add(&b->frames);
    if (!entry)
        return ingest_no_memory(b->ingest, "Python frames");
    *entry = (struct ingest_entry){
        .kind = PROF_STORE_FRAME_PYTHON,
        .function = ingest_string_row(b->ingest, name, strlen(name)),
        .file = tab > file ? ingest_string_row(b->ingest, file, (size_t)(tab - file)) : 0,
        .line = n[1] > INT32_MAX ? 0 : (uint32_t)n[1],
    };
    return b->ingest->error.status; /* of a text that has no row */
}

/* S ID FRAME,FRAME,... */
static enum prof_status add_block_stack(struct blocks *b, const char *at)
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
        return PROF_OK;
    }
    int64_t row = ingest_stack(b->ingest, b->process, entries, count);
    if (row <= 0)
        return b->ingest->error.status;
    int64_t *slot = prof_array_add(&b->stacks);
    if (!slot)
        return ingest_no_memory(b->ingest, "stacks of blocks");
    *slot = row;
    return PROF_OK;
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

static enum prof_status block_device_row(struct blocks *b, int64_t ordinal, int64_t *row)
{
    *row = 0;
    if (ordinal >= MOST_DEVICES)
        return PROF_OK;
    if (b->devices[ordinal] < 0) {
        ingest_bind(b->ingest->sql[INGEST_SQL_DEVICE_AT], 1, b->process);
        ingest_bind(b->ingest->sql[INGEST_SQL_DEVICE_AT], 2, ordinal);
        PROF_TRY(ingest_query_number(b->ingest, INGEST_SQL_DEVICE_AT, &b->devices[ordinal]));
    }
    *row = b->devices[ordinal];
    return PROF_OK;
}

/* A DEVICE US ADDRESS BYTES STACK */
static enum prof_status ingest_block_line(struct blocks *b, const char *at)
{
    int64_t n[5], start, device;
    if (!numbers(&at, n, 5) || !relative(b, n[1], &start) || n[4] > (int64_t)b->stacks.count) {
        b->bad++;
        return PROF_OK;
    }
    PROF_TRY(block_device_row(b, n[0], &device));
    sqlite3_stmt *sql = b->ingest->insert[SCHEMA_block];
    ingest_bind(sql, COLUMN_AT(block, process), b->process);
    ingest_bind_known(sql, COLUMN_AT(block, device), device);
    ingest_bind(sql, COLUMN_AT(block, start), start);
    ingest_bind(sql, COLUMN_AT(block, bytes), n[3]);
    ingest_bind(sql, COLUMN_AT(block, address), n[2]);
    ingest_bind_known(sql, COLUMN_AT(block, stack), n[4] ? b->stacks.data[n[4] - 1] : 0);
    PROF_TRY(ingest_insert(b->ingest, SCHEMA_block));
    if (!prof_map_put(&b->live, block_key(n[0], n[2]),
                      (uint64_t)sqlite3_last_insert_rowid(b->ingest->db)))
        return ingest_no_memory(b->ingest, "blocks");
    return PROF_OK;
}

/* D DEVICE US ADDRESS. Of blocks from before the history begins nothing is known. */
static enum prof_status end_block(struct blocks *b, const char *at)
{
    int64_t n[3], end;
    uint64_t row;
    if (!numbers(&at, n, 3) || !relative(b, n[1], &end)) {
        b->bad++;
        return PROF_OK;
    }
    if (!prof_map_remove(&b->live, block_key(n[0], n[2]), &row))
        return PROF_OK;
    ingest_bind(b->ingest->sql[INGEST_SQL_BLOCK_END], 1, (int64_t)row);
    ingest_bind(b->ingest->sql[INGEST_SQL_BLOCK_END], 2, end);
    return ingest_run(b->ingest, INGEST_SQL_BLOCK_END);
}

static enum prof_status take_line(struct blocks *b, const char *line)
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
        return PROF_OK;
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static enum prof_status read_block_lines(struct blocks *b, FILE *in)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    enum prof_status status = PROF_OK;
    while (!status && (length = getline(&line, &room, in)) > 0) {
        if (line[length - 1] == '\n')
            line[length - 1] = 0;
        status = take_line(b, line);
    }
    free(line);
    if (!status && b->bad)
        status = ingest_health_line(b->ingest, b->process, PROF_HEALTH_block_bad, NULL, &b->bad,
                                    "lines of PyTorch's memory history made no sense: left out");
    return status;
}

static enum prof_status read_block_file(struct prof_ingest *ingest, FILE *in)
{
    struct blocks b = {.ingest = ingest};
    int64_t pid;
    if (fscanf(in, "perfkit-blocks 1 %" SCNd64 "\n", &pid) != 1)
        return PROF_OK;
    ingest_bind(ingest->sql[INGEST_SQL_PROCESS_LAST], 1, pid);
    ingest_bind(ingest->sql[INGEST_SQL_REALTIME], 1, 0);
    PROF_TRY(ingest_query_number(ingest, INGEST_SQL_PROCESS_LAST, &b.process));
    PROF_TRY(ingest_query_number(ingest, INGEST_SQL_REALTIME, &b.realtime_ns));
    for (int i = 0; i < MOST_DEVICES; i++)
        b.devices[i] = -1;
    enum prof_status status = b.process ? read_block_lines(&b, in) : PROF_OK;
    prof_array_free(&b.frames);
    prof_array_free(&b.stacks);
    prof_map_free(&b.live);
    return status;
}

enum prof_status ingest_blocks_finish(struct prof_ingest *ingest)
{
    PROF_DIR_CLOSED DIR *folder = opendir(ingest->directory);
    enum prof_status status = folder ? PROF_OK : ingest_folder_unreadable(ingest);
    for (struct dirent *entry; !status && folder && (entry = readdir(folder));) {
        char path[4096];
        if (!prof_ends_with(entry->d_name, SUFFIX))
            continue;
        snprintf(path, sizeof path, "%s/%s", ingest->directory, entry->d_name);
        PROF_FILE_CLOSED FILE *in = prof_read_regular(path);
        if (!in)
            continue;
        status = read_block_file(ingest, in);
    }
    return status;
}
