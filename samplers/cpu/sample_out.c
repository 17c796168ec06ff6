/* What a sample needs is written once and only when it is needed: the process, the files it has
 * mapped, each distinct stack. */
#include <stdio.h>
#include <string.h>

#include "samplers/cpu/sample_out.h"

/* Stacks known by heart: when it is full all are forgotten and written again, which costs only
 * space, since equal stacks become one in the capture. */
#define MAX_STACK_BYTES (64u << 20)

static const char command[] = "perfkit cpu sampler";

bool cpu_out_open(struct cpu_out *out, const char *directory)
{
    *out = (struct cpu_out){0};
    return spool_out_open(&out->spool, directory, command, WIRE_SOURCE_CPU);
}

static uint32_t intern_build_id(struct cpu_out *out, const struct cpu_file *file)
{
    char text[CPU_BUILD_ID_BYTES * 2 + 1];
    for (uint32_t i = 0; i < file->build_id_bytes; i++)
        snprintf(text + (size_t)i * 2, 3, "%02x", file->build_id[i]);
    return file->build_id_bytes ? spool_out_text(&out->spool, text) : 0;
}

static void send_mapping(struct cpu_out *out, struct cpu_tasks *tasks,
                         const struct cpu_process *process, const struct cpu_mapping *mapping)
{
    struct cpu_file *file = &tasks->files.data[mapping->file];
    if (!file->path_text) {
        file->path_text = spool_out_text(&out->spool, file->path);
        file->build_id_text = intern_build_id(out, file);
    }
    struct wire_cpu_module module = {
        .head = {sizeof module, WIRE_CPU_MODULE, 0, process->id},
        .time = mapping->time_ns,
        .address = mapping->address,
        .bytes = mapping->bytes,
        .offset = mapping->offset,
        .path = file->path_text,
        .build_id = file->build_id_text,
    };
    spool_out_define(&out->spool, &module);
}

static void send_process(struct cpu_out *out, struct cpu_tasks *tasks, struct cpu_process *process)
{
    if (!process->id) {
        struct wire_cpu_process record = {
            .head = {sizeof record, WIRE_CPU_PROCESS, process->program ? WIRE_CPU_PROCESS_EXEC : 0,
                     0},
            .start = process->start_ns,
            .pid = process->pid,
            .parent = process->parent,
            .name = spool_out_text(&out->spool, process->name),
        };
        record.head.aux = process->id = spool_out_id(&out->spool);
        spool_out_define(&out->spool, &record);
    }
    for (; process->sent < process->mappings.count; process->sent++)
        send_mapping(out, tasks, process, &process->mappings.data[process->sent]);
}

static uint32_t send_stack(struct cpu_out *out, const struct cpu_process *process,
                           const struct cpu_chain *chain)
{
    _Alignas(8) unsigned char buffer[sizeof(struct wire_cpu_stack) + sizeof chain->frames];
    struct wire_cpu_stack *record = (struct wire_cpu_stack *)(void *)buffer;
    size_t bytes = sizeof *record + chain->count * sizeof *chain->frames;
    if (!chain->count)
        return 0;
    *record = (struct wire_cpu_stack){
        .head = {(uint16_t)bytes, WIRE_CPU_STACK, chain->cut ? WIRE_STACK_CUT : 0, 0},
        .process = process->id,
        .count = chain->count,
    };
    memcpy(record->entries, chain->frames, chain->count * sizeof *chain->frames);
    const char *key = (const char *)buffer;
    uint32_t *known = prof_names_get(&out->stacks, key, bytes);
    if (known)
        return *known;
    if (out->stacks.bytes_count > MAX_STACK_BYTES)
        prof_names_free(&out->stacks);
    uint32_t id = spool_out_id(&out->spool);
    if (!prof_names_put(&out->stacks, key, bytes, id))
        return 0;
    record->head.aux = id;
    return spool_out_define(&out->spool, record) ? id : 0;
}

void cpu_out_sample(struct cpu_out *out, struct cpu_tasks *tasks, struct cpu_process *process,
                    const struct cpu_chain *chain, const struct cpu_sample *sample)
{
    send_process(out, tasks, process);
    struct wire_cpu_sample record = {
        .head = {sizeof record, WIRE_CPU_SAMPLE, (uint8_t)sample->kind, process->id},
        .start = sample->start_ns,
        .duration = sample->duration_ns,
        .weight = sample->weight_ns,
        .tid = sample->tid,
        .cpu = sample->cpu,
        .stack = send_stack(out, process, chain),
    };
    out->samples += spool_out_emit(&out->spool, &record);
}

void cpu_out_close(struct cpu_out *out)
{
    spool_out_close(&out->spool);
    prof_names_free(&out->stacks);
}
