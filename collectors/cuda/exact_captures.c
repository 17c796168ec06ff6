/* See exact_captures.h. By the stream's handle: a capture ends with its stream too, an attempt to
 * begin or end one may fail, and only then does a number of them say nothing. */
#include <stdatomic.h>
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/exact_captures.h"

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
