/* The handlers of NVTX's core: ranges, marks, names, domains, registered strings; ASCII, wide and
 * attribute forms. Each turns its arguments into an nvtx_event for events.c. The naming functions
 * of NVTX's own objects (domains, categories, strings, resources) are here too. */
#include <string.h>

#include "collectors/nvtx/nvtx.h"

/* ---- arguments to events --------------------------------------------------------------------- */

/* Each fills *event and returns it, or NULL when it is not recorded. */
static const struct nvtx_event *from_ascii(struct nvtx_event *event, const char *message)
{
    if (!nvtx_records_range(NULL, PK_NVTX_MESSAGE_ASCII, message))
        return NULL;
    *event = (struct nvtx_event){.message = collector_text(message)};
    return event;
}

/* The form in which PyTorch's profiler sends its operators. */
static const struct nvtx_event *from_pushed(struct nvtx_event *event, const char *message)
{
    if (!nvtx_torch || !message)
        return from_ascii(event, message);
    if (!nvtx_records_range(NULL, PK_NVTX_MESSAGE_ASCII, message))
        return NULL;
    *event = (struct nvtx_event){0};
    event->message = collector_string(message, nvtx_torch_name(message, event));
    return event;
}

static uint32_t wide_id(const wchar_t *wide)
{
    struct nvtx_text text;
    nvtx_narrow(&text, wide);
    uint32_t id = collector_string(text.text, text.length);
    nvtx_narrow_done(&text);
    return id;
}

static const struct nvtx_event *from_wide(struct nvtx_event *event, const wchar_t *message)
{
    if (!nvtx_records_range(NULL, PK_NVTX_MESSAGE_UNICODE, message))
        return NULL;
    *event = (struct nvtx_event){.message = wide_id(message)};
    return event;
}

static uint32_t message_id(int32_t type, union pk_nvtx_message message)
{
    struct nvtx_object *registered;
    switch (type) {
    case PK_NVTX_MESSAGE_ASCII:
        return collector_text(message.ascii);
    case PK_NVTX_MESSAGE_UNICODE:
        return wide_id(message.unicode);
    case PK_NVTX_MESSAGE_REGISTERED:
        registered = nvtx_object_of(message.registered, NVTX_STRING);
        return registered ? nvtx_object_id(registered) : 0;
    default:
        return 0;
    }
}

static const struct nvtx_event *from_attributes(struct nvtx_event *event,
                                                struct nvtx_object *domain,
                                                const struct pk_nvtx_event_attributes *given)
{
    /* A size that was left 0 is a slip of the program; no revision was ever smaller than ours. */
    struct pk_nvtx_event_attributes copy = {0};
    size_t size = given && given->size && given->size < sizeof copy ? given->size : sizeof copy;
    if (given)
        memcpy(&copy, given, size);
    if (!nvtx_records_range(domain, copy.message_type, copy.message.ascii))
        return NULL;
    *event = (struct nvtx_event){0};
    if (!given)
        return event;
    event->message = message_id(copy.message_type, copy.message);
    event->category = copy.category;
    event->has_color = copy.color_type == PK_NVTX_COLOR_ARGB;
    event->color = event->has_color ? copy.color : 0;
    switch (copy.payload_type) {
    case PK_NVTX_PAYLOAD_UINT64:
    case PK_NVTX_PAYLOAD_INT64:
    case PK_NVTX_PAYLOAD_DOUBLE:
        event->payload = copy.payload.u64;
        break;
    case PK_NVTX_PAYLOAD_UINT32:
    case PK_NVTX_PAYLOAD_FLOAT: /* the low half holds the bits */
        event->payload = copy.payload.u32;
        break;
    case PK_NVTX_PAYLOAD_INT32:
        event->payload = (uint64_t)(int64_t)copy.payload.i32;
        break;
    case PK_NVTX_PAYLOAD_EXT:
        if (copy.reserved0 > 0)
            nvtx_read_payloads(domain,
                               (const struct pk_nvtx_payload_data *)(uintptr_t)copy.payload.u64,
                               (size_t)copy.reserved0, event);
        return event;
    default:
        return event;
    }
    event->payload_type = (uint8_t)copy.payload_type;
    return event;
}

/* Does a window open with this range? Checked before the range is recorded, so that it is recorded
 * too. */
static bool opens(const struct nvtx_object *domain, int32_t type, const void *message)
{
    return nvtx_capturing && nvtx_capture_opens(domain, type, message);
}

static bool opens_by_attributes(const struct nvtx_object *domain,
                                const struct pk_nvtx_event_attributes *given)
{
    return nvtx_capturing && given && (given->size == 0 || given->size >= sizeof *given) &&
           nvtx_capture_opens(domain, given->message_type, given->message.ascii);
}

/* ---- CORE: the default domain ---------------------------------------------------------------- */

static void mark_ex(const struct pk_nvtx_event_attributes *attributes)
{
    struct nvtx_event event;
    nvtx_mark(NULL, from_attributes(&event, NULL, attributes));
}
static void mark_a(const char *message)
{
    struct nvtx_event event;
    nvtx_mark(NULL, from_ascii(&event, message));
}
static void mark_w(const wchar_t *message)
{
    struct nvtx_event event;
    nvtx_mark(NULL, from_wide(&event, message));
}
static pk_nvtx_range_id range_start_ex(const struct pk_nvtx_event_attributes *attributes)
{
    struct nvtx_event event;
    bool captures = opens_by_attributes(NULL, attributes);
    return nvtx_start(NULL, from_attributes(&event, NULL, attributes), captures);
}
static pk_nvtx_range_id range_start_a(const char *message)
{
    struct nvtx_event event;
    bool captures = opens(NULL, PK_NVTX_MESSAGE_ASCII, message);
    return nvtx_start(NULL, from_ascii(&event, message), captures);
}
static pk_nvtx_range_id range_start_w(const wchar_t *message)
{
    struct nvtx_event event;
    bool captures = opens(NULL, PK_NVTX_MESSAGE_UNICODE, message);
    return nvtx_start(NULL, from_wide(&event, message), captures);
}
static int range_push_ex(const struct pk_nvtx_event_attributes *attributes)
{
    struct nvtx_event event;
    bool captures = opens_by_attributes(NULL, attributes);
    return nvtx_push(NULL, from_attributes(&event, NULL, attributes), captures);
}
static int range_push_a(const char *message)
{
    struct nvtx_event event;
    bool captures = opens(NULL, PK_NVTX_MESSAGE_ASCII, message);
    return nvtx_push(NULL, from_pushed(&event, message), captures);
}
static int range_push_w(const wchar_t *message)
{
    struct nvtx_event event;
    bool captures = opens(NULL, PK_NVTX_MESSAGE_UNICODE, message);
    return nvtx_push(NULL, from_wide(&event, message), captures);
}
static int range_pop(void)
{
    return nvtx_pop(NULL, NULL, 0);
}

static void name_category_a(uint32_t category, const char *name)
{
    nvtx_name_category(NULL, category, name, name ? strlen(name) : 0);
}
static void name_category_w(uint32_t category, const wchar_t *name)
{
    struct nvtx_text text;
    nvtx_narrow(&text, name);
    nvtx_name_category(NULL, category, text.text, text.length);
    nvtx_narrow_done(&text);
}
static void name_os_thread_a(uint32_t tid, const char *name)
{
    nvtx_name_object(WIRE_NAMED_THREAD, tid, name, name ? strlen(name) : 0);
}
static void name_os_thread_w(uint32_t tid, const wchar_t *name)
{
    struct nvtx_text text;
    nvtx_narrow(&text, name);
    nvtx_name_object(WIRE_NAMED_THREAD, tid, text.text, text.length);
    nvtx_narrow_done(&text);
}

/* ---- CORE2: the same with a domain, and what makes handles ----------------------------------- */

static void domain_mark_ex(struct pk_nvtx_domain *handle,
                           const struct pk_nvtx_event_attributes *attributes)
{
    struct nvtx_object *domain = nvtx_domain_of(handle);
    struct nvtx_event event;
    nvtx_mark(domain, from_attributes(&event, domain, attributes));
}
static pk_nvtx_range_id domain_range_start_ex(struct pk_nvtx_domain *handle,
                                              const struct pk_nvtx_event_attributes *attributes)
{
    struct nvtx_object *domain = nvtx_domain_of(handle);
    struct nvtx_event event;
    bool captures = opens_by_attributes(domain, attributes);
    return nvtx_start(domain, from_attributes(&event, domain, attributes), captures);
}
static void domain_range_end(struct pk_nvtx_domain *handle, pk_nvtx_range_id id)
{
    (void)handle; /* the id knows its domain */
    nvtx_end(id);
}
static int domain_range_push_ex(struct pk_nvtx_domain *handle,
                                const struct pk_nvtx_event_attributes *attributes)
{
    struct nvtx_object *domain = nvtx_domain_of(handle);
    struct nvtx_event event;
    bool captures = opens_by_attributes(domain, attributes);
    return nvtx_push(domain, from_attributes(&event, domain, attributes), captures);
}
static int domain_range_pop(struct pk_nvtx_domain *handle)
{
    return nvtx_pop(nvtx_domain_of(handle), NULL, 0);
}

/* What of a program's resources perfkit shows; 0 = nothing. */
static enum wire_named named(int32_t type)
{
    switch (type) {
    case PK_NVTX_RESOURCE_THREAD_NATIVE:
        return WIRE_NAMED_THREAD;
    case PK_NVTX_RESOURCE_CUDA_DEVICE:
    case PK_NVTX_RESOURCE_CUDART_DEVICE:
        return WIRE_NAMED_CUDA_DEVICE;
    case PK_NVTX_RESOURCE_CUDA_CONTEXT:
        return WIRE_NAMED_CUDA_CONTEXT;
    case PK_NVTX_RESOURCE_CUDA_STREAM:
    case PK_NVTX_RESOURCE_CUDART_STREAM:
        return WIRE_NAMED_CUDA_STREAM;
    case PK_NVTX_RESOURCE_CUDA_EVENT:
    case PK_NVTX_RESOURCE_CUDART_EVENT:
        return WIRE_NAMED_CUDA_EVENT;
    default:
        return 0;
    }
}

static void name_resource(const struct pk_nvtx_resource_attributes *given)
{
    enum wire_named what = named(given->identifier_type);
    uint64_t object = given->identifier.value;
    if (what == WIRE_NAMED_THREAD || what == WIRE_NAMED_CUDA_DEVICE)
        object = (uint32_t)object;
    if (what == 0)
        return;
    if (given->message_type == PK_NVTX_MESSAGE_ASCII && given->message.ascii) {
        nvtx_name_object(what, object, given->message.ascii, strlen(given->message.ascii));
    } else if (given->message_type == PK_NVTX_MESSAGE_UNICODE) {
        struct nvtx_text text;
        nvtx_narrow(&text, given->message.unicode);
        nvtx_name_object(what, object, text.text, text.length);
        nvtx_narrow_done(&text);
    } else if (given->message_type == PK_NVTX_MESSAGE_REGISTERED) {
        struct nvtx_object *name = nvtx_object_of(given->message.registered, NVTX_STRING);
        if (name)
            nvtx_name_object(what, object, name->text, name->length);
    }
}

static struct pk_nvtx_resource *domain_resource_create(struct pk_nvtx_domain *handle,
                                                       struct pk_nvtx_resource_attributes *given)
{
    (void)handle;
    if (given && given->size >= sizeof *given)
        name_resource(given);
    return (struct pk_nvtx_resource *)nvtx_object_get(NVTX_RESOURCE, NULL, 0, "", 0);
}
static void domain_resource_destroy(struct pk_nvtx_resource *resource)
{
    (void)resource;
}

static void domain_name_category_a(struct pk_nvtx_domain *handle, uint32_t category,
                                   const char *name)
{
    nvtx_name_category(nvtx_domain_of(handle), category, name, name ? strlen(name) : 0);
}
static void domain_name_category_w(struct pk_nvtx_domain *handle, uint32_t category,
                                   const wchar_t *name)
{
    struct nvtx_text text;
    nvtx_narrow(&text, name);
    nvtx_name_category(nvtx_domain_of(handle), category, text.text, text.length);
    nvtx_narrow_done(&text);
}

/* A NULL text gives a NULL handle, which means "no message" and "default domain". */
static void *get_a(enum nvtx_kind kind, const char *text)
{
    return text ? nvtx_object_get(kind, NULL, 0, text, strlen(text)) : NULL;
}
static void *get_w(enum nvtx_kind kind, const wchar_t *wide)
{
    struct nvtx_text text;
    nvtx_narrow(&text, wide);
    void *object = text.text ? nvtx_object_get(kind, NULL, 0, text.text, text.length) : NULL;
    nvtx_narrow_done(&text);
    return object;
}
static struct pk_nvtx_string *domain_register_string_a(struct pk_nvtx_domain *handle,
                                                       const char *text)
{
    (void)handle; /* a text is the same text in every domain */
    return get_a(NVTX_STRING, text);
}
static struct pk_nvtx_string *domain_register_string_w(struct pk_nvtx_domain *handle,
                                                       const wchar_t *text)
{
    (void)handle;
    return get_w(NVTX_STRING, text);
}
static struct pk_nvtx_domain *domain_create_a(const char *name)
{
    return get_a(NVTX_DOMAIN, name);
}
static struct pk_nvtx_domain *domain_create_w(const wchar_t *name)
{
    return get_w(NVTX_DOMAIN, name);
}
static void domain_destroy(struct pk_nvtx_domain *domain)
{
    (void)domain; /* another module may have created the same domain and still use it */
}

/* ---- slots ----------------------------------------------------------------------------------- */

void nvtx_fill(pk_nvtx_function_table table, unsigned count, const pk_nvtx_function *handlers,
               unsigned handler_count)
{
    for (unsigned id = 1; id < count && id < handler_count; id++) {
        if (table[id] && handlers[id])
            *table[id] = handlers[id];
    }
}

#define HANDLER(function) (pk_nvtx_function) function
void nvtx_fill_core(pk_nvtx_function_table table, unsigned count)
{
    static const pk_nvtx_function handlers[PK_NVTX_CORE_COUNT] = {
        [PK_NVTX_CORE_MARK_EX] = HANDLER(mark_ex),
        [PK_NVTX_CORE_MARK_A] = HANDLER(mark_a),
        [PK_NVTX_CORE_MARK_W] = HANDLER(mark_w),
        [PK_NVTX_CORE_RANGE_START_EX] = HANDLER(range_start_ex),
        [PK_NVTX_CORE_RANGE_START_A] = HANDLER(range_start_a),
        [PK_NVTX_CORE_RANGE_START_W] = HANDLER(range_start_w),
        [PK_NVTX_CORE_RANGE_END] = HANDLER(nvtx_end),
        [PK_NVTX_CORE_RANGE_PUSH_EX] = HANDLER(range_push_ex),
        [PK_NVTX_CORE_RANGE_PUSH_A] = HANDLER(range_push_a),
        [PK_NVTX_CORE_RANGE_PUSH_W] = HANDLER(range_push_w),
        [PK_NVTX_CORE_RANGE_POP] = HANDLER(range_pop),
        [PK_NVTX_CORE_NAME_CATEGORY_A] = HANDLER(name_category_a),
        [PK_NVTX_CORE_NAME_CATEGORY_W] = HANDLER(name_category_w),
        [PK_NVTX_CORE_NAME_OS_THREAD_A] = HANDLER(name_os_thread_a),
        [PK_NVTX_CORE_NAME_OS_THREAD_W] = HANDLER(name_os_thread_w),
    };
    nvtx_fill(table, count, handlers, PK_NVTX_CORE_COUNT);
}

void nvtx_fill_core2(pk_nvtx_function_table table, unsigned count)
{
    static const pk_nvtx_function handlers[PK_NVTX_CORE2_COUNT] = {
        [PK_NVTX_CORE2_DOMAIN_MARK_EX] = HANDLER(domain_mark_ex),
        [PK_NVTX_CORE2_DOMAIN_RANGE_START_EX] = HANDLER(domain_range_start_ex),
        [PK_NVTX_CORE2_DOMAIN_RANGE_END] = HANDLER(domain_range_end),
        [PK_NVTX_CORE2_DOMAIN_RANGE_PUSH_EX] = HANDLER(domain_range_push_ex),
        [PK_NVTX_CORE2_DOMAIN_RANGE_POP] = HANDLER(domain_range_pop),
        [PK_NVTX_CORE2_DOMAIN_RESOURCE_CREATE] = HANDLER(domain_resource_create),
        [PK_NVTX_CORE2_DOMAIN_RESOURCE_DESTROY] = HANDLER(domain_resource_destroy),
        [PK_NVTX_CORE2_DOMAIN_NAME_CATEGORY_A] = HANDLER(domain_name_category_a),
        [PK_NVTX_CORE2_DOMAIN_NAME_CATEGORY_W] = HANDLER(domain_name_category_w),
        [PK_NVTX_CORE2_DOMAIN_REGISTER_STRING_A] = HANDLER(domain_register_string_a),
        [PK_NVTX_CORE2_DOMAIN_REGISTER_STRING_W] = HANDLER(domain_register_string_w),
        [PK_NVTX_CORE2_DOMAIN_CREATE_A] = HANDLER(domain_create_a),
        [PK_NVTX_CORE2_DOMAIN_CREATE_W] = HANDLER(domain_create_w),
        [PK_NVTX_CORE2_DOMAIN_DESTROY] = HANDLER(domain_destroy),
    };
    nvtx_fill(table, count, handlers, PK_NVTX_CORE2_COUNT);
}
