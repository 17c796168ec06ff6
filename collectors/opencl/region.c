/* Address ranges: which SVM allocation a pointer lies in, how many bytes a mapped pointer covers.
 * A sorted array under a mutex: programs hold few of these, look-ups need interior pointers, and a
 * driver call that makes one costs microseconds. */
#include <string.h>
#include <sys/mman.h>

#include "collectors/opencl/ocl.h"

/* The first region whose address is above `address`. */
static size_t above(const struct ocl_regions *regions, uintptr_t address)
{
    size_t low = 0, high = regions->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (regions->list[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool grow_region_table(struct ocl_regions *regions)
{
    if (regions->count < regions->room)
        return true;
    size_t room = regions->room ? regions->room * 2 : 512;
    int saved = errno;
    void *list = mmap(NULL, room * sizeof *regions->list, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (list != MAP_FAILED) { /* the old list stays mapped, as an outgrown ring does */
        if (regions->list)
            memcpy(list, regions->list, regions->count * sizeof *regions->list);
        regions->list = list;
        atomic_signal_fence(memory_order_seq_cst); /* never more room than there is */
        regions->room = room;
    }
    errno = saved;
    return list != MAP_FAILED;
}

bool ocl_region_add(struct ocl_regions *regions, const void *address, size_t bytes, uint64_t id)
{
    bool done = true;
    if (!collector_lock(&regions->lock))
        return false;
    size_t at = above(regions, (uintptr_t)address);
    if (at > 0 && regions->list[at - 1].address == (uintptr_t)address) {
        regions->list[at - 1].bytes = bytes;
        regions->list[at - 1].id = id;
        regions->list[at - 1].count++;
    } else if (grow_region_table(regions)) {
        struct ocl_region *list = regions->list;
        memmove(&list[at + 1], &list[at], (regions->count - at) * sizeof *list);
        list[at] = (struct ocl_region){(uintptr_t)address, bytes, id, 1};
        regions->count++;
    } else {
        done = false;
    }
    collector_unlock(&regions->lock);
    return done;
}

bool ocl_region_take(struct ocl_regions *regions, const void *address, struct ocl_region *out)
{
    if (!collector_lock(&regions->lock))
        return false;
    size_t at = above(regions, (uintptr_t)address);
    bool found = at > 0 && regions->list[at - 1].address == (uintptr_t)address;
    if (found) {
        struct ocl_region *list = regions->list;
        *out = list[--at];
        if (--list[at].count == 0) {
            memmove(&list[at], &list[at + 1], (regions->count - 1 - at) * sizeof *list);
            regions->count--;
        }
    }
    collector_unlock(&regions->lock);
    return found;
}

bool ocl_region_find(struct ocl_regions *regions, const void *address, struct ocl_region *out)
{
    if (!collector_lock(&regions->lock))
        return false;
    size_t at = above(regions, (uintptr_t)address);
    bool found = at > 0 && (uintptr_t)address - regions->list[at - 1].address <
                               (regions->list[at - 1].bytes ? regions->list[at - 1].bytes : 1);
    if (found)
        *out = regions->list[at - 1];
    collector_unlock(&regions->lock);
    return found;
}

/* In a forked child. A thread of the parent may have been half way through a change: when the lock
 * is taken, all is forgotten. */
void ocl_regions_forked(struct ocl_regions *regions)
{
    if (atomic_exchange(&regions->lock.owner, 0) != 0)
        regions->count = 0;
}
