/* Turns a fuzzer's bytes into a spool file, so that mutations reach what matters instead of 80 kB
 * of header and padding: byte 0 = how many patches follow; a patch is an offset (4 bytes) and a
 * value (1 byte) written over the finished image; the rest is split at the 16-bit length that
 * follows into the definition stream and the event stream. */
#ifndef PERFKIT_TESTS_FUZZ_IMAGE_H
#define PERFKIT_TESTS_FUZZ_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#define FUZZ_CHUNKS 3u

/* The image (free it) and its size; NULL when there is no memory. */
unsigned char *fuzz_image(const uint8_t *data, size_t size, size_t *image_size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
