/* The payload and counter extensions of NVTX, and the extended payloads of plain events.
 *
 * An event has one message, one plain number and, by perfkit/annotate.h, declared work: those are
 * taken out of the payloads before it is recorded. Every other value is a field of the range and
 * follows it as a record of its own. What is not understood is accepted, left out, and said once in
 * the capture's health. Layouts are data from the program: see layout.c. */
#include <stdalign.h>
#include <string.h>

#include "collectors/nvtx/nvtx.h"

#define MAX_PAYLOADS 1024u    /* more in one event is taken for garbage */
#define TYPE_REFERENCED 1022u /* memory that other payloads of the event point into */

/* What the functions below read of these; the vendor's structures may be longer. */
struct scope_attributes {
    size_t struct_size;
    const char *path;
    uint64_t parent, id;
};
struct counter_attributes {
    size_t struct_size;
    uint64_t schema;
    const char *name, *description;
    uint64_t scope;
    const void *semantics;
    uint64_t id;
};

static uint64_t schema_register(struct pk_nvtx_domain *handle,
                                const struct pk_nvtx_schema_attributes *schema)
{
    return schema ? nvtx_layout_register(nvtx_domain_of(handle), schema) : 0;
}

static uint64_t enum_register(struct pk_nvtx_domain *handle,
                              const struct pk_nvtx_enum_attributes *attributes)
{
    return attributes ? nvtx_enum_register(nvtx_domain_of(handle), attributes) : 0;
}

static uint64_t scope_register(struct pk_nvtx_domain *handle,
                               const struct scope_attributes *attributes)
{
    (void)handle;
    if (!attributes)
        return 0;
    return attributes->struct_size >= sizeof *attributes && attributes->id ? attributes->id
                                                                           : nvtx_new_id();
}

/* ---- payloads -------------------------------------------------------------------------------- */

static bool payload_is_work(const struct nvtx_object *domain,
                            const struct pk_nvtx_payload_data *payload)
{
    return payload->schema_id == PERFKIT_WORK_SCHEMA && domain &&
           strcmp(domain->text, PERFKIT_NVTX_DOMAIN) == 0 &&
           payload->size_bytes >= sizeof(struct perfkit_work);
}

/* Values that need no layout of the program's own. */
static bool payload_is_scalar(const struct pk_nvtx_payload_data *payload)
{
    return payload->schema_id < PK_NVTX_SCHEMA_ID_STATIC_START;
}

/* A payload of one value: the event's message, or its number. */
static void read_plain(const struct pk_nvtx_payload_data *payload, struct nvtx_event *event)
{
    struct nvtx_value value;
    if (!nvtx_plain_value(payload, &value) ||
        (value.type != WIRE_PAYLOAD_TEXT && event->payload_type != WIRE_PAYLOAD_NONE)) {
        nvtx_note(NVTX_NOTE_PAYLOAD);
    } else if (value.type == WIRE_PAYLOAD_TEXT) {
        if (event->message == 0)
            event->message = (uint32_t)value.bits;
    } else {
        event->payload = value.bits;
        event->payload_type = value.type;
    }
}

void nvtx_read_payloads(struct nvtx_object *domain, const struct pk_nvtx_payload_data *payloads,
                        size_t count, struct nvtx_event *event)
{
    if (!payloads || count > MAX_PAYLOADS)
        return;
    uint32_t fallback = 0; /* the layout's own name: better than an event without one */
    for (size_t i = 0; i < count; i++) {
        const struct pk_nvtx_payload_data *payload = &payloads[i];
        if (!payload->payload || payload->schema_id == TYPE_REFERENCED)
            continue;
        if (payload_is_work(domain, payload)) {
            memcpy(&event->work, payload->payload, sizeof event->work);
            event->has_work = true;
            continue;
        }
        if (payload_is_scalar(payload)) {
            read_plain(payload, event);
            continue;
        }
        struct nvtx_object *schema = nvtx_object_find(NVTX_SCHEMA, domain, payload->schema_id);
        if (schema && event->message == 0)
            event->message = nvtx_layout_message(schema, payload);
        if (schema && fallback == 0 && schema->length > 0)
            fallback = nvtx_object_id(schema);
        event->payloads = payloads;
        event->payload_count = count;
    }
    if (event->message == 0)
        event->message = fallback;
}

static void send_field(uint32_t domain_id, uint64_t id, const struct nvtx_value *value)
{
    struct wire_field field = {
        .head = {sizeof field, WIRE_FIELD, value->type, nvtx_object_id(value->name)},
        .id = id,
        .value = value->bits,
        .domain = domain_id,
    };
    collector_emit(&field);
}

void nvtx_send_fields(struct nvtx_object *domain, uint32_t domain_id, uint64_t id,
                      const struct pk_nvtx_payload_data *payloads, size_t count)
{
    if (!payloads || count > MAX_PAYLOADS)
        return;
    for (size_t i = 0; i < count; i++) {
        const struct pk_nvtx_payload_data *payload = &payloads[i];
        if (!payload->payload || payload_is_scalar(payload) || payload_is_work(domain, payload))
            continue;
        struct nvtx_object *schema = nvtx_object_find(NVTX_SCHEMA, domain, payload->schema_id);
        struct nvtx_value values[NVTX_FIELDS];
        bool whole = false;
        size_t found = schema ? nvtx_layout_values(schema, payload, values, &whole) : 0;
        for (size_t k = 0; k < found; k++)
            send_field(domain_id, id, &values[k]);
        if (!whole)
            nvtx_note(NVTX_NOTE_PAYLOAD);
    }
}

/* ---- the handlers ---------------------------------------------------------------------------- */

static const struct nvtx_event *from_payloads(struct nvtx_event *event, struct nvtx_object *domain,
                                              const struct pk_nvtx_payload_data *payloads,
                                              size_t count)
{
    if (!nvtx_records())
        return NULL;
    *event = (struct nvtx_event){0};
    nvtx_read_payloads(domain, payloads, count, event);
    return event;
}

static int push_payload(struct pk_nvtx_domain *handle, const struct pk_nvtx_payload_data *payloads,
                        size_t count)
{
    struct nvtx_object *domain = nvtx_domain_of(handle);
    struct nvtx_event event;
    return nvtx_push(domain, from_payloads(&event, domain, payloads, count), false);
}

static int pop_payload(struct pk_nvtx_domain *handle, const struct pk_nvtx_payload_data *payloads,
                       size_t count)
{
    return nvtx_pop(nvtx_domain_of(handle), payloads, count);
}

static pk_nvtx_range_id start_payload(struct pk_nvtx_domain *handle,
                                      const struct pk_nvtx_payload_data *payloads, size_t count)
{
    struct nvtx_object *domain = nvtx_domain_of(handle);
    struct nvtx_event event;
    return nvtx_start(domain, from_payloads(&event, domain, payloads, count), false);
}

static void end_payload(struct pk_nvtx_domain *handle, pk_nvtx_range_id id,
                        const struct pk_nvtx_payload_data *payloads, size_t count)
{
    (void)handle;
    nvtx_end(id);
    if (payloads && count > 0 && nvtx_begin())
        nvtx_note(NVTX_NOTE_PAYLOAD);
}

static void mark_payload(struct pk_nvtx_domain *handle, const struct pk_nvtx_payload_data *payloads,
                         size_t count)
{
    struct nvtx_object *domain = nvtx_domain_of(handle);
    struct nvtx_event event;
    const struct nvtx_event *read = from_payloads(&event, domain, payloads, count);
    if (read && read->payload_count > 0)
        nvtx_note(NVTX_NOTE_PAYLOAD);
    nvtx_mark(domain, read);
}

static uint8_t domain_is_enabled(struct pk_nvtx_domain *handle)
{
    (void)handle;
    return 1;
}

static void event_submit(struct pk_nvtx_domain *handle, const struct pk_nvtx_payload_data *payloads,
                         size_t count)
{
    (void)handle;
    (void)payloads;
    (void)count;
    if (nvtx_begin())
        nvtx_note(NVTX_NOTE_EVENT);
}

static void event_batch_submit(struct pk_nvtx_domain *handle, const void *batch)
{
    (void)handle;
    (void)batch;
    if (nvtx_begin())
        nvtx_note(NVTX_NOTE_EVENT);
}

/* A counter gets its id; its samples find empty slots and cost the program nothing. */
static uint64_t counter_register(struct pk_nvtx_domain *handle,
                                 const struct counter_attributes *attributes)
{
    (void)handle;
    if (!attributes)
        return 0;
    nvtx_note(NVTX_NOTE_COUNTER);
    return attributes->struct_size >= sizeof *attributes && attributes->id ? attributes->id
                                                                           : nvtx_new_id();
}

static void set_segment_slot(const struct pk_nvtx_ext_segment *segment, unsigned id,
                             pk_nvtx_function handler)
{
    if (id < segment->slot_count)
        segment->function_slots[id] = (intptr_t)handler;
}

__attribute__((visibility("default"))) int
InitializeInjectionNvtxExtension(struct pk_nvtx_ext_module_info *info);

__attribute__((visibility("default"))) int
InitializeInjectionNvtxExtension(struct pk_nvtx_ext_module_info *info)
{
    static const struct {
        unsigned id;
        pk_nvtx_function handler;
    } payload[] = {
        {PK_NVTX_PAYLOAD_SCHEMA_REGISTER, (pk_nvtx_function)schema_register},
        {PK_NVTX_PAYLOAD_ENUM_REGISTER, (pk_nvtx_function)enum_register},
        {PK_NVTX_PAYLOAD_MARK, (pk_nvtx_function)mark_payload},
        {PK_NVTX_PAYLOAD_RANGE_PUSH, (pk_nvtx_function)push_payload},
        {PK_NVTX_PAYLOAD_RANGE_POP, (pk_nvtx_function)pop_payload},
        {PK_NVTX_PAYLOAD_RANGE_START, (pk_nvtx_function)start_payload},
        {PK_NVTX_PAYLOAD_RANGE_END, (pk_nvtx_function)end_payload},
        {PK_NVTX_PAYLOAD_DOMAIN_IS_ENABLED, (pk_nvtx_function)domain_is_enabled},
        {PK_NVTX_PAYLOAD_SCOPE_REGISTER, (pk_nvtx_function)scope_register},
        {PK_NVTX_PAYLOAD_EVENT_SUBMIT, (pk_nvtx_function)event_submit},
        {PK_NVTX_PAYLOAD_EVENT_BATCH_SUBMIT, (pk_nvtx_function)event_batch_submit},
    };
    if (!info || info->struct_size < sizeof *info || info->segment_count == 0 || !info->segments ||
        !info->segments[0].function_slots || !nvtx_wanted())
        return 0;
    const struct pk_nvtx_ext_segment *segment = &info->segments[0];
    switch (info->module_id) {
    case PK_NVTX_EXT_PAYLOAD:
        for (size_t i = 0; i < sizeof payload / sizeof *payload; i++)
            set_segment_slot(segment, payload[i].id, payload[i].handler);
        return 1;
    case PK_NVTX_EXT_COUNTERS:
        set_segment_slot(segment, PK_NVTX_COUNTERS_REGISTER, (pk_nvtx_function)counter_register);
        return 1;
    default: /* memory naming and what is to come */
        return 0;
    }
}
