/* The table of layouts. CPython promises nothing about these structures between minor versions and
 * keeps them within one: the numbers are those that the compiler gives for the headers of each
 * (64-bit builds without Py_DEBUG and Py_TRACE_REFS), compared in tests/python wherever the headers
 * are installed (test_layout.py), and proved on the first stack of every process (check.c). */
#include <stddef.h>
#include <string.h>

#include "collectors/python/layout.h"

static const struct python_layout layouts[] = {
    {
        .version = PYTHON_3_10,
        .thread_interpreter = 16,
        .thread_loop = 48,
        .thread_frame = 24,
        .loop_frame = PYTHON_NONE,
        .loop_previous = 8,
        .frame_code = 32,
        .frame_previous = 24,
        .frame_instruction = 96,
        .frame_entry = PYTHON_NONE,
        .frame_owner = PYTHON_NONE,
        .code_name = 112, /* no qualified names yet */
        .code_file = 104,
        .code_lines = 120,
        .code_first_line = 40,
        .code_bytes = 48,
        .code_version = PYTHON_NONE,
        .code_traceable = PYTHON_NONE,
        .code_constants = 56,
        .code_names = 64,
        .text_ascii = 48,
        .text_compact = 72,
    },
    {
        .version = PYTHON_3_11,
        .thread_interpreter = 16,
        .thread_loop = 56,
        .thread_frame = PYTHON_NONE,
        .loop_frame = 8,
        .loop_previous = 16,
        .frame_code = 32,
        .frame_previous = 48,
        .frame_instruction = 56,
        .frame_entry = 68,
        .frame_owner = 69,
        .code_name = 128,
        .code_file = 112,
        .code_lines = 136,
        .code_first_line = 72,
        .code_bytes = 184,
        .code_version = PYTHON_NONE,
        .code_traceable = 168,
        .code_constants = 24,
        .code_names = 32,
        .text_ascii = 48,
        .text_compact = 72,
    },
    {
        .version = PYTHON_3_12,
        .thread_interpreter = 16,
        .thread_loop = 56,
        .thread_frame = PYTHON_NONE,
        .loop_frame = 0,
        .loop_previous = 8,
        .frame_code = 0,
        .frame_previous = 8,
        .frame_instruction = 56,
        .frame_entry = PYTHON_NONE,
        .frame_owner = 70,
        .code_name = 128,
        .code_file = 112,
        .code_lines = 136,
        .code_first_line = 68,
        .code_bytes = 192,
        .code_version = 92,
        .code_traceable = 176,
        .code_constants = 24,
        .code_names = 32,
        .text_ascii = 40,
        .text_compact = 56,
    },
    {
        .version = PYTHON_3_13,
        .thread_interpreter = 16,
        .thread_loop = PYTHON_NONE,
        .thread_frame = 72,
        .loop_frame = PYTHON_NONE,
        .loop_previous = PYTHON_NONE,
        .frame_code = 0,
        .frame_previous = 8,
        .frame_instruction = 56,
        .frame_entry = PYTHON_NONE,
        .frame_owner = 70,
        .code_name = 128,
        .code_file = 112,
        .code_lines = 136,
        .code_first_line = 68,
        .code_bytes = 200,
        .code_version = 92,
        .code_traceable = 184,
        .code_constants = 24,
        .code_names = 32,
        .text_ascii = 40,
        .text_compact = 56,
    },
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
    WORD_THREAD_INTERPRETER = 22,
    WORD_THREAD_FRAME = 23,
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
