/* The parts of perfkit_symbolizer: what reads object files, debug information and what JITs leave,
 * and what writes the answer (protocol.h). */
#ifndef PERFKIT_SYMBOLS_SYMBOLS_H
#define PERFKIT_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/elf_image.h"
#include "libprof/base/map.h"
#include "libprof/symbols/protocol.h"

/* ---- functions (object_file.c) ------------------------------------------------------------- */

struct elf_function {
    uint64_t start, end;
    const char *name; /* in the image */
};

struct elf_functions {
    struct elf_function *list; /* by start, apart */
    size_t count;
    bool only_exported;
};

/* All functions that the image names: of its symbol table, else of what it exports. False: no
 * memory. */
bool elf_functions_read(const struct elf_image *image, struct elf_functions *functions);

/* A symbol that is a function, from elsewhere. */
struct elf_symbol {
    uint64_t start, size;
    unsigned char info; /* st_info */
    const char *name;
};
typedef bool elf_symbol_next(void *user, struct elf_symbol *symbol); /* false: no more */

/* The functions of an image by symbols that are not in it, whose names stay the caller's. */
bool elf_functions_of(const struct elf_image *image, elf_symbol_next *next, void *user,
                      struct elf_functions *functions);
const struct elf_function *elf_functions_at(const struct elf_functions *functions,
                                            uint64_t address);
void elf_functions_free(struct elf_functions *functions);

/* ---- separate debug files (object_file.c) ----------------------------------------------------- */

/* Separate debug files: where distributions, build systems and people put what `strip` took out. */

struct debug_search {
    const char *path;              /* of the object file, in the run */
    const char *build_id;          /* "" = unknown */
    const char *folders;           /* searched first; each ended by NUL, the list by an empty one */
    const struct elf_image *image; /* the object file; NULL = it is not there any more */
};

/* Open the debug file that belongs to the object: found by build id, or by the name in
 * .gnu_debuglink, and then checked by build id or checksum. `path` gets where it is. False: there
 * is none. */
bool debug_file_find(const struct debug_search *search, struct elf_image *found, char *path,
                     size_t size);

/* ---- the answer (main.c) ------------------------------------------------------------------- */

/* The symboliser's side of the answer: texts once each, then the levels of every address that has a
 * name. See protocol.h. */

struct answer {
    int fd;
    unsigned char *buffer; /* what is not yet written */
    size_t count, capacity;
    struct prof_names texts;
    struct symbols_level levels[SYMBOLS_MOST_LEVELS];
    uint32_t level_count;
    bool failed; /* the reader is gone, or out of memory */
};

/* A level of the address that answer_frame sends next, innermost first. `function` as the linker
 * knows it: made readable here. */
void answer_level(struct answer *answer, const char *function, const char *file, uint32_t line);
void answer_frame(struct answer *answer, uint32_t index);

/* ---- debug information, by elfutils (dwarf_names.c) ------------------------------------------ */

/* Functions, inlined functions, files and lines from debug information, through elfutils. */

struct dwarf_names;

/* NULL: the file has no debug information, or none that can be read. Only what the requested
 * addresses need is read of it. Kept as long as the process lives. */
struct dwarf_names *dwarf_names_open(const char *path);

/* Add the levels of an address of the file to the answer. `symbol` is what the symbol table calls
 * its function, NULL = nothing: taken where the debug information has only a line. False: not known
 * here. */
bool dwarf_names_at(struct dwarf_names *names, uint64_t address, const char *symbol,
                    struct answer *answer);

/* The symbol table that some distributions leave in stripped files, compressed: section
 * .gnu_debugdata ("MiniDebugInfo"), read by elfutils. */

struct mini_debug;

/* The functions of the file at `path`, whose image is `image`; NULL when it has no such section, or
 * it cannot be read. *functions has names of what is returned, which is kept as long as the process
 * lives. */
struct mini_debug *mini_debug_open(const char *path, const struct elf_image *image,
                                   struct elf_functions *functions);

/* ---- code of JITs (jit_names.c) -------------------------------------------------------------- */

/* Names of code that a JIT made, from what it leaves for profilers: a perf map (text) or a jitdump
 * (records, with lines). */

/* Answer for `count` ascending addresses of the process. NULL when all is well, else why not. Where
 * code was replaced by other code, the name that came last is given. */
const char *jit_names_perf_map(const char *path, int64_t not_before_s, const uint64_t *addresses,
                               uint32_t count, struct answer *answer);
const char *jit_names_jitdump(const char *path, const uint64_t *addresses, uint32_t count,
                              struct answer *answer);

#endif
