/* Status texts and error formatting; see error.h. The only place of libprof that turns errno into
 * words, so that every message has the same shape. */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "libprof/base/error.h"

static const char *const status_text[] = {
#define X(name, text) [PROF_##name] = text,
    PROF_STATUS_MAP(X)
#undef X
};

const char *prof_status_text(enum prof_status status)
{
    if ((unsigned)status >= sizeof status_text / sizeof status_text[0])
        return "unknown status";
    return status_text[status];
}

static void fill_error(struct prof_error *err, enum prof_status status, const char *format,
                       va_list args)
{
    err->status = status;
    vsnprintf(err->message, sizeof err->message, format, args);
}

static _Atomic unsigned noted; /* a bit for each status */

void prof_note(enum prof_status status)
{
    atomic_fetch_or(&noted, 1u << status);
}

bool prof_take_note(enum prof_status status)
{
    return atomic_fetch_and(&noted, ~(1u << status)) >> status & 1;
}

enum prof_status prof_fail(struct prof_error *err, enum prof_status status, const char *format, ...)
{
    int saved = errno;
    if (err) {
        va_list args;
        va_start(args, format);
        fill_error(err, status, format, args);
        va_end(args);
    } else {
        prof_note(status);
    }
    errno = saved;
    return status;
}

bool prof_close_stream(FILE *stream)
{
    bool lost = ferror(stream);
    return fclose(stream) == 0 && !lost;
}

enum prof_status prof_fail_errno(struct prof_error *err, enum prof_status status,
                                 const char *format, ...)
{
    int saved = errno ? errno : EIO; /* a stream that failed keeps no reason */
    if (saved == ENOSPC || saved == EDQUOT)
        status = PROF_FULL;
    if (err) {
        va_list args;
        va_start(args, format);
        fill_error(err, status, format, args);
        va_end(args);
        size_t used = strlen(err->message);
        char reason[128];
        snprintf(err->message + used, sizeof err->message - used, ": %s%s",
                 strerror_r(saved, reason, sizeof reason),
                 saved == EMFILE  ? ": raise the limit (ulimit -n)"
                 : saved == EFBIG ? ": raise the limit of file sizes (ulimit -f)"
                                  : "");
    } else {
        prof_note(status);
    }
    errno = saved;
    return status;
}
