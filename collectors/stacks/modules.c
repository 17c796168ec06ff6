/* Which object file an address lies in, and where its unwind tables are.
 *
 * dl_iterate_phdr takes the loader's lock, and a stack may be taken inside of a driver that is
 * inside of dlopen: it is out of the question here. glibc 2.35 made _dl_find_object for unwinders,
 * which takes no lock and may be called in signal handlers. Before that the helper thread keeps the
 * list, and a stack through a library that it has not seen yet ends there.
 *
 * A slot is filled once and then read by any thread; when the library goes, its slot is marked, and
 * used again when the same file comes back to the same place, so that a stack keeps its number. It
 * is never given to another file: the numbers of their modules distinguish stacks. A process with
 * more modules than slots has stacks that end in those, and they are counted. */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/stacks/modules.h"
#include "libprof/base/elf_image.h"

#define MAX_PATH 4096u
#define MAX_SEGMENTS 64u

/* Of glibc's <dlfcn.h>, which may be older than the library we run with. */
struct found_object {
    unsigned long long flags;
    void *start, *end;
    struct link_map *map;
    void *header; /* .eh_frame_hdr */
    unsigned long long reserved[8];
};

static int (*find_object)(void *address, struct found_object *result);
static char program[MAX_PATH]; /* the main executable */
static const char own[] = "";  /* an address of ours */
bool stacks_unloads_seen;

static bool query_loader(uint64_t pc, struct found_object *found)
{
    return find_object && find_object((void *)(uintptr_t)pc, found) == 0 && found->map;
}

static bool is_own(const void *symbol)
{
    struct found_object found, ours;
    return query_loader((uint64_t)(uintptr_t)symbol, &found) &&
           query_loader((uint64_t)(uintptr_t)own, &ours) && found.map == ours.map;
}

void stacks_modules_start(void)
{
    void *symbol = dlsym(RTLD_DEFAULT, "_dl_find_object");
    memcpy(&find_object, &symbol, sizeof symbol);
    stacks_unloads_seen = is_own(dlsym(RTLD_DEFAULT, "dlclose"));
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0';
}

/* Libraries whose frames say nothing of the program: their callers do. */
static bool is_driver(const char *path, uint64_t start, uint64_t end)
{
    static const char *const prefixes[] = {"libcuda.so",   "libcudart.so", "libcupti.so",
                                           "libOpenCL.so", "libnvidia-",   "libcudadebugger.so"};
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    }
    uint64_t here = (uint64_t)(uintptr_t)own;
    return here >= start && here < end;
}

/* The loader keeps what dlopen was given, which may be relative to the folder of that moment. */
static __attribute__((noinline)) uint32_t relative_path(const char *name)
{
    char link[64], room[MAX_PATH];
    ssize_t n = 0;
    int cancel; /* the thread may be in any place of the program */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    int fd = open(name, O_PATH | O_CLOEXEC);
    if (fd >= 0) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        n = readlink(link, room, sizeof room);
        close(fd);
    }
    pthread_setcancelstate(cancel, NULL);
    return n > 0 ? collector_string(room, (size_t)n) : collector_text(name);
}

/* String id of a path as /proc/PID/maps has it. */
static uint32_t full_path(const char *name)
{
    if (strncmp(name, "linux-vdso", 10) == 0)
        return collector_text("[vdso]");
    return !name[0]         ? collector_text(program)
           : name[0] == '/' ? collector_text(name)
                            : relative_path(name);
}

/* A mapped object file as its program headers describe it. */
struct object {
    uint64_t bias; /* address less what the file says */
    const Elf64_Phdr *segments;
    unsigned count;
    const char *name;
    const void *loaded_as;
    uint64_t header; /* .eh_frame_hdr; 0 = look in the segments */
};

static const Elf64_Phdr *segment_at(const struct object *object, uint64_t address)
{
    for (unsigned i = 0; i < object->count; i++) {
        const Elf64_Phdr *segment = &object->segments[i];
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_R &&
            address - object->bias - segment->p_vaddr < segment->p_filesz)
            return segment;
    }
    return NULL;
}

/* What the headers say counts only where the object is. */
static bool lies_within(const struct stacks_module *module, uint64_t low, uint64_t bytes)
{
    return low >= module->start && low < module->end && bytes <= module->end - low;
}

static void find_tables(struct stacks_module *module, const struct object *object)
{
    uint64_t header = object->header;
    for (unsigned i = 0; i < object->count && !header; i++) {
        if (object->segments[i].p_type == PT_GNU_EH_FRAME)
            header = object->bias + object->segments[i].p_vaddr;
    }
    const Elf64_Phdr *segment = header ? segment_at(object, header) : NULL;
    module->tables = (struct cfi_tables){0};
    uint64_t low = segment ? object->bias + segment->p_vaddr : 0;
    if (!segment || !lies_within(module, low, segment->p_filesz))
        return;
    module->tables = (struct cfi_tables){
        .memory = (const unsigned char *)(uintptr_t)low,
        .low = low,
        .high = low + segment->p_filesz,
        .header = header,
    };
}

/* String id, 0 = it has none. */
static uint32_t intern_module_build_id(const struct stacks_module *module,
                                       const struct object *object)
{
    char text[PROF_BUILD_ID_TEXT];
    for (unsigned i = 0; i < object->count; i++) {
        const Elf64_Phdr *segment = &object->segments[i];
        uint64_t address = object->bias + segment->p_vaddr;
        const Elf64_Phdr *inside = segment->p_type == PT_NOTE ? segment_at(object, address) : NULL;
        if (inside && segment->p_filesz <= inside->p_vaddr + inside->p_filesz - segment->p_vaddr &&
            lies_within(module, address, segment->p_filesz) &&
            prof_build_id((const unsigned char *)(uintptr_t)address, segment->p_filesz, text))
            return collector_text(text);
    }
    return 0;
}

static bool record_module_definition(const struct stacks_module *module, uint8_t flags)
{
    struct wire_module record = {
        .head = {sizeof record, WIRE_MODULE, flags, 0},
        .time = collector_now(),
        .address = module->start,
        .bytes = module->end - module->start,
        .path = module->path,
        .build_id = module->build_id,
    };
    return collector_define(&record);
}

static bool claim_module(struct stacks_module *module, uint32_t from)
{
    return atomic_compare_exchange_strong(&module->state, &from, MODULE_CHANGING);
}

/* The slot of a file that was at this place before, or a fresh one; NULL = none left. */
static struct stacks_module *take_slot(struct stacks_modules *modules,
                                       const struct stacks_module *wanted)
{
    uint32_t count = atomic_load(&modules->count);
    for (uint32_t i = 0; i < count; i++) {
        struct stacks_module *slot = &modules->slots[i];
        if (atomic_load_explicit(&slot->state, memory_order_acquire) == MODULE_GONE &&
            slot->start == wanted->start && slot->end == wanted->end &&
            slot->path == wanted->path && slot->build_id == wanted->build_id &&
            claim_module(slot, MODULE_GONE))
            return slot;
    }
    while (count < MODULES) {
        if (atomic_compare_exchange_weak(&modules->count, &count, count + 1))
            return claim_module(&modules->slots[count], MODULE_UNUSED) ? &modules->slots[count]
                                                                       : NULL;
    }
    return NULL;
}

static uint64_t hash_module_name(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return hash;
}

/* Two threads may add the same one at once: it then has two numbers, and one row in the file. */
static uint32_t add_module(struct stacks_modules *modules, const struct object *object,
                           uint64_t start, uint64_t end)
{
    const char *name = object->name ? object->name : "";
    struct stacks_module module = {
        .start = start,
        .end = end,
        .loaded_as = object->loaded_as,
        .name = hash_module_name(name),
        .path = full_path(name),
        .driver = name[0] && is_driver(name, start, end),
    };
    if (module.path == 0)
        return 0;
    module.build_id = intern_module_build_id(&module, object);
    find_tables(&module, object);
    struct stacks_module *slot = take_slot(modules, &module);
    if (!slot)
        return MODULE_BEYOND;
    slot->start = module.start;
    slot->end = module.end;
    slot->tables = module.tables;
    slot->loaded_as = module.loaded_as;
    slot->name = module.name;
    slot->path = module.path;
    slot->build_id = module.build_id;
    slot->driver = module.driver;
    bool defined = record_module_definition(&module, 0);
    atomic_store_explicit(&slot->state, defined ? MODULE_LOADED : MODULE_GONE,
                          memory_order_release);
    return defined ? (uint32_t)(slot - modules->slots) + 1 : 0;
}

/* The headers lie at the object's first byte: all linkers put them into the first segment. */
static bool describe_found_object(const struct found_object *found, struct object *object)
{
    const Elf64_Ehdr *header = found->start;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum > MAX_SEGMENTS ||
        header->e_phoff > 4096 - header->e_phnum * sizeof(Elf64_Phdr))
        return false;
    *object = (struct object){
        .segments =
            (const Elf64_Phdr *)(const void *)((const char *)found->start + header->e_phoff),
        .count = header->e_phnum,
        .name = found->map->l_name,
        .loaded_as = found->map,
        .bias = found->map->l_addr,
        .header = (uint64_t)(uintptr_t)found->header,
    };
    return true;
}

static void gone(struct stacks_modules *modules, struct stacks_module *module)
{
    if (!claim_module(module, MODULE_LOADED))
        return;
    record_module_definition(module, WIRE_MODULE_UNLOADED);
    atomic_store_explicit(&module->state, MODULE_GONE, memory_order_release);
    atomic_fetch_add(&modules->generation, 1);
}

static uint32_t known_at(const struct stacks_modules *modules, uint64_t pc)
{
    uint32_t count = atomic_load_explicit(&modules->count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        const struct stacks_module *slot = &modules->slots[i];
        if (atomic_load_explicit(&slot->state, memory_order_acquire) == MODULE_LOADED &&
            pc >= slot->start && pc < slot->end)
            return i + 1;
    }
    return 0;
}

/* The loader reuses its own memory too, so its name for the object is compared as well: only of one
 * that a stack leads through, and that is therefore not just being unloaded. */
static bool has_its_name(const struct stacks_module *module, const char *name)
{
    return module->name == hash_module_name(name);
}

static bool is_still_there(const struct stacks_module *module, const struct found_object *found)
{
    return found->map == module->loaded_as && (uint64_t)(uintptr_t)found->start == module->start;
}

bool stacks_module_is_at(const struct stacks_modules *modules, uint32_t number, uint64_t pc)
{
    const struct stacks_module *module = &modules->slots[number - 1];
    struct found_object found;
    if (!find_object) /* which modules were unloaded is known when the helper thread looks */
        return atomic_load_explicit(&module->state, memory_order_acquire) == MODULE_LOADED;
    return query_loader(pc, &found) && is_still_there(module, &found) &&
           has_its_name(module, found.map->l_name);
}

uint32_t stacks_module_at(struct stacks_modules *modules, uint64_t pc)
{
    struct found_object found;
    struct object object;
    if (find_object && !query_loader(pc, &found))
        return 0; /* code that was generated, or no code at all */
    uint32_t number = known_at(modules, pc);
    if (!find_object)
        return number; /* 0: the helper thread has not seen it yet */
    if (number && is_still_there(&modules->slots[number - 1], &found) &&
        has_its_name(&modules->slots[number - 1], found.map->l_name))
        return number;
    if (number) /* another one has its place already */
        gone(modules, &modules->slots[number - 1]);
    return describe_found_object(&found, &object)
               ? add_module(modules, &object, (uint64_t)(uintptr_t)found.start,
                            (uint64_t)(uintptr_t)found.end)
               : 0;
}

/* ---- Without _dl_find_object: the list of dl_iterate_phdr, on the helper thread and after
 * dlclose. */

struct listing {
    struct stacks_modules *modules;
    bool seen[MODULES];
};

static bool module_is_same(const struct stacks_module *module, const char *name, uint64_t start,
                           uint64_t end)
{
    return module->start == start && module->end == end && has_its_name(module, name);
}

static int list_one(struct dl_phdr_info *info, size_t size, void *data)
{
    struct listing *listing = data;
    struct object object = {
        .bias = info->dlpi_addr,
        .segments = info->dlpi_phdr,
        .count = info->dlpi_phnum,
        .name = info->dlpi_name,
    };
    uint64_t start = UINT64_MAX, end = 0;
    (void)size;
    for (unsigned i = 0; i < object.count; i++) {
        const Elf64_Phdr *segment = &object.segments[i];
        uint64_t low = object.bias + (segment->p_vaddr & ~4095ull);
        uint64_t high = object.bias + segment->p_vaddr + segment->p_memsz;
        if (segment->p_type == PT_LOAD) {
            start = low < start ? low : start;
            end = high > end ? high : end;
        }
    }
    uint32_t number = start < end ? known_at(listing->modules, start) : 0;
    if (number && !module_is_same(&listing->modules->slots[number - 1],
                                  object.name ? object.name : "", start, end)) {
        gone(listing->modules, &listing->modules->slots[number - 1]);
        number = 0;
    }
    if (!number && start < end)
        number = add_module(listing->modules, &object, start, end);
    if (number && number != MODULE_BEYOND)
        listing->seen[number - 1] = true;
    return 0;
}

static void list_modules(struct stacks_modules *modules)
{
    struct listing listing = {.modules = modules};
    uint32_t count = atomic_load(&modules->count); /* what another thread adds meanwhile stays */
    dl_iterate_phdr(list_one, &listing);
    for (uint32_t i = 0; i < count; i++) {
        if (!listing.seen[i])
            gone(modules, &modules->slots[i]);
    }
}

void stacks_modules_look(struct stacks_modules *modules)
{
    if (!find_object) {
        list_modules(modules);
        return;
    }
    uint32_t count = atomic_load(&modules->count);
    for (uint32_t i = 0; i < count; i++) {
        struct stacks_module *module = &modules->slots[i];
        struct found_object found;
        if (atomic_load_explicit(&module->state, memory_order_acquire) == MODULE_LOADED &&
            (!query_loader(module->start, &found) || !is_still_there(module, &found)))
            gone(modules, module);
    }
}
