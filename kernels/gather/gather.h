/* Embedding lookups: rows of tables picked by id and laid side by side, slab by slab.
 *
 * An encoder looks up its plot's top_k genera and top_k families, each rank k in a table of its
 * own. All tables stand in one buffer, first the genus tables by rank, then the family tables:
 * genus table k starts at row k * genus_rows, family table k at row top_k * genus_rows +
 * k * family_rows. Ids are [plot][rank]. The result of one lookup is a slab [plot][embed].
 *
 * Kernels:
 *   gather_one    tables, ids, out, plots, embed_log2, top_k, rank, first_row: one lookup into
 * `out` gather_fused  tables, genus_ids, family_ids, out, plots, embed_log2, top_k, genus_rows,
 * family_rows, slab_groups: all 2 * top_k lookups in one launch One item per element of the result,
 * in both. The width of an embedding is a power of two, given by its logarithm: a division per item
 * would cost more than the copy on devices that divide integers one by one (measured on PoCL with
 * AVX-512: three times the whole kernel). A group of gather_fused works on one slab only, so that
 * which table it reads is the same for all its items: it is launched with 2 * top_k * slab_groups
 * groups, slab_groups being those that cover one slab (gather_fused_grid).
 */
#ifndef KERNELS_GATHER_H
#define KERNELS_GATHER_H

#include "kernels/device/device.h"

#define GATHER_GROUP_ITEMS 256

static inline uint32_t gather_slab_groups(uint32_t plots, uint32_t embed)
{
    return dev_grid_for((size_t)plots * embed, GATHER_GROUP_ITEMS).groups;
}

/* -1 when `embed` is not a power of two. */
static inline int gather_embed_log2(uint32_t embed)
{
    return embed && !(embed & (embed - 1)) ? __builtin_ctz(embed) : -1;
}

static inline struct dev_grid gather_fused_grid(uint32_t plots, uint32_t embed, uint32_t top_k)
{
    return (struct dev_grid){.groups = 2 * top_k * gather_slab_groups(plots, embed),
                             .group_items = GATHER_GROUP_ITEMS};
}

extern const struct dev_module gather_module;

#endif
