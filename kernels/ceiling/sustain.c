/* See sustain.h. All of it is enqueued at once, so that the device never waits for the host. */
#include <time.h>

#include "kernels/ceiling/sustain.h"

#define SECOND_NS 1000000000u
#define MOST 256 /* in the queue: fewer than it holds */

static int sum_up(struct dev_event **events, uint32_t count, double *mean_ns)
{
    double sum = 0;
    int status = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t ns = 0;

        if (status == 0)
            status = dev_event_wait(events[i]);
        if (status == 0)
            status = dev_event_duration_ns(events[i], &ns);
        dev_event_release(events[i]);
        sum += (double)ns;
    }
    *mean_ns = sum / count;
    return status == 0 && sum > 0 ? 0 : -1;
}

int sustain(struct dev_queue *queue, sustain_enqueue *enqueue, void *context, uint64_t once_ns,
            double *mean_ns)
{
    uint64_t times = SECOND_NS / (once_ns ? once_ns : 1);
    uint32_t half = times > MOST ? MOST / 2 : (uint32_t)times / 2 + 1, seen = 0;
    struct dev_event *events[MOST];
    int status = 0;

    for (uint32_t i = 0; i < 2 * half && status == 0; i++) {
        status = enqueue(context, queue, i < half ? NULL : &events[seen]);
        seen += status == 0 && i >= half;
    }
    int summed = seen ? sum_up(events, seen, mean_ns) : -1;

    return status == 0 ? summed : status;
}

void sustain_rest(uint32_t ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l};

    nanosleep(&pause, NULL);
}
