/* See exact_wanted.h. A name is matched once, at the kernel's first launch; the C library takes
 * memory for that, as CUPTI does for the counting. */
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/core/option_text.h"
#include "collectors/cuda/exact_wanted.h"
#include "collectors/cuda/kernel_name.h"

#define MAX_REGEX 1024 /* bytes of the option */

struct plain_launch { /* cuLaunchKernel, cuLaunchCooperativeKernel */
    const void *function;
    struct exact_shape shape;
};
struct extended_launch { /* cuLaunchKernelEx; CUlaunchConfig begins so */
    const struct exact_shape *config;
    const void *function;
};

static regex_t wanted_name;

bool exact_wanted_start(void)
{
    static char pattern[MAX_REGEX], why[MAX_REGEX + 128];
    if (!collector_option("exact", pattern, sizeof pattern))
        return false;
    option_decode(pattern);
    int failed = regcomp(&wanted_name, pattern, REG_EXTENDED | REG_NOSUB);
    if (failed == 0)
        return true;
    snprintf(why, sizeof why, "no launch was counted: '%s' is no regular expression", pattern);
    collector_health(WIRE_SOURCE_COUNTERS, WIRE_HEALTH_DEGRADED, why, (uint32_t)failed);
    return false;
}

static bool symbol_starts_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

bool exact_wanted_shape(const char *name, const CUpti_CallbackData *call, struct exact_shape *out)
{
    if (!call->functionParams || !call->symbolName)
        return false;
    if (symbol_starts_with(name, "cuLaunchKernelEx")) {
        const struct extended_launch *from = call->functionParams;
        if (!from->config)
            return false;
        *out = *from->config;
        return true;
    }
    if ((!symbol_starts_with(name, "cuLaunchKernel") &&
         !symbol_starts_with(name, "cuLaunchCooperativeKernel")) ||
        strstr(name, "MultiDevice")) /* before CUDA 13: several, which wait for each other */
        return false;
    const struct plain_launch *from = call->functionParams;
    *out = from->shape;
    return true;
}

static bool kernel_is_wanted(const char *symbol)
{
    char name[512];
    if (strstr(symbol, "nccl"))
        return false;
    return regexec(&wanted_name, symbol, 0, NULL, 0) == 0 ||
           (cuda_kernel_plain_name(symbol, name, sizeof name) &&
            regexec(&wanted_name, name, 0, NULL, 0) == 0);
}

/* Kernels take one place each, whatever their configurations: that of no blocks at all. */
struct exact_subject *exact_wanted_subject(const char *symbol, const struct exact_shape *shape,
                                           struct exact_subject **kernel, bool *full)
{
    static const struct exact_shape any = {.shared = 0};
    bool fresh;
    uint32_t name = collector_text(symbol);
    *full = false;
    *kernel = exact_subject_of(name, &any, &fresh);
    if (fresh)
        (*kernel)->given_up = !kernel_is_wanted(symbol);
    if (*kernel && (*kernel)->given_up)
        return NULL;
    struct exact_subject *subject = *kernel ? exact_subject_of(name, shape, &fresh) : NULL;
    if (subject && fresh)
        subject->wanted = true;
    *full = !subject;
    return subject;
}
