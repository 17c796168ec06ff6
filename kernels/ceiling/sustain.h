/* What is left of a rate when nothing else is done for a second: the clock of a GPU follows its
 * power and its heat, within some tens of milliseconds, and bursts are over before. */
#ifndef KERNELS_CEILING_SUSTAIN_H
#define KERNELS_CEILING_SUSTAIN_H

#include "kernels/device/device.h"

/* Enqueues the work once; *event as dev_launch gives it. */
typedef int sustain_enqueue(void *context, struct dev_queue *queue, struct dev_event **event);

/* Runs what takes `once_ns` again and again for a second and gives the mean time of those of the
 * second half. 0, or -1 (dev_error_text). */
int sustain(struct dev_queue *queue, sustain_enqueue *enqueue, void *context, uint64_t once_ns,
            double *mean_ns);

/* Lets the device cool and its power come down for so long: what came before must not slow what
 * comes next. */
void sustain_rest(uint32_t ms);

#endif
