/* The table of layouts. CPython promises nothing about these structures between minor versions and
 * keeps them within one: the numbers are those that the compiler gives for the headers of each
 * (64-bit builds without Py_DEBUG and Py_TRACE_REFS), compared in tests/python wherever the headers
 * are installed (test_layout.py), and proved on the first stack of every process (find.c). */
#include <stddef.h>
#include <string.h>

#include "collectors/python/interpreter.h"

/* By version: 3.10 (no qualified names yet), 3.11, 3.12, 3.13 */
#define NONE PYTHON_NONE
#define OFFSETS(X)                                                                                 \
    X(runtime_main, 40, 48, 48, 640)                                                               \
    X(interpreter_threads, 8, 16, 72, 7344)                                                        \
    X(thread_next, 8, 8, 8, 8)                                                                     \
    X(thread_id, 176, 152, 136, 152)                                                               \
    X(thread_native_id, NONE, 160, 144, 160)                                                       \
    X(thread_interpreter, 16, 16, 16, 16)                                                          \
    X(thread_loop, 48, 56, 56, NONE)                                                               \
    X(thread_frame, 24, NONE, NONE, 72)                                                            \
    X(loop_frame, NONE, 8, 0, NONE)                                                                \
    X(loop_previous, 8, 16, 8, NONE)                                                               \
    X(frame_code, 32, 32, 0, 0)                                                                    \
    X(frame_previous, 24, 48, 8, 8)                                                                \
    X(frame_instruction, 96, 56, 56, 56)                                                           \
    X(frame_entry, NONE, 68, NONE, NONE)                                                           \
    X(frame_owner, NONE, 69, 70, 70)                                                               \
    X(code_name, 112, 128, 128, 128)                                                               \
    X(code_file, 104, 112, 112, 112)                                                               \
    X(code_lines, 120, 136, 136, 136)                                                              \
    X(code_first_line, 40, 72, 68, 68)                                                             \
    X(code_bytes, 48, 184, 192, 200)                                                               \
    X(code_version, NONE, NONE, 92, 92)                                                            \
    X(code_traceable, NONE, 168, 176, 184)                                                         \
    X(code_constants, 56, 24, 24, 24)                                                              \
    X(code_names, 64, 32, 32, 32)                                                                  \
    X(text_ascii, 48, 48, 40, 40)                                                                  \
    X(text_compact, 72, 72, 56, 56)

static const struct python_layout layouts[] = {
#define X(field, a, b, c, d) .field = (a),
    {.version = PYTHON_3_10, OFFSETS(X)},
#undef X
#define X(field, a, b, c, d) .field = (b),
    {.version = PYTHON_3_11, OFFSETS(X)},
#undef X
#define X(field, a, b, c, d) .field = (c),
    {.version = PYTHON_3_12, OFFSETS(X)},
#undef X
#define X(field, a, b, c, d) .field = (d),
    {.version = PYTHON_3_13, OFFSETS(X)},
#undef X
};

const struct python_layout *python_layout(unsigned version)
{
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        if (layouts[i].version == version)
            return &layouts[i];
    }
    return NULL;
}

/* Words of the table at the start of _PyRuntime in 3.13: a cookie, the version, then offsets. */
enum {
    WORD_VERSION = 1,
    WORD_FREE_THREADED = 2,
    WORD_RUNTIME_HEAD = 5, /* of the list of interpreters; the main one is behind it */
    WORD_INTERPRETER_THREADS = 9,
    WORD_THREAD_NEXT = 21,
    WORD_THREAD_INTERPRETER = 22,
    WORD_THREAD_FRAME = 23,
    WORD_THREAD_ID = 24,
    WORD_THREAD_NATIVE_ID = 25,
    WORD_FRAME_PREVIOUS = 29,
    WORD_FRAME_CODE = 30,
    WORD_FRAME_INSTRUCTION = 31,
    WORD_FRAME_OWNER = 33,
    WORD_CODE_FILE = 35,
    WORD_CODE_NAME = 37, /* the qualified one */
    WORD_CODE_LINES = 38,
    WORD_CODE_FIRST_LINE = 39,
    WORD_CODE_BYTES = 43,
};

bool python_layout_confirmed(const struct python_layout *layout, const void *runtime,
                             const char **why)
{
    if (layout->version < PYTHON_3_13)
        return true;
    const struct {
        unsigned word, offset;
    } same[] = {
        {WORD_THREAD_INTERPRETER, layout->thread_interpreter},
        {WORD_THREAD_FRAME, layout->thread_frame},
        {WORD_FRAME_PREVIOUS, layout->frame_previous},
        {WORD_FRAME_CODE, layout->frame_code},
        {WORD_FRAME_INSTRUCTION, layout->frame_instruction},
        {WORD_FRAME_OWNER, layout->frame_owner},
        {WORD_CODE_FILE, layout->code_file},
        {WORD_CODE_NAME, layout->code_name},
        {WORD_CODE_LINES, layout->code_lines},
        {WORD_CODE_FIRST_LINE, layout->code_first_line},
        {WORD_CODE_BYTES, layout->code_bytes},
    };
    *why = "its table of offsets is not where it should be";
    uint64_t words[WORD_CODE_BYTES + 1];
    if (!runtime || memcmp(runtime, "xdebugpy", 8) != 0)
        return false;
    memcpy(words, runtime, sizeof words);
    if (words[WORD_VERSION] >> 16 != layout->version)
        return false;
    *why = "it is a free-threaded build";
    if (words[WORD_FREE_THREADED])
        return false;
    *why = "its table of offsets is not that of the usual builds";
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        if (words[same[i].word] != same[i].offset)
            return false;
    }
    *why = NULL;
    return true;
}

_Static_assert(PYTHON_TABLE_BYTES == (WORD_CODE_BYTES + 1) * 8, "the words of the table");

bool python_layout_threads(struct python_layout *layout, const void *runtime)
{
    uint64_t words[WORD_CODE_BYTES + 1];
    if (layout->version < PYTHON_3_13)
        return true;
    memcpy(words, runtime, sizeof words);
    const uint64_t found[] = {words[WORD_RUNTIME_HEAD] + sizeof(void *),
                              words[WORD_INTERPRETER_THREADS], words[WORD_THREAD_NEXT],
                              words[WORD_THREAD_ID], words[WORD_THREAD_NATIVE_ID]};
    uint16_t *const fields[] = {&layout->runtime_main, &layout->interpreter_threads,
                                &layout->thread_next, &layout->thread_id,
                                &layout->thread_native_id};
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++) {
        if (found[i] >= PYTHON_NONE)
            return false;
        *fields[i] = (uint16_t)found[i];
    }
    return true;
}
