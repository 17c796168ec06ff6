/* Reading the log that fake_core.c wrote, and the rules that every log must obey. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/opencl/log.h"
#include "tests/opencl/read_log.h"

bool log_open(struct log *log, const char *path)
{
    memset(log, 0, sizeof *log);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return false;
    log->map = mmap(NULL, LOG_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (log->map == MAP_FAILED)
        return false;
    const struct log_header *header = log->map;
    uint64_t used = atomic_load(&header->used);
    log->ended = atomic_load(&header->ended) != 0;
    for (size_t i = 0; i < WIRE_COUNT_SLOTS; i++)
        log->counts[i] = atomic_load(&header->counts[i]);
    size_t room = 0;
    for (uint64_t at = sizeof *header; at + sizeof(struct log_entry) <= used && at < LOG_BYTES;) {
        const struct log_entry *entry =
            (const struct log_entry *)(const void *)((const char *)log->map + at);
        const union record *record = (const union record *)(const void *)(entry + 1);
        if (record->head.size == 0)
            break; /* a process that was killed left a hole; what follows has no known place */
        at += sizeof *entry + record->head.size;
        if (atomic_load(&entry->stream) == LOG_UNFINISHED)
            continue;
        if (log->count == room) {
            room = room ? room * 2 : 1024;
            log->list = realloc(log->list, room * sizeof *log->list);
        }
        log->list[log->count++] = (struct logged){record, entry->time, entry->tid,
                                                  atomic_load(&entry->stream) == LOG_DEFINITION};
    }
    log->clocks = calloc(log->count + 1, sizeof *log->clocks);
    for (size_t i = 0; log->clocks && i < log->count; i++)
        if (log->list[i].record->head.type == WIRE_CLOCK)
            log->clocks[log->clock_count++] = &log->list[i].record->clock;
    return log->clocks != NULL;
}

void log_close(struct log *log)
{
    free(log->list);
    free(log->clocks);
    if (log->map)
        munmap(log->map, LOG_BYTES);
    memset(log, 0, sizeof *log);
}

const union record *log_find(const struct log *log, enum wire_type type, uint32_t aux)
{
    for (size_t i = 0; i < log->count; i++)
        if (log->list[i].record->head.type == type && log->list[i].record->head.aux == aux)
            return log->list[i].record;
    return NULL;
}

void log_text(const struct log *log, uint32_t id, char *out, size_t room)
{
    const union record *record = log_find(log, WIRE_STRING, id);
    snprintf(out, room, "%.*s", record ? (int)record->string.length : 0,
             record ? record->string.text : "");
}

/* A device time of the clock as CLOCK_MONOTONIC, between the two anchors around it; error: the
 * larger error of the two. */
static double log_mono(const struct log *log, uint32_t clock, uint64_t time, double *error)
{
    const struct wire_clock *before = NULL, *after = NULL;
    *error = 0;
    if (clock == 0)
        return (double)time;
    for (size_t i = 0; i < log->clock_count; i++) {
        const struct wire_clock *anchor = log->clocks[i];
        if (anchor->head.aux != clock)
            continue;
        if (anchor->source_ns <= time && (!before || anchor->source_ns > before->source_ns))
            before = anchor;
        if (anchor->source_ns > time && (!after || anchor->source_ns < after->source_ns))
            after = anchor;
    }
    if (!before && !after)
        return -1;
    const struct wire_clock *near = before ? before : after;
    double slope = 1;
    if (before && after) {
        slope = (double)(after->mono_ns - before->mono_ns) /
                (double)(after->source_ns - before->source_ns);
        *error = (double)(before->error_ns > after->error_ns ? before->error_ns : after->error_ns);
    } else {
        *error = (double)near->error_ns;
    }
    return (double)near->mono_ns + slope * (double)(int64_t)(time - near->source_ns);
}

/* ---- soundness ------------------------------------------------------------------------------- */

struct command {
    const struct wire_call *call;
    const union record *record;
    const struct wire_done *done;
    unsigned calls, records, dones;
    uint64_t told; /* when DONE was written */
};

static char complaint[256];
#define WRONG(...) (snprintf(complaint, sizeof complaint, __VA_ARGS__), complaint)

static bool is_command(unsigned type)
{
    return type == WIRE_KERNEL || type == WIRE_TRANSFER || type == WIRE_MEMSET;
}

static bool log_bounded(const struct log *log, uint32_t clock)
{
    char name[64];
    for (size_t i = log->count; i-- > 0;) {
        const union record *record = log->list[i].record;
        if (record->head.type != WIRE_CLOCK || record->head.aux != clock)
            continue;
        log_text(log, record->clock.name, name, sizeof name);
        return strcmp(name, "CLOCK_MONOTONIC") != 0 && strcmp(name, "CLOCK_MONOTONIC_RAW") != 0;
    }
    return false;
}

static const char *check_times(const struct log *log, const struct command *command)
{
    const struct wire_times *times = &command->done->times;
    const struct wire_call *call = command->call;
    if (command->done->head.flags & (WIRE_FAILED | WIRE_ABANDONED))
        return times->end ? WRONG("times in a failed or abandoned command") : NULL;
    if (times->end == 0)
        return NULL; /* none were given; counted */
    if (times->queued == 0 || times->queued > times->submitted || times->submitted > times->start ||
        times->start > times->end)
        return WRONG("times of %llu not in order", (unsigned long long)call->correlation);
    const union record *stream = log_find(log, WIRE_STREAM, command->done->head.aux);
    if (!stream)
        return WRONG("DONE with an undefined stream");
    double error;
    double queued = log_mono(log, stream->stream.clock, times->queued, &error);
    if (queued < 0)
        return WRONG("no anchor for clock %u", stream->stream.clock);
    if (queued + error + 1000 < (double)call->start)
        return WRONG("%llu queued %.0f ns before its call", (unsigned long long)call->correlation,
                     (double)call->start - queued);
    double end = log_mono(log, stream->stream.clock, times->end, &error);
    /* Where the clock could only be bounded, later bounds may contradict earlier ones: 100 us. */
    double slack = 1000;
    if (end > (double)command->told + error + slack && log_bounded(log, stream->stream.clock))
        slack = 100000;
    if (end > (double)command->told + error + slack)
        return WRONG("%llu ended %.0f ns after it was told", (unsigned long long)call->correlation,
                     end - (double)command->told);
    return NULL;
}

const char *log_sound(const struct log *log, bool complete)
{
    uint64_t highest = 0, timeless = 0;
    uint64_t calls[WIRE_CLASSES] = {0}, failed[WIRE_CLASSES] = {0};
    uint64_t kinds[WIRE_TYPES] = {0};
    const char *wrong = NULL;
    for (size_t i = 0; i < log->count; i++) {
        const union record *record = log->list[i].record;
        kinds[record->head.type]++;
        if (record->head.type == WIRE_CALL && record->call.correlation > highest)
            highest = record->call.correlation;
    }
    struct command *commands = calloc(highest + 1, sizeof *commands);
    for (size_t i = 0; i < log->count && !wrong; i++) {
        const union record *record = log->list[i].record;
        unsigned type = record->head.type;
        if (type == WIRE_CALL) {
            struct command *command = &commands[record->call.correlation];
            command->call = &record->call;
            command->calls++;
            unsigned klass =
                record->call.klass == WIRE_CLASS_SUBALLOC ? WIRE_CLASS_ALLOC : record->call.klass;
            calls[klass]++;
            failed[klass] += record->call.result != 0;
            if (!log_find(log, WIRE_STRING, record->call.name))
                wrong = WRONG("a call without a name");
        } else if (is_command(type) || type == WIRE_DONE || type == WIRE_SYNC) {
            uint64_t correlation =
                type == WIRE_SYNC ? record->sync.correlation : record->done.correlation;
            if (correlation > highest) {
                wrong = WRONG("a record without a call");
                break;
            }
            struct command *command = &commands[correlation];
            if (!(record->head.flags & WIRE_OPENCL))
                wrong = WRONG("not in the OpenCL space");
            if (type == WIRE_DONE) {
                command->done = &record->done;
                command->dones++;
                command->told = log->list[i].time;
                timeless += record->done.times.end == 0 &&
                            !(record->head.flags & (WIRE_FAILED | WIRE_ABANDONED));
            } else {
                command->record = record;
                command->records++;
            }
            if (is_command(type) && !log_find(log, WIRE_STREAM, record->head.aux))
                wrong = WRONG("a command with an undefined stream");
            if (type == WIRE_KERNEL && !log_find(log, WIRE_CONFIG, record->kernel.config))
                wrong = WRONG("a kernel with an undefined configuration");
        }
    }
    for (uint64_t i = 1; i <= highest && !wrong; i++) {
        const struct command *command = &commands[i];
        if (!command->call)
            continue;
        bool one = command->call->expects == WIRE_EXPECTS_ONE && command->call->result == 0;
        /* Killed between the two: the call stands without its record. */
        bool torn = !complete && one && command->records == 0;
        if (command->calls != 1 || (command->records != (one ? 1u : 0u) && !torn))
            wrong = WRONG("call %llu: %u calls, %u records", (unsigned long long)i, command->calls,
                          command->records);
        bool pending = command->record && is_command(command->record->head.type) &&
                       (command->record->head.flags & WIRE_PENDING);
        if (!wrong && (command->dones > 1 || (!pending && command->dones) ||
                       (complete && pending && command->dones != 1)))
            wrong = WRONG("command %llu: %u DONE", (unsigned long long)i, command->dones);
        if (!wrong && command->done)
            wrong = check_times(log, command);
    }
    free(commands);
    static const struct {
        enum wire_class klass;
        enum wire_type type;
        enum wire_count called, failed;
    } balance[] = {
        {WIRE_CLASS_LAUNCH, WIRE_KERNEL, WIRE_COUNT_LAUNCH_CALLED, WIRE_COUNT_LAUNCH_FAILED},
        {WIRE_CLASS_TRANSFER, WIRE_TRANSFER, WIRE_COUNT_TRANSFER_CALLED,
         WIRE_COUNT_TRANSFER_FAILED},
        {WIRE_CLASS_MEMSET, WIRE_MEMSET, WIRE_COUNT_MEMSET_CALLED, WIRE_COUNT_MEMSET_FAILED},
        {WIRE_CLASS_ALLOC, WIRE_ALLOC, WIRE_COUNT_ALLOC_CALLED, WIRE_COUNT_ALLOC_FAILED},
    };
    for (size_t i = 0; i < 4 && !wrong && complete; i++) {
        uint64_t called = log->counts[balance[i].called], refused = log->counts[balance[i].failed];
        if (called != calls[balance[i].klass] || refused != failed[balance[i].klass] ||
            called != kinds[balance[i].type] + refused)
            wrong = WRONG("class %d: %llu called, %llu refused, %llu records", balance[i].klass,
                          (unsigned long long)called, (unsigned long long)refused,
                          (unsigned long long)kinds[balance[i].type]);
    }
    if (!wrong && complete && log->counts[WIRE_COUNT_TIME_MISSING] != timeless)
        wrong = WRONG("%llu commands without times", (unsigned long long)timeless);
    if (!wrong && complete && log->counts[WIRE_COUNT_FREE_CALLED] != kinds[WIRE_FREE])
        wrong = WRONG("FREE counter and records differ");
    return wrong;
}
