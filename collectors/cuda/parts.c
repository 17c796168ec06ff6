/* The parts of the CUDA collector, in one table: inject.c starts them and resets them in a forked
 * child, flush.c runs their ticks and their ends, callback.c calls those that want an API function.
 *
 * Order: start, tick, forked and the callbacks of one API function run from the first row to the
 * last, end from the last row to the first. */
#include "collectors/cuda/parts.h"

const struct cuda_part cuda_parts[] = {
    /* The other parts use the driver's functions and the table of API functions. */
    {.name = "driver", .start = cuda_driver_start},
    {.name = "classes", .start = cuda_classes_start},
    /* Before the parts that wait in a callback: the dump has the time at which CUPTI called. It
     * ends after the others. */
    {
        .name = "dump",
        .start = cuda_dump_start,
        .end = cuda_dump_end,
        .forked = cuda_dump_forked,
        .on_callback = cuda_dump_on_callback,
    },
    {
        .name = "correlation",
        .reserve = cuda_correlation_start,
        .tick = cuda_correlation_tick,
        .end = cuda_correlation_end,
        .forked = cuda_correlation_forked,
    },
    /* Before exact counting: other threads' launches wait while a launch is counted, and need not
     * wait for a stack to be unwound. */
    {
        .name = "stacks",
        .reserve = cuda_stacks_start,
        .forked = cuda_stacks_forked,
        .wants_callback = cuda_stacks_wants_callback,
        .on_callback = cuda_stacks_on_callback,
    },
    /* Before the names: where a context ends, its profiler is released before the program waits
     * for a flush. */
    {
        .name = "exact",
        .start = cuda_exact_start,
        .end = cuda_exact_end,
        .forked = cuda_exact_forked,
        .wants_callback = cuda_exact_wants_callback,
        .on_callback = cuda_exact_on_callback,
    },
    /* Before the names, too: it waits for a flush that fetches samples. */
    {
        .name = "stalls",
        .reserve = cuda_stalls_reserve,
        .start = cuda_stalls_start,
        .tick = cuda_stalls_tick,
        .forked = cuda_stalls_forked,
        .wants_callback = cuda_stalls_wants_callback,
        .on_callback = cuda_stalls_on_callback,
    },
    {
        .name = "window",
        .forked = cuda_window_forked,
        .wants_callback = cuda_window_wants_callback,
        .on_callback = cuda_window_on_callback,
    },
    {
        .name = "names",
        .reserve = cuda_names_start,
        .forked = cuda_names_forked,
        .wants_callback = cuda_names_wants_callback,
        .on_callback = cuda_names_on_callback,
    },
    {
        .name = CUDA_LAUNCH_NAMES,
        .reserve = cuda_launch_names_start,
        .forked = cuda_launch_names_forked,
        .wants_callback = cuda_launch_names_wants_callback,
        .on_callback = cuda_launch_names_on_callback,
    },
    /* Calls before the memory records that wait for them. */
    {
        .name = "calls",
        .reserve = cuda_calls_start,
        .tick = cuda_calls_age,
        .forked = cuda_calls_forked,
    },
    {
        .name = "memory",
        .reserve = cuda_memory_start,
        .tick = cuda_memory_age,
        .forked = cuda_memory_forked,
    },
    {
        .name = "managed",
        .start = cuda_managed_start,
        .tick = cuda_managed_tick,
        .forked = cuda_managed_forked,
        .wants_callback = cuda_managed_wants_callback,
        .on_callback = cuda_managed_on_callback,
    },
    {
        .name = "failures",
        .tick = cuda_failures_tick,
        .forked = cuda_failures_forked,
        .wants_callback = cuda_failures_wants_callback,
        .on_callback = cuda_failures_on_callback,
    },
    {.name = "streams", .forked = cuda_streams_forked},
    /* After each part that wants callbacks: what it wants depends on its options. */
    {.name = "callback", .start = cuda_callback_start},
    {.name = "flush", .start = cuda_flush_start, .forked = cuda_flush_forked},
    /* Recording starts when all is ready. */
    {
        .name = "kinds",
        .start = cuda_kinds_start,
        .tick = cuda_kinds_tick,
        .forked = cuda_kinds_forked,
        .wants_callback = cuda_kinds_wants_callback,
        .on_callback = cuda_kinds_on_callback,
    },
    /* Buffers are reserved by inject.c, before CUPTI may request one. */
    {.name = "buffers", .tick = cuda_buffers_top_up, .forked = cuda_buffers_forked},
};
const unsigned cuda_part_count = sizeof cuda_parts / sizeof cuda_parts[0];

_Static_assert(sizeof cuda_parts / sizeof cuda_parts[0] <= CUDA_MAX_PARTS,
               "callback.c has a bit for each part");
