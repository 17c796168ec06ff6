/* See exact_idle.h. cuCtxSynchronize would be one call, and would hang the program whose earlier
 * work waits for something that its own thread does later: a wait for a value in memory, a host
 * function, a kernel that waits for the host. An event of the whole context (CUDA 12.5) can be
 * polled, and polling can stop at any time. It is made for each wait and destroyed after it,
 * pending or not: one that is kept would have to be forgotten with its context.
 *
 * Querying an event is among the calls that end the capture of another thread's stream, in some
 * modes of capture: not from a thread in relaxed mode, which ours are meanwhile. */
#include "collectors/core/collector.h"
#include "collectors/cuda/exact_idle.h"
#include "collectors/cuda/exact_turns.h"
#include "collectors/cuda/parts.h"

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
        exact_pause(pause);
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
