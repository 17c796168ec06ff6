/* The pool of device buffers: one list of kept buffers per power of two. */
#include <stdlib.h>

#include "kernels/device/backend.h"

#define MIN_LOG2 8 /* 256 bytes: what drivers round to anyhow */
#define BUCKETS 48

struct block {
    struct block *next; /* of the kept ones of this size */
    struct dev_buffer *buffer;
};

struct dev_pool {
    struct dev *dev;
    struct block *kept[BUCKETS];
    struct block *in_use[BUCKETS];
    struct dev_pool_stats stats;
};

static int bucket_of(size_t bytes)
{
    int bucket = 0;

    while (bucket < BUCKETS && ((size_t)1 << (MIN_LOG2 + bucket)) < bytes)
        bucket++;
    return bucket;
}

int dev_pool_create(struct dev *dev, struct dev_pool **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return dev_fail(dev, "dev_pool_create", "out of host memory");
    (*out)->dev = dev;
    return 0;
}

static void free_blocks(struct block *block)
{
    while (block) {
        struct block *next = block->next;

        dev_free(block->buffer);
        free(block);
        block = next;
    }
}

void dev_pool_destroy(struct dev_pool *pool)
{
    if (!pool)
        return;
    for (int i = 0; i < BUCKETS; i++) {
        free_blocks(pool->kept[i]);
        free_blocks(pool->in_use[i]);
    }
    free(pool);
}

static struct block *new_block(struct dev_pool *pool, int bucket)
{
    size_t bytes = (size_t)1 << (MIN_LOG2 + bucket);
    struct block *block = calloc(1, sizeof *block);

    if (!block) {
        dev_fail(pool->dev, "dev_pool_alloc", "out of host memory");
        return NULL;
    }
    if (dev_alloc(pool->dev, bytes, &block->buffer) != 0) {
        free(block);
        return NULL;
    }
    pool->stats.allocations++;
    pool->stats.held_bytes += bytes;
    return block;
}

int dev_pool_alloc(struct dev_pool *pool, size_t bytes, struct dev_buffer **out)
{
    int bucket = bucket_of(bytes);
    struct block *block;

    *out = NULL;
    if (bucket == BUCKETS)
        return dev_fail(pool->dev, "dev_pool_alloc", "%zu bytes", bytes);
    pool->stats.requests++;
    block = pool->kept[bucket];
    if (block)
        pool->kept[bucket] = block->next;
    else
        block = new_block(pool, bucket);
    if (!block)
        return -1;
    block->next = pool->in_use[bucket];
    pool->in_use[bucket] = block;
    *out = block->buffer;
    return 0;
}

void dev_pool_free(struct dev_pool *pool, struct dev_buffer *buffer)
{
    struct block **at, *block;
    int bucket;

    if (!buffer)
        return;
    bucket = bucket_of(buffer->bytes);
    for (at = &pool->in_use[bucket]; *at; at = &(*at)->next) {
        if ((*at)->buffer == buffer) {
            block = *at;
            *at = block->next;
            block->next = pool->kept[bucket];
            pool->kept[bucket] = block;
            return;
        }
    }
}

struct dev_pool_stats dev_pool_stats(const struct dev_pool *pool)
{
    return pool->stats;
}
