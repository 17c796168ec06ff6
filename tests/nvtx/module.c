/* An annotated shared object, built twice (MODULE = a, b): NVTX attaches to each on its own. With
 * the vendor's headers where they are installed, else with perfkit/annotate.h. */
#include "tests/nvtx/module.h"

#ifdef HAVE_NVTX3
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <nvtx3/nvToolsExtCounters.h>

static int deeper(void)
{
    nvtxDomainHandle_t domain = nvtxDomainCreateA("module");
    nvtxEventAttributes_t event = {0};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = nvtxDomainRegisterStringA(domain, "registered in " MODULE);
    event.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
    event.payload.dValue = 0.25;
    if (nvtxDomainRangePushEx(domain, &event) != 0 || nvtxDomainRangePop(domain) != 0 ||
        nvtxDomainRangePop(domain) >= 0)
        return 1;
    nvtxRangeEnd(nvtxRangeStartW(L"started in " MODULE));
    nvtxMarkA("marked in " MODULE);
    nvtxNameOsThreadA(4242, "thread of " MODULE);
    nvtxNameCategoryA(1, "category of " MODULE);

    static const nvtxPayloadSchemaEntry_t entries[] = {{NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE,
                                                        NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "text",
                                                        NULL, 0, 0, NULL, NULL}};
    nvtxPayloadSchemaAttr_t schema = {0};
    schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                       NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                       NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES;
    schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
    schema.entries = entries;
    schema.numEntries = 1;
    const char *text = "payload in " MODULE;
    nvtxPayloadData_t payload = {nvtxPayloadSchemaRegister(domain, &schema), sizeof text, &text};
    if (!nvtxDomainIsEnabled(domain) || nvtxRangePushPayload(domain, &payload, 1) != 0 ||
        nvtxRangePopPayload(domain, NULL, 0) != 0)
        return 2;
    nvtxCounterAttr_t counter = {0};
    counter.structSize = sizeof counter;
    counter.schemaId = NVTX_PAYLOAD_ENTRY_TYPE_INT64;
    nvtxCounterSampleInt64(domain, nvtxCounterRegister(domain, &counter), 1);
    return 0;
}

static int push(const char *text)
{
    return nvtxRangePushA(text);
}
static int pop(void)
{
    return nvtxRangePop();
}
#else
#include "perfkit/annotate.h"

static int deeper(void)
{
    return 0;
}
static int push(const char *text)
{
    perfkit_range_push(text);
    return 0;
}
static int pop(void)
{
    perfkit_range_pop();
    return 0;
}
#endif

int module_run(void)
{
    if (push("pushed in " MODULE) != 0 || pop() != 0)
        return -1;
    return deeper();
}
