/* Whether an upload brings what its destination was given before: what a program computes once and
 * sends in each iteration. An upload of other bytes costs a look at 64 words. Where those are as
 * before, all bytes are read: at first, then at every eighth upload while they stay the same, and
 * after 2, 4, .. 64 uploads where they did not. The slots are shared without a lock: two threads
 * that upload to one place at once may both read all bytes, and find no difference that is not
 * there.
 *
 * An upload that does not block may lie behind a read into the memory that it comes from, in the
 * same queue: what it brings is not there yet when the call returns. Memory that was read into or
 * mapped without blocking is therefore noted, and such uploads from it are not compared. When there
 * is no room to note more, none is compared any more, and the capture says so. */
#include <stdatomic.h>
#include <string.h>

#include "collectors/opencl/ocl.h"

#define LEAST 1024
#define MOST ((size_t)64 << 20)
#define WORDS 64
#define EVERY 8
#define PRIME UINT64_C(0x9e3779b97f4a7c15)

static struct slot {
    _Atomic uint64_t place, sample, whole; /* hashes; whole 0 = not taken */
    _Atomic uint32_t equal, rest, pause; /* samples alike; uploads not to look at; how many next */
    _Atomic bool same;
} slots[256];

#define GET(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define PUT(field, value) atomic_store_explicit(&(field), value, memory_order_relaxed)

static uint64_t word_at(const unsigned char *data, size_t at)
{
    uint64_t word;
    memcpy(&word, data + at, sizeof word);
    return word;
}

static uint64_t mixed(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * PRIME;
    return hash ^ hash >> 32;
}

static uint64_t sample_of(const unsigned char *data, size_t bytes)
{
    uint64_t hash = bytes;
    size_t step = (bytes - sizeof(uint64_t)) / (WORDS - 1);
    for (size_t i = 0; i < WORDS; i++)
        hash = mixed(hash, word_at(data, i * step));
    return hash;
}

/* Four rows of words side by side, since a product takes the processor some cycles. */
static uint64_t whole_of(const unsigned char *data, size_t bytes)
{
    uint64_t rows[4] = {1, 2, 3, 4};
    size_t at = 0;
    for (; at + 32 <= bytes; at += 32)
        for (size_t i = 0; i < 4; i++)
            rows[i] = mixed(rows[i], word_at(data, at + 8 * i));
    rows[0] = mixed(rows[0], word_at(data, bytes - 8)); /* what is left, some of it twice */
    for (; at + 8 <= bytes; at += 8)
        rows[1] = mixed(rows[1], word_at(data, at));
    return mixed(mixed(rows[0], rows[1]), mixed(rows[2], rows[3])) | 1;
}

static bool forget_content(struct slot *slot, uint64_t place, uint64_t sample)
{
    bool known = GET(slot->place) == place;
    PUT(slot->place, place);
    PUT(slot->sample, sample);
    PUT(slot->whole, 0);
    PUT(slot->equal, 0);
    PUT(slot->same, false);
    if (!known) {
        PUT(slot->rest, 0);
        PUT(slot->pause, 1);
    }
    return false;
}

/* Where commands that did not block write host memory to; without a lock. What was mapped is
 * forgotten when it is unmapped: nothing may be uploaded from there any more. */
#define READS 64u
static struct {
    _Atomic uintptr_t begin, end; /* begin 0 = free */
} reads[READS];
static _Atomic unsigned read_count; /* entries used so far, from the first on */
static _Atomic bool reads_full;     /* anywhere */

static void raise_to(_Atomic uintptr_t *value, uintptr_t least)
{
    uintptr_t other = atomic_load(value);
    while (other < least && !atomic_compare_exchange_weak(value, &other, least)) {
    }
}

/* The entry that begins there; a free one, which then does; READS: none. */
static unsigned read_entry(uintptr_t begin)
{
    unsigned count = atomic_load(&read_count);
    for (unsigned at = 0; at < count; at++)
        if (atomic_load(&reads[at].begin) == begin)
            return at;
    for (unsigned at = 0; at < READS; at++) {
        uintptr_t nobody = 0;
        if (!atomic_compare_exchange_strong(&reads[at].begin, &nobody, begin))
            continue;
        while (count < at + 1 && !atomic_compare_exchange_weak(&read_count, &count, at + 1)) {
        }
        return at;
    }
    return READS;
}

void ocl_note_read(const void *host, uint64_t bytes)
{
    if (!host || atomic_load(&reads_full))
        return;
    unsigned at = read_entry((uintptr_t)host);
    if (at < READS)
        raise_to(&reads[at].end, (uintptr_t)host + bytes);
    else if (!atomic_exchange(&reads_full, true))
        collector_health(WIRE_SOURCE_OPENCL, WIRE_HEALTH_NOTE,
                         "uploads that do not block are no longer checked for repeated content: "
                         "the program reads or maps more than 64 places without blocking",
                         0);
}

void ocl_forget_read(const void *host)
{
    unsigned count = atomic_load(&read_count);
    for (unsigned at = 0; at < count; at++) {
        uintptr_t begin = (uintptr_t)host;
        if (atomic_load(&reads[at].begin) != begin)
            continue;
        atomic_store(&reads[at].end, 0);
        atomic_compare_exchange_strong(&reads[at].begin, &begin, 0);
    }
}

static bool was_read_into(const void *host, size_t bytes)
{
    uintptr_t begin = (uintptr_t)host;
    unsigned count = atomic_load(&read_count);
    for (unsigned i = 0; i < count; i++) {
        uintptr_t from = atomic_load(&reads[i].begin);
        if (from && from < begin + bytes && begin < atomic_load(&reads[i].end))
            return true;
    }
    return atomic_load(&reads_full);
}

const void *ocl_content_of(const void *host, size_t bytes, bool blocking, cl_uint waits)
{
    return blocking || (!waits && !was_read_into(host, bytes)) ? host : NULL;
}

bool ocl_is_same_content(cl_mem buffer, size_t offset, size_t bytes, const void *host)
{
    if (bytes < LEAST || bytes > MOST || ocl_svm.count)
        return false;
    uint64_t place = mixed(mixed(mixed(1, (uintptr_t)buffer), offset), bytes) | 1;
    struct slot *slot = &slots[place >> 56];
    if (!host)
        return GET(slot->place) == place && forget_content(slot, place, 0);
    uint64_t sample = sample_of(host, bytes);
    if (GET(slot->place) != place || GET(slot->sample) != sample)
        return forget_content(slot, place, sample);
    uint32_t rest = GET(slot->rest);
    if (rest) {
        PUT(slot->rest, rest - 1);
        return false;
    }
    uint32_t equal = GET(slot->equal) + 1;
    PUT(slot->equal, equal);
    if (equal > 3 && equal % EVERY)
        return GET(slot->same);
    uint64_t whole = whole_of(host, bytes), before = GET(slot->whole);
    PUT(slot->whole, whole);
    PUT(slot->same, before == whole);
    if (before && before != whole) { /* other bytes than those looked at change */
        uint32_t pause = GET(slot->pause) < 64 ? 2 * GET(slot->pause) : 64;
        forget_content(slot, place, sample);
        PUT(slot->pause, pause);
        PUT(slot->rest, pause);
    }
    return before == whole;
}
