/* Names that a program gives to CUDA's devices, contexts, streams and events through NVTX. They
 * arrive by the program's own handles; perfkit finds the objects by those. */
#include <string.h>

#include "collectors/nvtx/nvtx.h"

static void name_a(enum wire_named what, uint64_t object, const char *name)
{
    nvtx_name_object(what, object, name, name ? strlen(name) : 0);
}

static void name_w(enum wire_named what, uint64_t object, const wchar_t *name)
{
    struct nvtx_text text;
    nvtx_narrow(&text, name);
    nvtx_name_object(what, object, text.text, text.length);
    nvtx_narrow_done(&text);
}

static void device_a(int device, const char *name)
{
    name_a(WIRE_NAMED_CUDA_DEVICE, (uint32_t)device, name);
}
static void device_w(int device, const wchar_t *name)
{
    name_w(WIRE_NAMED_CUDA_DEVICE, (uint32_t)device, name);
}
static void context_a(void *context, const char *name)
{
    name_a(WIRE_NAMED_CUDA_CONTEXT, (uintptr_t)context, name);
}
static void context_w(void *context, const wchar_t *name)
{
    name_w(WIRE_NAMED_CUDA_CONTEXT, (uintptr_t)context, name);
}
static void stream_a(void *stream, const char *name)
{
    name_a(WIRE_NAMED_CUDA_STREAM, (uintptr_t)stream, name);
}
static void stream_w(void *stream, const wchar_t *name)
{
    name_w(WIRE_NAMED_CUDA_STREAM, (uintptr_t)stream, name);
}
static void event_a(void *event, const char *name)
{
    name_a(WIRE_NAMED_CUDA_EVENT, (uintptr_t)event, name);
}
static void event_w(void *event, const wchar_t *name)
{
    name_w(WIRE_NAMED_CUDA_EVENT, (uintptr_t)event, name);
}

#define HANDLER(function) (pk_nvtx_function) function
void nvtx_fill_cuda(pk_nvtx_function_table table, unsigned count)
{
    static const pk_nvtx_function handlers[PK_NVTX_CUDA_COUNT] = {
        [PK_NVTX_CUDA_NAME_DEVICE_A] = HANDLER(device_a),
        [PK_NVTX_CUDA_NAME_DEVICE_W] = HANDLER(device_w),
        [PK_NVTX_CUDA_NAME_CONTEXT_A] = HANDLER(context_a),
        [PK_NVTX_CUDA_NAME_CONTEXT_W] = HANDLER(context_w),
        [PK_NVTX_CUDA_NAME_STREAM_A] = HANDLER(stream_a),
        [PK_NVTX_CUDA_NAME_STREAM_W] = HANDLER(stream_w),
        [PK_NVTX_CUDA_NAME_EVENT_A] = HANDLER(event_a),
        [PK_NVTX_CUDA_NAME_EVENT_W] = HANDLER(event_w),
    };
    nvtx_fill(table, count, handlers, PK_NVTX_CUDA_COUNT);
}

void nvtx_fill_cudart(pk_nvtx_function_table table, unsigned count)
{
    static const pk_nvtx_function handlers[PK_NVTX_CUDART_COUNT] = {
        [PK_NVTX_CUDART_NAME_DEVICE_A] = HANDLER(device_a),
        [PK_NVTX_CUDART_NAME_DEVICE_W] = HANDLER(device_w),
        [PK_NVTX_CUDART_NAME_STREAM_A] = HANDLER(stream_a),
        [PK_NVTX_CUDART_NAME_STREAM_W] = HANDLER(stream_w),
        [PK_NVTX_CUDART_NAME_EVENT_A] = HANDLER(event_a),
        [PK_NVTX_CUDART_NAME_EVENT_W] = HANDLER(event_w),
    };
    nvtx_fill(table, count, handlers, PK_NVTX_CUDART_COUNT);
}
