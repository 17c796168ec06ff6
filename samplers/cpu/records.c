/* One sample of the clock stands for one period on a processor. Time off the processor is known
 * exactly, from the switch away to the switch back; a sleep of a period or more is a sample of its
 * own, shorter ones are added up per thread until they make a period, so that their number is
 * bounded by the rate whatever the program does, and the weights add up to the time. */
#include <stdio.h>
#include <string.h>

#include "samplers/cpu/records.h"

#define TRAILER_CPU_BACK 16u /* see perf_events.c */

/* ---- Samples as wire records -----------------------------------------------------------------
 *
 * What a sample needs is written once and only when it is needed: the process, the files it has
 * mapped, each distinct stack. */

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

/* Write the sample, before it what it refers to and was not yet written. */
static void write_cpu_sample(struct cpu_out *out, struct cpu_tasks *tasks,
                             struct cpu_process *process, const struct cpu_chain *chain,
                             const struct cpu_sample *sample)
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

/* ---- reading --------------------------------------------------------------------------------- */

struct body {
    const unsigned char *at, *end;
};

static struct body perf_record_body(const struct perf_event_header *record)
{
    const unsigned char *at = (const unsigned char *)record;
    return (struct body){at + sizeof *record, at + record->size};
}

static bool take_bytes(struct body *body, void *out, size_t bytes)
{
    if ((size_t)(body->end - body->at) < bytes)
        return false;
    memcpy(out, body->at, bytes);
    body->at += bytes;
    return true;
}

struct task_ids {
    uint32_t pid, tid;
};

struct sample_head {
    uint64_t event;
    struct task_ids task;
    uint64_t time;
    uint32_t cpu, reserved;
    uint64_t frames;
};

/* The kernel's chain as addresses inside instructions: all but the first are return addresses. */
static bool take_chain(struct body *body, uint64_t count, struct cpu_chain *chain)
{
    *chain = (struct cpu_chain){.count = 0};
    for (uint64_t i = 0; i < count; i++) {
        uint64_t frame;
        if (!take_bytes(body, &frame, sizeof frame))
            return false;
        if (frame > WIRE_ENTRY_VALUE || frame == 0)
            continue; /* says what follows (PERF_CONTEXT_), and is no address */
        if (chain->count < CPU_MOST_FRAMES) {
            chain->frames[chain->count] = chain->count ? frame - 1 : frame;
            chain->count++;
        }
    }
    return true;
}

/* Bits of cpu_perf's mask of registers, in rising order, as the unwind tables number them. */
static const uint8_t register_numbers[] = {
    CFI_RAX, CFI_RBX, CFI_RCX, CFI_RDX, CFI_RSI, CFI_RDI, CFI_RBP, CFI_RSP, CFI_RIP,
    CFI_R8,  CFI_R9,  CFI_R10, CFI_R11, CFI_R12, CFI_R13, CFI_R14, CFI_R15,
};
enum { SAMPLED_REGISTERS = sizeof register_numbers };

/* Registers and stack behind a sample's chain. A 32-bit program's are of no use. */
static void take_copy(struct body *body, struct cpu_copy *copy)
{
    uint64_t abi, size, used, value;
    *copy = (struct cpu_copy){0};
    if (!take_bytes(body, &abi, sizeof abi) || abi != PERF_SAMPLE_REGS_ABI_64)
        return;
    for (unsigned i = 0; i < SAMPLED_REGISTERS; i++) {
        if (!take_bytes(body, &value, sizeof value))
            return;
        copy->registers.value[register_numbers[i]] = value;
    }
    if (!take_bytes(body, &size, sizeof size) || size > (uint64_t)(body->end - body->at) ||
        size + sizeof used > (uint64_t)(body->end - body->at))
        return;
    copy->stack = body->at;
    memcpy(&used, body->at + size, sizeof used);
    copy->bytes = (size_t)(used < size ? used : size);
    copy->registers.known = (1u << CFI_REGISTERS) - 1;
}

/* ---- windows --------------------------------------------------------------------------------- */

/* Was something that began at `time_ns` to be recorded? Ranges of --capture-range are known to the
 * processes only: analyses look at the windows that those wrote. */
static bool sample_is_in_range(const struct control_page *control, uint64_t time_ns)
{
    if (!control || control->range[0])
        return true;
    uint64_t state = atomic_load_explicit(&control->state, memory_order_acquire);
    uint64_t generation = control_generation(state);
    bool open = control_open(state);
    for (unsigned back = 0; back < CONTROL_CHANGES && generation > back; back++) {
        uint64_t change = atomic_load(&control->change[(generation - back) % CONTROL_CHANGES]);
        if (change >> 8 <= time_ns)
            break;
        open = !open;
    }
    return open;
}

/* ---- page faults ----------------------------------------------------------------------------- */

#define SAMPLE_TID_AT 20u /* see perf_events.c */

void cpu_records_note(struct cpu_records *records, const struct perf_event_header *record)
{
    uint32_t tid;
    if (record->type != PERF_RECORD_SAMPLE || cpu_perf_is_stop(records->perf, record))
        return;
    memcpy(&tid, (const unsigned char *)record + SAMPLE_TID_AT, sizeof tid);
    for (size_t i = 0; i < records->sampled.count; i++) {
        if (records->sampled.data[i] == tid)
            return;
    }
    prof_array_push(&records->sampled, tid);
}

static void count_thread_faults(struct cpu_records *records, struct cpu_thread *thread)
{
    struct cpu_fault_stretch stretch;
    if (!cpu_faults_read(&thread->faults, thread->process->pid, thread->tid, &stretch) ||
        !sample_is_in_range(records->control, stretch.start_ns))
        return;
    send_process(&records->out, &records->tasks, thread->process);
    struct wire_cpu_faults record = {
        .head = {sizeof record, WIRE_CPU_FAULTS, 0, thread->process->id},
        .start = stretch.start_ns,
        .end = stretch.end_ns,
        .tid = thread->tid,
        .major = stretch.major < UINT32_MAX ? (uint32_t)stretch.major : UINT32_MAX,
        .count = stretch.count,
    };
    spool_out_emit(&records->out.spool, &record);
}

void cpu_records_count_faults(struct cpu_records *records)
{
    for (size_t i = 0; i < records->sampled.count; i++) {
        struct cpu_thread *thread = cpu_tasks_find(&records->tasks, records->sampled.data[i]);
        if (thread)
            count_thread_faults(records, thread);
    }
    records->sampled.count = 0;
}

/* Was the kernel handling a page fault of the thread then? It was there neither by a system call,
 * which leaves the address behind the instruction in rcx too, nor, as the thread's count rose, by
 * an interrupt alone. */
static bool is_in_fault(const struct cpu_thread *thread, const struct cfi_registers *registers,
                        uint64_t time_ns)
{
    return registers->known && registers->value[CFI_RCX] != registers->value[CFI_RIP] &&
           cpu_faults_rise(&thread->faults, time_ns);
}

/* ---- samples --------------------------------------------------------------------------------- */

static void on_processor(struct cpu_records *records, const struct perf_event_header *record,
                         const struct sample_head *head, const struct cpu_copy *copy,
                         struct cpu_chain *chain)
{
    bool kernel = (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
    struct cpu_thread *thread =
        cpu_tasks_thread(&records->tasks, head->task.pid, head->task.tid, head->time);
    if (!thread || !sample_is_in_range(records->control, head->time))
        return;
    cpu_unwind(&records->unwinder, &records->tasks, thread->process, copy, chain);
    cpu_python_merge(thread, head->time, UINT64_MAX, records->unwinder.cfas, chain);
    struct cpu_sample sample = {
        .kind = !kernel                                             ? WIRE_CPU_USER
                : is_in_fault(thread, &copy->registers, head->time) ? WIRE_CPU_FAULT
                                                                    : WIRE_CPU_KERNEL,
        .start_ns = head->time,
        .weight_ns = records->perf->period_ns,
        .tid = head->task.tid,
        .cpu = head->cpu,
    };
    write_cpu_sample(&records->out, &records->tasks, thread->process, chain, &sample);
}

static void record_cpu_sample(struct cpu_records *records, const struct perf_event_header *record)
{
    struct body body = perf_record_body(record);
    struct sample_head head;
    struct cpu_chain chain;
    struct cpu_copy copy = {0};
    if (!take_bytes(&body, &head, sizeof head) || !take_chain(&body, head.frames, &chain) ||
        head.task.tid == 0 || (int32_t)head.task.pid <= 0)
        return;
    if (records->perf->stack_bytes)
        take_copy(&body, &copy);
    if (!cpu_perf_is_stop(records->perf, record)) {
        on_processor(records, record, &head, &copy, &chain);
        return;
    }
    struct cpu_thread *thread =
        cpu_tasks_thread(&records->tasks, head.task.pid, head.task.tid, head.time);
    if (!thread)
        return;
    thread->chain = chain;
    thread->registers.known = 0;
    if (!copy.registers.known || !copy.bytes || !prof_array_reserve(&thread->stack, copy.bytes))
        return;
    thread->registers = copy.registers;
    memcpy(thread->stack.data, copy.stack, copy.bytes);
    thread->stack.count = copy.bytes;
}

/* ---- off the processor ----------------------------------------------------------------------- */

/* Write what is owed in whole periods. */
static void record_off_cpu_sample(struct cpu_records *records, struct cpu_thread *thread,
                                  uint64_t until_ns, uint32_t cpu)
{
    uint64_t period = records->perf->period_ns, *owed = &thread->owed_ns[thread->why];
    uint64_t slept = until_ns > thread->stopped_ns ? until_ns - thread->stopped_ns : 0;
    if (!sample_is_in_range(records->control, thread->stopped_ns))
        return;
    *owed += slept;
    if (*owed < period)
        return;
    struct cpu_sample sample = {
        .kind = thread->why == CPU_OFF_BLOCKED ? WIRE_CPU_BLOCKED : WIRE_CPU_PREEMPTED,
        .start_ns = thread->stopped_ns,
        .duration_ns = slept,
        .weight_ns = *owed - *owed % period,
        .tid = thread->tid,
        .cpu = cpu,
    };
    *owed %= period;
    count_thread_faults(records, thread);
    if (thread->why == CPU_OFF_BLOCKED &&
        is_in_fault(thread, &thread->registers, thread->stopped_ns))
        sample.kind = WIRE_CPU_FAULT;
    struct cpu_copy copy = {thread->registers, thread->stack.data, thread->stack.count};
    cpu_unwind(&records->unwinder, &records->tasks, thread->process, &copy, &thread->chain);
    cpu_python_merge(thread, thread->stopped_ns, until_ns, records->unwinder.cfas, &thread->chain);
    write_cpu_sample(&records->out, &records->tasks, thread->process, &thread->chain, &sample);
}

static void take_switch(struct cpu_records *records, const struct perf_event_header *record,
                        uint64_t time_ns)
{
    const unsigned char *end = (const unsigned char *)record + record->size;
    struct task_ids task;
    uint32_t cpu;
    memcpy(&task, end - 32, sizeof task);
    memcpy(&cpu, end - TRAILER_CPU_BACK, sizeof cpu);
    if (task.tid == 0 || (int32_t)task.pid <= 0)
        return;
    struct cpu_thread *thread = cpu_tasks_thread(&records->tasks, task.pid, task.tid, time_ns);
    if (!thread)
        return;
    if (record->misc & PERF_RECORD_MISC_SWITCH_OUT) {
        thread->stopped_ns = time_ns;
        thread->why = record->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? CPU_OFF_PREEMPTED
                                                                         : CPU_OFF_BLOCKED;
        return;
    }
    if (thread->stopped_ns)
        record_off_cpu_sample(records, thread, time_ns, cpu);
    thread->stopped_ns = 0;
    thread->chain = (struct cpu_chain){.count = 0};
    thread->registers.known = 0;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static void handle_task_record(struct cpu_records *records, const struct perf_event_header *record,
                               uint64_t time_ns)
{
    struct {
        uint32_t pid, parent, tid, parent_tid;
    } task;
    struct body body = perf_record_body(record);
    if (!take_bytes(&body, &task, sizeof task))
        return;
    if (record->type == PERF_RECORD_FORK)
        cpu_tasks_fork(&records->tasks, task.pid, task.parent, task.tid, time_ns);
    else
        cpu_tasks_exit(&records->tasks, task.pid, task.tid);
}

static void take_name(struct cpu_records *records, const struct perf_event_header *record,
                      uint64_t time_ns)
{
    struct body body = perf_record_body(record);
    struct task_ids task;
    if (take_bytes(&body, &task, sizeof task) && task.pid == task.tid &&
        memchr(body.at, '\0', (size_t)(body.end - body.at)))
        cpu_tasks_name(&records->tasks, task.pid, (const char *)body.at,
                       record->misc & PERF_RECORD_MISC_COMM_EXEC, time_ns);
}

static void take_mapping(struct cpu_records *records, const struct perf_event_header *record,
                         uint64_t time_ns)
{
    struct {
        struct task_ids task;
        uint64_t address, bytes, offset;
        unsigned char
            file[24]; /* a build id with its length in front, or the numbers of the inode */
        uint32_t protection, flags;
    } map;
    struct body body = perf_record_body(record);
    if (!take_bytes(&body, &map, sizeof map) ||
        !memchr(body.at, '\0', (size_t)(body.end - body.at)))
        return;
    const char *path = (const char *)body.at;
    if (path[0] != '/' && strcmp(path, "[vdso]") != 0)
        return; /* of no file */
    if (strncmp(path, "//", 2) == 0)
        return; /* anonymous: code made at run time */
    uint32_t id_bytes = 0;
#ifdef PERF_RECORD_MISC_MMAP_BUILD_ID
    if (record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
        id_bytes = map.file[0];
#endif
    struct cpu_process *process = cpu_tasks_process(&records->tasks, map.task.pid, time_ns);
    struct cpu_mapping mapping = {map.address, map.bytes, map.offset, time_ns, 0};
    if (process)
        cpu_tasks_map(&records->tasks, process, path, map.file + 4, id_bytes, &mapping);
}

static void take_loss(struct cpu_records *records, const struct perf_event_header *record)
{
    uint64_t values[2] = {0};
    struct body body = perf_record_body(record);
    if (record->type == PERF_RECORD_LOST && take_bytes(&body, values, sizeof values))
        records->lost += values[1];
    else if (record->type == PERF_RECORD_LOST_SAMPLES && take_bytes(&body, values, 8))
        records->lost += values[0];
}

void cpu_records_take(struct cpu_records *records, const struct perf_event_header *record,
                      uint64_t time_ns)
{
    switch (record->type) {
    case PERF_RECORD_SAMPLE:
        record_cpu_sample(records, record);
        break;
    case PERF_RECORD_SWITCH:
        take_switch(records, record, time_ns);
        break;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        handle_task_record(records, record, time_ns);
        break;
    case PERF_RECORD_COMM:
        take_name(records, record, time_ns);
        break;
    case PERF_RECORD_MMAP2:
        take_mapping(records, record, time_ns);
        break;
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
        take_loss(records, record);
        break;
    case PERF_RECORD_THROTTLE:
        records->throttled++;
        break;
    default:
        break;
    }
}

void cpu_records_end(struct cpu_records *records, uint64_t now_ns)
{
    uint64_t tid, value;
    for (size_t at = 0; prof_map_next(&records->tasks.threads, &at, &tid, &value);) {
        struct cpu_thread *thread = (struct cpu_thread *)(uintptr_t)value;
        if (thread->stopped_ns)
            record_off_cpu_sample(records, thread, now_ns, WIRE_CPU_UNKNOWN);
    }
}
