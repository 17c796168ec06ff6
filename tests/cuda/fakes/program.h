/* What the scenarios of the test program share: the fakes' functions, and calls of CUDA that are
 * played by writing what CUPTI would. */
#ifndef PERFKIT_TESTS_CUDA_FAKES_PROGRAM_H
#define PERFKIT_TESTS_CUDA_FAKES_PROGRAM_H

#include <stdint.h>

#include <cuda.h>
#include <cupti.h>

#include "tests/cuda/fakes/fake_cupti.h"

enum {
    LAUNCH_CBID = 505,
    COPY_CBID = 31,
    DRIVER_LAUNCH_CBID = 307,
    MALLOC_CBID = 20,
    FREE_CBID = 22
};
enum { MEMSET_CBID = 49, GRAPH_CBID = 311, NOISE_CBID = 502, SYNC_CBID = 165 };
enum { MANAGED_CBID = 206, DRIVER_MANAGED_CBID = 371 };
enum { MODULE_UNLOAD_CBID = 22, RESET_CBID = 164 };
enum { BEGIN_CAPTURE_CBID = 539, END_CAPTURE_CBID = 497, STREAM_DESTROY_CBID = 326 };
enum { START_CBID = 171, STOP_CBID = 172, UNKNOWN_CBID = FAKE_UNKNOWN_FUNCTION };

/* Of the fake libcupti, NULL when nobody loaded it; `hold` of the fake libcuda: what the device was
 * given is not done (1), or is (0). */
struct fake_functions {
    fake_cupti_record_fn record;
    fake_cupti_node_fn node;
    fake_cupti_stat_fn stat;
    fake_cupti_api_fn api;
    fake_cupti_stream_fn stream;
    fake_cupti_replay_fn replay;
    fake_cupti_launch_fn launch;
    fake_cupti_of_stream_fn of_stream;
    int (*hold)(int hold);
    int (*uuid)(unsigned char uuid[16], int device);
};
extern struct fake_functions fake;

uint32_t play_id(void); /* a correlation id */
void play_skip_ids(uint32_t count);
uint64_t play_now(void);
void play_pause_ms(unsigned ms);

/* Records of API calls; `result` 0 = it succeeded. */
void play_call(CUpti_ActivityKind kind, uint32_t cbid, uint32_t id, uint64_t start, uint64_t end,
               uint32_t result);
void play_runtime(uint32_t cbid, uint32_t id, uint64_t start);

/* Records of device work; those without an id have a call before them. */
void play_kernel_of(const char *name, uint32_t blocks, uint32_t id, uint64_t start, uint64_t end);
void play_kernel(const char *name, uint32_t id, uint64_t start, uint64_t end);
void play_launch(const char *name);
void play_copy(uint64_t bytes);
void play_set(uint64_t bytes);
void play_memory(CUpti_ActivityMemoryOperationType operation, uint64_t address, uint64_t bytes);
void play_topology(void); /* a device and a context */

/* Each returns 0 when what it can see itself is right. */
#define SCENARIOS_OF_WORK(X)                                                                       \
    X(basic)                                                                                       \
    X(threads)                                                                                     \
    X(driver) X(times) X(wrap) X(graph) X(streams) X(counted) X(twice) X(refused) X(fork)          \
        X(replay) X(nothing) X(steps) X(steps_slowed) X(steps_end)
#define SCENARIOS_OF_CALLBACKS(X)                                                                  \
    X(profiler)                                                                                    \
    X(managed) X(managed_in_child) X(managed_in_plugin) X(unload_in_plugin) X(late_context)
#define SCENARIOS_OF_EXACT(X)                                                                      \
    X(exact)                                                                                       \
    X(exact_many)                                                                                  \
    X(exact_waiting) X(exact_slow) X(exact_threads) X(exact_captures) X(exact_late) X(exact_fork)  \
        X(exact_exit) X(exact_overdue) X(exact_cancelled)
#define SCENARIOS(X) SCENARIOS_OF_WORK(X) SCENARIOS_OF_CALLBACKS(X) SCENARIOS_OF_EXACT(X)

#define X(name) int scenario_##name(void);
SCENARIOS(X)
#undef X

#endif
