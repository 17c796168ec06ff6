/* The spool: a memory-mapped file that carries one process's records to perfkit.
 *
 * File `PID-STARTNS.spool` in the spool directory:
 *     header page | counter slots | chunk 0 | chunk 1 | ...
 * Chunks below `reserved` have room on the file system (fallocate) and are populated; nothing
 * touches a page above it, so there is no SIGBUS. A chunk is taken from the free list by one
 * compare-and-swap and belongs to one thread (or to the definition stream) until it is full or the
 * thread ends. The owner writes a record and then publishes it by a release store of `committed`.
 * The reader takes committed prefixes and gives consumed chunks back with a new generation.
 *
 * Order: chunks of one thread carry rising `sequence` numbers. A thread that ends with much room
 * left puts its chunk on the partial list; only a thread that has no chunk yet may continue it
 * (after a THREAD record), so taking chunks by rising sequence keeps every thread's order.
 *
 * Reader protocol, which makes every id defined before its use: (1) list the chunks that are not
 * free, (2) load `committed` of each event chunk, (3) drain the definition chunks, (4) process the
 * event prefixes by rising sequence. Both listings begin by loading `sequence` and leave out chunks
 * taken later, so that they never hold a chunk without its thread's earlier one. */
#ifndef PERFKIT_SPOOL_LAYOUT_H
#define PERFKIT_SPOOL_LAYOUT_H

#include <stdatomic.h>
#include <stdint.h>

#include "libprof/spool/rank.h"
#include "libprof/wire/record.h"

#define SPOOL_MAGIC 0x4c4f4f50534b4650ull /* "PFKSPOOL" */
#define SPOOL_SUFFIX ".spool"
#define SPOOL_HEADER_BYTES 4096u
#define SPOOL_COUNTER_ROWS 64u /* threads spread over these */
#define SPOOL_COUNTER_BYTES (SPOOL_COUNTER_ROWS * WIRE_COUNT_SLOTS * 8u)
#define SPOOL_CHUNK_BYTES 65536u
#define SPOOL_CHUNK_HEADER_BYTES 64u
#define SPOOL_CHUNK_CAPACITY (SPOOL_CHUNK_BYTES - SPOOL_CHUNK_HEADER_BYTES)
#define SPOOL_FIRST_CHUNK (SPOOL_HEADER_BYTES + SPOOL_COUNTER_BYTES)
#define SPOOL_MAX_CHUNKS (1u << 18) /* 16 GiB */

/* header.features: of perfkit's sampler of hardware counters, a process of no interest to the user.
 * Its samples belong to devices, not to a process of the target. */
#define SPOOL_OF_SAMPLER 1u

#define SPOOL_AT_LIMIT 0x10000u /* header.room_error: max_chunks are in use */

enum spool_chunk_state {
    SPOOL_FREE = 0,    /* on the free list */
    SPOOL_EVENTS,      /* owned by a thread, being written */
    SPOOL_EVENTS_FULL, /* final: no more records will come in this generation */
    SPOOL_PARTIAL,     /* on the partial list; a new thread may continue it */
    SPOOL_DEFINITIONS,
    SPOOL_DEFINITIONS_FULL,
};

struct spool_chunk {
    _Atomic uint32_t state;      /* enum spool_chunk_state */
    _Atomic uint32_t committed;  /* bytes published after this header */
    _Atomic uint64_t sequence;   /* order in which chunks were taken, from 1 */
    _Atomic uint32_t generation; /* counts how often the chunk was recycled */
    _Atomic uint32_t tid;        /* first owner */
    _Atomic uint32_t next;       /* free and partial lists: chunk number + 1, 0 = end */
    uint32_t reserved[8];
};
_Static_assert(sizeof(struct spool_chunk) == SPOOL_CHUNK_HEADER_BYTES, "spool_chunk");

struct spool_header {
    _Atomic uint64_t magic; /* stored last: the header is complete */
    uint32_t version;       /* WIRE_VERSION of the writer */
    uint32_t min_reader;    /* oldest reader version that understands it */
    uint64_t features;      /* SPOOL_OF_SAMPLER */
    uint32_t chunk_bytes;
    uint32_t first_chunk; /* file offset of chunk 0 */
    uint32_t counter_rows, counter_slots;
    uint32_t pid, parent;
    uint64_t start_ns;    /* CLOCK_MONOTONIC when the spool was made */
    uint64_t realtime_ns; /* CLOCK_REALTIME and CLOCK_MONOTONIC_RAW at start_ns */
    uint64_t raw_ns;
    uint32_t forked;     /* 1 when made by a forked child, before any exec */
    uint32_t max_chunks; /* --spool-limit in chunks */
    char command[256];   /* arguments joined by NUL, cut */
    uint32_t command_bytes;
    uint32_t entry; /* number + 1 of the process's entry in the lifecycle table, 0 = it has none */

    _Alignas(64) _Atomic uint64_t free_list;    /* tag << 32 | chunk number + 1 */
    _Alignas(64) _Atomic uint64_t partial_list; /* the same */
    _Alignas(64) _Atomic uint64_t sequence;
    _Atomic uint32_t reserved;   /* chunks with room */
    _Atomic uint32_t free_count; /* hint for the helper */
    _Atomic uint32_t no_room;    /* 1 while growing fails */
    _Atomic uint32_t ended;      /* enum lifecycle_end + 1 once the process said it ends */
    _Atomic int32_t status;
    uint32_t pad1;
    _Atomic uint64_t end_ns;
    _Atomic uint64_t heartbeat_ns;             /* last tick of the helper thread */
    _Alignas(64) _Atomic uint64_t dropped[64]; /* per enum wire_type: records that found no chunk */

    uint32_t rank, local_rank, world_size; /* of a distributed run, each + 1; 0 = unknown */
    _Atomic uint32_t room_error;   /* errno of the last time growing failed, or SPOOL_AT_LIMIT */
    char job[PROF_RANK_JOB_BYTES]; /* ends with a NUL when shorter; empty = unknown */

    /* A process that cannot open its file any more (another user, another root folder) requests
     * room from the reader: chunks in all, and as many as the reader has reserved. */
    _Atomic uint32_t wanted, granted;

    /* How much of what the device did is here, should the process die (0 = not said): */
    _Atomic uint64_t fetched_ns; /* CUDA: CUPTI holds no record of work that ended before */
    _Atomic uint64_t final_ns;   /* when the last flush began: of an end, or of a death */
    _Atomic uint32_t death_tid;  /* the thread that a deadly signal stopped */
    uint32_t pad3;
};
_Static_assert(sizeof(struct spool_header) <= SPOOL_HEADER_BYTES, "spool_header");

/* The free and the partial list of a spool: stacks of chunks in shared memory, pushed and popped
 * from both sides by compare-and-swap on a tagged head. A process that dies in between loses
 * nothing. */
/* Push chunk number `number` on a list head; `chunks` is the address of chunk 0. */
static inline void spool_list_push(_Atomic uint64_t *head, unsigned char *chunks, uint32_t number)
{
    struct spool_chunk *chunk =
        (struct spool_chunk *)(void *)(chunks + (size_t)number * SPOOL_CHUNK_BYTES);
    uint64_t old = atomic_load_explicit(head, memory_order_relaxed);
    uint64_t new;
    do {
        atomic_store_explicit(&chunk->next, (uint32_t)old, memory_order_relaxed);
        new = ((old >> 32) + 1) << 32 | (number + 1u);
    } while (!atomic_compare_exchange_weak_explicit(head, &old, new, memory_order_acq_rel,
                                                    memory_order_relaxed));
}

#endif
