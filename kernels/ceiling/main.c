/* perfkit-measure: measures one device and prints what it found, a line each:
 *     device <tab> name
 *     ceiling <tab> name <tab> value <tab> how       bytes/s, FLOP/s, or ns
 *     library <tab> name <tab> value <tab> how       the same by a library, with
 * --against-libraries none <tab> name <tab> <tab> why A program of its own, started by `perfkit
 * device --measure`: it links the kernels, which the perfkit command does not, and a driver that
 * crashes takes only this one with it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ceiling/ceiling.h"

struct request {
    enum dev_backend backend;
    uint32_t nth;
    bool libraries;
    struct ceiling_plan plan;
};

static const char usage[] =
    "usage: perfkit-measure [--backend cuda|opencl|cpu] [--device N] [--only NAME,...] [--quick]\n"
    "                       [--against-libraries]\n"
    "Measures what a device can do. Usually started by `perfkit device --measure`.\n";

/* A tab or a line break in a text (a device's name) would be taken for the end of a field. */
static void line(const char *what, const char *name, const double *value, const char *text)
{
    printf("%s\t%s\t", what, name);
    if (value)
        printf("%.17g", *value);
    putchar('\t');
    for (; *text; text++)
        putchar((unsigned char)*text < ' ' ? ' ' : *text);
    putchar('\n');
    fflush(stdout);
}

static void ceiling(void *user, const struct ceiling_result *result)
{
    line(result->ok ? user : "none", result->name, result->ok ? &result->value : NULL, result->how);
}

static bool read_backend(const char *word, enum dev_backend *backend)
{
    for (enum dev_backend b = DEV_CUDA; b <= DEV_CPU; b++) {
        if (strcmp(word, dev_backend_name(b)) == 0) {
            *backend = b;
            return true;
        }
    }
    return false;
}

/* False: say how it is used. */
static bool read_arguments(int argc, char **argv, struct request *request)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        char *end = NULL;

        if (strcmp(argv[i], "--quick") == 0) {
            request->plan.quick = true;
        } else if (strcmp(argv[i], "--against-libraries") == 0) {
            request->libraries = true;
        } else if (value && strcmp(argv[i], "--only") == 0) {
            request->plan.only = argv[++i];
        } else if (value && strcmp(argv[i], "--backend") == 0) {
            if (!read_backend(argv[++i], &request->backend))
                return false;
        } else if (value && strcmp(argv[i], "--device") == 0) {
            request->nth = (uint32_t)strtoul(argv[++i], &end, 10);
            if (end == argv[i] || *end)
                return false;
        } else {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    struct request request = {.backend = DEV_CPU};
    char why[512] = "", ceiling_word[] = "ceiling", library_word[] = "library";
    struct dev *dev;

    if (!read_arguments(argc, argv, &request)) {
        fputs(usage, stderr);
        return 2;
    }
    if (dev_open_nth(request.backend, request.nth, 0, &dev, why, sizeof why) != 0) {
        fprintf(stderr, "perfkit-measure: %s: %s\n", dev_backend_name(request.backend), why);
        return 1;
    }
    line("device", dev_info(dev)->name, NULL, dev_info(dev)->platform);
    int status = ceiling_measure(dev, &request.plan, ceiling, ceiling_word);
    if (status != 0)
        fprintf(stderr, "perfkit-measure: %s\n", dev_error_text(dev));
    if (status == 0 && request.libraries &&
        ceiling_libraries(dev, &request.plan, ceiling, library_word, why, sizeof why) != 0)
        line("none", "libraries", NULL, why);
    dev_close(dev);
    return status == 0 ? 0 : 1;
}
