/* The knobs of the fakes: numbers and texts in an environment variable, "name=value,...". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/fakes/internal.h"

const char *fake_knob_in(const char *variable, const char *name)
{
    const char *at = getenv(variable);
    size_t length = strlen(name);
    while (at && *at) {
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    return NULL;
}

static const char *knob_at(const char *name)
{
    return fake_knob_in("FAKE_CUPTI", name);
}

long fake_knob(const char *name, long otherwise)
{
    const char *at = knob_at(name);
    return at ? atol(at) : otherwise;
}

bool fake_knob_text(const char *name, char *value, size_t size)
{
    const char *at = knob_at(name);
    if (at)
        snprintf(value, size, "%.*s", (int)strcspn(at, ","), at);
    return at != NULL;
}
