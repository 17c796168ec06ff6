/* DWARF expressions of call frame information. */
#ifndef PERFKIT_COLLECTORS_STACKS_EXPRESSION_H
#define PERFKIT_COLLECTORS_STACKS_EXPRESSION_H

#include "collectors/stacks/cfi.h"

/* The value of `bytes` of operations at `code`, begun with `initial` on its stack (NULL = nothing).
 * False: not understood, or needs what is not known. */
bool cfi_evaluate(const unsigned char *code, uint64_t bytes, const uint64_t *initial,
                  const struct cfi_registers *registers, cfi_read *read, void *context,
                  uint64_t *value);

#endif
