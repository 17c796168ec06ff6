/* count.h: conservation counters. Kept in shared memory from the moment of the call, apart from the
 * records, so that losses can be reported: for every kind, called = records + failed + captured
 * + dropped + outstanding. */
#ifndef PERFKIT_WIRE_COUNT_H
#define PERFKIT_WIRE_COUNT_H

#include <stdint.h>

#define WIRE_COUNT_MAP(X)                                                                          \
    X(LAUNCH_CALLED, "kernel launches called")                                                     \
    X(LAUNCH_FAILED, "kernel launches that the API refused")                                       \
    X(LAUNCH_CAPTURED, "kernel launches captured into a graph")                                    \
    X(TRANSFER_CALLED, "copies called")                                                            \
    X(TRANSFER_FAILED, "copies that the API refused")                                              \
    X(TRANSFER_CAPTURED, "copies captured into a graph")                                           \
    X(MEMSET_CALLED, "fills called")                                                               \
    X(MEMSET_FAILED, "fills that the API refused")                                                 \
    X(MEMSET_CAPTURED, "fills captured into a graph")                                              \
    X(ALLOC_CALLED, "allocations called")                                                          \
    X(ALLOC_FAILED, "allocations that the API refused")                                            \
    X(FREE_CALLED, "allocations ended")                                                            \
    X(RANGE_PUSHED, "NVTX pushes")                                                                 \
    X(RANGE_POPPED, "NVTX pops")                                                                   \
    X(RANGE_STARTED, "NVTX starts")                                                                \
    X(RANGE_ENDED, "NVTX ends")                                                                    \
    X(MARKED, "NVTX marks")                                                                        \
    X(UNUSED, "not counted any more; spools hold these by number, so it keeps its own")            \
    X(DEFINITION_DROPPED, "names and other definitions that found no room")                        \
    X(UNPROFILED, "commands whose queue refused profiling: no device times")                       \
    X(UNSEEN, "calls through entry points that bypass the collector")                              \
    X(BACKEND_DROPPED, "records the vendor's library says it dropped")                             \
    X(TIME_REPAIRED, "device times put back into order")                                           \
    X(TIME_MISSING, "device records that came without times")                                      \
    X(OUTSIDE, "records left out because nothing was to be recorded at their time")                \
    X(STACK_UNSENT, "stacks left out because the table of stacks or the spool had no room")        \
    X(STACK_CUT, "stacks deeper than the limit: their outermost frames are missing")               \
    X(STACK_ENDED, "stacks that ended early because a caller could not be found")                  \
    X(STACK_BEYOND,                                                                                \
      "stacks that ended in an object file after the limit of distinct object files")              \
    X(PYTHON_UNTOLD, "Python frames without a name because there was no room for their code")

enum wire_count {
#define X(name, text) WIRE_COUNT_##name,
    WIRE_COUNT_MAP(X)
#undef X
        WIRE_COUNTS
};
#define WIRE_COUNT_SLOTS 32u /* room per slot, so that adding a counter keeps the layout */
_Static_assert((unsigned)WIRE_COUNTS <= WIRE_COUNT_SLOTS, "counter slots");

#endif
