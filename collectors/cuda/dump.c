/* A dump of everything CUPTI hands over, for bug reports and for tests that replay it without a
 * GPU: `perfkit run --cupti-dump DIR` makes one file per process, DIR/PID.cuptidump (layout:
 * dump.h).
 *
 * Written on the helper thread alone. Callbacks come on the program's threads and go through a
 * ring; those that find it full are counted in the dump. An error ends the dump with a note in the
 * capture's health, never the program.
 *
 * The file is opened anew for each batch and not kept: a program that closes every descriptor, as
 * daemons do, and then opens its own would find our blocks in its file. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/dump.h"
#include "collectors/cuda/map.h"
#include "collectors/cuda/parts.h"

#define RING 8192u   /* callbacks between two ticks; a power of two */
#define KINDS 128u   /* of activity */
#define TEXTS 16384u /* addresses whose text is remembered; a power of two */
#define MAX_TEXT_BYTES 65536u
#define MAX_FILES 100u /* of one pid: every exec makes one */

/* A bounded queue for many writers. A slot may be filled when its turn equals the ticket, and read
 * when its turn is one more. */
struct slot {
    _Atomic uint64_t turn;
    uint64_t time;
    struct dump_callback what;
};

static _Atomic uint32_t on;        /* wanted, and no error yet */
static struct slot *ring;          /* [RING] */
static _Atomic uint64_t ring_head; /* next ticket */
static uint64_t ring_tail;         /* helper thread */
static _Atomic uint64_t ring_lost;

/* All below: helper thread */
static char folder[400], path[448];
static int file = -1; /* open during a batch */
static dev_t file_device;
static ino_t file_inode;
#define PENDING_BYTES 65536u
static uint8_t *pending;
static size_t pending_bytes;
static uint32_t sizes[KINDS]; /* of records, as written to the dump */
static struct dumped_text {
    uint64_t address, hash;
} * texts; /* [TEXTS] */

static bool reserve_dump_tables(void)
{
    return (ring || (ring = cuda_reserve(sizeof *ring * RING))) &&
           (pending || (pending = cuda_reserve(PENDING_BYTES))) &&
           (texts || (texts = cuda_reserve(sizeof *texts * TEXTS)));
}

static void dump_failed(const char *call, int error)
{
    char why[640];
    atomic_store(&on, 0);
    char reason[128];
    snprintf(why, sizeof why, "the CUPTI dump %s ends here: %s: %s", path[0] ? path : folder, call,
             strerror_r(error, reason, sizeof reason));
    collector_health(WIRE_SOURCE_CUDA, WIRE_HEALTH_DEGRADED, why, (uint32_t)error);
}

void cuda_dump_start(void)
{
    if (!collector_option("cupti-dump", folder, sizeof folder) || !folder[0])
        return;
    if (!reserve_dump_tables()) {
        dump_failed("mmap", errno);
        return;
    }
    for (uint64_t i = 0; i < RING; i++)
        atomic_store_explicit(&ring[i].turn, i, memory_order_relaxed);
    atomic_store(&on, 1);
}

static void dump_write(const void *data, size_t bytes)
{
    const uint8_t *at = data;
    while (bytes > 0 && atomic_load(&on)) {
        ssize_t n = write(file, at, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            dump_failed("write", n < 0 ? errno : ENOSPC);
            return;
        }
        at += n;
        bytes -= (size_t)n;
    }
}

static void put_pending(void)
{
    dump_write(pending, pending_bytes);
    pending_bytes = 0;
}

static void dump_put(const void *data, size_t bytes)
{
    if (bytes == 0)
        return;
    if (bytes > PENDING_BYTES - pending_bytes)
        put_pending();
    if (bytes > PENDING_BYTES) {
        dump_write(data, bytes);
        return;
    }
    memcpy(pending + pending_bytes, data, bytes);
    pending_bytes += bytes;
}

/* A block of two parts. */
static void dump_put_block(enum dump_type type, uint64_t time, const void *first,
                           size_t first_bytes, const void *second, size_t second_bytes)
{
    static const uint8_t padding[8];
    size_t bytes = first_bytes + second_bytes;
    dump_put(&(struct dump_block){.type = type, .bytes = (uint32_t)bytes, .time = time},
             sizeof(struct dump_block));
    dump_put(first, first_bytes);
    dump_put(second, second_bytes);
    dump_put(padding, (8 - bytes % 8) % 8);
}

static uint64_t realtime(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool make_file(void)
{
    int pid = (int)getpid();
    for (unsigned n = 1; n < MAX_FILES && file < 0; n++) {
        if (n == 1)
            snprintf(path, sizeof path, "%s/%d" DUMP_SUFFIX, folder, pid);
        else
            snprintf(path, sizeof path, "%s/%d-%u" DUMP_SUFFIX, folder, pid, n);
        file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (file < 0 && errno != EEXIST)
            break;
    }
    struct stat made;
    if (file < 0 || fstat(file, &made) != 0) {
        dump_failed("open", errno);
        return false;
    }
    file_device = made.st_dev;
    file_inode = made.st_ino;
    struct dump_header header = {
        .magic = DUMP_MAGIC,
        .version = DUMP_VERSION,
        .bytes = sizeof header,
        .cupti_version = cuda_cupti_version(),
        .pid = (uint32_t)pid,
        .monotonic_ns = collector_now(),
        .realtime_ns = realtime(),
    };
    dump_put(&header, sizeof header);
    return true;
}

/* Is it still the file that was made? A name may be another's by now. */
static bool reopen_file(void)
{
    struct stat found;
    file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (file >= 0 && fstat(file, &found) == 0 && found.st_dev == file_device &&
        found.st_ino == file_inode)
        return true;
    dump_failed("open", file < 0 ? errno : ESTALE);
    return false;
}

static void put_callbacks(void)
{
    for (;; ring_tail++) {
        struct slot *slot = &ring[ring_tail % RING];
        if (atomic_load_explicit(&slot->turn, memory_order_acquire) != ring_tail + 1)
            break;
        dump_put_block(DUMP_CALLBACK, slot->time, &slot->what, sizeof slot->what, NULL, 0);
        atomic_store_explicit(&slot->turn, ring_tail + RING, memory_order_release);
    }
    uint64_t lost = atomic_exchange(&ring_lost, 0);
    struct dump_dropped dropped = {.count = lost, .what = DUMP_LOST_CALLBACKS};
    if (lost)
        dump_put_block(DUMP_DROPPED, collector_now(), &dropped, sizeof dropped, NULL, 0);
}

static bool dump_begin(void)
{
    if (!atomic_load(&on))
        return false;
    pending_bytes = 0;
    if (!(path[0] ? reopen_file() : make_file())) {
        if (file >= 0)
            close(file);
        file = -1;
        return false;
    }
    put_callbacks();
    return true;
}

static void dump_end(void)
{
    put_pending();
    if (close(file) != 0 && atomic_load(&on))
        dump_failed("close", errno);
    file = -1;
}

static uint64_t hash_text(const char *text, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3u;
    return hash ? hash : 1;
}

static void dump_put_text(uint64_t time, uint64_t address)
{
    if (!address)
        return;
    const char *text = (const char *)(uintptr_t)address;
    static char copy[4096]; /* names of kernels die with their code, see names.c */
    bool may_be_gone = cuda_names_die();
    size_t length =
        may_be_gone ? cuda_names_read(text, copy, sizeof copy) : strnlen(text, MAX_TEXT_BYTES);
    if (may_be_gone)
        text = copy;
    uint64_t hash = hash_text(text, length);
    /* A slot that another address has taken is overwritten: the text of that address is written
     * twice. */
    size_t place = (size_t)((address >> 3 ^ address >> 17) % TEXTS);
    if (texts[place].address == address && texts[place].hash == hash)
        return;
    texts[place].address = address;
    texts[place].hash = hash;
    struct dump_string string = {.address = address};
    dump_put_block(DUMP_STRING, time, &string, sizeof string, text, length);
}

static void put_size(uint64_t time, uint32_t kind, size_t size)
{
    if (kind >= KINDS || sizes[kind] == size)
        return;
    sizes[kind] = (uint32_t)size;
    struct dump_size out = {.kind = kind, .size = (uint32_t)size};
    dump_put_block(DUMP_SIZE, time, &out, sizeof out, NULL, 0);
}

static void dump_put_texts(uint64_t time, const CUpti_Activity *record, size_t size)
{
    static const struct {
        uint32_t kind, at;
    } places[] = {
#define X(kind, offset) {kind, offset},
        DUMP_STRINGS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        uint64_t address;
        if (places[i].kind != (uint32_t)record->kind || places[i].at + sizeof address > size)
            continue;
        memcpy(&address, (const uint8_t *)record + places[i].at, sizeof address);
        dump_put_text(time, address);
    }
}

static void put_buffer(struct cuda_buffer *buffer)
{
    uint8_t *data = cuda_buffers_data(buffer);
    CUpti_Activity *record = NULL, *previous = NULL;
    for (;;) {
        bool more = cupti.ActivityGetNextRecord(data, buffer->valid, &record) == CUPTI_SUCCESS;
        const uint8_t *next = more ? (const uint8_t *)record : data + buffer->valid;
        if (previous) {
            /* The distance of the last record is its size only in a sound buffer. */
            size_t size = (size_t)(next - (const uint8_t *)previous);
            uint32_t kind = (uint32_t)previous->kind;
            if (!more && kind < KINDS && sizes[kind])
                size = sizes[kind];
            put_size(buffer->given_ns, kind, size);
            dump_put_texts(buffer->given_ns, previous, size);
        }
        if (!more)
            break;
        previous = record;
    }
    struct dump_buffer head = {.requested_by = buffer->requested_by, .given_by = buffer->given_by};
    dump_put_block(DUMP_BUFFER, buffer->given_ns, &head, sizeof head, data, buffer->valid);
}

void cuda_dump_buffers(struct cuda_buffer *list)
{
    if (!list || !dump_begin())
        return;
    for (struct cuda_buffer *at = list; at; at = cuda_buffers_next(at))
        put_buffer(at);
    dump_end();
}

void cuda_dump_flush(uint32_t how)
{
    if (!dump_begin())
        return;
    struct dump_flush flush = {.forced = how, .realtime_ns = realtime()};
    dump_put_block(DUMP_FLUSH, collector_now(), &flush, sizeof flush, NULL, 0);
    dump_end();
}

void cuda_dump_dropped(uint64_t count)
{
    if (count == 0 || !dump_begin())
        return;
    struct dump_dropped dropped = {.count = count, .what = DUMP_LOST_RECORDS};
    dump_put_block(DUMP_DROPPED, collector_now(), &dropped, sizeof dropped, NULL, 0);
    dump_end();
}

/* ---- PC sampling */

void cuda_dump_reasons(uint32_t context, size_t count, const uint32_t *indexes,
                       const char (*names)[PC_REASON_BYTES])
{
    struct dump_reason *reasons = atomic_load(&on) ? cuda_reserve(sizeof *reasons * count) : NULL;
    struct dump_reasons head = {.context = context, .count = (uint32_t)count};
    for (size_t i = 0; reasons && i < count; i++) {
        reasons[i].index = indexes[i];
        snprintf(reasons[i].name, sizeof reasons[i].name, "%s", names[i]);
    }
    if (reasons && dump_begin()) {
        dump_put_block(DUMP_REASONS, collector_now(), &head, sizeof head, reasons,
                       sizeof *reasons * count);
        dump_end();
    }
}

/* From the file: the memory that it was loaded from may be gone. */
void cuda_dump_cubin(const char *kept, size_t bytes)
{
    uint8_t *cubin = atomic_load(&on) ? cuda_reserve(bytes) : NULL;
    int from = cubin ? open(kept, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    size_t got = 0;
    for (ssize_t n = 1; from >= 0 && n > 0 && got<bytes; got += n> 0 ? (size_t)n : 0)
        n = read(from, cubin + got, bytes - got);
    if (from >= 0)
        close(from);
    if (cubin && got == bytes && dump_begin()) {
        dump_put_block(DUMP_CUBIN, collector_now(), cubin, bytes, NULL, 0);
        dump_end();
    }
    if (cubin)
        munmap(cubin, bytes);
}

void cuda_dump_samples(uint32_t context, const struct pc_data *data)
{
    if (!dump_begin())
        return;
    uint64_t now = collector_now();
    struct dump_samples head = {context,       (uint32_t)data->count, data->total,
                                data->dropped, data->of_system,       data->full};
    size_t bytes = sizeof head;
    for (size_t i = 0; i < data->count; i++) {
        const struct pc_record *record = &data->records[i];
        dump_put_text(now, (uintptr_t)record->name);
        bytes += sizeof(struct dump_instruction) + record->count * sizeof(struct pc_reason);
    }
    dump_put(&(struct dump_block){.type = DUMP_SAMPLES, .bytes = (uint32_t)bytes, .time = now},
             sizeof(struct dump_block));
    dump_put(&head, sizeof head);
    for (size_t i = 0; i < data->count; i++) {
        const struct pc_record *record = &data->records[i];
        struct dump_instruction out = {record->crc, record->offset, (uintptr_t)record->name,
                                       record->function, (uint32_t)record->count};
        dump_put(&out, sizeof out);
        dump_put(record->reasons, record->count * sizeof(struct pc_reason));
    }
    dump_end();
}

void cuda_dump_end(void)
{
    if (!dump_begin())
        return;
    dump_put_block(DUMP_END, collector_now(), NULL, 0, NULL, 0);
    dump_end();
}

void cuda_dump_callback(const struct dump_callback *what)
{
    if (!atomic_load_explicit(&on, memory_order_relaxed))
        return;
    uint64_t ticket = atomic_load_explicit(&ring_head, memory_order_relaxed);
    for (;;) {
        struct slot *slot = &ring[ticket % RING];
        uint64_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);
        if (turn != ticket) {
            if ((int64_t)(turn - ticket) < 0) { /* still holds the one of a round ago */
                atomic_fetch_add_explicit(&ring_lost, 1, memory_order_relaxed);
                return;
            }
            ticket = atomic_load_explicit(&ring_head, memory_order_relaxed);
        } else if (atomic_compare_exchange_weak_explicit(&ring_head, &ticket, ticket + 1,
                                                         memory_order_relaxed,
                                                         memory_order_relaxed)) {
            slot->time = collector_now();
            slot->what = *what;
            slot->what.tid = collector_tid();
            atomic_store_explicit(&slot->turn, ticket + 1, memory_order_release);
            if (ticket % (RING / 4) == 0)
                collector_wake();
            return;
        }
    }
}

void cuda_dump_on_callback(enum cuda_domain domain, uint32_t cbid, const CUpti_CallbackData *call)
{
    if (!atomic_load_explicit(&on, memory_order_relaxed))
        return;
    cuda_dump_callback(&(struct dump_callback){.domain = domain == CUDA_DOMAIN_DRIVER
                                                             ? CUPTI_CB_DOMAIN_DRIVER_API
                                                             : CUPTI_CB_DOMAIN_RUNTIME_API,
                                               .cbid = cbid,
                                               .site = call->callbackSite,
                                               .correlation = call->correlationId});
}

/* The file is the parent's; a child that uses CUDA starts anew. */
void cuda_dump_forked(void)
{
    atomic_store(&on, 0);
    atomic_store(&ring_head, 0);
    atomic_store(&ring_lost, 0);
    ring_tail = 0;
    file = -1; /* perhaps inherited in the middle of a batch; nothing of ours writes to it */
    path[0] = '\0';
    pending_bytes = 0;
    memset(sizes, 0, sizeof sizes);
    cuda_wipe(texts, sizeof *texts * TEXTS);
}
