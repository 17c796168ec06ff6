/* Python frames of the calling thread, handed to the Python program that calls: it compares them
 * with what the interpreter says itself. Stands for collector core and native unwinder; the files
 * of collectors/python are the real ones. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#include "collectors/core/collector.h"
#include "collectors/python/interpreter.h"
#include "collectors/stacks/stacks.h"
#include "collectors/stacks/unwind.h"
#include "libprof/base/clock.h"
#include "libprof/store/python_lines.h"

/* Called by way of ctypes only. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define EXPORT __attribute__((visibility("default")))
#define MOST_CODES (1u << 17)
#define MOST_STRINGS (1u << 18)
#define MOST_FRAMES 512u

/* ---- a core that remembers ------------------------------------------------------------------- */

struct code {
    struct wire_python_code head;
    uint8_t *table;
};

static char *strings[MOST_STRINGS];
static struct code codes[MOST_CODES]; /* by id */
static _Atomic uint32_t string_count, last_id, definitions;
static char health[256];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

uint32_t collector_string(const char *text, size_t length)
{
    uint32_t id = atomic_fetch_add(&string_count, 1) + 1;
    if (id >= MOST_STRINGS)
        return 0;
    strings[id] = strndup(text, length);
    return id;
}

uint64_t collector_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint32_t collector_tid(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

uint32_t collector_new_id(void)
{
    return atomic_fetch_add(&last_id, 1) + 1;
}

bool collector_define(const void *record)
{
    const struct wire_python_code *code = record;
    if (code->head.type != WIRE_PYTHON_CODE || code->head.aux >= MOST_CODES)
        return false;
    pthread_mutex_lock(&lock);
    struct code *known = &codes[code->head.aux];
    if (!known->table)
        known->table = calloc(1, code->total + 1u);
    known->head = *code;
    memcpy(known->table + code->at, code->table, code->bytes);
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&definitions, 1);
    return true;
}

static _Atomic uint64_t untold;

void collector_count(enum wire_count which, uint64_t n)
{
    if (which == WIRE_COUNT_PYTHON_UNTOLD)
        atomic_fetch_add(&untold, n);
}

void collector_health(enum wire_source source, enum wire_health_state state, const char *why,
                      uint32_t value)
{
    (void)source, (void)state, (void)value;
    strncpy(health, why, sizeof health - 1);
}

bool collector_ended(void)
{
    return false;
}

bool collector_option(const char *name, char *value, size_t size)
{
    (void)name, (void)value, (void)size;
    return false;
}

void collector_register(const struct collector_source *source)
{
    (void)source;
}

void stacks_set_merge(stacks_merge *merge)
{
    (void)merge;
}

/* ---- native frames --------------------------------------------------------------------------- */

struct native {
    uint64_t entries[MOST_FRAMES], cfas[MOST_FRAMES];
    size_t count;
};

/* The unwinder gives the stack pointer at the call, which is the end of the frame called. */
static _Unwind_Reason_Code see(struct _Unwind_Context *context, void *argument)
{
    struct native *native = argument;
    if (native->count > 0)
        native->cfas[native->count - 1] = _Unwind_GetCFA(context);
    if (native->count == MOST_FRAMES)
        return _URC_END_OF_STACK;
    uint64_t ip = _Unwind_GetIP(context),
             module = _Unwind_FindEnclosingFunction((void *)ip) != NULL;
    native->entries[native->count] = module << UNWIND_MODULE_SHIFT | ip;
    native->cfas[native->count++] = 0;
    return _URC_NO_REASON;
}

/* ---- what the program calls ------------------------------------------------------------------ */

/* The merged stack, at most `room` entries; `depth`: native frames that are found at most. */
EXPORT size_t probe_stack(uint64_t *out, size_t room, size_t depth)
{
    struct native native = {.count = 0};
    python_look();
    _Unwind_Backtrace(see, &native);
    if (native.count > depth)
        native.count = depth;
    return python_merge(native.entries, native.cfas, native.count, out, room);
}

EXPORT const char *probe_health(void)
{
    return health;
}

EXPORT unsigned probe_definitions(void)
{
    return atomic_load(&definitions);
}

EXPORT uint64_t probe_untold(void)
{
    return atomic_load(&untold);
}

/* As many code objects as asked for, all like the one at `code`, of which `bytes` are looked at.
 * Returns how many of them have ids. */
EXPORT size_t probe_copies(uint64_t code, size_t bytes, size_t copies)
{
    static unsigned char *memory; /* the same addresses in every call */
    size_t stride = (bytes + 15) & ~(size_t)15, told = 0;
    if (!memory)
        memory = calloc(copies, stride);
    for (size_t i = 0; memory && i < copies; i++) {
        unsigned char *copy = memory + i * stride;
        memcpy(copy, (const void *)(uintptr_t)code, bytes);
        told += python_code_id((uint64_t)(uintptr_t)copy) != 0;
    }
    return told;
}

static const struct code *code_of(uint64_t entry)
{
    uint64_t id = (entry & WIRE_ENTRY_VALUE) >> 32;
    return id < MOST_CODES ? &codes[id] : &codes[0];
}

EXPORT int probe_is_python(uint64_t entry)
{
    return entry >> WIRE_ENTRY_SHIFT == WIRE_ENTRY_PYTHON;
}

EXPORT const char *probe_function(uint64_t entry)
{
    return strings[code_of(entry)->head.function];
}

EXPORT const char *probe_file(uint64_t entry)
{
    return strings[code_of(entry)->head.file];
}

EXPORT unsigned probe_line(uint64_t entry)
{
    const struct code *code = code_of(entry);
    return prof_python_line(code->head.version, code->table, code->head.total,
                            code->head.first_line, (uint32_t)entry);
}

EXPORT unsigned probe_table_line(unsigned version, const uint8_t *table, size_t bytes,
                                 unsigned first_line, unsigned offset)
{
    return prof_python_line(version, table, bytes, first_line, offset);
}

/* For bench/python_stacks: ns of CLOCK_MONOTONIC that `rounds` walks with their definitions take,
 * without native frames. */
EXPORT uint64_t probe_time(unsigned rounds)
{
    uint64_t out[PYTHON_MAX], begin = prof_now_ns();
    for (unsigned i = 0; i < rounds; i++)
        python_merge(NULL, NULL, 0, out, PYTHON_MAX);
    return prof_now_ns() - begin;
}

/* Calls back into Python through C. */
EXPORT void probe_call(void (*function)(void))
{
    function();
}

/* The interpreter's end comes when it is asked for the `left`th time from now. */
static int asks_left = -1;

static int ends_after_a_while(void)
{
    return asks_left == 0 || --asks_left == 0;
}

EXPORT void probe_end_after(int left)
{
    asks_left = left;
    python_interpreter.finalizing = ends_after_a_while;
}

EXPORT int probe_asks_left(void)
{
    return asks_left;
}

/* A broken interpreter: the offset of a field in this process's layout is moved by `by`. */
static struct python_layout changed;
EXPORT void probe_damage(size_t at, int by)
{
    uint16_t value;
    python_look();
    changed = *python_interpreter.layout;
    memcpy(&value, (char *)&changed + at, sizeof value);
    value = (uint16_t)(value + by);
    memcpy((char *)&changed + at, &value, sizeof value);
    python_interpreter.layout = &changed;
    atomic_store(&python_phase, PYTHON_FOUND);
}
EXPORT const struct python_layout *probe_layout(unsigned version)
{
    return python_layout(version);
}

EXPORT size_t probe_layout_bytes(void)
{
    return sizeof(struct python_layout);
}
