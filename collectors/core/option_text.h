/* Options that several sources read: the marks that --capture-range selects, and text that may hold
 * anything: '%' and ',' come as %XX (cli/run_scope.c). */
#ifndef PERFKIT_COLLECTORS_CORE_OPTION_TEXT_H
#define PERFKIT_COLLECTORS_CORE_OPTION_TEXT_H

#include <string.h>

#include "collectors/core/collector.h"

/* --capture-range: which marks of the program open a window; WIRE_WINDOW_UNKNOWN = none. */
static inline enum wire_window_reason option_capture(void)
{
    char kind[16];
    if (!collector_option("capture", kind, sizeof kind))
        return WIRE_WINDOW_UNKNOWN;
    return strcmp(kind, "nvtx") == 0              ? WIRE_WINDOW_RANGE
           : strcmp(kind, "cudaProfilerApi") == 0 ? WIRE_WINDOW_PROFILER
                                                  : WIRE_WINDOW_UNKNOWN;
}

/* Is the word one of a list ("cuda+nvtx+opencl")? */
static inline bool option_lists(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; *at;) {
        const char *end = strchrnul(at, '+');
        if ((size_t)(end - at) == length && memcmp(at, word, length) == 0)
            return true;
        at = *end ? end + 1 : end;
    }
    return false;
}

static inline unsigned option_digit(char c)
{
    return c >= '0' && c <= '9'   ? (unsigned)(c - '0')
           : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                  : 16;
}

/* %XX to bytes, in place. */
static inline void option_decode(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        if (at[0] == '%' && option_digit(at[1]) < 16 && option_digit(at[2]) < 16) {
            *to++ = (char)(option_digit(at[1]) << 4 | option_digit(at[2]));
            at += 2;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
}

#endif
