/* Processes and threads come and go by the thousand (a build), and most are never sampled: a forked
 * child shares its parent's mappings until it runs another program, and nothing is sent of a
 * process before its first sample. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "samplers/cpu/python.h"
#include "samplers/cpu/tasks.h"

static struct cpu_process *find_cpu_process(const struct cpu_tasks *tasks, uint32_t pid)
{
    uint64_t *slot = prof_map_get(&tasks->processes, pid);
    return slot ? (struct cpu_process *)(uintptr_t)*slot : NULL;
}

struct cpu_thread *cpu_tasks_find(const struct cpu_tasks *tasks, uint32_t tid)
{
    uint64_t *slot = prof_map_get(&tasks->threads, tid);
    return slot ? (struct cpu_thread *)(uintptr_t)*slot : NULL;
}

static void free_process(struct cpu_process *process)
{
    prof_array_free(&process->mappings);
    cpu_python_free_process(process->python);
    free(process);
}

static void free_thread(struct cpu_thread *thread)
{
    prof_array_free(&thread->stack);
    cpu_python_free_thread(thread->python);
    cpu_faults_close(&thread->faults);
    free(thread);
}

struct cpu_process *cpu_tasks_process(struct cpu_tasks *tasks, uint32_t pid, uint64_t time_ns)
{
    struct cpu_process *process = find_cpu_process(tasks, pid);
    if (process)
        return process;
    process = calloc(1, sizeof *process);
    if (!process)
        return NULL;
    process->pid = pid;
    process->start_ns = time_ns;
    if (prof_map_put(&tasks->processes, pid, (uintptr_t)process))
        return process;
    free(process);
    return NULL;
}

/* Threads start their count anywhere within a period, not all at 0: short lives then have their
 * share of samples on the average. */
static uint64_t phase_of(uint32_t tid, uint64_t period_ns)
{
    uint64_t mixed = (tid + 1ull) * 0x9e3779b97f4a7c15ull;
    return (mixed >> 32) % period_ns;
}

struct cpu_thread *cpu_tasks_thread(struct cpu_tasks *tasks, uint32_t pid, uint32_t tid,
                                    uint64_t time_ns)
{
    struct cpu_thread *thread = cpu_tasks_find(tasks, tid);
    if (thread)
        return thread;
    struct cpu_process *process = cpu_tasks_process(tasks, pid, time_ns);
    thread = process ? calloc(1, sizeof *thread) : NULL;
    if (!thread)
        return NULL;
    *thread = (struct cpu_thread){.tid = tid, .process = process};
    for (int i = 0; i < CPU_OFFS; i++)
        thread->owed_ns[i] = phase_of(tid + (uint32_t)i, tasks->period_ns);
    if (!prof_map_put(&tasks->threads, tid, (uintptr_t)thread)) {
        free(thread);
        return NULL;
    }
    process->threads++;
    return thread;
}

static void inherit(struct cpu_process *child, const struct cpu_process *parent)
{
    memcpy(child->name, parent->name, sizeof child->name);
    if (parent->python)
        child->python = cpu_python_new();
    if (!prof_array_reserve(&child->mappings, parent->mappings.count) || !parent->mappings.count)
        return;
    memcpy(child->mappings.data, parent->mappings.data,
           parent->mappings.count * sizeof *parent->mappings.data);
    child->mappings.count = parent->mappings.count;
}

void cpu_tasks_fork(struct cpu_tasks *tasks, uint32_t pid, uint32_t parent, uint32_t tid,
                    uint64_t time_ns)
{
    const struct cpu_process *from = pid != parent ? find_cpu_process(tasks, parent) : NULL;
    bool known = find_cpu_process(tasks, pid) != NULL;
    struct cpu_thread *thread = cpu_tasks_thread(tasks, pid, tid, time_ns);
    if (!thread || pid == parent)
        return;
    thread->process->parent = parent;
    if (from && !known)
        inherit(thread->process, from);
}

void cpu_tasks_exit(struct cpu_tasks *tasks, uint32_t pid, uint32_t tid)
{
    struct cpu_thread *thread = cpu_tasks_find(tasks, tid);
    struct cpu_process *process = find_cpu_process(tasks, pid);
    if (thread) {
        prof_map_remove(&tasks->threads, tid, NULL);
        process = thread->process;
        process->threads--;
        free_thread(thread);
    }
    if (process && process->threads == 0) {
        prof_map_remove(&tasks->processes, process->pid, NULL);
        free_process(process);
    }
}

static bool thread_is_gone(const struct cpu_thread *thread)
{
    return tgkill((pid_t)thread->process->pid, (pid_t)thread->tid, 0) < 0 && errno == ESRCH;
}

void cpu_tasks_mark_gone(struct cpu_tasks *tasks)
{
    uint64_t tid, value;
    for (size_t at = 0; prof_map_next(&tasks->threads, &at, &tid, &value);) {
        struct cpu_thread *thread = (struct cpu_thread *)(uintptr_t)value;
        thread->gone = thread_is_gone(thread);
    }
}

/* The marked threads, or those of a process but for `first`: how many that were. */
static uint64_t forget_cpu_threads(struct cpu_tasks *tasks, const struct cpu_process *process,
                                   const struct cpu_thread *first)
{
    PROF_ARRAY(struct cpu_thread *) gone = {0};
    uint64_t tid, value;
    for (size_t at = 0; prof_map_next(&tasks->threads, &at, &tid, &value);) {
        struct cpu_thread *thread = (struct cpu_thread *)(uintptr_t)value;
        bool is_one = process ? thread->process == process && thread != first : thread->gone;
        struct cpu_thread **slot = is_one ? prof_array_add(&gone) : NULL;
        if (slot)
            *slot = thread;
    }
    for (size_t i = 0; i < gone.count; i++)
        cpu_tasks_exit(tasks, gone.data[i]->process->pid, gone.data[i]->tid);
    uint64_t count = gone.count;
    prof_array_free(&gone);
    return count;
}

uint64_t cpu_tasks_forget_gone(struct cpu_tasks *tasks)
{
    return forget_cpu_threads(tasks, NULL, NULL);
}

/* Exec leaves one thread, which has the process's number from then on. When it was not the first
 * one, the kernel does not report the end of the number that it had. */
static void leave_one_thread(struct cpu_tasks *tasks, struct cpu_process *process, uint64_t time_ns)
{
    if (process->threads == 0)
        return;
    const struct cpu_thread *first = cpu_tasks_thread(tasks, process->pid, process->pid, time_ns);
    if (first && first->process == process && process->threads > 1)
        forget_cpu_threads(tasks, process, first);
}

void cpu_tasks_name(struct cpu_tasks *tasks, uint32_t pid, const char *name, bool exec,
                    uint64_t time_ns)
{
    struct cpu_process *process = cpu_tasks_process(tasks, pid, time_ns);
    if (!process)
        return;
    size_t length = strnlen(name, CPU_NAME_BYTES - 1);
    memset(process->name, 0, sizeof process->name);
    memcpy(process->name, name, length);
    if (!exec)
        return;
    leave_one_thread(tasks, process, time_ns);
    process->id = 0;
    process->program = true;
    process->start_ns = time_ns;
    process->mappings.count = 0;
    process->sent = 0;
    cpu_python_free_process(process->python);
    process->python = NULL;
}

/* Index of the file; UINT32_MAX: out of memory. */
static uint32_t file_of(struct cpu_tasks *tasks, const char *path, const unsigned char *build_id,
                        uint32_t build_id_bytes)
{
    size_t length = strlen(path) + 1;
    char key[4096 + CPU_BUILD_ID_BYTES + 1];
    if (length > 4096)
        return UINT32_MAX;
    memcpy(key, path, length);
    memcpy(key + length, build_id, build_id_bytes);
    uint32_t *known = prof_names_get(&tasks->file_names, key, length + build_id_bytes);
    if (known)
        return *known;
    struct cpu_file file = {.path = strdup(path), .build_id_bytes = build_id_bytes};
    memcpy(file.build_id, build_id, build_id_bytes);
    uint32_t index = (uint32_t)tasks->files.count;
    if (!file.path || !prof_array_reserve(&tasks->files, 1) ||
        !prof_names_put(&tasks->file_names, key, length + build_id_bytes, index)) {
        free(file.path);
        return UINT32_MAX;
    }
    tasks->files.data[tasks->files.count++] = file;
    return index;
}

void cpu_tasks_map(struct cpu_tasks *tasks, struct cpu_process *process, const char *path,
                   const unsigned char *build_id, uint32_t build_id_bytes,
                   const struct cpu_mapping *mapping)
{
    uint32_t file =
        file_of(tasks, path, build_id, build_id_bytes <= CPU_BUILD_ID_BYTES ? build_id_bytes : 0);
    struct cpu_mapping *kept = file == UINT32_MAX ? NULL : prof_array_add(&process->mappings);
    if (!kept)
        return;
    *kept = *mapping;
    kept->file = file;
    if (!cpu_python_named(path))
        return;
    tasks->pythons = true;
    if (!process->python)
        process->python = cpu_python_new();
    else
        cpu_python_look_again(process->python);
}

void cpu_tasks_free(struct cpu_tasks *tasks)
{
    uint64_t key, value;
    for (size_t at = 0; prof_map_next(&tasks->threads, &at, &key, &value);)
        free_thread((struct cpu_thread *)(uintptr_t)value);
    for (size_t at = 0; prof_map_next(&tasks->processes, &at, &key, &value);)
        free_process((struct cpu_process *)(uintptr_t)value);
    for (size_t i = 0; i < tasks->files.count; i++)
        free(tasks->files.data[i].path);
    prof_map_free(&tasks->threads);
    prof_map_free(&tasks->processes);
    prof_array_free(&tasks->files);
    prof_names_free(&tasks->file_names);
}
