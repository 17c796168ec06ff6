/* Python's frames of a sampled thread, read out of its process from outside: thread state, frames
 * and code objects, by the layouts of collectors/python. The process runs on meanwhile: everything
 * is looked at before it is believed, and what does not fit is no frame.
 *
 * The kernel's samples hold registers and the C stack, Python's frames lie on the heap. So they are
 * read when the sample comes, some 0.1 ms after it was taken (the sampler wakes for each); a
 * reading later than half a period is not used. The frames of a thread that does not run stay as
 * they are: they are read once while it is off its processor. */
#ifndef PERFKIT_SAMPLERS_CPU_PYTHON_H
#define PERFKIT_SAMPLERS_CPU_PYTHON_H

#include "collectors/python/interpreter.h"
#include <stdatomic.h>

#include "libprof/base/map.h"
#include "samplers/counters/spool_out.h"
#include "samplers/cpu/tasks.h"
#include "samplers/cpu/unwind.h"

/* ---- memory of another process (python_find.c) ----------------------------------------------- */

#define CPU_PAGE_BYTES 4096u
#define CPU_PAGES 32u
#define CPU_MOST_READS 32768u /* of one reading: some 30 ms */

/* Pages that were read of one process. */
struct cpu_memory {
    struct python_memory reader; /* first: python_load gets back from it */
    uint32_t pid;
    int error;      /* errno of the last read that failed */
    unsigned reads; /* calls to the kernel since cpu_memory_begin */
    int pagemap;    /* descriptor + 1 of /proc/PID/pagemap; 0 = not open; -1 = there is none */
    _Atomic uint64_t gate; /* changes before and after each reading; odd: in one */
    uint64_t refused;      /* readings of what the process has not in memory */
    unsigned count, next;  /* pages, and which is replaced */
    uint64_t addresses[CPU_PAGES];
    unsigned char pages[CPU_PAGES][CPU_PAGE_BYTES];
};

/* Forget what is known, and read of `pid` from now on. */
void cpu_memory_begin(struct cpu_memory *memory, uint32_t pid);

/* Leave a thread behind that is in the reading of that `gate`, where the kernel keeps it: it never
 * returns from there. False: it is not. */
bool cpu_memory_leave(struct cpu_memory *memory, uint64_t gate);

/* Close what is open. */
void cpu_memory_end(struct cpu_memory *memory);

/* Read pages anew from now on. */
void cpu_memory_forget(struct cpu_memory *memory);

/* An interpreter as another process has it. */
struct cpu_interpreter {
    struct python_interpreter it; /* its layout is `layout`; none of its functions is called */
    struct python_layout layout;
    uint64_t runtime;             /* _PyRuntime */
    uint64_t loop_low, loop_high; /* machine code of the loop that runs Python; 0 = not known */
};

/* May a file of that name be an interpreter? */
bool cpu_python_named(const char *path);

/* Find the interpreter of the process that `memory` reads. False with the reason and, in *version,
 * what it was (0 = none was found). */
bool cpu_python_find(struct cpu_memory *memory, struct cpu_interpreter *out, unsigned *version,
                     const char **why);

/* ---- readings (python.c) --------------------------------------------------------------------- */

struct cpu_reading {
    uint64_t for_ns;  /* time of the record that it belongs to */
    uint64_t read_ns; /* when it was done */
    uint32_t frame_count, loop_count;
    bool cut;
    struct python_loop *loops; /* behind the entries */
    uint64_t entries[];        /* as of wire_stack; innermost first */
};

struct cpu_refusal {
    unsigned version; /* 0 = unknown */
    const char *why;
};

#define CPU_MOST_LINES 65536u /* bytes of a table of lines */

struct cpu_pythons {
    struct spool_out *spool;
    struct cpu_tasks *tasks;
    uint64_t late_ns;                       /* a reading that comes later is none */
    PROF_ARRAY(struct cpu_thread *) wanted; /* ran when they were sampled: to read at once */
    PROF_ARRAY(uint32_t) stopped;           /* tids: to read while they are off */
    PROF_ARRAY(struct cpu_refusal) refusals;
    uint64_t readings; /* for samples of threads that ran */
    uint64_t delay_ns; /* from the sample to the reading, their sum */
    uint64_t torn;     /* readings, without a result: the frames changed under them */
    uint64_t late;     /* samples that came too late for one */
    uint64_t untold;   /* frames of code that found no room */
    struct cpu_memory memory;
    unsigned char lines[CPU_MOST_LINES];
};

/* A record came out of the kernel's buffers, before those of other processors are known. */
void cpu_python_note(struct cpu_pythons *pythons, const struct cpu_perf *perf,
                     const struct perf_event_header *record, uint64_t time_ns);

/* Read the frames of the noted threads. */
void cpu_python_read(struct cpu_pythons *pythons);

/* Put Python's frames of the record of `for_ns` into the chain that was unwound, if they were read
 * before `until_ns`. cfas: of the chain's native frames, as cpu_unwinder has them. */
void cpu_python_merge(struct cpu_thread *thread, uint64_t for_ns, uint64_t until_ns,
                      const uint64_t *cfas, struct cpu_chain *chain);

/* The interpreter of a process, which is looked for when a thread of it is sampled; again when
 * another file with such a name was mapped. NULL: out of memory. */
struct cpu_python *cpu_python_new(void);
void cpu_python_look_again(struct cpu_python *python);
void cpu_python_free_process(struct cpu_python *python);
void cpu_python_free_thread(struct cpu_python_thread *thread);
void cpu_pythons_free(struct cpu_pythons *pythons);

#endif
