/* Machine code of any content: lines, barriers and symbols of functions at any offset. Input: the
 * offset, then the cubin. */
#include <stdlib.h>
#include <string.h>

#include "libprof/store/cubin.h"
#include "tests/fuzz/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const functions[] = {"plain", "inlined", "fenced", "plain", ""};
    uint64_t asked;
    struct prof_cubin *cubin;
    if (size <= sizeof asked)
        return 0;
    memcpy(&asked, data, sizeof asked);
    uint8_t *copy = malloc(size - sizeof asked);
    if (!copy)
        abort();
    memcpy(copy, data + sizeof asked, size - sizeof asked);
    if (prof_cubin_of(copy, size - sizeof asked, &cubin, NULL))
        return 0;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        for (uint64_t offset = asked; offset - asked <= 1024; offset += 16) {
            const char *file;
            uint32_t line;
            uint64_t barrier = prof_cubin_barrier(cubin, functions[i], offset);
            if (barrier > offset || offset - barrier > 256)
                abort();
            if (prof_cubin_line(cubin, functions[i], offset, &file, &line) &&
                strnlen(file, 4096) == 4096)
                abort();
        }
        prof_cubin_symbol(cubin, functions[i]);
    }
    prof_cubin_close(cubin);
    return 0;
}
