/* Number formats; see format.h. Written without printf's %f because that obeys the locale: a German
 * user's JSON must not say 1,5. */
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/format.h"

static const struct prof_text unknown = {"n/a"};

static unsigned decimal_digits(uint64_t value)
{
    static const uint64_t powers[] = {0,
                                      10,
                                      100,
                                      1000,
                                      10000,
                                      100000,
                                      1000000,
                                      10000000,
                                      100000000,
                                      1000000000,
                                      10000000000,
                                      100000000000,
                                      1000000000000,
                                      10000000000000,
                                      100000000000000,
                                      1000000000000000,
                                      10000000000000000,
                                      100000000000000000,
                                      1000000000000000000,
                                      10000000000000000000u};
    unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
    unsigned below = bits * 1233 >> 12; /* log10(2) = 1233 / 4096, rounded down: right to 2^64 */
    return below + (value >= powers[below]);
}

size_t prof_print_uint(char *out, uint64_t value)
{
    static const char pairs[] =
        "00010203040506070809101112131415161718192021222324252627282930313233"
        "34353637383940414243444546474849505152535455565758596061626364656667"
        "6869707172737475767778798081828384858687888990919293949596979899";
    size_t length = value ? decimal_digits(value) : 1;
    char *at = out + length;
    *at = 0;
    for (; value >= 10000; value /= 10000) {
        unsigned four = (unsigned)(value % 10000);
        memcpy(at -= 2, pairs + four % 100 * 2, 2);
        memcpy(at -= 2, pairs + four / 100 * 2, 2);
    }
    unsigned rest = (unsigned)value;
    for (; rest >= 100; rest /= 100)
        memcpy(at -= 2, pairs + rest % 100 * 2, 2);
    if (rest >= 10)
        memcpy(at - 2, pairs + rest * 2, 2);
    else
        at[-1] = (char)('0' + rest);
    return length;
}

size_t prof_print_int(char *out, int64_t value)
{
    if (value >= 0)
        return prof_print_uint(out, (uint64_t)value);
    out[0] = '-';
    return 1 + prof_print_uint(out + 1, 0 - (uint64_t)value);
}

size_t prof_print_real(char *out, double value)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, 64, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            break;
    }
    /* The locale's decimal sign may be a comma or several bytes long. */
    size_t from = strcspn(out, "0123456789");
    from += strspn(out + from, "0123456789");
    size_t sign = strcspn(out + from, "0123456789e");
    if (sign) {
        out[from] = '.';
        memmove(out + from + 1, out + from + sign, strlen(out + from + sign) + 1);
    }
    return strlen(out);
}

size_t prof_print_fixed(char *out, double value, int decimals)
{
    static const uint64_t powers[] = {1,      10,      100,      1000,      10000,
                                      100000, 1000000, 10000000, 100000000, 1000000000};
    uint64_t scale = powers[decimals < 0 ? 0 : decimals > 9 ? 9 : decimals];
    double size = fabs(value), whole = floor(size);
    uint64_t units = (uint64_t)whole;
    uint64_t part = (uint64_t)floor((size - whole) * (double)scale + 0.5);
    if (part >= scale) {
        part -= scale;
        units++;
    }
    size_t n = 0;
    if (value < 0 && (units || part))
        out[n++] = '-';
    n += prof_print_uint(out + n, units);
    if (scale > 1) {
        out[n++] = '.';
        for (uint64_t digit = scale / 10; digit; digit /= 10)
            out[n++] = (char)('0' + part / digit % 10);
    }
    out[n] = 0;
    return n;
}

/* Three significant digits and a unit. */
static struct prof_text with_unit(double value, const char *unit)
{
    struct prof_text t;
    double size = fabs(value);
    int decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
    size_t n = prof_print_fixed(t.text, value, decimals);
    snprintf(t.text + n, sizeof t.text - n, " %s", unit);
    return t;
}

static struct prof_text long_duration(double ns)
{
    struct prof_text t;
    uint64_t seconds = (uint64_t)(fabs(ns) / 1e9 + 0.5);
    uint64_t hours = seconds / 3600, minutes = seconds / 60 % 60;
    const char *sign = ns < 0 ? "-" : "";
    if (hours)
        snprintf(t.text, sizeof t.text, "%s%llu h %02llu min", sign, (unsigned long long)hours,
                 (unsigned long long)minutes);
    else
        snprintf(t.text, sizeof t.text, "%s%llu min %02llu s", sign, (unsigned long long)minutes,
                 (unsigned long long)(seconds % 60));
    return t;
}

struct prof_text prof_duration(double ns)
{
    if (!isfinite(ns))
        return unknown;
    double size = fabs(ns);
    if (size < 999.5) {
        struct prof_text t;
        size_t n = prof_print_fixed(t.text, ns, size == floor(size) ? 0 : size < 9.95 ? 1 : 0);
        memcpy(t.text + n, " ns", 4);
        return t;
    }
    if (size < 999.5e3)
        return with_unit(ns / 1e3, "us");
    if (size < 999.5e6)
        return with_unit(ns / 1e6, "ms");
    if (size < 59.95e9)
        return with_unit(ns / 1e9, "s");
    return long_duration(ns);
}

struct prof_text prof_duration_ns(int64_t ns)
{
    return ns == PROF_UNKNOWN ? unknown : prof_duration((double)ns);
}

static struct prof_text scaled(double value, double base, const char *const *units, int last)
{
    int i = 0;
    while (i < last && fabs(value) >= base * 0.9995) {
        value /= base;
        i++;
    }
    if (!i) {
        struct prof_text t;
        size_t n = prof_print_fixed(t.text, value, value == floor(value) ? 0 : 1);
        snprintf(t.text + n, sizeof t.text - n, " %s", units[0]);
        return t;
    }
    if (fabs(value) >= 1e15) {
        struct prof_text t;
        snprintf(t.text, sizeof t.text, "%.3g %s", value, units[i]);
        return t;
    }
    return with_unit(value, units[i]);
}

struct prof_text prof_bytes(double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    return isfinite(bytes) ? scaled(bytes, 1024, units, 6) : unknown;
}

struct prof_text prof_bytes_of(int64_t bytes)
{
    return bytes == PROF_UNKNOWN ? unknown : prof_bytes((double)bytes);
}

struct prof_text prof_rate(double bytes_per_second)
{
    static const char *const units[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"};
    return isfinite(bytes_per_second) ? scaled(bytes_per_second, 1000, units, 5) : unknown;
}

struct prof_text prof_flop_rate(double flop_per_second)
{
    static const char *const units[] = {"FLOP/s",  "kFLOP/s", "MFLOP/s",
                                        "GFLOP/s", "TFLOP/s", "PFLOP/s"};
    return isfinite(flop_per_second) ? scaled(flop_per_second, 1000, units, 5) : unknown;
}

struct prof_text prof_joules(double joules)
{
    static const char *const units[] = {"mJ", "J", "kJ", "MJ", "GJ"};
    return isfinite(joules) ? scaled(joules * 1000, 1000, units, 4) : unknown;
}

struct prof_text prof_watts(double watts)
{
    return isfinite(watts) ? with_unit(watts, "W") : unknown;
}

struct prof_text prof_ratio(double ratio)
{
    struct prof_text t;
    double size = fabs(ratio);
    if (!isfinite(ratio))
        return unknown;
    if (size >= 999.5 && size < 999999.5)
        return prof_count(llround(ratio));
    if (size >= 1000 || (size < 0.001 && size > 0))
        snprintf(t.text, sizeof t.text, "%.2e", ratio);
    else
        prof_print_fixed(t.text, ratio,
                         !size         ? 0
                         : size < 0.01 ? 5
                         : size < 0.1  ? 4
                         : size < 1    ? 3
                         : size < 10   ? 2
                         : size < 100  ? 1
                                       : 0);
    return t;
}

struct prof_text prof_count(int64_t count)
{
    if (count == PROF_UNKNOWN)
        return unknown;
    char digits[32];
    size_t length = prof_print_uint(digits, count < 0 ? 0 - (uint64_t)count : (uint64_t)count);
    struct prof_text t;
    size_t n = 0;
    if (count < 0)
        t.text[n++] = '-';
    for (size_t i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            t.text[n++] = ',';
        t.text[n++] = digits[i];
    }
    t.text[n] = 0;
    return t;
}

struct prof_text prof_signal(int64_t number)
{
    static const char *const names[] = {
#define NAME(name) [name] = #name
        NAME(SIGHUP),  NAME(SIGINT),    NAME(SIGQUIT), NAME(SIGILL),  NAME(SIGTRAP), NAME(SIGABRT),
        NAME(SIGBUS),  NAME(SIGFPE),    NAME(SIGKILL), NAME(SIGUSR1), NAME(SIGSEGV), NAME(SIGUSR2),
        NAME(SIGPIPE), NAME(SIGALRM),   NAME(SIGTERM), NAME(SIGXCPU), NAME(SIGXFSZ), NAME(SIGPROF),
        NAME(SIGSYS),  NAME(SIGVTALRM), NAME(SIGIO),   NAME(SIGPWR),
#undef NAME
    };
    struct prof_text t;
    if (number > 0 && (uint64_t)number < sizeof names / sizeof names[0] && names[number])
        snprintf(t.text, sizeof t.text, "%s (%lld)", names[number], (long long)number);
    else
        snprintf(t.text, sizeof t.text, "signal %lld", (long long)number);
    return t;
}

struct prof_text prof_counted(int64_t count, const char *one, const char *many)
{
    struct prof_text text = prof_count(count);
    size_t n = strlen(text.text);
    snprintf(text.text + n, sizeof text.text - n, " %s", count == 1 ? one : many);
    return text;
}

struct prof_text prof_percent(double share)
{
    if (!isfinite(share) || fabs(share) > 1e12)
        return unknown;
    struct prof_text t;
    if (share > 0 && share < 0.0005)
        return (struct prof_text){"<0.1 %"};
    if (share >= 0.9995 && share < 1 - 1e-9)
        return (struct prof_text){">99.9 %"};
    size_t n = prof_print_fixed(t.text, share * 100, 1);
    memcpy(t.text + n, " %", 3);
    return t;
}

void prof_append(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

void prof_print_quoted(FILE *out, const struct prof_quoting *quoting, const char *format,
                       va_list arguments)
{
    for (;;) {
        size_t plain = strcspn(format, "%");
        fwrite(format, 1, plain, out);
        format += plain;
        if (!*format)
            return;
        size_t modifiers = strspn(++format, "lz");
        char number[64];
        switch (format[modifiers]) {
        case 's':
            quoting->text(out, va_arg(arguments, const char *));
            break;
        case 'f':
            quoting->real(out, va_arg(arguments, double));
            break;
        case 'd':
            prof_print_int(number,
                           modifiers ? va_arg(arguments, long long) : va_arg(arguments, int));
            fputs(number, out);
            break;
        case 'u':
            prof_print_uint(number, va_arg(arguments, size_t));
            fputs(number, out);
            break;
        default:
            fputc(format[modifiers], out);
        }
        format += modifiers + 1;
    }
}
