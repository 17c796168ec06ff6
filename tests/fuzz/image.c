/* See image.h. */
#include <stdlib.h>
#include <string.h>

#include "libprof/spool/layout.h"
#include "libprof/wire/record.h"
#include "tests/fuzz/image.h"

static size_t put_chunk(unsigned char *image, uint32_t number, enum spool_chunk_state state,
                        const uint8_t *data, size_t size)
{
    struct spool_chunk *chunk =
        (struct spool_chunk *)(void *)(image + SPOOL_FIRST_CHUNK + number * SPOOL_CHUNK_BYTES);
    if (size > SPOOL_CHUNK_CAPACITY)
        size = SPOOL_CHUNK_CAPACITY;
    atomic_store(&chunk->state, state);
    atomic_store(&chunk->committed, (uint32_t)size);
    atomic_store(&chunk->sequence, number + 1);
    atomic_store(&chunk->tid, 100 + number);
    memcpy((unsigned char *)chunk + SPOOL_CHUNK_HEADER_BYTES, data, size);
    return size;
}

unsigned char *fuzz_image(const uint8_t *data, size_t size, size_t *image_size)
{
    *image_size = SPOOL_FIRST_CHUNK + (size_t)FUZZ_CHUNKS * SPOOL_CHUNK_BYTES;
    unsigned char *image = aligned_alloc(4096, (*image_size + 4095) & ~(size_t)4095);
    if (!image)
        return NULL;
    memset(image, 0, *image_size);
    struct spool_header *header = (struct spool_header *)(void *)image;
    atomic_store(&header->magic, SPOOL_MAGIC);
    header->version = header->min_reader = WIRE_VERSION;
    header->chunk_bytes = SPOOL_CHUNK_BYTES;
    header->first_chunk = SPOOL_FIRST_CHUNK;
    header->counter_rows = SPOOL_COUNTER_ROWS;
    header->counter_slots = WIRE_COUNT_SLOTS;
    header->pid = 999999999;
    header->start_ns = 1000;
    header->max_chunks = FUZZ_CHUNKS;
    atomic_store(&header->reserved, FUZZ_CHUNKS);
    atomic_store(&header->sequence, FUZZ_CHUNKS);

    size_t patches = size ? data[0] % 8u : 0, at = 1 + patches * 5;
    if (at + 2 <= size) {
        size_t split = (size_t)data[at] | (size_t)data[at + 1] << 8;
        const uint8_t *rest = data + at + 2;
        size_t left = size - at - 2;
        if (split > left)
            split = left;
        put_chunk(image, 0, SPOOL_DEFINITIONS, rest, split);
        size_t events = left - split, half = events / 2 & ~(size_t)7;
        put_chunk(image, 1, SPOOL_EVENTS_FULL, rest + split, half);
        put_chunk(image, 2, SPOOL_EVENTS, rest + split + half, events - half);
    }
    for (size_t i = 0; i < patches && 1 + (i + 1) * 5 <= size; i++) {
        uint32_t offset;
        memcpy(&offset, data + 1 + i * 5, sizeof offset);
        image[offset % *image_size] = data[1 + i * 5 + 4];
    }
    return image;
}
