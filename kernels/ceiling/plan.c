/* Which ceilings a plan asks for. */
#include <string.h>

#include "kernels/ceiling/ceiling.h"

bool ceiling_wanted(const struct ceiling_plan *plan, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = plan->only; at && *at; at += strcspn(at, ",")) {
        at += *at == ',';
        if (strcspn(at, ",") == length && strncmp(at, name, length) == 0)
            return true;
    }
    return !plan->only;
}
