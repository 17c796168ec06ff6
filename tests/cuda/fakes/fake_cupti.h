/* What a test program may ask of the fake libcupti, besides CUPTI's own functions. */
#ifndef PERFKIT_TESTS_CUDA_FAKE_CUPTI_H
#define PERFKIT_TESTS_CUDA_FAKE_CUPTI_H

#include <stddef.h>
#include <stdint.h>

/* FAKE_CUPTI in the environment, "name=value,...":
 *   version=N     what cuptiGetVersion says; below 130000 records have the sizes of CUPTI 12.0
 *   subscribe=N   the result of cuptiSubscribe (39: somebody else holds CUPTI)
 *   enable=N      the result of enabling kernel records
 *   clock=N       the result of registering the timestamp callback
 *   dropped=N     records that CUPTI says it lost, told once
 *   stuck=S       a forced flush takes S seconds
 *   small=B       offer no more than B bytes of each buffer */

/* Write one record as CUPTI would, into the calling thread's buffer, when its kind (and, for API
 * records, its function) is enabled. Returns 1 when it was written. */
typedef int (*fake_cupti_record_fn)(const void *record, size_t size);

/* Tell the subscriber of a new graph node. Returns 1 when it wanted to know. */
typedef int (*fake_cupti_node_fn)(int type, uint64_t node, uint32_t graph);

enum fake_cupti_stat {
    FAKE_CLOCKS,     /* timestamp callbacks registered */
    FAKE_SUBSCRIBED, /* successful subscriptions */
    FAKE_FLUSHES,
    FAKE_FORCED,      /* forced flushes */
    FAKE_FLUSH_MAIN,  /* flushes on the main thread */
    FAKE_FINALIZED,
    FAKE_WRITTEN,     /* records */
    FAKE_CALLBACKS_SET,
    FAKE_STATS
};
typedef uint64_t (*fake_cupti_stat_fn)(enum fake_cupti_stat which);

#endif
