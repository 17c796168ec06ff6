/* Status codes and the caller-owned error of every libprof call.
 *
 * A library function that can fail returns enum prof_status and, when `err` is not NULL, fills it
 * with one sentence: what is wrong, and where possible how to fix it. Nothing in libprof
 * prints. */
#ifndef PERFKIT_BASE_ERROR_H
#define PERFKIT_BASE_ERROR_H

/* name, text */
#define PROF_STATUS_MAP(X)                                                                         \
    X(OK, "success")                                                                               \
    X(NOMEM, "out of memory")                                                                      \
    X(IO, "input/output error")                                                                    \
    X(NOTFOUND, "not found")                                                                       \
    X(EXISTS, "already exists")                                                                    \
    X(FORMAT, "not a perfkit file")                                                                \
    X(VERSION, "unsupported format version")                                                       \
    X(CORRUPT, "damaged data")                                                                     \
    X(FULL, "no space left")                                                                       \
    X(BUSY, "busy")                                                                                \
    X(INVALID, "invalid argument")                                                                 \
    X(UNSUPPORTED, "not supported here")                                                           \
    X(SQL, "database error")                                                                       \
    X(SYSTEM, "system call failed")                                                                \
    X(ACCESS, "cannot be read")

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum prof_status {
#define X(name, text) PROF_##name,
    PROF_STATUS_MAP(X)
#undef X
};

struct prof_error {
    enum prof_status status;
    char message[512]; /* always NUL-terminated; "" when status is PROF_OK */
};

/* The fixed text of a status; never NULL. */
const char *prof_status_text(enum prof_status status);

/* Fill *err (NULL allowed) with a printf-style message and return `status`, so that a failing
 * function can write `return prof_fail(err, PROF_IO, "...")`. Thread-safe; keeps errno. */
enum prof_status prof_fail(struct prof_error *err, enum prof_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As prof_fail, with ": strerror(errno)" appended; a full disk becomes PROF_FULL. */
enum prof_status prof_fail_errno(struct prof_error *err, enum prof_status status,
                                 const char *format, ...) __attribute__((format(printf, 3, 4)));

enum prof_status prof_out_of_memory(struct prof_error *err);

/* A local pointer, or array (array.h begins with the pointer), whose memory is freed where its
 * block is left, by whatever way. */
#define PROF_FREED __attribute__((cleanup(prof_freed)))
static inline void prof_freed(void *pointer)
{
    void *memory;
    memcpy(&memory, pointer, sizeof memory);
    free(memory);
}

/* Hands the status of a call that failed to the caller's caller. */
#define PROF_TRY(call)                                                                             \
    do {                                                                                           \
        enum prof_status try_status = (call);                                                      \
        if (try_status != PROF_OK)                                                                 \
            return try_status;                                                                     \
    } while (0)

/* A failure that a function has no way to return (a text for display that there is no memory for, a
 * quantile), or returns without an error to fill: kept until the writer of the result takes the
 * note of that status, which fails then. Thread-safe. */
void prof_note(enum prof_status status);
void prof_note_error(const struct prof_error *err); /* with its sentence */
/* Fills *err (NULL allowed) with the status and the first sentence noted; "" when there was none.
 */
bool prof_take_note(enum prof_status status, struct prof_error *err);

/* Close a stream that was written; true when all of it arrived. fclose alone is silent about what
 * was lost before. */
bool prof_close_stream(FILE *stream);

/* As open_memstream, whose streams forget that memory ran out in the middle. When
 * prof_close_stream returns true, *text is whole, NUL-terminated and the caller's to free; before,
 * it is not defined. *text must be NULL when this is called; free it in any case. */
FILE *prof_open_memory(char **text, size_t *size);

#endif
