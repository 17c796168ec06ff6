/* --stalls: at which instructions warps were, and for what they waited. CUPTI's PC sampling in
 * continuous mode: the hardware samples each multiprocessor every so many cycles, CUPTI's own
 * threads sum the samples up by instruction, and every half second the helper thread fetches the
 * sums. Kernels run as without it, beside each other and with records as always.
 *
 * A context is configured on the thread that creates it, in CUPTI's callback, because nothing runs
 * in it yet; later it could not be done without waiting for the device. Sampling ends where the
 * context does, on the thread that destroys it, or at exit. What is fetched is added to a table of
 * instructions, and instructions whose counts changed are sent with their sums, so a killed process
 * loses half a second.
 *
 * The machine code is kept for the lines of the source (cubins.c). */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/map.h"
#include "collectors/cuda/parts.h"

#define CONTEXTS 256u
#define DEVICES 64u
#define FUNCTIONS 65536u /* sampled, in all contexts */
#define INSTRUCTIONS 262144u
#define REASONS 64u        /* of CUPTI: each reason and its twin for cycles without an issue */
#define FETCH_RECORDS 256u /* at a time; CUPTI waits until it has about as many */
#define LAST_RECORDS                                                                               \
    65536u /* that the last fetch brings at once; memory that is not used is not there */
#define FETCH_TICKS 5u
#define MOST_FETCHES 4096u
#define WORKER_PAUSE_MS 100u /* CUPTI's default */
#define LEAVE_NS 4000000000u /* the exiting thread waits no longer */
/* In slot_of, beside enum wire_stall_reason */
#define NOT_ISSUED 0x80u
#define NO_REASON 0x81u

/* MADE: a thread calls CUPTI for it. ENDED: sampling is, and `final` has what CUPTI brought then.
 */
enum { FREE, MADE, SAMPLED, ENDED, GONE };
struct sampled_context {
    _Atomic uint32_t state;
    CUcontext _Atomic handle; /* also after it is gone */
    uint32_t number, device;  /* CUPTI's */
    uint32_t id;              /* of the wire records */
    uint8_t slot_of[REASONS];
    bool dumped; /* the names of the reasons */
    struct wire_stall_context sums;
};

struct sampled_function {
    uint64_t crc;
    uint32_t id;
};

struct instruction {
    struct wire_stall record;
    bool changed;
};

static bool wanted;
static uint32_t period; /* exponent */
static struct sampled_context contexts[CONTEXTS];
static struct pc_data final[DEVICES]; /* what CUPTI fills at the end; a device has one context */
static int locks[DEVICES]; /* descriptor + 1: this process holds the GPU (hold_counters) */
static _Atomic bool told_of_others, told_of_last, told_of_number;
static _Atomic uint64_t claimed;   /* bit: a context of the device is sampled */
static _Atomic uint32_t unloading; /* threads that end contexts: CUPTI is not called meanwhile */
static _Atomic bool fetching, fetch_now;
enum { RUNNING, LEAVING, LEFT };
static _Atomic uint32_t leaving; /* LEFT: CUPTI is not called any more */
/* Were the GPUs known to be, when the call that ends contexts began? */
static _Thread_local bool idle_at_entry __attribute__((tls_model("initial-exec")));

/* Helper thread */
static struct cuda_map function_at, instruction_at;
static uint32_t function_count, instruction_count, ticks;
static struct sampled_function *functions; /* [FUNCTIONS] */
static struct instruction *instructions;   /* [INSTRUCTIONS] */
static bool was_recording;

static void stalls_degraded(const char *call, CUptiResult result)
{
    char why[400];
    const char *remedy = counter_remedy((int)result);
    if (remedy)
        snprintf(why, sizeof why, "no stall reasons: %s", remedy);
    else
        snprintf(why, sizeof why, "no stall reasons: %s: %s (%d)", call, cupti_result(result),
                 (int)result);
    collector_health(WIRE_SOURCE_COUNTERS, WIRE_HEALTH_DEGRADED, why, (uint32_t)result);
}

/* ---- Contexts */

static uint8_t slot_of_reason(const char *name)
{
    static const struct {
        const char *name;
        uint8_t slot;
    } known[] = {
#define X(slot, name, text) {#name, WIRE_STALL_##slot},
        WIRE_STALL_MAP(X)
#undef X
    };
    static const char prefix[] = "smsp__pcsamp_warps_issue_stalled_", twin[] = "_not_issued";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return NO_REASON; /* sums over all instructions */
    name += sizeof prefix - 1;
    size_t length = strnlen(name, PC_REASON_BYTES);
    if (length > sizeof twin - 1 && strcmp(name + length - (sizeof twin - 1), twin) == 0)
        return NOT_ISSUED;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strncmp(name, known[i].name, strlen(known[i].name)) == 0)
            return known[i].slot;
    }
    return WIRE_STALL_OTHER;
}

/* Of all contexts: two threads write the same. */
static char reason_names[REASONS][PC_REASON_BYTES];
static uint32_t reason_indexes[REASONS];
static _Atomic uint32_t reason_count;

static CUptiResult learn_reasons(struct sampled_context *context)
{
    char *names[REASONS];
    size_t count = 0;
    struct pc_reason_count number = {PM_SIZE(pc_reason_count, count), NULL, context->handle,
                                     &count};
    CUptiResult result = cupti.PCSamplingGetNumStallReasons(&number);
    if (result != CUPTI_SUCCESS)
        return result;
    if (count > REASONS)
        return CUPTI_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < REASONS; i++)
        names[i] = reason_names[i];
    struct pc_reason_names all = {
        PM_SIZE(pc_reason_names, names), NULL, context->handle, count, reason_indexes, names};
    result = cupti.PCSamplingGetStallReasons(&all);
    memset(context->slot_of, NO_REASON, sizeof context->slot_of);
    for (size_t i = 0; i < count && result == CUPTI_SUCCESS; i++) {
        if (reason_indexes[i] < REASONS)
            context->slot_of[reason_indexes[i]] = slot_of_reason(names[i]);
    }
    atomic_store(&reason_count, (uint32_t)count);
    return result;
}

/* Records with room for all reasons. */
static bool data_reserve(struct pc_data *data, size_t room)
{
    struct pc_record *records = cuda_reserve(sizeof *records * room);
    struct pc_reason *reasons = cuda_reserve(sizeof *reasons * REASONS * room);
    if (!records || !reasons)
        return false;
    for (size_t i = 0; i < room; i++) {
        records[i].size = sizeof *records;
        records[i].reasons = reasons + i * REASONS;
    }
    *data = (struct pc_data){.size = sizeof *data, .room = room, .records = records};
    return true;
}

static CUptiResult configure(struct sampled_context *context)
{
    struct pc_attribute attributes[] = {
        {.type = PC_MODE, .number = 1},
        {.type = PC_PERIOD, .number = period},
        {.type = PC_FORMAT, .number = 1},
        {.type = PC_BUFFER, .buffer = &final[context->device]},
        {.type = PC_WORKER_PAUSE, .number = WORKER_PAUSE_MS},
    };
    struct pc_data *last = &final[context->device];
    *last = (struct pc_data){.size = sizeof *last, .room = last->room, .records = last->records};
    struct pc_configure all = {PM_SIZE(pc_configure, attributes), NULL, context->handle,
                               sizeof attributes / sizeof attributes[0], attributes};
    return cupti.PCSamplingSetConfigurationAttribute(&all);
}

/* False: another process samples the GPU, or counts on it. The lock is kept until the process
 * ends. */
static bool hold_counters(uint32_t device)
{
    unsigned char uuid[16];
    char text[CUDA_UUID_BYTES];
    int lock;
    if (locks[device] || !cuda_driver.DeviceGetUuid ||
        cuda_driver.DeviceGetUuid(uuid, (CUdevice)device) != CUDA_SUCCESS)
        return true;
    cuda_uuid_text(uuid, text);
    if (!gpu_lock_take(text, &lock))
        return false;
    locks[device] = lock + 1;
    return true;
}

/* A child of fork would hold the GPU as long as it lives. The program may have closed the
 * descriptor, and opened something else by its number. */
static void release_in_child(void)
{
    int saved = errno;
    for (uint32_t i = 0; i < DEVICES; i++) {
        if (locks[i] && gpu_lock_is(locks[i] - 1))
            close(locks[i] - 1);
        locks[i] = 0;
    }
    errno = saved;
}

/* Two contexts of a device that are sampled at a time lose all records (CUPTI 13.0.85). */
static bool claim_device(uint32_t device)
{
    if (atomic_fetch_or(&claimed, 1ull << device) >> device & 1)
        return false;
    bool ours = hold_counters(device);
    if (!ours)
        atomic_fetch_and(&claimed, ~(1ull << device));
    return ours;
}

/* It is over; false: it was before. */
static bool leave_context(struct sampled_context *context, uint32_t state)
{
    uint64_t device = 1ull << context->device;
    if (!atomic_compare_exchange_strong(&context->state, &state, GONE))
        return false;
    atomic_fetch_and(&claimed, ~device);
    return true;
}

/* What holds the hardware may be another process; then CUPTI brings no records at all. */
static void stalls_failed(CUptiResult result)
{
    char why[400];
    snprintf(why, sizeof why,
             "no stall reasons: cuptiPCSamplingGetData: %s (%d): another tool may hold the GPU's "
             "counters: end it, or pause DCGM (dcgmi profile --pause). CUPTI may then bring no "
             "records of launches and kernels either: record without --stalls",
             cupti_result(result), (int)result);
    collector_health(WIRE_SOURCE_COUNTERS, WIRE_HEALTH_REFUSED, why, (uint32_t)result);
}

void cuda_stalls_context(CUcontext handle)
{
    struct sampled_context *context = contexts;
    uint32_t device = 0;
    if (!wanted || !handle)
        return;
    cupti.GetDeviceId(handle, &device);
    if (device >= DEVICES) {
        if (!atomic_exchange(&told_of_number, true))
            collector_health(WIRE_SOURCE_COUNTERS, WIRE_HEALTH_NOTE,
                             "stall reasons are those of the first 64 GPUs of the process: a "
                             "context of another one is not sampled",
                             device);
        return;
    }
    if (!claim_device(device)) {
        if (!atomic_exchange(&told_of_others, true))
            collector_health(
                WIRE_SOURCE_COUNTERS, WIRE_HEALTH_NOTE,
                "stall reasons are those of one context of each GPU: another one was made "
                "and is not sampled, because this or another process samples there, or counts",
                device);
        return;
    }
    for (uint32_t state = FREE; !atomic_compare_exchange_strong(&context->state, &state, MADE);
         state = FREE) {
        if (++context == contexts + CONTEXTS) { /* the helper thread frees them */
            atomic_fetch_and(&claimed, ~(1ull << device));
            return;
        }
    }
    context->handle = handle;
    context->device = device;
    struct pc_context enable = {PM_SIZE(pc_context, context), NULL, handle};
    const char *call = "cuptiGetContextId";
    CUptiResult result = CUPTI_ERROR_OUT_OF_MEMORY;
    if (final[device].records || data_reserve(&final[device], LAST_RECORDS))
        result = cupti.GetContextId(handle, &context->number);
    if (result == CUPTI_SUCCESS) {
        call = "cuptiPCSamplingEnable";
        result = cupti.PCSamplingEnable(&enable);
    }
    bool enabled = result == CUPTI_SUCCESS;
    if (result == CUPTI_SUCCESS) {
        call = "cuptiPCSamplingGetStallReasons";
        result = learn_reasons(context);
    }
    if (result == CUPTI_SUCCESS) {
        call = "cuptiPCSamplingSetConfigurationAttribute";
        result = configure(context);
    }
    if (result == CUPTI_SUCCESS) {
        atomic_store(&context->state, SAMPLED);
        return;
    }
    stalls_degraded(call, result);
    if (enabled) /* nothing runs in it yet */
        cupti.PCSamplingDisable(&enable);
    leave_context(context, MADE);
}

static void last_samples_missing(void)
{
    if (!atomic_exchange(&told_of_last, true))
        collector_health(WIRE_SOURCE_COUNTERS, WIRE_HEALTH_NOTE,
                         "the last tenth of a second of stall reasons is missing: sampling could "
                         "not be ended before its context or the program did",
                         0);
}

/* What the hardware's buffer still holds comes when sampling ends. On a GPU that is at work this
 * would wait for its end: then it is left out. */
static void end_sampling(struct sampled_context *context, bool idle)
{
    struct pc_context disable = {PM_SIZE(pc_context, context), NULL, context->handle};
    uint32_t state = SAMPLED;
    if (!atomic_compare_exchange_strong(&context->state, &state, MADE))
        return;
    if (idle && cupti.PCSamplingDisable(&disable) == CUPTI_SUCCESS) {
        atomic_store(&context->state, ENDED);
        return;
    }
    if (collector_recording())
        last_samples_missing();
    leave_context(context, MADE);
}

/* Outside of a call that ends contexts nothing is known of the GPU, and the helper thread may call
 * CUPTI for the context. */
void cuda_stalls_context_ends(CUcontext handle)
{
    bool safe = atomic_load(&unloading) && idle_at_entry && !atomic_load(&fetching) &&
                atomic_load(&leaving) == RUNNING;
    for (uint32_t i = 0; wanted && i < CONTEXTS; i++) {
        if (contexts[i].handle == handle)
            end_sampling(&contexts[i], safe);
    }
}

/* ---- What was sampled. Helper thread. */

static uint32_t function_number(struct sampled_context *context, const struct pc_record *record)
{
    uint64_t key = (record->crc ^ (uint64_t)context->number << 40) + record->function * 0x9e3779b1u;
    const uint32_t *known = cuda_map_get(&function_at, key);
    if (known)
        return *known;
    if (function_count == FUNCTIONS || !cuda_map_put(&function_at, key, function_count))
        return UINT32_MAX;
    struct wire_stall_function out = {
        .head = {sizeof out, WIRE_STALL_FUNCTION, 0, collector_new_id()},
        .cubin = record->crc,
        .name = record->name ? collector_text(record->name) : 0,
        .context = cuda_context(context->number, CUDA_NO_DEVICE),
    };
    collector_define(&out);
    cuda_cubins_keep(record->crc);
    functions[function_count] = (struct sampled_function){record->crc, out.head.aux};
    return function_count++;
}

static struct instruction *instruction_of(struct sampled_context *context,
                                          const struct pc_record *record)
{
    uint32_t function = function_number(context, record);
    uint64_t key = (uint64_t)function << 40 | (record->offset & ((1ull << 40) - 1));
    const uint32_t *known = cuda_map_get(&instruction_at, key);
    if (known)
        return &instructions[*known];
    if (function == UINT32_MAX || instruction_count == INSTRUCTIONS ||
        !cuda_map_put(&instruction_at, key, instruction_count))
        return NULL;
    struct instruction *made = &instructions[instruction_count++];
    made->record = (struct wire_stall){
        .head = {sizeof made->record, WIRE_STALL, 0, collector_new_id()},
        .offset = record->offset,
        .function = functions[function].id,
    };
    return made;
}

static void saturating_add(uint32_t *sum, uint32_t samples)
{
    *sum = *sum > UINT32_MAX - samples ? UINT32_MAX : *sum + samples;
}

static void add_record(struct sampled_context *context, const struct pc_record *record)
{
    struct instruction *instruction = instruction_of(context, record);
    for (size_t i = 0; i < record->count && i < REASONS; i++) {
        const struct pc_reason *reason = &record->reasons[i];
        uint8_t slot = reason->index < REASONS ? context->slot_of[reason->index] : NO_REASON;
        if (slot == NO_REASON || (slot == NOT_ISSUED && !instruction))
            continue;
        saturating_add(!instruction         ? &context->sums.left_out
                       : slot == NOT_ISSUED ? &instruction->record.not_issued
                                            : &instruction->record.samples[slot],
                       reason->samples);
    }
    if (instruction)
        instruction->changed = true;
}

static void add_data(struct sampled_context *context, const struct pc_data *data, bool keep)
{
    context->sums.full += data->full != 0;
    if (!keep)
        return;
    context->sums.samples += data->total;
    context->sums.dropped += data->dropped;
    context->sums.of_system += data->of_system;
    for (size_t i = 0; i < data->count && i < data->room; i++)
        add_record(context, &data->records[i]);
}

static void fetch_context(struct sampled_context *context, bool keep)
{
    static struct pc_data data;
    if (!context->dumped)
        cuda_dump_reasons(context->number, atomic_load(&reason_count), reason_indexes,
                          reason_names);
    context->dumped = true;
    if (!data.records && !data_reserve(&data, FETCH_RECORDS))
        return;
    struct pc_get get = {PM_SIZE(pc_get, data), NULL, context->handle, &data};
    for (unsigned i = 0; i < MOST_FETCHES; i++) {
        data.total = data.dropped = data.of_system = data.count = data.remaining = 0;
        data.full = 0;
        CUptiResult result = cupti.PCSamplingGetData(&get);
        if (result != CUPTI_SUCCESS && (int)result != PM_OUT_OF_MEMORY) {
            stalls_failed(result);
            struct pc_context disable = {PM_SIZE(pc_context, context), NULL, context->handle};
            if (leave_context(context, SAMPLED) &&
                !cuda_buffers_oldest()) /* else it would wait for the device */
                cupti.PCSamplingDisable(&disable);
            return;
        }
        if ((int)result == PM_OUT_OF_MEMORY)
            data.full = 1;
        if (data.count > data.room)
            data.count = data.room;
        cuda_dump_samples(context->number, &data);
        add_data(context, &data, keep);
        if (!data.remaining || atomic_load(&unloading))
            return;
    }
}

/* Its sums, before its place is another one's. */
static bool send_context(struct sampled_context *context)
{
    if (!context->sums.samples && !context->sums.dropped && !context->sums.full)
        return true;
    if (!context->id)
        context->id = collector_new_id();
    context->sums.head =
        (struct wire_head){sizeof context->sums, WIRE_STALL_CONTEXT, 0, context->id};
    context->sums.period = 1ull << period;
    context->sums.context = cuda_context(context->number, CUDA_NO_DEVICE);
    return collector_emit(&context->sums);
}

static void send_sums(void)
{
    for (uint32_t i = 0; i < CONTEXTS; i++) {
        uint32_t state = atomic_load(&contexts[i].state);
        if ((state != SAMPLED && state != GONE) || !send_context(&contexts[i]) || state != GONE)
            continue;
        contexts[i].id = 0;
        contexts[i].dumped = false;
        memset(&contexts[i].sums, 0, sizeof contexts[i].sums);
        atomic_store(&contexts[i].state, FREE);
    }
    for (uint32_t i = 0; i < instruction_count; i++) {
        if (instructions[i].changed && collector_emit(&instructions[i].record))
            instructions[i].changed = false;
    }
}

static void add_final(struct sampled_context *context, bool keep)
{
    if (atomic_load(&context->state) != ENDED)
        return;
    struct pc_data *data = &final[context->device];
    if (data->count > data->room)
        data->count = data->room;
    data->full |= data->remaining > 0; /* what found no room is lost */
    cuda_dump_samples(context->number, data);
    add_data(context, data, keep);
    leave_context(context, ENDED);
}

void cuda_stalls_tick(bool last)
{
    uint32_t state = atomic_load(&leaving);
    bool recording = collector_recording(), keep = was_recording; /* the samples are older */
    bool now = atomic_exchange(&fetch_now, false) || last || state == LEAVING || recording != keep;
    if (!wanted || state == LEFT || (!now && ++ticks % FETCH_TICKS))
        return;
    if (last && state == RUNNING) /* CUPTI's thread may bring more, and sampling cannot be ended */
        cuda_pause(2 * WORKER_PAUSE_MS * 1000000);
    was_recording = recording;
    atomic_store(&fetching, true);
    for (uint32_t i = 0; i < CONTEXTS && !atomic_load(&unloading); i++) {
        if (atomic_load(&contexts[i].state) == SAMPLED)
            fetch_context(&contexts[i], keep);
        if (state == LEAVING) /* what runs has a buffer, unless kernels have no records now */
            end_sampling(&contexts[i], cuda_kinds_on() && !cuda_buffers_oldest());
        add_final(&contexts[i], keep);
        if (last && state == RUNNING && atomic_load(&contexts[i].state) == SAMPLED)
            last_samples_missing();
    }
    atomic_store(&fetching, false);
    send_sums();
    if (state == LEAVING)
        atomic_store(&leaving, LEFT);
}

/* exit has begun, and CUPTI's own destructors are next: sampling ends now. */
static void end_stalls_at_exit(void)
{
    int saved = errno;
    bool sampled = false;
    uint32_t state = RUNNING;
    for (uint32_t i = 0; i < CONTEXTS; i++)
        sampled |= atomic_load(&contexts[i].state) == SAMPLED;
    if (wanted && sampled && cuda_buffers_used() && !collector_is_helper() &&
        atomic_compare_exchange_strong(&leaving, &state, LEAVING)) {
        collector_wake();
        uint64_t start = collector_now();
        while (atomic_load(&leaving) != LEFT && collector_now() - start < LEAVE_NS)
            cuda_pause(1000000);
        if (atomic_load(&leaving) != LEFT)
            last_samples_missing();
    }
    atomic_store(&leaving, LEFT);
    errno = saved;
}

/* ---- Code is unloaded, contexts end */

bool cuda_stalls_wants_callback(enum cuda_domain domain, uint32_t cbid)
{
    return wanted && cuda_names_wants_callback(domain, cbid);
}

/* Before the driver takes its locks: the helper thread fetches once more, and then lets CUPTI be
 * until the call has returned. Where the call ended contexts, the helper thread takes what sampling
 * brought at its end before a new context can have the same GPU. */
void cuda_stalls_on_callback(enum cuda_domain domain, uint32_t cbid, const CUpti_CallbackData *call)
{
    (void)domain, (void)cbid;
    if (call->callbackSite != CUPTI_API_ENTER) {
        uint32_t now = atomic_load(&unloading);
        bool ended = false;
        while (now > 0 && !atomic_compare_exchange_weak(&unloading, &now, now - 1)) {
        }
        for (uint32_t i = 0; i < CONTEXTS; i++)
            ended |= atomic_load(&contexts[i].state) == ENDED;
        if (ended && now <= 1) {
            atomic_store(&fetch_now, true);
            cuda_flush_wait_tick();
        }
        return;
    }
    atomic_store(&fetch_now, true);
    cuda_flush_wait_tick();
    /* Kernels outside of a recording window have no records, and samples would not be kept. */
    idle_at_entry = collector_recording() && !cuda_buffers_oldest();
    atomic_fetch_add(&unloading, 1);
    for (int i = 0; atomic_load(&fetching) && i < 200; i++)
        cuda_pause(1000000);
}

/* ---- Start */

bool cuda_stalls_reserve(void)
{
    char text[16];
    if (!collector_option("stalls", text, sizeof text))
        return true;
    return cuda_cubins_reserve() &&
           (functions || (functions = cuda_reserve(sizeof *functions * FUNCTIONS))) &&
           (instructions || (instructions = cuda_reserve(sizeof *instructions * INSTRUCTIONS)));
}

void cuda_stalls_start(void)
{
    char text[16];
    if (!collector_option("stalls", text, sizeof text))
        return;
    period = (uint32_t)strtoul(text, NULL, 10);
    if (!cupti.PCSamplingEnable || !cupti.PCSamplingDisable ||
        !cupti.PCSamplingSetConfigurationAttribute || !cupti.PCSamplingGetNumStallReasons ||
        !cupti.PCSamplingGetStallReasons || !cupti.PCSamplingGetData || !cupti.GetContextId ||
        !cupti.GetDeviceId || cuda_cupti_version() < 22) {
        collector_health(WIRE_SOURCE_COUNTERS, WIRE_HEALTH_DEGRADED,
                         "no stall reasons: CUPTI 12.4 or newer is needed", cuda_cupti_version());
        return;
    }
    cuda_cubins_start();
    was_recording = collector_recording();
    wanted = true;
    /* Now that CUPTI has made its tables: what is registered last is called first. */
    static _Atomic bool registered;
    if (!atomic_exchange(&registered, true)) {
        atexit(end_stalls_at_exit);
        pthread_atfork(NULL, NULL, release_in_child);
    }
}

bool cuda_stalls_on(void)
{
    return wanted;
}

void cuda_stalls_forked(void)
{
    wanted = false;
    memset(contexts, 0, sizeof contexts);
    atomic_store(&claimed, 0);
    atomic_store(&told_of_others, false);
    atomic_store(&told_of_last, false);
    cuda_cubins_forked();
    cuda_wipe(instructions, sizeof *instructions * INSTRUCTIONS);
    cuda_map_clear(&function_at);
    cuda_map_clear(&instruction_at);
    function_count = instruction_count = 0;
    atomic_store(&unloading, 0);
    atomic_store(&fetching, false);
    atomic_store(&leaving, RUNNING);
}
