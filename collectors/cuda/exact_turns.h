/* Which thread counts: one at a time, and no other thread launches while it counts. Each wait here
 * has a timeout. Any thread. */
#ifndef PERFKIT_COLLECTORS_CUDA_EXACT_TURNS_H
#define PERFKIT_COLLECTORS_CUDA_EXACT_TURNS_H

#include <stdbool.h>
#include <stdint.h>

/* A launch of the calling thread begins, ends. Beginning waits while another thread is alone. */
void exact_launch_begins(void);
void exact_launch_ends(void);
uint32_t exact_launches(void); /* that have begun, of all threads */

/* The turn of the calling thread. False: another one has it. */
bool exact_turn_take(void);
void exact_turn_end(void);
/* Within its turn and its launch: no other thread launches from now on until the turn ends or is
 * shared. False: another thread's launch does not return; the turn is shared then. */
bool exact_turn_alone(void);
void exact_turn_share(void);

void exact_turn_wait(void); /* until no thread has it, at most two seconds */

/* Sleep. The calling thread cannot be cancelled in it, as it could in nanosleep: its turn would
 * never end. */
void exact_pause(long ns);
void exact_turns_forked(void);

#endif
