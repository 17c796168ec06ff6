/* Handle -> state. A launch looks up its queue and its kernel, on any number of threads, so reading
 * takes no lock: open addressing, a slot's value is stored before its key, slots are never emptied.
 * Entries are not removed: drivers hand out addresses again and again, so the number of distinct
 * handles stays small, and a new object at an old address replaces the value. Outgrown slot arrays
 * stay mapped because a reader may still be in them; together they are no larger than the last. */
#include <sys/mman.h>

#include "collectors/opencl/ocl.h"

struct ocl_slot {
    _Atomic uint64_t key, value;
};
struct ocl_slots {
    size_t room; /* a power of two */
    size_t used; /* under the table's lock */
    struct ocl_slot slot[];
};

#define FIRST_ROOM 256
#define POOL_BYTES (256u << 10)

struct pool {
    _Atomic size_t used;
};
static _Atomic(struct pool *) the_pool;

static void *map_pages(size_t bytes)
{
    int saved = errno;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved;
    return at == MAP_FAILED ? NULL : at;
}

void *ocl_alloc(size_t bytes)
{
    bytes = (bytes + 63u) & ~(size_t)63u;
    if (bytes > POOL_BYTES / 4)
        return map_pages(bytes);
    struct pool *pool = atomic_load(&the_pool);
    for (;;) {
        size_t at = pool ? atomic_fetch_add(&pool->used, bytes) : POOL_BYTES;
        if (at <= POOL_BYTES - bytes)
            return (char *)pool + at;
        struct pool *fresh = map_pages(POOL_BYTES);
        if (!fresh)
            return NULL;
        atomic_store(&fresh->used, 64);
        if (atomic_compare_exchange_strong(&the_pool, &pool, fresh)) {
            pool = fresh;
        } else {
            int saved = errno;
            munmap(fresh, POOL_BYTES);
            errno = saved;
        }
    }
}

static size_t first_slot(uint64_t key, size_t room)
{
    return (size_t)((key * 0x9e3779b97f4a7c15ull) >> 20) & (room - 1);
}

static struct ocl_slot *find_table_slot(struct ocl_slots *slots, uint64_t key)
{
    for (size_t i = first_slot(key, slots->room);; i = (i + 1) & (slots->room - 1)) {
        uint64_t there = atomic_load_explicit(&slots->slot[i].key, memory_order_acquire);
        if (there == key || there == 0)
            return &slots->slot[i];
    }
}

uint64_t ocl_table_get(struct ocl_table *table, const void *key)
{
    struct ocl_slots *slots = atomic_load_explicit(&table->slots, memory_order_acquire);
    if (slots == NULL || key == NULL)
        return 0;
    struct ocl_slot *slot = find_table_slot(slots, (uintptr_t)key);
    if (atomic_load_explicit(&slot->key, memory_order_acquire) == 0)
        return 0;
    return atomic_load_explicit(&slot->value, memory_order_acquire);
}

/* Make room for one more; under the lock. */
static struct ocl_slots *grow_slots(struct ocl_table *table)
{
    struct ocl_slots *old = atomic_load_explicit(&table->slots, memory_order_relaxed);
    if (old && old->used < old->room / 2)
        return old;
    size_t room = old ? old->room * 2 : FIRST_ROOM;
    struct ocl_slots *slots = ocl_alloc(sizeof *slots + room * sizeof slots->slot[0]);
    if (slots == NULL)
        return old && old->used < old->room - 1 ? old : NULL;
    slots->room = room;
    for (size_t i = 0; old && i < old->room; i++) {
        uint64_t key = atomic_load_explicit(&old->slot[i].key, memory_order_relaxed);
        if (key == 0)
            continue;
        struct ocl_slot *slot = find_table_slot(slots, key);
        atomic_store_explicit(&slot->value,
                              atomic_load_explicit(&old->slot[i].value, memory_order_relaxed),
                              memory_order_relaxed);
        atomic_store_explicit(&slot->key, key, memory_order_relaxed);
        slots->used++;
    }
    atomic_store_explicit(&table->slots, slots, memory_order_release);
    return slots;
}

static uint64_t put_table_value(struct ocl_table *table, const void *key, uint64_t value,
                                bool replace)
{
    if (key == NULL)
        return 0;
    uint64_t result = 0;
    if (!collector_lock(&table->lock))
        return 0;
    struct ocl_slots *slots = grow_slots(table);
    if (slots) {
        struct ocl_slot *slot = find_table_slot(slots, (uintptr_t)key);
        bool there = atomic_load_explicit(&slot->key, memory_order_relaxed) != 0;
        result = there ? atomic_load_explicit(&slot->value, memory_order_relaxed) : 0;
        if (!there || replace || result == 0) {
            atomic_store_explicit(&slot->value, value, memory_order_release);
            result = value;
        }
        if (!there) {
            slots->used++; /* rather one too many than one too few */
            atomic_store_explicit(&slot->key, (uintptr_t)key, memory_order_release);
        }
    }
    collector_unlock(&table->lock);
    return result;
}

bool ocl_table_put(struct ocl_table *table, const void *key, uint64_t value)
{
    return put_table_value(table, key, value, true) == value;
}

uint64_t ocl_table_add(struct ocl_table *table, const void *key, uint64_t value)
{
    return put_table_value(table, key, value, false);
}

/* In a forked child: another thread may have held a lock. */
void ocl_table_forked(struct ocl_table *table)
{
    atomic_store(&table->lock.owner, 0);
}
