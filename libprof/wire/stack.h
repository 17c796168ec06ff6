/* stack.h: call stacks, and the code objects of Python in them. See wire.h. */
#ifndef PERFKIT_WIRE_STACK_H
#define PERFKIT_WIRE_STACK_H

#include <stdint.h>

#include "libprof/wire/record.h"

/* What an entry of a stack is, in its top bits. */
enum wire_entry {
    WIRE_ENTRY_RETURN, /* a return address */
    WIRE_ENTRY_PC,     /* the address of an instruction: interrupted by a signal, or sampled */
    WIRE_ENTRY_PYTHON, /* a place in Python code */
};
#define WIRE_ENTRY_SHIFT 60u
#define WIRE_ENTRY_VALUE ((1ull << WIRE_ENTRY_SHIFT) - 1)

/* head.aux = stack id: stacks are counted for themselves, from 1; flags = WIRE_STACK_*. Modules are
 * sent before the first stack that goes through them. */
#define WIRE_STACK_CUT 1u   /* deeper than the limit: outer frames are missing */
#define WIRE_STACK_ENDED 2u /* outer frames are missing because a caller could not be found */
struct wire_stack {
    struct wire_head head;
    uint32_t count; /* entries */
    uint32_t reserved;
    uint64_t entries[]; /* enum wire_entry << WIRE_ENTRY_SHIFT | value; innermost first */
};
#define WIRE_STACK_ENTRIES ((WIRE_MAX_RECORD - 16u) / 8u) /* most in a record */

/* head.aux = code id. Sent before the first stack with an entry WIRE_ENTRY_PYTHON of it, whose
 * value is code id << 32 | offset of the instruction in bytes (UINT32_MAX = before the first). A
 * long table of lines comes in several records, in order. Code id 0 = code that found no room for a
 * definition. */
#define WIRE_PYTHON_CODE_MOST ((1u << 28) - 1) /* greatest id */
struct wire_python_code {
    struct wire_head head;
    uint32_t function; /* string id of the name, qualified where the interpreter knows it */
    uint32_t file;     /* string id */
    uint32_t first_line;
    uint32_t version; /* of the interpreter, major << 8 | minor: how the table is coded */
    uint32_t total;   /* bytes of the whole table */
    uint32_t at;      /* where these belong in it */
    uint32_t bytes;   /* in this record */
    uint8_t table[];  /* padded with zeros to 8 */
};
#define WIRE_PYTHON_LINES (WIRE_MAX_RECORD - 36u) /* most in a record */

#endif
