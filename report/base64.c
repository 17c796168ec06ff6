/* Base64 (RFC 4648, section 4) behind a FILE; see base64.h. Three bytes become four characters of
 * an alphabet without '<', '&' or quotes, so that the text can stand inside markup as it is. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "report/base64.h"

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
    struct encoder *e = cookie;
    char text[4];
    size_t count = 0;
    if (e->rest_count) {
        group(e->rest, e->rest_count, text);
        count = sizeof text;
    }
    errno = 0;
    int result = fwrite(text, 1, count, e->out) == count ? 0 : -1;
    int saved = errno ? errno : EIO;
    free(e);
    errno = result ? saved : 0;
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
