/* 64-bit arithmetic that stops at the ends: a damaged capture may hold any number. */
#ifndef PERFKIT_BASE_SATURATE_H
#define PERFKIT_BASE_SATURATE_H

#include <stdint.h>

static inline int64_t prof_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum))
        return sum;
    return b > 0 ? INT64_MAX : INT64_MIN + 1; /* INT64_MIN means unknown */
}

static inline int64_t prof_subtract(int64_t a, int64_t b)
{
    int64_t difference;
    if (!__builtin_sub_overflow(a, b, &difference))
        return difference;
    return b < 0 ? INT64_MAX : INT64_MIN + 1;
}

static inline int64_t prof_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t prof_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
