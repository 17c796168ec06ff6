/* Samples of the target's threads, by perfkit's own sampler. It sees processes from outside, also
 * those that say nothing of themselves (static programs, shells): they get rows here, and their
 * threads. */
#include "libprof/store/ingest_define.h"
#include "libprof/store/ingest_private.h"
#include "libprof/store/ingest_record.h"
#include "libprof/store/ingest_stack.h"

static enum prof_status process_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                                           const struct wire_cpu_process *record)
{
    char *name = ingest_text_of(ingest, spool, record->name);
    int64_t row = ingest_process_sampled(ingest, record, name ? name : "");
    free(name);
    return row ? ingest_define_local(ingest, spool, record->head.aux, WIRE_CPU_PROCESS, row, 0)
               : ingest->error.status;
}

static enum prof_status write_cpu_module(struct prof_ingest *ingest, struct ingest_spool *spool,
                                         const struct wire_cpu_module *record)
{
    int64_t process = ingest_global(spool, record->head.aux, WIRE_CPU_PROCESS);
    if (!process)
        return PROF_OK;
    char *path = ingest_text_of(ingest, spool, record->path);
    char *build_id = ingest_text_of(ingest, spool, record->build_id);
    struct ingest_mapping mapping = {.path = path ? path : "",
                                     .build_id = build_id,
                                     .address = record->address,
                                     .bytes = record->bytes,
                                     .segment = (int64_t)record->offset,
                                     .time_ns = record->time};
    enum prof_status status = ingest_mapped(ingest, process, &mapping);
    free(path);
    free(build_id);
    return status;
}

static enum prof_status write_cpu_stack(struct prof_ingest *ingest, struct ingest_spool *spool,
                                        const struct wire_cpu_stack *record)
{
    struct ingest_entry entries[WIRE_STACK_ENTRIES + 1];
    int64_t process = ingest_global(spool, record->process, WIRE_CPU_PROCESS);
    size_t count = record->count;
    if (!process)
        return PROF_OK;
    for (uint32_t i = 0; i < record->count; i++)
        entries[i] =
            (struct ingest_entry){.kind = PROF_STORE_FRAME_NATIVE, .address = record->entries[i]};
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
    bool off = record->head.flags == WIRE_CPU_BLOCKED || record->head.flags == WIRE_CPU_PREEMPTED;
    struct ingest_row *row = ingest_row_begin(ingest, INGEST_BATCH_CPU_SAMPLE);
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
    return ingest_row_end(ingest, INGEST_BATCH_CPU_SAMPLE);
}
