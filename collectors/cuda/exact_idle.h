/* Is a context's device done with what it was given? Asked again and again, never waited for in the
 * driver, where nobody could leave. */
#ifndef PERFKIT_COLLECTORS_CUDA_EXACT_IDLE_H
#define PERFKIT_COLLECTORS_CUDA_EXACT_IDLE_H

#include <stdbool.h>
#include <stdint.h>

enum exact_idle {
    EXACT_IDLE,
    EXACT_IDLE_LATE,    /* not done in time */
    EXACT_IDLE_LEFT,    /* `leave` said so */
    EXACT_IDLE_UNKNOWN, /* the driver does not tell; or the work before has failed */
};

/* Does the driver have what it takes? */
bool exact_idle_possible(void);

/* Wait until all that the context, which is current, was given before is done, at most until
 * `deadline` (collector_now). `leave`, asked between looks, ends the waiting. Elsewhere: the
 * context is not current. */
enum exact_idle exact_idle_wait(void *context, uint64_t deadline, bool (*leave)(void));
enum exact_idle exact_idle_elsewhere(void *context, uint64_t deadline, bool (*leave)(void));

#endif
