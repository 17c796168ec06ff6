/* What the driver tells of a device, sampled by perfkit beside the target: its own count of the
 * memory, which the allocations that were seen can be held against, and the clocks. */
#include "libprof/base/format.h"
#include "libprof/store/ingest_private.h"
#include "libprof/store/ingest_record.h"

/* 0 = none, -1 = failed */
static int64_t query_device_number(struct prof_ingest *ingest, enum ingest_sql which)
{
    if (ingest->failed)
        return -1;
    sqlite3_stmt *sql = ingest->sql[which];
    int code = sqlite3_step(sql);
    int64_t number = code == SQLITE_ROW ? sqlite3_column_int64(sql, 0) : 0;
    sqlite3_reset(sql);
    return code == SQLITE_ROW || code == SQLITE_DONE ? number : -1;
}

static int64_t find_device_by_uuid(struct prof_ingest *ingest, const char *uuid)
{
    ingest_bind_text(ingest, ingest->sql[INGEST_SQL_DEVICE_OF], 1, uuid);
    return query_device_number(ingest, INGEST_SQL_DEVICE_OF);
}

bool prof_ingest_has_device(struct prof_ingest *ingest, const char *uuid)
{
    return ingest->sql[0] && find_device_by_uuid(ingest, uuid) > 0;
}

/* What the target's processes use together; PROF_UNKNOWN where one of them is not told. */
static int64_t used_by_target(struct prof_ingest *ingest, const struct prof_ingest_memory *sample)
{
    int64_t sum = sample->process_count < 0 ? PROF_UNKNOWN : 0;
    for (int i = 0; i < sample->process_count && sum != PROF_UNKNOWN; i++) {
        const struct prof_nvml_process *process = &sample->processes[i];
        ingest_bind(ingest->sql[INGEST_SQL_PROCESS_OF], 1, process->pid);
        if (query_device_number(ingest, INGEST_SQL_PROCESS_OF) <= 0)
            continue;
        sum = process->used_bytes == PROF_UNKNOWN ? PROF_UNKNOWN : sum + process->used_bytes;
    }
    return sum;
}

bool ingest_device_memory(struct prof_ingest *ingest, const struct prof_ingest_memory *sample)
{
    int64_t device = find_device_by_uuid(ingest, sample->uuid);
    if (device <= 0)
        return device == 0;
    int64_t ours = used_by_target(ingest, sample);
    sqlite3_stmt *sql = ingest->insert[SCHEMA_device_memory];
    ingest_bind(sql, COLUMN_AT(device_memory, device), device);
    ingest_bind(sql, COLUMN_AT(device_memory, start), (int64_t)(sample->mono_ns - ingest->zero_ns));
    ingest_bind(sql, COLUMN_AT(device_memory, total), sample->total_bytes);
    ingest_bind(sql, COLUMN_AT(device_memory, used), sample->used_bytes);
    if (ours == PROF_UNKNOWN)
        sqlite3_bind_null(sql, COLUMN_AT(device_memory, process_used));
    else
        ingest_bind(sql, COLUMN_AT(device_memory, process_used), ours);
    return ingest_insert(ingest, SCHEMA_device_memory);
}

bool ingest_device_clock(struct prof_ingest *ingest, const char *uuid, uint64_t mono_ns,
                         const struct prof_nvml_reading *reading)
{
    int64_t device = find_device_by_uuid(ingest, uuid);
    if (device <= 0)
        return device == 0;
    const int64_t values[] = {reading->sm_mhz,   reading->sm_max_mhz,     reading->memory_mhz,
                              reading->power_mw, reading->power_limit_mw, reading->temperature_c,
                              reading->throttle};
    sqlite3_stmt *sql = ingest->insert[SCHEMA_device_clock];
    ingest_bind(sql, COLUMN_AT(device_clock, device), device);
    ingest_bind(sql, COLUMN_AT(device_clock, start), (int64_t)(mono_ns - ingest->zero_ns));
    for (int i = 0; i < (int)(sizeof values / sizeof values[0]); i++) {
        if (values[i] == PROF_UNKNOWN)
            sqlite3_bind_null(sql, COLUMN_AT(device_clock, sm_mhz) + i);
        else
            ingest_bind(sql, COLUMN_AT(device_clock, sm_mhz) + i, values[i]);
    }
    return ingest_insert(ingest, SCHEMA_device_clock);
}
