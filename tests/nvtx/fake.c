/* See fake.h. Events go to slots taken by one atomic, so that the tests under TSan see the races of
 * the collector and not the locks of its harness; only new strings take a lock. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "tests/nvtx/fake.h"

#define MAX_STRINGS 20000u

struct text {
    char *text;
    size_t length;
};

static struct fake_record records[FAKE_MAX_RECORDS];
static _Atomic size_t record_count;
static struct text strings[MAX_STRINGS];
static uint32_t string_count;
static pthread_mutex_t string_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t counters[WIRE_COUNTS];
static const struct collector_source *the_source;
static _Atomic int owner;
static _Atomic int births;
static int traced = 1;
static int refused;
static int closed;
static const struct control_page *pause_page;
static const char *_Atomic options;
static _Atomic int opened;

void fake_reset(void)
{
    atomic_store(&record_count, 0);
    string_count = 0;
    for (unsigned i = 0; i < WIRE_COUNTS; i++)
        atomic_store(&counters[i], 0);
}

bool collector_active(void)
{
    if (refused)
        return false;
    int pid = (int)syscall(SYS_getpid), before = atomic_load_explicit(&owner, memory_order_acquire);
    if (before == pid)
        return true;
    if (!atomic_compare_exchange_strong(&owner, &before, pid))
        return before == pid;
    if (before != 0) {
        fake_reset();
        if (the_source && the_source->forked)
            the_source->forked();
    }
    atomic_fetch_add(&births, 1);
    return true;
}

bool collector_emit(const void *record)
{
    if (!collector_active())
        return false;
    const struct wire_head *head = record;
    size_t i = atomic_fetch_add(&record_count, 1);
    if (i >= FAKE_MAX_RECORDS)
        return false;
    memcpy(&records[i].head, record, head->size);
    records[i].tid = (uint32_t)syscall(SYS_gettid);
    return true;
}

bool collector_define(const void *record)
{
    return collector_emit(record);
}

uint32_t collector_string(const char *text, size_t length)
{
    if (!text || !collector_active())
        return 0;
    pthread_mutex_lock(&string_lock);
    uint32_t id = 0;
    for (uint32_t i = 0; i < string_count && !id; i++) {
        if (strings[i].length == length && memcmp(strings[i].text, text, length) == 0)
            id = i + 1;
    }
    if (!id && string_count < MAX_STRINGS) {
        char *copy = malloc(length + 1);
        memcpy(copy, text, length);
        copy[length] = '\0';
        strings[string_count++] = (struct text){copy, length};
        id = string_count;
    }
    pthread_mutex_unlock(&string_lock);
    return id;
}

uint32_t collector_text(const char *text)
{
    return text ? collector_string(text, strlen(text)) : 0;
}

void collector_count(enum wire_count which, uint64_t n)
{
    if (collector_active())
        atomic_fetch_add(&counters[which], n);
}

void collector_health(enum wire_source source, enum wire_health_state state, const char *why,
                      uint32_t value)
{
    struct wire_health health = {
        .head = {sizeof health, WIRE_HEALTH, (uint8_t)state, source},
        .why = collector_text(why),
        .value = value,
    };
    collector_define(&health);
}

uint64_t collector_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint32_t collector_tid(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

bool collector_recording(void)
{
    return !closed && (!atomic_load(&options) || atomic_load(&opened) > 0);
}

const struct control_page *collector_pause(void)
{
    return closed ? pause_page : NULL;
}

void collector_iteration(void)
{
}

void fake_pause(const struct control_page *page)
{
    pause_page = page;
}

void collector_window(bool open, enum wire_window_reason reason)
{
    if (reason == WIRE_WINDOW_RANGE)
        atomic_fetch_add(&opened, open ? 1 : -1);
}

bool collector_option(const char *name, char *value, size_t size)
{
    const char *list = atomic_load(&options);
    size_t length = strlen(name);
    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',') {
        if (strncmp(at, name, length) != 0 || at[length] != '=')
            continue;
        at += length + 1;
        size_t bytes = strcspn(at, ",");
        if (bytes >= size)
            return false;
        memcpy(value, at, bytes);
        value[bytes] = '\0';
        return true;
    }
    return false;
}

void fake_close(int close)
{
    closed = close;
}

void fake_options(const char *text)
{
    atomic_store(&options, text);
    atomic_store(&opened, 0);
}

int fake_windows(void)
{
    return atomic_load(&opened);
}

bool collector_traces(const char *domain)
{
    return traced || strcmp(domain, "nvtx") != 0;
}

void collector_register(const struct collector_source *source)
{
    the_source = source;
}

size_t fake_count(void)
{
    return atomic_load(&record_count);
}

const struct fake_record *fake_at(size_t i)
{
    return i < fake_count() ? &records[i] : NULL;
}

const struct fake_record *fake_nth(enum wire_type type, size_t n)
{
    for (size_t i = 0; i < fake_count(); i++) {
        if (records[i].head.type == type && n-- == 0)
            return &records[i];
    }
    return NULL;
}

size_t fake_type_count(enum wire_type type)
{
    size_t n = 0;
    for (size_t i = 0; i < fake_count(); i++)
        n += records[i].head.type == type;
    return n;
}

uint64_t fake_counter(enum wire_count which)
{
    return atomic_load(&counters[which]);
}

const char *fake_text(uint32_t id, size_t *length)
{
    size_t none;
    if (!length)
        length = &none;
    *length = id && id <= string_count ? strings[id - 1].length : 0;
    return id && id <= string_count ? strings[id - 1].text : "";
}

size_t fake_strings(void)
{
    return string_count;
}

void fake_trace(int nvtx)
{
    traced = nvtx;
}

void fake_refuse(int refuse)
{
    refused = refuse;
}

int fake_births(void)
{
    return atomic_load(&births);
}

void fake_exit(void)
{
    if (the_source && the_source->at_exit)
        the_source->at_exit();
}
