/* From an instruction of CPython bytecode to its source line. */
#ifndef PERFKIT_STORE_PYTHON_LINES_H
#define PERFKIT_STORE_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

/* The line of the instruction `offset` bytes into a code object; UINT32_MAX = before its first
 * instruction. `table` is co_linetable as the interpreter `version` (major << 8 | minor) has
 * it: 3.10 (Objects/lnotab_notes.txt of CPython 3.10) or 3.11 and later (Objects/locations.md, PEP
 * 657). 0 = the instruction has no line, the table ends before it or is damaged. Reads no byte
 * outside of table[0..bytes). */
uint32_t prof_python_line(uint32_t version, const uint8_t *table, size_t bytes, uint32_t first_line,
                          uint32_t offset);

#endif
