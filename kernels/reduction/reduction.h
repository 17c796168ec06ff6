/* The largest element of an array, in two launches of one kernel: one maximum per group, then one
 * group over those.
 *
 * Kernel `reduction_max`: in, out, n, local (REDUCTION_GROUP_ITEMS floats): out[group] is the
 * largest of in[group's items, then on by the size of the grid]; -infinity for none. NaN wins.
 */
#ifndef KERNELS_REDUCTION_H
#define KERNELS_REDUCTION_H

#include "kernels/device/device.h"

#define REDUCTION_GROUP_ITEMS 256
#define REDUCTION_MAX_GROUPS 256

/* The grid of the first launch; the second has one group. */
static inline struct dev_grid reduction_grid(size_t n)
{
    struct dev_grid grid = dev_grid_for(n, 4 * REDUCTION_GROUP_ITEMS);

    grid.group_items = REDUCTION_GROUP_ITEMS;
    if (grid.groups > REDUCTION_MAX_GROUPS)
        grid.groups = REDUCTION_MAX_GROUPS;
    return grid;
}

extern const struct dev_module reduction_module;

#endif
