/* Programs that repeat a step with noise, one of which is slow for a planted cause: the corpus that
 * `perfkit report --why` is scored by (bench/slow_steps.c), and a test of some of it. */
#ifndef PERFKIT_TESTS_DIAGNOSIS_SLOW_STEPS_H
#define PERFKIT_TESTS_DIAGNOSIS_SLOW_STEPS_H

#include "libprof/include/prof_iterations.h"

/* Kind, what must be named, a text that the answer must hold. */
#define SLOW_KINDS_LIST(X)                                                                         \
    X(NOTHING, KERNEL, "")                                                                         \
    X(SLOW_COPY, MEMCPY, "HtoD")                                                                   \
    X(CLOCK_DROP, KERNEL, "MHz")                                                                   \
    X(EXTRA_ALLOCATION, ALLOC, "cudaMalloc")                                                       \
    X(COMPILED, JIT, "")                                                                           \
    X(GC_PAUSE, HOST, "gc_collect")                                                                \
    X(PAGE_FAULTS, MIGRATION, "fault")                                                             \
    X(BLOCKED_LOCK, BLOCKED, "lock_queue")                                                         \
    X(PREEMPTED_THREAD, PREEMPTED, "")                                                             \
    X(STRAGGLER, COLLECTIVE, "rank 1")                                                             \
    X(CHECKPOINT, MEMCPY, "checkpoint")                                                            \
    X(LOGGING, HOST, "write_log")                                                                  \
    X(CACHE_FLUSH, KERNEL, "flush_cache")                                                          \
    X(EXTRA_LAUNCHES, KERNEL, "times")                                                             \
    X(MODULE_LOAD, LOAD, "")                                                                       \
    X(PYTHON_RANGE, HOST, "load_batch")                                                            \
    X(COLLECTION, GC, "generation 2")

enum slow_kind {
#define SLOW_KIND(kind, part, text) SLOW_KIND_##kind,
    SLOW_KINDS_LIST(SLOW_KIND)
#undef SLOW_KIND
        SLOW_KINDS
};

const char *slow_kind_name(enum slow_kind kind);

/* The capture of such a program, open; the same for the same seed, from 1. */
struct prof_capture *slow_steps_record(enum slow_kind kind, uint64_t seed);
/* The planted iteration of the last one in its list; NULL = none. */
const struct prof_iteration_row *slow_steps_planted(const struct prof_iteration_list *list);

/* Is it the cause that was planted? */
bool slow_kind_is_named(enum slow_kind kind, const struct prof_iteration_why *why);

#endif
