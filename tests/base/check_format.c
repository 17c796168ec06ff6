/* Numbers as people read them, at the edges where units change; and error texts. */
#include <errno.h>
#include <math.h>

#include "libprof/base/error.h"
#include "libprof/base/format.h"
#include "tests/check_main.h"

START_TEST(durations)
{
    static const struct {
        double ns;
        const char *text;
    } cases[] = {
        {0, "0 ns"},           {1, "1 ns"},           {0.25, "0.3 ns"},     {999, "999 ns"},
        {999.6, "1.00 us"},    {1000, "1.00 us"},     {1234, "1.23 us"},    {12345, "12.3 us"},
        {123456, "123 us"},    {999499, "999 us"},    {999500, "1.00 ms"},  {1234567, "1.23 ms"},
        {9994999, "9.99 ms"},  {9995001, "10.0 ms"},  {45.6e6, "45.6 ms"},  {7.89e9, "7.89 s"},
        {59.94e9, "59.9 s"},   {60e9, "1 min 00 s"},  {123e9, "2 min 03 s"}, {3900e9, "1 h 05 min"},
        {-1500, "-1.50 us"},   {-7200e9, "-2 h 00 min"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_str_eq(prof_duration(cases[i].ns).text, cases[i].text);
    ck_assert_str_eq(prof_duration(NAN).text, "n/a");
    ck_assert_str_eq(prof_duration_ns(PROF_UNKNOWN).text, "n/a");
    ck_assert_str_eq(prof_duration_ns(INT64_MAX).text, "2562047 h 47 min");
}
END_TEST

START_TEST(bytes_and_rates)
{
    ck_assert_str_eq(prof_bytes(0).text, "0 B");
    ck_assert_str_eq(prof_bytes(17).text, "17 B");
    ck_assert_str_eq(prof_bytes(1023).text, "1023 B");
    ck_assert_str_eq(prof_bytes(1024).text, "1.00 KiB");
    ck_assert_str_eq(prof_bytes(4 << 20).text, "4.00 MiB");
    ck_assert_str_eq(prof_bytes(1.5 * (1 << 30)).text, "1.50 GiB");
    ck_assert_str_eq(prof_bytes(9.3e18).text, "8.07 EiB");
    ck_assert_str_eq(prof_bytes(-2048).text, "-2.00 KiB");
    ck_assert_str_eq(prof_bytes(NAN).text, "n/a");
    ck_assert_str_eq(prof_bytes_of(PROF_UNKNOWN).text, "n/a");
    ck_assert_str_eq(prof_rate(24.6e9).text, "24.6 GB/s");
    ck_assert_str_eq(prof_rate(999.6e6).text, "1.00 GB/s");
    ck_assert_str_eq(prof_rate(12).text, "12 B/s");
}
END_TEST

START_TEST(integers_of_every_length)
{
    char out[32], expected[32];
    for (uint64_t power = 1;; power *= 10) {
        for (uint64_t value = power - 1; value <= power + 1; value++) {
            int length = snprintf(expected, sizeof expected, "%llu", (unsigned long long)value);
            ck_assert_uint_eq(prof_print_uint(out, value), (size_t)length);
            ck_assert_str_eq(out, expected);
        }
        if (power > UINT64_MAX / 10)
            break;
    }
    for (unsigned bits = 0; bits <= 64; bits++) {
        uint64_t value = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - (bits & 1);
        snprintf(expected, sizeof expected, "%llu", (unsigned long long)value);
        prof_print_uint(out, value);
        ck_assert_str_eq(out, expected);
    }
    ck_assert_uint_eq(prof_print_int(out, INT64_MIN), 20);
    ck_assert_str_eq(out, "-9223372036854775808");
}
END_TEST

START_TEST(counts_and_shares)
{
    ck_assert_str_eq(prof_count(0).text, "0");
    ck_assert_str_eq(prof_count(999).text, "999");
    ck_assert_str_eq(prof_count(1000).text, "1,000");
    ck_assert_str_eq(prof_count(-1234567).text, "-1,234,567");
    ck_assert_str_eq(prof_count(INT64_MAX).text, "9,223,372,036,854,775,807");
    ck_assert_str_eq(prof_count(PROF_UNKNOWN).text, "n/a");
    ck_assert_str_eq(prof_counted(1, "copy", "copies").text, "1 copy");
    ck_assert_str_eq(prof_counted(0, "copy", "copies").text, "0 copies");
    ck_assert_str_eq(prof_counted(1234, "copy", "copies").text, "1,234 copies");
    ck_assert_str_eq(prof_counted(INT64_MAX, "allocation", "allocations").text,
                     "9,223,372,036,854,775,807 allocations");
    ck_assert_str_eq(prof_ratio(0.01234).text, "0.0123");
    ck_assert_str_eq(prof_ratio(999.4).text, "999");
    ck_assert_str_eq(prof_ratio(999.6).text, "1,000");
    ck_assert_str_eq(prof_ratio(-1234.4).text, "-1,234");
    ck_assert_str_eq(prof_ratio(1234567).text, "1.23e+06");
    ck_assert_str_eq(prof_percent(0).text, "0.0 %");
    ck_assert_str_eq(prof_percent(0.0001).text, "<0.1 %");
    ck_assert_str_eq(prof_percent(0.1234).text, "12.3 %");
    ck_assert_str_eq(prof_percent(0.9994).text, "99.9 %");
    ck_assert_str_eq(prof_percent(0.9996).text, ">99.9 %");
    ck_assert_str_eq(prof_percent(1).text, "100.0 %");
    ck_assert_str_eq(prof_percent(NAN).text, "n/a");
    char text[12] = "";
    prof_append(text, sizeof text, "%d of %d", 1, 2);
    prof_append(text, sizeof text, ", %s", "three");
    prof_append(text, sizeof text, ", %s", "four");
    ck_assert_str_eq(text, "1 of 2, thr");
}
END_TEST

START_TEST(fixed_decimals)
{
    char out[64];
    prof_print_fixed(out, 0.9999, 3);
    ck_assert_str_eq(out, "1.000");
    prof_print_fixed(out, -0.0004, 3);
    ck_assert_str_eq(out, "0.000");
    prof_print_fixed(out, -12.3456, 2);
    ck_assert_str_eq(out, "-12.35");
    prof_print_fixed(out, 5, 0);
    ck_assert_str_eq(out, "5");
    prof_print_fixed(out, 1.000000001, 9);
    ck_assert_str_eq(out, "1.000000001");
}
END_TEST

START_TEST(errors_say_what_and_why)
{
    struct prof_error err = {0};
    ck_assert_int_eq(prof_fail(&err, PROF_BUSY, "%s is %d", "x", 3), PROF_BUSY);
    ck_assert_int_eq(err.status, PROF_BUSY);
    ck_assert_str_eq(err.message, "x is 3");
    errno = EACCES;
    ck_assert_int_eq(prof_fail_errno(&err, PROF_IO, "cannot read %s", "y"), PROF_IO);
    ck_assert_str_eq(err.message, "cannot read y: Permission denied");
    ck_assert_int_eq(errno, EACCES);
    errno = ENOSPC;
    ck_assert_int_eq(prof_fail_errno(NULL, PROF_IO, "z"), PROF_FULL);
    ck_assert_str_eq(prof_status_text(PROF_CORRUPT), "damaged data");
    ck_assert_str_eq(prof_status_text((enum prof_status)999), "unknown status");
}
END_TEST

CHECK_MAIN("format", durations, bytes_and_rates, integers_of_every_length, counts_and_shares,
           fixed_decimals, errors_say_what_and_why)
