/* What the page's events travel in: base64 by the vectors of RFC 4648, columns that zlib and a
 * plain decoder give back, and a disk that is full. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "report/pack.h"
#include "tests/check_main.h"

static char *encoded(const char *bytes, size_t length)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size), *file = prof_report_base64(out);
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

START_TEST(base64_is_that_of_the_rfc)
{
    static const char *const vectors[] = {"",         "Zg==",     "Zm8=",    "Zm9v",
                                          "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        char *text = encoded("foobar", i);
        ck_assert_str_eq(text, vectors[i]);
        free(text);
    }
    char *high = encoded("\xff\xef\xbe", 3);
    ck_assert_str_eq(high, "/+++");
    free(high);
}
END_TEST

static int value_of(char c)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    return (int)(strchr(alphabet, c) - alphabet);
}

/* The other way round, as the page does it: base64, gzip. Returns the bytes, `size` of them. */
static unsigned char *unpacked(const char *text, size_t *size)
{
    size_t length = strlen(text), count = 0;
    unsigned char *packed = malloc(length + 1), *bytes = malloc(1 << 20);
    for (size_t i = 0; i + 3 < length; i += 4) {
        unsigned bits = 0;
        int padded = (text[i + 2] == '=') + (text[i + 3] == '=');
        for (size_t k = 0; k < 4; k++)
            bits = bits << 6 | (text[i + k] == '=' ? 0u : (unsigned)value_of(text[i + k]));
        for (int k = 0; k < 3 - padded; k++)
            packed[count++] = (unsigned char)(bits >> (16 - 8 * k));
    }
    z_stream z = {
        .next_in = packed, .avail_in = (uInt)count, .next_out = bytes, .avail_out = 1 << 20};
    ck_assert_int_eq(inflateInit2(&z, MAX_WBITS + 16), Z_OK);
    ck_assert_int_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
    *size = z.total_out;
    inflateEnd(&z);
    free(packed);
    return bytes;
}

static uint64_t read_uint(const unsigned char **at)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        value |= (uint64_t)(**at & 0x7f) << shift;
        if (*(*at)++ < 0x80)
            return value;
    }
}

START_TEST(numbers_come_back)
{
    static const int64_t numbers[] = {0,   -1,  1,       63,        -64,       64,
                                      127, 128, 1 << 20, INT32_MIN, INT64_MAX, INT64_MIN};
    struct prof_html_pack pack = {0};
    prof_html_pack_head(&pack, "{\"a\":1}", 7);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        prof_html_pack_int(&pack, numbers[i]);
    prof_html_pack_uint(&pack, UINT64_MAX);
    char *text = NULL;
    size_t size = 0;
    struct prof_error err = {0};
    FILE *out = open_memstream(&text, &size);
    ck_assert_int_eq(prof_html_pack_write(&pack, out, &err), PROF_OK);
    ck_assert_int_eq(fclose(out), 0);
    unsigned char *bytes = unpacked(text, &size);
    ck_assert_int_eq(memcmp(bytes, "7\n{\"a\":1}", 9), 0);
    const unsigned char *at = bytes + 9;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint64_t folded = read_uint(&at);
        ck_assert_int_eq((int64_t)(folded >> 1 ^ (folded & 1 ? UINT64_MAX : 0)), numbers[i]);
    }
    ck_assert(read_uint(&at) == UINT64_MAX);
    ck_assert_ptr_eq(at, bytes + size);
    free(bytes);
    free(text);
    prof_html_pack_free(&pack);
}
END_TEST

START_TEST(a_full_disk_is_told)
{
    struct prof_html_pack pack = {0};
    struct prof_error err = {0};
    FILE *full = fopen("/dev/full", "w");
    if (!full)
        return; /* not every machine has it */
    setvbuf(full, NULL, _IONBF, 0);
    for (int64_t i = 0; i < 1000000; i++)
        prof_html_pack_int(&pack, i * 7919 % 1000003 * i);
    ck_assert_int_eq(prof_html_pack_write(&pack, full, &err), PROF_FULL);
    fclose(full);
    prof_html_pack_free(&pack);
}
END_TEST

CHECK_MAIN("html_pack", base64_is_that_of_the_rfc, numbers_come_back, a_full_disk_is_told)
