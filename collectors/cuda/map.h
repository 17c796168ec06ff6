/* A small hash map, 64-bit key to 32-bit value, in anonymous mappings: the collector never takes
 * the program's heap. Used by the helper thread only; no removal. */
#ifndef PERFKIT_COLLECTORS_CUDA_MAP_H
#define PERFKIT_COLLECTORS_CUDA_MAP_H

#include <stdbool.h>
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

#endif
