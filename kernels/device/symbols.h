/* The functions of a library that is loaded at run time. */
#ifndef KERNELS_DEVICE_SYMBOLS_H
#define KERNELS_DEVICE_SYMBOLS_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct library_symbol {
    const char *name;
    void *slot; /* of a pointer to the function */
};

/* False when one is missing; those before it are set. */
static inline bool library_symbols(void *object, const struct library_symbol *symbols, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(object, symbols[i].name);

        if (!symbol)
            return false;
        memcpy(symbols[i].slot, &symbol, sizeof symbol);
    }
    return true;
}

#endif
