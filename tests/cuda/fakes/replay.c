/* Playing a dump of CUPTI's buffers (collectors/cuda/dump.h) through the fake libcupti.
 *
 * Everything happens in the order of the dump's times: a record is kept when its kind, and for API
 * records its function, is enabled at the moment the record tells of; callbacks are called on a
 * thread that stands for the dump's; buffers are filled by such threads and brought back where the
 * dump's were. Times are moved as a whole to lie just before now, names are ours, thread ids those
 * of the threads that stand in. A callback finds the time of the dump when the program lends us its
 * clock, so that a graph node lies inside the call that made it. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collectors/cuda/dump.h"
#include "tests/cuda/fakes/internal.h"

#define MAX_WORKERS 200u
#define MAX_TEXT_BYTES 65536u
#define NS_PER_MS 1000000u

struct worker {
    uint32_t tid;  /* in the dump */
    uint32_t real; /* here */
    bool ending;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void (*job)(void *);
    void *argument;
};

struct record {
    uint8_t *at;
    size_t size;
    enum { UNDECIDED, WANTED, UNWANTED } state;
};

struct buffer {
    const struct dump_buffer *head;
    uint64_t time;
    size_t first, count; /* records */
    bool calls;          /* API records only, or (knob calls=late) all but those */
    bool split;
};

/* What happens, ordered by time. */
enum what { DECIDE, API_CALL, CALLBACK, TEXT, BUFFER, FLUSH };
struct happening {
    uint64_t time;
    size_t order;
    enum what what;
    union {
        size_t record;
        size_t buffer;
        const struct dump_callback *callback;
        const struct dump_block *text;
    };
    int site; /* of an API_CALL */
};

static uint8_t *file;
static size_t file_bytes;
static struct record *records;
static size_t record_count, record_room;
static struct buffer *buffers;
static size_t buffer_count, buffer_room;
static struct happening *happenings;
static size_t happening_count, happening_room;
static struct worker workers[MAX_WORKERS]; /* [0] is the calling thread */
static size_t worker_count;
static size_t sizes[256];
static struct {
    uint64_t address;
    char *text;
} * texts;
static size_t text_count, text_room;
static uint64_t shift; /* added to a time of the dump */
static fake_clock_fn lend_clock;
static bool in_place;    /* a text that changed in the dump changes under its address here too */
static size_t untold;    /* happenings from here on are texts of the next buffer */
static bool api_told[3]; /* domains whose callbacks are in the dump */

static void *grown(void *array, size_t *room, size_t count, size_t size)
{
    if (count < *room)
        return array;
    *room = *room ? *room * 2 : 256;
    void *bigger = realloc(array, *room * size);
    if (!bigger)
        abort();
    return bigger;
}
#define ADD(array, value)                                                                          \
    do {                                                                                           \
        array##s = grown(array##s, &array##_room, array##_count, sizeof array##s[0]);              \
        array##s[array##_count++] = (value);                                                       \
    } while (0)

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t time)
{
    for (uint64_t at = now(); at < time; at = now()) {
        uint64_t left = time - at;
        struct timespec pause = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
        nanosleep(&pause, NULL);
    }
}

static uint32_t get32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint64_t get64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static void put32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, sizeof value);
}

static void put64(uint8_t *at, uint64_t value)
{
    memcpy(at, &value, sizeof value);
}

/* ---- threads */

static void *work(void *argument)
{
    struct worker *worker = argument;
    pthread_mutex_lock(&worker->lock);
    worker->real = (uint32_t)syscall(SYS_gettid);
    pthread_cond_broadcast(&worker->changed);
    for (;;) {
        while (!worker->job && !worker->ending)
            pthread_cond_wait(&worker->changed, &worker->lock);
        if (!worker->job)
            break;
        worker->job(worker->argument);
        worker->job = NULL;
        pthread_cond_broadcast(&worker->changed);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL; /* with whatever its buffer holds */
}

static struct worker *worker_of(uint32_t tid)
{
    for (size_t i = 0; i < worker_count; i++) {
        if (workers[i].tid == tid)
            return &workers[i];
    }
    if (worker_count == MAX_WORKERS)
        return &workers[0];
    struct worker *worker = &workers[worker_count++];
    worker->tid = tid;
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->changed, NULL);
    if (worker == &workers[0]) {
        worker->real = (uint32_t)syscall(SYS_gettid);
        return worker;
    }
    if (pthread_create(&worker->thread, NULL, work, worker) != 0)
        abort();
    pthread_mutex_lock(&worker->lock);
    while (!worker->real)
        pthread_cond_wait(&worker->changed, &worker->lock);
    pthread_mutex_unlock(&worker->lock);
    return worker;
}

static void run_on(struct worker *worker, void (*job)(void *), void *argument)
{
    if (worker == &workers[0]) {
        job(argument);
        return;
    }
    pthread_mutex_lock(&worker->lock);
    worker->job = job;
    worker->argument = argument;
    pthread_cond_broadcast(&worker->changed);
    while (worker->job)
        pthread_cond_wait(&worker->changed, &worker->lock);
    pthread_mutex_unlock(&worker->lock);
}

static void end_workers(void)
{
    for (size_t i = 1; i < worker_count; i++) {
        pthread_mutex_lock(&workers[i].lock);
        workers[i].ending = true;
        pthread_cond_broadcast(&workers[i].changed);
        pthread_mutex_unlock(&workers[i].lock);
        pthread_join(workers[i].thread, NULL);
    }
}

/* ---- fields of records */

static bool is_call(uint32_t kind)
{
    return kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER;
}

/* Kernels, copies and fills: their start stands at 16, their end at 24. */
static bool is_device_work(uint32_t kind)
{
    return kind == CUPTI_ACTIVITY_KIND_KERNEL || kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
           kind == CUPTI_ACTIVITY_KIND_MEMCPY || kind == CUPTI_ACTIVITY_KIND_MEMCPY2 ||
           kind == CUPTI_ACTIVITY_KIND_MEMSET;
}

static const struct place {
    uint32_t kind, at;
} time_places[] =
    {
#define X(kind, offset) {kind, offset},
        DUMP_TIMES(X)},
  text_places[] = {DUMP_STRINGS(X)
#undef X
};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The correlation id's offset; 0 = has none. */
static size_t correlation_at(uint32_t kind)
{
    switch ((int)kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return offsetof(CUpti_ActivityKernel10, correlationId);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return offsetof(CUpti_ActivityMemcpy6, correlationId);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return offsetof(CUpti_ActivityMemcpyPtoP4, correlationId);
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return offsetof(CUpti_ActivityMemset4, correlationId);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API:
        return offsetof(CUpti_ActivityAPI, correlationId);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
        return offsetof(CUpti_ActivitySynchronization2, correlationId);
    case CUPTI_ACTIVITY_KIND_MEMORY2:
        return offsetof(CUpti_ActivityMemory4, correlationId);
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
        return offsetof(CUpti_ActivityMemoryPool3, correlationId);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        return offsetof(CUpti_ActivityOverhead3, correlationId);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
        return offsetof(CUpti_ActivityCudaEvent2, correlationId);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        return offsetof(CUpti_ActivityGraphTrace2, correlationId);
    case CUPTI_ACTIVITY_KIND_JIT:
        return offsetof(CUpti_ActivityJit2, correlationId);
    default:
        return 0;
    }
}

static uint64_t first_time(const struct record *record)
{
    for (size_t i = 0; i < COUNT(time_places); i++) {
        if (time_places[i].kind == get32(record->at) && time_places[i].at + 8 <= record->size)
            return get64(record->at + time_places[i].at);
    }
    return 0;
}

/* Call `change` on each time of the record that is one. */
static void each_time(struct record *record, void (*change)(uint8_t *))
{
    for (size_t i = 0; i < COUNT(time_places); i++) {
        if (time_places[i].kind == get32(record->at) && time_places[i].at + 8 <= record->size &&
            get64(record->at + time_places[i].at) != 0)
            change(record->at + time_places[i].at);
    }
}

/* ---- reading the dump */

static void put_text(size_t i, const struct dump_block *block)
{
    size_t length = block->bytes - sizeof(struct dump_string);
    memcpy(texts[i].text, (const uint8_t *)(block + 1) + sizeof(struct dump_string), length);
    texts[i].text[length] = '\0';
}

static size_t text_number(uint64_t address)
{
    size_t i = 0;
    while (i < text_count && texts[i].address != address)
        i++;
    return i;
}

/* A buffer that was played before may be undecoded yet, so a new text gets a place of its own,
 * unless the replay waits for the collector's flushes. */
static void add_text(const struct dump_block *block)
{
    uint64_t address = get64((const uint8_t *)(block + 1));
    size_t i = text_number(address);
    bool is_new = i == text_count;
    if (is_new) {
        texts = grown(texts, &text_room, text_count, sizeof texts[0]);
        texts[text_count++].address = address;
    }
    if (is_new || !in_place)
        texts[i].text = malloc(in_place ? MAX_TEXT_BYTES + 1 : block->bytes);
    if (!texts[i].text)
        abort();
    if (in_place) {
        struct happening happening = {.order = happening_count, .what = TEXT, .text = block};
        texts[i].text[0] = '\0';
        ADD(happening, happening);
    } else {
        put_text(i, block);
    }
}

static const char *text_of(uint64_t address)
{
    size_t i = text_number(address);
    return i < text_count ? texts[i].text : NULL;
}

static void add_record(uint8_t *at, size_t size)
{
    struct record record = {at, size, UNDECIDED};
    for (size_t i = 0; i < COUNT(text_places); i++) {
        if (text_places[i].kind == get32(at) && text_places[i].at + 8 <= size)
            put64(at + text_places[i].at, (uintptr_t)text_of(get64(at + text_places[i].at)));
    }
    ADD(record, record);
}

static void add_buffer(const struct dump_block *block, uint8_t *body)
{
    struct buffer buffer = {.head = (const void *)body, .time = block->time, .first = record_count};
    size_t at = sizeof(struct dump_buffer);
    while (at + 8 <= block->bytes) {
        uint32_t kind = get32(body + at);
        size_t size = kind < COUNT(sizes) ? sizes[kind] : 0;
        if (size == 0 || at + size > block->bytes)
            break; /* the dump's own buffer was damaged here */
        add_record(body + at, size);
        at += size;
    }
    buffer.count = record_count - buffer.first;
    ADD(buffer, buffer);
}

static void add_block(const struct dump_block *block, uint8_t *body)
{
    struct happening happening = {.time = block->time, .order = happening_count};
    switch (block->type) {
    case DUMP_SIZE:
        if (get32(body) < COUNT(sizes))
            sizes[get32(body)] = get32(body + 4);
        fake_set_size(get32(body), get32(body + 4));
        break;
    case DUMP_STRING:
        if (block->bytes >= sizeof(struct dump_string) &&
            block->bytes <= sizeof(struct dump_string) + MAX_TEXT_BYTES)
            add_text(block);
        break;
    case DUMP_BUFFER:
        add_buffer(block, body);
        for (; untold < happening_count; untold++) {
            if (happenings[untold].what == TEXT)
                happenings[untold].time = block->time;
        }
        happening.what = BUFFER;
        happening.buffer = buffer_count - 1;
        ADD(happening, happening);
        break;
    case DUMP_CALLBACK:
        happening.what = CALLBACK;
        happening.callback = (const void *)body;
        if (happening.callback->domain < COUNT(api_told))
            api_told[happening.callback->domain] = true;
        ADD(happening, happening);
        break;
    case DUMP_FLUSH:
        happening.what = FLUSH;
        ADD(happening, happening);
        break;
    case DUMP_DROPPED:
        if (get32(body + 8) == DUMP_LOST_RECORDS)
            fake_tell_dropped(get64(body));
        break;
    default:
        break;
    }
}

static bool read_file(const char *path)
{
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return false;
    fseek(stream, 0, SEEK_END);
    long bytes = ftell(stream);
    rewind(stream);
    file = malloc(bytes > 0 ? (size_t)bytes : 1);
    file_bytes = fread(file, 1, bytes > 0 ? (size_t)bytes : 0, stream);
    fclose(stream);
    return true;
}

static bool load(const char *path)
{
    if (!read_file(path))
        return false;
    const struct dump_header *header = (const void *)file;
    if (file_bytes < sizeof *header || memcmp(header->magic, DUMP_MAGIC, 8) != 0 ||
        header->version != DUMP_VERSION)
        return false;
    fake_set_version(header->cupti_version);
    worker_of(header->pid); /* the main thread's, which is the caller */
    for (size_t at = header->bytes; at + sizeof(struct dump_block) <= file_bytes;) {
        const struct dump_block *block = (const void *)(file + at);
        at += sizeof *block;
        if (block->bytes > file_bytes - at)
            break; /* the process was killed here */
        add_block(block, file + at);
        at += (block->bytes + 7u) & ~(size_t)7;
    }
    return true;
}

/* ---- preparing: times, threads, what happens when */

static uint64_t earliest = UINT64_MAX, last;
static int64_t clock_offset; /* of the records' clock against the blocks' */

static void widen_span(uint8_t *at)
{
    uint64_t time = get64(at);
    earliest = time < earliest ? time : earliest;
    last = time > last ? time : last;
}

static void to_block_clock(uint8_t *at)
{
    put64(at, get64(at) - (uint64_t)clock_offset);
}

static void move(uint8_t *at)
{
    put64(at, fake_record_clock(get64(at) + shift));
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* Without a clock of the collector's CUPTI gives CLOCK_REALTIME. */
static void align_clocks(void)
{
    const struct dump_header *header = (const void *)file;
    uint64_t sample = 0;
    for (size_t i = 0; i < record_count && sample == 0; i++)
        sample = is_call(get32(records[i].at)) ? first_time(&records[i]) : 0;
    if (sample && distance(sample, header->realtime_ns) < distance(sample, header->monotonic_ns)) {
        clock_offset = (int64_t)(header->realtime_ns - header->monotonic_ns);
        for (size_t i = 0; i < record_count; i++)
            each_time(&records[i], to_block_clock);
    }
}

/* CUPTI's API callbacks, where the dump has none of them. */
static void add_api_calls(size_t number)
{
    const CUpti_ActivityAPI *call = (const void *)records[number].at;
    CUpti_CallbackDomain domain = call->kind == CUPTI_ACTIVITY_KIND_RUNTIME
                                      ? CUPTI_CB_DOMAIN_RUNTIME_API
                                      : CUPTI_CB_DOMAIN_DRIVER_API;
    if (api_told[domain] || !fake_wants_callback(domain, call->cbid))
        return;
    for (int site = 0; site < 2; site++) {
        struct happening happening = {.time = site ? call->end : call->start,
                                      .order = happening_count,
                                      .what = API_CALL,
                                      .record = number,
                                      .site = site};
        ADD(happening, happening);
    }
}

static int by_time(const void *a, const void *b)
{
    const struct happening *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void add_happenings(void)
{
    for (size_t i = 0; i < record_count; i++) {
        struct happening happening = {
            .time = first_time(&records[i]), .order = happening_count, .what = DECIDE, .record = i};
        ADD(happening, happening);
        if (is_call(get32(records[i].at)))
            add_api_calls(i);
    }
    qsort(happenings, happening_count, sizeof happenings[0], by_time);
}

static void move_thread(uint8_t *process, uint8_t *thread)
{
    put32(process, (uint32_t)getpid());
    if (get32(thread))
        put32(thread, worker_of(get32(thread))->real);
}

/* The threads of a record to those that stand in for them. */
static void move_threads(struct record *record)
{
    uint8_t *at = record->at;
    uint32_t kind = get32(at);
    if (is_call(kind))
        move_thread(at + offsetof(CUpti_ActivityAPI, processId),
                    at + offsetof(CUpti_ActivityAPI, threadId));
    else if (kind == CUPTI_ACTIVITY_KIND_OVERHEAD && get32(at + 8) == CUPTI_ACTIVITY_OBJECT_THREAD)
        move_thread(at + 12, at + 16);
    else if (kind == CUPTI_ACTIVITY_KIND_JIT && record->size >= sizeof(CUpti_ActivityJit2))
        move_thread(at + offsetof(CUpti_ActivityJit2, processId),
                    at + offsetof(CUpti_ActivityJit2, threadId));
    else if (kind == CUPTI_ACTIVITY_KIND_MEMORY2)
        put32(at + offsetof(CUpti_ActivityMemory4, processId), (uint32_t)getpid());
    else if (kind == CUPTI_ACTIVITY_KIND_MEMORY_POOL)
        put32(at + offsetof(CUpti_ActivityMemoryPool3, processId), (uint32_t)getpid());
}

/* Ids such that the middle of the dump is where 32 bits end; 0 is no id. */
static void wrap_correlations(void)
{
    uint32_t low = UINT32_MAX, high = 0;
    for (size_t i = 0; i < record_count; i++) {
        size_t at = correlation_at(get32(records[i].at));
        uint32_t id = at ? get32(records[i].at + at) : 0;
        if (id) {
            low = id < low ? id : low;
            high = id > high ? id : high;
        }
    }
    uint32_t middle = low + (high - low) / 2;
    for (size_t i = 0; i < record_count; i++) {
        size_t at = correlation_at(get32(records[i].at));
        uint32_t id = at ? get32(records[i].at + at) : 0;
        if (id)
            put32(records[i].at + at, id - middle + (id > middle) - 1);
    }
}

static bool each_nth(const char *name, uint64_t n)
{
    long every = fake_knob(name, 0);
    return every > 0 && n % (uint64_t)every == 0;
}

/* After times were moved. False: the record is lost. */
static bool spoil(struct record *record, uint64_t n)
{
    uint8_t *start = record->at + 16, *end = record->at + 24;
    if (each_nth("end0", n))
        put64(end, 0);
    if (each_nth("notime", n))
        put64(start, 0), put64(end, 0);
    if (each_nth("backward", n))
        put64(end, get64(start) - 1);
    if (each_nth("future", n))
        put64(start, get64(start) + (1ull << 60)), put64(end, get64(end) + (1ull << 60));
    if (each_nth("lose", n)) {
        fake_tell_dropped(1);
        return false;
    }
    return !each_nth("vanish", n);
}

static void reverse(struct buffer *buffer)
{
    for (size_t i = 0; i < buffer->count / 2; i++) {
        struct record *a = &records[buffer->first + i];
        struct record *b = &records[buffer->first + buffer->count - 1 - i], other = *a;
        *a = *b;
        *b = other;
    }
}

static void prepare(void)
{
    align_clocks();
    for (size_t i = 0; i < record_count; i++)
        each_time(&records[i], widen_span);
    for (size_t i = 0; i < happening_count; i++) {
        if (happenings[i].what == CALLBACK)
            widen_span((uint8_t *)&happenings[i].time);
    }
    if (fake_knob("wrap", 0))
        wrap_correlations();
    if (fake_knob("reverse", 0)) {
        for (size_t i = 0; i < buffer_count; i++)
            reverse(&buffers[i]);
    }
    add_happenings();
    if (last < earliest)
        earliest = last = now();
    uint64_t limit = (uint64_t)fake_knob("span", 5000) * NS_PER_MS;
    uint64_t span = last - earliest < limit ? last - earliest : limit;
    uint64_t at = now();
    shift = at + span - last;
    if (!fake_knob("pace", 0))
        sleep_until(at + span);
}

/* ---- playing */

static void tell_graph_node(const struct dump_callback *told)
{
    struct fake_handle node = {.number = told->node}, original = {.number = told->original_node};
    struct fake_handle graph = {.number = told->graph};
    CUpti_GraphData data = {
        .graph = (CUgraph)(void *)&graph,
        .node = (CUgraphNode)(void *)&node,
        .originalNode = (CUgraphNode)(void *)(told->original_node ? &original : NULL),
        .nodeType = (CUgraphNodeType)told->node_type,
    };
    fake_call_back(CUPTI_CB_DOMAIN_RESOURCE, told->cbid,
                   &(CUpti_ResourceData){.resourceDescriptor = &data});
}

static void tell_resource(const struct dump_callback *told)
{
    bool is_stream = told->cbid == CUPTI_CBID_RESOURCE_STREAM_CREATED ||
                     told->cbid == CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING;
    struct fake_handle context = {.number = told->context,
                                  .handle = is_stream ? 0x1000 : told->handle};
    struct fake_handle stream = {.number = told->stream, .handle = told->handle};
    CUpti_ResourceData data = {.context = (CUcontext)(uintptr_t)context.handle};
    if (is_stream)
        data.resourceHandle.stream = (CUstream)(uintptr_t)stream.handle;
    fake_present(is_stream ? &stream : NULL, &context);
    fake_call_back(CUPTI_CB_DOMAIN_RESOURCE, told->cbid, &data);
    fake_present(NULL, NULL);
}

static void tell_call(CUpti_CallbackDomain domain, uint32_t cbid, uint32_t correlation, int site)
{
    static __thread uint64_t scratch;
    const char *name = NULL;
    cuptiGetCallbackName(domain, cbid, &name);
    fake_call_back(domain, cbid,
                   &(CUpti_CallbackData){
                       .callbackSite = site ? CUPTI_API_EXIT : CUPTI_API_ENTER,
                       .functionName = name,
                       .correlationData = &scratch,
                       .correlationId = correlation,
                   });
}

static void play_callback(void *argument)
{
    const struct happening *happening = argument;
    if (lend_clock)
        lend_clock(happening->time + shift);
    if (happening->what == API_CALL) {
        const CUpti_ActivityAPI *call = (const void *)records[happening->record].at;
        tell_call(call->kind == CUPTI_ACTIVITY_KIND_RUNTIME ? CUPTI_CB_DOMAIN_RUNTIME_API
                                                            : CUPTI_CB_DOMAIN_DRIVER_API,
                  call->cbid, call->correlationId, happening->site);
    } else {
        const struct dump_callback *told = happening->callback;
        if (told->domain != CUPTI_CB_DOMAIN_RESOURCE)
            tell_call((CUpti_CallbackDomain)told->domain, told->cbid, told->correlation,
                      (int)told->site);
        else if (told->node)
            tell_graph_node(told);
        else
            tell_resource(told);
    }
    if (lend_clock)
        lend_clock(0);
}

static bool calls_late;

static void decide(struct record *record)
{
    if (record->state == UNDECIDED)
        record->state = fake_wants_record(record->at) ? WANTED : UNWANTED;
}

/* One buffer; with calls=late the API records of all go at the end. */
static void play_buffer(void *argument)
{
    const struct buffer *buffer = argument;
    static uint64_t device_records;
    bool damaged = fake_knob("damage", 0) == (long)(buffer - buffers) + 1;
    for (size_t i = 0; i < buffer->count; i++) {
        struct record *record = &records[buffer->first + i];
        uint32_t kind = get32(record->at);
        decide(record);
        if (record->state != WANTED || (buffer->split && is_call(kind) != buffer->calls))
            continue;
        each_time(record, move);
        if (is_device_work(kind) && !spoil(record, ++device_records))
            continue;
        move_threads(record);
        if (damaged && i >= buffer->count / 2) {
            put32(record->at, 9999);
            damaged = false;
        }
        fake_write(record->at, record->size);
    }
}

static void bring_back(void *unused)
{
    (void)unused;
    fake_bring_back();
}

static void wait_for_flush(void)
{
    uint64_t done = fake_flushes() + 2; /* one may be under way */
    for (unsigned i = 0; i < 1000 && fake_flushes() < done; i++) {
        struct timespec pause = {0, 10 * NS_PER_MS};
        nanosleep(&pause, NULL);
    }
}

static int fork_here(void)
{
    long how = fake_knob("fork", 0);
    if (!how)
        return 0;
    pid_t child = fork();
    if (child == 0) {
        if (how == 2)
            _exit(0);
        exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status;
}

static int play_one_buffer(size_t number, bool calls)
{
    struct buffer *buffer = &buffers[number];
    struct worker *worker = worker_of(buffer->head->asked_by);
    int status = 0;
    buffer->split = calls_late;
    buffer->calls = calls;
    run_on(worker, play_buffer, buffer);
    if (number == buffer_count / 2 && !calls)
        status = fork_here();
    /* The last buffer of a thread stays with it, as one that is not full. */
    bool more = false;
    for (size_t i = number + 1; i < buffer_count; i++)
        more |= buffers[i].head->asked_by == buffer->head->asked_by;
    if (more)
        run_on(worker, bring_back, NULL);
    return status;
}

static int play(void)
{
    bool paced = fake_knob("pace", 0), flushes = fake_knob("flushes", 0), since_flush = false;
    int status = 0;
    for (size_t i = 0; i < happening_count; i++) {
        struct happening *happening = &happenings[i];
        if (paced && happening->time >= earliest)
            sleep_until(happening->time + shift);
        switch (happening->what) {
        case DECIDE:
            decide(&records[happening->record]);
            break;
        case CALLBACK:
            run_on(worker_of(happening->callback->tid), play_callback, happening);
            break;
        case API_CALL: {
            const CUpti_ActivityAPI *call = (const void *)records[happening->record].at;
            run_on(worker_of(call->threadId), play_callback, happening);
            break;
        }
        case TEXT:
            put_text(text_number(get64((const uint8_t *)(happening->text + 1))), happening->text);
            break;
        case BUFFER:
            status |= play_one_buffer(happening->buffer, false);
            since_flush = true;
            break;
        case FLUSH:
            if (flushes && since_flush)
                wait_for_flush();
            since_flush = false;
            break;
        }
    }
    if (calls_late) {
        wait_for_flush();
        for (size_t i = 0; i < buffer_count; i++)
            status |= play_one_buffer(i, true);
    }
    return status;
}

EXPORT int fake_cupti_replay(void);
int fake_cupti_replay(void)
{
    char path[512];
    void *clock = dlsym(RTLD_DEFAULT, "fake_clock");
    memcpy(&lend_clock, &clock, sizeof clock);
    in_place = fake_knob("flushes", 0) || fake_knob("inplace", 0);
    if (!fake_knob_text("replay", path, sizeof path) || !load(path))
        return 1;
    calls_late = fake_knob_text("calls", path, sizeof path) && strcmp(path, "late") == 0;
    prepare();
    int status = play();
    end_workers();
    return status;
}
