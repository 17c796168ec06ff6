/* Who counts: one thread at a time, and for the moment in which it does nobody else launches. All
 * waiting in here ends by itself. Any thread. */
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
/* Within its turn and its launch: nobody else launches from now on until the turn ends or is
 * shared. False: somebody's launch does not return; it is shared then. */
bool exact_turn_alone(void);
void exact_turn_share(void);

void exact_turn_wait(void); /* until nobody has it, or for two seconds */

/* Sleep. The calling thread cannot be cancelled in it, as it could in nanosleep: its turn would
 * never end. */
void exact_pause(long ns);
void exact_turns_forked(void);

#endif
