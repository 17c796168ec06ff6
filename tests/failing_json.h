/* cJSON with so many allocations, and no memory after them. */
#ifndef PERFKIT_TESTS_FAILING_JSON_H
#define PERFKIT_TESTS_FAILING_JSON_H

#include <cJSON.h>
#include <errno.h>
#include <stdlib.h>

static long allocations_allowed;

static void *allocate_if_allowed(size_t size)
{
    if (allocations_allowed-- > 0)
        return malloc(size);
    errno = ENOMEM;
    return NULL;
}

/* Until cJSON_InitHooks(NULL). */
static inline void let_json_fail(void)
{
    cJSON_Hooks hooks = {allocate_if_allowed, free};
    cJSON_InitHooks(&hooks);
}

#endif
