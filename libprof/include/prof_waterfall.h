/* prof_waterfall.h: where the time of a device went. Each instant of the part of a run that the
 * rules judge has exactly one state, so that the states of a device add up to it
 * (docs/reference/rules.md). Conventions as in prof.h. */
#ifndef PERFKIT_PROF_WATERFALL_H
#define PERFKIT_PROF_WATERFALL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* State, name in files and JSON, words for people. Idle time is told apart by what the host did
 * until the next operation arrived. From COPY_PAGEABLE on no kernel runs, from DEPENDENCY on
 * nothing. */
#define PROF_WATERFALL_STATES(X)                                                                   \
    X(BOTH, "both", "kernels, with memcpy or memset at once")                                      \
    X(KERNEL, "kernel", "kernels")                                                                 \
    X(COPY_PAGEABLE, "memcpy_pageable", "memcpy, pageable memory")                                 \
    X(COPY_PINNED, "memcpy_pinned", "memcpy, page-locked memory")                                  \
    X(COPY_DEVICE, "memcpy_device", "memcpy within the device")                                    \
    X(COPY_OTHER, "memcpy_other", "other memcpy")                                                  \
    X(FILL, "memset", "memset")                                                                    \
    X(DEPENDENCY, "dependency", "idle: work queued behind another stream's")                       \
    X(DISPATCH, "queued", "idle: work submitted but not started")                                  \
    X(SYNC, "sync", "idle: host blocked in a synchronization, or just woken")                      \
    X(ALLOC, "alloc", "idle: host allocated or freed memory")                                      \
    X(BUILD, "build", "idle: host compiled or loaded code, or made a graph")                       \
    X(COPY_CALL, "memcpy_call", "idle: host blocked in a synchronous memcpy")                      \
    X(LAUNCH, "launch", "idle: launch overhead")                                                   \
    X(HOST, "host", "idle: host busy with other work")

enum prof_slice {
#define PROF_WATERFALL_STATE(state, name, text) PROF_SLICE_##state,
    PROF_WATERFALL_STATES(PROF_WATERFALL_STATE)
#undef PROF_WATERFALL_STATE
        PROF_SLICES
};
#define PROF_SLICE_FIRST_IDLE PROF_SLICE_DEPENDENCY

/* One device that did something; see prof_findings.waterfalls. */
struct prof_waterfall {
    int64_t device;          /* prof_device.physical, 0 = unknown */
    int64_t ns[PROF_SLICES]; /* sum: prof_findings.window_ns */
};

/* Fixed words, never NULL. */
const char *prof_slice_name(enum prof_slice slice);
const char *prof_slice_text(enum prof_slice slice);

#ifdef __cplusplus
}
#endif

#endif
