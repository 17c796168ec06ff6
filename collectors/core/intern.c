/* Names and launch configurations, defined once in the spool and known by number afterwards.
 *
 * Two fixed tables (open addressing) with copies of what was defined: lookups take no lock and
 * compare content, because programs reuse their buffers with new text. When a table is full, the
 * text is defined again under a new id each time: dearer, never wrong. */
#include <errno.h>
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/core/state.h"

static uint64_t hash_interned(const void *data, size_t length)
{
    const unsigned char *at = data;
    uint64_t h = 0x9e3779b97f4a7c15u ^ length;
    while (length >= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        h = (h ^ word) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
        at += 8;
        length -= 8;
    }
    uint64_t tail = 0;
    memcpy(&tail, at, length);
    h = (h ^ tail) * 0xc4ceb9fe1a85ec53u;
    return h ^ (h >> 29);
}

/* Send the text under `id`, in as many records as it needs. */
static bool record_string_definition(struct core_state *state, uint32_t id, const char *text,
                                     size_t length)
{
    _Alignas(8) unsigned char buffer[WIRE_MAX_RECORD];
    do {
        size_t part = length < WIRE_STRING_BYTES ? length : WIRE_STRING_BYTES;
        size_t padded = (part + 7u) & ~(size_t)7u;
        struct wire_string *string = (struct wire_string *)(void *)buffer;
        *string = (struct wire_string){
            .head = {(uint16_t)(sizeof *string + padded), WIRE_STRING,
                     part < length ? WIRE_STRING_MORE : 0, id},
            .length = (uint32_t)part,
        };
        memcpy(string->text, text, part);
        memset(string->text + part, 0, padded - part);
        if (!core_define_locked(state, string))
            return false;
        text += part;
        length -= part;
    } while (length > 0);
    return true;
}

static uint32_t find_string(const struct core_state *state, uint64_t hash, const char *text,
                            size_t length, uint32_t *slot)
{
    uint32_t mask = state->string_slots - 1;
    for (uint32_t i = (uint32_t)hash & mask;; i = (i + 1) & mask) {
        const struct core_string *entry = &state->strings[i];
        uint32_t id = atomic_load_explicit(&entry->id, memory_order_acquire);
        if (id == 0) {
            *slot = i;
            return 0;
        }
        if (entry->hash == hash && entry->length == length &&
            memcmp(entry->text, text, length) == 0)
            return id;
    }
}

static uint32_t add_string(struct core_state *state, uint64_t hash, const char *text, size_t length)
{
    uint32_t slot;
    uint32_t id = find_string(state, hash, text, length, &slot); /* was another thread quicker? */
    if (id)
        return id;
    id = atomic_fetch_add(&state->next_id, 1) + 1;
    if (!record_string_definition(state, id, text, length))
        return 0;
    if (state->strings_used < state->string_slots / 4 * 3 &&
        length <= state->arena_bytes - state->arena_used) {
        struct core_string *entry = &state->strings[slot];
        char *copy = state->arena + state->arena_used;
        memcpy(copy, text, length);
        state->arena_used += length;
        state->strings_used++;
        entry->text = copy;
        entry->length = (uint32_t)length;
        entry->hash = hash;
        atomic_store_explicit(&entry->id, id, memory_order_release);
    }
    return id;
}

uint32_t collector_string(const char *text, size_t length)
{
    if (!text || !collector_active() || length > UINT32_MAX / 2)
        return 0;
    struct core_state *state = core_state();
    uint64_t hash = hash_interned(text, length);
    uint32_t slot;
    uint32_t id = find_string(state, hash, text, length, &slot);
    if (id)
        return id;
    struct collector_shield shield;
    int saved = errno;
    if (core_define_begin(state, &shield)) {
        id = add_string(state, hash, text, length);
        core_define_end(state, &shield);
    }
    errno = saved;
    return id;
}

uint32_t collector_text(const char *text)
{
    return text ? collector_string(text, strlen(text)) : 0;
}

/* What makes two configurations the same: all but head.size, type and aux. */
#define CONFIG_AT offsetof(struct wire_config, name)
#define CONFIG_BYTES (sizeof(struct wire_config) - CONFIG_AT)

static uint32_t find_config(const struct core_state *state, uint64_t hash,
                            const struct wire_config *config, uint32_t *slot)
{
    uint32_t mask = state->config_slots - 1;
    for (uint32_t i = (uint32_t)hash & mask;; i = (i + 1) & mask) {
        const struct core_config *entry = &state->configs[i];
        uint32_t id = atomic_load_explicit(&entry->id, memory_order_acquire);
        if (id == 0) {
            *slot = i;
            return 0;
        }
        if (entry->config.head.flags == config->head.flags &&
            memcmp((const char *)&entry->config + CONFIG_AT, (const char *)config + CONFIG_AT,
                   CONFIG_BYTES) == 0)
            return id;
    }
}

static uint32_t add_config(struct core_state *state, uint64_t hash,
                           const struct wire_config *config)
{
    uint32_t slot;
    uint32_t id = find_config(state, hash, config, &slot);
    if (id)
        return id;
    id = atomic_fetch_add(&state->next_id, 1) + 1;
    struct wire_config record = *config;
    record.head = (struct wire_head){sizeof record, WIRE_CONFIG, config->head.flags, id};
    if (!core_define_locked(state, &record))
        return 0;
    if (state->configs_used < state->config_slots / 4 * 3) {
        struct core_config *entry = &state->configs[slot];
        state->configs_used++;
        entry->config = record;
        atomic_store_explicit(&entry->id, id, memory_order_release);
    }
    return id;
}

uint32_t collector_config(const struct wire_config *config)
{
    if (!collector_active())
        return 0;
    struct core_state *state = core_state();
    uint64_t hash =
        hash_interned((const char *)config + CONFIG_AT, CONFIG_BYTES) ^ config->head.flags;
    uint32_t slot;
    uint32_t id = find_config(state, hash, config, &slot);
    if (id)
        return id;
    struct collector_shield shield;
    int saved = errno;
    if (core_define_begin(state, &shield)) {
        id = add_config(state, hash, config);
        core_define_end(state, &shield);
    }
    errno = saved;
    return id;
}
