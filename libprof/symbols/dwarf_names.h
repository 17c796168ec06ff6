/* Functions, inlined functions, files and lines from debug information, through elfutils. */
#ifndef PERFKIT_SYMBOLS_DWARF_NAMES_H
#define PERFKIT_SYMBOLS_DWARF_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/symbols/answer.h"

struct dwarf_names;

/* NULL: the file has no debug information, or none that can be read. Only what the addresses that
 * are asked for need is read of it. Kept as long as the process lives. */
struct dwarf_names *dwarf_names_open(const char *path);

/* Add the levels of an address of the file to the answer. `symbol` is what the symbol table calls
 * its function, NULL = nothing: taken where the debug information has only a line. False: not known
 * here. */
bool dwarf_names_at(struct dwarf_names *names, uint64_t address, const char *symbol,
                    struct answer *answer);

#endif
