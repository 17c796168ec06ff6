/* Our declarations against the vendor's headers, where those are installed: every size, offset
 * and number that crosses the boundary, at compile time; and at run time a client made of the
 * vendor's headers against the injection library that tests our own client, which shows that the
 * library speaks the real protocol.
 */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#if __has_include(<cuda.h>) && __has_include(<cuda_runtime_api.h>)
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#define HAVE_CUDA_RESOURCES
#endif

#include <dlfcn.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/workloads/injection.h"

#define SAME(a, b) _Static_assert((int64_t)(a) == (int64_t)(b), #a " is not " #b)
#define SAME_SIZE(ours, theirs) SAME(sizeof(struct ours), sizeof(theirs))
#define SAME_PLACE(ours, member, theirs, their_member)                                             \
    SAME(offsetof(struct ours, member), offsetof(theirs, their_member));                           \
    SAME(sizeof(((struct ours *)0)->member), sizeof(((theirs *)0)->their_member))

SAME(PK_NVTX_VERSION, NVTX_VERSION);
SAME(PK_NVTX_NO_PUSH_POP_TRACKING, NVTX_NO_PUSH_POP_TRACKING);

SAME_SIZE(pk_nvtx_event_attributes, nvtxEventAttributes_t);
SAME_PLACE(pk_nvtx_event_attributes, version, nvtxEventAttributes_t, version);
SAME_PLACE(pk_nvtx_event_attributes, size, nvtxEventAttributes_t, size);
SAME_PLACE(pk_nvtx_event_attributes, category, nvtxEventAttributes_t, category);
SAME_PLACE(pk_nvtx_event_attributes, color_type, nvtxEventAttributes_t, colorType);
SAME_PLACE(pk_nvtx_event_attributes, color, nvtxEventAttributes_t, color);
SAME_PLACE(pk_nvtx_event_attributes, payload_type, nvtxEventAttributes_t, payloadType);
SAME_PLACE(pk_nvtx_event_attributes, reserved0, nvtxEventAttributes_t, reserved0);
SAME_PLACE(pk_nvtx_event_attributes, payload, nvtxEventAttributes_t, payload);
SAME_PLACE(pk_nvtx_event_attributes, message_type, nvtxEventAttributes_t, messageType);
SAME_PLACE(pk_nvtx_event_attributes, message, nvtxEventAttributes_t, message);

SAME(PK_NVTX_COLOR_ARGB, NVTX_COLOR_ARGB);
SAME(PK_NVTX_MESSAGE_UNKNOWN, NVTX_MESSAGE_UNKNOWN);
SAME(PK_NVTX_MESSAGE_ASCII, NVTX_MESSAGE_TYPE_ASCII);
SAME(PK_NVTX_MESSAGE_UNICODE, NVTX_MESSAGE_TYPE_UNICODE);
SAME(PK_NVTX_MESSAGE_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);
SAME(PK_NVTX_PAYLOAD_UNKNOWN, NVTX_PAYLOAD_UNKNOWN);
SAME(PK_NVTX_PAYLOAD_UINT64, NVTX_PAYLOAD_TYPE_UNSIGNED_INT64);
SAME(PK_NVTX_PAYLOAD_INT64, NVTX_PAYLOAD_TYPE_INT64);
SAME(PK_NVTX_PAYLOAD_DOUBLE, NVTX_PAYLOAD_TYPE_DOUBLE);
SAME(PK_NVTX_PAYLOAD_UINT32, NVTX_PAYLOAD_TYPE_UNSIGNED_INT32);
SAME(PK_NVTX_PAYLOAD_INT32, NVTX_PAYLOAD_TYPE_INT32);
SAME(PK_NVTX_PAYLOAD_FLOAT, NVTX_PAYLOAD_TYPE_FLOAT);
SAME(PK_NVTX_PAYLOAD_EXT, NVTX_PAYLOAD_TYPE_EXT);

SAME_SIZE(pk_nvtx_payload_data, nvtxPayloadData_t);
SAME_PLACE(pk_nvtx_payload_data, schema_id, nvtxPayloadData_t, schemaId);
SAME_PLACE(pk_nvtx_payload_data, size_bytes, nvtxPayloadData_t, size);
SAME_PLACE(pk_nvtx_payload_data, payload, nvtxPayloadData_t, payload);
SAME(PK_NVTX_SCHEMA_ID_STATIC_START, NVTX_PAYLOAD_SCHEMA_ID_STATIC_START);
SAME(PK_NVTX_SCHEMA_ID_DYNAMIC_START, NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START);
_Static_assert(PERFKIT_WORK_SCHEMA >= NVTX_PAYLOAD_SCHEMA_ID_STATIC_START &&
                   PERFKIT_WORK_SCHEMA < NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START,
               "our schema is a static one");

SAME_SIZE(pk_nvtx_resource_attributes, nvtxResourceAttributes_t);
SAME_PLACE(pk_nvtx_resource_attributes, identifier_type, nvtxResourceAttributes_t, identifierType);
SAME_PLACE(pk_nvtx_resource_attributes, identifier, nvtxResourceAttributes_t, identifier);
SAME_PLACE(pk_nvtx_resource_attributes, message_type, nvtxResourceAttributes_t, messageType);
SAME_PLACE(pk_nvtx_resource_attributes, message, nvtxResourceAttributes_t, message);
SAME(PK_NVTX_RESOURCE_POINTER, NVTX_RESOURCE_TYPE_GENERIC_POINTER);
SAME(PK_NVTX_RESOURCE_HANDLE, NVTX_RESOURCE_TYPE_GENERIC_HANDLE);
SAME(PK_NVTX_RESOURCE_THREAD_NATIVE, NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE);
SAME(PK_NVTX_RESOURCE_THREAD_POSIX, NVTX_RESOURCE_TYPE_GENERIC_THREAD_POSIX);

SAME(PK_NVTX_MODULE_CORE, NVTX_CB_MODULE_CORE);
SAME(PK_NVTX_MODULE_CUDA, NVTX_CB_MODULE_CUDA);
SAME(PK_NVTX_MODULE_OPENCL, NVTX_CB_MODULE_OPENCL);
SAME(PK_NVTX_MODULE_CUDART, NVTX_CB_MODULE_CUDART);
SAME(PK_NVTX_MODULE_CORE2, NVTX_CB_MODULE_CORE2);
SAME(PK_NVTX_MODULE_SYNC, NVTX_CB_MODULE_SYNC);
SAME(PK_NVTX_MODULE_COUNT, NVTX_CB_MODULE_SIZE);

#define CORE(ours, theirs) SAME(PK_NVTX_CORE_##ours, NVTX_CBID_CORE_##theirs)
CORE(MARK_EX, MarkEx);
CORE(MARK_A, MarkA);
CORE(MARK_W, MarkW);
CORE(RANGE_START_EX, RangeStartEx);
CORE(RANGE_START_A, RangeStartA);
CORE(RANGE_START_W, RangeStartW);
CORE(RANGE_END, RangeEnd);
CORE(RANGE_PUSH_EX, RangePushEx);
CORE(RANGE_PUSH_A, RangePushA);
CORE(RANGE_PUSH_W, RangePushW);
CORE(RANGE_POP, RangePop);
CORE(NAME_CATEGORY_A, NameCategoryA);
CORE(NAME_CATEGORY_W, NameCategoryW);
CORE(NAME_OS_THREAD_A, NameOsThreadA);
CORE(NAME_OS_THREAD_W, NameOsThreadW);
CORE(COUNT, SIZE);

#define CORE2(ours, theirs) SAME(PK_NVTX_CORE2_##ours, NVTX_CBID_CORE2_##theirs)
CORE2(DOMAIN_MARK_EX, DomainMarkEx);
CORE2(DOMAIN_RANGE_START_EX, DomainRangeStartEx);
CORE2(DOMAIN_RANGE_END, DomainRangeEnd);
CORE2(DOMAIN_RANGE_PUSH_EX, DomainRangePushEx);
CORE2(DOMAIN_RANGE_POP, DomainRangePop);
CORE2(DOMAIN_RESOURCE_CREATE, DomainResourceCreate);
CORE2(DOMAIN_RESOURCE_DESTROY, DomainResourceDestroy);
CORE2(DOMAIN_NAME_CATEGORY_A, DomainNameCategoryA);
CORE2(DOMAIN_NAME_CATEGORY_W, DomainNameCategoryW);
CORE2(DOMAIN_REGISTER_STRING_A, DomainRegisterStringA);
CORE2(DOMAIN_REGISTER_STRING_W, DomainRegisterStringW);
CORE2(DOMAIN_CREATE_A, DomainCreateA);
CORE2(DOMAIN_CREATE_W, DomainCreateW);
CORE2(DOMAIN_DESTROY, DomainDestroy);
CORE2(INITIALIZE, Initialize);
CORE2(COUNT, SIZE);

#ifdef HAVE_CUDA_RESOURCES
SAME(PK_NVTX_RESOURCE_CUDA_DEVICE, NVTX_RESOURCE_TYPE_CUDA_DEVICE);
SAME(PK_NVTX_RESOURCE_CUDA_EVENT, NVTX_RESOURCE_TYPE_CUDA_EVENT);
SAME(PK_NVTX_RESOURCE_CUDART_DEVICE, NVTX_RESOURCE_TYPE_CUDART_DEVICE);
SAME(PK_NVTX_RESOURCE_CUDART_EVENT, NVTX_RESOURCE_TYPE_CUDART_EVENT);
#endif
#define CUDA(ours, theirs) SAME(PK_NVTX_CUDA_##ours, NVTX_CBID_CUDA_##theirs)
CUDA(NAME_DEVICE_A, NameCuDeviceA);
CUDA(NAME_DEVICE_W, NameCuDeviceW);
CUDA(NAME_CONTEXT_A, NameCuContextA);
CUDA(NAME_CONTEXT_W, NameCuContextW);
CUDA(NAME_STREAM_A, NameCuStreamA);
CUDA(NAME_STREAM_W, NameCuStreamW);
CUDA(NAME_EVENT_A, NameCuEventA);
CUDA(NAME_EVENT_W, NameCuEventW);
CUDA(COUNT, SIZE);

#define CUDART(ours, theirs) SAME(PK_NVTX_CUDART_##ours, NVTX_CBID_CUDART_##theirs)
CUDART(NAME_DEVICE_A, NameCudaDeviceA);
CUDART(NAME_DEVICE_W, NameCudaDeviceW);
CUDART(NAME_STREAM_A, NameCudaStreamA);
CUDART(NAME_STREAM_W, NameCudaStreamW);
CUDART(NAME_EVENT_A, NameCudaEventA);
CUDART(NAME_EVENT_W, NameCudaEventW);
CUDART(COUNT, SIZE);

SAME(PK_NVTX_OPENCL_COUNT, NVTX_CBID_OPENCL_SIZE);
SAME(PK_NVTX_SYNC_COUNT, NVTX_CBID_SYNC_SIZE);

SAME(PK_NVTX_EXPORT_CALLBACKS, NVTX_ETID_CALLBACKS);
SAME(PK_NVTX_EXPORT_VERSION_INFO, NVTX_ETID_VERSIONINFO);
SAME_SIZE(pk_nvtx_export_callbacks, NvtxExportTableCallbacks);
SAME_PLACE(pk_nvtx_export_callbacks, struct_size, NvtxExportTableCallbacks, struct_size);
SAME_PLACE(pk_nvtx_export_callbacks, get_module_function_table, NvtxExportTableCallbacks,
           GetModuleFunctionTable);
SAME_SIZE(pk_nvtx_export_version_info, NvtxExportTableVersionInfo);
SAME_PLACE(pk_nvtx_export_version_info, version, NvtxExportTableVersionInfo, version);
SAME_PLACE(pk_nvtx_export_version_info, set_injection_version, NvtxExportTableVersionInfo,
           SetInjectionNvtxVersion);

SAME_SIZE(pk_nvtx_ext_segment, nvtxExtModuleSegment_t);
SAME_PLACE(pk_nvtx_ext_segment, slot_count, nvtxExtModuleSegment_t, slotCount);
SAME_PLACE(pk_nvtx_ext_segment, function_slots, nvtxExtModuleSegment_t, functionSlots);
SAME_SIZE(pk_nvtx_ext_module_info, nvtxExtModuleInfo_t);
SAME_PLACE(pk_nvtx_ext_module_info, module_id, nvtxExtModuleInfo_t, moduleId);
SAME_PLACE(pk_nvtx_ext_module_info, compat_id, nvtxExtModuleInfo_t, compatId);
SAME_PLACE(pk_nvtx_ext_module_info, segment_count, nvtxExtModuleInfo_t, segmentsCount);
SAME_PLACE(pk_nvtx_ext_module_info, segments, nvtxExtModuleInfo_t, segments);
SAME_PLACE(pk_nvtx_ext_module_info, get_export_function, nvtxExtModuleInfo_t, getExportFunction);
SAME_PLACE(pk_nvtx_ext_module_info, ext_info, nvtxExtModuleInfo_t, extInfo);
SAME(PK_NVTX_EXT_PAYLOAD, NVTX_EXT_PAYLOAD_MODULEID);
SAME(PK_NVTX_PAYLOAD_SCHEMA_REGISTER, NVTX3EXT_CBID_nvtxPayloadSchemaRegister);
SAME(PK_NVTX_PAYLOAD_ENUM_REGISTER, NVTX3EXT_CBID_nvtxPayloadEnumRegister);
SAME(PK_NVTX_PAYLOAD_MARK, NVTX3EXT_CBID_nvtxMarkPayload);
SAME(PK_NVTX_PAYLOAD_RANGE_PUSH, NVTX3EXT_CBID_nvtxRangePushPayload);
SAME(PK_NVTX_PAYLOAD_RANGE_POP, NVTX3EXT_CBID_nvtxRangePopPayload);
SAME(PK_NVTX_PAYLOAD_RANGE_START, NVTX3EXT_CBID_nvtxRangeStartPayload);
SAME(PK_NVTX_PAYLOAD_RANGE_END, NVTX3EXT_CBID_nvtxRangeEndPayload);
SAME(PK_NVTX_PAYLOAD_DOMAIN_IS_ENABLED, NVTX3EXT_CBID_nvtxDomainIsEnabled);
SAME_SIZE(pk_nvtx_schema_entry, nvtxPayloadSchemaEntry_t);
SAME_PLACE(pk_nvtx_schema_entry, name, nvtxPayloadSchemaEntry_t, name);
SAME_PLACE(pk_nvtx_schema_entry, offset_bytes, nvtxPayloadSchemaEntry_t, offset);
SAME_SIZE(pk_nvtx_schema_attributes, nvtxPayloadSchemaAttr_t);
SAME_PLACE(pk_nvtx_schema_attributes, entries, nvtxPayloadSchemaAttr_t, entries);
SAME_PLACE(pk_nvtx_schema_attributes, schema_id, nvtxPayloadSchemaAttr_t, schemaId);

int main(void)
{
    void *library = dlopen(TEST_INJECTION, RTLD_NOW);
    void *symbol = library ? dlsym(library, "injection_log") : NULL;
    injection_log_fn get;
    struct injection_log *seen;

    if (!symbol) {
        fprintf(stderr, "no injection library: %s\n", dlerror());
        return 1;
    }
    memcpy(&get, &symbol, sizeof get);
    seen = get();
    setenv(PK_NVTX_ENV_INJECTION, TEST_INJECTION, 1);
    nvtxRangePushA("theirs");
    nvtxRangePop();
    if (seen->attached != 1 || seen->bad_tables != 0 || seen->pushes != 1 || seen->pops != 1 ||
        strcmp(seen->last_push, "theirs") != 0) {
        fprintf(stderr, "attached %d, bad tables %d, pushes %d, pops %d, text %s\n", seen->attached,
                seen->bad_tables, seen->pushes, seen->pops, seen->last_push);
        return 1;
    }
    return 0;
}
