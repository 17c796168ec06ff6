/* The main function of a Check program: CHECK_MAIN("name", test, test, ...), or, where one of them
 * is a loop test, CHECK_MAIN_LOOPS("name", {test, 1}, {loop_test, loops}, ...). A program whose
 * tests need arguments, a fixture or preparation has a main of its own, which calls CHECK_RUN or
 * check_run. */
#ifndef PERFKIT_TESTS_CHECK_MAIN_H
#define PERFKIT_TESTS_CHECK_MAIN_H

#include <check.h>
#include <stddef.h>

struct check_test {
    const TTest *test;
    int loops; /* how often it runs; _i is the number of the run, from 0 */
};

/* A case of Check's, with a deadline that only ends a test that hangs. */
static inline TCase *check_case(Suite *suite, const char *name)
{
    TCase *tests = tcase_create(name);
    tcase_set_timeout(tests, 900);
    suite_add_tcase(suite, tests);
    return tests;
}

/* Returns the exit status of a program. */
static inline int check_run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* Each test in a process of its own, between SETUP and TEARDOWN, which may be NULL. */
static inline int check_run(const char *name, void (*setup)(void), void (*teardown)(void),
                            const struct check_test *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *core = check_case(suite, "core");
    tcase_add_checked_fixture(core, setup, teardown);
    for (size_t i = 0; i < count; i++)
        tcase_add_loop_test(core, tests[i].test, 0, tests[i].loops);
    return check_run_suite(suite);
}

/* One test, in this process, with nothing on the terminal: programs that make something by
 * what tests are made with. */
static inline int check_run_here(const TTest *test)
{
    Suite *suite = suite_create(test->name);
    tcase_add_test(check_case(suite, "core"), test);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#define CHECK_RUN(name, setup, teardown, ...)                                                      \
    check_run(name, setup, teardown, (const struct check_test[]){__VA_ARGS__},                     \
              sizeof(const struct check_test[]){__VA_ARGS__} / sizeof(struct check_test))

#define CHECK_MAIN_LOOPS(name, ...)                                                                \
    int main(void)                                                                                 \
    {                                                                                              \
        return CHECK_RUN(name, NULL, NULL, __VA_ARGS__);                                           \
    }

#define CHECK_MAIN(name, ...)                                                                      \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const only[] = {__VA_ARGS__};                                                 \
        struct check_test tests[sizeof only / sizeof only[0]];                                     \
        for (size_t i = 0; i < sizeof only / sizeof only[0]; i++)                                  \
            tests[i] = (struct check_test){only[i], 1};                                            \
        return check_run(name, NULL, NULL, tests, sizeof tests / sizeof tests[0]);                 \
    }

#endif
