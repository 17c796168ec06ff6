/* Ranges and marks as records, whichever of NVTX's many forms they came in (handlers.c, payload.c).
 *
 * Times: an opening takes its time last and a closing first, so that what we do ourselves lies
 * outside the range. The id of a started range says which domain and which spool it belongs to:
 *     domain index (16 bits) | generation (8) | recorded (1) | opened a window (1) | number (38) */
#include <string.h>

#include "collectors/core/option_text.h"
#include "collectors/nvtx/nvtx.h"

/* ---- Capture ranges --------------------------------------------------------------------------
 *
 * --capture-range=nvtx:NAME[@DOMAIN]: ranges of that name open a window when they begin and close
 * it when they end. perfkit run hands name and domain over with '%' and ',' as %XX; without a
 * domain the default domain is meant, "*" is any. Without the option one flag is tested per range.
 */

#define MAX_STARTED 64u /* ranges by start and end that hold windows open at a time */

bool nvtx_capturing;

static char wanted_name[512];
static char wanted_domain[256];
static bool any_domain;
static _Atomic uint32_t started;
static _Atomic uint64_t started_ids[MAX_STARTED]; /* 0 = free */

void nvtx_capture_start(void)
{
    if (atomic_exchange(&started, 1) || option_capture() != WIRE_WINDOW_RANGE ||
        !collector_option("capture-name", wanted_name, sizeof wanted_name))
        return;
    if (!collector_option("capture-domain", wanted_domain, sizeof wanted_domain))
        wanted_domain[0] = '\0';
    any_domain = strcmp(wanted_domain, "*") == 0;
    option_decode(wanted_name);
    option_decode(wanted_domain);
    nvtx_capturing = true;
}

static bool message_matches(const char *given, size_t length, const char *text, bool numbered)
{
    size_t bytes = strlen(text);
    if (length < bytes || memcmp(given, text, bytes) != 0 || (length == bytes) == numbered)
        return false;
    while (bytes < length && given[bytes] >= '0' && given[bytes] <= '9')
        bytes++;
    return bytes == length && (numbered || length == strlen(text));
}

bool nvtx_message_is(int32_t type, const void *message, const char *text, bool numbered)
{
    struct nvtx_text wide;
    const struct nvtx_object *registered;
    bool same;
    switch (type) {
    case PK_NVTX_MESSAGE_ASCII:
        return message && message_matches(message, strlen(message), text, numbered);
    case PK_NVTX_MESSAGE_UNICODE:
        nvtx_narrow(&wide, message);
        same = wide.text && message_matches(wide.text, wide.length, text, numbered);
        nvtx_narrow_done(&wide);
        return same;
    case PK_NVTX_MESSAGE_REGISTERED:
        registered = nvtx_object_of(message, NVTX_STRING);
        return registered &&
               message_matches(registered->text, strlen(registered->text), text, numbered);
    default:
        return false;
    }
}

bool nvtx_capture_opens(const struct nvtx_object *domain, int32_t type, const void *message)
{
    if (!any_domain && strcmp(domain ? domain->text : "", wanted_domain) != 0)
        return false;
    if (!nvtx_message_is(type, message, wanted_name, false) || !nvtx_begin())
        return false;
    collector_window(true, WIRE_WINDOW_RANGE);
    return true;
}

static void close_capture_range(void)
{
    collector_window(false, WIRE_WINDOW_RANGE);
}

/* Keeps an id (from 0) or takes it out (to 0): started ranges may end on any thread, or twice. True
 * when it found a place. */
static bool swap_started(uint64_t from, uint64_t to)
{
    for (unsigned i = 0; i < MAX_STARTED; i++) {
        uint64_t found = from;
        if (atomic_compare_exchange_strong(&started_ids[i], &found, to))
            return true;
    }
    return false;
}

/* ---- Events ---------------------------------------------------------------------------------- */

#define COUNTED_BITS 38u
#define ID_RECORDED ((uint64_t)1 << 39)
#define ID_CAPTURES ((uint64_t)1 << 38)
#define NUMBER_BITS 40u /* with the two flags */
#define GENERATION_BITS 8u
#define ID_NUMBER(id) ((id) & (((uint64_t)1 << COUNTED_BITS) - 1))
#define ID_GENERATION(id) ((uint32_t)((id) >> NUMBER_BITS) & ((1u << GENERATION_BITS) - 1))
#define ID_DOMAIN(id) ((uint32_t)((id) >> (NUMBER_BITS + GENERATION_BITS)))

static _Atomic uint64_t range_numbers; /* goes on in a forked child */

static void emit_range(enum wire_type type, uint32_t domain, uint64_t id,
                       const struct nvtx_event *event)
{
    struct wire_range range = {
        .head = {sizeof range, (uint8_t)type, event->payload_type, domain},
        .time = collector_now(),
        .id = id,
        .payload = event->payload,
        .message = event->message,
        .category = event->category,
        .color = event->color,
        .has_color = event->has_color,
    };
    collector_emit(&range);
}

static void emit_end(enum wire_type type, uint32_t domain, uint64_t id, uint64_t time)
{
    struct wire_range_end end = {
        .head = {sizeof end, (uint8_t)type, 0, domain},
        .time = time,
        .id = id,
    };
    collector_emit(&end);
}

/* The caller has called nvtx_records_range; `event` is NULL when that said no. */
int nvtx_push(struct nvtx_object *domain, const struct nvtx_event *event, bool captures)
{
    bool kept = captures, recorded = event != NULL;
    int level = nvtx_depth_push(nvtx_domain_index(domain), &recorded, &kept);
    if (captures && !kept)
        close_capture_range(); /* an outer range of this thread holds the window open */
    if (event && !recorded)
        collector_count(WIRE_COUNT_OUTSIDE, 1);
    if (!recorded)
        return level;
    collector_count(WIRE_COUNT_RANGE_PUSHED, 1);
    uint32_t domain_id = nvtx_domain_id(domain);
    emit_range(WIRE_RANGE_PUSH, domain_id, 0, event);
    if (event->has_work) {
        struct wire_work work = {
            .head = {sizeof work, WIRE_WORK, 0, 0},
            .flop = event->work.flop,
            .bytes_read = event->work.bytes_read,
            .bytes_written = event->work.bytes_written,
        };
        collector_emit(&work);
    }
    nvtx_send_fields(domain, domain_id, 0, event->payloads, event->payload_count);
    if (event->has_sequence) {
        struct wire_field field = {
            .head = {sizeof field, WIRE_FIELD, WIRE_PAYLOAD_U64, collector_text("seq")},
            .value = event->sequence,
            .domain = domain_id,
        };
        collector_emit(&field);
    }
    if (event->inputs) {
        struct wire_field field = {
            .head = {sizeof field, WIRE_FIELD, WIRE_PAYLOAD_INPUTS, 0},
            .value = event->inputs,
            .domain = domain_id,
        };
        collector_emit(&field);
    }
    return level;
}

int nvtx_pop(struct nvtx_object *domain, const struct pk_nvtx_payload_data *payloads, size_t count)
{
    return nvtx_pop_at(domain, payloads, count, collector_now());
}

int nvtx_pop_at(struct nvtx_object *domain, const struct pk_nvtx_payload_data *payloads,
                size_t count, uint64_t time)
{
    bool active = nvtx_begin(); /* first: it learns of a fork */
    int level;
    bool captures;
    if (nvtx_depth_pop(nvtx_domain_index(domain), &level, &captures) == NVTX_POP_OURS && active) {
        uint32_t domain_id = nvtx_domain_id(domain);
        collector_count(WIRE_COUNT_RANGE_POPPED, 1);
        nvtx_send_fields(domain, domain_id, 0, payloads, count);
        emit_end(WIRE_RANGE_POP, domain_id, 0, time);
    }
    if (captures)
        close_capture_range();
    return level;
}

pk_nvtx_range_id nvtx_start(struct nvtx_object *domain, const struct nvtx_event *event,
                            bool captures)
{
    uint32_t index = nvtx_domain_index(domain);
    uint64_t number = atomic_fetch_add_explicit(&range_numbers, 1, memory_order_relaxed) + 1;
    uint64_t id = (uint64_t)(index & 0xffffu) << (NUMBER_BITS + GENERATION_BITS) |
                  (uint64_t)(nvtx_generation() & ((1u << GENERATION_BITS) - 1)) << NUMBER_BITS |
                  ID_NUMBER(number) | (event ? ID_RECORDED : 0);
    if (captures && swap_started(0, id | ID_CAPTURES))
        id |= ID_CAPTURES;
    else if (captures)
        close_capture_range();
    if (event) {
        uint32_t domain_id = nvtx_domain_id(domain);
        collector_count(WIRE_COUNT_RANGE_STARTED, 1);
        emit_range(WIRE_RANGE_START, domain_id, id, event);
        nvtx_send_fields(domain, domain_id, id, event->payloads, event->payload_count);
    }
    return id;
}

void nvtx_end(pk_nvtx_range_id id)
{
    uint64_t now = collector_now();
    if (ID_NUMBER(id) == 0 || ID_NUMBER(id) > atomic_load(&range_numbers))
        return; /* never started */
    /* Nor what a parent started before the fork. */
    if ((id & ID_RECORDED) && nvtx_begin() &&
        ID_GENERATION(id) == (nvtx_generation() & ((1u << GENERATION_BITS) - 1))) {
        collector_count(WIRE_COUNT_RANGE_ENDED, 1);
        emit_end(WIRE_RANGE_END, nvtx_domain_id(nvtx_domain_at(ID_DOMAIN(id))), id, now);
    }
    if ((id & ID_CAPTURES) && swap_started(id, 0))
        close_capture_range();
}

void nvtx_mark(struct nvtx_object *domain, const struct nvtx_event *event)
{
    if (!event || !collector_recording()) /* in a pause: a range of this name would be recorded */
        return;
    collector_count(WIRE_COUNT_MARKED, 1);
    emit_range(WIRE_MARK, nvtx_domain_id(domain), 0, event);
}
