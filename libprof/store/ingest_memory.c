/* Allocations: a row is written when one is made and completed when it is freed. Records of several
 * threads may arrive out of order, and addresses are used again: a free belongs to the youngest
 * allocation of its id that is not younger than the free. */
#include "libprof/store/ingest_private.h"

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
