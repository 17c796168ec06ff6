/* Packs the timeline's columns and writes them compressed into the page; see html_pack.h.
 * Differences of neighbours are small and repeat, so that an event takes a few bytes where JSON
 * took 30. */
#include <errno.h>
#include <string.h>

#include "report/base64.h"
#include "report/gzip.h"
#include "report/html_pack.h"

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
    if (!prof_array_reserve(&pack->head, length)) {
        pack->failed = true;
        return;
    }
    memcpy(pack->head.data + pack->head.count, json, length);
    pack->head.count += length;
}

/* Closes `file` too; errno tells what went wrong. */
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
        return prof_fail_errno(err, PROF_IO, "cannot write the report");
    return PROF_OK;
}

void prof_html_pack_free(struct prof_html_pack *pack)
{
    prof_array_free(&pack->head);
    prof_array_free(&pack->columns);
}
