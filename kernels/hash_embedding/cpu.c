/* Signed feature hashing on CPU threads, in the devices' precision and with the devices' kernel
 * names and arguments. One thread alone adds plainly; several must add atomically wherever two
 * of them can meet in a row, and C has no atomic float addition, so that is a loop over the bits.
 */
#include "kernels/hash_embedding/hash_embedding.h"

#include <string.h>

#define LOCAL_CELLS 16384 /* 64 KiB of a thread's stack, what the backend reports */

struct arguments {
    struct hash_records records;
    float *out;
    uint32_t count, dim;
};

static struct arguments take(const struct dev_cpu_launch *launch)
{
    return (struct arguments){
        .records = {.plot = launch->arg[0],
                    .genus = launch->arg[1],
                    .family = launch->arg[2],
                    .abundance = launch->arg[3]},
        .out = launch->arg[4],
        .count = *(const uint32_t *)launch->arg[5],
        .dim = *(const uint32_t *)launch->arg[6],
    };
}

static void add_atomic(float *cell, float value)
{
    uint32_t *bits = (uint32_t *)(void *)cell;
    uint32_t seen = __atomic_load_n(bits, __ATOMIC_RELAXED), sum_bits;
    float sum;

    do {
        memcpy(&sum, &seen, sizeof sum);
        sum += value;
        memcpy(&sum_bits, &sum, sizeof sum);
    } while (
        !__atomic_compare_exchange_n(bits, &seen, sum_bits, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

static inline void add_record(float *row, const struct arguments *a, uint32_t i, bool atomic)
{
    uint32_t g = hash_mix(a->records.genus[i], HASH_SALT_GENUS);
    uint32_t f = hash_mix(a->records.family[i], HASH_SALT_FAMILY);
    float abundance = a->records.abundance[i];

    if (atomic) {
        add_atomic(row + hash_column(g, a->dim), hash_signed(g, abundance));
        add_atomic(row + hash_column(f, a->dim), hash_signed(f, abundance));
    } else {
        row[hash_column(g, a->dim)] += hash_signed(g, abundance);
        row[hash_column(f, a->dim)] += hash_signed(f, abundance);
    }
}

static void hash_basic(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    struct arguments a = take(launch);
    uint64_t begin = (uint64_t)first * launch->group_items;
    uint64_t end = (uint64_t)last * launch->group_items;
    bool atomic = launch->threads > 1;

    for (uint64_t i = begin; i < end && i < a.count; i++)
        add_record(a.out + (size_t)a.records.plot[i] * a.dim, &a, (uint32_t)i, atomic);
}

static void hash_shared(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    struct arguments a = take(launch);
    uint32_t cell_count = *(const uint32_t *)launch->arg[7];
    uint32_t per_group = (a.count + launch->groups - 1) / launch->groups;
    float cells[LOCAL_CELLS];

    for (uint32_t group = first; group < last; group++) {
        uint32_t begin = group * per_group;
        uint32_t end = begin + per_group < a.count ? begin + per_group : a.count;

        memset(cells, 0, cell_count * sizeof cells[0]);
        for (uint32_t i = begin; i < end; i++)
            add_record(cells + (size_t)a.records.plot[i] * a.dim, &a, i, false);
        for (uint32_t i = 0; i < cell_count; i++) {
            if (launch->groups == 1)
                a.out[i] = cells[i];
            else if (cells[i] != 0.0f)
                add_atomic(a.out + i, cells[i]);
        }
    }
}

static void hash_chunked_item(const struct dev_cpu_launch *launch, uint32_t first_group,
                              uint32_t last_group)
{
    struct arguments a = take(launch);
    const uint32_t *plot = a.records.plot;
    uint64_t chunk = *(const uint32_t *)launch->arg[7];
    uint64_t item = (uint64_t)first_group * launch->group_items;
    uint64_t items = (uint64_t)last_group * launch->group_items;

    for (; item < items && item * chunk < a.count; item++) {
        uint32_t begin = (uint32_t)(item * chunk);
        uint32_t end = begin + chunk < a.count ? (uint32_t)(begin + chunk) : a.count;
        uint32_t first = plot[begin], last = plot[end - 1];
        bool own_first = begin == 0 || plot[begin - 1] != first;
        bool own_last = end == a.count || plot[end] != last;

        for (uint32_t i = begin; i < end; i++) {
            bool own = (plot[i] != first || own_first) && (plot[i] != last || own_last);

            add_record(a.out + (size_t)plot[i] * a.dim, &a, i, !own && launch->threads > 1);
        }
    }
}

static const struct dev_cpu_kernel hash_embedding_cpu_kernels[] = {
    {"hash_basic", hash_basic},
    {"hash_shared", hash_shared},
    {"hash_chunked_item", hash_chunked_item},
    {NULL, NULL},
};

DEV_MODULE(hash_embedding);
