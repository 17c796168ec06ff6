/* The threads that stand in for those of a dump, and its clock; see replay_threads.h. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/cuda/fakes/replay_threads.h"

#define MAX_WORKERS 200u

struct worker {
    uint32_t tid;  /* in the dump */
    uint32_t real; /* here */
    bool ending;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void (*job)(void *);
    void *argument;
};

static struct worker workers[MAX_WORKERS]; /* [0] is the calling thread */
static size_t worker_count;

uint64_t replay_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void replay_sleep_until(uint64_t time)
{
    for (uint64_t at = replay_now(); at < time; at = replay_now()) {
        uint64_t left = time - at;
        struct timespec pause = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
        nanosleep(&pause, NULL);
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    pthread_mutex_lock(&worker->lock);
    worker->real = (uint32_t)syscall(SYS_gettid);
    pthread_cond_broadcast(&worker->changed);
    for (;;) {
        while (!worker->job && !worker->ending)
            pthread_cond_wait(&worker->changed, &worker->lock);
        if (!worker->job)
            break;
        worker->job(worker->argument);
        worker->job = NULL;
        pthread_cond_broadcast(&worker->changed);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL; /* with whatever its buffer holds */
}

struct worker *replay_worker_of(uint32_t tid)
{
    for (size_t i = 0; i < worker_count; i++) {
        if (workers[i].tid == tid)
            return &workers[i];
    }
    if (worker_count == MAX_WORKERS)
        return &workers[0];
    struct worker *worker = &workers[worker_count++];
    worker->tid = tid;
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->changed, NULL);
    if (worker == &workers[0]) {
        worker->real = (uint32_t)syscall(SYS_gettid);
        return worker;
    }
    if (pthread_create(&worker->thread, NULL, work, worker) != 0)
        abort();
    pthread_mutex_lock(&worker->lock);
    while (!worker->real)
        pthread_cond_wait(&worker->changed, &worker->lock);
    pthread_mutex_unlock(&worker->lock);
    return worker;
}

void replay_run_on(struct worker *worker, void (*job)(void *), void *argument)
{
    if (worker == &workers[0]) {
        job(argument);
        return;
    }
    pthread_mutex_lock(&worker->lock);
    worker->job = job;
    worker->argument = argument;
    pthread_cond_broadcast(&worker->changed);
    while (worker->job)
        pthread_cond_wait(&worker->changed, &worker->lock);
    pthread_mutex_unlock(&worker->lock);
}

void replay_end_workers(void)
{
    for (size_t i = 1; i < worker_count; i++) {
        pthread_mutex_lock(&workers[i].lock);
        workers[i].ending = true;
        pthread_cond_broadcast(&workers[i].changed);
        pthread_mutex_unlock(&workers[i].lock);
        pthread_join(workers[i].thread, NULL);
    }
}

uint32_t replay_worker_tid(const struct worker *worker)
{
    return worker->real;
}
