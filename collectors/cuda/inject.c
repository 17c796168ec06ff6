/* The way into a CUDA program: libcuda loads the library that CUDA_INJECTION64_PATH names inside
 * cuInit and calls InitializeInjection. Here CUPTI is started, in the one order that works:
 * subscribe, thread ids, attributes, clock, buffers, what to record, resource callback.
 *
 * Whatever fails, the program runs on uncollected and the capture says why. No CUDA function may be
 * called here (cuInit has not returned); CUPTI may. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/parts.h"

static _Atomic uint32_t version;
static _Atomic int32_t injected; /* pid of the process that ran start() */
static _Atomic bool left; /* CUPTI is not ours: an option leaves it to the program, or it refused */
static CUpti_SubscriberHandle subscriber;

static void forked(void)
{
    for (unsigned i = 0; i < cuda_part_count; i++) {
        if (cuda_parts[i].forked)
            cuda_parts[i].forked();
    }
}

static const struct collector_source source = {
    .source = WIRE_SOURCE_CUDA,
    .tick = cuda_tick,
    .at_exit = cuda_at_exit,
    .forked = forked,
    .recording = cuda_kinds_recording,
};

CUpti_SubscriberHandle cuda_subscriber(void)
{
    return subscriber;
}

uint32_t cuda_cupti_version(void)
{
    return atomic_load(&version);
}

static void refuse_cuda(const char *why, uint32_t value)
{
    collector_health(WIRE_SOURCE_CUDA, WIRE_HEALTH_REFUSED, why, value);
}

/* One client of CUPTI per process. cuptiSubscribe_v2 (13.0) returns the name of the subscriber that
 * has it. */
static bool subscribe(void)
{
    static char holder[CUPTI_HOLDER_BYTES]; /* static: CUPTI may keep the block */
    static struct cupti_subscriber block = {
        .size = sizeof block,
        .name = "perfkit",
        .holder = holder,
        .holder_size = sizeof holder,
    };
    CUptiResult result = cupti.Subscribe_v2
                             ? cupti.Subscribe_v2(&subscriber, cuda_callback, NULL, &block)
                             : cupti.Subscribe(&subscriber, cuda_callback, NULL);
    if (result == CUPTI_SUCCESS)
        return true;
    char why[320];
    holder[sizeof holder - 1] = '\0';
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
        snprintf(why, sizeof why,
                 "another tool in the program holds CUPTI%s%s: run it without that tool to record "
                 "CUDA",
                 holder[0] ? ": " : "", holder);
    else
        snprintf(why, sizeof why, "cuptiSubscribe: %s (%d); CUDA is not recorded",
                 cupti_result(result), (int)result);
    refuse_cuda(why, (uint32_t)result);
    return false;
}

/* An attribute that this CUPTI does not know changes speed, not what is recorded. */
static CUptiResult set_attribute(CUpti_ActivityAttribute attribute, uint8_t value)
{
    size_t size = sizeof value;
    return cupti.ActivitySetAttribute ? cupti.ActivitySetAttribute(attribute, &size, &value)
                                      : CUPTI_ERROR_NOT_SUPPORTED;
}

static void share_buffers(void)
{
    CUptiResult result = set_attribute((CUpti_ActivityAttribute)RECORD_ATTR_THREAD_BUFFERS, 0);
    if (result != CUPTI_SUCCESS && cuda_cupti_version() >= RECORD_SINCE_THREAD_BUFFERS)
        collector_health(WIRE_SOURCE_CUDA, WIRE_HEALTH_NOTE,
                         "CUPTI keeps a buffer for each thread: a flush beside quick launches may "
                         "end the program by a signal",
                         (uint32_t)result);
}

/* Every record in CLOCK_MONOTONIC. Once per process: a second registration makes CUPTI give one
 * record the time of its default clock. */
static bool set_cupti_clock(void)
{
    CUptiResult result = cupti.ActivityRegisterTimestampCallback(collector_now);
    if (result == CUPTI_SUCCESS)
        return true;
    char why[160];
    snprintf(why, sizeof why,
             "cuptiActivityRegisterTimestampCallback: %s (%d); CUDA is not recorded",
             cupti_result(result), (int)result);
    refuse_cuda(why, (uint32_t)result);
    return false;
}

static bool load_cupti(void)
{
    char why[320];
    if (!cupti_load(why, sizeof why)) {
        refuse_cuda(why, 0);
        return false;
    }
    uint32_t found = 0;
    CUptiResult result = cupti.GetVersion(&found);
    if (result != CUPTI_SUCCESS || found < RECORD_OLDEST_CUPTI) {
        snprintf(why, sizeof why,
                 "%s has API version %u; CUDA is recorded with CUPTI 12.0 (version %u) or newer",
                 cupti_path(), found, RECORD_OLDEST_CUPTI);
        refuse_cuda(why, found);
        return false;
    }
    atomic_store(&version, found);
    return true;
}

/* --cupti=yield or =off: the program's own tool gets CUPTI, or no tool does. */
static bool policy_is(const char *what)
{
    char policy[16];
    return collector_option("cupti", policy, sizeof policy) && strcmp(policy, what) == 0;
}

static bool is_left_alone(void)
{
    const char *why = policy_is("yield")
                          ? "CUPTI is left to the program (--cupti=yield): CUDA is not recorded"
                      : policy_is("off") ? "CUPTI is not used (--cupti=off): CUDA is not recorded"
                                         : NULL;
    if (why)
        collector_health(WIRE_SOURCE_CUDA, WIRE_HEALTH_YIELDED, why, 0);
    return why != NULL;
}

bool cuda_holds_cupti(void)
{
    return !atomic_load(&left) && !policy_is("yield") && !policy_is("off");
}

static void unsubscribe(const char *why)
{
    if (why)
        refuse_cuda(why, 0);
    cupti.Unsubscribe(subscriber);
}

static bool reserve_call_tables(void)
{
    bool ok = true;
    for (unsigned i = 0; i < cuda_part_count && ok; i++)
        ok = !cuda_parts[i].reserve || cuda_parts[i].reserve();
    if (ok)
        return true;
    refuse_cuda("no memory for the tables of calls and names (a limit: ulimit -d, -v); CUDA is not "
                "recorded",
                0);
    return false;
}

/* Subscribed: hand CUPTI what it needs. */
static bool prepare_cuda(void)
{
    if (!cuda_buffers_start()) {
        unsubscribe("no memory for CUPTI's buffers; CUDA is not recorded");
        return false;
    }
    if (cupti.SetThreadIdType)
        CUPTI(SetThreadIdType, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    set_attribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, 1);
    share_buffers();
    if (!set_cupti_clock()) {
        unsubscribe(NULL);
        return false;
    }
    if (!CUPTI(ActivityRegisterCallbacks, cuda_buffers_request, cuda_buffers_complete)) {
        unsubscribe("CUPTI took no buffers; CUDA is not recorded");
        return false;
    }
    return true;
}

static void start_cuda(void)
{
    if (!collector_traces("cuda") || !collector_active() || is_left_alone())
        return;
    collector_register(&source);
    if (!load_cupti() || !reserve_call_tables() || !subscribe() || !prepare_cuda()) {
        atomic_store(&left, true);
        return;
    }
    for (unsigned i = 0; i < cuda_part_count; i++) {
        if (cuda_parts[i].start)
            cuda_parts[i].start();
    }
    char what[320];
    snprintf(what, sizeof what, "CUPTI %u from %s", cuda_cupti_version(), cupti_path());
    collector_health(WIRE_SOURCE_CUDA, WIRE_HEALTH_RUNNING, what, 0);
}

__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
    int saved = errno;
    int32_t self = (int32_t)getpid(); /* a forked child may be injected anew */
    if (atomic_exchange(&injected, self) != self)
        start_cuda();
    errno = saved;
    return 1;
}

/* ---- the parts ------------------------------------------------------------------------------- */

/* The parts of the CUDA collector, in one table: inject.c starts them and resets them in a forked
 * child, flush.c runs their ticks and their ends, callback.c calls those that want an API function.
 *
 * Order: start, tick, forked and the callbacks of one API function run from the first row to the
 * last, end from the last row to the first. */

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
