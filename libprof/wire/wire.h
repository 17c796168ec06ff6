/* The record layout between the collector (inside the target) and perfkit (outside it).
 *
 * The same headers for both sides: record.h has the table of all types, the others a family each,
 * and this one brings them all. Records are fixed-width, little-endian, 8-byte aligned structs that
 * start with struct wire_head; they only ever grow at the end, so a reader takes what it knows by
 * `size`. Two streams exist in a spool (libprof/spool/layout.h):
 *   - the definition stream: strings, launch configurations, devices, contexts, streams, names,
 *     modules, clock anchors, health. One stream per process, in order. A definition is published
 *     before its id is used, and the reader drains it before any event it has seen committed, so
 *     an id in an event is always defined.
 *   - the event stream of each thread, in order.
 * Ids are per process (per spool), 32 bit, 0 = none. Times are nanoseconds of the clock of the
 * record's stream (wire_stream.clock) for device times, CLOCK_MONOTONIC for everything else; 0 =
 * unknown. */
#ifndef PERFKIT_WIRE_WIRE_H
#define PERFKIT_WIRE_WIRE_H

#include "libprof/wire/activity.h"
#include "libprof/wire/command.h"
#include "libprof/wire/definition.h"
#include "libprof/wire/memory.h"
#include "libprof/wire/record.h"
#include "libprof/wire/sampler.h"

#define X(name, definition, record, first, now, text)                                              \
    _Static_assert(sizeof(struct record) == ((now) ? (now) : (first)), #record);
WIRE_TYPE_MAP(X)
#undef X

#endif
