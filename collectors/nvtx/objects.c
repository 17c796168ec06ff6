/* Everything a program gets a handle for or gives a name to: domains, registered strings,
 * categories, payload layouts. Objects are made once, never freed (a handle may be used until the
 * process ends, whatever nvtxDomainDestroy said), and found again by content through one
 * lock-free table, so that a program that registers the same string a million times costs one.
 * Memory comes from growing mappings, never from the heap. */
#include <errno.h>
#include <stdalign.h>
#include <string.h>
#include <sys/mman.h>

#include "collectors/nvtx/nvtx.h"

#define OBJECT_MAGIC 0x58564e50u /* "PNVX" */
#define FIRST_ARENA_BYTES ((size_t)1 << 18)
#define ARENAS 13u /* each twice the one before: 2 GiB in all */
#define TABLE_SLOTS (1u << 16)
#define MAX_DOMAINS (1u << 16)

struct arena {
    _Atomic(char *) base;
    _Atomic size_t used;
};

struct tables {
    struct nvtx_object *_Atomic slot[TABLE_SLOTS];
    struct nvtx_object *_Atomic domain[MAX_DOMAINS];
};

static struct arena arenas[ARENAS];
static _Atomic(struct tables *) the_tables;
static _Atomic uint32_t slots_used;
static _Atomic uint32_t domains_used;
static struct nvtx_object *_Atomic categories; /* newest first */

static size_t arena_bytes(unsigned i)
{
    return FIRST_ARENA_BYTES << i;
}

static void *map_object_memory(size_t bytes)
{
    int saved = errno;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    errno = saved;
    return at == MAP_FAILED ? NULL : at;
}

static void unmap(void *at, size_t bytes)
{
    int saved = errno;
    munmap(at, bytes);
    errno = saved;
}

static char *arena_base(unsigned i)
{
    char *base = atomic_load_explicit(&arenas[i].base, memory_order_acquire);
    if (base)
        return base;
    char *fresh = map_object_memory(arena_bytes(i));
    if (fresh && !atomic_compare_exchange_strong(&arenas[i].base, &base, fresh)) {
        unmap(fresh, arena_bytes(i));
        fresh = base;
    }
    return fresh;
}

static void *arena_take(size_t bytes)
{
    bytes = (bytes + alignof(struct nvtx_object) - 1) & ~(alignof(struct nvtx_object) - 1);
    for (unsigned i = 0; i < ARENAS; i++) {
        size_t used = atomic_load(&arenas[i].used);
        if (bytes > arena_bytes(i) - used)
            continue;
        char *base = arena_base(i);
        if (!base)
            return NULL;
        while (bytes <= arena_bytes(i) - used) {
            if (atomic_compare_exchange_weak(&arenas[i].used, &used, used + bytes))
                return base + used;
        }
    }
    return NULL;
}

void *nvtx_keep(size_t bytes)
{
    return arena_take(bytes);
}

static struct tables *tables(void)
{
    struct tables *all = atomic_load_explicit(&the_tables, memory_order_acquire);
    if (all)
        return all;
    struct tables *fresh = map_object_memory(sizeof *fresh);
    if (fresh && !atomic_compare_exchange_strong(&the_tables, &all, fresh)) {
        unmap(fresh, sizeof *fresh);
        fresh = all;
    }
    return fresh;
}

static uint64_t mix_object_hash(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0xff51afd7ed558ccdu;
    return h ^ (h >> 32);
}

static uint64_t hash_object_text(uint64_t h, const char *text, size_t length)
{
    for (; length >= 8; text += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        h = mix_object_hash(h, word);
    }
    uint64_t tail = 0;
    memcpy(&tail, text, length);
    return mix_object_hash(h, tail ^ (uint64_t)length << 56);
}

/* Domains differ by name, layouts and enumerations by number, categories by both. */
static bool by_text(enum nvtx_kind kind)
{
    return kind != NVTX_SCHEMA && kind != NVTX_ENUM;
}
static bool kind_has_number(enum nvtx_kind kind)
{
    return kind != NVTX_DOMAIN;
}

static bool same(const struct nvtx_object *object, uint64_t hash, enum nvtx_kind kind,
                 const struct nvtx_object *domain, uint64_t number, const char *text, size_t length)
{
    return object->hash == hash && object->kind == (uint32_t)kind && object->domain == domain &&
           (!kind_has_number(kind) || object->number == number) &&
           (!by_text(kind) ||
            (object->length == length && memcmp(object->text, text, length) == 0));
}

static uint64_t hash_key(enum nvtx_kind kind, const struct nvtx_object *domain, uint64_t number,
                         const char *text, size_t length)
{
    uint64_t h = mix_object_hash((uint64_t)kind, (uint64_t)(uintptr_t)domain);
    if (kind_has_number(kind))
        h = mix_object_hash(h, number);
    return by_text(kind) ? hash_object_text(h, text, length) : h;
}

static void remember_category(struct nvtx_object *object)
{
    struct nvtx_object *newest = atomic_load(&categories);
    do {
        atomic_store(&object->older, newest);
    } while (!atomic_compare_exchange_weak(&categories, &newest, object));
}

static struct nvtx_object *make_nvtx_object(struct tables *all, uint64_t hash, enum nvtx_kind kind,
                                            const struct nvtx_object *domain, uint64_t number,
                                            const char *text, size_t length)
{
    struct nvtx_object *object = arena_take(sizeof *object + length + 1);
    if (!object)
        return NULL;
    if (kind == NVTX_DOMAIN) {
        number = (uint64_t)atomic_fetch_add(&domains_used, 1) + 1;
        if (number < MAX_DOMAINS)
            atomic_store_explicit(&all->domain[number], object, memory_order_release);
    }
    object->kind = kind;
    object->domain = domain;
    object->number = number;
    object->hash = hash;
    object->length = (uint32_t)length;
    memcpy(object->text, text, length);
    object->text[length] = '\0';
    object->magic = OBJECT_MAGIC;
    return object;
}

/* The slot of the key, or the first empty one; NULL when neither is near. */
static struct nvtx_object *_Atomic *find_nvtx_object(struct tables *all, uint64_t hash,
                                                     enum nvtx_kind kind,
                                                     const struct nvtx_object *domain,
                                                     uint64_t number, const char *text,
                                                     size_t length, struct nvtx_object **found)
{
    *found = NULL;
    for (uint32_t probes = 0; probes < TABLE_SLOTS; probes++) {
        struct nvtx_object *_Atomic *slot = &all->slot[(hash + probes) & (TABLE_SLOTS - 1)];
        struct nvtx_object *object = atomic_load_explicit(slot, memory_order_acquire);
        if (!object)
            return slot;
        if (same(object, hash, kind, domain, number, text, length)) {
            *found = object;
            return slot;
        }
    }
    return NULL;
}

struct nvtx_object *nvtx_object_get(enum nvtx_kind kind, const struct nvtx_object *domain,
                                    uint64_t number, const char *text, size_t length)
{
    struct tables *all = tables();
    if (!all || length > UINT32_MAX / 2)
        return NULL;
    uint64_t hash = hash_key(kind, domain, number, text, length);
    struct nvtx_object *made = NULL;
    for (;;) {
        struct nvtx_object *object;
        struct nvtx_object *_Atomic *slot =
            find_nvtx_object(all, hash, kind, domain, number, text, length, &object);
        if (object)
            return object; /* what lost the race stays unused in the arena: rare */
        if (!made)
            made = make_nvtx_object(all, hash, kind, domain, number, text, length);
        /* A full table only means that equal keys are no longer found again. */
        if (!made || !slot || atomic_load(&slots_used) >= TABLE_SLOTS / 4 * 3)
            return made;
        if (atomic_compare_exchange_strong(slot, &object, made)) {
            atomic_fetch_add(&slots_used, 1);
            return made;
        }
    }
}

struct nvtx_object *nvtx_object_find(enum nvtx_kind kind, const struct nvtx_object *domain,
                                     uint64_t id)
{
    struct tables *all = atomic_load_explicit(&the_tables, memory_order_acquire);
    struct nvtx_object *object = NULL;
    if (all)
        find_nvtx_object(all, hash_key(kind, domain, id, "", 0), kind, domain, id, "", 0, &object);
    return object;
}

struct nvtx_object *nvtx_object_of(const void *handle, enum nvtx_kind kind)
{
    uintptr_t at = (uintptr_t)handle;
    if (at % alignof(struct nvtx_object) != 0)
        return NULL;
    for (unsigned i = 0; i < ARENAS; i++) {
        uintptr_t base = (uintptr_t)atomic_load_explicit(&arenas[i].base, memory_order_acquire);
        if (base == 0 || at < base || at - base >= atomic_load(&arenas[i].used))
            continue;
        struct nvtx_object *object = (struct nvtx_object *)at;
        return object->magic == OBJECT_MAGIC && object->kind == (uint32_t)kind ? object : NULL;
    }
    return NULL;
}

struct nvtx_object *nvtx_domain_at(uint32_t index)
{
    struct tables *all = atomic_load_explicit(&the_tables, memory_order_acquire);
    return all && index != 0 && index < MAX_DOMAINS
               ? atomic_load_explicit(&all->domain[index], memory_order_acquire)
               : NULL;
}

uint32_t nvtx_object_id(struct nvtx_object *object)
{
    uint32_t generation = nvtx_generation();
    uint64_t cached = atomic_load_explicit(&object->cached, memory_order_relaxed);
    if (cached >> 32 == generation)
        return (uint32_t)cached;
    uint32_t id = collector_string(object->text, object->length);
    if (id)
        atomic_store_explicit(&object->cached, (uint64_t)generation << 32 | id,
                              memory_order_relaxed);
    return id;
}

static void define_category(struct nvtx_object *object)
{
    struct nvtx_object *domain = nvtx_object_of(object->domain, NVTX_DOMAIN);
    struct wire_name name = {
        .head = {sizeof name, WIRE_NAME, 0, WIRE_NAMED_CATEGORY},
        .object = object->number,
        .name = nvtx_object_id(object),
        .domain = nvtx_domain_id(domain),
    };
    collector_define(&name);
}

/* The name given last to the object's category. */
static struct nvtx_object *newest_name(const struct nvtx_object *object)
{
    struct nvtx_object *at = atomic_load(&categories);
    while (at && (at->domain != object->domain || at->number != object->number))
        at = atomic_load(&at->older);
    return at;
}

/* A name is no event and brings up no spool: libraries name their categories when they are loaded.
 * It is listed here and defined with the first event; see nvtx_define_categories. */
void nvtx_name_category(struct nvtx_object *domain, uint32_t category, const char *name,
                        size_t length)
{
    if (!name)
        return;
    struct nvtx_object *object = nvtx_object_get(NVTX_CATEGORY, domain, category, name, length);
    if (!object)
        return;
    uint64_t unlisted = 0;
    bool first = atomic_compare_exchange_strong(&object->listed, &unlisted, 1);
    if (first)
        remember_category(object);
    if (!nvtx_greeted())
        return;
    /* Some programs name their categories before every event: once is enough. */
    if (first || atomic_load(&object->cached) >> 32 != nvtx_generation() ||
        newest_name(object) != object)
        define_category(object);
}

void nvtx_define_categories(void)
{
    for (struct nvtx_object *object = atomic_load(&categories); object;
         object = atomic_load(&object->older)) {
        if (newest_name(object) == object)
            define_category(object);
    }
}

void nvtx_name_object(enum wire_named what, uint64_t object, const char *text, size_t length)
{
    if (!text || !nvtx_begin())
        return;
    struct wire_name name = {
        .head = {sizeof name, WIRE_NAME, 0, what},
        .object = object,
        .name = collector_string(text, length),
    };
    collector_define(&name);
}

/* ---- Names of CUDA's objects ------------------------------------------------------------------
 *
 * Names that a program gives to devices, contexts, streams and events. They arrive by the
 * program's own handles; perfkit finds the objects by those. */

static void name_a(enum wire_named what, uint64_t object, const char *name)
{
    nvtx_name_object(what, object, name, name ? strlen(name) : 0);
}

static void name_w(enum wire_named what, uint64_t object, const wchar_t *name)
{
    struct nvtx_text text;
    nvtx_narrow(&text, name);
    nvtx_name_object(what, object, text.text, text.length);
    nvtx_narrow_done(&text);
}

/* The handler of each kind of object, with the name in bytes and in wide characters. */
#define NAMED(object, type, number, what)                                                          \
    static void object##_a(type object, const char *name)                                          \
    {                                                                                              \
        name_a(what, (number)object, name);                                                        \
    }                                                                                              \
    static void object##_w(type object, const wchar_t *name)                                       \
    {                                                                                              \
        name_w(what, (number)object, name);                                                        \
    }
NAMED(device, int, uint32_t, WIRE_NAMED_CUDA_DEVICE)
NAMED(context, void *, uintptr_t, WIRE_NAMED_CUDA_CONTEXT)
NAMED(stream, void *, uintptr_t, WIRE_NAMED_CUDA_STREAM)
NAMED(event, void *, uintptr_t, WIRE_NAMED_CUDA_EVENT)
#undef NAMED

#define HANDLER(function) (pk_nvtx_function) function
void nvtx_fill_cuda(pk_nvtx_function_table table, unsigned count)
{
    static const pk_nvtx_function handlers[PK_NVTX_CUDA_COUNT] = {
        [PK_NVTX_CUDA_NAME_DEVICE_A] = HANDLER(device_a),
        [PK_NVTX_CUDA_NAME_DEVICE_W] = HANDLER(device_w),
        [PK_NVTX_CUDA_NAME_CONTEXT_A] = HANDLER(context_a),
        [PK_NVTX_CUDA_NAME_CONTEXT_W] = HANDLER(context_w),
        [PK_NVTX_CUDA_NAME_STREAM_A] = HANDLER(stream_a),
        [PK_NVTX_CUDA_NAME_STREAM_W] = HANDLER(stream_w),
        [PK_NVTX_CUDA_NAME_EVENT_A] = HANDLER(event_a),
        [PK_NVTX_CUDA_NAME_EVENT_W] = HANDLER(event_w),
    };
    nvtx_fill(table, count, handlers, PK_NVTX_CUDA_COUNT);
}

void nvtx_fill_cudart(pk_nvtx_function_table table, unsigned count)
{
    static const pk_nvtx_function handlers[PK_NVTX_CUDART_COUNT] = {
        [PK_NVTX_CUDART_NAME_DEVICE_A] = HANDLER(device_a),
        [PK_NVTX_CUDART_NAME_DEVICE_W] = HANDLER(device_w),
        [PK_NVTX_CUDART_NAME_STREAM_A] = HANDLER(stream_a),
        [PK_NVTX_CUDART_NAME_STREAM_W] = HANDLER(stream_w),
        [PK_NVTX_CUDART_NAME_EVENT_A] = HANDLER(event_a),
        [PK_NVTX_CUDART_NAME_EVENT_W] = HANDLER(event_w),
    };
    nvtx_fill(table, count, handlers, PK_NVTX_CUDART_COUNT);
}
