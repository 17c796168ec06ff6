/* A collector that throws its records away: what CUPTI itself costs, so that a profiler's own part
 * can be told from it. Loaded as libbench_cupti_floor.so by CUDA_INJECTION64_PATH.
 *
 * The environment variable FLOOR, a comma list, says what is switched on:
 *
 *     kernel memcpy ...    record kinds, whole; their names are in kinds[] below
 *     runtime_set driver_set          API records for the functions that perfkit records
 *     runtime_launch driver_launch    API records for launches only
 *     managed              moves of unified memory
 *     clock, tsc           timestamp callback: CLOCK_MONOTONIC, or the processor's counter
 *     flush=MS             cuptiActivityFlushAll(0) every MS ms, on a thread of ours
 *     buf=BYTES            size of our buffers, 2 MiB when not given
 *     zeroed               promise CUPTI zeroed buffers
 *     perthread=1          a buffer for each thread: CUPTI's default, unsafe beside flushes (records.h)
 *     devbuf=BYTES         size of CUPTI's buffers on the device
 *     devpool=N            how many of them at most
 *     pinned               have them in pinned host memory
 *     graphcb              callback: graph node created or cloned
 *     launchcb             callback: launch entered and left
 *     nocount              do not walk the buffers (records are then not counted)
 *     subscribe            nothing else: loaded, subscribed, idle
 *
 * When the process ends, the file named by FLOOR_STATS gets one line: records=N dropped=N bytes=N
 * buffers=N errors=N, and error=TEXT (last, to the line's end) when something was refused.
 *
 * Loading CUPTI and the choice of functions are collectors/cuda's own files: the two cannot drift
 * apart. Walking and zeroing are done on a thread of ours, as a real collector does. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include "collectors/core/collector.h"
#include "collectors/cuda/parts.h"

#define PAGE 4096u

/* Attributes that the headers of CUPTI 12.0 lack. */
#define ATTR_HOST_PINNED ((CUpti_ActivityAttribute)8)
#define ATTR_PER_THREAD ((CUpti_ActivityAttribute)RECORD_ATTR_THREAD_BUFFERS)

struct buffer {
    struct buffer *next;
    size_t valid;
    _Alignas(PAGE) uint8_t data[];
};

static struct {
    size_t buffer_bytes;
    long flush_ms;
    bool zeroed, count;
} options = {.buffer_bytes = 2u << 20, .count = true};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* taken once per buffer */
static struct buffer *free_list, *full_list;
static uint64_t records, dropped, bytes, buffers; /* under the lock */
static _Atomic uint32_t errors;
static char first_error[512];
static pid_t owner; /* a forked child has no CUPTI */

static void note_error(const char *what, const char *why)
{
    if (atomic_fetch_add(&errors, 1) == 0)
        snprintf(first_error, sizeof first_error, "%s: %s", what, why);
}

static void check(CUptiResult result, const char *what)
{
    if (result != CUPTI_SUCCESS)
        note_error(what, cupti_result(result));
}

/* What the borrowed files of collectors/cuda ask of the core. */
uint32_t collector_string(const char *text, size_t length)
{
    (void)text, (void)length;
    return 0;
}

bool collector_option(const char *name, char *value, size_t size)
{
    (void)name, (void)value, (void)size;
    return false;
}

void collector_health(enum wire_source source, enum wire_health_state state, const char *why,
                      uint32_t value)
{
    (void)source, (void)state, (void)value;
    note_error("collector", why ? why : "unknown");
}

static void *map(size_t size)
{
    void *at = aligned_alloc(PAGE, (size + PAGE - 1) / PAGE * PAGE);
    if (at)
        memset(at, 0, size); /* touched before CUPTI writes to it */
    return at;
}

static void request(uint8_t **data, size_t *size, size_t *max_records)
{
    pthread_mutex_lock(&lock);
    struct buffer *mine = free_list;
    if (mine)
        free_list = mine->next;
    else
        buffers++;
    pthread_mutex_unlock(&lock);
    if (!mine)
        mine = map(sizeof *mine + options.buffer_bytes);
    *data = mine ? mine->data : NULL;
    *size = mine ? options.buffer_bytes : 0;
    *max_records = 0;
}

static void complete(CUcontext context, uint32_t stream, uint8_t *data, size_t size, size_t valid)
{
    (void)context, (void)stream, (void)size;
    if (!data)
        return;
    struct buffer *mine = (struct buffer *)(void *)(data - offsetof(struct buffer, data));
    mine->valid = valid;
    pthread_mutex_lock(&lock);
    mine->next = full_list;
    full_list = mine;
    bytes += valid;
    pthread_mutex_unlock(&lock);
}

static uint64_t walk(struct buffer *buffer)
{
    uint64_t n = 0;
    CUpti_Activity *record = NULL;
    while (cupti.ActivityGetNextRecord(buffer->data, buffer->valid, &record) == CUPTI_SUCCESS)
        n++;
    return n;
}

/* Count what came, and make the buffers ready for the next taker. */
static void drain(void)
{
    pthread_mutex_lock(&lock);
    struct buffer *list = full_list;
    full_list = NULL;
    pthread_mutex_unlock(&lock);
    while (list) {
        struct buffer *buffer = list;
        list = buffer->next;
        uint64_t n = options.count ? walk(buffer) : 0;
        size_t used = buffer->valid + PAGE;
        if (options.zeroed)
            memset(buffer->data, 0, used < options.buffer_bytes ? used : options.buffer_bytes);
        pthread_mutex_lock(&lock);
        records += n;
        buffer->next = free_list;
        free_list = buffer;
        pthread_mutex_unlock(&lock);
    }
    size_t lost = 0;
    if (cupti.ActivityGetNumDroppedRecords(NULL, 0, &lost) == CUPTI_SUCCESS) {
        pthread_mutex_lock(&lock);
        dropped += lost;
        pthread_mutex_unlock(&lock);
    }
}

static void *serve(void *unused)
{
    (void)unused;
    long ms = options.flush_ms > 0 ? options.flush_ms : 20;
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    for (;;) {
        nanosleep(&pause, NULL);
        if (options.flush_ms > 0)
            cupti.ActivityFlushAll(0);
        drain();
    }
    return NULL;
}

static void finish(void)
{
    const char *path = getenv("FLOOR_STATS");
    if (getpid() != owner)
        return;
    if (cupti.ActivityFlushAll) {
        check(cupti.ActivityFlushAll(1), "cuptiActivityFlushAll(1)");
        drain();
    }
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    pthread_mutex_lock(&lock);
    fprintf(file, "records=%llu dropped=%llu bytes=%llu buffers=%llu errors=%u",
            (unsigned long long)records, (unsigned long long)dropped, (unsigned long long)bytes,
            (unsigned long long)buffers, atomic_load(&errors));
    pthread_mutex_unlock(&lock);
    fprintf(file, "%s%s\n", first_error[0] ? " error=" : "", first_error);
    fclose(file);
}

static uint64_t monotonic(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#ifdef __x86_64__
static uint64_t counter(void)
{
    return __rdtsc();
}
#endif

/* Unified memory can be configured only when cuInit is through. */
static void enable_managed(void)
{
    static const CUpti_ActivityUnifiedMemoryCounterKind counters[] = {
        CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
        CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH,
        CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOD,
    };
    CUpti_ActivityUnifiedMemoryCounterConfig configs[sizeof counters / sizeof counters[0]];
    uint32_t count = sizeof counters / sizeof counters[0];
    for (uint32_t i = 0; i < count; i++) {
        configs[i] = (CUpti_ActivityUnifiedMemoryCounterConfig){
            .scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE,
            .kind = counters[i],
            .enable = 1,
        };
    }
    if (!cupti.ActivityConfigureUnifiedMemoryCounter)
        note_error("managed", "this CUPTI has no counters of unified memory");
    else if (cupti.ActivityConfigureUnifiedMemoryCounter(configs, count) == CUPTI_SUCCESS)
        check(cupti.ActivityEnable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER), "managed");
    /* refused: a machine without unified memory, and nothing to pay for */
}

static void callback(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                     const void *details)
{
    (void)data, (void)details;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_CU_INIT_FINISHED)
        enable_managed();
}

static const struct {
    const char *name;
    CUpti_ActivityKind kind;
} kinds[] = {
    {"kernel", CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL},
    {"graph", CUPTI_ACTIVITY_KIND_GRAPH_TRACE},
    {"memcpy", CUPTI_ACTIVITY_KIND_MEMCPY},
    {"memcpy2", CUPTI_ACTIVITY_KIND_MEMCPY2},
    {"memset", CUPTI_ACTIVITY_KIND_MEMSET},
    {"runtime", CUPTI_ACTIVITY_KIND_RUNTIME},
    {"driver", CUPTI_ACTIVITY_KIND_DRIVER},
    {"sync", CUPTI_ACTIVITY_KIND_SYNCHRONIZATION},
    {"memory2", CUPTI_ACTIVITY_KIND_MEMORY2},
    {"pool", CUPTI_ACTIVITY_KIND_MEMORY_POOL},
    {"overhead", CUPTI_ACTIVITY_KIND_OVERHEAD},
    {"event", CUPTI_ACTIVITY_KIND_CUDA_EVENT},
    {"device", CUPTI_ACTIVITY_KIND_DEVICE},
    {"context", CUPTI_ACTIVITY_KIND_CONTEXT},
    {"stream", CUPTI_ACTIVITY_KIND_STREAM},
    {"jit", (CUpti_ActivityKind)RECORD_KIND_JIT},
    {"module", CUPTI_ACTIVITY_KIND_MODULE},
};

static const struct {
    const char *name;
    enum cuda_domain domain;
    bool launches;
} sets[] = {
    {"runtime_set", CUDA_DOMAIN_RUNTIME, false},
    {"driver_set", CUDA_DOMAIN_DRIVER, false},
    {"runtime_launch", CUDA_DOMAIN_RUNTIME, true},
    {"driver_launch", CUDA_DOMAIN_DRIVER, true},
};

static bool is_launch(const struct cuda_function *function)
{
    return function->klass == WIRE_CLASS_LAUNCH || function->klass == WIRE_CLASS_GRAPH_LAUNCH;
}

/* The functions of one domain that CUPTI names and that `sets[which]` asks for. */
static bool in_set(enum cuda_domain domain, bool launches, uint32_t cbid)
{
    const struct cuda_function *function = cuda_function(domain, cbid);
    if (function == cuda_function(domain, CUDA_MAX_CBID) || !function->wanted)
        return false;
    return !launches || is_launch(function);
}

static void enable_set(size_t which, const char *name)
{
    enum cuda_domain domain = sets[which].domain;
    CUptiResult (*enable)(CUpti_CallbackId, uint8_t) = domain == CUDA_DOMAIN_RUNTIME
                                                           ? cupti.ActivityEnableRuntimeApi
                                                           : cupti.ActivityEnableDriverApi;
    if (!enable) {
        note_error(name, "this CUPTI enables no single functions");
        return;
    }
    for (uint32_t cbid = 1; cbid < CUDA_MAX_CBID; cbid++) {
        if (in_set(domain, sets[which].launches, cbid))
            check(enable(cbid, 1), name);
    }
}

static void enable_launch_callbacks(CUpti_SubscriberHandle subscriber)
{
    for (uint32_t cbid = 1; cbid < CUDA_MAX_CBID; cbid++) {
        if (in_set(CUDA_DOMAIN_RUNTIME, true, cbid))
            check(cupti.EnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, cbid),
                  "launchcb");
        if (in_set(CUDA_DOMAIN_DRIVER, true, cbid))
            check(cupti.EnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, cbid),
                  "launchcb");
    }
}

static void enable_graph_callbacks(CUpti_SubscriberHandle subscriber)
{
    static const CUpti_CallbackId ids[] = {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
                                           CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        check(cupti.EnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, ids[i]), "graphcb");
}

static void set_number(CUpti_ActivityAttribute attribute, size_t value, const char *word)
{
    size_t size = sizeof value;
    check(cupti.ActivitySetAttribute(attribute, &size, &value), word);
}

static void set_flag(CUpti_ActivityAttribute attribute, uint8_t value, const char *word)
{
    size_t size = sizeof value;
    check(cupti.ActivitySetAttribute(attribute, &size, &value), word);
}

/* Does `word` begin with `name` and "="? Then *value is the number behind it. */
static bool number(const char *word, const char *name, unsigned long *value)
{
    size_t length = strlen(name);
    if (strncmp(word, name, length) != 0 || word[length] != '=')
        return false;
    *value = strtoul(word + length + 1, NULL, 10);
    return true;
}

/* First pass: everything that must be set before records are enabled. False: no such word. */
static bool prepare(const char *word)
{
    unsigned long value;
    if (strcmp(word, "zeroed") == 0) {
        options.zeroed = true;
        set_flag(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, 1, word);
    } else if (strcmp(word, "pinned") == 0) {
        set_flag(ATTR_HOST_PINNED, 1, word);
    } else if (number(word, "perthread", &value)) {
        set_flag(ATTR_PER_THREAD, value != 0, word);
    } else if (number(word, "devbuf", &value)) {
        set_number(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, value, word);
    } else if (number(word, "devpool", &value)) {
        set_number(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, value, word);
    } else if (number(word, "buf", &value)) {
        options.buffer_bytes = value >= PAGE ? value / 8 * 8 : PAGE;
    } else if (number(word, "flush", &value)) {
        options.flush_ms = (long)value;
    } else if (strcmp(word, "nocount") == 0) {
        options.count = false;
    } else if (strcmp(word, "clock") == 0) {
        check(cupti.ActivityRegisterTimestampCallback(monotonic), word);
#ifdef __x86_64__
    } else if (strcmp(word, "tsc") == 0) {
        check(cupti.ActivityRegisterTimestampCallback(counter), word);
#endif
    } else {
        return false;
    }
    return true;
}

/* Second pass: what is recorded. */
static bool enable(const char *word, CUpti_SubscriberHandle subscriber)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(word, kinds[i].name) != 0)
            continue;
        if (kinds[i].kind == CUPTI_ACTIVITY_KIND_SYNCHRONIZATION &&
            cupti.ActivityEnableAllSyncRecords)
            check(cupti.ActivityEnableAllSyncRecords(0), word);
        check(cupti.ActivityEnable(kinds[i].kind), word);
        return true;
    }
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        if (strcmp(word, sets[i].name) == 0) {
            enable_set(i, word);
            return true;
        }
    }
    if (strcmp(word, "managed") == 0)
        check(cupti.EnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                                   CUPTI_CBID_RESOURCE_CU_INIT_FINISHED),
              word);
    else if (strcmp(word, "graphcb") == 0)
        enable_graph_callbacks(subscriber);
    else if (strcmp(word, "launchcb") == 0)
        enable_launch_callbacks(subscriber);
    else
        return strcmp(word, "subscribe") == 0;
    return true;
}

/* What must be set comes in the first pass, what is recorded in the second. */
static void apply(const char *list, CUpti_SubscriberHandle subscriber)
{
    char *known = NULL;
    for (int pass = 0; pass < 2; pass++) {
        char *copy = strdup(list), *rest = copy;
        for (char *word; copy && (word = strsep(&rest, ",")) != NULL;) {
            if (!*word)
                continue;
            bool done = pass == 0 ? prepare(word) : enable(word, subscriber);
            size_t at = (size_t)(word - copy);
            if (!known)
                known = calloc(1, strlen(list) + 1);
            if (known && !done && pass == 1 && !known[at])
                note_error(word, "no such word in FLOOR");
            else if (known && done)
                known[at] = 1;
        }
        if (pass == 0)
            check(cupti.ActivityRegisterCallbacks(request, complete), "RegisterCallbacks");
        free(copy);
    }
    free(known);
}

static void start_thread(void)
{
    sigset_t all, old;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&thread, NULL, serve, NULL) == 0)
        pthread_detach(thread);
    else
        note_error("thread", "not started");
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
    if (owner == getpid())
        return 1;
    owner = getpid();
    atexit(finish);
    char why[320];
    if (!cupti_load(why, sizeof why)) {
        note_error("cupti", why);
        return 1;
    }
    CUpti_SubscriberHandle subscriber = NULL;
    check(cupti.Subscribe(&subscriber, callback, NULL), "cuptiSubscribe");
    if (cupti.SetThreadIdType)
        check(cupti.SetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM), "thread ids");
    cuda_classes_start();
    const char *list = getenv("FLOOR");
    if (!list || strcmp(list, "subscribe") == 0)
        return 1;
    if (cupti.ActivitySetAttribute) /* as perfkit; older ones do not know it */
        cupti.ActivitySetAttribute(ATTR_PER_THREAD, &(size_t){1}, &(uint8_t){0});
    apply(list, subscriber);
    for (int i = 0; i < 4; i++) {
        struct buffer *first = map(sizeof *first + options.buffer_bytes);
        if (!first)
            break;
        first->next = free_list;
        free_list = first;
        buffers++;
    }
    start_thread();
    return 1;
}
