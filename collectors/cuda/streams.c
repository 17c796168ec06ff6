/* Devices, contexts and streams: CUPTI's numbers to ids of ours, defined in the spool at first
 * sight. CUPTI describes them in records of their own, which may come in a later buffer than the
 * first kernel that uses them: then a definition with what is known goes out at once, and the full
 * one follows under the same id. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/map.h"
#include "collectors/cuda/parts.h"

#define FACTS(priority, flags) ((uint32_t)(priority) << 8 | (flags))

static struct cuda_map devices;         /* ordinal -> id */
static struct cuda_map contexts;        /* CUPTI's context -> id */
static struct cuda_map context_devices; /* CUPTI's context -> ordinal */
static struct cuda_map context_nulls;   /* CUPTI's context -> number of its NULL stream */
static struct cuda_map streams;         /* context << 32 | stream -> id, LACKS_DEVICE */
static struct cuda_map stream_facts;    /* the same key -> what CUPTI's record said */
#define LACKS_DEVICE 0x80000000u        /* was defined before its device was known */

/* The id under `key`; a fresh one (*is_new) at first sight. */
static uint32_t stream_map_id(struct cuda_map *map, uint64_t key, bool *is_new)
{
    uint32_t *known = cuda_map_get(map, key);
    *is_new = !known;
    if (known)
        return *known;
    uint32_t id = collector_new_id();
    return id && cuda_map_put(map, key, id) ? id : 0;
}

static void define_device(uint32_t id, struct wire_device *device)
{
    device->head = (struct wire_head){sizeof *device, WIRE_DEVICE, WIRE_DEVICE_GPU, id};
    device->source = WIRE_SOURCE_CUDA;
    device->vendor = collector_text("NVIDIA");
    collector_define(device);
}

uint32_t cuda_device(uint32_t ordinal)
{
    if (ordinal == CUDA_NO_DEVICE)
        return 0;
    bool is_new;
    uint32_t id = stream_map_id(&devices, ordinal, &is_new);
    if (id && is_new)
        define_device(id, &(struct wire_device){.ordinal = ordinal});
    return id;
}

static uint32_t driver_version_string(void)
{
    char text[64];
    int fd = open("/sys/module/nvidia/version", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        n--;
    return n > 0 ? collector_string(text, (size_t)n) : 0;
}

static uint32_t uuid_string(const unsigned char bytes[16])
{
    char text[CUDA_UUID_BYTES];
    return collector_string(text, cuda_uuid_text(bytes, text));
}

void cuda_device_record(const void *at)
{
    const struct record_device *record = at;
    bool is_new;
    uint32_t id = stream_map_id(&devices, record->ordinal, &is_new);
    if (!id)
        return;
    struct wire_device device = {
        .ordinal = record->ordinal,
        /* The name is the client's to free. It is left: a few bytes per device, against the risk of
         * the wrong allocator. */
        .name = record->name ? collector_string(record->name, strnlen(record->name, 256)) : 0,
        .driver = driver_version_string(),
        .uuid = uuid_string(record->uuid),
        .compute_major = record->compute_major,
        .compute_minor = record->compute_minor,
        .units = record->units,
        .warp = record->warp,
        .clock_khz = record->clock_khz,
        .max_threads_per_unit = record->warps_per_unit * record->warp,
        .registers_per_unit = record->registers_per_unit,
        .max_block = record->max_block,
        .memory_bytes = record->memory_bytes,
        .shared_per_unit_bytes = record->shared_per_unit,
        .shared_per_block_bytes = record->shared_per_block,
        .l2_bytes = record->l2_bytes,
        .memory_bandwidth = record->bandwidth_kilobytes * 1000u,
    };
    define_device(id, &device);
}

static void define_context(uint32_t id, uint32_t context, uint32_t ordinal,
                           const struct record_context *record)
{
    struct wire_context definition = {
        .head = {sizeof definition, WIRE_CONTEXT, 0, id},
        .native = context,
        .source = WIRE_SOURCE_CUDA,
        .device = cuda_device(ordinal),
    };
    if (record && cuda_cupti_version() >= RECORD_SINCE_GREEN && record->green) {
        definition.head.flags = WIRE_CONTEXT_GREEN;
        definition.parent = cuda_context(record->parent, CUDA_NO_DEVICE);
        definition.units = record->units;
    }
    collector_define(&definition);
}

uint32_t cuda_context(uint32_t context, uint32_t ordinal)
{
    if (context == RECORD_NONE) /* cuMemCreate belongs to none */
        return 0;
    bool is_new;
    uint32_t id = stream_map_id(&contexts, context, &is_new);
    if (id && is_new) {
        if (ordinal != CUDA_NO_DEVICE)
            cuda_map_put(&context_devices, context, ordinal);
        define_context(id, context, ordinal, NULL);
    }
    return id;
}

static uint32_t context_ordinal(uint32_t context)
{
    const uint32_t *ordinal = cuda_map_get(&context_devices, context);
    return ordinal ? *ordinal : CUDA_NO_DEVICE;
}

uint32_t cuda_context_device(uint32_t context)
{
    return cuda_device(context_ordinal(context));
}

void cuda_context_record(const void *at)
{
    const struct record_context *record = at;
    bool is_new;
    uint32_t id = stream_map_id(&contexts, record->context, &is_new);
    if (!id)
        return;
    cuda_map_put(&context_devices, record->context, record->device);
    cuda_map_put(&context_nulls, record->context, record->null_stream);
    define_context(id, record->context, record->device, record);
}

static void define_stream(uint32_t id, uint32_t context, uint32_t stream, uint32_t ordinal)
{
    uint64_t key = (uint64_t)context << 32 | stream;
    const uint32_t *null = cuda_map_get(&context_nulls, context);
    const uint32_t *facts = cuda_map_get(&stream_facts, key);
    uint8_t flags = facts ? (uint8_t)*facts : 0;
    if (null && *null == stream)
        flags |= WIRE_STREAM_DEFAULT;
    struct wire_stream definition = {
        .head = {sizeof definition, WIRE_STREAM, flags, id},
        .native = stream,
        .source = WIRE_SOURCE_CUDA,
        .context = cuda_context(context, ordinal),
        .device = cuda_device(ordinal),
        .priority = facts ? (int32_t)*facts >> 8 : 0,
    };
    collector_define(&definition);
}

uint32_t cuda_stream(uint32_t context, uint32_t stream, uint32_t ordinal)
{
    uint64_t key = (uint64_t)context << 32 | stream;
    bool is_new;
    uint32_t id = stream_map_id(&streams, key, &is_new);
    if (id && (is_new || (id & LACKS_DEVICE))) {
        bool lacked = id & LACKS_DEVICE;
        id &= ~LACKS_DEVICE;
        if (ordinal == CUDA_NO_DEVICE)
            ordinal = context_ordinal(context);
        if (is_new || ordinal != CUDA_NO_DEVICE)
            define_stream(id, context, stream, ordinal);
        if (lacked != (ordinal == CUDA_NO_DEVICE))
            cuda_map_put(&streams, key, ordinal == CUDA_NO_DEVICE ? id | LACKS_DEVICE : id);
    }
    return id;
}

void cuda_stream_record(const void *at)
{
    const struct record_stream *record = at;
    enum { NON_BLOCKING = 2, NULL_STREAM = 3 };
    uint64_t key = (uint64_t)record->context << 32 | record->stream;
    bool is_new;
    uint32_t id = stream_map_id(&streams, key, &is_new);
    uint8_t flags = record->flag == NON_BLOCKING  ? WIRE_STREAM_NON_BLOCKING
                    : record->flag == NULL_STREAM ? WIRE_STREAM_DEFAULT
                                                  : 0;
    cuda_map_put(&stream_facts, key, FACTS(record->priority, flags));
    if (!id)
        return;
    uint32_t ordinal = context_ordinal(record->context);
    id &= ~LACKS_DEVICE;
    define_stream(id, record->context, record->stream, ordinal);
    cuda_map_put(&streams, key, ordinal == CUDA_NO_DEVICE ? id | LACKS_DEVICE : id);
}

void cuda_streams_forked(void)
{
    cuda_map_clear(&devices);
    cuda_map_clear(&contexts);
    cuda_map_clear(&context_devices);
    cuda_map_clear(&context_nulls);
    cuda_map_clear(&streams);
    cuda_map_clear(&stream_facts);
}
