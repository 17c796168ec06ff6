/* The correlation table (correlation.c): facts of calls that are overwritten, that are older than
 * the ids last, and that threads write while the helper thread reads. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "tests/cuda/decode_case.h"

enum { SLOTS = 65536, STACK_SLOTS = 1 << 18 };

static const char *lost(void)
{
    core.health[0] = '\0';
    cuda_correlation_end();
    return core.health;
}

static void use_all(void)
{
    ck_assert(cuda_correlation_reserve(CUDA_CALL_STACK));
    for (enum cuda_fact fact = 0; fact < CUDA_FACTS; fact++)
        cuda_correlation_use(fact);
}

START_TEST(later_calls_overwrite)
{
    use_all();
    cuda_correlation_keep(CUDA_OUTER_CALL, 7, 6);
    cuda_correlation_keep(CUDA_CALL_THREAD, 7, 100);
    ck_assert_uint_eq(cuda_correlation(7), 6);
    ck_assert_uint_eq(cuda_correlation(8), 8);
    ck_assert_uint_eq(cuda_correlation(7 + SLOTS), 7 + SLOTS); /* one that is to come */
    ck_assert_uint_eq(cuda_correlation(0), 0);
    cuda_correlation_keep(CUDA_OUTER_CALL, 7 + SLOTS, 6 + SLOTS);
    cuda_correlation_keep(CUDA_CALL_THREAD, 7 + SLOTS, 101);
    ck_assert_str_eq(lost(), "");
    ck_assert_uint_eq(cuda_correlation(7), 7);
    ck_assert_uint_eq(cuda_correlation(7 + SLOTS), 6 + SLOTS);
    ck_assert_uint_eq(cuda_calls_thread(7), 0); /* not counted: the record has a thread or none */
    ck_assert_uint_eq(cuda_calls_thread(7 + SLOTS), 101);
    ck_assert_int_eq(strncmp(lost(), "1 records of the GPU came more than 65,536 calls", 48), 0);
    ck_assert_str_eq(lost(), "");
}
END_TEST

/* Ids come again after 2^32 calls, facts of the earlier ones do not; and what is 2^31 calls old is
 * not taken for a later call that has the place. */
START_TEST(ids_that_come_again)
{
    const uint32_t step = 1u << 29;
    use_all();
    cuda_correlation_of_call(7);
    cuda_correlation_keep(CUDA_OUTER_CALL, 7, 6);
    cuda_correlation_keep(CUDA_LAUNCH_NAME, 7, 5);
    for (uint32_t i = 1; i < 8; i++) {
        cuda_correlation_of_call(7 + i * step);
        cuda_correlation_tick(false);
        ck_assert_uint_eq(cuda_correlation(7 + i * step), 7 + (uint64_t)i * step);
    }
    ck_assert_uint_eq(cuda_correlation_of_call(6), (1ull << 32) + 6);
    ck_assert_uint_eq(cuda_correlation(7), (1ull << 32) + 7);
    ck_assert_uint_eq(cuda_correlation_find(CUDA_LAUNCH_NAME, 7), 0);
    ck_assert_str_eq(lost(), "");
}
END_TEST

static uint32_t value_of(uint32_t id)
{
    return (id * 2654435761u & 0x7fffffff) | 1;
}

enum { WRITERS = 4, KEPT = 100000 };
static _Atomic unsigned writing = WRITERS;
static _Atomic uint32_t next_id;

static void *keep_facts(void *unused)
{
    for (unsigned i = 0; i < KEPT; i++) {
        uint32_t id = atomic_fetch_add(&next_id, 1) + 1;
        cuda_correlation_keep(CUDA_CALL_STACK, id, value_of(id));
        cuda_correlation_keep(CUDA_LAUNCH_NAME, id, value_of(id));
    }
    atomic_fetch_sub(&writing, 1);
    return unused;
}

/* A reader finds the fact of the id or none, never a half or another one's; and each stack was
 * read, is in the table, or is counted as lost. */
START_TEST(threads_write_while_one_reads)
{
    static bool found[WRITERS * KEPT + 1];
    pthread_t writers[WRITERS];
    unsigned long stacks = 0, names = 0, count = 0;
    use_all();
    for (unsigned i = 0; i < WRITERS; i++)
        ck_assert_int_eq(pthread_create(&writers[i], NULL, keep_facts, NULL), 0);
    for (uint32_t id = 1, done = 0; done < 2;) {
        uint32_t stack = cuda_correlation_find(CUDA_CALL_STACK, id);
        uint32_t name = cuda_correlation_find(CUDA_LAUNCH_NAME, id);
        ck_assert(stack == 0 || stack == value_of(id));
        ck_assert(name == 0 || name == value_of(id));
        stacks += stack && !found[id];
        found[id] |= stack != 0;
        names += name != 0;
        if (id % 1000 == 0) { /* as the decoder does between flushes */
            cuda_correlation_of_call(id);
            cuda_correlation_tick(false);
        }
        id = id % (WRITERS * KEPT) + 1;
        done += id == 1 && atomic_load(&writing) == 0;
    }
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(writers[i], NULL);
    ck_assert_uint_ge(names, SLOTS);
    ck_assert_uint_ge(stacks, STACK_SLOTS);
    if (stacks < WRITERS * KEPT)
        ck_assert_ptr_nonnull(strstr(lost(), "calls lost their stacks"));
    sscanf(core.health, "%lu", &count);
    ck_assert_uint_ge(stacks + count, WRITERS * KEPT);
}
END_TEST

void add_correlation_tests(TCase *cases)
{
    tcase_add_test(cases, later_calls_overwrite);
    tcase_add_test(cases, ids_that_come_again);
    tcase_add_test(cases, threads_write_while_one_reads);
}
