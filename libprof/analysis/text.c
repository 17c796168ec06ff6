/* The words for the file's numbers (copy kinds, memory kinds, ...), one table per family. */
#include <stdio.h>

#include "libprof/include/prof.h"
#include "libprof/wire/activity.h"
#include "libprof/wire/command.h"
#include "libprof/wire/memory.h"

#define WORD(table, kind)                                                                          \
    ((kind) >= 0 && (size_t)(kind) < sizeof(table) / sizeof(table)[0] && (table)[kind]             \
         ? (table)[kind]                                                                           \
         : "unknown")

static const char *const copy_kinds[] = {
    [WIRE_COPY_HTOD] = "HtoD", [WIRE_COPY_DTOH] = "DtoH",   [WIRE_COPY_HTOA] = "HtoA",
    [WIRE_COPY_ATOH] = "AtoH", [WIRE_COPY_ATOA] = "AtoA",   [WIRE_COPY_ATOD] = "AtoD",
    [WIRE_COPY_DTOA] = "DtoA", [WIRE_COPY_DTOD] = "DtoD",   [WIRE_COPY_HTOH] = "HtoH",
    [WIRE_COPY_PTOP] = "PtoP", [WIRE_COPY_MAP] = "map",     [WIRE_COPY_UNMAP] = "unmap",
    [WIRE_COPY_MIGRATE] = "migrate", [PROF_COPY_MEMSET] = "memset",
};

static const char *const memory_kinds[] = {
    [WIRE_MEMORY_PAGEABLE] = "pageable",
    [WIRE_MEMORY_PINNED] = "pinned",
    [WIRE_MEMORY_DEVICE] = "device",
    [WIRE_MEMORY_ARRAY] = "array",
    [WIRE_MEMORY_MANAGED] = "managed",
    [WIRE_MEMORY_DEVICE_STATIC] = "device static",
    [WIRE_MEMORY_MANAGED_STATIC] = "managed static",
    [WIRE_MEMORY_SVM] = "SVM",
    [WIRE_MEMORY_POOL] = "pool",
    [WIRE_MEMORY_BLOCK] = "PyTorch block",
};

static const char *const sync_kinds[] = {
    [WIRE_SYNC_EVENT] = "event",
    [WIRE_SYNC_STREAM_WAIT_EVENT] = "stream waits for event",
    [WIRE_SYNC_STREAM] = "stream",
    [WIRE_SYNC_CONTEXT] = "context",
};

static const char *const overhead_kinds[] = {
    [WIRE_OVERHEAD_COMPILER] = "driver compiled device code",
    [WIRE_OVERHEAD_FLUSH] = "profiler wrote out a buffer",
    [WIRE_OVERHEAD_INSTRUMENTATION] = "profiler changed device code",
    [WIRE_OVERHEAD_RESOURCE] = "profiler's own resources",
    [WIRE_OVERHEAD_MODULE_LOAD] = "modules loaded",
    [WIRE_OVERHEAD_LAZY_LOAD] = "functions loaded at first use",
    [WIRE_OVERHEAD_QUEUE_FULL] = "launches waited for room in the queue",
    [WIRE_OVERHEAD_BUFFER_REQUEST] = "profiler waited for a buffer",
    [WIRE_OVERHEAD_MANAGED_START] = "unified memory set up",
};

static const char *const migration_kinds[] = {
    [WIRE_MIGRATION_HTOD] = "moved to the device",
    [WIRE_MIGRATION_DTOH] = "moved to the host",
    [WIRE_MIGRATION_CPU_FAULT] = "CPU page faults",
    [WIRE_MIGRATION_GPU_FAULT] = "GPU page faults",
    [WIRE_MIGRATION_THRASHING] = "thrashing",
    [WIRE_MIGRATION_THROTTLING] = "throttling",
    [WIRE_MIGRATION_REMOTE_MAP] = "mapped where it lies",
    [WIRE_MIGRATION_DTOD] = "moved between devices",
};

static const char *const jit_operations[] = {
    [WIRE_JIT_CACHE_LOAD] = "loaded from the cache",
    [WIRE_JIT_CACHE_STORE] = "stored into the cache",
    [WIRE_JIT_COMPILE] = "compiled",
};

const char *prof_copy_kind_text(int kind)
{
    return WORD(copy_kinds, kind);
}

const char *prof_memory_kind_text(int kind)
{
    return WORD(memory_kinds, kind);
}

const char *prof_sync_kind_text(int kind)
{
    return WORD(sync_kinds, kind);
}

const char *prof_overhead_kind_text(int kind)
{
    return WORD(overhead_kinds, kind);
}

const char *prof_migration_kind_text(int kind)
{
    return WORD(migration_kinds, kind);
}

const char *prof_jit_operation_text(int operation)
{
    return WORD(jit_operations, operation);
}

struct prof_text prof_launch_shape(const struct prof_config *config)
{
    struct prof_text out = {""};
    size_t used = 0;
    if (!config)
        return (struct prof_text){"n/a"};
    for (int part = 0; part < 2; part++) {
        const int64_t *size = part ? config->block : config->grid;
        if (size[0] == PROF_UNKNOWN) {
            used += (size_t)snprintf(out.text + used, sizeof out.text - used, "auto");
        } else {
            used += (size_t)snprintf(out.text + used, sizeof out.text - used, "%lld",
                                     (long long)size[0]);
            for (int i = 1; i < 3 && used < sizeof out.text; i++) {
                bool more = size[i] > 1 || (i == 1 && size[2] > 1);
                if (more)
                    used += (size_t)snprintf(out.text + used, sizeof out.text - used, ",%lld",
                                             (long long)size[i]);
            }
        }
        if (!part && used < sizeof out.text)
            used += (size_t)snprintf(out.text + used, sizeof out.text - used, " x ");
        if (used >= sizeof out.text)
            break;
    }
    return out;
}
