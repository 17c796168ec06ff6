/* Finding an interpreter in another process: by the names of the files it has mapped and by their
 * dynamic symbols, as the process has them in memory. Nothing of the files is read, which may have
 * been replaced meanwhile. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "samplers/cpu/python.h"

#define MAX_SEGMENTS 64u
#define MAX_DYNAMIC 256u
#define MAX_CHAIN 1024u /* symbols of one bucket */

/* ---- memory ---------------------------------------------------------------------------------- */

#define PAGE_IS_THERE                                                                              \
    (3ull << 62) /* present, or swapped out: Documentation/admin-guide/mm/pagemap */

static bool lies_in_interpreter(const struct cpu_memory *memory, uint64_t address)
{
    char name[64], line[4352], path[4096];
    uint64_t low, high;
    bool found = false;
    snprintf(name, sizeof name, "/proc/%u/maps", memory->pid);
    FILE *maps = fopen(name, "re");
    while (maps && !found && fgets(line, sizeof line, maps))
        found = sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %4095[^\n]", &low, &high,
                       path) == 3 &&
                low <= address && address < high && cpu_python_named(path);
    if (maps)
        fclose(maps);
    return found;
}

/* Reading what a process has not in memory makes the kernel bring it there, and where the process
 * does that itself (userfaultfd(2)), the reader waits for it, without end if it never does. The
 * interpreter's own files are no such memory. */
static bool reading_may_block(struct cpu_memory *memory, uint64_t address, size_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), last = (address + bytes - 1) / page;
    if (!memory->pagemap) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%u/pagemap", memory->pid);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        memory->pagemap = file < 0 ? -1 : file + 1;
    }
    for (uint64_t at = address / page; memory->pagemap > 0 && bytes && at <= last; at++) {
        uint64_t entry;
        if (pread(memory->pagemap - 1, &entry, sizeof entry, (off_t)(at * sizeof entry)) !=
            sizeof entry)
            return true;
        if (!(entry & PAGE_IS_THERE) && !lies_in_interpreter(memory, at * page)) {
            memory->refused++;
            return true;
        }
    }
    return false;
}

#define MEMORY_LEFT UINT64_MAX

bool cpu_memory_leave(struct cpu_memory *memory, uint64_t gate)
{
    return gate % 2 && atomic_compare_exchange_strong(&memory->gate, &gate, MEMORY_LEFT);
}

static bool read_process(struct cpu_memory *memory, uint64_t address, void *to, size_t bytes)
{
    struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)address, bytes};
    if (memory->reads++ >= CPU_MOST_READS) {
        memory->error = EFBIG;
        return false;
    }
    if (reading_may_block(memory, address, bytes)) {
        memory->error = EFAULT;
        return false;
    }
    uint64_t gate = atomic_fetch_add(&memory->gate, 1) + 1;
    ssize_t got = process_vm_readv((pid_t)memory->pid, &here, 1, &there, 1, 0);
    int error = errno;
    if (!atomic_compare_exchange_strong(&memory->gate, &gate, gate + 1)) {
        for (;;)
            pause(); /* nothing here is this thread's any more */
    }
    if (got == (ssize_t)bytes)
        return true;
    memory->error = got < 0 ? error : EFAULT;
    return false;
}

static const unsigned char *page_at(struct cpu_memory *memory, uint64_t address)
{
    for (unsigned i = 0; i < memory->count; i++) {
        if (memory->addresses[i] == address)
            return memory->pages[i];
    }
    unsigned at = memory->count < CPU_PAGES ? memory->count : memory->next++ % CPU_PAGES;
    memory->addresses[at] = 1; /* of no page */
    memory->count += memory->count < CPU_PAGES;
    if (!read_process(memory, address, memory->pages[at], CPU_PAGE_BYTES))
        return NULL;
    memory->addresses[at] = address;
    return memory->pages[at];
}

static bool read_pages(const struct python_memory *reader, uint64_t address, void *to, size_t bytes)
{
    struct cpu_memory *memory = (struct cpu_memory *)(uintptr_t)reader;
    unsigned char *out = to;
    if (bytes > CPU_PAGE_BYTES)
        return read_process(memory, address, to, bytes);
    while (bytes) {
        size_t at = address % CPU_PAGE_BYTES;
        size_t part = CPU_PAGE_BYTES - at < bytes ? CPU_PAGE_BYTES - at : bytes;
        const unsigned char *page = page_at(memory, address - at);
        if (!page)
            return false;
        memcpy(out, page + at, part);
        out += part;
        address += part;
        bytes -= part;
    }
    return true;
}

void cpu_memory_end(struct cpu_memory *memory)
{
    if (memory->pagemap > 0)
        close(memory->pagemap - 1);
    memory->pagemap = 0;
}

void cpu_memory_begin(struct cpu_memory *memory, uint32_t pid)
{
    cpu_memory_end(memory);
    memory->reader.read = read_pages;
    memory->pid = pid;
    memory->error = 0;
    memory->reads = 0;
    cpu_memory_forget(memory);
}

void cpu_memory_forget(struct cpu_memory *memory)
{
    memory->count = memory->next = 0;
}

/* ---- symbols --------------------------------------------------------------------------------- */

struct dynamic {
    uint64_t bias, symbols, strings, hash;
};

static bool find_dynamic(python_reader read, uint64_t base, struct dynamic *out)
{
    Elf64_Ehdr elf;
    uint64_t lowest = UINT64_MAX, dynamic = 0;
    if (!python_load(read, base, &elf, sizeof elf) || memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
        elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_phentsize != sizeof(Elf64_Phdr) ||
        elf.e_phnum > MAX_SEGMENTS)
        return false;
    for (unsigned i = 0; i < elf.e_phnum; i++) {
        Elf64_Phdr part;
        if (!python_load(read, base + elf.e_phoff + i * sizeof part, &part, sizeof part))
            return false;
        if (part.p_type == PT_LOAD && part.p_vaddr - part.p_offset < lowest)
            lowest = part.p_vaddr - part.p_offset;
        if (part.p_type == PT_DYNAMIC)
            dynamic = part.p_vaddr;
    }
    *out = (struct dynamic){.bias = base - lowest};
    Elf64_Dyn entry = {.d_tag = DT_NULL};
    for (unsigned i = 0; dynamic && i < MAX_DYNAMIC; i++) {
        if (!python_load(read, out->bias + dynamic + i * sizeof entry, &entry, sizeof entry) ||
            entry.d_tag == DT_NULL)
            break;
        /* Some loaders put addresses there, others leave what the file says. */
        uint64_t at =
            entry.d_un.d_ptr < out->bias ? out->bias + entry.d_un.d_ptr : entry.d_un.d_ptr;
        if (entry.d_tag == DT_SYMTAB)
            out->symbols = at;
        else if (entry.d_tag == DT_STRTAB)
            out->strings = at;
        else if (entry.d_tag == DT_GNU_HASH)
            out->hash = at;
    }
    return out->symbols && out->strings && out->hash;
}

static uint32_t gnu_hash(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static bool symbol_is(python_reader read, const struct dynamic *in, const Elf64_Sym *symbol,
                      const char *name)
{
    char found[40];
    size_t bytes = strlen(name) + 1;
    return symbol->st_shndx != SHN_UNDEF && bytes <= sizeof found &&
           python_load(read, in->strings + symbol->st_name, found, bytes) &&
           memcmp(found, name, bytes) == 0;
}

/* Address of a symbol that the file exports; 0 = it does not. By the table that loaders use. */
static uint64_t find_symbol(python_reader read, const struct dynamic *in, const char *name,
                            uint64_t *bytes)
{
    struct {
        uint32_t buckets, first, bloom_words, shift;
    } head;
    uint32_t hash = gnu_hash(name), number, chain;
    if (!python_load(read, in->hash, &head, sizeof head) || !head.buckets)
        return 0;
    uint64_t buckets = in->hash + sizeof head + head.bloom_words * 8ull;
    uint64_t chains = buckets + head.buckets * 4ull;
    if (!python_load(read, buckets + hash % head.buckets * 4ull, &number, sizeof number) ||
        number < head.first)
        return 0;
    for (unsigned i = 0; i < MAX_CHAIN; i++, number++) {
        Elf64_Sym symbol;
        if (!python_load(read, chains + (number - head.first) * 4ull, &chain, sizeof chain))
            return 0;
        if ((chain | 1) == (hash | 1) &&
            python_load(read, in->symbols + number * sizeof symbol, &symbol, sizeof symbol) &&
            symbol_is(read, in, &symbol, name)) {
            *bytes = symbol.st_size;
            return in->bias + symbol.st_value;
        }
        if (chain & 1)
            return 0;
    }
    return 0;
}

/* ---- the interpreter ------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool cpu_python_named(const char *path)
{
    const char *name = base_name(path);
    return strncmp(name, "python", 6) == 0 || strncmp(name, "libpython", 9) == 0;
}

/* By its file's name (python3.11, libpython3.11.so.1.0); 0 = that does not say. */
static unsigned version_in_name(const char *path)
{
    const char *at = strstr(base_name(path), "python3.");
    long minor = at ? strtol(at + 8, NULL, 10) : 0;
    return minor > 0 && minor < 256 ? 3u << 8 | (unsigned)minor : 0;
}

static const char *check_layout(struct cpu_interpreter *out, python_reader read)
{
    const struct python_layout *layout = &out->layout;
    unsigned char table[PYTHON_TABLE_BYTES];
    uint64_t code, text;
    const char *why;
    if (!python_load(read, out->runtime, table, sizeof table))
        return "its memory cannot be read";
    if (!python_layout_confirmed(layout, table, &why))
        return why;
    if (!python_layout_threads(&out->layout, table))
        return "its table of offsets is not that of the usual builds";
    if (!python_load(read, out->it.code_type + PYTHON_TYPE_BASIC_SIZE, &code, sizeof code) ||
        !python_load(read, out->it.text_type + PYTHON_TYPE_BASIC_SIZE, &text, sizeof text))
        return "its memory cannot be read";
    /* 0 before it is initialized. */
    if (code && text &&
        (text != layout->text_compact + sizeof(void *) ||
         (layout->version != PYTHON_3_10 && code != layout->code_bytes)))
        return "objects of another size";
    return NULL;
}

/* NULL = there is one at `base`, whose memory `out` describes; "" = none is there. */
static const char *examine_file(struct cpu_interpreter *out, python_reader read, uint64_t base,
                                unsigned *version)
{
    struct dynamic dynamic;
    uint64_t size, packed;
    if (!find_dynamic(read, base, &dynamic) ||
        !(out->runtime = find_symbol(read, &dynamic, "_PyRuntime", &size)))
        return "";
    uint64_t at = find_symbol(read, &dynamic, "Py_Version", &size);
    if (at && python_load(read, at, &packed, sizeof packed))
        *version = (unsigned)(packed >> 16 & 0xffff);
    const struct python_layout *layout = python_layout(*version);
    if (!layout)
        return "perfkit knows 3.10 to 3.13";
    out->layout = *layout;
    out->it.layout = &out->layout;
    out->it.code_type = find_symbol(read, &dynamic, "PyCode_Type", &size);
    out->it.text_type = find_symbol(read, &dynamic, "PyUnicode_Type", &size);
    out->it.bytes_type = find_symbol(read, &dynamic, "PyBytes_Type", &size);
    if (!out->it.code_type || !out->it.text_type || !out->it.bytes_type)
        return "it does not export what is needed";
    out->loop_low = find_symbol(read, &dynamic, "_PyEval_EvalFrameDefault", &size);
    out->loop_high = out->loop_low + (out->loop_low ? size : 0);
    return check_layout(out, read);
}

bool cpu_python_find(struct cpu_memory *memory, struct cpu_interpreter *out, unsigned *version,
                     const char **why)
{
    char name[64], line[4352], path[4096];
    uint64_t low, high, offset, base = 0;
    char access[8];
    *version = 0;
    *why = "";
    *out = (struct cpu_interpreter){.runtime = 0};
    snprintf(name, sizeof name, "/proc/%u/maps", memory->pid);
    FILE *maps = fopen(name, "re");
    while (maps && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4095[^\n]", &low, &high,
                   access, &offset, path) != 5 ||
            !cpu_python_named(path))
            continue;
        if (!out->runtime && offset == 0 && base != low) {
            unsigned found = version_in_name(path);
            const char *reason = examine_file(out, &memory->reader, base = low, &found);
            if (out->runtime) {
                *why = reason ? reason : "";
                *version = found;
            } else if (memory->error == EPERM || memory->error == ENOSYS) {
                *why = "its memory may not be read";
                *version = found;
            }
        }
        if (out->runtime && access[2] == 'x' && out->loop_low - low < high - low) {
            out->it.machine_low = low;
            out->it.machine_high = high;
        }
    }
    if (maps)
        fclose(maps);
    return out->runtime && !**why;
}
