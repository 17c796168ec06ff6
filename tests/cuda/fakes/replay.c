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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/cuda/fakes/internal.h"
#include "tests/cuda/fakes/replay_dump.h"
#include "tests/cuda/fakes/replay_threads.h"

#define NS_PER_MS 1000000u

static uint64_t shift; /* added to a time of the dump */
static fake_clock_fn lend_clock;

/* Kernels, copies and fills: their start stands at 16, their end at 24. */
static bool is_device_work(uint32_t kind)
{
    return kind == CUPTI_ACTIVITY_KIND_KERNEL || kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
           kind == CUPTI_ACTIVITY_KIND_MEMCPY || kind == CUPTI_ACTIVITY_KIND_MEMCPY2 ||
           kind == CUPTI_ACTIVITY_KIND_MEMSET;
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
    const struct dump_header *header = (const void *)dump.file;
    uint64_t sample = 0;
    for (size_t i = 0; i < dump.record_count && sample == 0; i++)
        sample =
            replay_is_call(get32(dump.records[i].at)) ? replay_first_time(&dump.records[i]) : 0;
    if (sample && distance(sample, header->realtime_ns) < distance(sample, header->monotonic_ns)) {
        clock_offset = (int64_t)(header->realtime_ns - header->monotonic_ns);
        for (size_t i = 0; i < dump.record_count; i++)
            replay_each_time(&dump.records[i], to_block_clock);
    }
}

/* CUPTI's API callbacks, where the dump has none of them. */
static void add_api_calls(size_t number)
{
    const CUpti_ActivityAPI *call = (const void *)dump.records[number].at;
    CUpti_CallbackDomain domain = call->kind == CUPTI_ACTIVITY_KIND_RUNTIME
                                      ? CUPTI_CB_DOMAIN_RUNTIME_API
                                      : CUPTI_CB_DOMAIN_DRIVER_API;
    if (dump.api_told[domain] || !fake_wants_callback(domain, call->cbid))
        return;
    for (int site = 0; site < 2; site++) {
        replay_add((struct happening){.time = site ? call->end : call->start,
                                      .what = API_CALL,
                                      .record = number,
                                      .site = site});
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
    for (size_t i = 0; i < dump.record_count; i++) {
        replay_add((struct happening){
            .time = replay_first_time(&dump.records[i]), .what = DECIDE, .record = i});
        if (replay_is_call(get32(dump.records[i].at)))
            add_api_calls(i);
    }
    qsort(dump.happenings, dump.happening_count, sizeof dump.happenings[0], by_time);
}

static void move_thread(uint8_t *process, uint8_t *thread)
{
    put32(process, (uint32_t)getpid());
    if (get32(thread))
        put32(thread, replay_worker_tid(replay_worker_of(get32(thread))));
}

/* The threads of a record to those that stand in for them. */
static void move_threads(struct record *record)
{
    uint8_t *at = record->at;
    uint32_t kind = get32(at);
    if (replay_is_call(kind))
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
    for (size_t i = 0; i < dump.record_count; i++) {
        size_t at = replay_correlation_at(get32(dump.records[i].at));
        uint32_t id = at ? get32(dump.records[i].at + at) : 0;
        if (id) {
            low = id < low ? id : low;
            high = id > high ? id : high;
        }
    }
    uint32_t middle = low + (high - low) / 2;
    for (size_t i = 0; i < dump.record_count; i++) {
        size_t at = replay_correlation_at(get32(dump.records[i].at));
        uint32_t id = at ? get32(dump.records[i].at + at) : 0;
        if (id)
            put32(dump.records[i].at + at, id - middle + (id > middle) - 1);
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
        struct record *a = &dump.records[buffer->first + i];
        struct record *b = &dump.records[buffer->first + buffer->count - 1 - i], other = *a;
        *a = *b;
        *b = other;
    }
}

static void prepare(void)
{
    align_clocks();
    for (size_t i = 0; i < dump.record_count; i++)
        replay_each_time(&dump.records[i], widen_span);
    for (size_t i = 0; i < dump.happening_count; i++) {
        if (dump.happenings[i].what == CALLBACK)
            widen_span((uint8_t *)&dump.happenings[i].time);
    }
    if (fake_knob("wrap", 0))
        wrap_correlations();
    if (fake_knob("reverse", 0)) {
        for (size_t i = 0; i < dump.buffer_count; i++)
            reverse(&dump.buffers[i]);
    }
    add_happenings();
    if (last < earliest)
        earliest = last = replay_now();
    uint64_t limit = (uint64_t)fake_knob("span", 5000) * NS_PER_MS;
    uint64_t span = last - earliest < limit ? last - earliest : limit;
    uint64_t at = replay_now();
    shift = at + span - last;
    if (!fake_knob("pace", 0))
        replay_sleep_until(at + span);
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
        const CUpti_ActivityAPI *call = (const void *)dump.records[happening->record].at;
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
    bool damaged = fake_knob("damage", 0) == (long)(buffer - dump.buffers) + 1;
    for (size_t i = 0; i < buffer->count; i++) {
        struct record *record = &dump.records[buffer->first + i];
        uint32_t kind = get32(record->at);
        decide(record);
        if (record->state != WANTED || (buffer->split && replay_is_call(kind) != buffer->calls))
            continue;
        replay_each_time(record, move);
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

/* Has this process a descriptor of the lock of a GPU? */
static bool holds_gpu(void)
{
    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_un name = {0};
        socklen_t bytes = sizeof name;
        if (getsockname(fd, (struct sockaddr *)&name, &bytes) == 0 &&
            strncmp(name.sun_path + 1, "perfkit-counters-", 17) == 0)
            return true;
    }
    return false;
}

static int fork_here(void)
{
    long how = fake_knob("fork", 0);
    if (!how)
        return 0;
    if (fake_knob("locked", 0) && !holds_gpu())
        return 1;
    pid_t child = fork();
    if (child == 0) {
        if (holds_gpu())
            _exit(1);
        if (how == 2)
            _exit(0);
        exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status != 0;
}

static int play_one_buffer(size_t number, bool calls)
{
    struct buffer *buffer = &dump.buffers[number];
    struct worker *worker = replay_worker_of(buffer->head->requested_by);
    int status = 0;
    buffer->split = calls_late;
    buffer->calls = calls;
    replay_run_on(worker, play_buffer, buffer);
    if (number == dump.buffer_count / 2 && !calls)
        status = fork_here();
    /* The last buffer of a thread stays with it, as one that is not full. */
    bool more = false;
    for (size_t i = number + 1; i < dump.buffer_count; i++)
        more |= dump.buffers[i].head->requested_by == buffer->head->requested_by;
    if (more)
        replay_run_on(worker, bring_back, NULL);
    return status;
}

static int play(void)
{
    bool paced = fake_knob("pace", 0), flushes = fake_knob("flushes", 0), since_flush = false;
    int status = 0;
    for (size_t i = 0; i < dump.happening_count; i++) {
        struct happening *happening = &dump.happenings[i];
        if (paced && happening->time >= earliest)
            replay_sleep_until(happening->time + shift);
        switch (happening->what) {
        case DECIDE:
            decide(&dump.records[happening->record]);
            break;
        case CALLBACK:
            replay_run_on(replay_worker_of(happening->callback->tid), play_callback, happening);
            break;
        case API_CALL: {
            const CUpti_ActivityAPI *call = (const void *)dump.records[happening->record].at;
            replay_run_on(replay_worker_of(call->threadId), play_callback, happening);
            break;
        }
        case TEXT:
            replay_change_text(happening->text);
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
        for (size_t i = 0; i < dump.buffer_count; i++)
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
    dump.in_place = fake_knob("flushes", 0) || fake_knob("inplace", 0);
    if (!fake_knob_text("replay", path, sizeof path) || !replay_load(path))
        return 1;
    calls_late = fake_knob_text("calls", path, sizeof path) && strcmp(path, "late") == 0;
    prepare();
    int status = play();
    replay_end_workers();
    return status;
}
