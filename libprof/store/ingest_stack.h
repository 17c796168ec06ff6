/* Host call stacks on their way into the file. For the ingest's files, and for those that take
 * stacks outside of the target (CPU samples): equal stacks, frames and modules get one row,
 * whatever their source. */
#ifndef PERFKIT_STORE_INGEST_STACK_H
#define PERFKIT_STORE_INGEST_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct prof_ingest;

/* frame.kind */
enum prof_store_frame {
    PROF_STORE_FRAME_MISSING, /* callers further out are not known: the stack was cut */
    PROF_STORE_FRAME_NATIVE,
    PROF_STORE_FRAME_PYTHON,
    PROF_STORE_FRAME_KERNEL, /* of Linux */
};

struct ingest_entry {
    enum prof_store_frame kind;
    /* Native and kernel: an address within the instruction that is meant, so a return address less
     * one. Where a call is the last instruction of its function the return address is another's. */
    uint64_t address;
    /* Python, and native frames that came with a name: string.id (ingest_string_row); file and line
     * 0 = unknown */
    int64_t function, file;
    uint32_t line;
    int64_t module; /* native: module.id; 0 = what is mapped at the address */
};

/* The row of a stack: `entries` innermost first, addresses as of the modules that the process has
 * now. `process` is a process.id. 0: failed; -1: there are no entries. */
int64_t ingest_stack(struct prof_ingest *ingest, int64_t process,
                     const struct ingest_entry *entries, size_t count);

/* A mapped object file. */
struct ingest_mapping {
    const char *path;
    const char *build_id; /* hexadecimal; NULL = read it from the file */
    uint64_t address, bytes;
    int64_t segment;  /* what is mapped at `address` is the file from this offset; -1 = the whole
                         object, `address` being its lowest */
    uint64_t time_ns; /* CLOCK_MONOTONIC */
};

/* The process has this at these addresses from now on: what was there is gone for the stacks that
 * follow. An object that has a row keeps it; a segment of one that is mapped whole is that one. */
enum prof_status ingest_mapped(struct prof_ingest *ingest, int64_t process,
                               const struct ingest_mapping *mapping);

/* What is at `address` was unmapped at `time_ns`. */
enum prof_status ingest_unmapped(struct prof_ingest *ingest, int64_t process, uint64_t address,
                                 uint64_t time_ns);

#endif
