/* The processes and threads of the target as the kernel's records have them: what each has mapped,
 * and since when a thread does not run. */
#ifndef PERFKIT_SAMPLERS_CPU_TASKS_H
#define PERFKIT_SAMPLERS_CPU_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "collectors/stacks/cfi.h"
#include "libprof/base/array.h"
#include "libprof/base/map.h"
#include "samplers/cpu/perf_events.h"

#define CPU_NAME_BYTES 16u
#define CPU_BUILD_ID_BYTES 20u

/* A stretch of a file that a process may execute. */
struct cpu_mapping {
    uint64_t address, bytes, offset, time_ns;
    uint32_t file; /* index into cpu_tasks.files */
};

struct cpu_python;        /* python.c: the interpreter of a process */
struct cpu_python_thread; /* and its frames of a thread */

struct cpu_file {
    char *path;
    unsigned char build_id[CPU_BUILD_ID_BYTES];
    uint32_t build_id_bytes;           /* 0 = unknown */
    uint32_t path_text, build_id_text; /* ids in the spool, 0 = not sent */
};

/* One image of a process: exec makes a new one. */
struct cpu_process {
    uint32_t pid, parent;
    uint32_t threads;
    uint32_t id; /* in the spool; 0 = nothing was sent of it */
    uint64_t start_ns;
    char name[CPU_NAME_BYTES];
    bool program; /* started by exec */
    PROF_ARRAY(struct cpu_mapping) mappings;
    size_t sent;               /* of the mappings */
    struct cpu_python *python; /* NULL = nothing mapped has the name of an interpreter */
};

#define CPU_MOST_ENTRIES 192u /* with Python's frames */
struct cpu_chain {
    uint32_t count;
    bool cut; /* callers further out are not known */
    /* innermost first: addresses inside the instructions, WIRE_ENTRY_PYTHON */
    uint64_t frames[CPU_MOST_ENTRIES];
};

enum cpu_off { CPU_OFF_BLOCKED, CPU_OFF_PREEMPTED, CPU_OFFS };

#define CPU_RISES 4u /* kept: samples are judged some milliseconds later */

/* What the kernel counts of a thread's page faults (faults.c). */
struct cpu_faults {
    uint64_t read_ns;      /* the last time; 0 = not yet */
    uint64_t count, major; /* then; of all faults, of those that waited for a device */
    struct {
        uint64_t from_ns, to_ns;
    } rises[CPU_RISES]; /* between readings of which each had more than the one before */
    uint32_t rise;      /* the last one */
    bool told;          /* a stretch was */
    int file;           /* descriptor + 1; 0 = none */
};

struct cpu_fault_stretch {
    uint64_t start_ns, end_ns;
    uint64_t count, major;
};

struct cpu_thread {
    uint32_t tid;
    struct cpu_process *process;
    uint64_t stopped_ns; /* 0 = it runs, as far as is known */
    enum cpu_off why;
    uint64_t owed_ns[CPU_OFFS];     /* time that has no sample yet */
    struct cpu_chain chain;         /* where it stopped, as the kernel found it */
    struct cfi_registers registers; /* then; known = 0: not kept */
    PROF_ARRAY(unsigned char) stack;
    struct cpu_python_thread *python; /* NULL = not yet */
    struct cpu_faults faults;
    bool gone; /* it no longer existed when that was read */
};

struct cpu_tasks {
    uint64_t period_ns;        /* between samples, > 0 */
    struct prof_map processes; /* pid -> struct cpu_process * */
    struct prof_map threads;   /* tid -> struct cpu_thread * */
    PROF_ARRAY(struct cpu_file) files;
    struct prof_names file_names; /* path and build id -> index into files */
    bool pythons;                 /* there was a process with an interpreter */
};

/* ---- page faults (faults.c) ------------------------------------------------------------------ */

/* Read a thread's counts. False: there is no stretch to write, because it is the first reading, the
 * thread is gone, or it had no fault; the first stretch is written even without one. */
bool cpu_faults_read(struct cpu_faults *faults, uint32_t pid, uint32_t tid,
                     struct cpu_fault_stretch *stretch);

/* The same for counts that were read at `now_ns`. */
bool cpu_faults_take(struct cpu_faults *faults, uint64_t now_ns, uint64_t count, uint64_t major,
                     struct cpu_fault_stretch *stretch);

/* Had the thread a fault in the stretch between two readings that this moment lies in? */
bool cpu_faults_rise(const struct cpu_faults *faults, uint64_t time_ns);

/* Of the text of a `stat` file. False: it is none. */
bool cpu_faults_parse(const char *stat, uint64_t *count, uint64_t *major);

void cpu_faults_close(struct cpu_faults *faults);

/* ---- tasks ----------------------------------------------------------------------------------- */

/* As known; NULL = not. */
struct cpu_thread *cpu_tasks_find(const struct cpu_tasks *tasks, uint32_t tid);

/* As known, or made. NULL: out of memory. */
struct cpu_process *cpu_tasks_process(struct cpu_tasks *tasks, uint32_t pid, uint64_t time_ns);
struct cpu_thread *cpu_tasks_thread(struct cpu_tasks *tasks, uint32_t pid, uint32_t tid,
                                    uint64_t time_ns);

/* A thread began; of a new process when `pid` is not `parent`. */
void cpu_tasks_fork(struct cpu_tasks *tasks, uint32_t pid, uint32_t parent, uint32_t tid,
                    uint64_t time_ns);

/* A thread ended. What points to it or to its process dies. */
void cpu_tasks_exit(struct cpu_tasks *tasks, uint32_t pid, uint32_t tid);

/* Mark the threads that do not exist any more. The kernel has reported their ends before: what is
 * still in its buffers must be taken before they are forgotten. Numbers of perfkit's own pid
 * namespace. */
void cpu_tasks_mark_gone(struct cpu_tasks *tasks);

/* Forget the marked ones whose end was not reported: how many that were. */
uint64_t cpu_tasks_forget_gone(struct cpu_tasks *tasks);

/* A process (its first thread) has a new name; after exec it is a new image. */
void cpu_tasks_name(struct cpu_tasks *tasks, uint32_t pid, const char *name, bool exec,
                    uint64_t time_ns);

/* `path` is mapped. */
void cpu_tasks_map(struct cpu_tasks *tasks, struct cpu_process *process, const char *path,
                   const unsigned char *build_id, uint32_t build_id_bytes,
                   const struct cpu_mapping *mapping);

void cpu_tasks_free(struct cpu_tasks *tasks);

#endif
