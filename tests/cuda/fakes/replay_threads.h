/* Threads of the replayer: one for each thread of the dump, which does one job after the other. */
#ifndef PERFKIT_TESTS_CUDA_FAKES_REPLAY_THREADS_H
#define PERFKIT_TESTS_CUDA_FAKES_REPLAY_THREADS_H

#include <stdint.h>

struct worker;

/* The one that stands for `tid` of the dump; the first that is asked for is the calling thread. */
struct worker *replay_worker_of(uint32_t tid);
/* Its own number. */
uint32_t replay_worker_tid(const struct worker *worker);
/* Returns when it is done. */
void replay_run_on(struct worker *worker, void (*job)(void *), void *argument);
void replay_end_workers(void);

/* CLOCK_MONOTONIC, ns */
uint64_t replay_now(void);
void replay_sleep_until(uint64_t time);

#endif
