/* Has a context's device finished its work? Polled with a timeout, because a wait in the driver
 * could not be interrupted. */
#ifndef PERFKIT_COLLECTORS_CUDA_EXACT_IDLE_H
#define PERFKIT_COLLECTORS_CUDA_EXACT_IDLE_H

#include <stdbool.h>
#include <stdint.h>

enum exact_idle {
    EXACT_IDLE,
    EXACT_IDLE_LATE,    /* not done in time */
    EXACT_IDLE_LEFT,    /* `leave` said so */
    EXACT_IDLE_UNKNOWN, /* the driver cannot say, or the earlier work has failed */
};

/* Does the driver have what it takes? */
bool exact_idle_possible(void);

/* Wait until the current context has finished all earlier work, at most until `deadline`
 * (collector_now). `leave` is called between two polls and ends the wait when it returns true.
 * Elsewhere: the context is not current. */
enum exact_idle exact_idle_wait(void *context, uint64_t deadline, bool (*leave)(void));
enum exact_idle exact_idle_elsewhere(void *context, uint64_t deadline, bool (*leave)(void));

#endif
