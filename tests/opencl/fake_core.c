/* A collector core for the tests of the OpenCL layer: the same calls as collectors/core, every
 * record kept in a memory-mapped log that outlives the process. Environment: OCL_TEST_LOG = the
 * file ("<file>.<pid>" in a forked child); without it the core is inactive, as without perfkit. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "tests/opencl/log.h"

static struct log_header *_Atomic the_log;
static _Atomic pid_t owner;
static _Atomic uint32_t next_id;
static _Atomic uint64_t next_correlation;
static _Atomic int ended;
static const struct collector_source *sources[8];
static _Atomic unsigned source_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
    uint64_t hash;
    uint32_t id;
} interned[1 << 16];

static void *helper(void *unused)
{
    (void)unused;
    for (;;) {
        usleep(20000);
        for (unsigned i = 0; i < source_count && !ended; i++)
            if (sources[i]->tick)
                sources[i]->tick();
    }
    return NULL;
}

static void open_log(void)
{
    const char *path = getenv("OCL_TEST_LOG");
    char name[512];
    bool child = owner != 0;
    owner = getpid();
    the_log = NULL;
    if (!path)
        return;
    snprintf(name, sizeof name, child ? "%s.%d" : "%s", path, (int)owner);
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || ftruncate(fd, LOG_BYTES) != 0)
        return;
    void *at = mmap(NULL, LOG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        return;
    the_log = at;
    atomic_store(&the_log->used, sizeof(struct log_header));
    memset(interned, 0, sizeof interned);
    pthread_mutex_init(&lock, NULL);
    for (unsigned i = 0; child && i < source_count; i++)
        if (sources[i]->forked)
            sources[i]->forked();
    if (!getenv("OCL_TEST_NO_TICK")) {
        sigset_t all, before;
        pthread_t thread;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        pthread_create(&thread, NULL, helper, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
}

static void at_end(void)
{
    if (owner != getpid() || !the_log)
        return;
    for (unsigned i = 0; i < source_count; i++)
        if (sources[i]->at_exit)
            sources[i]->at_exit();
    ended = 1;
    atomic_store(&the_log->ended, 1);
}

__attribute__((constructor)) static void begin(void)
{
    atexit(at_end);
}

bool collector_recording(void)
{
    return true;
}

bool collector_active(void)
{
    static _Atomic pid_t
        known; /* getpid is a system call: the answer is kept for the log's owner */
    if (atomic_load_explicit(&known, memory_order_acquire) == owner && owner != 0 &&
        getpid() == owner)
        return the_log != NULL;
    static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&opening);
    if (owner != getpid())
        open_log();
    atomic_store_explicit(&known, owner, memory_order_release);
    pthread_mutex_unlock(&opening);
    return the_log != NULL;
}

static bool append(uint32_t stream, const void *record)
{
    if (!collector_active())
        return false;
    const struct wire_head *head = record;
    uint64_t bytes = sizeof(struct log_entry) + head->size;
    uint64_t at = atomic_fetch_add(&the_log->used, bytes);
    if (at + bytes > LOG_BYTES)
        return false;
    struct log_entry *entry = (struct log_entry *)(void *)((char *)the_log + at);
    memcpy(entry + 1, record, head->size);
    entry->tid = collector_tid();
    entry->time = collector_now();
    atomic_store_explicit(&entry->stream, stream, memory_order_release);
    return true;
}

bool collector_emit(const void *record)
{
    return append(LOG_EVENT, record);
}

bool collector_define(const void *record)
{
    return append(LOG_DEFINITION, record);
}

uint32_t collector_new_id(void)
{
    return atomic_fetch_add(&next_id, 1) + 1;
}

static uint64_t hash_of(const void *data, size_t length)
{
    const unsigned char *at = data;
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * 1099511628211u;
    return hash | 1;
}

/* The slot of this content; the fake trusts a 64-bit hash. The lock is held. */
static uint32_t *slot_of(uint64_t hash)
{
    for (size_t i = hash & 0xffff;; i = (i + 1) & 0xffff)
        if (interned[i].hash == hash || interned[i].hash == 0) {
            interned[i].hash = hash;
            return &interned[i].id;
        }
}

uint32_t collector_string(const char *text, size_t length)
{
    if (!text || !collector_active())
        return 0;
    pthread_mutex_lock(&lock);
    uint32_t *id = slot_of(hash_of(text, length));
    if (*id == 0) {
        _Alignas(8) char buffer[4096] = {0};
        struct wire_string *string = (struct wire_string *)(void *)buffer;
        size_t kept = length < 4000 ? length : 4000;
        *id = collector_new_id();
        string->head = (struct wire_head){(uint16_t)(sizeof *string + ((kept + 7) & ~(size_t)7)),
                                          WIRE_STRING, 0, *id};
        string->length = (uint32_t)kept;
        memcpy(string->text, text, kept);
        collector_define(string);
    }
    uint32_t result = *id;
    pthread_mutex_unlock(&lock);
    return result;
}

uint32_t collector_text(const char *text)
{
    return text ? collector_string(text, strlen(text)) : 0;
}

uint32_t collector_config(const struct wire_config *config)
{
    if (!collector_active())
        return 0;
    struct wire_config record = *config;
    record.head = (struct wire_head){sizeof record, WIRE_CONFIG, config->head.flags, 0};
    pthread_mutex_lock(&lock);
    uint32_t *id = slot_of(hash_of(&record, sizeof record));
    if (*id == 0) {
        *id = collector_new_id();
        record.head.aux = *id;
        collector_define(&record);
    }
    uint32_t result = *id;
    pthread_mutex_unlock(&lock);
    return result;
}

void collector_count(enum wire_count which, uint64_t n)
{
    if (collector_active())
        atomic_fetch_add(&the_log->counts[which], n);
}

void collector_health(enum wire_source source, enum wire_health_state state, const char *why,
                      uint32_t value)
{
    struct wire_health health = {
        .head = {sizeof health, WIRE_HEALTH, (uint8_t)state, (uint32_t)source},
        .time = collector_now(),
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

uint64_t collector_correlation(void)
{
    return atomic_fetch_add(&next_correlation, 1) + 1;
}

bool collector_dying(void)
{
    return false;
}

bool collector_ended(void)
{
    return ended != 0;
}

void collector_register(const struct collector_source *source)
{
    for (unsigned i = 0; i < source_count; i++)
        if (sources[i] == source)
            return;
    sources[source_count] = source;
    source_count++;
}

bool collector_option(const char *name, char *value, size_t size)
{
    (void)name, (void)value, (void)size;
    return false;
}

bool collector_traces(const char *domain)
{
    (void)domain;
    return true;
}
