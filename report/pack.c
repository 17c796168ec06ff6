/* Bytes made small or printable: the timeline's columns packed for the page, base64 and gzip behind
 * a FILE. Differences of neighbours are small and repeat, so that an event takes a few bytes where
 * JSON took 30. Base64's alphabet has no '<', '&' or quotes, so that the text can be inside markup
 * as it is. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#include "report/pack.h"
#include "report/writers.h"

void prof_html_pack_uint(struct prof_html_pack *pack, uint64_t value)
{
    do {
        unsigned char *room = prof_array_add(&pack->columns);
        if (!room) {
            pack->failed = true;
            return;
        }
        *room = (unsigned char)(value & 0x7f) | (value > 0x7f ? 0x80 : 0);
        value >>= 7;
    } while (value);
}

void prof_html_pack_int(struct prof_html_pack *pack, int64_t value)
{
    prof_html_pack_uint(pack, ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0));
}

void prof_html_pack_head(struct prof_html_pack *pack, const char *json, size_t length)
{
    if (!prof_array_append(&pack->head, json, length))
        pack->failed = true;
}

/* Closes `file` too; errno is set on a failure. */
static bool write_whole(const struct prof_html_pack *pack, FILE *file)
{
    fprintf(file, "%zu\n", pack->head.count);
    if (pack->head.count)
        fwrite(pack->head.data, 1, pack->head.count, file);
    if (pack->columns.count)
        fwrite(pack->columns.data, 1, pack->columns.count, file);
    bool ok = !ferror(file);
    int saved = errno;
    if (fclose(file))
        return false;
    errno = saved;
    return ok;
}

enum prof_status prof_html_pack_write(const struct prof_html_pack *pack, FILE *out,
                                      struct prof_error *err)
{
    if (pack->failed)
        return prof_fail(err, PROF_NOMEM, "cannot write the timeline: out of memory");
    FILE *text = prof_report_base64(out);
    FILE *packed = text ? prof_report_gzip(text) : NULL;
    if (!packed) {
        if (text)
            fclose(text);
        return prof_fail(err, PROF_NOMEM, "cannot write the timeline: out of memory");
    }
    bool ok = write_whole(pack, packed);
    int saved = errno;
    if (fclose(text) && ok) {
        ok = false;
        saved = errno;
    }
    errno = saved;
    if (!ok)
        return prof_report_write_failed(err);
    return PROF_OK;
}

void prof_html_pack_free(struct prof_html_pack *pack)
{
    prof_array_free(&pack->head);
    prof_array_free(&pack->columns);
}

/* ---- base64 (RFC 4648, section 4) ------------------------------------------------------------ */

struct encoder {
    FILE *out;
    unsigned char rest[3];
    size_t rest_count;
};

/* One group of 1 to 3 bytes, padded to four characters. */
static void group(const unsigned char *bytes, size_t count, char text[4])
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = (uint32_t)bytes[0] << 16;
    if (count > 1)
        bits |= (uint32_t)bytes[1] << 8;
    if (count > 2)
        bits |= bytes[2];
    text[0] = alphabet[bits >> 18];
    text[1] = alphabet[bits >> 12 & 63];
    text[2] = count > 1 ? alphabet[bits >> 6 & 63] : '=';
    text[3] = count > 2 ? alphabet[bits & 63] : '=';
}

static ssize_t write_base64(void *cookie, const char *data, size_t size)
{
    struct encoder *e = cookie;
    char text[4096];
    size_t filled = 0;
    for (size_t i = 0; i < size; i++) {
        e->rest[e->rest_count++] = (unsigned char)data[i];
        if (e->rest_count < 3)
            continue;
        group(e->rest, 3, text + filled);
        e->rest_count = 0;
        filled += 4;
        if (filled == sizeof text) {
            if (fwrite(text, 1, filled, e->out) != filled)
                return 0; /* an error, to stdio */
            filled = 0;
        }
    }
    return fwrite(text, 1, filled, e->out) == filled ? (ssize_t)size : 0;
}

static int finish_base64(void *cookie)
{
    PROF_FREED struct encoder *e = cookie;
    char text[4];
    size_t count = 0;
    if (e->rest_count) {
        group(e->rest, e->rest_count, text);
        count = sizeof text;
    }
    int before = errno; /* perhaps why an earlier write failed */
    errno = 0;
    int result = fwrite(text, 1, count, e->out) == count ? 0 : -1;
    int saved = errno ? errno : EIO;
    errno = result ? saved : before;
    return result;
}

FILE *prof_report_base64(FILE *out)
{
    struct encoder *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->out = out;
    FILE *file =
        fopencookie(e, "w", (cookie_io_functions_t){.write = write_base64, .close = finish_base64});
    if (!file)
        free(e);
    return file;
}

/* ---- gzip (RFC 1952) ------------------------------------------------------------------------- */

#define WINDOW_GZIP (MAX_WBITS + 16) /* how zlib is made to write gzip's header */
#define MEMORY_LEVEL 8               /* zlib's default */

struct compressor {
    FILE *out;
    z_stream z;
    unsigned char room[64 << 10];
};

/* Errno is set on a failure. */
static bool deflate_all(struct compressor *c, int flush)
{
    do {
        c->z.next_out = c->room;
        c->z.avail_out = sizeof c->room;
        deflate(&c->z, flush);
        size_t count = sizeof c->room - c->z.avail_out;
        int before = errno; /* perhaps why an earlier write failed */
        errno = 0;
        if (fwrite(c->room, 1, count, c->out) != count) {
            errno = errno ? errno : EIO;
            return false;
        }
        errno = before;
    } while (!c->z.avail_out);
    return true;
}

static ssize_t compress_some(void *cookie, const char *data, size_t size)
{
    struct compressor *c = cookie;
    size_t left = size;
    while (left) {
        uInt now = left > 1u << 30 ? 1u << 30 : (uInt)left;
        c->z.next_in = (unsigned char *)(uintptr_t)data;
        c->z.avail_in = now;
        if (!deflate_all(c, Z_NO_FLUSH))
            return 0; /* an error, to stdio */
        data += now;
        left -= now;
    }
    return (ssize_t)size;
}

static int finish_compression(void *cookie)
{
    PROF_FREED struct compressor *c = cookie;
    c->z.next_in = NULL;
    c->z.avail_in = 0;
    bool ok = deflate_all(c, Z_FINISH);
    int saved = errno;
    deflateEnd(&c->z);
    errno = saved;
    return ok ? 0 : -1;
}

static FILE *open_gzip(FILE *out, int level)
{
    struct compressor *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->out = out;
    if (deflateInit2(&c->z, level, Z_DEFLATED, WINDOW_GZIP, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
        free(c);
        return NULL;
    }
    FILE *file = fopencookie(
        c, "w", (cookie_io_functions_t){.write = compress_some, .close = finish_compression});
    if (!file) {
        deflateEnd(&c->z);
        free(c);
    }
    return file;
}

FILE *prof_report_gzip(FILE *out)
{
    return open_gzip(out, Z_DEFAULT_COMPRESSION);
}

/* Of a trace of 100 MB level 6 leaves 9.8 MB in 1.6 s, level 3 11.9 MB in 0.8 s. */
FILE *prof_report_gzip_fast(FILE *out)
{
    return open_gzip(out, 3);
}
