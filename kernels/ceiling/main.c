/* perfkit-measure: measures one device and prints what it found, a JSON object on a line each, with
 * the members what, name, value and how. By `what`:
 *     device        its name
 *     ceiling       value: bytes/s, FLOP/s, or ns
 *     sustained     the same after a second of nothing else
 *     library       with --against-libraries: what others reach
 *     call          with --calls, alone: ns a call
 *     none          no value; how: why
 * A program of its own, started by `perfkit device --measure`: it links the kernels, which the
 * perfkit command does not, and a driver that crashes takes only this one with it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "kernels/ceiling/ceiling.h"
#include "kernels/gemm/gemm.h"

struct request {
    enum dev_backend backend;
    uint32_t nth;
    bool libraries, calls;
    struct ceiling_plan plan;
};

static const char usage[] =
    "usage: perfkit-measure [--backend cuda|opencl|cpu] [--device N] [--only NAME,...] [--quick]\n"
    "                       [--against-libraries | --calls]\n"
    "Measures what a device can do. Usually started by `perfkit device --measure`.\n";

static void line(const char *what, const char *name, const double *value, const char *text)
{
    cJSON *row = cJSON_CreateObject();
    char *json = NULL;

    if (cJSON_AddStringToObject(row, "what", what) && cJSON_AddStringToObject(row, "name", name) &&
        (!value || cJSON_AddNumberToObject(row, "value", *value)) &&
        cJSON_AddStringToObject(row, "how", text))
        json = cJSON_PrintUnformatted(row);
    if (!json) {
        fputs("perfkit-measure: out of memory\n", stderr);
        exit(1);
    }
    puts(json);
    fflush(stdout);
    cJSON_free(json);
    cJSON_Delete(row);
}

static void tell(void *user, const struct ceiling_result *result)
{
    const struct request *request = user;

    line(result->ok ? "ceiling" : "none", result->name, result->ok ? &result->value : NULL,
         result->how);
    if (result->ok && result->sustained > 0)
        line("sustained", result->name, &result->sustained, "");
    if (result->ok && result->pipe && request->libraries)
        line("library", result->pipe, &result->value, result->how);
}

static void tell_call(void *user, const struct ceiling_result *result)
{
    (void)user;
    line("call", result->name, &result->value, "");
}

static void tell_library(void *user, const struct ceiling_result *result)
{
    (void)user;
    line("library", result->name, &result->value, result->how);
}

/* Devices that no library is for are not spoken of. */
static void measure_matmul(struct dev *dev, struct request *request)
{
    char why[512] = "no libcublas.so on this machine", text[600];
    void *object;

    if (dev_info(dev)->backend != DEV_CUDA || !ceiling_matmul_wanted(&request->plan))
        return;
    object = gemm_library_load();
    if (!object ||
        ceiling_matmul(dev, object, &request->plan, tell, request, why, sizeof why) != 0) {
        snprintf(text, sizeof text, "matrix products: %s", why);
        line("none", "libraries", NULL, text);
    }
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
        } else if (strcmp(argv[i], "--calls") == 0) {
            request->calls = true;
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
    char why[512] = "";
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
    int status = request.calls ? ceiling_calls(dev, &request.plan, tell_call, NULL)
                               : ceiling_measure(dev, &request.plan, tell, &request);
    if (status != 0)
        fprintf(stderr, "perfkit-measure: %s\n", dev_error_text(dev));
    if (status == 0 && request.libraries && ceiling_wanted(&request.plan, "dram_copy"))
        status = ceiling_copies(dev, &request.plan, tell_library, NULL);
    if (status == 0 && !request.calls)
        measure_matmul(dev, &request);
    dev_close(dev);
    return status == 0 ? 0 : 1;
}
