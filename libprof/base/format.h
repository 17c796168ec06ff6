/* Numbers as people read them: "1.23 ms", "4.0 MiB", "1,234,567", "12.3 %", "n/a".
 *
 * The functions return their text by value, so that several fit in one call of printf:
 *     fprintf(out, "%s of %s\n", prof_duration(a).text, prof_duration(b).text);
 * Unknown (PROF_UNKNOWN, NaN) is "n/a", never 0. The C library's locale plays no part.
 * Thread-safe. */
#ifndef PERFKIT_BASE_FORMAT_H
#define PERFKIT_BASE_FORMAT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An integer that the capture does not hold; in doubles NaN says the same. */
#ifndef PROF_UNKNOWN
#define PROF_UNKNOWN INT64_MIN
#endif

struct prof_text {
    char text[40];
};

/* ns as "0 ns", "999 ns", "1.23 us", "45.6 ms", "7.89 s", "2 min 03 s", "1 h 05 min": three
 * significant digits up to a minute. */
struct prof_text prof_duration(double ns);
struct prof_text prof_duration_ns(int64_t ns); /* PROF_UNKNOWN: n/a */

/* Bytes in powers of 1024: "17 B", "4.0 KiB", "1.50 GiB". */
struct prof_text prof_bytes(double bytes);
struct prof_text prof_bytes_of(int64_t bytes);

/* Bytes per second in powers of 1000, as link and memory speeds are given: "24.6 GB/s". */
struct prof_text prof_rate(double bytes_per_second);

/* Floating-point operations per second: "61.2 TFLOP/s". */
struct prof_text prof_flop_rate(double flop_per_second);

/* Energy and power: "645 J", "39.4 kJ", "512 W". */
struct prof_text prof_joules(double joules);
struct prof_text prof_watts(double watts);

/* A ratio with three significant digits, whole from 1,000 on: "0.0123", "1,234", "1.23e+06". */
struct prof_text prof_ratio(double ratio);

/* "1,234,567" */
struct prof_text prof_count(int64_t count);

/* "SIGSEGV (11)"; a signal without a name: "signal 40". */
struct prof_text prof_signal(int64_t number);

/* An amount with its noun: "1 copy", "1,234 copies". */
struct prof_text prof_counted(int64_t count, const char *one, const char *many);

/* A share 0..1 as "12.3 %"; below 0.05 % but not 0: "<0.1 %"; what that leaves: ">99.9 %". Sums of
 * shares that are 1 but for rounding are 1. */
struct prof_text prof_percent(double share);

/* Plain numbers into `out` (at least 64 bytes), NUL-terminated; they return the length. */
size_t prof_print_int(char *out, int64_t value);
size_t prof_print_uint(char *out, uint64_t value);
/* Shortest decimal that reads back as the same finite double. */
size_t prof_print_real(char *out, double value);
/* Fixed decimals (0..9), halves rounded away from 0; |value| < 1e18. */
size_t prof_print_fixed(char *out, double value, int decimals);

/* Append what fits to a text in `size` bytes. */
void prof_append(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* How a format writes a text and a real number, so that neither can be taken for its syntax. */
struct prof_quoting {
    void (*text)(FILE *out, const char *text);
    void (*real)(FILE *out, double value);
};

/* printf for formats with syntax of their own (markup, scripts): what stands for %s and %f is
 * quoted, the rest of `format` is the format's own. Knows %s, %f, %d, %lld, %zu and %%. */
void prof_print_quoted(FILE *out, const struct prof_quoting *quoting, const char *format,
                       va_list arguments);

#ifdef __cplusplus
}
#endif

#endif
