/* perfkit/annotate.h against a tool of our own: every call arrives, from two modules, with the
 * declared work intact; without a tool, with a broken one, or with one that refuses, nothing
 * happens. Each case is a process of its own (Check forks), because a module attaches once.
 */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perfkit/annotate.h"
#include "tests/check_main.h"
#include "tests/workloads/injection.h"
#include "tests/workloads/module.h"

static struct injection_log *log_of_tool(void)
{
    void *library = dlopen(TEST_INJECTION, RTLD_NOW);
    injection_log_fn get = NULL;
    void *symbol;

    ck_assert_ptr_nonnull(library);
    symbol = dlsym(library, "injection_log");
    ck_assert_ptr_nonnull(symbol);
    memcpy(&get, &symbol, sizeof get);
    return get();
}

START_TEST(calls_arrive)
{
    struct injection_log *seen;

    setenv(PK_NVTX_ENV_INJECTION, TEST_INJECTION, 1);
    perfkit_range_push("outer");
    perfkit_range_pop();
    perfkit_mark("here");
    perfkit_range_end(perfkit_range_start("across"));
    perfkit_range_end(0);
    perfkit_thread_name("worker");
    seen = log_of_tool();
    ck_assert_int_eq(seen->bad_tables, 0);
    ck_assert_uint_eq(seen->client_version, 3);
    ck_assert_int_eq(seen->attached, 1);
    ck_assert_int_eq(seen->pushes, 1);
    ck_assert_int_eq(seen->pops, 1);
    ck_assert_int_eq(seen->marks, 1);
    ck_assert_int_eq(seen->starts, 1);
    ck_assert_int_eq(seen->ends, 1);
    ck_assert_int_eq(seen->thread_names, 1);
    ck_assert_uint_eq(seen->named_tid, (unsigned int)syscall(SYS_gettid));
    ck_assert_str_eq(seen->last_push, "outer");
    ck_assert_str_eq(seen->last_mark, "here");
    ck_assert_str_eq(seen->last_start, "across");
    ck_assert_str_eq(seen->last_thread, "worker");
    ck_assert_int_eq(seen->domains, 0); /* no declaration, no domain */
}
END_TEST

START_TEST(work_is_declared)
{
    struct injection_log *seen;

    setenv(PK_NVTX_ENV_INJECTION, TEST_INJECTION, 1);
    perfkit_work_push("gemm", 2e12, 3e9, NAN);
    perfkit_work_pop();
    perfkit_work_push("gemm 2", 5, 6, 7);
    perfkit_work_pop();
    seen = log_of_tool();
    ck_assert_int_eq(seen->bad_work, 0);
    ck_assert_int_eq(seen->work_pushes, 2);
    ck_assert_int_eq(seen->work_pops, 2);
    ck_assert_int_eq(seen->domains, 1);
    ck_assert_ptr_nonnull(seen->work_domain);
    ck_assert_str_eq(seen->domain_name, "perfkit");
    ck_assert_str_eq(seen->last_work, "gemm 2");
    ck_assert(seen->work.flop == 5 && seen->work.bytes_read == 6 && seen->work.bytes_written == 7);
}
END_TEST

START_TEST(collectives_are_told)
{
    struct injection_log *seen;

    setenv(PK_NVTX_ENV_INJECTION, TEST_INJECTION, 1);
    perfkit_collective_push("all_reduce", (uint64_t)5 << 32);
    perfkit_collective_pop();
    perfkit_collective_push("broadcast", 12);
    perfkit_collective_pop();
    seen = log_of_tool();
    ck_assert_int_eq(seen->collectives, 2);
    ck_assert_int_eq(seen->work_pushes + seen->bad_work, 0);
    ck_assert_int_eq(seen->work_pops, 2); /* of any domain */
    ck_assert_int_eq(seen->domains, 1);
    ck_assert_str_eq(seen->domain_name, "perfkit.collective");
    ck_assert_str_eq(seen->last_collective, "broadcast");
    ck_assert_uint_eq(seen->collective_bytes, 12);
    perfkit_collective_push("all_reduce", (uint64_t)5 << 32);
    ck_assert_uint_eq(seen->collective_bytes, (uint64_t)5 << 32);
    perfkit_work_push("beside", 1, 2, 3);
    perfkit_work_pop();
    perfkit_collective_pop();
    ck_assert_int_eq(seen->work_pushes, 1);
    ck_assert_int_eq(seen->domains, 2);
}
END_TEST

START_TEST(two_modules_attach_each)
{
    struct injection_log *seen;

    setenv(PK_NVTX_ENV_INJECTION, TEST_INJECTION, 1);
    perfkit_range_push("from the program");
    seen = log_of_tool();
    ck_assert_int_eq(seen->attached, 1);
    ck_assert_str_eq(seen->last_push, "from the program");
    module_annotate();
    ck_assert_int_eq(seen->attached, 2);
    ck_assert_str_eq(seen->last_push, "from the module");
    ck_assert_str_eq(seen->last_work, "module work");
    perfkit_range_pop();
    ck_assert_int_eq(seen->pushes, 2);
    ck_assert_int_eq(seen->pops, 2);
    ck_assert_int_eq(seen->bad_tables + seen->bad_work, 0);
}
END_TEST

START_TEST(nothing_without_a_tool)
{
    unsetenv(PK_NVTX_ENV_INJECTION);
    perfkit_range_push("nobody");
    perfkit_work_push("nobody", 1, 2, 3);
    perfkit_work_pop();
    perfkit_range_pop();
    ck_assert_uint_eq(perfkit_range_start("nobody"), 0);
    setenv(PK_NVTX_ENV_INJECTION, TEST_INJECTION, 1); /* too late: asked once */
    perfkit_mark("nobody");
    ck_assert_int_eq(log_of_tool()->calls, 0);
}
END_TEST

START_TEST(a_broken_tool_is_ignored)
{
    static const char *const paths[] = {"", "/nonexistent/tool.so", "libm.so.6"};

    setenv(PK_NVTX_ENV_INJECTION, paths[_i], 1);
    errno = EDOM;
    perfkit_range_push("nobody");
    perfkit_range_pop();
    ck_assert_int_eq(errno, EDOM);
}
END_TEST

START_TEST(a_refusing_tool_gets_nothing)
{
    struct injection_log *seen = log_of_tool(); /* keeps it loaded */

    setenv(PK_NVTX_ENV_INJECTION, TEST_INJECTION, 1);
    setenv("TEST_INJECTION_REFUSES", "1", 1);
    perfkit_range_push("nobody");
    perfkit_work_push("nobody", 1, 2, 3);
    ck_assert_int_eq(seen->attached, 1);
    ck_assert_int_eq(seen->calls, 0);
}
END_TEST

#define THREADS 8
#define PUSHES 1000

static void *annotate_much(void *barrier)
{
    pthread_barrier_wait(barrier);
    for (int i = 0; i < PUSHES; i++) {
        perfkit_work_push("threaded", 1, 1, 1);
        perfkit_work_pop();
    }
    return NULL;
}

START_TEST(threads_attach_once)
{
    pthread_t threads[THREADS];
    pthread_barrier_t barrier;
    struct injection_log *seen;

    setenv(PK_NVTX_ENV_INJECTION, TEST_INJECTION, 1);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, annotate_much, &barrier), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    seen = log_of_tool();
    ck_assert_int_eq(seen->attached, 1);
    ck_assert_int_eq(seen->domains, 1);
    ck_assert_int_eq(seen->work_pushes, THREADS * PUSHES);
    ck_assert_int_eq(seen->work_pops, THREADS * PUSHES);
}
END_TEST

static const char *const moments[] = {"load", "attach", "domain"};

static void *annotate_first(void *unused)
{
    perfkit_work_push("first", 1, 1, 1);
    perfkit_work_pop();
    return unused;
}

/* In a child that was forked while another thread of its parent was in the first annotation. */
static void annotate_in_child(bool attaches)
{
    struct injection_log *seen;
    int before;

    alarm(300);
    if (!attaches) { /* the library is half loaded: it cannot be asked either */
        errno = EDOM;
        perfkit_mark("child");
        _exit(errno != EDOM || perfkit_annotate_slot(PK_NVTX_MODULE_CORE, PK_NVTX_CORE_MARK_A));
    }
    seen = log_of_tool();
    before = seen->domains;
    errno = EDOM;
    perfkit_mark("child");
    perfkit_work_push("child", 1, 1, 1);
    perfkit_work_pop();
    _exit(errno != EDOM || seen->marks != 1 || seen->work_pushes != 1 || seen->work_pops != 1 ||
          seen->domains != before + 1 || !seen->work_domain);
}

START_TEST(a_child_forked_meanwhile_goes_on)
{
    const char *moment = moments[_i];
    char number[16], byte;
    int ends[2], status;
    pthread_t thread;
    pid_t child;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    snprintf(number, sizeof number, "%d", ends[1]);
    setenv("TEST_INJECTION_HOLD", moment, 1);
    setenv("TEST_INJECTION_HOLD_FD", number, 1);
    setenv(PK_NVTX_ENV_INJECTION, TEST_INJECTION, 1);
    if (strcmp(moment, "load") != 0)
        log_of_tool(); /* as with LD_PRELOAD: it is there already */
    ck_assert_int_eq(pthread_create(&thread, NULL, annotate_first, NULL), 0);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    child = fork();
    if (child == 0)
        annotate_in_child(strcmp(moment, "load") != 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(write(ends[0], &byte, 1), 1);
    pthread_join(thread, NULL);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(log_of_tool()->work_pushes, 1);
}
END_TEST

CHECK_MAIN_LOOPS("annotate", {calls_arrive, 1}, {work_is_declared, 1}, {collectives_are_told, 1},
                 {two_modules_attach_each, 1}, {nothing_without_a_tool, 1},
                 {a_broken_tool_is_ignored, 3}, {a_refusing_tool_gets_nothing, 1},
                 {threads_attach_once, 1}, {a_child_forked_meanwhile_goes_on, 3})
