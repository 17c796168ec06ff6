/* Proof of the layout, once per process, on the first stack: an interpreter that was built
 * otherwise (debug, patched, another vendor's) must be refused, not crash the program. Every byte
 * is read by the kernel, which answers for addresses that are not there; what is found must be what
 * it should be all along the chain: objects of the right types, instructions within their code, and
 * the first line that the interpreter itself gives for each code object. */
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "collectors/python/interpreter.h"

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
