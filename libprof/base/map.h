/* Hash maps: 64-bit key to 64-bit value, and byte string to 32-bit number.
 *
 * Both start as {0}, own their memory and never shrink. Not thread-safe. */
#ifndef PERFKIT_BASE_MAP_H
#define PERFKIT_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct prof_map_slot {
    uint64_t key, value;
};

struct prof_map {
    struct prof_map_slot *slots;
    unsigned char *used;
    size_t count, capacity; /* capacity: 0 or a power of two */
};

/* Set key to value, replacing what was there. False: out of memory, nothing changed. */
bool prof_map_put(struct prof_map *map, uint64_t key, uint64_t value);

/* Address of the key's value, NULL when absent; valid until the next put or remove. */
uint64_t *prof_map_get(const struct prof_map *map, uint64_t key);

/* Take the key out; true when it was there, its value then in *value (NULL allowed). */
bool prof_map_remove(struct prof_map *map, uint64_t key, uint64_t *value);

/* Walk in no particular order: start with *at = 0; false at the end. No changes meanwhile. */
bool prof_map_next(const struct prof_map *map, size_t *at, uint64_t *key, uint64_t *value);

void prof_map_clear(struct prof_map *map); /* empty, keeps the memory */
void prof_map_free(struct prof_map *map);

/* A key of several values, made one by one. */
uint64_t prof_map_mix(uint64_t key, int64_t value);

struct prof_names_slot {
    uint32_t hash, value;
    uint32_t length;
    uint32_t used;
    size_t offset; /* of the key in `bytes` */
};

/* Keys are copied. */
struct prof_names {
    struct prof_names_slot *slots;
    size_t count, capacity;
    char *bytes;
    size_t bytes_count, bytes_capacity;
};

/* As prof_map_put. Keys may hold NUL and may be up to 4 GiB long. */
bool prof_names_put(struct prof_names *names, const char *key, size_t length, uint32_t value);

/* The number of a key: 0, 1, 2 ... in order of first sight; *fresh: a new one. UINT32_MAX: out of
 * memory. For names that hold nothing else. */
uint32_t prof_names_number(struct prof_names *names, const char *key, size_t length, bool *fresh);

/* As prof_map_get. */
uint32_t *prof_names_get(const struct prof_names *names, const char *key, size_t length);

void prof_names_free(struct prof_names *names);

#endif
