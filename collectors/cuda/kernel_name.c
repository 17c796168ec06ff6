/* Just enough of the Itanium C++ ABI's mangling (section 5.1) to give a kernel the name that its
 * author knows: the C++ runtime's demangler allocates, and is not among what the collector links.
 */
#include <stdio.h>
#include <string.h>

#include "collectors/cuda/kernel_name.h"

#define ANONYMOUS "_GLOBAL__N_"

/* <source-name>: its length in decimal, then so many bytes. NULL at anything else. */
static const char *source_name(const char **at, size_t *bytes)
{
    const char *text = *at;
    *bytes = 0;
    while (*text >= '0' && *text <= '9' && *bytes < 4096)
        *bytes = *bytes * 10 + (size_t)(*text++ - '0');
    if (!*bytes || strnlen(text, *bytes) < *bytes)
        return NULL;
    *at = text + *bytes;
    return text;
}

bool cuda_kernel_plain_name(const char *symbol, char *out, size_t size)
{
    size_t used = 0, bytes;
    if (strncmp(symbol, "_Z", 2) != 0)
        return false;
    const char *at = symbol + 2;
    bool nested = *at == 'N';
    at += nested ? 1 + strspn(at + 1, "rVK") : 0; /* of a member function */
    do {
        if (strncmp(at, "St", 2) == 0) {
            at += 2;
            used += (size_t)snprintf(out + used, size - used, "%sstd", used ? "::" : "");
            nested = true; /* "St" is followed by a name also outside N..E */
            continue;
        }
        at += *at == 'L'; /* static */
        const char *name = source_name(&at, &bytes);
        if (!name)
            break;
        bool anonymous = strncmp(name, ANONYMOUS, sizeof ANONYMOUS - 1) == 0;
        used += (size_t)snprintf(out + used, size - used, "%s%.*s", used ? "::" : "",
                                 anonymous ? 21 : (int)bytes,
                                 anonymous ? "(anonymous namespace)" : name);
    } while (nested && used < size);
    return used > 0 && used < size;
}
