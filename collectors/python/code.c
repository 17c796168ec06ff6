/* Code objects, sent to the spool once each: names, and the table by which perfkit turns
 * instructions into lines afterwards. A fixed table from address to id; reading it takes no lock.
 *
 * Code that finds no free slot stays without a name and is counted: to send it again and again
 * would fill the spool. A slot is only reused for other code at the same address, and no process
 * sends more than MAX_DEFINED. */
#include <sys/mman.h>

#include "collectors/core/collector.h"
#include "collectors/core/lock.h"
#include "collectors/python/interpreter.h"

#define SLOTS (1u << 16)
#define PROBES 64u
#define NO_SLOT UINT32_MAX
#define MAX_DEFINED (1u << 18)
#define MAX_LINES 65536u /* bytes of a table of lines */

struct entry {
    _Atomic uint64_t code;
    _Atomic uint64_t print;
    _Atomic uint32_t id; /* 0 = being written */
    uint32_t reserved;
};

struct table {
    struct entry entries[SLOTS];
    uint32_t defined; /* definitions; of the thread that writes */
};
static _Atomic(struct table *) the_table; /* wiped in a forked child */
static struct collector_lock writing;

static struct table *get_table(void)
{
    struct table *table = atomic_load_explicit(&the_table, memory_order_acquire);
    if (table)
        return table;
    void *memory = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, sizeof *table, MADV_WIPEONFORK);
    if (atomic_compare_exchange_strong(&the_table, &table, memory))
        return memory;
    munmap(memory, sizeof *table);
    return table;
}

void python_code_forget(void)
{
    atomic_store(&writing.owner, 0); /* held, perhaps, by a thread that was not forked */
}

static uint64_t code_word_at(uint64_t base, unsigned offset)
{
    uint64_t word = 0;
    python_load(NULL, base + offset, &word, sizeof word);
    return word;
}

/* ---- names ----------------------------------------------------------------------------------- */

static uint32_t name_id(uint64_t code, unsigned offset)
{
    char text[PYTHON_TEXT_MOST];
    uint64_t object = code_word_at(code, offset);
    return collector_string(text,
                            python_text(&python_interpreter, NULL, object, text, sizeof text));
}

/* ---- definitions ----------------------------------------------------------------------------- */

static bool record_code_definition(const struct python_layout *layout, uint64_t code, uint32_t id)
{
    _Alignas(8) unsigned char buffer[WIRE_MAX_RECORD] = {0};
    struct wire_python_code *record = (struct wire_python_code *)(void *)buffer;
    uint64_t lines = code_word_at(code, layout->code_lines);
    uint64_t total = python_is(NULL, lines, python_interpreter.bytes_type)
                         ? code_word_at(lines, PYTHON_OBJECT_SIZE)
                         : 0;
    if (total > MAX_LINES)
        total = MAX_LINES;
    *record = (struct wire_python_code){
        .function = name_id(code, layout->code_name),
        .file = name_id(code, layout->code_file),
        .first_line = (uint32_t)(code_word_at(code, layout->code_first_line) & UINT32_MAX),
        .version = layout->version,
        .total = (uint32_t)total,
    };
    bool ok = record->function != 0;
    uint64_t at = 0;
    do {
        uint64_t bytes = total - at < WIRE_PYTHON_LINES ? total - at : WIRE_PYTHON_LINES;
        uint64_t size = (sizeof *record + bytes + 7) & ~7ull;
        if (bytes)
            memcpy(record->table, (const void *)(uintptr_t)(lines + PYTHON_BYTES_DATA + at), bytes);
        record->head = (struct wire_head){(uint16_t)size, WIRE_PYTHON_CODE, 0, id};
        record->at = (uint32_t)at;
        record->bytes = (uint32_t)bytes;
        ok = ok && collector_define(record);
        at += bytes;
    } while (ok && at < total);
    return ok;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* The id, or 0 with the slot where it belongs: that of the same address, a free one, or NO_SLOT. */
static uint32_t find_code(struct table *table, uint64_t code, uint64_t print, uint32_t *slot)
{
    uint32_t first = (uint32_t)((code >> 4) * 0x9e3779b97f4a7c15ull >> 40) & (SLOTS - 1);
    *slot = NO_SLOT;
    for (uint32_t i = 0; i < PROBES; i++) {
        uint32_t at = (first + i) & (SLOTS - 1);
        struct entry *entry = &table->entries[at];
        uint64_t key = atomic_load_explicit(&entry->code, memory_order_acquire);
        if (key != code && key != 0)
            continue;
        *slot = at;
        if (key == 0)
            return 0;
        uint32_t id = atomic_load_explicit(&entry->id, memory_order_acquire);
        uint64_t known = atomic_load_explicit(&entry->print, memory_order_acquire);
        /* Ids are never used twice: the same one before and after means that it was one entry. */
        bool whole = id == atomic_load_explicit(&entry->id, memory_order_acquire) &&
                     code == atomic_load_explicit(&entry->code, memory_order_acquire);
        return whole && known == print ? id : 0;
    }
    return 0;
}

static uint32_t add_code(struct table *table, uint64_t code, uint64_t print)
{
    uint32_t slot, id = find_code(table, code, print, &slot);
    if (id || slot == NO_SLOT || table->defined >= MAX_DEFINED)
        return id;
    id = collector_new_id();
    if (!id || id > WIRE_PYTHON_CODE_MOST ||
        !record_code_definition(python_interpreter.layout, code, id))
        return 0;
    table->defined++;
    struct entry *entry = &table->entries[slot];
    atomic_store_explicit(&entry->id, 0, memory_order_release);
    atomic_store_explicit(&entry->code, code, memory_order_release);
    atomic_store_explicit(&entry->print, print, memory_order_release);
    atomic_store_explicit(&entry->id, id, memory_order_release);
    return id;
}

uint32_t python_code_id(uint64_t code)
{
    struct table *table = get_table();
    if (!table)
        return 0;
    uint64_t print = python_code_print(python_interpreter.layout, NULL, code);
    uint32_t slot, id = find_code(table, code, print, &slot);
    if (id || slot == NO_SLOT)
        return id;
    if (!collector_lock(&writing)) /* a signal handler came while this thread was writing */
        return 0;
    id = add_code(table, code, print);
    collector_unlock(&writing);
    return id;
}
