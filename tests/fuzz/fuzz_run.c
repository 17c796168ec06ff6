/* Kept runs of any content: refused, or read; and what was read is the same once written and read
 * again. */
#include <stdlib.h>
#include <string.h>

#include "libprof/include/prof_compare.h"
#include "tests/fuzz/image.h"

static char *encoded(struct prof_run *run)
{
    char *text = NULL;
    if (prof_run_encode(run, &text, NULL))
        abort();
    prof_run_free(run);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct prof_run run;
    char *text = strndup((const char *)data, size);
    if (!text)
        abort();
    if (!prof_run_decode(text, &run, NULL)) {
        char *once = encoded(&run);
        if (prof_run_decode(once, &run, NULL))
            abort();
        char *twice = encoded(&run);
        if (strcmp(once, twice) != 0)
            abort();
        free(once);
        free(twice);
    }
    free(text);
    return 0;
}
