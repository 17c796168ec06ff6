/* A libcuda.so.1 whose cuInit does what the driver does for tools: it loads the library named by
 * CUDA_INJECTION64_PATH and calls its InitializeInjection. It tells of as many GPUs as
 * FAKE_CUDA_DEVICES says (1). FAKE_CUDA_INIT=N is the result of cuInit in who is not injected (100:
 * no device), FAKE_CUDA_SLOW=N makes that take N seconds. FAKE_CUDA_HOST=N is a number in the
 * UUIDs: runs on one machine with different ones do not wait for each other's GPUs. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuDeviceGetCount(int *count);
int cuDeviceGetCount(int *count)
{
    const char *text = getenv("FAKE_CUDA_DEVICES");
    *count = text ? atoi(text) : 1;
    return 0;
}

EXPORT int cuDeviceGet(int *device, int index);
int cuDeviceGet(int *device, int index)
{
    *device = index;
    return 0;
}

EXPORT int cuDeviceGetName(char *name, int size, int device);
int cuDeviceGetName(char *name, int size, int device)
{
    snprintf(name, (size_t)size, "Fake GPU %d", device);
    return 0;
}

EXPORT int cuDeviceGetUuid(unsigned char uuid[16], int device);
int cuDeviceGetUuid(unsigned char uuid[16], int device)
{
    const char *host = getenv("FAKE_CUDA_HOST");
    uint64_t number = host ? strtoull(host, NULL, 10) : 0;
    memset(uuid, 0, 16);
    memcpy(uuid, &number, sizeof number);
    uuid[15] = (unsigned char)device;
    return 0;
}

EXPORT int cuDeviceGetPCIBusId(char *text, int size, int device);
int cuDeviceGetPCIBusId(char *text, int size, int device)
{
    snprintf(text, (size_t)size, "0000:%02x:00.0", (unsigned)device & 255u);
    return 0;
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    *context = context;
    return 0;
}

EXPORT int cuCtxGetDevice(int *device);
int cuCtxGetDevice(int *device)
{
    *device = 0;
    return 0;
}

/* Events of the context: nothing is done before the program lets it, from fake_cuda_hold(1) to
 * fake_cuda_hold(0). */
enum { NOT_READY = 600 };
static _Atomic int held, events;

EXPORT int fake_cuda_hold(int hold);
int fake_cuda_hold(int hold)
{
    held = hold;
    return events;
}

EXPORT int cuEventCreate(void **event, unsigned flags);
int cuEventCreate(void **event, unsigned flags)
{
    *event = calloc(1, 1);
    events++;
    return flags == 2 && *event ? 0 : 1; /* without times */
}

EXPORT int cuCtxPushCurrent_v2(void *context);
int cuCtxPushCurrent_v2(void *context)
{
    return context ? 0 : 1;
}

EXPORT int cuCtxPopCurrent_v2(void **context);
int cuCtxPopCurrent_v2(void **context)
{
    *context = NULL;
    return 0;
}

EXPORT int cuCtxRecordEvent(void *context, void *event);
int cuCtxRecordEvent(void *context, void *event)
{
    return context && event ? 0 : 1;
}

EXPORT int cuEventQuery(void *event);
int cuEventQuery(void *event)
{
    return !event ? 1 : held ? NOT_READY : 0;
}

EXPORT int cuEventDestroy_v2(void *event);
int cuEventDestroy_v2(void *event)
{
    events--;
    free(event);
    return 0;
}

EXPORT int cuThreadExchangeStreamCaptureMode(int *mode);
int cuThreadExchangeStreamCaptureMode(int *mode)
{
    static __thread int now;
    int before = now;
    now = *mode;
    *mode = before;
    return 0;
}

EXPORT int cuCtxSetCurrent(void *context);
int cuCtxSetCurrent(void *context)
{
    (void)context;
    return 0;
}

EXPORT int cuInit(unsigned flags);
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
        return 0;
    }
    const char *slow = getenv("FAKE_CUDA_SLOW"), *result = getenv("FAKE_CUDA_INIT");
    if (slow)
        sleep((unsigned)atoi(slow));
    return result ? atoi(result) : 0;
}
