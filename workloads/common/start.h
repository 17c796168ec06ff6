/* What every workload does before it measures: opening the device that was asked for, the device
 * buffers of its data, and the ceiling that its kernels are compared with.
 */
#ifndef WORKLOADS_COMMON_START_H
#define WORKLOADS_COMMON_START_H

#include "workloads/common/measure.h"
#include "workloads/common/options.h"

/* Opens a device in the range "open device"; NULL after saying on stderr why there is none.
 * threads: as for dev_open. */
struct dev *open_device(const char *program, enum dev_backend backend, uint32_t threads);

/* In the range "close device"; NULL is allowed. */
void close_device(struct dev *dev);

/* Bytes per second of copies of `bytes` in the range "copy bandwidth"; 0 bytes: as many as no
 * cache holds. NaN when it cannot be had, under a memory limit for example. */
double copy_bandwidth(struct dev *dev, size_t bytes);

/* Allocates a device buffer and copies `bytes` of `from` into it; -1 on failure, and for a NULL
 * `from`. */
int upload(struct session *session, const void *from, size_t bytes, struct dev_buffer **out);

/* An output buffer full of NaN. */
int alloc_poisoned(struct session *session, size_t bytes, struct dev_buffer **out);

#endif
