/* PC sampling of the fake libcupti: the samples of a dump (collectors/cuda/dump.h), which a context
 * delivers as CUPTI did, a few instructions at a time.
 *
 * FAKE_PM in the environment, besides what fake_pm.c has:
 *   pc_enable=N     the result of cuptiPCSamplingEnable (35: no permission)
 *   pc_dropped=N    samples that the hardware dropped, in each delivery
 *   pc_freed=1      a cubin's memory is used for something else once it is loaded
 *   pc_freed=2      it is unmapped, and so many were loaded before that no copy was made
 *   pc_configure=N  the result of cuptiPCSamplingSetConfigurationAttribute
 *   pc_get=N        the result of cuptiPCSamplingGetData (999: another process samples)
 *   pc_hang=1       cuptiPCSamplingGetData does not return
 *   pc_full=1       the hardware's buffer is found full once
 *   pc_late=1       samples come only when sampling ends
 *   pc_work=1       a kernel runs for ever: cuptiPCSamplingDisable does not return */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collectors/cuda/dump.h"
#include "collectors/cuda/profiler_api.h"
#include "tests/cuda/fakes/fake_pm.h"
#include "tests/cuda/fakes/internal.h"
#include "tests/cuda/fakes/replay_dump.h"

#define CALL(name, type)                                                                           \
    EXPORT int cupti##name(type *p);                                                               \
    int cupti##name(type *p)
#define MOST_DELIVERIES 4096
#define MOST_CONTEXTS 16

static struct sampled {
    void *handle;
    uint32_t number;
    bool configured;
    size_t next;    /* delivery */
    uint32_t taken; /* instructions of it */
    const uint8_t *at;
    struct pc_data *last;
} contexts[MOST_CONTEXTS];
static const struct dump_block *deliveries[MOST_DELIVERIES];
static size_t delivery_count;
static const struct dump_reasons *reasons;
static pc_crc_fn crc;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t owner;

__attribute__((constructor)) static void made(void)
{
    owner = getpid();
}

static struct sampled *context_of(const void *handle)
{
    if (getpid() != owner || fake_is_gone())
        abort();
    for (size_t i = 0; i < MOST_CONTEXTS; i++) {
        if (contexts[i].handle == handle)
            return &contexts[i];
    }
    return NULL;
}

void fake_pc_block(const struct dump_block *block)
{
    const void *body = block + 1;
    if (block->type == DUMP_REASONS)
        reasons = body;
    else if (delivery_count < MOST_DELIVERIES)
        deliveries[delivery_count++] = block;
}

static void load_and_unmap(const void *cubin, size_t bytes)
{
    enum { LARGE = 4 << 20, COUNT = 16 };
    uint64_t sum = 0;
    uint8_t *at = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < COUNT; i++) {
        at[0] = (uint8_t)i;
        crc(at, LARGE, &sum);
    }
    memcpy(at, cubin, bytes);
    crc(at, bytes, &sum);
    munmap(at, LARGE);
}

void fake_pc_cubin(const struct dump_block *block)
{
    uint64_t sum = 0;
    if (crc && fake_pm_knob("pc_freed", 0) == 2) {
        load_and_unmap(block + 1, block->bytes);
        return;
    }
    if (crc)
        crc(block + 1, block->bytes, &sum);
    if (fake_pm_knob("pc_freed", 0))
        memset((void *)(uintptr_t)(block + 1), 0xcc, block->bytes);
}

EXPORT int cuptiRegisterComputeCrcCallback(pc_crc_fn function);
int cuptiRegisterComputeCrcCallback(pc_crc_fn function)
{
    crc = function;
    return 0;
}

CALL(PCSamplingEnable, struct pc_context)
{
    struct sampled *context = context_of(NULL);
    uint32_t number = 0;
    if (fake_pm_knob("pc_enable", 0))
        return (int)fake_pm_knob("pc_enable", 0);
    if (fake_pm_knob("pc_configure", 0) && contexts[0].handle)
        abort(); /* the one before was left enabled */
    if (context_of(p->context) || !context || cuptiGetContextId(p->context, &number))
        abort();
    *context = (struct sampled){.handle = p->context, .number = number};
    return 0;
}

CALL(PCSamplingGetNumStallReasons, struct pc_reason_count)
{
    *p->count = reasons ? reasons->count : 0;
    return context_of(p->context) ? 0 : 1;
}

CALL(PCSamplingGetStallReasons, struct pc_reason_names)
{
    for (uint32_t i = 0; i < p->count; i++) {
        p->indexes[i] = reasons->reasons[i].index;
        memcpy(p->names[i], reasons->reasons[i].name, sizeof reasons->reasons[i].name);
    }
    return context_of(p->context) ? 0 : 1;
}

CALL(PCSamplingSetConfigurationAttribute, struct pc_configure)
{
    struct sampled *context = context_of(p->context);
    if (fake_pm_knob("pc_configure", 0))
        return (int)fake_pm_knob("pc_configure", 0);
    for (size_t i = 0; context && i < p->count; i++) {
        if (p->attributes[i].type == PC_BUFFER)
            context->last = p->attributes[i].buffer;
        if (p->attributes[i].type == PC_PERIOD && p->attributes[i].number < 5)
            return 1;
        context->configured |= p->attributes[i].type == PC_MODE && p->attributes[i].number == 1;
    }
    return context && context->last && context->last->room ? 0 : 1;
}

static const uint8_t *put_instruction(struct pc_record *record, const uint8_t *at)
{
    struct dump_instruction from;
    memcpy(&from, at, sizeof from);
    at += sizeof from;
    if (record->size != sizeof *record || !record->reasons)
        abort();
    record->crc = from.crc;
    record->offset = from.offset;
    record->function = from.function;
    record->name = replay_text(from.name);
    record->count = from.reasons;
    memcpy(record->reasons, at, from.reasons * sizeof(struct pc_reason));
    return at + from.reasons * sizeof(struct pc_reason);
}

static bool next_delivery(struct sampled *context, struct dump_samples *head)
{
    for (; context->next < delivery_count; context->next++, context->at = NULL) {
        memcpy(head, deliveries[context->next] + 1, sizeof *head);
        if (head->context == context->number)
            return true;
    }
    return false;
}

static void deliver(struct sampled *context, struct pc_data *data)
{
    struct dump_samples head;
    data->count = data->remaining = 0;
    if (!context->configured || !next_delivery(context, &head))
        return;
    if (!context->at) {
        context->at = (const uint8_t *)(deliveries[context->next] + 1) + sizeof head;
        context->taken = 0;
        data->total = head.total;
        data->dropped = head.dropped + (uint64_t)fake_pm_knob("pc_dropped", 0);
        data->of_system = head.of_system;
    }
    for (; context->taken < head.count && data->count < data->room; context->taken++)
        context->at = put_instruction(&data->records[data->count++], context->at);
    if (context->taken == head.count) {
        context->next++;
        context->at = NULL;
    }
    data->remaining = next_delivery(context, &head) ? 1 : 0;
}

CALL(PCSamplingGetData, struct pc_get)
{
    static bool was_full;
    struct sampled *context = context_of(p->context);
    if (!context)
        abort(); /* the real one waits for ever for a context that is gone */
    while (fake_pm_knob("pc_hang", 0))
        pause();
    if (fake_pm_knob("pc_get", 0))
        return (int)fake_pm_knob("pc_get", 0);
    pthread_mutex_lock(&lock);
    if (!fake_pm_knob("pc_late", 0))
        deliver(context, p->data);
    pthread_mutex_unlock(&lock);
    bool full = fake_pm_knob("pc_full", 0) && !was_full && p->data->count;
    was_full |= full;
    return full ? PM_OUT_OF_MEMORY : 0;
}

CALL(PCSamplingDisable, struct pc_context)
{
    struct sampled *context = context_of(p->context);
    if (!context)
        abort();
    while (fake_pm_knob("pc_work", 0))
        pause();
    if (context->last)
        deliver(context, context->last);
    context->handle = NULL;
    return 0;
}
