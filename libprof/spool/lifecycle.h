/* The shared table of processes: one file per run, made by perfkit, mapped by every process of the
 * target at start. Thousands of short children cost one entry each and no spool.
 *
 * The file is `lifecycle` in the spool directory: a header page, then entries of 256 bytes. perfkit
 * reserves room ahead (fallocate) and advances `reserved`; a process takes entry number
 * `next`++ and gives up, counted in `dropped`, when it is not reserved. Entries are filled, then
 * published by a release store of `state`. */
#ifndef PERFKIT_SPOOL_LIFECYCLE_H
#define PERFKIT_SPOOL_LIFECYCLE_H

#include <stdatomic.h>
#include <stdint.h>

#define LIFECYCLE_FILE "lifecycle"
#define LIFECYCLE_MAGIC 0x46494c4b46524550ull /* "PERFKLIF" */
#define LIFECYCLE_VERSION 1u
#define LIFECYCLE_HEADER_BYTES 4096u
#define LIFECYCLE_MAX_ENTRIES (1u << 20)

/* How a process ended, as the process itself saw it. UNSEEN: it never said (killed by a signal, or
 * left by a raw system call). */
#define LIFECYCLE_END_MAP(X)                                                                       \
    X(UNSEEN, "unseen")                                                                            \
    X(EXIT, "exit")       /* return from main or exit() */                                         \
    X(FAST_EXIT, "_exit") /* _exit, _Exit */                                                       \
    X(QUICK_EXIT, "quick_exit")                                                                    \
    X(EXEC, "exec")     /* replaced by another program; the same pid goes on */                    \
    X(SIGNAL, "signal") /* learnt by perfkit, from wait */

enum lifecycle_end {
#define X(name, text) LIFECYCLE_##name,
    LIFECYCLE_END_MAP(X)
#undef X
        LIFECYCLE_ENDS
};

enum lifecycle_state { LIFECYCLE_EMPTY, LIFECYCLE_ALIVE, LIFECYCLE_ENDED };

#define LIFECYCLE_MADE_SPOOL 1u
#define LIFECYCLE_HOOKED 2u  /* an end that is not seen passed none of the exit functions */
#define LIFECYCLE_REFUSED 4u /* it had something to record and could make no spool */
/* Children that cannot reach the table (another user, another root folder) say it here: */
#define LIFECYCLE_CHILD_UNSEEN 8u   /* one was started */
#define LIFECYCLE_CHILD_REFUSED 16u /* one had something to record */
/* A variable by which the collector gets in had another value, here or in a program started by it:
 */
#define LIFECYCLE_OTHER_CUDA 32u
#define LIFECYCLE_OTHER_NVTX 64u
#define LIFECYCLE_OTHER_OPENCL 128u
#define LIFECYCLE_ERRNO_SHIFT 16 /* why, of what was noted first */

/* How an entry came to be */
enum lifecycle_birth { LIFECYCLE_BIRTH_START = 1, LIFECYCLE_BIRTH_FORK };

struct lifecycle_header {
    uint64_t magic;
    uint32_t version;
    uint32_t entry_bytes;
    _Atomic uint32_t next;     /* entries taken so far, may pass reserved */
    _Atomic uint32_t reserved; /* entries that have room */
    _Atomic uint32_t dropped;
    uint32_t pad;
};

struct lifecycle_entry {
    _Atomic uint32_t state; /* enum lifecycle_state */
    uint32_t pid;
    uint32_t parent;    /* pid */
    uint32_t birth;     /* enum lifecycle_birth */
    uint64_t start_ns;  /* CLOCK_MONOTONIC */
    uint64_t pid_space; /* inode of the pid namespace that `pid` belongs to, 0 = unknown */
    _Atomic uint64_t end_ns;
    _Atomic int32_t status; /* of exit */
    _Atomic uint32_t how;   /* enum lifecycle_end */
    _Atomic uint32_t facts; /* LIFECYCLE_MADE_SPOOL, ... */
    uint32_t command_bytes;
    char command[200]; /* arguments joined by NUL, cut */
};
_Static_assert(sizeof(struct lifecycle_entry) == 256, "lifecycle_entry");

#endif
