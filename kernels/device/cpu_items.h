/* What the CPU kernels share: reading their arguments, and which items a portion of groups has. */
#ifndef KERNELS_DEVICE_CPU_ITEMS_H
#define KERNELS_DEVICE_CPU_ITEMS_H

#include "kernels/device/device.h"

static inline uint32_t cpu_u32(const struct dev_cpu_launch *launch, int index)
{
    return *(const uint32_t *)launch->arg[index];
}

static inline float cpu_f32(const struct dev_cpu_launch *launch, int index)
{
    return *(const float *)launch->arg[index];
}

static inline uint32_t cpu_min(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The first item of group `group`, at most `items`; so first .. last-1 become a range of items. */
static inline uint32_t cpu_item(const struct dev_cpu_launch *launch, uint32_t group, uint32_t items)
{
    uint64_t item = (uint64_t)group * launch->group_items;

    return item < items ? (uint32_t)item : items;
}

#endif
