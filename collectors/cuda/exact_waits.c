/* What exact counting waits for, and what waits for it: other threads that launch, streams that are
 * being captured, the device. Every wait has a timeout.
 *
 * Turns: while CUPTI counts ranges it treats every launch of the context as one, whose
 * ever it is, and may wait for it there: a kernel that waits for another one would block forever.
 * So for the fraction of a millisecond in which a launch is counted (a sixth of a second when the
 * pass changes) the launches of other threads are kept waiting before they begin, for two seconds
 * at most: then they go on, and the count is thrown away. */
#include <stdatomic.h>
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/exact.h"
#include "collectors/cuda/parts.h"

#define WAIT_NS 2000000000u /* the first count of a context takes nearly a second */
#define LAUNCH_NS 10000000u /* of a launch that is in flight */
#define PAUSE_NS 50000

enum { FREE, SHARED, ALONE };
static _Atomic uint32_t turn;
static _Atomic uint32_t begun, in_flight;
static _Thread_local uint32_t depth __attribute__((tls_model("initial-exec")));

/* Until `what` is no more than that. False: it took too long. */
static bool wait_for_max(const _Atomic uint32_t *what, uint32_t max, uint64_t limit_ns)
{
    uint64_t start = collector_now();
    while (atomic_load(what) > max) {
        if (collector_now() - start >= limit_ns)
            return false;
        cuda_pause(PAUSE_NS);
    }
    return true;
}

/* First in flight, then a look: either we see who is alone, or that one sees us. */
void exact_launch_begins(void)
{
    if (depth++ > 0)
        return;
    for (bool patient = true;;) {
        atomic_fetch_add(&in_flight, 1);
        if (!patient || atomic_load(&turn) != ALONE)
            break;
        atomic_fetch_sub(&in_flight, 1);
        patient = wait_for_max(&turn, SHARED, WAIT_NS);
    }
    atomic_fetch_add(&begun, 1);
}

void exact_launch_ends(void)
{
    if (depth > 0 && --depth == 0)
        atomic_fetch_sub(&in_flight, 1);
}

uint32_t exact_launches(void)
{
    return atomic_load(&begun);
}

bool exact_turn_take(void)
{
    uint32_t expected = FREE;
    return atomic_compare_exchange_strong(&turn, &expected, SHARED);
}

bool exact_turn_alone(void)
{
    atomic_store(&turn, ALONE);
    if (wait_for_max(&in_flight, 1, LAUNCH_NS))
        return true;
    exact_turn_share();
    return false;
}

void exact_turn_share(void)
{
    atomic_store(&turn, SHARED);
}

void exact_turn_end(void)
{
    atomic_store(&turn, FREE);
}

void exact_turn_wait(void)
{
    wait_for_max(&turn, FREE, WAIT_NS);
}

void exact_turns_forked(void)
{
    depth = 0;
    atomic_store(&turn, FREE);
    atomic_store(&begun, 0);
    atomic_store(&in_flight, 0);
}

/* ---- Streams that are being captured ----------------------------------------------------------
 *
 * By the stream's handle: a capture ends with its stream too, an attempt to begin or end one may
 * fail, and only then does a number of them say nothing. */

#define STREAMS 256u /* captured at a time; were there more, none would be known to end */

static _Atomic uint64_t streams[STREAMS]; /* 0 = free */
static _Atomic uint32_t open;
static _Thread_local uint64_t destroying __attribute__((tls_model("initial-exec")));

static bool starts_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

bool exact_captures_concern(const char *name)
{
    return starts_with(name, "cuStreamBeginCapture") || starts_with(name, "cuStreamEndCapture") ||
           starts_with(name, "cuStreamDestroy");
}

/* The first parameter of all of them. The default stream is one of each thread. */
static uint64_t stream_of(const CUpti_CallbackData *call)
{
    uint64_t stream = 0;
    if (call->functionParams)
        memcpy(&stream, call->functionParams, sizeof stream);
    return stream > 2 ? stream : (uint64_t)collector_tid() << 8 | 2;
}

static void add_capturing_stream(uint64_t stream)
{
    atomic_fetch_add(&open, 1);
    for (size_t i = 0; i < STREAMS; i++) {
        uint64_t expected = 0;
        if (atomic_compare_exchange_strong(&streams[i], &expected, stream))
            return;
    }
}

static bool take_away(uint64_t stream)
{
    for (size_t i = 0; i < STREAMS; i++) {
        uint64_t this = stream;
        if (atomic_compare_exchange_strong(&streams[i], &this, 0)) {
            atomic_fetch_sub(&open, 1);
            return true;
        }
    }
    return false;
}

/* From the moment it may begin. */
static bool call_begins_capture(const CUpti_CallbackData *call, bool entering)
{
    if (entering)
        add_capturing_stream(stream_of(call));
    else if (!cuda_call_succeeded(call))
        take_away(stream_of(call));
    return entering;
}

/* One that has failed has ended too, unless another thread must end it. */
static void ends(const CUpti_CallbackData *call, bool entering)
{
    const int *result = call->functionReturnValue;
    if (!entering && (!result || *result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD))
        take_away(stream_of(call));
}

/* When it returns the handle may be that of a new stream already. */
static void destroys(const CUpti_CallbackData *call, bool entering)
{
    if (entering)
        destroying = take_away(stream_of(call)) ? stream_of(call) : 0;
    else if (destroying && !cuda_call_succeeded(call))
        add_capturing_stream(destroying);
}

bool exact_captures_on_callback(const char *name, const CUpti_CallbackData *call)
{
    bool entering = call->callbackSite == CUPTI_API_ENTER;
    if (starts_with(name, "cuStreamBeginCapture"))
        return call_begins_capture(call, entering);
    if (starts_with(name, "cuStreamEndCapture"))
        ends(call, entering);
    else
        destroys(call, entering);
    return false;
}

uint32_t exact_captures_open(void)
{
    return atomic_load(&open);
}

void exact_captures_forked(void)
{
    destroying = 0;
    atomic_store(&open, 0);
    for (size_t i = 0; i < STREAMS; i++)
        atomic_store(&streams[i], 0);
}

/* ---- Is a context idle? -----------------------------------------------------------------------
 *
 * cuCtxSynchronize would be one call, and would hang the program whose earlier work waits for
 * something that its own thread does later: a wait for a value in memory, a host function, a
 * kernel that waits for the host. An event of the whole context (CUDA 12.5) can be polled, and
 * polling can stop at any time. It is made for each wait and destroyed after it, pending or not:
 * one that is kept would have to be forgotten with its context.
 *
 * Querying an event is among the calls that end the capture of another thread's stream, in some
 * modes of capture: not from a thread in relaxed mode, which ours are meanwhile. */

#define FIRST_PAUSE_NS 10000
#define LAST_PAUSE_NS 2000000

bool exact_idle_possible(void)
{
    return cuda_driver.CtxRecordEvent && cuda_driver.EventCreate && cuda_driver.EventQuery &&
           cuda_driver.EventDestroy && cuda_driver.CtxPushCurrent && cuda_driver.CtxPopCurrent &&
           cuda_driver.ThreadExchangeStreamCaptureMode;
}

static enum exact_idle poll_event(CUevent event, uint64_t deadline, bool (*leave)(void))
{
    for (long pause = FIRST_PAUSE_NS;; pause = pause < LAST_PAUSE_NS ? pause * 2 : pause) {
        if (leave())
            return EXACT_IDLE_LEFT;
        CUresult result = cuda_driver.EventQuery(event);
        if (result != CUDA_ERROR_NOT_READY)
            return result == CUDA_SUCCESS ? EXACT_IDLE : EXACT_IDLE_UNKNOWN;
        if (collector_now() >= deadline)
            return EXACT_IDLE_LATE;
        cuda_pause(pause);
    }
}

enum exact_idle exact_idle_wait(void *context, uint64_t deadline, bool (*leave)(void))
{
    enum exact_idle found = EXACT_IDLE_UNKNOWN;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUevent event = NULL;
    if (!exact_idle_possible() ||
        cuda_driver.ThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS)
        return found;
    if (cuda_driver.EventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS) {
        if (leave())
            found = EXACT_IDLE_LEFT;
        else if (cuda_driver.CtxRecordEvent(context, event) == CUDA_SUCCESS)
            found = poll_event(event, deadline, leave);
        cuda_driver.EventDestroy(event);
    }
    cuda_driver.ThreadExchangeStreamCaptureMode(&mode);
    return found;
}

enum exact_idle exact_idle_elsewhere(void *context, uint64_t deadline, bool (*leave)(void))
{
    CUcontext same;
    if (!exact_idle_possible() || cuda_driver.CtxPushCurrent(context) != CUDA_SUCCESS)
        return EXACT_IDLE_UNKNOWN;
    enum exact_idle found = exact_idle_wait(context, deadline, leave);
    cuda_driver.CtxPopCurrent(&same);
    return found;
}
