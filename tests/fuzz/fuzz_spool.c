/* The spool reader over damaged spools: every record it hands out is touched to its last byte, so
 * that the address sanitizer sees a length that lies. */
#include <stdlib.h>

#include "libprof/spool/reader.h"
#include "tests/fuzz/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t bytes;
    unsigned char *image = fuzz_image(data, size, &bytes);
    struct prof_spool *spool;
    static volatile unsigned sum; /* keeps the reads */
    if (image && prof_spool_open_memory(image, bytes, &spool, NULL) == PROF_OK) {
        _Alignas(8) static unsigned char buffer[SPOOL_CHUNK_BYTES];
        const struct prof_spool_span *spans;
        size_t count;
        for (int round = 0; round < 3; round++) {
            if (prof_spool_poll(spool, &spans, &count, NULL) != PROF_OK)
                break;
            for (size_t i = 0; i < count; i++) {
                size_t loaded = prof_spool_load(spool, &spans[i], buffer), offset = 0;
                bool damaged = false;
                for (const struct wire_head *head;
                     (head = prof_spool_next(buffer, loaded, &offset, &damaged));) {
                    const unsigned char *byte = (const unsigned char *)head;
                    for (uint16_t k = 0; k < head->size; k++)
                        sum = sum + byte[k];
                }
                prof_spool_advance(spool, &spans[i], spans[i].tid);
            }
            prof_spool_recycle(spool);
        }
        prof_spool_close(spool);
    }
    free(image);
    return 0;
}
