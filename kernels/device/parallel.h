/* Sharing out a loop among threads: for the references, which have no device to run on. */
#ifndef KERNELS_DEVICE_PARALLEL_H
#define KERNELS_DEVICE_PARALLEL_H

#include <stdint.h>

/* Cores that this process may run on; 1 or more. */
uint32_t parallel_cores(void);

/* Calls `work` on parts of 0 .. count-1 that follow each other, each on a thread of its own; what
 * got no thread is done here. `threads`: 0 for parallel_cores(). */
void parallel_for(uint32_t threads, uint64_t count,
                  void (*work)(void *context, uint64_t first, uint64_t end), void *context);

#endif
