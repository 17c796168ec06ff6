/* The map of map.h: open addressing, doubled at two thirds full. Old mappings are given back; the
 * helper thread is the only one that looks. */
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "collectors/cuda/map.h"

#define FIRST_CAPACITY 256u

static struct cuda_map_slot *find_map_slot(const struct cuda_map *map, uint64_t key)
{
    uint64_t hash = (key ^ (key >> 32)) * 0x9e3779b97f4a7c15u;
    for (uint32_t i = (uint32_t)(hash >> 32);; i++) {
        struct cuda_map_slot *slot = &map->slots[i & (map->capacity - 1)];
        if (!slot->used || slot->key == key)
            return slot;
    }
}

uint32_t *cuda_map_get(const struct cuda_map *map, uint64_t key)
{
    if (!map->slots)
        return NULL;
    struct cuda_map_slot *slot = find_map_slot(map, key);
    return slot->used ? &slot->value : NULL;
}

void *cuda_reserve(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void cuda_wipe(void *table, size_t bytes)
{
    if (table && madvise(table, bytes, MADV_DONTNEED) != 0) /* locked in memory */
        memset(table, 0, bytes);
}

static bool grow_map(struct cuda_map *map)
{
    uint32_t capacity = map->capacity ? map->capacity * 2 : FIRST_CAPACITY;
    void *at = cuda_reserve(capacity * sizeof *map->slots);
    if (!at)
        return false;
    struct cuda_map bigger = {at, map->count, capacity};
    for (uint32_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].used)
            *find_map_slot(&bigger, map->slots[i].key) = map->slots[i];
    }
    if (map->slots)
        munmap(map->slots, map->capacity * sizeof *map->slots);
    *map = bigger;
    return true;
}

bool cuda_map_put(struct cuda_map *map, uint64_t key, uint32_t value)
{
    if (map->count >= map->capacity / 3 * 2 && !grow_map(map))
        return false;
    struct cuda_map_slot *slot = find_map_slot(map, key);
    map->count += !slot->used;
    *slot = (struct cuda_map_slot){key, value, 1};
    return true;
}

void cuda_map_clear(struct cuda_map *map)
{
    if (map->slots)
        memset(map->slots, 0, map->capacity * sizeof *map->slots);
    map->count = 0;
}
