/* The free and the partial list of a spool: stacks of chunks in shared memory, pushed and popped
 * from both sides by compare-and-swap on a tagged head. A process that dies in between loses
 * nothing. */
#ifndef PERFKIT_SPOOL_LISTS_H
#define PERFKIT_SPOOL_LISTS_H

#include <stddef.h>

#include "libprof/spool/layout.h"

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
