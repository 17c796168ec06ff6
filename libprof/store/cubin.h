/* Machine code of NVIDIA's GPUs (cubin files): which line of the source an instruction is of. */
#ifndef PERFKIT_STORE_CUBIN_H
#define PERFKIT_STORE_CUBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/error.h"

struct prof_cubin;

/* Read a cubin of which the collector made the hash. PROF_NOTFOUND: there is no such file, or other
 * content. Close it. */
enum prof_status prof_cubin_open(const char *path, uint64_t hash, struct prof_cubin **out,
                                 struct prof_error *err);
/* The same of what is in memory: it takes data, which malloc made, also when it fails. */
enum prof_status prof_cubin_of(uint8_t *data, size_t bytes, struct prof_cubin **out,
                               struct prof_error *err);
void prof_cubin_close(struct prof_cubin *cubin);

/* The line of an instruction of a function, by its name in the machine code; of an inlined function
 * the line of the call in the function itself. False: there is none. `file` belongs to the cubin
 * and is valid until the next call. */
bool prof_cubin_line(struct prof_cubin *cubin, const char *function, uint64_t offset,
                     const char **file, uint32_t *line);

/* Number of the symbol of a function, as nvdisasm counts them; 0 = there is none. */
uint32_t prof_cubin_symbol(struct prof_cubin *cubin, const char *function);

/* Warps at a barrier are sampled at an instruction behind it: the barrier's offset, at most 16
 * instructions before, or `offset`. */
uint64_t prof_cubin_barrier(struct prof_cubin *cubin, const char *function, uint64_t offset);

#endif
