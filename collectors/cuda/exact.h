/* What the files of --counters=exact share; the other parts know exact.c by its row in parts.c, and
 * what the helper thread calls of it by parts.h. */
#ifndef PERFKIT_COLLECTORS_CUDA_EXACT_H
#define PERFKIT_COLLECTORS_CUDA_EXACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/cuda/exact_subjects.h"
#include "collectors/cuda/parts.h"

/* ---- exact_ranges.c: CUPTI's range profiler ---------------------------------------------------
 *
 * Counting what one launch does: a device and the passes of its chip. For one thread at a time, the
 * one that launches; nothing here waits, but for CUPTI. */

#define EXACT_WHY_BYTES 256u

struct exact_ranges;

/* Has exact_ranges_of been called for the device of the current context? Then it is quick. */
bool exact_ranges_known(void);

/* That of the device of a context, which is current; made at the first call, which takes about a
 * second. NULL: nothing can be counted there, and `why` is a sentence the first time, "" later; or
 * not now. */
struct exact_ranges *exact_ranges_of(void *context, char why[EXACT_WHY_BYTES]);

/* Did the last call fail because another tool holds the counters? It may succeed later. */
bool exact_ranges_busy(void);

/* Passes of the device's chip, those that are not of tensors first. */
const struct exact_pass *exact_ranges_passes(const struct exact_ranges *ranges, size_t *count);

/* The pass that the device is set up for in this context; SIZE_MAX = none. Another pass, or another
 * context, costs a sixth of a second (H200). */
size_t exact_ranges_ready(const struct exact_ranges *ranges, const void *context);

/* Before the launch and after it, on the same thread; both want the context idle, and may block
 * forever where it is not. The counters are then held until exact_ranges_release. End: values[count
 * of the pass]; false also when not exactly one kernel ran in between. False: `why`, "" where the
 * next launch may do better. */
bool exact_ranges_begin(struct exact_ranges *ranges, void *context, size_t pass,
                        char why[EXACT_WHY_BYTES]);
bool exact_ranges_end(struct exact_ranges *ranges, size_t pass, double *values,
                      char why[EXACT_WHY_BYTES]);

/* The context in which the counters are held; NULL = they are not. */
void *exact_ranges_context(void);

/* Give the counters back. In an idle context too. */
void exact_ranges_release(void);

/* In a forked child: what was made is the parent's. */
void exact_ranges_forked(void);

/* ---- exact_waits.c: turns --------------------------------------------------------------------
 *
 * Which thread counts: one at a time, and no other thread launches while it counts. Each wait here
 * has a timeout. Any thread. */

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

void exact_turns_forked(void);

/* ---- exact_waits.c: streams that are being captured into graphs -------------------------------
 *
 * Nothing may be waited for meanwhile, and launches
 * into them are no kernels. Any thread of the program. */

/* Is the driver's function one of those below? */
bool exact_captures_concern(const char *name);

/* The program calls one of them, or it returns. True: a capture begins, and the thread that is
 * counting has to finish first. */
bool exact_captures_on_callback(const char *name, const CUpti_CallbackData *call);

uint32_t exact_captures_open(void); /* now */
void exact_captures_forked(void);

/* ---- exact_waits.c: is a context idle? -------------------------------------------------------
 *
 * Has a context's device finished its work? Polled with a timeout, because a wait in the driver
 * could not be interrupted. */

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

/* ---- exact_launches.c: kernels whose name matches the pattern of --counters=exact ------------ */

/* Is exact counting requested? Reports a pattern that is not valid in the capture's health. Within
 * cuInit. */
bool exact_wanted_start(void);

/* The shape of a launch by the driver's function `name`; false: it is not one of a kernel. */
bool exact_wanted_shape(const char *name, const CUpti_CallbackData *call, struct exact_shape *out);

/* The subject of a launch, and that of its kernel whatever the shape. NULL: the kernel is not
 * wanted, or (*full) there is no room to remember it. Called by the thread that has the turn. */
struct exact_subject *exact_wanted_subject(const char *symbol, const struct exact_shape *shape,
                                           struct exact_subject **kernel, bool *full);

/* ---- exact_launches.c: counts that wait ------------------------------------------------------
 *
 * Counts of launches, kept until their kernel records arrive with the configuration. CUPTI may
 * deliver these at the end only, since they have no times, so whatever other tables forget of a
 * launch by then is kept here too. */

bool exact_results_start(void); /* takes the table; false: no memory */

/* A launch by CUPTI's correlation ids of the driver's call, and of the runtime's around (0 = none);
 * `completes`: every pass that its kernel needs was counted now. Called by the thread that has the
 * turn. */
struct exact_launch {
    uint32_t own, outer;
    uint64_t time;
    const struct exact_pass *pass;
    bool completes;
};
void exact_results_keep(const struct exact_launch *launch, const double *values);

/* Launches whose record has not come, or that there was no room for. */
uint32_t exact_results_lost(void);

void exact_results_forked(void);

#endif
