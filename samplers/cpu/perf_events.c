/* Opening the kernel's events. Rights differ from machine to machine (perf_event_paranoid,
 * capabilities, sandboxes, limits on locked memory), so that each request is tried from the most
 * informative form to the least, and a refusal is reported with its remedy.
 *
 * The clock event is the software one: its period is time on a processor, so a sample's weight is
 * exact whatever the frequency does, and it exists in virtual machines, which rarely have
 * counters. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libprof/base/regular.h"
#include "samplers/cpu/perf_events.h"

/* 512 KiB and the control page fit what the kernel grants each user and processor. */
#define RING_BYTES (512u << 10)
#define LEAST_RING_BYTES (32u << 10)
/* Of the stack of a thread that stops: some do so a hundred thousand times a second. */
#define SWITCH_STACK_BYTES 2048u

/* The general registers and the instruction pointer, as numbered by asm/perf_regs.h of x86-64. */
#define USER_REGISTERS (0x1ffull | 0xffull << 16)

bool cpu_perf_paranoid(int *level)
{
    char line[32];
    return prof_first_line("/proc/sys/kernel/perf_event_paranoid", line, sizeof line) &&
           sscanf(line, "%d", level) == 1;
}

static void fill_common(struct perf_event_attr *attr, const struct cpu_perf *perf)
{
    *attr = (struct perf_event_attr){
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof *attr,
        .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                       PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN,
        .sample_max_stack = CPU_MOST_FRAMES,
        .disabled = 1,
        .enable_on_exec = 1,
        .inherit = 1,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .exclude_kernel = !perf->kernel,
        .exclude_callchain_kernel = 1,
        .exclude_hv = 1,
        .wakeup_events =
            1, /* or when the buffer is half full: the frames of Python are read then */
    };
    if (perf->stack_bytes) {
        attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        attr->sample_regs_user = USER_REGISTERS;
        attr->sample_stack_user = perf->stack_bytes;
    }
}

static int open_event(struct perf_event_attr *attr, pid_t pid, unsigned cpu)
{
    return (int)syscall(SYS_perf_event_open, attr, pid, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The event that brings everything but the stacks of threads that stop running. */
static int open_clock(const struct cpu_perf *perf, pid_t pid, unsigned cpu)
{
    struct perf_event_attr attr;
    fill_common(&attr, perf);
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.sample_period = perf->period_ns;
    attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = 1;
    attr.context_switch = perf->switches;
#ifdef PERF_RECORD_MISC_MMAP_BUILD_ID
    attr.build_id = 1;
    int fd = open_event(&attr, pid, cpu);
    if (fd >= 0 || errno != EINVAL)
        return fd;
    attr.build_id = 0; /* Linux before 5.12 */
#endif
    return open_event(&attr, pid, cpu);
}

static int open_switches(const struct cpu_perf *perf, pid_t pid, unsigned cpu)
{
    struct perf_event_attr attr;
    fill_common(&attr, perf);
    attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
    attr.sample_period = 1;
    attr.watermark = 1; /* not for each of them */
    attr.wakeup_watermark = (uint32_t)(perf->ring_bytes / 4);
    if (perf->stack_bytes > SWITCH_STACK_BYTES)
        attr.sample_stack_user = SWITCH_STACK_BYTES;
    return open_event(&attr, pid, cpu);
}

static bool map_ring(struct cpu_perf *perf, struct cpu_ring *ring)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *at =
        mmap(NULL, page + perf->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->clock, 0);
    if (at == MAP_FAILED)
        return false;
    ring->page = at;
    return true;
}

static bool open_ring(struct cpu_perf *perf, pid_t pid, unsigned cpu)
{
    struct cpu_ring *ring = &perf->rings[perf->count];
    *ring = (struct cpu_ring){.clock = open_clock(perf, pid, cpu), .switches = -1};
    if (ring->clock < 0)
        return errno == ENODEV; /* this processor is switched off */
    perf->count++;
    if (!map_ring(perf, ring))
        return false;
    if (!perf->switch_stacks)
        return true;
    ring->switches = open_switches(perf, pid, cpu);
    return ring->switches >= 0 &&
           ioctl(ring->switches, PERF_EVENT_IOC_SET_OUTPUT, ring->clock) == 0 &&
           ioctl(ring->switches, PERF_EVENT_IOC_ID, &ring->switch_id) == 0;
}

static void close_rings(struct cpu_perf *perf)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (unsigned i = 0; i < perf->count; i++) {
        struct cpu_ring *ring = &perf->rings[i];
        if (ring->page)
            munmap(ring->page, page + perf->ring_bytes);
        if (ring->switches >= 0)
            close(ring->switches);
        close(ring->clock);
    }
    perf->count = 0;
}

static bool open_rings(struct cpu_perf *perf, pid_t pid, unsigned cpus)
{
    for (unsigned cpu = 0; cpu < cpus; cpu++) {
        if (!open_ring(perf, pid, cpu)) {
            int saved = errno;
            close_rings(perf);
            errno = saved;
            return false;
        }
    }
    errno = ENODEV;
    return perf->count > 0;
}

/* With the kernel's part where that is allowed, and with as much room as is granted. */
static bool open_as_allowed(struct cpu_perf *perf, pid_t pid, unsigned cpus)
{
    bool switches = perf->switches;
    for (;;) {
        if (open_rings(perf, pid, cpus))
            return true;
        bool refused = errno == EPERM || errno == EACCES;
        if (refused && perf->kernel) {
            /* A stack where a thread stops is taken inside the kernel, so it goes too. */
            perf->kernel = perf->switch_stacks = false;
        } else if ((refused || errno == ENOMEM) && perf->ring_bytes > LEAST_RING_BYTES) {
            perf->ring_bytes /= 2;
            perf->kernel = true;
            perf->switch_stacks = switches;
        } else {
            return false;
        }
    }
}

static void explain_perf_refusal(int error, char *why, size_t size)
{
    int level = 0;
    bool known = cpu_perf_paranoid(&level);
    if (error == ENOSYS || (!known && error == ENOENT))
        snprintf(why, size,
                 "this kernel has no perf events: use one built with CONFIG_PERF_EVENTS");
    else if ((error == EPERM || error == EACCES) && level > 2)
        snprintf(why, size,
                 "kernel.perf_event_paranoid is %d: an administrator lowers it with `sysctl "
                 "kernel.perf_event_paranoid=2` (1 shows more), or gives perfkit the capability "
                 "CAP_PERFMON",
                 level);
    else if (error == EPERM || error == EACCES)
        snprintf(why, size,
                 "perf_event_open is forbidden here although kernel.perf_event_paranoid is %d: a "
                 "container's sandbox does that (docker run --cap-add PERFMON, or --security-opt "
                 "seccomp=unconfined), or the limit of locked memory (ulimit -l)",
                 level);
    else if (error == EMFILE || error == ENFILE)
        snprintf(why, size,
                 "too few open files are allowed for two events on each processor: raise the limit "
                 "(ulimit -n)");
    else
        snprintf(why, size, "perf_event_open: %s", strerror(error));
}

bool cpu_perf_open(struct cpu_perf *perf, const struct cpu_perf_options *options, char *why,
                   size_t size)
{
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    *perf = (struct cpu_perf){
        .ring_bytes = RING_BYTES,
        .period_ns = 1000000000u / options->hz,
        .stack_bytes = CPU_CAN_COPY ? options->stack_bytes : 0,
        .kernel = true,
        .switches = options->switches,
        .switch_stacks = options->switches,
    };
    perf->rings = calloc(cpus > 0 ? (size_t)cpus : 1, sizeof *perf->rings);
    if (!perf->rings) {
        snprintf(why, size, "out of memory");
        return false;
    }
    if (open_as_allowed(perf, options->pid, (unsigned)cpus))
        return true;
    explain_perf_refusal(errno, why, size);
    cpu_perf_close(perf);
    return false;
}

void cpu_perf_close(struct cpu_perf *perf)
{
    close_rings(perf);
    free(perf->rings);
    perf->rings = NULL;
}

bool cpu_perf_is_stop(const struct cpu_perf *perf, const struct perf_event_header *sample)
{
    uint64_t event;
    memcpy(&event, sample + 1, sizeof event);
    for (unsigned i = 0; i < perf->count; i++) {
        if (perf->rings[i].switch_id && perf->rings[i].switch_id == event)
            return true;
    }
    return false;
}

/* ---- The queue -------------------------------------------------------------------------------
 *
 * Each processor writes into a ring of its own, so that a thread that moves leaves its records in
 * several. They are copied out at once, to give the room back, and sorted: only then is it known
 * which mapping, name or sleep belongs to which sample. */

#define SAMPLE_TIME_AT 24u /* header, identifier, pid and tid */
#define TRAILER_BYTES 32u  /* pid and tid, time, processor, identifier: behind all other records */
#define TRAILER_TIME_BACK 24u

static bool find_time(const struct perf_event_header *record, uint64_t *time_ns)
{
    size_t at = record->type == PERF_RECORD_SAMPLE ? SAMPLE_TIME_AT
                                                   : record->size - (size_t)TRAILER_TIME_BACK;
    if (record->size < sizeof *record + TRAILER_BYTES)
        return false;
    memcpy(time_ns, (const unsigned char *)record + at, sizeof *time_ns);
    return true;
}

static const struct perf_event_header *queued_record_at(const struct cpu_queue *queue, size_t at)
{
    return (const struct perf_event_header *)(const void *)(queue->bytes.data + at);
}

/* List the records of the stretch that was appended at `from`. */
static bool list_records(struct cpu_queue *queue, size_t from, cpu_record_found fresh,
                         void *context)
{
    while (from < queue->bytes.count) {
        const struct perf_event_header *record = queued_record_at(queue, from);
        size_t left = queue->bytes.count - from;
        if (left < sizeof *record || record->size < sizeof *record || record->size > left ||
            record->size % 8 != 0) {
            queue->damaged++;
            return true;
        }
        uint64_t time_ns;
        if (find_time(record, &time_ns)) {
            struct cpu_queued *queued = prof_array_add(&queue->records);
            if (!queued)
                return false;
            *queued = (struct cpu_queued){time_ns, from};
            if (fresh)
                fresh(context, record, time_ns);
        }
        from += record->size;
    }
    return true;
}

bool cpu_queue_take(struct cpu_queue *queue, const struct cpu_perf *perf,
                    const struct cpu_ring *ring, cpu_record_found fresh, void *context)
{
    struct perf_event_mmap_page *page = ring->page;
    const unsigned char *data = (const unsigned char *)ring->page + sysconf(_SC_PAGESIZE);
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;
    size_t bytes = (size_t)(head - tail), start = (size_t)(tail & (perf->ring_bytes - 1));
    if (bytes == 0)
        return true;
    if (bytes > perf->ring_bytes || !prof_array_reserve(&queue->bytes, bytes))
        return false;
    size_t first = perf->ring_bytes - start < bytes ? perf->ring_bytes - start : bytes;
    size_t from = queue->bytes.count;
    memcpy(queue->bytes.data + from, data + start, first);
    memcpy(queue->bytes.data + from + first, data, bytes - first);
    queue->bytes.count += bytes;
    __atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
    return list_records(queue, from, fresh, context);
}

/* Of one time, in the order in which they came. */
PROF_ORDER(by_queued_time, struct cpu_queued, PROF_ASCENDING(time_ns), PROF_ASCENDING(at))

/* Keep the records from number `done` on, and nothing else. */
static void forget_done(struct cpu_queue *queue, size_t done)
{
    size_t kept = 0;
    queue->spare.count = 0;
    for (size_t i = done; i < queue->records.count; i++) {
        const struct perf_event_header *record = queued_record_at(queue, queue->records.data[i].at);
        if (!prof_array_reserve(&queue->spare, record->size))
            break;
        memcpy(queue->spare.data + queue->spare.count, record, record->size);
        queue->records.data[kept++] =
            (struct cpu_queued){queue->records.data[i].time_ns, queue->spare.count};
        queue->spare.count += record->size;
    }
    queue->records.count = kept;
    unsigned char *data = queue->bytes.data;
    size_t capacity = queue->bytes.capacity;
    queue->bytes.data = queue->spare.data;
    queue->bytes.count = queue->spare.count;
    queue->bytes.capacity = queue->spare.capacity;
    queue->spare.data = data;
    queue->spare.count = 0;
    queue->spare.capacity = capacity;
}

void cpu_queue_hand_over(struct cpu_queue *queue, uint64_t until_ns, cpu_record_found found,
                         void *context)
{
    size_t done = 0;
    prof_array_sort(&queue->records, by_queued_time);
    for (; done < queue->records.count && queue->records.data[done].time_ns < until_ns; done++)
        found(context, queued_record_at(queue, queue->records.data[done].at),
              queue->records.data[done].time_ns);
    if (done)
        forget_done(queue, done);
}

void cpu_queue_free(struct cpu_queue *queue)
{
    prof_array_free(&queue->bytes);
    prof_array_free(&queue->spare);
    prof_array_free(&queue->records);
}
