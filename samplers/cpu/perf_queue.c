/* Each processor writes into a ring of its own, so that a thread that moves leaves its records in
 * several. They are copied out at once, to give the room back, and sorted: only then is it known
 * which mapping, name or sleep belongs to which sample. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "samplers/cpu/perf_queue.h"

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
static bool list_records(struct cpu_queue *queue, size_t from)
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
        }
        from += record->size;
    }
    return true;
}

bool cpu_queue_take(struct cpu_queue *queue, const struct cpu_perf *perf,
                    const struct cpu_ring *ring)
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
    return list_records(queue, from);
}

/* Of one time, in the order in which they came. */
static int by_queued_time(const void *a, const void *b)
{
    const struct cpu_queued *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

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
    if (queue->records.count > 1)
        qsort(queue->records.data, queue->records.count, sizeof *queue->records.data,
              by_queued_time);
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
