/* What of the regular expressions from outside is refused before the matcher sees it, and what is
 * not. */
#include <stdlib.h>
#include <string.h>

#include "libprof/base/utf8.h"
#include "tests/check_main.h"

START_TEST(ordinary_patterns_pass)
{
    static const char *const fine[] = {"",         "gemm",         "^kernel<(float|double)>$",
                                       "a{2,30}b", "[]1{]",        "[^]\\]{5}",
                                       "\\{2000}", "[[:alpha:]]+", "(a{30}){30}"};
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++)
        ck_assert_msg(!prof_pattern_excess(fine[i]), "%s: %s", fine[i],
                      prof_pattern_excess(fine[i]));
}
END_TEST

START_TEST(what_harms_is_refused)
{
    static const char *const bad[] = {"(a)\\1",      "a{1001}",
                                      "a{1,1001}",   "((a{255}){255}){255}",
                                      "[a]{40}{40}", "a{99999999999999999999}",
                                      "[\\]{2000}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(prof_pattern_excess(bad[i]), "%s", bad[i]);
    char deep[1002];
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    ck_assert_ptr_nonnull(prof_pattern_excess(deep));
}
END_TEST

CHECK_MAIN("pattern", ordinary_patterns_pass, what_harms_is_refused)
