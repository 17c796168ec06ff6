/* Extension functions bypass the layer's table: the program looks up an address and calls it. The
 * one that creates queues gets a wrapper, so that those queues are seen. Functions that put
 * commands or memory past the layer (command buffers, unified shared memory) get a counting
 * pass-through; of others of their families the capture at least says that they were fetched.
 *
 * Platforms may have different functions under one name. A pass-through has room for one address:
 * where a second platform differs, its program gets the driver's own address and a note is left. */
#include <string.h>

#include "collectors/opencl/hooks.h"
#include "collectors/opencl/ocl.h"

typedef void (*function)(void);

/* ---- queues from properties, before OpenCL 2.0 ----------------------------------------------- */

typedef cl_command_queue(CL_API_CALL *queue_function)(cl_context, cl_device_id,
                                                      const cl_queue_properties *, cl_int *);
static _Atomic(function) create_queue;

static cl_command_queue make_by_extension(void *real, cl_context context, cl_device_id device,
                                          const cl_queue_properties *list, cl_int *error)
{
    queue_function make;
    memcpy(&make, real, sizeof make);
    uintptr_t outer = ocl_enter();
    cl_command_queue queue = make(context, device, list, error);
    ocl_inside = outer;
    return queue;
}

static cl_command_queue CL_API_CALL pass_clCreateCommandQueueWithPropertiesKHR(
    cl_context context, cl_device_id device, const cl_queue_properties *list, cl_int *error)
{
    function real = atomic_load(&create_queue);
    return ocl_queue_create(make_by_extension, &real, context, device, list, true, error);
}

/* ---- counted, not recorded ------------------------------------------------------------------- */

#define X(type, name, parameters, arguments)                                                       \
    static _Atomic(function) real_##name;                                                          \
    static type CL_API_CALL pass_##name parameters                                                 \
    {                                                                                              \
        int saved = errno;                                                                         \
        if (ocl_on() && collector_recording())                                                     \
            collector_count(WIRE_COUNT_UNSEEN, 1);                                                 \
        errno = saved;                                                                             \
        return ((type(CL_API_CALL *) parameters)atomic_load(&real_##name))arguments;               \
    }
OCL_UNSEEN(X)
#undef X

static const struct {
    const char *name;
    _Atomic(function) *real;
    function pass;
} passes[] = {{"clCreateCommandQueueWithPropertiesKHR", &create_queue,
               (function)pass_clCreateCommandQueueWithPropertiesKHR},
#define X(type, name, parameters, arguments) {#name, &real_##name, (function)pass_##name},
              OCL_UNSEEN(X)
#undef X
};

/* Families that bypass the layer: an address in the program's hands is worth a note. */
static const char *const families[] = {"clCommand", "clEnqueue"};

static void note_extension(const char *text, const char *name)
{
    char sentence[256];
    size_t length = strlen(name), room = sizeof sentence - 1;
    memset(sentence, 0, sizeof sentence);
    memcpy(sentence, name, length < 100 ? length : 100);
    strncat(sentence, text, room - strlen(sentence));
    collector_health(WIRE_SOURCE_OPENCL, WIRE_HEALTH_NOTE, sentence, 0);
}

static void *stand_in(const char *name, void *found)
{
    if (!name || !found || !ocl_on())
        return found;
    function address;
    memcpy(&address, &found, sizeof address);
    for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++) {
        if (strcmp(name, passes[i].name) != 0)
            continue;
        function before = NULL;
        if (!atomic_compare_exchange_strong(passes[i].real, &before, address) &&
            before != address) {
            note_extension(": a second platform's is called past the collector", name);
            return found;
        }
        memcpy(&found, &passes[i].pass, sizeof found);
        return found;
    }
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        if (strncmp(name, families[i], strlen(families[i])) == 0) {
            note_extension(": fetched by the program; its commands are not recorded", name);
            break;
        }
    }
    return found;
}

void *CL_API_CALL ocl_clGetExtensionFunctionAddress(const char *name)
{
    void *found = OCL_CALL(clGetExtensionFunctionAddress, name);
    int saved = errno;
    found = stand_in(name, found);
    errno = saved;
    return found;
}

void *CL_API_CALL ocl_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
                                                               const char *name)
{
    void *found = OCL_CALL(clGetExtensionFunctionAddressForPlatform, platform, name);
    int saved = errno;
    found = stand_in(name, found);
    errno = saved;
    return found;
}
