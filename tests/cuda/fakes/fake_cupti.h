/* What a test program may ask of the fake libcupti, besides CUPTI's own functions. */
#ifndef PERFKIT_TESTS_CUDA_FAKE_CUPTI_H
#define PERFKIT_TESTS_CUDA_FAKE_CUPTI_H

#include <stddef.h>
#include <stdint.h>

/* FAKE_CUPTI in the environment, "name=value,...":
 *   version=N     what cuptiGetVersion says; below 130000 records have the sizes of CUPTI 12.0
 *   subscribe=N   the result of cuptiSubscribe (39: somebody else holds CUPTI)
 *   enable=N      the result of enabling kernel records
 *   refuse=K      the kind that cannot be enabled (35, no permission)
 *   clock=N       the result of registering the timestamp callback
 *   dropped=N     records that CUPTI says it lost, told once
 *   stuck=S       a forced flush takes S seconds
 *   late=MS       a flush leaves the first thread's buffer behind and brings it back MS ms later
 *   hold=1        only a forced flush brings anything, and buffers that are full
 *   null=1        buffers that are NULL are brought back at every flush
 *   small=B       offer no more than B bytes of each buffer
 *
 * A dump of CUPTI's buffers (collectors/cuda/dump.h) is played by fake_cupti_replay:
 *   replay=FILE   the dump
 *   pace=1        at the speed of the dump; else as fast as it goes
 *   flushes=1     where the dump has a flush, wait for one of the collector's; texts that change
 *                 under their address then do so here
 *   inplace=1     texts do so without waiting, as when a module is unloaded
 *   span=MS       no longer than that is waited so that the dump's times lie in the past (5000);
 *                 what a longer dump began with then lies before the program's start
 * and spoiled on the way; N: every N-th kernel, copy or fill
 *   end0=N        end = 0, still running        notime=N    start = end = 0
 *   backward=N    end before start              future=N    times of another clock
 *   lose=N        dropped, and told             vanish=N    dropped, and not told
 *   wrap=1        correlation ids pass 0xffffffff in the middle of the dump
 *   reverse=1     the records of each buffer in reverse order
 *   calls=late    API records come a flush after everything else
 *   damage=N      the N-th buffer holds garbage from its middle on
 *   fork=1|2      in the middle the program forks; the child leaves by exit or _exit */

/* Write one record as CUPTI would, into the calling thread's buffer, when its kind (and, for API
 * records, its function) is enabled. Returns 1 when it was written. */
typedef int (*fake_cupti_record_fn)(const void *record, size_t size);

/* Tell the subscriber of a new graph node, a clone of `original` unless that is 0. Returns 1 when
 * it wanted to know. */
typedef int (*fake_cupti_node_fn)(int type, uint64_t node, uint32_t graph, uint64_t original);

/* Tell the subscriber of a new stream. Returns as above. */
typedef int (*fake_cupti_stream_fn)(uint64_t handle, uint32_t stream, uint32_t context);

/* Begin or end an API call (site 0, 1; 2 = it ends and has failed). Returns as above. */
typedef int (*fake_cupti_api_fn)(int domain, uint32_t cbid, uint32_t correlation, int site);

/* A whole call of the driver's function `cbid` whose first parameter is a stream. Returns as above. */
typedef int (*fake_cupti_of_stream_fn)(uint32_t cbid, uint64_t stream, int failed);

/* A launch by the driver's function `cbid`, of a kernel of that shape (grid, block, shared bytes).
 * One whose name has "waits" in it runs until the program calls fake_cuda_hold(0); so does one with
 * "overruns", but only when it is counted. Returns how often
 * the subscriber was told. */
typedef int (*fake_cupti_launch_fn)(const char *symbol, uint32_t cbid, const uint32_t shape[7],
                                    uint32_t correlation);

/* Play FAKE_CUPTI's replay=FILE. 0 = done. */
typedef int (*fake_cupti_replay_fn)(void);

/* A program may lend the replayer its clock, so that a callback finds the time of the dump: a
 * function "fake_clock" with this type; 0 = the true time again, for the calling thread. */
typedef void (*fake_clock_fn)(uint64_t monotonic_ns);

#define FAKE_UNKNOWN_FUNCTION 530 /* a runtime function with a name that nobody knows */

enum fake_cupti_stat {
    FAKE_CLOCKS,     /* timestamp callbacks registered */
    FAKE_SUBSCRIBED, /* successful subscriptions */
    FAKE_FLUSHES,
    FAKE_FORCED,      /* forced flushes */
    FAKE_FLUSH_MAIN,  /* flushes on the main thread */
    FAKE_FINALIZED,
    FAKE_WRITTEN,     /* records */
    FAKE_CALLBACKS_SET,
    FAKE_CONFIGURED,  /* devices whose unified memory is recorded */
    FAKE_SWITCHED,    /* times that records of kernels were switched on */
    FAKE_STATS
};
typedef uint64_t (*fake_cupti_stat_fn)(enum fake_cupti_stat which);

#endif
