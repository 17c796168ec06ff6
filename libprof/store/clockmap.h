/* Conversion from one clock to CLOCK_MONOTONIC through pairs of simultaneous readings.
 *
 * Between two anchors time is interpolated linearly; before the first and after the last the
 * nearest segment's slope goes on, held within 1 +- 1e-3 (no clock that works drifts by more, and
 * two anchors close together measure mostly their own error). One anchor alone gives an offset,
 * none gives the identity. The result never runs backwards.
 *
 * Start with {0}. Memory is bounded: past PROF_CLOCKMAP_ANCHORS the older half is thinned to every
 * second one. Not thread-safe. */
#ifndef PERFKIT_STORE_CLOCKMAP_H
#define PERFKIT_STORE_CLOCKMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROF_CLOCKMAP_ANCHORS 4096u /* more than an hour at one a second */

struct prof_clock_anchor {
    uint64_t source_ns, mono_ns, error_ns;
};

struct prof_clockmap {
    struct prof_clock_anchor *anchors; /* source_ns and mono_ns strictly rising */
    size_t count, capacity;
    size_t hint;       /* segment of the last conversion */
    uint64_t rejected; /* anchors that contradicted others and lost */
};

/* Add a pair of simultaneous readings; error_ns is half the width of the bracket. Any order. Of two
 * anchors that contradict each other (same source time, or time running backwards) the one with the
 * smaller error stays. False: out of memory, map unchanged. */
bool prof_clockmap_add(struct prof_clockmap *map, uint64_t source_ns, uint64_t mono_ns,
                       uint64_t error_ns);

/* The CLOCK_MONOTONIC time of a source time, ns; results outside 0..2^64-1 are clamped. */
uint64_t prof_clockmap_convert(struct prof_clockmap *map, uint64_t source_ns);

void prof_clockmap_free(struct prof_clockmap *map);

#endif
