/* A small hash map, 64-bit key to 32-bit value, in anonymous mappings: the collector never takes
 * the program's heap. Used by the helper thread only; no removal. And the reservation of the large
 * tables of collectors/cuda. */
#ifndef PERFKIT_COLLECTORS_CUDA_MAP_H
#define PERFKIT_COLLECTORS_CUDA_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cuda_map_slot {
    uint64_t key;
    uint32_t value;
    uint32_t used;
};

struct cuda_map {
    struct cuda_map_slot *slots; /* NULL: empty */
    uint32_t count, capacity;    /* capacity: a power of two */
};

/* The key's value, NULL when absent; valid until the next put. */
uint32_t *cuda_map_get(const struct cuda_map *map, uint64_t key);

/* Set key to value. False: no memory, nothing changed. */
bool cuda_map_put(struct cuda_map *map, uint64_t key, uint32_t value);

/* Empty it, keeping the memory. */
void cuda_map_clear(struct cuda_map *map);

/* A zeroed table. Each part takes its own when CUDA starts (cuda_..._start): a program without CUDA
 * has none, because limits (ulimit -d) count them, touched or not. Kept to the end of the process.
 * NULL: no memory. */
void *cuda_reserve(size_t bytes);

/* Zero it again (NULL: nothing to do); its pages are given back. */
void cuda_wipe(void *table, size_t bytes);

#endif
