/* Signed feature hashing of species records into one dense row per plot.
 *
 * A record says that a species of some genus and family was seen on a plot with some abundance.
 * Each of its two features (genus, family) is hashed to a column and a sign, and the signed
 * abundance is added to that column of the plot's row: out[plot][column(f)] += sign(f) * a.
 * The hash is integer arithmetic only, so every backend fills exactly the same cells.
 */
#ifndef KERNELS_HASH_EMBEDDING_H
#define KERNELS_HASH_EMBEDDING_H

#include "kernels/device/device.h"

struct hash_shape {
    uint32_t records;
    uint32_t plots;
    uint32_t dim; /* columns of a row */
    bool sorted;  /* records stand in the order of their plots */
};

/* Records as the kernels take them: one array for each field, shape.records long. */
struct hash_records {
    const uint32_t *plot; /* 0 .. plots-1 */
    const uint32_t *genus;
    const uint32_t *family;
    const float *abundance;
};

enum hash_variant {
    HASH_BASIC,   /* one item per record, atomic additions in global memory */
    HASH_SHARED,  /* the whole output in group memory; tiny sets only */
    HASH_CHUNKED, /* consecutive records together; records sorted by plot only */
    HASH_AUTO,
    HASH_VARIANTS
};

const char *hash_variant_name(enum hash_variant variant);

/* Whether the variant can compute this shape on this device at all. */
bool hash_applies(const struct dev_info *info, const struct hash_shape *shape,
                  enum hash_variant variant);

/* The variant that HASH_AUTO stands for, by a table of rules measured per kind of device;
 * *reason (may be NULL) becomes the rule's reason, a static string. */
enum hash_variant hash_choose(const struct dev_info *info, const struct hash_shape *shape,
                              const char **reason);

/* How to launch: hash_launch's arguments in numbers, and what the launch costs. */
struct hash_plan {
    enum hash_variant variant; /* never HASH_AUTO */
    const char *kernel;
    struct dev_grid grid;
    uint32_t chunk_records; /* HASH_CHUNKED: per item or per group */
    uint32_t local_cells;   /* floats of group memory */
    bool clear_first;       /* the output has to be zero before the launch */
    double flop;
    double bytes_read;
    double bytes_written;
};

void hash_make_plan(const struct dev_info *info, const struct hash_shape *shape,
                    enum hash_variant variant, struct hash_plan *plan);

struct hash_buffers {
    struct dev_buffer *plot, *genus, *family, *abundance, *out;
};

/* The kernel's arguments in order; returns how many were written to args[DEV_MAX_ARGS]. */
size_t hash_arguments(const struct hash_plan *plan, const struct hash_shape *shape,
                      const struct hash_buffers *buffers, struct dev_arg *args);

/* The same in double precision on `threads` CPU threads (0: as many as there are cores); out has
 * plots x dim values. The result does not depend on the number of threads. */
void hash_reference(const struct hash_shape *shape, const struct hash_records *records,
                    uint32_t threads, double *out);

extern const struct dev_module hash_embedding_module;

/* ---- the hash -------------------------------------------------------------------------------- */

#define HASH_SALT_GENUS 0x9e3779b9u
#define HASH_SALT_FAMILY 0x7f4a7c15u

/* The finaliser of MurmurHash3 (a bijection of 32 bits) over the salted id. */
static inline uint32_t hash_mix(uint32_t id, uint32_t salt)
{
    uint32_t h = id ^ salt;

    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    h ^= h >> 16;
    return h;
}

/* The column comes from the high bits (a multiplication instead of a remainder, so any dim is
 * cheap), the sign from the lowest bit. */
static inline uint32_t hash_column(uint32_t h, uint32_t dim)
{
    return (uint32_t)(((uint64_t)(h & ~1u) * dim) >> 32);
}

static inline float hash_signed(uint32_t h, float abundance)
{
    return h & 1u ? -abundance : abundance;
}

#endif
