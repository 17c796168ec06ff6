/* The callers of a sampled thread, found outside of it: from its registers and a copy of the top of
 * its stack, by the unwind tables of the files that it has mapped. */
#ifndef PERFKIT_SAMPLERS_CPU_UNWIND_H
#define PERFKIT_SAMPLERS_CPU_UNWIND_H

#include "collectors/stacks/cfi.h"
#include "samplers/cpu/tasks.h"

/* Where a thread was, as the kernel copied it. */
struct cpu_copy {
    struct cfi_registers registers; /* known = 0: there is no copy */
    const unsigned char *stack;     /* from rsp on */
    size_t bytes;
};

/* Unwind tables of a file, read when they are first needed. */
struct cpu_tables {
    bool looked;
    unsigned char *memory; /* NULL = it has none that can be used */
    size_t bytes;
    uint64_t low, header;               /* as the file has them, before loading */
    uint64_t text_offset, text_address; /* of its executable segment */
};

/* Reads the tables of an open file, no more than `room` bytes: `memory` stays NULL when it has
 * none. Returns the bytes kept. */
uint64_t cpu_tables_read(struct cpu_tables *tables, int fd, uint64_t room);
void cpu_tables_of_vdso(struct cpu_tables *tables);

struct cpu_unwinder {
    PROF_ARRAY(struct cpu_tables) tables; /* by number of cpu_tasks.files */
    struct cpu_row *rows;                 /* of the instructions looked up last; NULL = not yet */
    uint64_t table_bytes;
    uint64_t cut; /* stacks deeper than their copy */
    /* Of the last chain: the stack pointer after the return from frame i; 0 = not known. */
    uint64_t cfas[CPU_MOST_FRAMES];
};

/* Does a file have code at that address? */
bool cpu_mapped(const struct cpu_process *process, uint64_t address);

/* `chain` holds what the kernel found by frame pointers: it is replaced, and continues the frames
 * where the copy ends. */
void cpu_unwind(struct cpu_unwinder *unwinder, const struct cpu_tasks *tasks,
                const struct cpu_process *process, const struct cpu_copy *copy,
                struct cpu_chain *chain);

void cpu_unwinder_free(struct cpu_unwinder *unwinder);

#endif
