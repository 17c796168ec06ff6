/* Names of code that a JIT made, from what it leaves for profilers: a perf map (text) or a jitdump
 * (records, with lines). */
#ifndef PERFKIT_SYMBOLS_JIT_NAMES_H
#define PERFKIT_SYMBOLS_JIT_NAMES_H

#include "libprof/symbols/answer.h"

/* Answer for `count` ascending addresses of the process. NULL when all is well, else why not. Where
 * code was replaced by other code, the name that came last is given. */
const char *jit_names_perf_map(const char *path, int64_t not_before_s, const uint64_t *addresses,
                               uint32_t count, struct answer *answer);
const char *jit_names_jitdump(const char *path, const uint64_t *addresses, uint32_t count,
                              struct answer *answer);

#endif
