/* Finding the interpreter: by its symbols, in the program, in what was loaded with it or in a
 * libpython that was loaded for a plugin. Only here does the dynamic loader take part. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

#include "collectors/core/collector.h"
#include "collectors/python/interpreter.h"

struct python_interpreter python_interpreter;
_Atomic unsigned python_phase;
static _Atomic bool looking;

#define MAX_PATH 4096u

/* What is needed of it; `first` and `last` are versions, 0 = any. */
static const struct {
    const char *name;
    size_t at; /* in struct python_interpreter */
    unsigned first, last;
} symbols[] = {
#define AT(field) offsetof(struct python_interpreter, field)
    {"PyGILState_GetThisThreadState", AT(own_thread), 0, 0},
    {"PyInterpreterState_Main", AT(main_interpreter), 0, 0},
    {"PyCode_Addr2Line", AT(line), 0, 0},
    {"PyCode_Type", AT(code_type), 0, 0},
    {"PyUnicode_Type", AT(text_type), 0, 0},
    {"PyBytes_Type", AT(bytes_type), 0, 0},
    /* Before 3.12 it is the thread that has the lock, which need not be the calling one. */
    {"_PyThreadState_UncheckedGet", AT(attached), PYTHON_3_12, PYTHON_3_12},
    {"PyThreadState_GetUnchecked", AT(attached), PYTHON_3_13, 0},
    {"_Py_IsFinalizing", AT(finalizing), 0, PYTHON_3_12},
    {"Py_IsFinalizing", AT(finalizing), PYTHON_3_13, 0},
};

static int note_python_object(struct dl_phdr_info *info, size_t size, void *path)
{
    (void)size;
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    if (!slash || strncmp(slash, "/libpython3.", 12) != 0 || strlen(info->dlpi_name) >= MAX_PATH)
        return 0;
    memcpy(path, info->dlpi_name, strlen(info->dlpi_name) + 1);
    return 1;
}

/* One that is not seen by all is looked for among what is loaded: for a name that is not, dlopen
 * would search the file system, each time and with the loader's lock held. Either way the loader
 * keeps it from now on: opened, or for the sake of our dlsym. */
static void *open_interpreter(void)
{
    char path[MAX_PATH];
    if (dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"))
        return RTLD_DEFAULT;
    return dl_iterate_phdr(note_python_object, path) ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

static bool find_symbols(void *handle, unsigned version)
{
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        if (version < symbols[i].first || (symbols[i].last && version > symbols[i].last))
            continue;
        void *found = dlsym(handle, symbols[i].name);
        if (!found)
            return false;
        memcpy((char *)&python_interpreter + symbols[i].at, &found, sizeof found);
    }
    return true;
}

/* Its text: native frames in there are of no use next to the Python frames. */
static void find_machine_code(void *handle)
{
    Dl_info info;
    void *loop = dlsym(handle, "_PyEval_EvalFrameDefault");
    if (!loop || !dladdr(loop, &info) || !info.dli_fbase)
        return;
    const ElfW(Ehdr) *elf = info.dli_fbase;
    uint64_t base = elf->e_type == ET_DYN ? (uint64_t)(uintptr_t)elf : 0;
    const ElfW(Phdr) *part = (const void *)((const char *)elf + elf->e_phoff);
    for (unsigned i = 0; i < elf->e_phnum; i++, part++) {
        uint64_t low = base + part->p_vaddr;
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) ||
            (uint64_t)(uintptr_t)loop - low >= part->p_memsz)
            continue;
        python_interpreter.machine_low = low;
        python_interpreter.machine_high = low + part->p_memsz;
    }
}

static unsigned version_of(const char *text)
{
    char *end;
    unsigned long major = strtoul(text, &end, 10);
    unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
    return major < 256 && minor < 256 ? (unsigned)(major << 8 | minor) : 0;
}

/* Said when the first stack is taken: a program that takes none has no spool to say it in. */
static char refusal[160];
static _Atomic bool reported;

void python_refuse(unsigned version, const char *why)
{
    snprintf(refusal, sizeof refusal, "no Python frames in stacks: Python %u.%u: %s", version >> 8,
             version & 255u, why);
    atomic_store_explicit(&python_phase, PYTHON_REFUSED, memory_order_release);
}

void python_report_refusal(void)
{
    if (!atomic_exchange(&reported, true))
        collector_health(WIRE_SOURCE_PYTHON, WIRE_HEALTH_NOTE, refusal, 0);
}

static void examine_interpreter(void *handle, const char *version)
{
    unsigned number = version_of(version);
    const struct python_layout *layout = python_layout(number);
    const char *why = NULL;
    if (!layout)
        why = "perfkit knows 3.10 to 3.13";
    else if (strstr(version, "free-threading"))
        why = "it is a free-threaded build";
    else if (python_layout_confirmed(layout, dlsym(handle, "_PyRuntime"), &why))
        why = find_symbols(handle, layout->version) ? NULL : "it does not export what is needed";
    if (why) {
        python_refuse(number, why);
        return;
    }
    find_machine_code(handle);
    python_interpreter.layout = layout;
    atomic_store_explicit(&python_phase, PYTHON_FOUND, memory_order_release);
}

void python_look(void)
{
    if (atomic_load(&python_phase) != PYTHON_UNSEEN || atomic_exchange(&looking, true))
        return;
    int saved = errno;
    void *handle = open_interpreter();
    const char *(*get_version)(void) = NULL;
    void *symbol = handle || handle == RTLD_DEFAULT ? dlsym(handle, "Py_GetVersion") : NULL;
    memcpy(&get_version, &symbol, sizeof symbol);
    if (get_version)
        examine_interpreter(handle, get_version());
    atomic_store(&looking, false);
    errno = saved;
}

void python_look_forget(void)
{
    atomic_store(&looking, false);
}

bool python_here(void)
{
    unsigned phase = atomic_load_explicit(&python_phase, memory_order_acquire);
    return phase != PYTHON_UNSEEN && phase != PYTHON_REFUSED;
}
