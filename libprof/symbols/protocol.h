/* What perfkit and perfkit_symbolizer say to each other, over a socket. One symboliser reads one
 * file: what is in it, and the library that parses it, can then only harm itself.
 *
 * perfkit sends one request and closes its side; the symboliser answers with records and ends. Both
 * are of the same build, so the structs are as the compiler lays them out; perfkit checks every
 * record all the same. */
#ifndef PERFKIT_SYMBOLS_PROTOCOL_H
#define PERFKIT_SYMBOLS_PROTOCOL_H

#include <stdint.h>

#define SYMBOLS_MAGIC 0x314d5953u /* "SYM1" */

enum symbols_source {
    SYMBOLS_ELF,      /* an object file */
    SYMBOLS_VDSO,     /* what the kernel maps into every process */
    SYMBOLS_PERF_MAP, /* text of a JIT: start, size, name */
    SYMBOLS_JITDUMP,  /* records of a JIT, with lines */
};

#define SYMBOLS_NO_DWARF 1u /* flags: leave debug information alone */

/* Followed by the path, the build id (hexadecimal), the folders of debug files (each ended by NUL),
 * and `count` addresses, ascending, each once. */
struct symbols_request {
    uint32_t magic, source, flags, count;
    /* What the addresses count from. -1: the lowest mapped page of the object; else the byte of the
     * file at this offset. Of JITs: addresses of the process. */
    int64_t segment;
    /* Seconds since 1970; 0 = any. An object without a build id that was changed after this is
     * another by now; a JIT's file that was not changed since this is of another process with that
     * number. */
    int64_t not_after_s, not_before_s;
    uint32_t path_bytes, build_id_bytes, folder_bytes, reserved;
};

#define SYMBOLS_MOST_PATH 4096u
#define SYMBOLS_MOST_TEXT 65535u /* bytes of a name; longer ones are cut */
#define SYMBOLS_MOST_LEVELS 200u

enum symbols_record_type {
    SYMBOLS_STATE, /* payload: enum symbols_quality, then text for people: the debug file, or why
                      not */
    SYMBOLS_TEXT,  /* payload: text number n, counted from 1 in the order they come */
    SYMBOLS_FRAME, /* payload: uint32_t index of the address, then struct symbols_level, innermost
                      first */
    SYMBOLS_END,   /* all was said */
};

enum symbols_quality {
    SYMBOLS_NOTHING,  /* no names; the text says why */
    SYMBOLS_EXPORTED, /* names that the object exports */
    SYMBOLS_NAMES,    /* names of all functions */
    SYMBOLS_LINES,    /* with inlined functions, files and lines */
};

struct symbols_record {
    uint32_t type, bytes; /* of the payload */
};

struct symbols_level {
    uint32_t function, file, line; /* text numbers; 0 = not known */
};

#endif
