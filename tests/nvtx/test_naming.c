/* Names of CUDA's objects. */
#include <wchar.h>

#include "tests/nvtx/client.h"

static void assert_named(unsigned n, enum wire_named what, uint64_t object, const char *name)
{
    const struct fake_record *record = fake_nth(WIRE_NAME, n);
    ck_assert_ptr_nonnull(record);
    ck_assert_uint_eq(record->head.aux, what);
    ck_assert_uint_eq(record->name.object, object);
    ck_assert_str_eq(fake_text(record->name.name, NULL), name);
}

START_TEST(cuda_objects_are_named)
{
#define CUDA(id, type) ((type)first.slot[PK_NVTX_MODULE_CUDA][id])
#define CUDART(id, type) ((type)first.slot[PK_NVTX_MODULE_CUDART][id])
    void *handle = (void *)(uintptr_t)0x7f00dead0000;
    CUDA(PK_NVTX_CUDA_NAME_DEVICE_A, pk_nvtx_name_device_a_fn)(1, "device");
    CUDA(PK_NVTX_CUDA_NAME_CONTEXT_W, pk_nvtx_name_handle_w_fn)(handle, L"context");
    CUDA(PK_NVTX_CUDA_NAME_STREAM_A, pk_nvtx_name_handle_a_fn)(handle, "stream");
    CUDA(PK_NVTX_CUDA_NAME_EVENT_W, pk_nvtx_name_handle_w_fn)(handle, L"event");
    CUDART(PK_NVTX_CUDART_NAME_DEVICE_W, pk_nvtx_name_device_w_fn)(2, L"other device");
    CUDART(PK_NVTX_CUDART_NAME_STREAM_W, pk_nvtx_name_handle_w_fn)(NULL, L"default stream");
    CUDART(PK_NVTX_CUDART_NAME_EVENT_A, pk_nvtx_name_handle_a_fn)(handle, "other event");
    CUDART(PK_NVTX_CUDART_NAME_STREAM_A, pk_nvtx_name_handle_a_fn)(handle, NULL); /* no name */
    /* The same as resources of a domain. */
    struct pk_nvtx_resource_attributes resource = {
        .version = PK_NVTX_VERSION,
        .size = sizeof resource,
        .identifier_type = PK_NVTX_RESOURCE_CUDART_STREAM,
        .identifier = {.value = 77},
        .message_type = PK_NVTX_MESSAGE_ASCII,
        .message = {.ascii = "resource"},
    };
    pk_nvtx_domain_resource_create_fn create =
        CORE2(first, PK_NVTX_CORE2_DOMAIN_RESOURCE_CREATE, pk_nvtx_domain_resource_create_fn);
    create(NULL, &resource);
    resource.identifier_type = PK_NVTX_RESOURCE_HANDLE; /* of nothing that we know */
    create(NULL, &resource);
    ck_assert_uint_eq(fake_type_count(WIRE_NAME), 8);
    assert_named(7, WIRE_NAMED_CUDA_STREAM, 77, "resource");
    assert_named(0, WIRE_NAMED_CUDA_DEVICE, 1, "device");
    assert_named(1, WIRE_NAMED_CUDA_CONTEXT, (uintptr_t)handle, "context");
    assert_named(2, WIRE_NAMED_CUDA_STREAM, (uintptr_t)handle, "stream");
    assert_named(3, WIRE_NAMED_CUDA_EVENT, (uintptr_t)handle, "event");
    assert_named(4, WIRE_NAMED_CUDA_DEVICE, 2, "other device");
    assert_named(5, WIRE_NAMED_CUDA_STREAM, 0, "default stream");
    assert_named(6, WIRE_NAMED_CUDA_EVENT, (uintptr_t)handle, "other event");
    ck_assert_int_eq(fake_windows(), 0);
}
END_TEST

void add_naming_tests(Suite *suite)
{
    add_test(suite, cuda_objects_are_named, attach_first);
}
