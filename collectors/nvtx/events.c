/* Ranges and marks as records, whichever of NVTX's many forms they came in (handlers.c, payload.c).
 *
 * Times: an opening takes its time last and a closing first, so that what we do ourselves lies
 * outside the range. The id of a started range says which domain and which spool it belongs to:
 *     domain index (16 bits) | generation (8) | recorded (1) | opened a window (1) | number (38) */
#include "collectors/nvtx/nvtx.h"

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

/* The caller has called nvtx_records; `event` is NULL when that said no. */
int nvtx_push(struct nvtx_object *domain, const struct nvtx_event *event, bool captures)
{
    bool kept = captures, recorded = event != NULL;
    int level = nvtx_depth_push(nvtx_domain_index(domain), &recorded, &kept);
    if (captures && !kept)
        nvtx_capture_closes(); /* an outer range of this thread holds the window open */
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
    return level;
}

int nvtx_pop(struct nvtx_object *domain, const struct pk_nvtx_payload_data *payloads, size_t count)
{
    uint64_t now = collector_now();
    bool active = nvtx_begin(); /* first: it learns of a fork */
    int level;
    bool captures;
    if (nvtx_depth_pop(nvtx_domain_index(domain), &level, &captures) == NVTX_POP_OURS && active) {
        uint32_t domain_id = nvtx_domain_id(domain);
        collector_count(WIRE_COUNT_RANGE_POPPED, 1);
        nvtx_send_fields(domain, domain_id, 0, payloads, count);
        emit_end(WIRE_RANGE_POP, domain_id, 0, now);
    }
    if (captures)
        nvtx_capture_closes();
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
    if (captures && nvtx_capture_keep(id | ID_CAPTURES))
        id |= ID_CAPTURES;
    else if (captures)
        nvtx_capture_closes();
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
    if ((id & ID_CAPTURES) && nvtx_capture_take(id))
        nvtx_capture_closes();
}

void nvtx_mark(struct nvtx_object *domain, const struct nvtx_event *event)
{
    if (!event)
        return;
    collector_count(WIRE_COUNT_MARKED, 1);
    emit_range(WIRE_MARK, nvtx_domain_id(domain), 0, event);
}
