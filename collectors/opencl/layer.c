/* The door to the OpenCL loader: it gives us the driver's functions, we give it the table of ours.
 * A slot that is NULL in our table falls through to the driver, so what is not hooked costs
 * nothing, and when there is no perfkit to record for, every slot is NULL. */
#include <stdlib.h>
#include <string.h>

#include "collectors/opencl/hooks.h"
#include "collectors/opencl/ocl.h"

#define EXPORT __attribute__((visibility("default")))

typedef intptr_t layer_properties; /* newer headers call it cl_layer_properties */
EXPORT cl_int CL_API_CALL clInitLayerWithProperties(cl_uint count, const cl_icd_dispatch *target,
                                                    cl_uint *count_ret,
                                                    const cl_icd_dispatch **layer_ret,
                                                    const layer_properties *properties);
EXPORT cl_int CL_API_CALL clDeinitLayer(void);

struct _cl_icd_dispatch ocl_next;
_Thread_local uintptr_t ocl_inside __attribute__((tls_model("initial-exec")));
_Atomic uint32_t ocl_epoch = 1;

static struct _cl_icd_dispatch ours;

struct row {
    size_t offset;
    void (*hook)(void);
};
#define X(function, klass)                                                                         \
    {offsetof(struct _cl_icd_dispatch, function), (void (*)(void))ocl_##function},
static const struct row rows[] = {OCL_HOOKS(X)};
#undef X

/* ---- the environment ------------------------------------------------------------------------- */

/* ocl-icd and Khronos' loader up to 2023 cut OPENCL_LAYERS at its first ':' while they parse it in
 * place, and children would then see only the first layer. The text as it was: from the time the
 * library was loaded (preloaded: before the loader), or from perfkit's options. */
static char layers_before[4096];

__attribute__((constructor)) static void remember_layers(void)
{
    const char *text = getenv("OPENCL_LAYERS");
    if (text && strlen(text) < sizeof layers_before)
        memcpy(layers_before, text, strlen(text) + 1);
}

static void repair_layer_list(void)
{
    char option[sizeof layers_before];
    const char *whole = layers_before;
    if (collector_option("opencl_layers", option, sizeof option))
        whole = option;
    const char *now = getenv("OPENCL_LAYERS");
    size_t length = now ? strlen(now) : 0;
    if (length > 0 && length < strlen(whole) && memcmp(whole, now, length) == 0 &&
        whole[length] == ':')
        setenv("OPENCL_LAYERS", whole, 1);
}

/* ---- the core's callbacks -------------------------------------------------------------------- */

static void opencl_tick(void)
{
    ocl_harvest_idle();
}

/* In a forked child: handles stay, ids and events in flight are the parent's. */
static void opencl_after_fork(void)
{
    atomic_fetch_add(&ocl_epoch, 1);
    ocl_inside = 0;
    ocl_call_forked();
    ocl_device_forked();
    ocl_kernel_forked();
    ocl_queue_forked();
    ocl_memory_forked();
    ocl_regions_forked(&ocl_svm);
    ocl_regions_forked(&ocl_mapped);
}

static const struct collector_source source = {
    .source = WIRE_SOURCE_OPENCL,
    .tick = opencl_tick,
    .at_exit = ocl_harvest_last,
    .forked = opencl_after_fork,
};

/* ---- entry points ---------------------------------------------------------------------------- */

EXPORT cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void *value,
                                         size_t *size_ret)
{
    static const char layer_name[] = "perfkit";
    static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    const void *from = &version;
    size_t bytes = sizeof version;
    switch (name) {
    case CL_LAYER_API_VERSION:
        break;
    case CL_LAYER_NAME:
        from = layer_name;
        bytes = sizeof layer_name;
        break;
    default:
        return CL_INVALID_VALUE;
    }
    if (size_ret)
        *size_ret = bytes;
    if (value) {
        if (size < bytes)
            return CL_INVALID_VALUE;
        memcpy(value, from, bytes);
    }
    return CL_SUCCESS;
}

static void install(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        void *beneath;
        memcpy(&beneath, (char *)&ocl_next + rows[i].offset, sizeof beneath);
        if (beneath)
            memcpy((char *)&ours + rows[i].offset, &rows[i].hook, sizeof rows[i].hook);
    }
}

EXPORT cl_int CL_API_CALL clInitLayer(cl_uint count, const cl_icd_dispatch *target,
                                      cl_uint *count_ret, const cl_icd_dispatch **layer_ret)
{
    if (!target || !count_ret || !layer_ret)
        return CL_INVALID_VALUE;
    int saved = errno;
    size_t bytes = count * sizeof(void *);
    memset(&ocl_next, 0, sizeof ocl_next);
    memset(&ours, 0, sizeof ours);
    memcpy(&ocl_next, target, bytes < sizeof ocl_next ? bytes : sizeof ocl_next);
    repair_layer_list();
    if (collector_traces("opencl") && collector_active()) {
        install();
        collector_register(&source);
        collector_health(WIRE_SOURCE_OPENCL, WIRE_HEALTH_RUNNING, NULL, 0);
    }
    cl_uint slots = (cl_uint)(sizeof ours / sizeof(void *));
    *count_ret = slots < count ? slots : count;
    *layer_ret = &ours;
    errno = saved;
    return CL_SUCCESS;
}

EXPORT cl_int CL_API_CALL clInitLayerWithProperties(cl_uint count, const cl_icd_dispatch *target,
                                                    cl_uint *count_ret,
                                                    const cl_icd_dispatch **layer_ret,
                                                    const layer_properties *properties)
{
    (void)properties; /* none is defined that changes what we do */
    return clInitLayer(count, target, count_ret, layer_ret);
}

/* The loader unloads: the driver may be unloaded. */
EXPORT cl_int CL_API_CALL clDeinitLayer(void)
{
    ocl_harvest_last();
    ocl_harvest_close();
    return CL_SUCCESS;
}

/* ---- extension functions --------------------------------------------------------------------- */

/* Extension functions bypass the layer's table: the program looks up an address and calls it. The
 * one that creates queues gets a wrapper, so that those queues are seen. Functions that put
 * commands or memory past the layer (command buffers, unified shared memory) get a counting
 * pass-through; of others of their families the capture at least says that they were fetched.
 *
 * Platforms may have different functions under one name. A pass-through has room for one address:
 * where a second platform differs, its program gets the driver's own address and a note is left. */

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
