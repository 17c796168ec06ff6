/* Loops on threads; see parallel.h. Threads are made for each loop: a reference is computed once,
 * and its loops take far longer than the start of a thread.
 */
#include "kernels/device/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define MOST_THREADS 256

struct part {
    void (*work)(void *context, uint64_t first, uint64_t end);
    void *context;
    uint64_t first, end;
    pthread_t thread;
};

static void *run(void *argument)
{
    const struct part *part = argument;

    part->work(part->context, part->first, part->end);
    return NULL;
}

/* A container or taskset leaves a process fewer cores than the machine has. */
uint32_t parallel_cores(void)
{
    cpu_set_t allowed;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        cores = CPU_COUNT(&allowed);
    return cores > 0 ? (uint32_t)cores : 1;
}

void parallel_for(uint32_t threads, uint64_t count,
                  void (*work)(void *context, uint64_t first, uint64_t end), void *context)
{
    struct part parts[MOST_THREADS];
    uint32_t started = 0;

    if (threads == 0)
        threads = parallel_cores();
    if (threads > MOST_THREADS)
        threads = MOST_THREADS;
    if (threads > count)
        threads = count ? (uint32_t)count : 1;
    for (uint32_t i = 0; i < threads; i++)
        parts[i] =
            (struct part){.work = work,
                          .context = context,
                          .first = count / threads * i + count % threads * i / threads,
                          .end = count / threads * (i + 1) + count % threads * (i + 1) / threads};
    while (started + 1 < threads &&
           pthread_create(&parts[started].thread, NULL, run, &parts[started]) == 0)
        started++;
    for (uint32_t i = started; i < threads; i++)
        run(&parts[i]);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(parts[i].thread, NULL);
}
