/* The NVTX v3 injection ABI, as our own declarations.
 *
 * An annotated program and a tool meet through a small binary contract: an environment variable
 * names a library, one exported function of it is called per annotated module, and through an
 * export table the library writes its handlers into that module's function slots. No distribution
 * packages the headers that describe it, and perfkit must build on machines without CUDA, so the
 * contract is written down here. tests/workloads/ compares every size, offset and number with the
 * vendor's headers where those are found.
 *
 * Usable from C11, C++11 and CUDA sources; declares only, links nothing. All names start with
 * pk_nvtx_ or PK_NVTX_, so that a file may include the vendor's headers as well. x86-64 and other
 * LP64 targets only: pointers are 8 bytes.
 */
#ifndef PERFKIT_NVTX_ABI_H
#define PERFKIT_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define PK_NVTX_ASSERT(condition, text) static_assert(condition, text)
extern "C" {
#else
#define PK_NVTX_ASSERT(condition, text) _Static_assert(condition, text)
#endif

/* ---- names that cross the boundary ----------------------------------------------------------- */

#define PK_NVTX_VERSION 3
#define PK_NVTX_ENV_INJECTION "NVTX_INJECTION64_PATH"
#define PK_NVTX_SYMBOL_INIT "InitializeInjectionNvtx2"
#define PK_NVTX_SYMBOL_INIT_EXTENSION "InitializeInjectionNvtxExtension"

/* What push and pop return when no tool keeps track of the depth. */
#define PK_NVTX_NO_PUSH_POP_TRACKING (-2)

/* Handles belong to the tool: the client passes back what it was given and never looks inside. */
struct pk_nvtx_domain;
struct pk_nvtx_string;
struct pk_nvtx_resource;
typedef uint64_t pk_nvtx_range_id;

/* ---- event attributes ------------------------------------------------------------------------ */

enum pk_nvtx_color_type { PK_NVTX_COLOR_UNKNOWN = 0, PK_NVTX_COLOR_ARGB = 1 };

enum pk_nvtx_message_type {
    PK_NVTX_MESSAGE_UNKNOWN = 0,
    PK_NVTX_MESSAGE_ASCII = 1,      /* char*, the locale's encoding (in practice UTF-8) */
    PK_NVTX_MESSAGE_UNICODE = 2,    /* wchar_t* */
    PK_NVTX_MESSAGE_REGISTERED = 3, /* handle from domain_register_string */
};

enum pk_nvtx_payload_type {
    PK_NVTX_PAYLOAD_UNKNOWN = 0,
    PK_NVTX_PAYLOAD_UINT64 = 1,
    PK_NVTX_PAYLOAD_INT64 = 2,
    PK_NVTX_PAYLOAD_DOUBLE = 3,
    PK_NVTX_PAYLOAD_UINT32 = 4,
    PK_NVTX_PAYLOAD_INT32 = 5,
    PK_NVTX_PAYLOAD_FLOAT = 6,
};

/* payload_type of the extended payload: payload.u64 holds the address of an array of
 * pk_nvtx_payload_data, reserved0 holds its length. */
#define PK_NVTX_PAYLOAD_EXT ((int32_t)0xDFBD0009)

/* Ids of payload layouts: a program picks ids of its own from the static range, a tool hands
 * out ids of the dynamic range when a layout is registered. Ids are per domain. */
#define PK_NVTX_SCHEMA_ID_STATIC_START (1 << 24)
#define PK_NVTX_SCHEMA_ID_DYNAMIC_START ((uint64_t)1 << 32)

union pk_nvtx_message {
    const char *ascii;
    const wchar_t *unicode;
    struct pk_nvtx_string *registered;
};

union pk_nvtx_payload {
    uint64_t u64;
    int64_t i64;
    double f64;
    uint32_t u32;
    int32_t i32;
    float f32;
};

/* One event (mark, push or start). `version` and `size` come first in every revision of the
 * structure; a reader must not look past `size` bytes. */
struct pk_nvtx_event_attributes {
    uint16_t version; /* PK_NVTX_VERSION; older programs say 2 */
    uint16_t size;    /* bytes, 48 */
    uint32_t category;
    int32_t color_type;   /* enum pk_nvtx_color_type */
    uint32_t color;       /* 0xAARRGGBB */
    int32_t payload_type; /* enum pk_nvtx_payload_type or PK_NVTX_PAYLOAD_EXT */
    int32_t reserved0;    /* number of payloads when extended, else 0 */
    union pk_nvtx_payload payload;
    int32_t message_type; /* enum pk_nvtx_message_type */
    union pk_nvtx_message message;
};

/* One element of an extended payload. size is SIZE_MAX when the tool must derive it. */
struct pk_nvtx_payload_data {
    uint64_t schema_id;
    size_t size_bytes;
    const void *payload;
};

PK_NVTX_ASSERT(sizeof(void *) == 8 && sizeof(size_t) == 8, "LP64 only");
PK_NVTX_ASSERT(sizeof(struct pk_nvtx_event_attributes) == 48, "event attributes: size");
PK_NVTX_ASSERT(offsetof(struct pk_nvtx_event_attributes, version) == 0, "version");
PK_NVTX_ASSERT(offsetof(struct pk_nvtx_event_attributes, size) == 2, "size");
PK_NVTX_ASSERT(offsetof(struct pk_nvtx_event_attributes, category) == 4, "category");
PK_NVTX_ASSERT(offsetof(struct pk_nvtx_event_attributes, color_type) == 8, "color_type");
PK_NVTX_ASSERT(offsetof(struct pk_nvtx_event_attributes, color) == 12, "color");
PK_NVTX_ASSERT(offsetof(struct pk_nvtx_event_attributes, payload_type) == 16, "payload_type");
PK_NVTX_ASSERT(offsetof(struct pk_nvtx_event_attributes, reserved0) == 20, "reserved0");
PK_NVTX_ASSERT(offsetof(struct pk_nvtx_event_attributes, payload) == 24, "payload");
PK_NVTX_ASSERT(offsetof(struct pk_nvtx_event_attributes, message_type) == 32, "message_type");
PK_NVTX_ASSERT(offsetof(struct pk_nvtx_event_attributes, message) == 40, "message");
PK_NVTX_ASSERT(sizeof(struct pk_nvtx_payload_data) == 24, "payload data: size");
PK_NVTX_ASSERT(offsetof(struct pk_nvtx_payload_data, size_bytes) == 8, "size_bytes");
PK_NVTX_ASSERT(offsetof(struct pk_nvtx_payload_data, payload) == 16, "payload");

/* ---- named resources ------------------------------------------------------------------------- */

enum pk_nvtx_resource_type {
    PK_NVTX_RESOURCE_UNKNOWN = 0,
    PK_NVTX_RESOURCE_POINTER = (1 << 16) | 1,
    PK_NVTX_RESOURCE_HANDLE = (1 << 16) | 2,
    PK_NVTX_RESOURCE_THREAD_NATIVE = (1 << 16) | 3,
    PK_NVTX_RESOURCE_THREAD_POSIX = (1 << 16) | 4,
    PK_NVTX_RESOURCE_CUDA_DEVICE = (4 << 16) | 1, /* of the driver API */
    PK_NVTX_RESOURCE_CUDA_CONTEXT = (4 << 16) | 2,
    PK_NVTX_RESOURCE_CUDA_STREAM = (4 << 16) | 3,
    PK_NVTX_RESOURCE_CUDA_EVENT = (4 << 16) | 4,
    PK_NVTX_RESOURCE_CUDART_DEVICE = (5 << 16) | 0, /* of the runtime API */
    PK_NVTX_RESOURCE_CUDART_STREAM = (5 << 16) | 1,
    PK_NVTX_RESOURCE_CUDART_EVENT = (5 << 16) | 2,
};

struct pk_nvtx_resource_attributes {
    uint16_t version;
    uint16_t size;           /* bytes, 32 */
    int32_t identifier_type; /* enum pk_nvtx_resource_type */
    union {
        const void *pointer;
        uint64_t value;
    } identifier;
    int32_t message_type;
    union pk_nvtx_message message;
};

PK_NVTX_ASSERT(sizeof(struct pk_nvtx_resource_attributes) == 32, "resource attributes: size");
PK_NVTX_ASSERT(offsetof(struct pk_nvtx_resource_attributes, identifier) == 8, "identifier");
PK_NVTX_ASSERT(offsetof(struct pk_nvtx_resource_attributes, message) == 24, "message");

/* ---- modules and callback ids ---------------------------------------------------------------- */

/* A "module" here is a family of functions with one slot table, not a shared object. */
enum pk_nvtx_module {
    PK_NVTX_MODULE_INVALID = 0,
    PK_NVTX_MODULE_CORE = 1,
    PK_NVTX_MODULE_CUDA = 2,
    PK_NVTX_MODULE_OPENCL = 3,
    PK_NVTX_MODULE_CUDART = 4,
    PK_NVTX_MODULE_CORE2 = 5,
    PK_NVTX_MODULE_SYNC = 6,
    PK_NVTX_MODULE_COUNT = 7,
};

/* Slots of PK_NVTX_MODULE_CORE. A = char, W = wchar_t, EX = event attributes. */
enum pk_nvtx_core {
    PK_NVTX_CORE_INVALID = 0,
    PK_NVTX_CORE_MARK_EX = 1,
    PK_NVTX_CORE_MARK_A = 2,
    PK_NVTX_CORE_MARK_W = 3,
    PK_NVTX_CORE_RANGE_START_EX = 4,
    PK_NVTX_CORE_RANGE_START_A = 5,
    PK_NVTX_CORE_RANGE_START_W = 6,
    PK_NVTX_CORE_RANGE_END = 7,
    PK_NVTX_CORE_RANGE_PUSH_EX = 8,
    PK_NVTX_CORE_RANGE_PUSH_A = 9,
    PK_NVTX_CORE_RANGE_PUSH_W = 10,
    PK_NVTX_CORE_RANGE_POP = 11,
    PK_NVTX_CORE_NAME_CATEGORY_A = 12,
    PK_NVTX_CORE_NAME_CATEGORY_W = 13,
    PK_NVTX_CORE_NAME_OS_THREAD_A = 14,
    PK_NVTX_CORE_NAME_OS_THREAD_W = 15,
    PK_NVTX_CORE_COUNT = 16,
};

/* Slots of PK_NVTX_MODULE_CORE2: the same calls with a domain, and what makes domains. */
enum pk_nvtx_core2 {
    PK_NVTX_CORE2_INVALID = 0,
    PK_NVTX_CORE2_DOMAIN_MARK_EX = 1,
    PK_NVTX_CORE2_DOMAIN_RANGE_START_EX = 2,
    PK_NVTX_CORE2_DOMAIN_RANGE_END = 3,
    PK_NVTX_CORE2_DOMAIN_RANGE_PUSH_EX = 4,
    PK_NVTX_CORE2_DOMAIN_RANGE_POP = 5,
    PK_NVTX_CORE2_DOMAIN_RESOURCE_CREATE = 6,
    PK_NVTX_CORE2_DOMAIN_RESOURCE_DESTROY = 7,
    PK_NVTX_CORE2_DOMAIN_NAME_CATEGORY_A = 8,
    PK_NVTX_CORE2_DOMAIN_NAME_CATEGORY_W = 9,
    PK_NVTX_CORE2_DOMAIN_REGISTER_STRING_A = 10,
    PK_NVTX_CORE2_DOMAIN_REGISTER_STRING_W = 11,
    PK_NVTX_CORE2_DOMAIN_CREATE_A = 12,
    PK_NVTX_CORE2_DOMAIN_CREATE_W = 13,
    PK_NVTX_CORE2_DOMAIN_DESTROY = 14,
    PK_NVTX_CORE2_INITIALIZE = 15,
    PK_NVTX_CORE2_COUNT = 16,
};

/* Slots of PK_NVTX_MODULE_CUDA and PK_NVTX_MODULE_CUDART: names for objects of the driver and of
 * the runtime API. Both exist, whichever API made the object. */
enum pk_nvtx_cuda {
    PK_NVTX_CUDA_NAME_DEVICE_A = 1,
    PK_NVTX_CUDA_NAME_DEVICE_W = 2,
    PK_NVTX_CUDA_NAME_CONTEXT_A = 3,
    PK_NVTX_CUDA_NAME_CONTEXT_W = 4,
    PK_NVTX_CUDA_NAME_STREAM_A = 5,
    PK_NVTX_CUDA_NAME_STREAM_W = 6,
    PK_NVTX_CUDA_NAME_EVENT_A = 7,
    PK_NVTX_CUDA_NAME_EVENT_W = 8,
    PK_NVTX_CUDA_COUNT = 9,
};
enum pk_nvtx_cudart {
    PK_NVTX_CUDART_NAME_DEVICE_A = 1,
    PK_NVTX_CUDART_NAME_DEVICE_W = 2,
    PK_NVTX_CUDART_NAME_STREAM_A = 3,
    PK_NVTX_CUDART_NAME_STREAM_W = 4,
    PK_NVTX_CUDART_NAME_EVENT_A = 5,
    PK_NVTX_CUDART_NAME_EVENT_W = 6,
    PK_NVTX_CUDART_COUNT = 7,
};

/* Table sizes of the modules that perfkit neither calls nor hooks. */
enum {
    PK_NVTX_OPENCL_COUNT = 15,
    PK_NVTX_SYNC_COUNT = 7,
};

/* ---- handler signatures ---------------------------------------------------------------------- */

/* CORE. Push returns the 0-based depth of the range it opened, pop that of the range it closed,
 * either a negative number on failure or without tracking; start returns a non-zero id. */
typedef void (*pk_nvtx_mark_ex_fn)(const struct pk_nvtx_event_attributes *event);
typedef void (*pk_nvtx_mark_a_fn)(const char *message);
typedef void (*pk_nvtx_mark_w_fn)(const wchar_t *message);
typedef pk_nvtx_range_id (*pk_nvtx_range_start_ex_fn)(const struct pk_nvtx_event_attributes *event);
typedef pk_nvtx_range_id (*pk_nvtx_range_start_a_fn)(const char *message);
typedef pk_nvtx_range_id (*pk_nvtx_range_start_w_fn)(const wchar_t *message);
typedef void (*pk_nvtx_range_end_fn)(pk_nvtx_range_id id);
typedef int (*pk_nvtx_range_push_ex_fn)(const struct pk_nvtx_event_attributes *event);
typedef int (*pk_nvtx_range_push_a_fn)(const char *message);
typedef int (*pk_nvtx_range_push_w_fn)(const wchar_t *message);
typedef int (*pk_nvtx_range_pop_fn)(void);
typedef void (*pk_nvtx_name_category_a_fn)(uint32_t category, const char *name);
typedef void (*pk_nvtx_name_category_w_fn)(uint32_t category, const wchar_t *name);
typedef void (*pk_nvtx_name_os_thread_a_fn)(uint32_t tid, const char *name);
typedef void (*pk_nvtx_name_os_thread_w_fn)(uint32_t tid, const wchar_t *name);

/* CUDA and CUDART. A device is an int in both, the rest are handles. */
typedef void (*pk_nvtx_name_device_a_fn)(int device, const char *name);
typedef void (*pk_nvtx_name_device_w_fn)(int device, const wchar_t *name);
typedef void (*pk_nvtx_name_handle_a_fn)(void *handle, const char *name);
typedef void (*pk_nvtx_name_handle_w_fn)(void *handle, const wchar_t *name);

/* CORE2. A NULL domain means the default domain, the one of the CORE calls. */
typedef void (*pk_nvtx_domain_mark_ex_fn)(struct pk_nvtx_domain *domain,
                                          const struct pk_nvtx_event_attributes *event);
typedef pk_nvtx_range_id (*pk_nvtx_domain_range_start_ex_fn)(
    struct pk_nvtx_domain *domain, const struct pk_nvtx_event_attributes *event);
typedef void (*pk_nvtx_domain_range_end_fn)(struct pk_nvtx_domain *domain, pk_nvtx_range_id id);
typedef int (*pk_nvtx_domain_range_push_ex_fn)(struct pk_nvtx_domain *domain,
                                               const struct pk_nvtx_event_attributes *event);
typedef int (*pk_nvtx_domain_range_pop_fn)(struct pk_nvtx_domain *domain);
typedef struct pk_nvtx_resource *(*pk_nvtx_domain_resource_create_fn)(
    struct pk_nvtx_domain *domain, struct pk_nvtx_resource_attributes *attributes);
typedef void (*pk_nvtx_domain_resource_destroy_fn)(struct pk_nvtx_resource *resource);
typedef void (*pk_nvtx_domain_name_category_a_fn)(struct pk_nvtx_domain *domain, uint32_t category,
                                                  const char *name);
typedef void (*pk_nvtx_domain_name_category_w_fn)(struct pk_nvtx_domain *domain, uint32_t category,
                                                  const wchar_t *name);
typedef struct pk_nvtx_string *(*pk_nvtx_domain_register_string_a_fn)(struct pk_nvtx_domain *domain,
                                                                      const char *text);
typedef struct pk_nvtx_string *(*pk_nvtx_domain_register_string_w_fn)(struct pk_nvtx_domain *domain,
                                                                      const wchar_t *text);
typedef struct pk_nvtx_domain *(*pk_nvtx_domain_create_a_fn)(const char *name);
typedef struct pk_nvtx_domain *(*pk_nvtx_domain_create_w_fn)(const wchar_t *name);
typedef void (*pk_nvtx_domain_destroy_fn)(struct pk_nvtx_domain *domain);
typedef void (*pk_nvtx_initialize_fn)(const void *reserved);

/* ---- export tables: how a tool reaches the slots of one annotated module --------------------- */

enum pk_nvtx_export_table {
    PK_NVTX_EXPORT_INVALID = 0,
    PK_NVTX_EXPORT_CALLBACKS = 1, /* struct pk_nvtx_export_callbacks */
    PK_NVTX_EXPORT_RESERVED = 2,
    PK_NVTX_EXPORT_VERSION_INFO = 3, /* struct pk_nvtx_export_version_info */
};

typedef void (*pk_nvtx_function)(void); /* to be cast to the slot's own signature */

/* table[callback id] is the address of the client's slot, NULL where it has none; a tool writes
 * its handler through it: `*table[id] = (pk_nvtx_function)handler`. */
typedef pk_nvtx_function **pk_nvtx_function_table;

struct pk_nvtx_export_callbacks {
    size_t struct_size; /* bytes, 16 */
    /* Returns 1 and fills the outputs (either may be NULL), 0 for an unknown module.
     * out_count: valid callback ids are 0 .. *out_count - 1. */
    int (*get_module_function_table)(uint32_t module, pk_nvtx_function_table *out_table,
                                     unsigned int *out_count);
};

struct pk_nvtx_export_version_info {
    size_t struct_size; /* bytes, 24 */
    uint32_t version;   /* PK_NVTX_VERSION of the client */
    uint32_t reserved0;
    void (*set_injection_version)(uint32_t version); /* a tool says which version it speaks */
};

PK_NVTX_ASSERT(sizeof(struct pk_nvtx_export_callbacks) == 16, "callbacks table: size");
PK_NVTX_ASSERT(offsetof(struct pk_nvtx_export_callbacks, get_module_function_table) == 8, "get");
PK_NVTX_ASSERT(sizeof(struct pk_nvtx_export_version_info) == 24, "version table: size");
PK_NVTX_ASSERT(offsetof(struct pk_nvtx_export_version_info, version) == 8, "version");
PK_NVTX_ASSERT(offsetof(struct pk_nvtx_export_version_info, set_injection_version) == 16, "set");

typedef const void *(*pk_nvtx_get_export_table_fn)(uint32_t export_table_id);

/* PK_NVTX_SYMBOL_INIT. Called once for every annotated executable or shared object of the
 * process, each with its own export table; returns non-zero when the tool attached. */
typedef int (*pk_nvtx_initialize_injection_fn)(pk_nvtx_get_export_table_fn get_export_table);

/* ---- extensions (payloads, counters): a second, newer attachment point ----------------------- */

struct pk_nvtx_ext_segment {
    size_t segment_id;
    size_t slot_count;
    intptr_t *function_slots; /* the tool writes function addresses into these */
};

struct pk_nvtx_ext_module_info {
    uint16_t nvtx_version;
    uint16_t struct_size;
    uint16_t module_id; /* enum pk_nvtx_ext_module */
    uint16_t compat_id;
    size_t segment_count;
    struct pk_nvtx_ext_segment *segments;
    intptr_t (*get_export_function)(uint32_t id); /* may be NULL */
    const void *ext_info;
};

PK_NVTX_ASSERT(sizeof(struct pk_nvtx_ext_segment) == 24, "segment: size");
PK_NVTX_ASSERT(sizeof(struct pk_nvtx_ext_module_info) == 40, "module info: size");
PK_NVTX_ASSERT(offsetof(struct pk_nvtx_ext_module_info, segments) == 16, "segments");

/* PK_NVTX_SYMBOL_INIT_EXTENSION; returns non-zero when the tool attached. */
typedef int (*pk_nvtx_initialize_extension_fn)(struct pk_nvtx_ext_module_info *module_info);

enum pk_nvtx_ext_module {
    PK_NVTX_EXT_MEMORY = 1,
    PK_NVTX_EXT_PAYLOAD = 2,
    PK_NVTX_EXT_COUNTERS = 4,
};

enum pk_nvtx_ext_payload {
    PK_NVTX_PAYLOAD_SCHEMA_REGISTER = 0,
    PK_NVTX_PAYLOAD_ENUM_REGISTER = 1,
    PK_NVTX_PAYLOAD_MARK = 2,
    PK_NVTX_PAYLOAD_RANGE_PUSH = 3,
    PK_NVTX_PAYLOAD_RANGE_POP = 4,
    PK_NVTX_PAYLOAD_RANGE_START = 5,
    PK_NVTX_PAYLOAD_RANGE_END = 6,
    PK_NVTX_PAYLOAD_DOMAIN_IS_ENABLED = 7,
    PK_NVTX_PAYLOAD_SCOPE_REGISTER = 12,
    PK_NVTX_PAYLOAD_EVENT_SUBMIT = 16,
    PK_NVTX_PAYLOAD_EVENT_BATCH_SUBMIT = 17,
    PK_NVTX_PAYLOAD_SLOT_COUNT = 63,
};

enum pk_nvtx_ext_counters {
    PK_NVTX_COUNTERS_REGISTER = 0,
    PK_NVTX_COUNTERS_SAMPLE_INT64 = 1,
    PK_NVTX_COUNTERS_SAMPLE_FLOAT64 = 2,
    PK_NVTX_COUNTERS_SAMPLE = 3,
    PK_NVTX_COUNTERS_NO_VALUE = 4,
    PK_NVTX_COUNTERS_BATCH_SUBMIT = 5,
};

/* One field of a payload layout. */
struct pk_nvtx_schema_entry {
    uint64_t flags;
    uint64_t type; /* predefined entry type (20 = double) or the id of another layout */
    const char *name;
    const char *description;
    uint64_t array_or_union_detail;
    uint64_t offset_bytes;
    const void *semantics;
    const void *reserved;
};

/* A payload layout, as given to PK_NVTX_PAYLOAD_SCHEMA_REGISTER. */
struct pk_nvtx_schema_attributes {
    uint64_t field_mask; /* which of the members below are set */
    const char *name;
    uint64_t type;
    uint64_t flags;
    const struct pk_nvtx_schema_entry *entries;
    size_t entry_count;
    size_t payload_static_size_bytes;
    size_t pack_align_bytes;
    uint64_t schema_id; /* 0: the tool chooses */
    void *extension;
};

/* One value of an enumeration that fields may be of. */
struct pk_nvtx_enum_entry {
    const char *name;
    uint64_t value;
    int8_t is_flag;
};

/* An enumeration, as given to PK_NVTX_PAYLOAD_ENUM_REGISTER. */
struct pk_nvtx_enum_attributes {
    uint64_t field_mask; /* which of the members below are set */
    const char *name;
    const struct pk_nvtx_enum_entry *entries;
    size_t entry_count;
    size_t size_of_enum;
    uint64_t id; /* 0: the tool chooses */
};

PK_NVTX_ASSERT(sizeof(struct pk_nvtx_enum_entry) == 24, "enum entry: size");
PK_NVTX_ASSERT(sizeof(struct pk_nvtx_enum_attributes) == 48, "enum attributes: size");
PK_NVTX_ASSERT(sizeof(struct pk_nvtx_schema_entry) == 64, "schema entry: size");
PK_NVTX_ASSERT(sizeof(struct pk_nvtx_schema_attributes) == 80, "schema attributes: size");
PK_NVTX_ASSERT(offsetof(struct pk_nvtx_schema_attributes, schema_id) == 64, "schema_id");

/* ---- perfkit's own convention on top of NVTX ------------------------------------------------- */

/* Domain and layout in which a program declares the work of its launches (annotate.h). The
 * payload is one struct perfkit_work; a value that is not known is NaN, never 0. */
#define PERFKIT_NVTX_DOMAIN "perfkit"
#define PERFKIT_WORK_SCHEMA ((uint64_t)((1 << 24) + 0x706b))

struct perfkit_work {
    double flop;          /* floating-point operations, a fused multiply-add counts 2 */
    double bytes_read;    /* bytes read from device memory */
    double bytes_written; /* bytes written to device memory */
};

/* Ranges in this domain are collective operations (perfkit_collective_push). */
#define PERFKIT_NVTX_COLLECTIVE_DOMAIN "perfkit.collective"

PK_NVTX_ASSERT(sizeof(struct perfkit_work) == 24, "work: size");

#ifdef __cplusplus
}
#endif

#endif
