/* See fake_core.h. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/cuda/fake_core.h"

struct fake_core core;
static uint32_t next_id;

void fake_core_reset(void)
{
    memset(&core, 0, sizeof core);
    core.tracing = true;
    core.text_count = 1;
    core.window_to = UINT64_MAX;
}

static bool keep(const void *record)
{
    const struct wire_head *head = record;
    size_t bytes = head->size;
    if (head->type == WIRE_STACK && bytes > sizeof core.records[0])
        bytes = sizeof core.records[0]; /* its outer frames matter to no test */
    if (core.count == FAKE_CORE_RECORDS || bytes > sizeof core.records[0])
        return false;
    memcpy(&core.records[core.count++], record, bytes);
    return true;
}

bool collector_active(void)
{
    return core.tracing;
}

bool collector_emit(const void *record)
{
    return keep(record);
}

bool collector_define(const void *record)
{
    return keep(record);
}

uint32_t collector_new_id(void)
{
    return ++next_id;
}

uint32_t collector_string(const char *text, size_t length)
{
    if (!text)
        return 0;
    for (uint32_t i = 1; i < core.text_count; i++) {
        if (strlen(core.texts[i]) == length && memcmp(core.texts[i], text, length) == 0)
            return i;
    }
    if (core.text_count == 256 || length >= sizeof core.texts[0])
        return 0;
    memcpy(core.texts[core.text_count], text, length);
    return core.text_count++;
}

uint32_t collector_text(const char *text)
{
    return text ? collector_string(text, strlen(text)) : 0;
}

uint32_t collector_config(const struct wire_config *config)
{
    struct wire_config copy = *config;
    copy.head.aux = collector_new_id();
    keep(&copy);
    return copy.head.aux;
}

void collector_count(enum wire_count which, uint64_t n)
{
    core.counts[which] += n;
}

void collector_health(enum wire_source source, enum wire_health_state state, const char *why,
                      uint32_t value)
{
    (void)source, (void)value;
    core.health_state = state;
    snprintf(core.health, sizeof core.health, "%s", why ? why : "");
}

uint64_t collector_now(void)
{
    struct timespec t;
    core.asked_time++;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + core.ahead_ns;
}

uint32_t collector_tid(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

void collector_register(const struct collector_source *source)
{
    core.source = source;
}

void collector_wake(void)
{
    core.wakes++;
}

bool collector_dying(void)
{
    return false;
}

void collector_unflushed(void)
{
}

void collector_fetched(uint64_t time)
{
    (void)time;
}

bool collector_is_helper(void)
{
    return core.helper;
}

const char *collector_directory(void)
{
    return NULL;
}

bool collector_option(const char *name, char *value, size_t size)
{
    (void)name, (void)value, (void)size;
    return false;
}

void collector_saw_thread(uint32_t tid)
{
    (void)tid;
}

bool collector_ended(void)
{
    return core.ended;
}

bool collector_recording(void)
{
    bool is = core.window_to == UINT64_MAX;
    void (*meanwhile)(void) = atomic_exchange(&core.meanwhile, NULL);
    if (meanwhile)
        meanwhile();
    return is;
}

bool collector_recorded_at(uint64_t time)
{
    return time >= core.window_from && time < core.window_to;
}

bool collector_bare(void)
{
    return false;
}

bool collector_windows_expected(void)
{
    return !core.unlimited;
}

bool collector_awaits_iteration(void)
{
    return false;
}

bool collector_pauses(void)
{
    return core.pauses;
}

void collector_window(bool open, enum wire_window_reason reason)
{
    (void)open, (void)reason;
}

bool collector_traces(const char *domain)
{
    (void)domain;
    return core.tracing;
}
