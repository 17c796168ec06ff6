/* The main function of a Check program: CHECK_MAIN("name", test, test, ...). */
#ifndef PERFKIT_TESTS_CHECK_MAIN_H
#define PERFKIT_TESTS_CHECK_MAIN_H

#include <check.h>

#define CHECK_MAIN(name, ...)                                                                      \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const tests[] = {__VA_ARGS__};                                                \
        Suite *suite = suite_create(name);                                                         \
        TCase *core = tcase_create("core");                                                        \
        tcase_set_timeout(core, 300);                                                              \
        for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)                                \
            tcase_add_test(core, tests[i]);                                                        \
        suite_add_tcase(suite, core);                                                              \
        SRunner *runner = srunner_create(suite);                                                   \
        srunner_run_all(runner, CK_ENV);                                                           \
        int failed = srunner_ntests_failed(runner);                                                \
        srunner_free(runner);                                                                      \
        return failed != 0;                                                                        \
    }

#endif
