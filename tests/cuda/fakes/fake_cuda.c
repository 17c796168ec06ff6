/* A libcuda.so.1 whose cuInit does what the driver does for tools: it loads the library named by
 * CUDA_INJECTION64_PATH and calls its InitializeInjection. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    (void)flags;
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    void *symbol = library ? dlsym(library, "InitializeInjection") : NULL;
    if (symbol) {
        int (*inject)(void);
        memcpy(&inject, &symbol, sizeof inject);
        inject();
    }
    return 0;
}
