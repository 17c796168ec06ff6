/* record.h: what every record begins with, and the table of their types. See wire.h. */
#ifndef PERFKIT_WIRE_RECORD_H
#define PERFKIT_WIRE_RECORD_H

#include <stdint.h>

#define WIRE_VERSION 2u       /* written by this tree */
#define WIRE_MIN_READER 1u    /* oldest reader that understands what we write */
#define WIRE_MAX_RECORD 4096u /* bytes; longer strings continue in further records */
#define WIRE_STRING_BYTES (WIRE_MAX_RECORD - 16u)

/* Record types: name, definition stream (1) or event stream (0), struct, its bytes in the first
 * version that had it and now (0: more follow it, as many as it says), what it is. What an older
 * writer leaves out reads as 0, what a newer one appends is cut off: structs grow at the end only.
 * The numbers of the types are in spools and in the state of interrupted captures: new ones at the
 * end. */
#define WIRE_TYPE_MAP(X)                                                                           \
    X(NONE, 0, wire_head, 8, 0, "no record: damage")                                               \
    X(THREAD, 0, wire_head, 8, 8, "the records that follow in this chunk belong to thread aux")    \
    X(STRING, 1, wire_string, 16, 0, "text of string id aux")                                      \
    X(CONFIG, 1, wire_config, 64, 64, "launch configuration id aux")                               \
    X(DEVICE, 1, wire_device, 112, 112, "device id aux")                                           \
    X(CONTEXT, 1, wire_context, 24, 32, "context id aux")                                          \
    X(STREAM, 1, wire_stream, 40, 40, "stream or queue id aux")                                    \
    X(NAME, 1, wire_name, 24, 24, "a name given to a thread, category, stream, device or context") \
    X(MODULE, 1, wire_module, 40, 40, "a loaded object file or GPU module")                        \
    X(CLOCK, 1, wire_clock, 40, 40,                                                                \
      "a pair of simultaneous times of clock aux and CLOCK_MONOTONIC")                             \
    X(HEALTH, 1, wire_health, 24, 24, "what became of a collector")                                \
    X(CALL, 0, wire_call, 48, 48, "an API call")                                                   \
    X(KERNEL, 0, wire_kernel, 64, 64, "a kernel execution")                                        \
    X(TRANSFER, 0, wire_transfer, 72, 72, "a copy")                                                \
    X(MEMSET, 0, wire_memset, 72, 72, "a fill")                                                    \
    X(DONE, 0, wire_done, 48, 48, "the device times of a command recorded before as pending")      \
    X(SYNC, 0, wire_sync, 48, 56, "a wait of the host or of a stream")                             \
    X(ALLOC, 0, wire_alloc, 64, 64, "an allocation")                                               \
    X(FREE, 0, wire_free, 40, 40, "the end of an allocation")                                      \
    X(RANGE_PUSH, 0, wire_range, 48, 48, "NVTX push")                                              \
    X(RANGE_POP, 0, wire_range_end, 24, 24, "NVTX pop")                                            \
    X(RANGE_START, 0, wire_range, 48, 48, "NVTX start of a range that any thread may end")         \
    X(RANGE_END, 0, wire_range_end, 24, 24, "NVTX end of a started range")                         \
    X(MARK, 0, wire_range, 48, 48, "NVTX mark")                                                    \
    X(WORK, 0, wire_work, 32, 32, "declared FLOP and bytes of the range pushed just before")       \
    X(GRAPH_NODE, 0, wire_graph_node, 32, 48,                                                      \
      "a graph node was created or cloned at this time on this thread")                            \
    X(GRAPH, 0, wire_graph, 56, 56, "the execution of a whole graph, instead of its nodes")        \
    X(OVERHEAD, 0, wire_overhead, 40, 40,                                                          \
      "time that the driver or the vendor's tools took from the program")                          \
    X(EVENT, 0, wire_event, 40, 40, "an event was recorded in a stream")                           \
    X(POOL, 0, wire_pool, 72, 72, "a memory pool was made, trimmed or destroyed")                  \
    X(MIGRATION, 0, wire_migration, 56, 56, "unified memory moved, or was missed")                 \
    X(JIT, 0, wire_jit, 56, 56, "device code was compiled, or came from a cache")                  \
    X(WINDOW, 0, wire_window, 16, 16, "recording began or stopped in this process")                \
    X(HANDLE, 1, wire_handle, 24, 24, "what a handle of the program means from now on")            \
    X(COUNTER_DEVICE, 1, wire_counter_device, 40, 40,                                              \
      "a device whose hardware counters are sampled")                                              \
    X(COUNTER, 1, wire_counter, 40, 40, "one counter of those that are sampled")                   \
    X(COUNTER_BURST, 0, wire_counter_burst, 40, 40,                                                \
      "a stretch of time in which counters were sampled without pause")                            \
    X(COUNTER_SAMPLE, 0, wire_counter_sample, 216, 216,                                            \
      "what the counters of a device counted in one interval")                                     \
    X(STACK, 1, wire_stack, 16, 0, "a call stack")                                                 \
    X(FIELD, 0, wire_field, 32, 32, "one value that an NVTX range was given with its payload")     \
    X(CPU_PROCESS, 1, wire_cpu_process, 32, 32, "a process whose threads are sampled")             \
    X(CPU_MODULE, 1, wire_cpu_module, 48, 48, "a file that such a process may execute")            \
    X(CPU_STACK, 1, wire_cpu_stack, 16, 0, "a call stack of such a process")                       \
    X(CPU_SAMPLE, 0, wire_cpu_sample, 48, 48, "where a thread was on a processor, or off it")      \
    X(PYTHON_CODE, 1, wire_python_code, 36, 0, "a code object of a Python interpreter")            \
    X(ALLOC_FAILED, 0, wire_alloc_failed, 56, 56, "an allocation that the API refused")            \
    X(EXACT_COUNT, 0, wire_exact_count, 48, 48,                                                    \
      "what a launch counted by one hardware counter, exactly")                                    \
    X(DECOMPRESS, 0, wire_decompress, 48, 48, "a batch of decompressions by the device")           \
    X(STALL_CONTEXT, 0, wire_stall_context, 56, 56, "a context whose instructions are sampled")    \
    X(STALL_FUNCTION, 1, wire_stall_function, 32, 32, "a function that samples fell into")         \
    X(STALL, 0, wire_stall, 120, 120, "the samples of one instruction so far")                     \
    X(CPU_FAULTS, 0, wire_cpu_faults, 40, 40, "page faults of a thread in a stretch of time")

enum wire_type {
#define X(name, ...) WIRE_##name,
    WIRE_TYPE_MAP(X)
#undef X
        WIRE_TYPES
};

struct wire_head {
    uint16_t size; /* bytes of the whole record, a multiple of 8, >= 8 */
    uint8_t type;  /* enum wire_type */
    uint8_t flags; /* per type, below */
    uint32_t aux;  /* per type, below */
};

/* Who made a record; also the `api` column of the capture file. */
#define WIRE_SOURCE_MAP(X)                                                                         \
    X(UNKNOWN, "unknown")                                                                          \
    X(CUDA, "cuda")               /* CUDA runtime API, CUDA devices */                             \
    X(CUDA_DRIVER, "cuda_driver") /* CUDA driver API calls */                                      \
    X(OPENCL, "opencl")                                                                            \
    X(NVTX, "nvtx")                                                                                \
    X(HOST, "host")                                                                                \
    X(COUNTERS, "counters") /* hardware counters, by a process of perfkit */                       \
    X(CPU, "cpu-sample")    /* the target's threads, by perfkit */                                 \
    X(PYTHON, "python")     /* frames of an interpreter in the process */

enum wire_source {
#define X(name, text) WIRE_SOURCE_##name,
    WIRE_SOURCE_MAP(X)
#undef X
        WIRE_SOURCES
};

_Static_assert((unsigned)WIRE_TYPES <= 64u, "type bits");
_Static_assert(WIRE_GRAPH_NODE == 25, "types of version 1 keep their numbers");
_Static_assert(WIRE_WINDOW == 32 && WIRE_COUNTER_SAMPLE == 37,
               "types of version 2 keep their numbers");
_Static_assert(sizeof(struct wire_head) == 8, "wire_head");

/* ---- counters -------------------------------------------------------------------------------- */

/* Conservation counters. Kept in shared memory from the moment of the call, apart from the
 * records, so that losses can be reported: for every kind, called = records + failed + captured
 * + dropped + outstanding. */

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
