/* How deep each thread is in each domain: push and pop return it, and a pop with nothing to close
 * must not reach the capture.
 *
 * A thread's levels are blocks of counters out of one mapping, found through one pointer of
 * initial-exec TLS (a library that is dlopen'ed gets little of that) and handed back when the
 * thread ends, so that 100,000 short threads use the blocks of those that live at a time. A forked
 * child keeps the levels, because the program keeps popping, but remembers which of them were
 * opened by its parent and so are in no record of its own. */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "collectors/nvtx/nvtx.h"

#define BLOCK_DOMAINS 62u
#define MAX_BLOCKS (1u << 16) /* 192 MiB of address space, touched as threads come */
#define MAX_CHAIN 128u        /* blocks of one thread: 7,936 domains */

#define MARKED 128u /* levels for which it is kept one by one whether they were recorded */

struct level {
    uint32_t open;
    uint32_t inherited; /* of those, opened before the last fork */
    uint32_t capture;   /* level + 1 of the outermost range that opened a window, 0 = none */
    uint32_t deep;      /* recorded levels from MARKED on: up to the first that was not */
    uint64_t recorded[MARKED / 64];
};

struct block {
    struct block *more; /* the next BLOCK_DOMAINS domains */
    uint32_t generation;
    _Atomic uint32_t next_free; /* block number + 1 */
    struct nvtx_open open;      /* in a thread's first block */
    struct level level[BLOCK_DOMAINS];
};

static _Atomic(struct block *) blocks;
static _Atomic uint32_t blocks_used;
static _Atomic uint64_t free_blocks; /* tag << 32 | block number + 1 */
static pthread_key_t thread_key;
static _Atomic uint32_t key_made;
static __thread struct block *my_blocks __attribute__((tls_model("initial-exec")));

static struct block *block_region(void)
{
    struct block *region = atomic_load_explicit(&blocks, memory_order_acquire);
    if (region)
        return region;
    int saved = errno;
    struct block *fresh = mmap(NULL, sizeof *fresh * MAX_BLOCKS, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fresh == MAP_FAILED)
        fresh = NULL;
    else if (!atomic_compare_exchange_strong(&blocks, &region, fresh)) {
        munmap(fresh, sizeof *fresh * MAX_BLOCKS);
        fresh = region;
    }
    errno = saved;
    return fresh;
}

static void give_block(struct block *region, struct block *block)
{
    uint32_t number = (uint32_t)(block - region);
    uint64_t head = atomic_load(&free_blocks);
    uint64_t next;
    do {
        atomic_store_explicit(&block->next_free, (uint32_t)head, memory_order_relaxed);
        next = ((head >> 32) + 1) << 32 | (number + 1);
    } while (!atomic_compare_exchange_weak(&free_blocks, &head, next));
}

static struct block *claim_depth_block(void)
{
    struct block *region = block_region();
    if (!region)
        return NULL;
    struct block *block = NULL;
    uint64_t head = atomic_load(&free_blocks);
    while ((uint32_t)head != 0) {
        block = region + (uint32_t)head - 1;
        uint64_t next = ((head >> 32) + 1) << 32 |
                        atomic_load_explicit(&block->next_free, memory_order_relaxed);
        if (atomic_compare_exchange_weak(&free_blocks, &head, next))
            break;
        block = NULL;
    }
    if (!block) {
        if (atomic_load(&blocks_used) >= MAX_BLOCKS)
            return NULL;
        uint32_t number = atomic_fetch_add(&blocks_used, 1);
        if (number >= MAX_BLOCKS)
            return NULL;
        block = region + number;
    }
    block->more = NULL;
    block->open.count = block->open.deep = 0;
    block->generation = nvtx_generation();
    for (unsigned i = 0; i < BLOCK_DOMAINS; i++)
        block->level[i] = (struct level){0};
    return block;
}

static void release_thread_blocks(void *unused)
{
    (void)unused;
    struct block *region = atomic_load_explicit(&blocks, memory_order_acquire);
    struct block *block = my_blocks;
    my_blocks = NULL;
    while (block && region) {
        struct block *more = block->more;
        give_block(region, block);
        block = more;
    }
}

/* An early key needs no allocation when it is set. */
__attribute__((constructor)) static void make_key(void)
{
    if (pthread_key_create(&thread_key, release_thread_blocks) == 0)
        atomic_store(&key_made, 1);
}

static struct level *depth_level_of(uint32_t domain)
{
    struct block **link = &my_blocks;
    uint32_t generation = nvtx_generation();
    for (unsigned i = 0; i < MAX_CHAIN; i++) {
        if (!*link) {
            struct block *fresh = claim_depth_block();
            if (!fresh)
                return NULL;
            if (*link) { /* a signal handler came in between and was quicker */
                give_block(block_region(), fresh);
            } else {
                *link = fresh;
                if (link == &my_blocks && atomic_load(&key_made)) {
                    int saved = errno;
                    pthread_setspecific(thread_key, fresh);
                    errno = saved;
                }
            }
        }
        struct block *block = *link;
        if (block->generation != generation) {
            block->generation = generation;
            for (unsigned k = 0; k < BLOCK_DOMAINS; k++)
                block->level[k].inherited = block->level[k].open;
        }
        if (domain < BLOCK_DOMAINS)
            return &block->level[domain];
        domain -= BLOCK_DOMAINS;
        link = &block->more;
    }
    return NULL;
}

struct nvtx_open *nvtx_open_ranges(void)
{
    return my_blocks || depth_level_of(0) ? &my_blocks->open : NULL;
}

/* Deeper than MARKED only what lies under a level that was not recorded cannot be kept. */
static bool push_depth_mark(struct level *level, bool recorded)
{
    uint32_t at = level->open;
    if (at >= MARKED) {
        recorded = recorded && at - MARKED == level->deep;
        level->deep += recorded;
        return recorded;
    }
    uint64_t bit = (uint64_t)1 << at % 64;
    if (recorded)
        level->recorded[at / 64] |= bit;
    else
        level->recorded[at / 64] &= ~bit;
    return recorded;
}

static bool unmark(struct level *level)
{
    uint32_t at = level->open; /* of the level that was just closed */
    if (at < MARKED)
        return level->recorded[at / 64] >> at % 64 & 1;
    bool recorded = at - MARKED < level->deep;
    level->deep -= recorded;
    return recorded;
}

int nvtx_depth_push(uint32_t domain, bool *recorded, bool *captures)
{
    struct level *level = depth_level_of(domain);
    if (!level) {
        *captures = false;
        return PK_NVTX_NO_PUSH_POP_TRACKING;
    }
    *recorded = push_depth_mark(level, *recorded);
    *captures = *captures && level->capture == 0;
    if (*captures)
        level->capture = level->open + 1;
    return (int)level->open++;
}

enum nvtx_pop nvtx_depth_pop(uint32_t domain, int *level_out, bool *captures)
{
    struct level *level = depth_level_of(domain);
    *level_out = PK_NVTX_NO_PUSH_POP_TRACKING;
    *captures = false;
    if (!level) /* not tracked: believe the program */
        return collector_recording() ? NVTX_POP_OURS : NVTX_POP_UNRECORDED;
    if (level->open == 0)
        return NVTX_POP_NONE;
    *level_out = (int)--level->open;
    bool recorded = unmark(level);
    *captures = level->capture == level->open + 1;
    if (*captures)
        level->capture = 0;
    if (level->open >= level->inherited)
        return recorded ? NVTX_POP_OURS : NVTX_POP_UNRECORDED;
    level->inherited = level->open;
    return NVTX_POP_UNRECORDED;
}
