/* Status texts and error formatting; see error.h. The only place of libprof that turns errno into
 * words, so that every message has the same shape. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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

/* The first sentence of each status since its note was taken. */
static pthread_mutex_t note_lock = PTHREAD_MUTEX_INITIALIZER;
static struct prof_error notes[sizeof status_text / sizeof status_text[0]];

void prof_note_error(const struct prof_error *err)
{
    pthread_mutex_lock(&note_lock);
    struct prof_error *note = &notes[err->status];
    if (!note->message[0])
        *note = *err;
    note->status = err->status;
    pthread_mutex_unlock(&note_lock);
}

void prof_note(enum prof_status status)
{
    prof_note_error(&(struct prof_error){.status = status});
}

bool prof_take_note(enum prof_status status, struct prof_error *err)
{
    pthread_mutex_lock(&note_lock);
    struct prof_error note = notes[status];
    notes[status] = (struct prof_error){0};
    pthread_mutex_unlock(&note_lock);
    if (err)
        *err = note;
    return note.status != PROF_OK;
}

enum prof_status prof_fail(struct prof_error *err, enum prof_status status, const char *format, ...)
{
    int saved = errno;
    struct prof_error unwanted;
    va_list args;
    va_start(args, format);
    fill_error(err ? err : &unwanted, status, format, args);
    va_end(args);
    if (!err)
        prof_note_error(&unwanted);
    errno = saved;
    return status;
}

bool prof_close_stream(FILE *stream)
{
    bool lost = ferror(stream);
    return fclose(stream) == 0 && !lost;
}

struct memory {
    char **text;
    size_t *size, room;
    bool lost;
};

static ssize_t add_to_memory(void *context, const char *data, size_t bytes)
{
    struct memory *memory = context;
    size_t wanted = *memory->size + bytes + 1;
    if (wanted > memory->room) {
        size_t room = wanted > 2 * memory->room ? wanted : 2 * memory->room;
        char *more = memory->lost ? NULL : realloc(*memory->text, room);
        if (!more) {
            memory->lost = true;
            return 0;
        }
        *memory->text = more;
        memory->room = room;
    }
    memcpy(*memory->text + *memory->size, data, bytes);
    *memory->size += bytes;
    (*memory->text)[*memory->size] = '\0';
    return (ssize_t)bytes;
}

static int close_memory(void *context)
{
    struct memory *memory = context;
    bool lost = memory->lost;
    free(memory);
    return lost ? EOF : 0;
}

FILE *prof_open_memory(char **text, size_t *size)
{
    struct memory *memory = malloc(sizeof *memory);
    if (!memory)
        return NULL;
    *memory = (struct memory){.text = text, .size = size};
    *size = 0;
    FILE *stream =
        add_to_memory(memory, "", 0) < 0 || memory->lost
            ? NULL
            : fopencookie(memory, "w",
                          (cookie_io_functions_t){.write = add_to_memory, .close = close_memory});
    if (!stream)
        free(memory);
    return stream;
}

enum prof_status prof_out_of_memory(struct prof_error *err)
{
    return prof_fail(err, PROF_NOMEM, "out of memory");
}

enum prof_status prof_fail_errno(struct prof_error *err, enum prof_status status,
                                 const char *format, ...)
{
    int saved = errno ? errno : EIO; /* a stream that failed keeps no reason */
    if (saved == ENOSPC || saved == EDQUOT)
        status = PROF_FULL;
    struct prof_error unwanted, *to = err ? err : &unwanted;
    va_list args;
    va_start(args, format);
    fill_error(to, status, format, args);
    va_end(args);
    size_t used = strlen(to->message);
    char reason[128];
    snprintf(to->message + used, sizeof to->message - used, ": %s%s",
             strerror_r(saved, reason, sizeof reason),
             saved == EMFILE  ? ": raise the limit (ulimit -n)"
             : saved == EFBIG ? ": raise the limit of file sizes (ulimit -f)"
                              : "");
    if (!err)
        prof_note_error(to);
    errno = saved;
    return status;
}
