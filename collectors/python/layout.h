/* Where things lie in the interpreter's structures, by version. */
#ifndef PERFKIT_COLLECTORS_PYTHON_LAYOUT_H
#define PERFKIT_COLLECTORS_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#define PYTHON_3_10 0x030au
#define PYTHON_3_11 0x030bu
#define PYTHON_3_12 0x030cu
#define PYTHON_3_13 0x030du

/* Owner of a frame that the interpreter's loop keeps on the C stack, under the frames it runs. */
#define PYTHON_OWNER_GENERATOR 1u
#define PYTHON_OWNER_C_STACK 3u

/* Offsets in bytes. 0xffff = this version has no such thing. */
#define PYTHON_NONE 0xffffu
struct python_layout {
    uint16_t version; /* major << 8 | minor */
    /* thread state */
    uint16_t thread_interpreter;
    uint16_t thread_loop;  /* the innermost loop's record on the C stack (3.10 to 3.12) */
    uint16_t thread_frame; /* the innermost frame; NONE = by way of the loop's record */
    /* loop record */
    uint16_t loop_frame, loop_previous;
    /* frame */
    uint16_t frame_code, frame_previous, frame_instruction;
    uint16_t frame_entry; /* bool: the outermost frame of its loop */
    uint16_t frame_owner;
    /* code object */
    uint16_t code_name, code_file, code_lines, code_first_line, code_bytes, code_version;
    uint16_t code_traceable; /* index of the first instruction at which the frame is whole */
    uint16_t code_constants, code_names;
    /* text objects: where the characters begin */
    uint16_t text_ascii, text_compact;
};

/* The same in all of them. */
#define PYTHON_OBJECT_TYPE 8u
#define PYTHON_OBJECT_SIZE 16u
#define PYTHON_TYPE_BASIC_SIZE 32u
#define PYTHON_BYTES_DATA 32u
#define PYTHON_TEXT_LENGTH 16u
#define PYTHON_TEXT_HASH 24u
#define PYTHON_TEXT_STATE 32u

/* The layout of a version (major << 8 | minor), or NULL. */
const struct python_layout *python_layout(unsigned version);

/* Does the table of offsets that CPython 3.13 keeps at the start of _PyRuntime agree with ours? */
bool python_layout_confirmed(const struct python_layout *layout, const void *runtime,
                             const char **why);

#endif
