/* Embedding lookups on CPU threads: whole rows are copied, the items of a group that belong to
 * one row together.
 */
#include <string.h>

#include "kernels/gather/gather.h"

static uint32_t number(const struct dev_cpu_launch *launch, int index)
{
    return *(const uint32_t *)launch->arg[index];
}

/* Copies the items begin .. end-1 of one slab, a row or the part of one at a time. */
static void copy_rows(float *slab, const float *tables, const uint32_t *ids, uint32_t embed,
                      uint32_t top_k, uint32_t rank, size_t first_row, uint64_t begin, uint64_t end)
{
    while (begin < end) {
        size_t plot = (size_t)(begin / embed), column = (size_t)(begin % embed);
        uint64_t run = embed - column < end - begin ? embed - column : end - begin;
        size_t row = first_row + ids[plot * top_k + rank];

        memcpy(slab + begin, tables + row * embed + column, run * sizeof slab[0]);
        begin += run;
    }
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void gather_one(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    uint32_t plots = number(launch, 3), embed = 1u << number(launch, 4);
    uint64_t items = (uint64_t)plots * embed;

    copy_rows(launch->arg[2], launch->arg[0], launch->arg[1], embed, number(launch, 5),
              number(launch, 6), number(launch, 7), (uint64_t)first * launch->group_items,
              smaller((uint64_t)last * launch->group_items, items));
}

static void gather_fused(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    uint32_t plots = number(launch, 4), embed = 1u << number(launch, 5), top_k = number(launch, 6);
    uint32_t genus_rows = number(launch, 7), family_rows = number(launch, 8);
    uint32_t slab_groups = number(launch, 9);
    uint64_t items = (uint64_t)plots * embed;

    while (first < last) {
        uint32_t lookup = first / slab_groups, begin = first % slab_groups;
        uint32_t end = (uint32_t)smaller(slab_groups, (uint64_t)begin + (last - first));
        bool family = lookup >= top_k;
        uint32_t rank = family ? lookup - top_k : lookup;
        size_t first_row = family ? (size_t)top_k * genus_rows + (size_t)rank * family_rows
                                  : (size_t)rank * genus_rows;

        copy_rows((float *)launch->arg[3] + lookup * items, launch->arg[0],
                  launch->arg[family ? 2 : 1], embed, top_k, rank, first_row,
                  (uint64_t)begin * launch->group_items,
                  smaller((uint64_t)end * launch->group_items, items));
        first += end - begin;
    }
}

static const struct dev_cpu_kernel gather_cpu_kernels[] = {
    {"gather_one", gather_one},
    {"gather_fused", gather_fused},
    {NULL, NULL},
};

DEV_MODULE(gather);
