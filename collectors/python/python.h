/* Python frames of the calling thread, merged into its native stack. Reads the interpreter's own
 * structures (CPython 3.10 to 3.13, found by symbol, nothing linked): no call that could run Python
 * code, no reference counting, no lock, no allocation. A thread's frames are changed by the thread
 * alone, so they may be read while it holds the interpreter's lock or not.
 *
 * Abstains, and says so in the trust block: other versions, free-threaded builds, an interpreter
 * whose structures fail the check of layout (check.c). Frames of a subinterpreter are left out. */
#ifndef PERFKIT_COLLECTORS_PYTHON_PYTHON_H
#define PERFKIT_COLLECTORS_PYTHON_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Look whether an interpreter is in the process. Takes the dynamic loader's lock: to be called from
 * a constructor or on the helper thread, never on the launch path. Cheap once one is found. */
void python_look(void);

/* Is there one whose frames can be read, as far as is known? One load. */
bool python_here(void);

/* Merge. entries[0..count): the thread's native frames, innermost first (libprof/wire: kind in the
 * top bits); cfas[i]: the stack pointer of frame i's caller after the return into it, 0 = not
 * known. out[room] gets the merged stack, innermost first: the Python frames replace the
 * interpreter's loop that runs them, native frames of the interpreter's own code are left out, and
 * Python frames outside of all native ones found follow at the end. A thread without Python frames
 * gets its native ones unchanged. Returns how many entries the whole stack has: more than `room` =
 * the outermost are missing in out. */
size_t python_merge(const uint64_t *entries, const uint64_t *cfas, size_t count, uint64_t *out,
                    size_t room);

#endif
