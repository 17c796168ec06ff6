/* Samples of hardware counters, by perfkit's own sampler. They belong to devices and to no process
 * of the target; which kernels they belong to is for the analysis to find, from the times. And what
 * single launches counted (--counters=exact), which comes from the process that made them. */
#include <errno.h>
#include <math.h>
#include <signal.h>

#include "libprof/store/ingest_private.h"
#include "libprof/store/ingest_stack.h"

static enum prof_status device(struct prof_ingest *ingest, struct ingest_spool *spool,
                               const struct wire_counter_device *record)
{
    int64_t id = ingest_global(spool, record->head.aux, WIRE_COUNTER_DEVICE);
    struct ingest_row *row;
    if (!id)
        id = ++ingest->last_counter_device;
    PROF_TRY(ingest_record_begin(ingest, spool, 0, &record->head, &row));
    row_set(row, COLUMN_AT(counter_device, id), id);
    PROF_TRY(ingest_row_end(ingest, SCHEMA_counter_device));
    return ingest_define_local(ingest, spool, record->head.aux, WIRE_COUNTER_DEVICE, id,
                               COLUMN_AT(counter_device, interval));
}

/* A REAL of a row, NULL where it is no number. */
static void row_real(struct prof_ingest *ingest, struct ingest_row *row, enum schema_table table,
                     int at, double value)
{
    if (isfinite(value))
        sqlite3_bind_double(ingest->insert[table], at, value);
    else
        sqlite3_bind_null(ingest->insert[table], at);
    row_bound(row, at);
}

static enum prof_status counter(struct prof_ingest *ingest, struct ingest_spool *spool,
                                const struct wire_counter *record)
{
    const struct ingest_local *local = ingest_lookup(spool, record->head.aux, WIRE_COUNTER_DEVICE);
    struct ingest_row *row;
    if (!local || !local->global || record->slot >= WIRE_COUNTER_SLOTS)
        return PROF_OK;
    int64_t id = local->global;
    uint32_t count = local->extra > record->slot ? local->extra : record->slot + 1;
    PROF_TRY(ingest_record_begin(ingest, spool, 0, &record->head, &row));
    row_set_if(row, COLUMN_AT(counter, clock), record->clock, record->clock - 1);
    row_real(ingest, row, SCHEMA_counter, COLUMN_AT(counter, peak),
             record->peak > 0 ? record->peak : NAN);
    PROF_TRY(ingest_row_end(ingest, SCHEMA_counter));
    return ingest_define_local(ingest, spool, record->head.aux, WIRE_COUNTER_DEVICE, id, count);
}

/* A start in column `at`, a duration in the next; false when the times cannot be. */
static bool bind_span(const struct prof_ingest *ingest, sqlite3_stmt *sql, int at, uint64_t start,
                      uint64_t end)
{
    if (end < start || start > INT64_MAX)
        return false;
    ingest_bind(sql, at, (int64_t)(start - ingest->zero_ns));
    ingest_bind(sql, at + 1, (int64_t)(end - start));
    return true;
}

static enum prof_status burst(struct prof_ingest *ingest, const struct ingest_spool *spool,
                              const struct wire_counter_burst *record)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_counter_burst];
    int64_t row = ingest_global(spool, record->head.aux, WIRE_COUNTER_DEVICE);
    if (!row ||
        !bind_span(ingest, sql, COLUMN_AT(counter_burst, start), record->start, record->end))
        return PROF_OK;
    ingest_bind(sql, COLUMN_AT(counter_burst, counter_device), row);
    ingest_bind(sql, COLUMN_AT(counter_burst, samples), record->samples);
    ingest_bind_if(sql, COLUMN_AT(counter_burst, others), record->head.flags & WIRE_BURST_OTHERS,
                   record->others);
    ingest_bind_known(sql, COLUMN_AT(counter_burst, overflow),
                      record->head.flags & WIRE_BURST_OVERFLOW ? 1 : 0);
    ingest_bind(sql, COLUMN_AT(counter_burst, decode), (int64_t)record->decode_ns);
    return ingest_insert(ingest, SCHEMA_counter_burst);
}

static enum prof_status write_counter_sample(struct prof_ingest *ingest,
                                             const struct ingest_spool *spool,
                                             const struct wire_counter_sample *record)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_counter_sample];
    const struct ingest_local *local = ingest_lookup(spool, record->head.aux, WIRE_COUNTER_DEVICE);
    if (!local ||
        !bind_span(ingest, sql, COLUMN_AT(counter_sample, start), record->start, record->end))
        return PROF_OK;
    ingest_bind(sql, COLUMN_AT(counter_sample, counter_device), local->global);
    for (int i = 0; i < (int)WIRE_COUNTER_SLOTS; i++) {
        if ((uint32_t)i < local->extra && isfinite(record->values[i]))
            sqlite3_bind_double(sql, COLUMN_AT(counter_sample, c0) + i, record->values[i]);
        else
            sqlite3_bind_null(sql, COLUMN_AT(counter_sample, c0) + i);
    }
    return ingest_insert(ingest, SCHEMA_counter_sample);
}

enum prof_status ingest_counter_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                                           const struct wire_head *head)
{
    const void *record = head;
    return head->type == WIRE_COUNTER_DEVICE ? device(ingest, spool, record)
                                             : counter(ingest, spool, record);
}

enum prof_status ingest_counter_event(struct prof_ingest *ingest, const struct ingest_spool *spool,
                                      const struct wire_head *head)
{
    const void *record = head;
    return head->type == WIRE_COUNTER_BURST ? burst(ingest, spool, record)
                                            : write_counter_sample(ingest, spool, record);
}

enum prof_status ingest_exact_count(struct prof_ingest *ingest, struct ingest_spool *spool,
                                    const struct wire_exact_count *record)
{
    struct ingest_row *row;
    if (!ingest_global(spool, record->head.aux, WIRE_CONFIG) || record->time > INT64_MAX ||
        !isfinite(record->value))
        return PROF_OK;
    PROF_TRY(ingest_record_begin(ingest, spool, 0, &record->head, &row));
    row_real(ingest, row, SCHEMA_exact_count, COLUMN_AT(exact_count, value), record->value);
    return ingest_row_end(ingest, SCHEMA_exact_count);
}

/* Samples of instructions: each record has the sums so far and replaces the one before it. */
enum prof_status ingest_stall(struct prof_ingest *ingest, struct ingest_spool *spool,
                              const struct wire_head *head)
{
    int64_t *last = head->type == WIRE_STALL            ? &ingest->last_stall
                    : head->type == WIRE_STALL_FUNCTION ? &ingest->last_stall_function
                                                        : &ingest->last_stall_context;
    int64_t known = ingest_global(spool, head->aux, head->type), id = known ? known : ++*last;
    struct ingest_row *row;
    PROF_TRY(ingest_record_begin(ingest, spool, 0, head, &row));
    row_set(row, COLUMN_AT(stall, id), id);
    PROF_TRY(ingest_row_end(ingest, (enum schema_table)ingest->table_of[head->type]));
    return known ? PROF_OK : ingest_define_local(ingest, spool, head->aux, head->type, id, 0);
}

/* It says so, or it is gone: it has no entry among the processes, and no other code checks it. */
bool ingest_sampler_is_over(const struct ingest_spool *spool)
{
    const struct spool_header *header = prof_spool_header(spool->reader);
    return atomic_load(&header->ended) != 0 || (kill((pid_t)header->pid, 0) != 0 && errno == ESRCH);
}

/* ---- samples of threads ---------------------------------------------------------------------- */

/* Samples of the target's threads, by perfkit's own sampler. It sees processes from outside, also
 * those that say nothing of themselves (static programs, shells): they get rows here, and their
 * threads. */

static enum prof_status process_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                                           const struct wire_cpu_process *record)
{
    PROF_FREED char *name = ingest_text_of(ingest, spool, record->name);
    int64_t row = ingest_process_sampled(ingest, record, name ? name : "");
    return row ? ingest_define_local(ingest, spool, record->head.aux, WIRE_CPU_PROCESS, row, 0)
               : ingest->error.status;
}

static enum prof_status write_cpu_module(struct prof_ingest *ingest, struct ingest_spool *spool,
                                         const struct wire_cpu_module *record)
{
    int64_t process = ingest_global(spool, record->head.aux, WIRE_CPU_PROCESS);
    if (!process)
        return PROF_OK;
    PROF_FREED char *path = ingest_text_of(ingest, spool, record->path);
    PROF_FREED char *build_id = ingest_text_of(ingest, spool, record->build_id);
    struct ingest_mapping mapping = {.path = path ? path : "",
                                     .build_id = build_id,
                                     .address = record->address,
                                     .bytes = record->bytes,
                                     .segment = (int64_t)record->offset,
                                     .time_ns = record->time};
    return ingest_mapped(ingest, process, &mapping);
}

static enum prof_status write_cpu_stack(struct prof_ingest *ingest, struct ingest_spool *spool,
                                        const struct wire_cpu_stack *record)
{
    struct ingest_entry entries[WIRE_STACK_ENTRIES + 1];
    int64_t process = ingest_global(spool, record->process, WIRE_CPU_PROCESS);
    size_t count = record->count;
    if (!process)
        return PROF_OK;
    for (uint32_t i = 0; i < record->count; i++) {
        uint64_t value = record->entries[i] & WIRE_ENTRY_VALUE;
        entries[i] = (struct ingest_entry){.kind = PROF_STORE_FRAME_NATIVE, .address = value};
        if (record->entries[i] >> WIRE_ENTRY_SHIFT == WIRE_ENTRY_PYTHON)
            PROF_TRY(ingest_python_entry(ingest, spool, value, &entries[i]));
    }
    if (count && (record->head.flags & WIRE_STACK_CUT))
        entries[count++] = (struct ingest_entry){.kind = PROF_STORE_FRAME_MISSING};
    int64_t row = ingest_stack(ingest, process, entries, count);
    if (row < 0)
        return PROF_OK; /* an empty one stays unknown */
    return row ? ingest_define_local(ingest, spool, record->head.aux, WIRE_CPU_STACK, row, 0)
               : ingest->error.status;
}

enum prof_status ingest_cpu_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                                       const struct wire_head *head)
{
    const void *record = head;
    switch (head->type) {
    case WIRE_CPU_PROCESS:
        return process_definition(ingest, spool, record);
    case WIRE_CPU_MODULE:
        return write_cpu_module(ingest, spool, record);
    default:
        return write_cpu_stack(ingest, spool, record);
    }
}

/* The row of a thread as the sampler numbers it; 0 = failed. */
static int64_t cpu_sample_thread(struct prof_ingest *ingest, int64_t process, uint32_t seen_tid)
{
    const struct ingest_process *owner = ingest_process_find(ingest, process);
    uint32_t tid = seen_tid;
    if (owner && owner->seen_pid && owner->seen_pid != (pid_t)owner->pid)
        tid = ingest_own_tid(owner->seen_pid, seen_tid);
    bool is_new;
    return ingest_thread_row(ingest, process, tid ? tid : seen_tid, NULL, &is_new);
}

enum prof_status ingest_cpu_sample(struct prof_ingest *ingest, const struct ingest_spool *spool,
                                   const struct wire_cpu_sample *record)
{
    int64_t process = ingest_global(spool, record->head.aux, WIRE_CPU_PROCESS);
    int64_t thread = process ? cpu_sample_thread(ingest, process, record->tid) : -1;
    if (thread <= 0)
        return ingest->error.status;
    bool off = record->head.flags == WIRE_CPU_BLOCKED || record->head.flags == WIRE_CPU_PREEMPTED ||
               (record->head.flags == WIRE_CPU_FAULT && record->duration);
    struct ingest_row *row = ingest_row_begin(ingest, SCHEMA_cpu_sample);
    row_set(row, COLUMN_AT(cpu_sample, start), (int64_t)(record->start - ingest->zero_ns));
    row_set(row, COLUMN_AT(cpu_sample, thread), thread);
    row_set(row, COLUMN_AT(cpu_sample, cpu), record->cpu);
    if (record->cpu == WIRE_CPU_UNKNOWN)
        row_null(row, COLUMN_AT(cpu_sample, cpu));
    row_set(row, COLUMN_AT(cpu_sample, kind), record->head.flags);
    row_set(row, COLUMN_AT(cpu_sample, duration), (int64_t)record->duration);
    if (!off)
        row_null(row, COLUMN_AT(cpu_sample, duration));
    row_set(row, COLUMN_AT(cpu_sample, weight), (int64_t)record->weight);
    row_known(row, COLUMN_AT(cpu_sample, stack),
              ingest_global(spool, record->stack, WIRE_CPU_STACK));
    return ingest_row_end(ingest, SCHEMA_cpu_sample);
}

enum prof_status ingest_cpu_faults(struct prof_ingest *ingest, const struct ingest_spool *spool,
                                   const struct wire_cpu_faults *record)
{
    int64_t process = ingest_global(spool, record->head.aux, WIRE_CPU_PROCESS);
    int64_t thread = process ? cpu_sample_thread(ingest, process, record->tid) : -1;
    if (thread <= 0)
        return ingest->error.status;
    struct ingest_row *row = ingest_row_begin(ingest, SCHEMA_page_faults);
    row_set(row, COLUMN_AT(page_faults, start), (int64_t)(record->start - ingest->zero_ns));
    row_set(row, COLUMN_AT(page_faults, duration), (int64_t)(record->end - record->start));
    row_set(row, COLUMN_AT(page_faults, thread), thread);
    row_set(row, COLUMN_AT(page_faults, count), (int64_t)record->count);
    row_set(row, COLUMN_AT(page_faults, major), record->major);
    return ingest_row_end(ingest, SCHEMA_page_faults);
}
