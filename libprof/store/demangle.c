/* Demangling by the C++ runtime's own function, through its C interface: the one implementation
 * that follows the compiler's mangling as it grows. */
#include <stddef.h>

#include "libprof/store/demangle.h"

/* From libstdc++ (Itanium C++ ABI, section 3.4); it has no C header. */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

char *prof_demangle(const char *mangled)
{
    if (mangled[0] != '_' || mangled[1] != 'Z')
        return NULL;
    int status = 0;
    return __cxa_demangle(mangled, NULL, NULL, &status);
}
