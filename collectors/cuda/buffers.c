/* The memory that CUPTI writes its records into.
 *
 * CUPTI requests a buffer on the program's own threads (they share it: records.h says why) and
 * gives it back full on those threads or on a worker of its own. So both lists are lock-free: a
 * free list (tagged head, several takers) and a list of full buffers that the helper thread empties
 * at once. 2 MiB hold 9,700 kernels or 52,000 calls; at 250,000 launches a second 32 go by per
 * second, and the free list serves all of them. Mappings are never given back: CUPTI's workers may
 * complete a buffer while the process ends.
 *
 * The buffers are handed out zeroed (an attribute of CUPTI says so, which saves its own memset on
 * the program's thread); the helper thread zeroes again what was used. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/map.h"
#include "collectors/cuda/parts.h"

#define BUFFER_BYTES (2u << 20)
#define HEADER_BYTES 4096u /* in front of the data, which stays page-aligned */
#define MAX_BUFFERS 4096u  /* address space 8 GiB; pages are touched as records come */
#define FIRST_BUFFERS 4u   /* populated before the first record */
#define READY_BUFFERS 2u   /* kept free by the helper thread */
#define WAKE_AT 4u         /* full buffers that call the helper thread before its time */
#define SPILL_BYTES                                                                                \
    (256u << 20) /* of waiting records; new ones are dropped and counted after that                \
                  */

static _Atomic(struct cuda_buffer *) buffers[MAX_BUFFERS];
static _Atomic uint32_t buffer_count;
static _Atomic uint64_t free_head; /* tag << 32 | number + 1 */
static _Atomic uint32_t free_count;
static _Atomic uint32_t full_head; /* number + 1 */
static _Atomic uint32_t full_count;
static _Atomic uint64_t full_bytes;
static _Atomic uint32_t used;

/* Returned to CUPTI when no memory is left at all: NULL would crash CUPTI before 12.9. Its contents
 * are never read. */
#define LAST_RESORT_BYTES 65536u
static uint8_t *last_resort;

static struct cuda_buffer *numbered(uint32_t number)
{
    return atomic_load_explicit(&buffers[number], memory_order_acquire);
}

uint8_t *cuda_buffers_data(struct cuda_buffer *buffer)
{
    return (uint8_t *)buffer + HEADER_BYTES;
}

static void push_free(struct cuda_buffer *buffer)
{
    uint64_t head = atomic_load(&free_head);
    do {
        buffer->next = (uint32_t)head;
    } while (!atomic_compare_exchange_weak(&free_head, &head,
                                           ((head >> 32) + 1) << 32 | (buffer->number + 1)));
    atomic_fetch_add(&free_count, 1);
}

static struct cuda_buffer *pop_free(void)
{
    uint64_t head = atomic_load(&free_head);
    struct cuda_buffer *buffer;
    do {
        if ((uint32_t)head == 0)
            return NULL;
        /* Another thread may take it meanwhile: it stays mapped, and the tag differs then. */
        buffer = numbered((uint32_t)head - 1);
    } while (
        !atomic_compare_exchange_weak(&free_head, &head, ((head >> 32) + 1) << 32 | buffer->next));
    atomic_fetch_sub(&free_count, 1);
    return buffer;
}

static struct cuda_buffer *map_buffer(int populate)
{
    uint32_t number = atomic_load(&buffer_count);
    do {
        if (number >= MAX_BUFFERS)
            return NULL;
    } while (!atomic_compare_exchange_weak(&buffer_count, &number, number + 1));
    void *at = mmap(NULL, HEADER_BYTES + BUFFER_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | populate, -1, 0);
    if (at == MAP_FAILED)
        return NULL; /* the number is lost; MAX_BUFFERS bounds how often */
    struct cuda_buffer *buffer = at;
    buffer->number = number;
    atomic_store_explicit(&buffers[number], buffer, memory_order_release);
    return buffer;
}

bool cuda_buffers_start(void)
{
    if (!last_resort && !(last_resort = cuda_reserve(LAST_RESORT_BYTES)))
        return false;
    for (uint32_t i = 0; i < FIRST_BUFFERS; i++) {
        struct cuda_buffer *buffer = map_buffer(MAP_POPULATE);
        if (!buffer)
            return i > 0;
        push_free(buffer);
    }
    return true;
}

bool cuda_buffers_used(void)
{
    return atomic_load_explicit(&used, memory_order_relaxed) != 0;
}

void cuda_buffers_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    int saved = errno;
    atomic_store_explicit(&used, 1, memory_order_relaxed);
    struct cuda_buffer *mine = pop_free();
    if (!mine)
        mine = map_buffer(0);
    if (mine) {
        mine->requested_by = collector_tid();
        atomic_store(&mine->requested_ns, collector_now());
        mine->spill = atomic_load(&full_bytes) >= SPILL_BYTES;
        *buffer = cuda_buffers_data(mine);
        *size = BUFFER_BYTES;
    } else {
        *buffer = last_resort;
        *size = LAST_RESORT_BYTES;
    }
    *max_records = 0;
    if (atomic_load(&free_count) < READY_BUFFERS)
        collector_wake();
    errno = saved;
}

/* Make `buffer` ready for the next taker. One page more than was valid is cleared, should CUPTI
 * have begun a record there. */
static void recycle(struct cuda_buffer *buffer)
{
    atomic_store(&buffer->requested_ns, 0);
    size_t bytes = (size_t)buffer->valid + 4096u;
    memset(cuda_buffers_data(buffer), 0, bytes < BUFFER_BYTES ? bytes : BUFFER_BYTES);
    buffer->valid = 0;
    push_free(buffer);
}

/* The helper thread is 256 MiB behind: count what this buffer holds, and let it go. */
static void drop_buffer(struct cuda_buffer *buffer)
{
    uint64_t lost = 0;
    CUpti_Activity *record = NULL;
    while (cupti.ActivityGetNextRecord(cuda_buffers_data(buffer), buffer->valid, &record) ==
           CUPTI_SUCCESS)
        lost++;
    collector_count(WIRE_COUNT_BACKEND_DROPPED, lost);
    recycle(buffer);
}

void cuda_buffers_complete(CUcontext context, uint32_t stream, uint8_t *data, size_t size,
                           size_t valid)
{
    (void)context; /* both are always 0 in current CUPTI */
    (void)stream;
    (void)size;
    int saved = errno;
    if (!data || data == last_resort) {
        /* The number of its records is not known: several threads may have shared it. */
        if (valid)
            collector_count(WIRE_COUNT_BACKEND_DROPPED, 1);
        errno = saved;
        return;
    }
    struct cuda_buffer *buffer = (struct cuda_buffer *)(void *)(data - HEADER_BYTES);
    buffer->given_by = collector_tid();
    buffer->given_ns = collector_now();
    buffer->valid = valid < BUFFER_BYTES ? (uint32_t)valid : BUFFER_BYTES;
    if (buffer->valid == 0) {
        recycle(buffer);
    } else if (buffer->spill) {
        drop_buffer(buffer);
    } else {
        atomic_fetch_add(&full_bytes, buffer->valid);
        uint32_t head = atomic_load(&full_head);
        do {
            buffer->next = head;
        } while (!atomic_compare_exchange_weak(&full_head, &head, buffer->number + 1));
        if (atomic_fetch_add(&full_count, 1) + 1 >= WAKE_AT)
            collector_wake();
    }
    errno = saved;
}

uint64_t cuda_buffers_oldest(void)
{
    uint64_t oldest = 0;
    uint32_t count = atomic_load(&buffer_count);
    for (uint32_t i = 0; i < count && i < MAX_BUFFERS; i++) {
        struct cuda_buffer *buffer = numbered(i);
        uint64_t requested = buffer ? atomic_load(&buffer->requested_ns) : 0;
        if (requested && (!oldest || requested < oldest))
            oldest = requested;
    }
    return oldest;
}

struct cuda_buffer *cuda_buffers_next(const struct cuda_buffer *buffer)
{
    return buffer->next ? numbered(buffer->next - 1) : NULL;
}

struct cuda_buffer *cuda_buffers_take(void)
{
    uint32_t at = atomic_exchange(&full_head, 0);
    uint32_t reversed = 0, count = 0;
    uint64_t bytes = 0;
    while (at) {
        struct cuda_buffer *buffer = numbered(at - 1);
        uint32_t next = buffer->next;
        buffer->next = reversed;
        reversed = at;
        at = next;
        count++;
        bytes += buffer->valid;
    }
    atomic_fetch_sub(&full_count, count);
    atomic_fetch_sub(&full_bytes, bytes);
    return reversed ? numbered(reversed - 1) : NULL;
}

void cuda_buffers_give_back(struct cuda_buffer *buffer)
{
    recycle(buffer);
}

void cuda_buffers_top_up(bool last)
{
    (void)last;
    while (atomic_load(&free_count) < READY_BUFFERS) {
        struct cuda_buffer *buffer = map_buffer(MAP_POPULATE);
        if (!buffer)
            return;
        push_free(buffer);
    }
}

/* The parent's buffers belong to the parent's CUPTI, which does not run here. */
void cuda_buffers_forked(void)
{
    atomic_store(&free_head, 0);
    atomic_store(&full_head, 0);
    atomic_store(&free_count, 0);
    atomic_store(&full_count, 0);
    atomic_store(&full_bytes, 0);
    atomic_store(&buffer_count, 0);
    atomic_store(&used, 0);
}
