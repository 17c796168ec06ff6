/* Layouts of extended payloads: what a program registers (schemas and enumerations), and the values
 * that a payload of such a layout holds.
 *
 * Kept are fields that are one number, one text, or one value of an enumeration: NCCL's
 * communicator, message size and peer, for one. Arrays, unions and layouts within layouts are left
 * out. Layouts are data from the program: they are copied when they are registered, and sizes are
 * checked before anything of a payload is read. */
#include <string.h>

#include "collectors/nvtx/nvtx.h"

#define MAX_VALUES 64u /* of an enumeration; the others have their number only */

/* Entry types and flags of the payload extension. */
enum {
    TYPE_CSTRING = 75,
    TYPE_CSTRING_UTF8 = 76,
    TYPE_REGISTERED = 80,
    FLAG_POINTER = 1 << 1,
    FLAG_OFFSET = 3 << 2, /* the value says where the data is */
    FLAG_ARRAY = 7 << 4,
    FLAG_FIXED = 1 << 4,
    FLAG_TERMINATED = 2 << 4,
    FLAG_MESSAGE = 1 << 10,
    SCHEMA_HAS_NAME = 1 << 1,
    SCHEMA_HAS_ENTRIES = 1 << 4,
    SCHEMA_HAS_COUNT = 1 << 5,
    SCHEMA_HAS_ALIGN = 1 << 7,
    SCHEMA_HAS_ID = 1 << 8,
    ENUM_HAS_ENTRIES = 1 << 2,
    ENUM_HAS_COUNT = 1 << 3,
    ENUM_HAS_SIZE = 1 << 4,
    ENUM_HAS_ID = 1 << 5,
};

/* What is kept of a layout, and of an enumeration: in the arena, never changed. */
enum field_form {
    FIELD_NONE,
    FIELD_NUMBER,
    FIELD_POINTER,  /* char * to NUL-terminated text */
    FIELD_EMBEDDED, /* `bytes` of text, or less with a NUL; 0 = to the payload's end */
    FIELD_HANDLE,   /* registered string */
};
struct field {
    struct nvtx_object *name;
    uint64_t enumeration; /* whose value it is, 0 = none; `bytes` and `number` are its own then */
    uint32_t offset, bytes;
    uint8_t form;        /* enum field_form */
    uint8_t number;      /* enum wire_payload */
    uint8_t reserved[6]; /* 0: layouts are compared as bytes */
};
struct layout {
    uint32_t count;
    bool partial;         /* it has fields that are not kept */
    struct field message; /* the event's text */
    struct field fields[NVTX_FIELDS];
};
struct enumeration {
    uint32_t bytes; /* of a value */
    uint32_t count;
    struct {
        uint64_t value;
        struct nvtx_object *name;
    } values[];
};

/* Predefined entry types of one number: bytes, and what of number. */
static const struct {
    uint8_t bytes;
    uint8_t number; /* enum wire_payload; NONE = its size is known, it is not kept */
} plain[] = {
    [1] = {1, WIRE_PAYLOAD_I32},
    [2] = {1, WIRE_PAYLOAD_U32},
    [3] = {2, WIRE_PAYLOAD_I32},
    [4] = {2, WIRE_PAYLOAD_U32},
    [5] = {4, WIRE_PAYLOAD_I32},
    [6] = {4, WIRE_PAYLOAD_U32},
    [7] = {8, WIRE_PAYLOAD_I64},
    [8] = {8, WIRE_PAYLOAD_U64},
    [9] = {8, WIRE_PAYLOAD_I64},
    [10] = {8, WIRE_PAYLOAD_U64},
    [11] = {1, WIRE_PAYLOAD_I32},
    [12] = {1, WIRE_PAYLOAD_U32},
    [13] = {2, WIRE_PAYLOAD_I32},
    [14] = {2, WIRE_PAYLOAD_U32},
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
    [32] = {1, WIRE_PAYLOAD_U32},
    [33] = {16, 0},
    [34] = {16, 0},
    [42] = {2, 0},
    [43] = {4, WIRE_PAYLOAD_F32},
    [44] = {8, WIRE_PAYLOAD_F64},
    [45] = {16, 0},
    [50] = {2, 0},
    [52] = {4, 0},
    [68] = {4, WIRE_PAYLOAD_U32},
    [69] = {4, WIRE_PAYLOAD_U32},
    [70] = {8, WIRE_PAYLOAD_U64},
    [71] = {4, WIRE_PAYLOAD_U32},
    [72] = {8, WIRE_PAYLOAD_U64},
    [73] = {4, WIRE_PAYLOAD_U32},
    [74] = {8, WIRE_PAYLOAD_U64},
    [80] = {8, 0},
};
#define PLAIN_TYPES (sizeof plain / sizeof *plain)

static _Atomic uint64_t dynamic_ids;

uint64_t nvtx_new_id(void)
{
    return PK_NVTX_SCHEMA_ID_DYNAMIC_START + atomic_fetch_add(&dynamic_ids, 1);
}

static struct nvtx_object *text_object(const struct nvtx_object *domain, const char *text)
{
    return text ? nvtx_object_get(NVTX_STRING, domain, 0, text, strlen(text)) : NULL;
}

/* ---- enumerations ---------------------------------------------------------------------------- */

static const struct enumeration *enumeration_of(const struct nvtx_object *domain, uint64_t id)
{
    const struct nvtx_object *object = nvtx_object_find(NVTX_ENUM, domain, id);
    return object ? atomic_load_explicit(&object->kept, memory_order_acquire) : NULL;
}

static const struct enumeration *keep_enumeration(const struct nvtx_object *domain,
                                                  const struct pk_nvtx_enum_attributes *given)
{
    uint64_t both = ENUM_HAS_ENTRIES | ENUM_HAS_COUNT;
    bool listed = (given->field_mask & both) == both && given->entries;
    size_t count = listed ? given->entry_count : 0;
    if (count > MAX_VALUES)
        count = MAX_VALUES;
    struct enumeration *kept = nvtx_keep(sizeof *kept + count * sizeof kept->values[0]);
    if (!kept)
        return NULL;
    kept->bytes = given->field_mask & ENUM_HAS_SIZE && given->size_of_enum <= sizeof(uint64_t)
                      ? (uint32_t)given->size_of_enum
                      : (uint32_t)sizeof(int);
    kept->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        kept->values[i].value = given->entries[i].value;
        kept->values[i].name = text_object(domain, given->entries[i].name);
    }
    return kept;
}

uint64_t nvtx_enum_register(struct nvtx_object *domain, const struct pk_nvtx_enum_attributes *given)
{
    uint64_t id = given->field_mask & ENUM_HAS_ID ? given->id : 0;
    if (id == 0)
        id = nvtx_new_id();
    struct nvtx_object *object = nvtx_object_get(NVTX_ENUM, domain, id, "", 0);
    if (object && !atomic_load(&object->kept))
        atomic_store_explicit(&object->kept, keep_enumeration(domain, given), memory_order_release);
    return id;
}

/* ---- layouts --------------------------------------------------------------------------------- */

/* Size and alignment of an entry, from its type; false when that takes more than one look. */
static bool entry_size(const struct nvtx_object *domain, const struct pk_nvtx_schema_entry *entry,
                       size_t *bytes, size_t *align)
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
    if (entry->type < PLAIN_TYPES)
        *bytes = plain[entry->type].bytes;
    else {
        const struct enumeration *enumeration = enumeration_of(domain, entry->type);
        *bytes = enumeration ? enumeration->bytes : 0;
    }
    *align = *bytes;
    if (*bytes == 0)
        return false;
    if (array == FLAG_FIXED)
        *bytes *= (size_t)entry->array_or_union_detail;
    return array == 0 || array == FLAG_FIXED;
}

static enum field_form text_form(const struct pk_nvtx_schema_entry *entry, uint64_t *bytes)
{
    uint64_t array = entry->flags & FLAG_ARRAY;
    *bytes = entry->array_or_union_detail;
    if ((entry->flags & FLAG_POINTER) || (array == 0 && *bytes == 0))
        return FIELD_POINTER;
    if (array == FLAG_TERMINATED)
        *bytes = 0; /* to the end of the payload */
    else if ((array != 0 && array != FLAG_FIXED) || *bytes == 0)
        return FIELD_NONE;
    return FIELD_EMBEDDED;
}

/* How the entry's value is read; form NONE when it is not kept. */
static struct field describe_payload_entry(const struct pk_nvtx_schema_entry *entry,
                                           uint64_t offset)
{
    struct field field = {.offset = (uint32_t)offset};
    uint64_t bytes = 0;
    bool single = !(entry->flags & (FLAG_ARRAY | FLAG_POINTER | FLAG_OFFSET));
    if (entry->type == TYPE_CSTRING || entry->type == TYPE_CSTRING_UTF8) {
        if (!(entry->flags & FLAG_OFFSET))
            field.form = (uint8_t)text_form(entry, &bytes);
    } else if (!single) {
        return field;
    } else if (entry->type == TYPE_REGISTERED) {
        field.form = FIELD_HANDLE;
    } else if (entry->type < PLAIN_TYPES) {
        field.number = plain[entry->type].number;
        field.form = field.number ? FIELD_NUMBER : FIELD_NONE;
        bytes = plain[entry->type].bytes;
    } else { /* an enumeration, which may be registered later; or a layout, which is left out */
        field.enumeration = entry->type;
        field.form = FIELD_NUMBER;
    }
    if (offset >= UINT32_MAX / 2 || bytes >= UINT32_MAX / 2)
        field.form = FIELD_NONE;
    field.bytes = (uint32_t)bytes;
    return field;
}

static void add_layout_field(struct nvtx_object *domain, struct layout *layout,
                             const struct pk_nvtx_schema_entry *entry, uint64_t offset)
{
    struct field field = describe_payload_entry(entry, offset);
    if (entry->flags & FLAG_MESSAGE) {
        if (layout->message.form == FIELD_NONE && field.form != FIELD_NUMBER)
            layout->message = field;
        return;
    }
    field.name = text_object(domain, entry->name);
    if (field.form == FIELD_NONE || !field.name || layout->count == NVTX_FIELDS)
        layout->partial = true;
    else
        layout->fields[layout->count++] = field;
}

/* Offsets that the program left out follow from natural alignment; false once that is not known. */
static bool entry_offset(const struct pk_nvtx_schema_entry *entry, bool first, bool sized,
                         size_t align, bool known, uint64_t *offset)
{
    uint64_t next = *offset;
    *offset = entry->offset_bytes;
    if (*offset != 0 || first)
        return true;
    if (!known || (!sized && !(entry->flags & FLAG_MESSAGE)))
        return false;
    *offset = (next + align - 1) / align * align;
    return true;
}

static void read_layout(struct nvtx_object *domain, const struct pk_nvtx_schema_attributes *schema,
                        struct layout *layout)
{
    uint64_t both = SCHEMA_HAS_ENTRIES | SCHEMA_HAS_COUNT;
    if ((schema->field_mask & both) != both || !schema->entries)
        return;
    size_t pack = schema->field_mask & SCHEMA_HAS_ALIGN ? schema->pack_align_bytes : 0;
    uint64_t offset = 0;
    bool known = true; /* `offset` is the end of the entry before */
    for (size_t i = 0; i < schema->entry_count; i++) {
        const struct pk_nvtx_schema_entry *entry = &schema->entries[i];
        size_t bytes = 0, align = 1;
        bool sized = entry_size(domain, entry, &bytes, &align);
        if (pack && pack < align)
            align = pack;
        if (!entry_offset(entry, i == 0, sized, align ? align : 1, known, &offset)) {
            layout->partial = true;
            known = false;
            continue;
        }
        add_layout_field(domain, layout, entry, offset);
        offset += bytes;
        known = sized;
    }
}

/* A layout may be registered over and over: only what is new about it takes room. */
static void keep_layout(struct nvtx_object *object, const struct layout *layout)
{
    const struct layout *before = atomic_load_explicit(&object->kept, memory_order_acquire);
    if (before && memcmp(before, layout, sizeof *layout) == 0)
        return;
    struct layout *kept = nvtx_keep(sizeof *kept);
    if (!kept)
        return;
    memcpy(kept, layout, sizeof *kept);
    atomic_store_explicit(&object->kept, kept, memory_order_release);
}

uint64_t nvtx_layout_register(struct nvtx_object *domain,
                              const struct pk_nvtx_schema_attributes *schema)
{
    uint64_t id = schema->field_mask & SCHEMA_HAS_ID ? schema->schema_id : 0;
    if (id == 0)
        id = nvtx_new_id();
    const char *name = schema->field_mask & SCHEMA_HAS_NAME ? schema->name : NULL;
    struct nvtx_object *object =
        nvtx_object_get(NVTX_SCHEMA, domain, id, name ? name : "", name ? strlen(name) : 0);
    if (object) {
        struct layout layout;
        memset(&layout, 0, sizeof layout); /* with what lies between the members: it is compared */
        read_layout(domain, schema, &layout);
        keep_layout(object, &layout);
    }
    return id;
}

/* ---- values ---------------------------------------------------------------------------------- */

static void read_payload_number(const void *at, size_t bytes, uint8_t number,
                                struct nvtx_value *value)
{
    uint64_t bits = 0;
    memcpy(&bits, at, bytes);
    bool negative = bytes < sizeof bits && bits >> (8 * bytes - 1) & 1;
    if ((number == WIRE_PAYLOAD_I32 || number == WIRE_PAYLOAD_I64) && negative)
        bits |= UINT64_MAX << (8 * bytes);
    value->type = number;
    value->bits = bits;
}

static void read_payload_string(uint32_t string, struct nvtx_value *value)
{
    value->type = string ? WIRE_PAYLOAD_TEXT : WIRE_PAYLOAD_NONE;
    value->bits = string;
}

bool nvtx_plain_value(const struct pk_nvtx_payload_data *payload, struct nvtx_value *value)
{
    uint64_t type = payload->schema_id;
    if (type == TYPE_CSTRING || type == TYPE_CSTRING_UTF8) {
        const char *text = payload->payload;
        read_payload_string(payload->size_bytes == SIZE_MAX
                                ? collector_text(text)
                                : collector_string(text, strnlen(text, payload->size_bytes)),
                            value);
        return true;
    }
    if (type >= PLAIN_TYPES || plain[type].number == WIRE_PAYLOAD_NONE ||
        payload->size_bytes < plain[type].bytes)
        return false;
    read_payload_number(payload->payload, plain[type].bytes, plain[type].number, value);
    return true;
}

/* The name of an enumeration's value, or its number where it has none. False: the program did not
 * register it.
 *  */
static bool read_enumeration(const struct nvtx_object *domain, uint64_t id, const void *at,
                             size_t room, struct nvtx_value *value)
{
    const struct enumeration *all = enumeration_of(domain, id);
    if (!all || all->bytes == 0 || room < all->bytes)
        return false;
    uint64_t mask = all->bytes < sizeof mask ? ~(UINT64_MAX << (8 * all->bytes)) : UINT64_MAX;
    read_payload_number(at, all->bytes, all->bytes > 4 ? WIRE_PAYLOAD_I64 : WIRE_PAYLOAD_I32,
                        value);
    for (uint32_t i = 0; i < all->count; i++) {
        if (((all->values[i].value ^ value->bits) & mask) == 0 && all->values[i].name) {
            read_payload_string(nvtx_object_id(all->values[i].name), value);
            break;
        }
    }
    return true;
}

static uint32_t embedded_text(const char *at, size_t bytes, size_t room, bool sized)
{
    if (bytes == 0 && !sized)
        return collector_text(at);
    return collector_string(at, strnlen(at, bytes && bytes < room ? bytes : room));
}

/* False when the payload is too small to hold the field. */
static bool read_field(const struct nvtx_object *domain, const struct pk_nvtx_payload_data *payload,
                       const struct field *field, struct nvtx_value *value)
{
    bool sized = payload->size_bytes != SIZE_MAX;
    if (field->form == FIELD_NONE || (sized && field->offset >= payload->size_bytes))
        return false;
    const char *at = (const char *)payload->payload + field->offset;
    size_t room = sized ? payload->size_bytes - field->offset : SIZE_MAX;
    if (field->form == FIELD_EMBEDDED) {
        read_payload_string(embedded_text(at, field->bytes, sized ? room : field->bytes, sized),
                            value);
        return true;
    }
    if (field->enumeration)
        return read_enumeration(domain, field->enumeration, at, room, value);
    if (field->form == FIELD_NUMBER) {
        if (room < field->bytes)
            return false;
        read_payload_number(at, field->bytes, field->number, value);
        return true;
    }
    const void *pointer;
    if (room < sizeof pointer)
        return false;
    memcpy(&pointer, at, sizeof pointer);
    struct nvtx_object *registered =
        field->form == FIELD_HANDLE ? nvtx_object_of(pointer, NVTX_STRING) : NULL;
    read_payload_string(field->form == FIELD_POINTER ? collector_text(pointer)
                        : registered                 ? nvtx_object_id(registered)
                                                     : 0,
                        value);
    return true;
}

uint32_t nvtx_layout_message(const struct nvtx_object *schema,
                             const struct pk_nvtx_payload_data *payload)
{
    const struct layout *layout = atomic_load_explicit(&schema->kept, memory_order_acquire);
    struct nvtx_value value = {0};
    return layout && read_field(schema->domain, payload, &layout->message, &value) &&
                   value.type == WIRE_PAYLOAD_TEXT
               ? (uint32_t)value.bits
               : 0;
}

size_t nvtx_layout_values(const struct nvtx_object *schema,
                          const struct pk_nvtx_payload_data *payload, struct nvtx_value *values,
                          bool *whole)
{
    const struct layout *layout = atomic_load_explicit(&schema->kept, memory_order_acquire);
    size_t count = 0;
    *whole = layout && !layout->partial;
    for (uint32_t i = 0; layout && i < layout->count; i++) {
        const struct field *field = &layout->fields[i];
        struct nvtx_value value = {.name = field->name};
        if (!read_field(schema->domain, payload, field, &value))
            *whole = false;
        else if (value.type != WIRE_PAYLOAD_NONE)
            values[count++] = value;
    }
    return count;
}
