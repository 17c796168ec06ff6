/* The payload and counter extensions of NVTX, and the extended payloads of plain events.
 *
 * perfkit keeps three things of them: declared work (perfkit/annotate.h), one plain number, and the
 * event's message where the layout says which field it is, because events of this extension have
 * no other name. Everything else is accepted, ignored, and said once in the capture's health.
 * Layouts are data from the program: sizes are checked before anything is read. */
#include <stdalign.h>
#include <string.h>

#include "collectors/nvtx/nvtx.h"

#define MAX_PAYLOADS 1024u /* more in one event is taken for garbage */

/* Entry types and flags of the payload extension. */
enum {
    TYPE_CSTRING = 75,
    TYPE_CSTRING_UTF8 = 76,
    TYPE_REGISTERED = 80,
    TYPE_REFERENCED = 1022, /* memory that other payloads of the event point into */
    FLAG_POINTER = 1 << 1,
    FLAG_ARRAY = 7 << 4,
    FLAG_FIXED = 1 << 4,
    FLAG_TERMINATED = 2 << 4,
    FLAG_MESSAGE = 1 << 10,
    SCHEMA_HAS_NAME = 1 << 1,
    SCHEMA_HAS_ENTRIES = 1 << 4,
    SCHEMA_HAS_COUNT = 1 << 5,
    SCHEMA_HAS_ALIGN = 1 << 7,
    SCHEMA_HAS_ID = 1 << 8,
    ENUM_HAS_ID = 1 << 5,
};

/* What the functions below read of these; the vendor's structures may be longer. */
struct enum_attributes {
    uint64_t field_mask;
    const char *name;
    const void *entries;
    size_t count, size_of_enum;
    uint64_t id;
};
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

/* Predefined entry types of one number: bytes, and what it is as a plain payload. */
static const struct {
    uint8_t bytes;
    uint8_t payload; /* enum wire_payload */
} plain[] = {
    [1] = {1, 0},
    [2] = {1, 0},
    [3] = {2, 0},
    [4] = {2, 0},
    [5] = {4, WIRE_PAYLOAD_I32},
    [6] = {4, WIRE_PAYLOAD_U32},
    [7] = {8, WIRE_PAYLOAD_I64},
    [8] = {8, WIRE_PAYLOAD_U64},
    [9] = {8, WIRE_PAYLOAD_I64},
    [10] = {8, WIRE_PAYLOAD_U64},
    [11] = {1, 0},
    [12] = {1, 0},
    [13] = {2, 0},
    [14] = {2, 0},
    [15] = {4, WIRE_PAYLOAD_I32},
    [16] = {4, WIRE_PAYLOAD_U32},
    [17] = {8, WIRE_PAYLOAD_I64},
    [18] = {8, WIRE_PAYLOAD_U64},
    [19] = {4, WIRE_PAYLOAD_F32},
    [20] = {8, WIRE_PAYLOAD_F64},
    [21] = {sizeof(long double), 0},
    [22] = {8, WIRE_PAYLOAD_U64},
    [23] = {8, WIRE_PAYLOAD_U64},
    [24] = {4, 0},
    [25] = {1, 0},
    [26] = {2, 0},
    [27] = {4, 0},
    [32] = {1, 0},
    [33] = {16, 0},
    [34] = {16, 0},
    [42] = {2, 0},
    [43] = {4, WIRE_PAYLOAD_F32},
    [44] = {8, WIRE_PAYLOAD_F64},
    [45] = {16, 0},
    [50] = {2, 0},
    [52] = {4, 0},
    [68] = {4, 0},
    [69] = {4, 0},
    [70] = {8, 0},
    [71] = {4, 0},
    [72] = {8, 0},
    [73] = {4, 0},
    [74] = {8, 0},
    [80] = {8, 0},
};
#define PLAIN_TYPES (sizeof plain / sizeof *plain)

static _Atomic uint64_t dynamic_ids;

static uint64_t new_id(void)
{
    return PK_NVTX_SCHEMA_ID_DYNAMIC_START + atomic_fetch_add(&dynamic_ids, 1);
}

/* ---- layouts --------------------------------------------------------------------------------- */

/* Size and alignment of an entry, from its type; false when that takes more than one look. */
static bool entry_size(const struct pk_nvtx_schema_entry *entry, size_t *bytes, size_t *align)
{
    uint64_t array = entry->flags & FLAG_ARRAY;
    bool text = entry->type == TYPE_CSTRING || entry->type == TYPE_CSTRING_UTF8;
    if ((entry->flags & FLAG_POINTER) ||
        (text && array == 0 && entry->array_or_union_detail == 0)) {
        *bytes = *align = sizeof(void *);
        return true;
    }
    if (text) {
        *bytes = (size_t)entry->array_or_union_detail;
        *align = 1;
        return array == 0 || array == FLAG_FIXED;
    }
    if (entry->type >= PLAIN_TYPES || plain[entry->type].bytes == 0)
        return false;
    *bytes = *align = plain[entry->type].bytes;
    if (array == FLAG_FIXED)
        *bytes *= (size_t)entry->array_or_union_detail;
    return array == 0 || array == FLAG_FIXED;
}

static uint64_t message_place(const struct pk_nvtx_schema_entry *entry, uint64_t offset)
{
    uint64_t how = NVTX_MESSAGE_NOWHERE, bytes = 0, array = entry->flags & FLAG_ARRAY;
    if (entry->type == TYPE_REGISTERED && array == 0) {
        how = NVTX_MESSAGE_HANDLE;
    } else if (entry->type == TYPE_CSTRING || entry->type == TYPE_CSTRING_UTF8) {
        bytes = entry->array_or_union_detail;
        if ((entry->flags & FLAG_POINTER) || (array == 0 && bytes == 0))
            how = NVTX_MESSAGE_POINTER;
        else if (array == FLAG_TERMINATED || ((array == 0 || array == FLAG_FIXED) && bytes > 0))
            how = NVTX_MESSAGE_EMBEDDED;
        if (array == FLAG_TERMINATED)
            bytes = 0; /* to the end of the payload */
    }
    if (offset >= 1u << 28 || bytes >= 1u << 28)
        how = NVTX_MESSAGE_NOWHERE;
    return how == NVTX_MESSAGE_NOWHERE ? 0 : how << 56 | bytes << 28 | offset;
}

/* Where the message stands: offsets that the program left out follow from natural alignment. */
static uint64_t find_message(const struct pk_nvtx_schema_attributes *schema)
{
    uint64_t both = SCHEMA_HAS_ENTRIES | SCHEMA_HAS_COUNT;
    if ((schema->field_mask & both) != both || !schema->entries)
        return 0;
    size_t pack = schema->field_mask & SCHEMA_HAS_ALIGN ? schema->pack_align_bytes : 0;
    uint64_t next = 0;
    bool known = true; /* `next` is right */
    for (size_t i = 0; i < schema->entry_count; i++) {
        const struct pk_nvtx_schema_entry *entry = &schema->entries[i];
        size_t bytes = 0, align = 1;
        bool sized = entry_size(entry, &bytes, &align);
        if (pack && pack < align)
            align = pack;
        uint64_t offset = entry->offset_bytes;
        if (offset == 0 && i > 0) {
            if (!known || (!sized && !(entry->flags & FLAG_MESSAGE)))
                return 0;
            offset = (next + align - 1) / align * align;
        }
        if (entry->flags & FLAG_MESSAGE)
            return message_place(entry, offset);
        next = offset + bytes;
        known = sized;
    }
    return 0;
}

static uint64_t schema_register(struct pk_nvtx_domain *handle,
                                const struct pk_nvtx_schema_attributes *schema)
{
    if (!schema)
        return 0;
    uint64_t id = schema->field_mask & SCHEMA_HAS_ID ? schema->schema_id : 0;
    if (id == 0)
        id = new_id();
    const char *name = schema->field_mask & SCHEMA_HAS_NAME ? schema->name : NULL;
    struct nvtx_object *object = nvtx_object_get(NVTX_SCHEMA, nvtx_domain_of(handle), id,
                                                 name ? name : "", name ? strlen(name) : 0);
    if (object)
        atomic_store(&object->message, find_message(schema));
    return id;
}

static uint64_t enum_register(struct pk_nvtx_domain *handle,
                              const struct enum_attributes *attributes)
{
    (void)handle;
    if (!attributes)
        return 0;
    return attributes->field_mask & ENUM_HAS_ID && attributes->id ? attributes->id : new_id();
}

static uint64_t scope_register(struct pk_nvtx_domain *handle,
                               const struct scope_attributes *attributes)
{
    (void)handle;
    if (!attributes)
        return 0;
    return attributes->struct_size >= sizeof *attributes && attributes->id ? attributes->id
                                                                           : new_id();
}

/* ---- payloads -------------------------------------------------------------------------------- */

static uint32_t message_of(const struct pk_nvtx_payload_data *payload,
                           const struct nvtx_object *schema)
{
    uint64_t place = atomic_load_explicit(&schema->message, memory_order_relaxed);
    uint64_t offset = place & ((1u << 28) - 1), bytes = place >> 28 & ((1u << 28) - 1);
    enum nvtx_message_at how = (enum nvtx_message_at)(place >> 56);
    const char *at = (const char *)payload->payload + offset;
    bool sized = payload->size_bytes != SIZE_MAX;
    if (how == NVTX_MESSAGE_NOWHERE || (sized && offset >= payload->size_bytes))
        return 0;
    uint64_t room = sized ? payload->size_bytes - offset : bytes;
    if (how == NVTX_MESSAGE_EMBEDDED) {
        if (bytes == 0 && !sized)
            return collector_text(at);
        return collector_string(at, strnlen(at, (size_t)(bytes && bytes < room ? bytes : room)));
    }
    const void *value;
    if (sized && room < sizeof value)
        return 0;
    memcpy(&value, at, sizeof value);
    if (how == NVTX_MESSAGE_POINTER)
        return collector_text(value);
    struct nvtx_object *registered = nvtx_object_of(value, NVTX_STRING);
    return registered ? nvtx_object_id(registered) : 0;
}

/* A payload whose layout is one predefined type. False when it is something else. */
static bool read_plain(const struct pk_nvtx_payload_data *payload, struct nvtx_event *event)
{
    uint64_t type = payload->schema_id;
    if (type == TYPE_CSTRING || type == TYPE_CSTRING_UTF8) {
        const char *text = payload->payload;
        if (event->message == 0)
            event->message = payload->size_bytes == SIZE_MAX
                                 ? collector_text(text)
                                 : collector_string(text, strnlen(text, payload->size_bytes));
        return true;
    }
    if (type >= PLAIN_TYPES || plain[type].payload == WIRE_PAYLOAD_NONE ||
        event->payload_type != WIRE_PAYLOAD_NONE || payload->size_bytes < plain[type].bytes)
        return false;
    uint64_t value = 0;
    memcpy(&value, payload->payload, plain[type].bytes);
    if (plain[type].payload == WIRE_PAYLOAD_I32)
        value = (uint64_t)(int64_t)(int32_t)value;
    event->payload = value;
    event->payload_type = plain[type].payload;
    return true;
}

static bool is_perfkit(const struct nvtx_object *domain)
{
    return domain && strcmp(domain->text, PERFKIT_NVTX_DOMAIN) == 0;
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
        if (payload->schema_id == PERFKIT_WORK_SCHEMA && is_perfkit(domain) &&
            payload->size_bytes >= sizeof event->work) {
            memcpy(&event->work, payload->payload, sizeof event->work);
            event->has_work = true;
            continue;
        }
        if (payload->schema_id < PK_NVTX_SCHEMA_ID_STATIC_START && read_plain(payload, event))
            continue;
        struct nvtx_object *schema = nvtx_schema_find(domain, payload->schema_id);
        if (schema && event->message == 0)
            event->message = message_of(payload, schema);
        if (schema && fallback == 0 && schema->length > 0)
            fallback = nvtx_object_id(schema);
        nvtx_note(NVTX_NOTE_PAYLOAD);
    }
    if (event->message == 0)
        event->message = fallback;
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
    int level = nvtx_pop(nvtx_domain_of(handle));
    if (payloads && count > 0 && nvtx_begin())
        nvtx_note(NVTX_NOTE_PAYLOAD);
    return level;
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
    nvtx_mark(domain, from_payloads(&event, domain, payloads, count));
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
                                                                           : new_id();
}

static void set(const struct pk_nvtx_ext_segment *segment, unsigned id, pk_nvtx_function handler)
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
            set(segment, payload[i].id, payload[i].handler);
        return 1;
    case PK_NVTX_EXT_COUNTERS:
        set(segment, PK_NVTX_COUNTERS_REGISTER, (pk_nvtx_function)counter_register);
        return 1;
    default: /* memory naming and what is to come */
        return 0;
    }
}
