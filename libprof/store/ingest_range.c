/* NVTX: pushes wait on a stack per thread for their pop, started ranges in a list for their end. A
 * pop closes the innermost open range of its domain. A range may end on another thread than it
 * started on, and threads are read one after the other, so an end may come before its start. */
#include <math.h>
#include <string.h>

#include "libprof/store/ingest_private.h"

/* Programs that forget to close their ranges leave ever more of them open. */
#define MOST_OPEN 65536u

/* Ends that wait for their start. Most come within the same reading; one whose start was dropped
 * would wait for ever, so there is a bound. */
#define MOST_ENDED 65536u

static void bind_number(sqlite3_stmt *sql, int at, uint8_t type, uint64_t bits)
{
    union {
        uint64_t bits;
        int64_t i64;
        double f64;
        uint32_t u32;
        int32_t i32;
        float f32;
    } value = {.bits = bits};
    switch (type) {
    case WIRE_PAYLOAD_U64:
    case WIRE_PAYLOAD_I64:
        sqlite3_bind_int64(sql, at, value.i64);
        break;
    case WIRE_PAYLOAD_F64:
        sqlite3_bind_double(sql, at, value.f64);
        break;
    case WIRE_PAYLOAD_U32:
        sqlite3_bind_int64(sql, at, value.u32);
        break;
    case WIRE_PAYLOAD_I32:
        sqlite3_bind_int64(sql, at, value.i32);
        break;
    case WIRE_PAYLOAD_F32:
        sqlite3_bind_double(sql, at, (double)value.f32);
        break;
    default:
        sqlite3_bind_null(sql, at);
    }
}

static void bind_payload(sqlite3_stmt *sql, int at, const struct wire_range *range)
{
    bind_number(sql, at, range->head.flags, range->payload);
}

static enum prof_status write_range_inputs(struct prof_ingest *ingest, struct ingest_spool *spool,
                                           int64_t range, const struct ingest_field *field)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_range_inputs];
    ingest_bind(sql, COLUMN_AT(range_inputs, range), range);
    ingest_bind_known(sql, COLUMN_AT(range_inputs, inputs),
                      ingest_global(spool, (uint32_t)field->value, WIRE_STRING));
    return ingest_insert(ingest, SCHEMA_range_inputs);
}

static enum prof_status write_range_field(struct prof_ingest *ingest, struct ingest_spool *spool,
                                          int64_t range, const struct ingest_field *field)
{
    if (field->type == WIRE_PAYLOAD_INPUTS)
        return write_range_inputs(ingest, spool, range, field);
    sqlite3_stmt *sql = ingest->insert[SCHEMA_range_field];
    ingest_bind(sql, COLUMN_AT(range_field, range), range);
    ingest_bind_known(sql, COLUMN_AT(range_field, name),
                      ingest_global(spool, field->name, WIRE_STRING));
    if (field->type == WIRE_PAYLOAD_TEXT)
        ingest_bind_local_text(ingest, spool, sql, COLUMN_AT(range_field, value),
                               (uint32_t)field->value);
    else
        bind_number(sql, COLUMN_AT(range_field, value), field->type, field->value);
    return ingest_insert(ingest, SCHEMA_range_field);
}

static enum prof_status write_work(struct prof_ingest *ingest, int64_t range,
                                   const struct wire_work *work)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_work];
    const double values[] = {work->flop, work->bytes_read, work->bytes_written};
    ingest_bind(sql, COLUMN_AT(work, range), range);
    for (int i = 0; i < 3; i++) {
        if (isnan(values[i]))
            sqlite3_bind_null(sql, COLUMN_AT(work, flop) + i);
        else
            sqlite3_bind_double(sql, COLUMN_AT(work, flop) + i, values[i]);
    }
    return ingest_insert(ingest, SCHEMA_work);
}

/* end = 0: still open; depth < 0: start/end range; end_thread 0 = the thread that opened it */
static enum prof_status write_range(struct prof_ingest *ingest, struct ingest_spool *spool,
                                    const struct ingest_open_range *open, uint64_t end, int depth,
                                    uint32_t end_tid)
{
    const struct wire_range *range = &open->range;
    struct ingest_thread *ender = end_tid ? ingest_thread_of(ingest, spool, end_tid) : NULL;
    int64_t end_row = ender && end_tid != open->tid ? ender->row : 0;
    struct ingest_thread *thread = ingest_thread_of(ingest, spool, open->tid);
    if (!thread)
        return ingest->error.status;
    sqlite3_stmt *sql = ingest->insert[SCHEMA_range];
    ingest_bind(sql, COLUMN_AT(range, start), (int64_t)(range->time - ingest->zero_ns));
    ingest_bind_if(sql, COLUMN_AT(range, duration), end, (int64_t)(end - range->time));
    ingest_bind(sql, COLUMN_AT(range, thread), thread->row);
    ingest_bind_known(sql, COLUMN_AT(range, name),
                      ingest_global(spool, range->message, WIRE_STRING));
    ingest_bind_known(sql, COLUMN_AT(range, domain),
                      ingest_global(spool, range->head.aux, WIRE_STRING));
    ingest_bind_if(sql, COLUMN_AT(range, depth), depth >= 0, depth);
    ingest_bind_known(sql, COLUMN_AT(range, end_thread), end_row);
    ingest_bind_known(sql, COLUMN_AT(range, category), range->category);
    ingest_bind_if(sql, COLUMN_AT(range, color), range->has_color, range->color);
    bind_payload(sql, COLUMN_AT(range, payload), range);
    PROF_TRY(ingest_insert(ingest, SCHEMA_range));
    int64_t row = sqlite3_last_insert_rowid(ingest->db);
    if (open->has_work)
        PROF_TRY(write_work(ingest, row, &open->work));
    for (unsigned i = 0; i < open->field_count; i++)
        PROF_TRY(write_range_field(ingest, spool, row, &open->fields[i]));
    spool->unclosed += !end;
    if (end)
        PROF_TRY(ingest_ring_range(ingest, spool, thread->row, open, end));
    return PROF_OK;
}

/* Too many are open: the first half is written as never closed. */
static enum prof_status give_up(struct prof_ingest *ingest, struct ingest_spool *spool,
                                struct ingest_thread *thread)
{
    struct ingest_open_range *open = thread->stack.data;
    size_t half = thread->stack.count / 2;
    for (size_t i = 0; i < half; i++) {
        PROF_TRY(write_range(ingest, spool, &open[i], 0, open[i].depth, 0));
    }
    thread->stack.count -= half;
    memmove(open, open + half, thread->stack.count * sizeof *open);
    return PROF_OK;
}

static enum prof_status push_open_range(struct prof_ingest *ingest, struct ingest_spool *spool,
                                        struct ingest_thread *thread, uint32_t tid,
                                        const struct wire_range *range)
{
    if (thread->stack.count >= MOST_OPEN)
        PROF_TRY(give_up(ingest, spool, thread));
    int depth = 0;
    for (size_t i = thread->stack.count; i-- > 0 && !depth;) {
        if (thread->stack.data[i].range.head.aux == range->head.aux)
            depth = thread->stack.data[i].depth + 1;
    }
    struct ingest_open_range *open = prof_array_add(&thread->stack);
    if (!open)
        return ingest_no_memory(ingest, "open ranges");
    *open = (struct ingest_open_range){.tid = tid, .depth = depth, .range = *range};
    return PROF_OK;
}

static enum prof_status pop(struct prof_ingest *ingest, struct ingest_spool *spool,
                            struct ingest_thread *thread, const struct wire_range_end *end)
{
    size_t at = thread->stack.count;
    while (at > 0 && thread->stack.data[at - 1].range.head.aux != end->head.aux)
        at--;
    if (at == 0)
        return PROF_OK; /* its push was dropped, and counted there */
    struct ingest_open_range open = thread->stack.data[at - 1];
    for (size_t i = at; i < thread->stack.count; i++)
        thread->stack.data[i - 1] = thread->stack.data[i];
    thread->stack.count--;
    return write_range(ingest, spool, &open, end->time, open.depth, 0);
}

static enum prof_status open_started_range(struct prof_ingest *ingest, struct ingest_spool *spool,
                                           uint32_t tid, const struct wire_range *range)
{
    struct ingest_open_range open = {.tid = tid, .range = *range};
    uint64_t at;
    if (prof_map_remove(&spool->ended_at, range->id, &at)) {
        struct ingest_ended ended = spool->ended.data[at];
        struct ingest_ended last = spool->ended.data[--spool->ended.count];
        spool->ended.data[at] = last;
        if (at < spool->ended.count && !prof_map_put(&spool->ended_at, last.end.id, at))
            return ingest_no_memory(ingest, "open ranges");
        return write_range(ingest, spool, &open, ended.end.time, -1, ended.tid);
    }
    struct ingest_open_range *kept = prof_array_add(&spool->started);
    if (!kept)
        return ingest_no_memory(ingest, "open ranges");
    *kept = open;
    return ingest_memory(ingest,
                         prof_map_put(&spool->started_at, range->id, spool->started.count - 1),
                         "open ranges");
}

static enum prof_status end_started(struct prof_ingest *ingest, struct ingest_spool *spool,
                                    uint32_t tid, const struct wire_range_end *end)
{
    uint64_t at;
    if (prof_map_remove(&spool->started_at, end->id, &at)) {
        struct ingest_open_range open = spool->started.data[at];
        struct ingest_open_range last = spool->started.data[--spool->started.count];
        spool->started.data[at] = last;
        if (at < spool->started.count && !prof_map_put(&spool->started_at, last.range.id, at))
            return ingest_no_memory(ingest, "open ranges");
        return write_range(ingest, spool, &open, end->time, -1, tid);
    }
    if (prof_map_get(&spool->ended_at, end->id))
        return PROF_OK; /* ended twice */
    size_t place = spool->ended.count;
    if (place >= MOST_ENDED) {
        place = end->id % MOST_ENDED;
        prof_map_remove(&spool->ended_at, spool->ended.data[place].end.id, NULL);
    } else {
        PROF_TRY(ingest_memory(ingest, prof_array_reserve(&spool->ended, 1), "ends of ranges"));
        spool->ended.count++;
    }
    spool->ended.data[place] = (struct ingest_ended){tid, *end};
    return ingest_memory(ingest, prof_map_put(&spool->ended_at, end->id, place), "ends of ranges");
}

/* The open range that a field belongs to; NULL when its start was dropped, or is yet to be read. */
static struct ingest_open_range *range_of(struct ingest_spool *spool, struct ingest_thread *thread,
                                          const struct wire_field *field)
{
    if (field->id) {
        const uint64_t *at = prof_map_get(&spool->started_at, field->id);
        return at ? &spool->started.data[*at] : NULL;
    }
    for (size_t i = thread->stack.count; i-- > 0;) {
        if (thread->stack.data[i].range.head.aux == field->domain)
            return &thread->stack.data[i];
    }
    return NULL;
}

static void add_open_range_field(struct ingest_open_range *open, const struct wire_field *field)
{
    if (open && open->field_count < INGEST_FIELDS)
        open->fields[open->field_count++] =
            (struct ingest_field){field->value, field->head.aux, field->head.flags};
}

struct wire_field ingest_field_record(const struct ingest_open_range *open, unsigned i)
{
    const struct ingest_field *field = &open->fields[i];
    return (struct wire_field){
        .head = {sizeof(struct wire_field), WIRE_FIELD, field->type, field->name},
        .id = open->range.id,
        .value = field->value,
        .domain = open->range.head.aux,
    };
}

static enum prof_status mark(struct prof_ingest *ingest, struct ingest_spool *spool, int64_t thread,
                             const struct wire_range *range)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_marker];
    ingest_bind(sql, COLUMN_AT(marker, start), (int64_t)(range->time - ingest->zero_ns));
    ingest_bind(sql, COLUMN_AT(marker, thread), thread);
    ingest_bind_known(sql, COLUMN_AT(marker, name),
                      ingest_global(spool, range->message, WIRE_STRING));
    ingest_bind_known(sql, COLUMN_AT(marker, domain),
                      ingest_global(spool, range->head.aux, WIRE_STRING));
    ingest_bind_known(sql, COLUMN_AT(marker, category), range->category);
    ingest_bind_if(sql, COLUMN_AT(marker, color), range->has_color, range->color);
    bind_payload(sql, COLUMN_AT(marker, payload), range);
    return ingest_insert(ingest, SCHEMA_marker);
}

enum prof_status ingest_range(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                              const struct wire_head *head)
{
    const void *record = head;
    struct ingest_thread *thread = ingest_thread_of(ingest, spool, tid);
    if (!thread)
        return ingest->error.status;
    switch (head->type) {
    case WIRE_RANGE_PUSH:
        spool->tally[TALLY_RANGE_PUSHED]++;
        return push_open_range(ingest, spool, thread, tid, record);
    case WIRE_RANGE_POP:
        spool->tally[TALLY_RANGE_POPPED]++;
        return pop(ingest, spool, thread, record);
    case WIRE_RANGE_START:
        spool->tally[TALLY_RANGE_STARTED]++;
        return open_started_range(ingest, spool, tid, record);
    case WIRE_RANGE_END:
        spool->tally[TALLY_RANGE_ENDED]++;
        return end_started(ingest, spool, tid, record);
    case WIRE_MARK:
        spool->tally[TALLY_MARKED]++;
        return mark(ingest, spool, thread->row, record);
    case WIRE_FIELD:
        add_open_range_field(range_of(spool, thread, record), record);
        return PROF_OK;
    default: /* WORK */
        if (thread->stack.count) {
            struct ingest_open_range *top = &thread->stack.data[thread->stack.count - 1];
            top->has_work = 1;
            top->work = *(const struct wire_work *)record;
        }
        return PROF_OK;
    }
}

enum prof_status ingest_ranges_finish(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    for (size_t t = 0; t < spool->thread_list.count; t++) {
        size_t open = spool->thread_list.data[t].stack.count;
        for (size_t i = 0; i < open; i++) { /* which may move the list of threads */
            struct ingest_open_range range = spool->thread_list.data[t].stack.data[i];
            PROF_TRY(write_range(ingest, spool, &range, 0, range.depth, 0));
        }
        spool->thread_list.data[t].stack.count = 0;
    }
    for (size_t i = 0; i < spool->started.count; i++)
        PROF_TRY(write_range(ingest, spool, &spool->started.data[i], 0, -1, 0));
    spool->started.count = 0;
    prof_map_clear(&spool->started_at);
    int64_t count = spool->unclosed;
    spool->unclosed = 0;
    if (!count)
        return PROF_OK;
    return ingest_health_line(ingest, spool->process, PROF_HEALTH_record_open, NULL, &count,
                              "NVTX ranges that were never closed: they last to the end, and all "
                              "later work of their threads is in them");
}
