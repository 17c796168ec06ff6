/* Lines of the source and instructions for the samples of a capture's kernels, after the run. */
#ifndef PERFKIT_STORE_STALL_LINES_H
#define PERFKIT_STORE_STALL_LINES_H

#include "libprof/base/error.h"
#include "libprof/store/store.h"

/* Fill stall.file, .line and .sass and stall_function.lines from the machine code that the
 * collector kept in `folder`. Instructions are disassembled by NVIDIA's nvdisasm where that is on
 * the PATH or in /usr/local/cuda. One transaction: all, or after an error nothing. */
enum prof_status prof_stall_lines(struct prof_store *store, const char *folder,
                                  struct prof_error *err);

#endif
