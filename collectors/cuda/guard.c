/* A program that uses CUPTI itself (torch.profiler does) while perfkit holds it.
 *
 * CUPTI serves one subscriber, but its activity functions are global and the last caller wins: a
 * second user would be refused the subscription, go on all the same, take our buffers, set its
 * clock and at its end switch off what we record. So the preloaded library answers for the
 * functions that change what CUPTI does, when the program's own modules call them: refused, with
 * the error CUPTI itself has for it. It answers only calls that the dynamic linker binds by name
 * (linked against libcupti, as PyTorch is); calls through dlsym are not seen.
 *
 * --cupti=yield and =off, and a perfkit that could not start CUPTI, pass every call on. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/parts.h"

static _Atomic bool reported;

/* Where the function that is called by that name really is. */
static void *original(const char *name)
{
    static const char *const libraries[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
    void *found = dlsym(RTLD_NEXT, name);
    for (size_t i = 0; !found && i < sizeof libraries / sizeof libraries[0]; i++) {
        /* The caller is linked against it, so it is loaded; perhaps not in the global scope. */
        void *library = dlopen(libraries[i], RTLD_NOW | RTLD_NOLOAD);
        if (library)
            found = dlsym(library, name); /* the reference is kept: it stays as long as we */
    }
    return found;
}

static const void *module_at(const void *address, const char **path)
{
    Dl_info info;
    if (!dladdr(address, &info))
        return NULL;
    if (path)
        *path = info.dli_fname;
    return info.dli_fbase;
}

static void report_other_subscriber(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    char why[320];
    snprintf(why, sizeof why,
             "%.120s uses CUPTI itself and gets no GPU events, because perfkit holds it; "
             "--cupti=yield leaves it to the program",
             slash           ? slash + 1
             : path && *path ? path
                             : "a module of the program");
    collector_health(WIRE_SOURCE_CUDA, WIRE_HEALTH_CONTENDED, why, 0);
}

/* Is this call not to reach CUPTI? Says so in the capture, once. CUPTI's calls of its own functions
 * come here too, unless it is linked with -Bsymbolic. */
static bool refuses(const void *caller, const void *function)
{
    if (!collector_active() || !collector_traces("cuda") || !cuda_holds_cupti())
        return false;
    const char *path = NULL;
    const void *module = module_at(caller, &path);
    if (module && function && module == module_at(function, NULL))
        return false;
    if (!atomic_exchange(&reported, true))
        report_other_subscriber(path);
    return true;
}

/* Under names of our own with the real symbol, because headers of other versions declare other
 * sets. */
#define GUARD(name, parameters, ...)                                                               \
    __attribute__((visibility("default"))) CUptiResult guard_##name parameters __asm__(#name);     \
    CUptiResult guard_##name parameters                                                            \
    {                                                                                              \
        int saved = errno;                                                                         \
        void *symbol = original(#name);                                                            \
        bool refused = refuses(__builtin_return_address(0), symbol);                               \
        errno = saved;                                                                             \
        if (refused)                                                                               \
            return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;                                 \
        if (!symbol)                                                                               \
            return CUPTI_ERROR_NOT_INITIALIZED;                                                    \
        CUptiResult(*pass_on) parameters;                                                          \
        memcpy(&pass_on, &symbol, sizeof pass_on);                                                 \
        return pass_on(__VA_ARGS__);                                                               \
    }

GUARD(cuptiSubscribe, (CUpti_SubscriberHandle * handle, CUpti_CallbackFunc callback, void *data),
      handle, callback, data)
GUARD(cuptiSubscribe_v2,
      (CUpti_SubscriberHandle * handle, CUpti_CallbackFunc callback, void *data, void *params),
      handle, callback, data, params)
GUARD(cuptiFinalize, (void))
GUARD(cuptiActivityRegisterCallbacks,
      (CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete),
      request, complete)
GUARD(cuptiActivityRegisterTimestampCallback, (CUpti_TimestampCallbackFunc function), function)
GUARD(cuptiActivitySetAttribute, (CUpti_ActivityAttribute attribute, size_t *size, void *value),
      attribute, size, value)
GUARD(cuptiActivityEnable, (CUpti_ActivityKind kind), kind)
GUARD(cuptiActivityEnableAndDump, (CUpti_ActivityKind kind), kind)
GUARD(cuptiActivityEnableContext, (CUcontext context, CUpti_ActivityKind kind), context, kind)
GUARD(cuptiActivityDisable, (CUpti_ActivityKind kind), kind)
GUARD(cuptiActivityDisableContext, (CUcontext context, CUpti_ActivityKind kind), context, kind)
GUARD(cuptiActivityFlushAll, (uint32_t flag), flag)
GUARD(cuptiActivityFlushPeriod, (uint32_t ms), ms)
