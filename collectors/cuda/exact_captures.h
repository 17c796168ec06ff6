/* Streams that are being captured into graphs: nothing may be waited for meanwhile, and launches
 * into them are no kernels. Any thread of the program. */
#ifndef PERFKIT_COLLECTORS_CUDA_EXACT_CAPTURES_H
#define PERFKIT_COLLECTORS_CUDA_EXACT_CAPTURES_H

#include <stdbool.h>
#include <stdint.h>

#include "collectors/cuda/parts.h"

/* Is the driver's function one of those below? */
bool exact_captures_concern(const char *name);

/* The program calls one of them, or it returns. True: a capture begins, and the thread that is
 * counting has to finish first. */
bool exact_captures_on_callback(const char *name, const CUpti_CallbackData *call);

uint32_t exact_captures_open(void); /* now */
void exact_captures_forked(void);

#endif
