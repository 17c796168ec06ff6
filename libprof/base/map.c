/* Open addressing with linear probing; removal shifts back, so there are no tombstones and a map
 * that lives as long as a capture (pending correlations come and go by the million) never
 * degrades. Grown at 3/4 full. */
#include <stdlib.h>
#include <string.h>

#include "libprof/base/array.h"
#include "libprof/base/map.h"

/* Finaliser of MurmurHash3: correlation ids are sequential and pointers are aligned, so the low
 * bits alone would cluster. */
static uint64_t hash_map_key(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ (x >> 33);
}

uint64_t prof_map_mix(uint64_t key, int64_t value)
{
    key ^= (uint64_t)value + 0x9e3779b97f4a7c15u + (key << 6) + (key >> 2);
    key *= 0xff51afd7ed558ccdu;
    return key ^ (key >> 33);
}

static size_t find_slot(const struct prof_map *map, uint64_t key)
{
    size_t mask = map->capacity - 1, i = (size_t)hash_map_key(key) & mask;
    while (map->used[i] && map->slots[i].key != key)
        i = (i + 1) & mask;
    return i;
}

static bool grow(struct prof_map *map)
{
    struct prof_map next = {.capacity = map->capacity ? map->capacity * 2 : 16};
    next.slots = malloc(next.capacity * sizeof *next.slots);
    next.used = calloc(next.capacity, 1);
    if (!next.slots || !next.used) {
        free(next.slots);
        free(next.used);
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (!map->used[i])
            continue;
        size_t at = find_slot(&next, map->slots[i].key);
        next.used[at] = 1;
        next.slots[at] = map->slots[i];
    }
    next.count = map->count;
    prof_map_free(map);
    *map = next;
    return true;
}

bool prof_map_put(struct prof_map *map, uint64_t key, uint64_t value)
{
    if ((map->count + 1) * 4 > map->capacity * 3 && !grow(map))
        return false;
    size_t i = find_slot(map, key);
    if (!map->used[i]) {
        map->used[i] = 1;
        map->count++;
    }
    map->slots[i] = (struct prof_map_slot){key, value};
    return true;
}

uint64_t *prof_map_get(const struct prof_map *map, uint64_t key)
{
    if (!map->count)
        return NULL;
    size_t i = find_slot(map, key);
    return map->used[i] ? &map->slots[i].value : NULL;
}

bool prof_map_remove(struct prof_map *map, uint64_t key, uint64_t *value)
{
    if (!map->count)
        return false;
    size_t mask = map->capacity - 1, hole = find_slot(map, key);
    if (!map->used[hole])
        return false;
    if (value)
        *value = map->slots[hole].value;
    /* Pull back every later entry of the run whose home is not past the hole. */
    for (size_t i = (hole + 1) & mask; map->used[i]; i = (i + 1) & mask) {
        size_t home = (size_t)hash_map_key(map->slots[i].key) & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            map->slots[hole] = map->slots[i];
            hole = i;
        }
    }
    map->used[hole] = 0;
    map->count--;
    return true;
}

bool prof_map_next(const struct prof_map *map, size_t *at, uint64_t *key, uint64_t *value)
{
    while (*at < map->capacity && !map->used[*at])
        (*at)++;
    if (*at >= map->capacity)
        return false;
    *key = map->slots[*at].key;
    *value = map->slots[*at].value;
    (*at)++;
    return true;
}

void prof_map_clear(struct prof_map *map)
{
    if (map->capacity)
        memset(map->used, 0, map->capacity);
    map->count = 0;
}

void prof_map_free(struct prof_map *map)
{
    free(map->slots);
    free(map->used);
    *map = (struct prof_map){0};
}

/* FNV-1a, then mixed: names differ mostly in their tails and are short. */
static uint32_t hash_bytes(const char *key, size_t length)
{
    uint64_t h = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)key[i]) * 0x100000001b3ull;
    return (uint32_t)hash_map_key(h);
}

static size_t find_name(const struct prof_names *names, uint32_t hash, const char *key,
                        size_t length)
{
    size_t mask = names->capacity - 1, i = hash & mask;
    for (;; i = (i + 1) & mask) {
        const struct prof_names_slot *slot = &names->slots[i];
        if (!slot->used || (slot->hash == hash && slot->length == length &&
                            (!length || !memcmp(names->bytes + slot->offset, key, length))))
            return i;
    }
}

static bool grow_names(struct prof_names *names)
{
    size_t capacity = names->capacity ? names->capacity * 2 : 16, mask = capacity - 1;
    struct prof_names_slot *slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < names->capacity; i++) {
        if (!names->slots[i].used)
            continue;
        size_t at = names->slots[i].hash & mask;
        while (slots[at].used)
            at = (at + 1) & mask;
        slots[at] = names->slots[i];
    }
    free(names->slots);
    names->slots = slots;
    names->capacity = capacity;
    return true;
}

bool prof_names_put(struct prof_names *names, const char *key, size_t length, uint32_t value)
{
    if (length > UINT32_MAX || ((names->count + 1) * 4 > names->capacity * 3 && !grow_names(names)))
        return false;
    uint32_t hash = hash_bytes(key, length);
    struct prof_names_slot *slot = &names->slots[find_name(names, hash, key, length)];
    if (!slot->used) {
        if (!prof_array_room(&names->bytes, &names->bytes_capacity, names->bytes_count + length, 1))
            return false;
        if (length)
            memcpy(names->bytes + names->bytes_count, key, length);
        *slot = (struct prof_names_slot){hash, value, (uint32_t)length, 1, names->bytes_count};
        names->bytes_count += length;
        names->count++;
    }
    slot->value = value;
    return true;
}

uint32_t *prof_names_get(const struct prof_names *names, const char *key, size_t length)
{
    if (!names->count || length > UINT32_MAX)
        return NULL;
    struct prof_names_slot *slot =
        &names->slots[find_name(names, hash_bytes(key, length), key, length)];
    return slot->used ? &slot->value : NULL;
}

uint32_t prof_names_number(struct prof_names *names, const char *key, size_t length, bool *fresh)
{
    uint32_t *known = prof_names_get(names, key, length), number = (uint32_t)names->count;
    *fresh = !known;
    return known ? *known : prof_names_put(names, key, length, number) ? number : UINT32_MAX;
}

void prof_names_free(struct prof_names *names)
{
    free(names->slots);
    free(names->bytes);
    *names = (struct prof_names){0};
}
