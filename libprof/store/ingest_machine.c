/* State of GPUs, sampled by perfkit beside the target: the driver's own count of used memory, to
 * compare with the recorded allocations, and the clocks. And what the host's network ports carried.
 */
#include <math.h>

#include "libprof/base/format.h"
#include "libprof/store/ingest_private.h"

/* *device = 0: the capture does not know it. */
static enum prof_status find_sampled_device(struct prof_ingest *ingest, const char *uuid,
                                            int64_t *device)
{
    ingest_bind_text(ingest, ingest->sql[INGEST_SQL_DEVICE_OF], 1, uuid);
    return ingest_query_number(ingest, INGEST_SQL_DEVICE_OF, device);
}

bool prof_ingest_has_device(struct prof_ingest *ingest, const char *uuid)
{
    int64_t device;
    bool found =
        ingest->sql[0] && find_sampled_device(ingest, uuid, &device) == PROF_OK && device > 0;
    ingest->error = (struct prof_error){0};
    return found;
}

/* What the target's processes use together; PROF_UNKNOWN where it is not known of one of them. */
static enum prof_status used_by_target(struct prof_ingest *ingest,
                                       const struct prof_ingest_memory *sample, int64_t *sum)
{
    *sum = sample->process_count < 0 ? PROF_UNKNOWN : 0;
    for (int i = 0; i < sample->process_count && *sum != PROF_UNKNOWN; i++) {
        const struct prof_nvml_process *process = &sample->processes[i];
        int64_t ours;
        ingest_bind(ingest->sql[INGEST_SQL_PROCESS_OF], 1, process->pid);
        PROF_TRY(ingest_query_number(ingest, INGEST_SQL_PROCESS_OF, &ours));
        if (ours)
            *sum = process->used_bytes == PROF_UNKNOWN ? PROF_UNKNOWN : *sum + process->used_bytes;
    }
    return PROF_OK;
}

static enum prof_status ingest_device_memory(struct prof_ingest *ingest,
                                             const struct prof_ingest_memory *sample)
{
    int64_t device, ours;
    PROF_TRY(find_sampled_device(ingest, sample->uuid, &device));
    if (!device)
        return PROF_OK;
    PROF_TRY(used_by_target(ingest, sample, &ours));
    sqlite3_stmt *sql = ingest->insert[SCHEMA_device_memory];
    ingest_bind(sql, COLUMN_AT(device_memory, device), device);
    ingest_bind(sql, COLUMN_AT(device_memory, start), (int64_t)(sample->mono_ns - ingest->zero_ns));
    ingest_bind(sql, COLUMN_AT(device_memory, total), sample->total_bytes);
    ingest_bind(sql, COLUMN_AT(device_memory, used), sample->used_bytes);
    ingest_bind_if(sql, COLUMN_AT(device_memory, process_used), ours != PROF_UNKNOWN, ours);
    return ingest_insert(ingest, SCHEMA_device_memory);
}

static enum prof_status ingest_device_clock(struct prof_ingest *ingest, const char *uuid,
                                            uint64_t mono_ns,
                                            const struct prof_nvml_reading *reading)
{
    int64_t device;
    PROF_TRY(find_sampled_device(ingest, uuid, &device));
    if (!device)
        return PROF_OK;
    const int64_t values[] = {reading->sm_mhz,   reading->sm_max_mhz,     reading->memory_mhz,
                              reading->power_mw, reading->power_limit_mw, reading->temperature_c,
                              reading->throttle, reading->energy_mj};
    sqlite3_stmt *sql = ingest->insert[SCHEMA_device_clock];
    ingest_bind(sql, COLUMN_AT(device_clock, device), device);
    ingest_bind(sql, COLUMN_AT(device_clock, start), (int64_t)(mono_ns - ingest->zero_ns));
    for (int i = 0; i < (int)(sizeof values / sizeof values[0]); i++) {
        ingest_bind_if(sql, COLUMN_AT(device_clock, sm_mhz) + i, values[i] != PROF_UNKNOWN,
                       values[i]);
    }
    return ingest_insert(ingest, SCHEMA_device_clock);
}

/* ---- the network ----------------------------------------------------------------------------- */

/* What the host's network ports carried, which perfkit read beside the target. Only for distributed
 * runs: for others it would be what the machine did besides. */

static enum prof_status ingest_network(struct prof_ingest *ingest,
                                       const struct prof_network_port *ports, size_t count,
                                       uint64_t begin_ns, uint64_t end_ns)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_network_port];
    int64_t process; /* 0 = the run has no ranks */
    PROF_TRY(ingest_exec(ingest, "BEGIN"));
    PROF_TRY(ingest_query_number(ingest, INGEST_SQL_FIRST_OF_RANKS, &process));
    for (size_t i = 0; process && i < count; i++) {
        const struct prof_network_port *port = &ports[i];
        ingest_bind(sql, COLUMN_AT(network_port, process), process);
        ingest_bind_text(ingest, sql, COLUMN_AT(network_port, name), port->name);
        ingest_bind_text(ingest, sql, COLUMN_AT(network_port, kind), port->kind);
        ingest_bind(sql, COLUMN_AT(network_port, start), (int64_t)(begin_ns - ingest->zero_ns));
        ingest_bind(sql, COLUMN_AT(network_port, duration), (int64_t)(end_ns - begin_ns));
        if (isnan(port->link_rate))
            sqlite3_bind_null(sql, COLUMN_AT(network_port, link_rate));
        else
            sqlite3_bind_double(sql, COLUMN_AT(network_port, link_rate), port->link_rate);
        ingest_bind(sql, COLUMN_AT(network_port, received), (int64_t)port->received);
        ingest_bind(sql, COLUMN_AT(network_port, sent), (int64_t)port->sent);
        PROF_TRY(ingest_insert(ingest, SCHEMA_network_port));
    }
    return ingest_exec(ingest, "COMMIT");
}

/* ---- interface ------------------------------------------------------------------------------- */

static enum prof_status write_device_memory(struct prof_ingest *ingest,
                                            const struct prof_ingest_memory *samples, size_t count)
{
    PROF_TRY(ingest_exec(ingest, "BEGIN"));
    for (size_t i = 0; i < count; i++)
        PROF_TRY(ingest_device_memory(ingest, &samples[i]));
    return ingest_exec(ingest, "COMMIT");
}

enum prof_status prof_ingest_device_memory(struct prof_ingest *ingest,
                                           const struct prof_ingest_memory *samples, size_t count,
                                           struct prof_error *err)
{
    PROF_TRY(ingest_refresh(ingest, err));
    return write_device_memory(ingest, samples, count) ? ingest_roll_back(ingest, err) : PROF_OK;
}

enum prof_status prof_ingest_device_clock(struct prof_ingest *ingest, const char *uuid,
                                          uint64_t mono_ns, const struct prof_nvml_reading *reading,
                                          struct prof_error *err)
{
    PROF_TRY(ingest_refresh(ingest, err));
    return ingest_device_clock(ingest, uuid, mono_ns, reading) ? ingest_roll_back(ingest, err)
                                                               : PROF_OK;
}

enum prof_status prof_ingest_network(struct prof_ingest *ingest,
                                     const struct prof_network_port *ports, size_t count,
                                     uint64_t begin_ns, uint64_t end_ns, struct prof_error *err)
{
    PROF_TRY(ingest_refresh(ingest, err));
    return ingest_network(ingest, ports, count, begin_ns, end_ns) ? ingest_roll_back(ingest, err)
                                                                  : PROF_OK;
}
