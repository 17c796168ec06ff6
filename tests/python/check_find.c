/* An interpreter that a program loads (for all to see, or `local`) and unloads: check_find PROBE
 * [local]. Looking for one that is not there opens nothing, and what was found stays where it is.
 * Exits 77 without a libpython. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char *const libraries[] = {"libpython3.10.so.1.0", "libpython3.11.so.1.0",
                                        "libpython3.12.so.1.0", "libpython3.13.so.1.0"};
static unsigned opened;

/* What the probe calls in place of the loader's. */
__attribute__((visibility("default"))) void *dlopen(const char *name, int flags)
{
    void *(*real)(const char *name, int flags);
    void *symbol = dlsym(RTLD_NEXT, "dlopen");
    memcpy(&real, &symbol, sizeof symbol);
    opened++;
    return real(name, flags);
}

static int fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    return 1;
}

int main(int argc, char **argv)
{
    size_t (*take)(uint64_t * out, size_t room, size_t depth);
    void *probe = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    void *symbol = probe ? dlsym(probe, "probe_stack") : NULL, *library = NULL;
    if (!symbol)
        return fail(probe ? "no probe_stack" : dlerror());
    memcpy(&take, &symbol, sizeof symbol);
    opened = 0;
    take(NULL, 0, 0);
    if (opened != 0)
        return fail("something was opened in the search for an interpreter");
    int scope = argc > 2 && strcmp(argv[2], "local") == 0 ? RTLD_LOCAL : RTLD_GLOBAL;
    for (size_t i = 0; !library && i < sizeof libraries / sizeof libraries[0]; i++)
        library = dlopen(libraries[i], RTLD_NOW | scope);
    if (!library)
        return 77;
    void *inside = dlsym(library, "Py_IsInitialized");
    take(NULL, 0, 0);
    dlclose(library);
    Dl_info info;
    if (!inside || !dladdr(inside, &info))
        return fail("the interpreter is gone");
    take(NULL, 0, 0); /* calls functions of the interpreter */
    return 0;
}
