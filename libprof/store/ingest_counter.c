/* Samples of hardware counters, by perfkit's own sampler. They belong to devices and to no process
 * of the target; which kernels they belong to is for the analysis to find, from the times. And what
 * single launches counted (--counters=exact), which comes from the process that made them. */
#include <errno.h>
#include <math.h>
#include <signal.h>

#include "libprof/store/ingest_define.h"
#include "libprof/store/ingest_private.h"
#include "libprof/store/ingest_record.h"

static enum prof_status device(struct prof_ingest *ingest, struct ingest_spool *spool,
                               const struct wire_counter_device *record)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_counter_device];
    int64_t row = ingest_global(spool, record->head.aux, WIRE_COUNTER_DEVICE);
    if (!row)
        row = ++ingest->last_counter_device;
    ingest_bind(sql, COLUMN_AT(counter_device, id), row);
    ingest_bind_local_text(ingest, spool, sql, COLUMN_AT(counter_device, uuid), record->uuid);
    ingest_bind(sql, COLUMN_AT(counter_device, ordinal), record->ordinal);
    ingest_bind_local_text(ingest, spool, sql, COLUMN_AT(counter_device, name), record->name);
    ingest_bind_local_text(ingest, spool, sql, COLUMN_AT(counter_device, chip), record->chip);
    ingest_bind_local_text(ingest, spool, sql, COLUMN_AT(counter_device, metric_set), record->set);
    ingest_bind_known(sql, COLUMN_AT(counter_device, interval), (int64_t)record->interval_ns);
    PROF_TRY(ingest_insert(ingest, SCHEMA_counter_device));
    return ingest_define_local(ingest, spool, record->head.aux, WIRE_COUNTER_DEVICE, row,
                               COLUMN_AT(counter_device, interval));
}

static enum prof_status counter(struct prof_ingest *ingest, struct ingest_spool *spool,
                                const struct wire_counter *record)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_counter];
    int64_t row = ingest_global(spool, record->head.aux, WIRE_COUNTER_DEVICE);
    const struct ingest_local *local = ingest_lookup(spool, record->head.aux, WIRE_COUNTER_DEVICE);
    if (!row || record->slot >= WIRE_COUNTER_SLOTS)
        return PROF_OK;
    uint32_t count = local->extra > record->slot ? local->extra : record->slot + 1;
    ingest_bind(sql, COLUMN_AT(counter, counter_device), row);
    ingest_bind(sql, COLUMN_AT(counter, slot), record->slot);
    ingest_bind_local_text(ingest, spool, sql, COLUMN_AT(counter, name), record->name);
    ingest_bind_local_text(ingest, spool, sql, COLUMN_AT(counter, unit), record->unit);
    ingest_bind_local_text(ingest, spool, sql, COLUMN_AT(counter, metric), record->metric);
    ingest_bind(sql, COLUMN_AT(counter, kind), record->head.flags);
    if (record->clock)
        ingest_bind(sql, COLUMN_AT(counter, clock), record->clock - 1);
    else
        sqlite3_bind_null(sql, COLUMN_AT(counter, clock));
    if (isfinite(record->peak) && record->peak > 0)
        sqlite3_bind_double(sql, COLUMN_AT(counter, peak), record->peak);
    else
        sqlite3_bind_null(sql, COLUMN_AT(counter, peak));
    ingest_bind_known(sql, COLUMN_AT(counter, traced), record->traced);
    PROF_TRY(ingest_insert(ingest, SCHEMA_counter));
    return ingest_define_local(ingest, spool, record->head.aux, WIRE_COUNTER_DEVICE, row, count);
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
    if (record->head.flags & WIRE_BURST_OTHERS)
        ingest_bind(sql, COLUMN_AT(counter_burst, others), record->others);
    else
        sqlite3_bind_null(sql, COLUMN_AT(counter_burst, others));
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

enum prof_status ingest_exact_count(struct prof_ingest *ingest, const struct ingest_spool *spool,
                                    const struct wire_exact_count *record)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_exact_count];
    int64_t config = ingest_global(spool, record->head.aux, WIRE_CONFIG);
    if (!config || record->time > INT64_MAX || !isfinite(record->value))
        return PROF_OK;
    ingest_bind(sql, COLUMN_AT(exact_count, start), (int64_t)(record->time - ingest->zero_ns));
    ingest_bind(sql, COLUMN_AT(exact_count, config), config);
    ingest_bind_known(sql, COLUMN_AT(exact_count, stream),
                      ingest_global(spool, record->stream, WIRE_STREAM));
    ingest_bind_known(sql, COLUMN_AT(exact_count, correlation), (int64_t)record->correlation);
    ingest_bind_local_text(ingest, spool, sql, COLUMN_AT(exact_count, name), record->name);
    ingest_bind_local_text(ingest, spool, sql, COLUMN_AT(exact_count, unit), record->unit);
    ingest_bind_local_text(ingest, spool, sql, COLUMN_AT(exact_count, metric), record->metric);
    sqlite3_bind_double(sql, COLUMN_AT(exact_count, value), record->value);
    return ingest_insert(ingest, SCHEMA_exact_count);
}

/* It says so, or it is gone: it has no entry among the processes, and nobody else asks after it. */
bool ingest_sampler_is_over(const struct ingest_spool *spool)
{
    const struct spool_header *header = prof_spool_header(spool->reader);
    return atomic_load(&header->ended) != 0 || (kill((pid_t)header->pid, 0) != 0 && errno == ESRCH);
}
