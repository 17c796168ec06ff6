/* Ticks, the end, and those who wait for them (flush.c), with a CUPTI whose flush is ours. */
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cuda/decode_case.h"

/* A child has its parent's callbacks and no thread that could answer. */
START_TEST(no_settling_in_a_child)
{
    begin_flushing();
    pid_t child = fork();
    if (child == 0) {
        cuda_flush_wait_tick();
        _exit((int)core.wakes);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* Who unloads code a thousand times waits once for a helper thread that is not there. */
START_TEST(settling_in_vain)
{
    begin_flushing();
    cuda_flush_wait_tick();
    ck_assert_uint_eq(core.wakes, 1);
    cuda_flush_wait_tick();
    ck_assert_uint_eq(core.wakes, 1);
    cuda_tick();
    cuda_flush_wait_tick();
    ck_assert_uint_eq(core.wakes, 2);
}
END_TEST

/* After the last flush CUPTI may be gone; when an exec has failed it is not. */
START_TEST(no_flush_after_the_end)
{
    begin_flushing();
    core.helper = true; /* main ended by pthread_exit: the helper is the last thread */
    core.ended = true;
    cuda_at_exit();
    ck_assert_uint_eq(forced, 1);
    ck_assert_uint_eq(core.health_state, WIRE_HEALTH_ENDED);
    cuda_tick();
    ck_assert_uint_eq(flushes, 1);
    core.ended = false;
    cuda_tick();
    ck_assert_uint_eq(flushes, 2);
}
END_TEST

static void *two_ticks(void *unused)
{
    cuda_tick();
    cuda_tick();
    return unused;
}

/* The end finds the helper in a tick that takes longer than one waits for a helper that is not
 * there. */
START_TEST(end_in_a_long_tick)
{
    begin_flushing();
    pthread_t helper;
    flush_ms = 1500;
    ck_assert_int_eq(pthread_create(&helper, NULL, two_ticks, NULL), 0);
    while (flushes == 0)
        sched_yield();
    cuda_at_exit();
    pthread_join(helper, NULL);
    ck_assert_uint_eq(forced, 1);
    ck_assert_uint_eq(core.health_state, WIRE_HEALTH_ENDED);
}
END_TEST

void add_thread_tests(TCase *cases)
{
    tcase_add_test(cases, no_settling_in_a_child);
    tcase_add_test(cases, settling_in_vain);
    tcase_add_test(cases, no_flush_after_the_end);
    tcase_add_test(cases, end_in_a_long_tick);
}
