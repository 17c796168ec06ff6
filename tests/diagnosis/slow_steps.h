/* Programs that repeat a step with noise, one of which is slow for a planted cause: the corpus that
 * `perfkit report --why` is scored by (bench/slow_steps.c), and a test of some of it. */
#ifndef PERFKIT_TESTS_DIAGNOSIS_SLOW_STEPS_H
#define PERFKIT_TESTS_DIAGNOSIS_SLOW_STEPS_H

#include "libprof/include/prof_iterations.h"

/* Kind; what must be named and a text that the answer must hold, of its first form and of its
 * second. The rules were made while looking at the first forms; the second ones were written after
 * the rules, to score them. */
#define SLOW_KINDS_LIST(X)                                                                         \
    X(NOTHING, KERNEL, "", KERNEL, "")                                                             \
    X(SLOW_COPY, MEMCPY, "HtoD", MEMCPY, "DtoH")                                                   \
    X(CLOCK_DROP, KERNEL, "MHz", KERNEL, "MHz")                                                    \
    X(EXTRA_ALLOCATION, ALLOC, "cudaMalloc", ALLOC, "cudaFree")                                    \
    X(COMPILED, JIT, "", JIT, "")                                                                  \
    X(GC_PAUSE, HOST, "gc_collect", HOST, "gc_collect")                                            \
    X(PAGE_FAULTS, MIGRATION, "fault", MIGRATION, "")                                              \
    X(BLOCKED_LOCK, BLOCKED, "lock_queue", BLOCKED, "lock_queue")                                  \
    X(PREEMPTED_THREAD, PREEMPTED, "", PREEMPTED, "")                                              \
    X(STRAGGLER, COLLECTIVE, "rank 1", COLLECTIVE, "rank 0")                                       \
    X(CHECKPOINT, MEMCPY, "checkpoint", MEMCPY, "save_state")                                      \
    X(LOGGING, HOST, "write_log", HOST, "write_log")                                               \
    X(CACHE_FLUSH, KERNEL, "flush_cache", KERNEL, "memset")                                        \
    X(EXTRA_LAUNCHES, KERNEL, "times", KERNEL, "grow_table")                                       \
    X(MODULE_LOAD, LOAD, "", LOAD, "")                                                             \
    X(PYTHON_RANGE, HOST, "load_batch", HOST, "decode")                                            \
    X(COLLECTION, GC, "generation 2", GC, "generation 0")                                          \
    X(SLOW_COLLECTIVE, COLLECTIVE, "itself", COLLECTIVE, "itself")                                 \
    X(HOST_FAULTS, FAULTS, "touch_pages", FAULTS, "page faults, ")                                 \
    X(FAULTS_ASIDE, HOST, "write_log", HOST, "write_log")

enum slow_kind {
#define SLOW_KIND(kind, ...) SLOW_KIND_##kind,
    SLOW_KINDS_LIST(SLOW_KIND)
#undef SLOW_KIND
        SLOW_KINDS
};

const char *slow_kind_name(enum slow_kind kind);

/* The capture of such a program, open; the same for the same form (0, 1) and seed, from 1. */
struct prof_capture *slow_steps_record(enum slow_kind kind, int form, uint64_t seed);
/* The same, left at `path`. */
bool slow_steps_save(enum slow_kind kind, int form, uint64_t seed, const char *path);
/* The planted iteration of the last one in its list; NULL = none. */
const struct prof_iteration_row *slow_steps_planted(const struct prof_iteration_list *list);

/* Is it the cause that was planted? */
bool slow_kind_is_named(enum slow_kind kind, int form, const struct prof_iteration_why *why);

#endif
