/* Finding the interpreter: by its symbols, in the program, in what was loaded with it or in a
 * libpython that was loaded for a plugin. Only here does the dynamic loader take part. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

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

/* ---- proof of the layout --------------------------------------------------------------------- */

/* Proof of the layout, once per process, on the first stack: an interpreter that was built
 * otherwise (debug, patched, another vendor's) must be refused, not crash the program. Every byte
 * is read by the kernel, which answers for addresses that are not there; what is found must be what
 * it should be all along the chain: objects of the right types, instructions within their code, and
 * the first line that the interpreter itself gives for each code object. */

static bool read_by_kernel(const struct python_memory *memory, uint64_t address, void *to,
                           size_t bytes)
{
    (void)memory;
    struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)address, bytes};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

/* Where process_vm_readv is forbidden (containers): a pipe takes what is there. A thread's own:
 * several may prove it at once. */
static __thread int pipe_ends[2] __attribute__((tls_model("initial-exec")));

static bool read_by_pipe(const struct python_memory *memory, uint64_t address, void *to,
                         size_t bytes)
{
    (void)memory;
    return write(pipe_ends[1], (const void *)(uintptr_t)address, bytes) == (ssize_t)bytes &&
           read(pipe_ends[0], to, bytes) == (ssize_t)bytes;
}

static bool text_ok(python_reader read, uint64_t address)
{
    uint64_t length;
    return python_is(read, address, python_interpreter.text_type) &&
           python_load(read, address + PYTHON_TEXT_LENGTH, &length, sizeof length) &&
           length < 1u << 20;
}

/* Bytes of a code object's instructions. */
static bool code_bytes(python_reader read, uint64_t code, uint64_t *bytes)
{
    const struct python_layout *layout = python_interpreter.layout;
    if (layout->version != PYTHON_3_10) {
        uint64_t units;
        bool ok = python_load(read, code + PYTHON_OBJECT_SIZE, &units, sizeof units);
        *bytes = units * 2;
        return ok && units < 1u << 28;
    }
    uint64_t object;
    return python_pointer(read, code, layout->code_bytes, &object) &&
           python_is(read, object, python_interpreter.bytes_type) &&
           python_load(read, object + PYTHON_OBJECT_SIZE, bytes, sizeof *bytes);
}

static const char *check_frame(python_reader read, const struct python_frame *frame)
{
    const struct python_interpreter *it = &python_interpreter;
    uint64_t name, file, lines, bytes;
    int32_t first_line;
    if (!python_is(read, frame->code, it->code_type))
        return "a frame without its code object";
    if (!python_pointer(read, frame->code, it->layout->code_name, &name) || !text_ok(read, name) ||
        !python_pointer(read, frame->code, it->layout->code_file, &file) || !text_ok(read, file))
        return "a code object without its name";
    if (!python_pointer(read, frame->code, it->layout->code_lines, &lines) ||
        !python_is(read, lines, it->bytes_type))
        return "a code object without its table of lines";
    /* Each of them is in a call, which is no function's first instruction. */
    if (!code_bytes(read, frame->code, &bytes) || frame->offset == 0 || frame->offset >= bytes)
        return "an instruction outside of its code object";
    if (!python_load(read, frame->code + it->layout->code_first_line, &first_line,
                     sizeof first_line) ||
        first_line != it->line((void *)(uintptr_t)frame->code, -1))
        return "a code object with another first line than the interpreter says";
    return NULL;
}

/* The interpreter's own idea of the size of its objects: what is read of a code object lies within
 * it, its instructions follow it from 3.11 on, and a text object is its compact form and a pointer.
 */
static bool sizes_ok(python_reader read)
{
    const struct python_layout *layout = python_interpreter.layout;
    const uint16_t within[] = {layout->code_name,      layout->code_file,
                               layout->code_lines,     layout->code_first_line,
                               layout->code_version,   layout->code_traceable,
                               layout->code_constants, layout->code_names};
    uint64_t code, text;
    if (!python_load(read, python_interpreter.code_type + PYTHON_TYPE_BASIC_SIZE, &code,
                     sizeof code) ||
        !python_load(read, python_interpreter.text_type + PYTHON_TYPE_BASIC_SIZE, &text,
                     sizeof text) ||
        text != layout->text_compact + sizeof(void *) ||
        (layout->version != PYTHON_3_10 && code != layout->code_bytes))
        return false;
    for (size_t i = 0; i < sizeof within / sizeof within[0]; i++) {
        if (within[i] != PYTHON_NONE && within[i] + sizeof(void *) > code)
            return false;
    }
    return true;
}

static int check_by(python_reader read, uint64_t thread, const char **why)
{
    struct python_walk walk;
    python_walk(&python_interpreter, (uint64_t)(uintptr_t)python_interpreter.main_interpreter(),
                read, thread, &walk);
    if (walk.frame_count == 0 && walk.skipped == 0 && !walk.ended) /* autograd's threads */
        return 0;
    *why = "objects of another size";
    if (!sizes_ok(read))
        return -1;
    *why = "the chain of frames breaks off";
    if (walk.ended)
        return -1;
    *why = "frames that are not whole";
    if (walk.skipped)
        return -1;
    for (unsigned i = 0; i < walk.frame_count; i++) {
        *why = check_frame(read, &walk.frames[i]);
        if (*why)
            return -1;
    }
    return walk.frame_count > 0;
}

int python_check(uint64_t thread, const char **why)
{
    static const struct python_memory by_kernel = {read_by_kernel}, by_pipe = {read_by_pipe};
    int saved = errno;
    uint64_t probe;
    int result = -1;
    *why = "its memory cannot be looked at without risk";
    if (read_by_kernel(&by_kernel, thread, &probe, sizeof probe)) {
        result = check_by(&by_kernel, thread, why);
    } else if (pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) == 0) {
        result = check_by(&by_pipe, thread, why);
        close(pipe_ends[0]);
        close(pipe_ends[1]);
    }
    errno = saved;
    return result;
}
