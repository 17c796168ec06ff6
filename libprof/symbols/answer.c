/* Writes the answer, buffered. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "libprof/base/array.h"
#include "libprof/base/cxx_name.h"
#include "libprof/symbols/symbols.h"

#define FLUSH_BYTES (64u << 10)

static void flush_answer(struct answer *answer)
{
    for (size_t at = 0; at < answer->count && !answer->failed;) {
        ssize_t n = send(answer->fd, answer->buffer + at, answer->count - at, MSG_NOSIGNAL);
        if (n > 0)
            at += (size_t)n;
        else if (errno != EINTR)
            answer->failed = true;
    }
    answer->count = 0;
}

static void append_answer(struct answer *answer, const void *data, size_t bytes)
{
    if (!prof_array_room(&answer->buffer, &answer->capacity, answer->count + bytes, 1)) {
        answer->failed = true;
        return;
    }
    if (bytes)
        memcpy(answer->buffer + answer->count, data, bytes);
    answer->count += bytes;
}

static void append_answer_record(struct answer *answer, uint32_t type, const void *first,
                                 size_t first_bytes, const void *second, size_t second_bytes)
{
    struct symbols_record record = {type, (uint32_t)(first_bytes + second_bytes)};
    append_answer(answer, &record, sizeof record);
    append_answer(answer, first, first_bytes);
    append_answer(answer, second, second_bytes);
    if (answer->count >= FLUSH_BYTES)
        flush_answer(answer);
}

/* The number of a text, sent when it is new; 0 for NULL and "". */
static uint32_t answer_text(struct answer *answer, const char *text)
{
    size_t length = text ? strnlen(text, SYMBOLS_MOST_TEXT) : 0;
    if (!length)
        return 0;
    uint32_t *known = prof_names_get(&answer->texts, text, length);
    if (known)
        return *known;
    uint32_t number = (uint32_t)answer->texts.count + 1;
    if (!prof_names_put(&answer->texts, text, length, number)) {
        answer->failed = true;
        return 0;
    }
    append_answer_record(answer, SYMBOLS_TEXT, text, length, NULL, 0);
    return number;
}

/* Parts and copies of a function that the compiler made go by its own name. */
static void cut_clone(char *name)
{
    static const char *const marks[] = {" [clone ", ".isra.", ".constprop.",
                                        ".part.",   ".cold",  ".lto_priv."};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        char *at = strstr(name, marks[i]);
        if (at && at != name)
            *at = '\0';
    }
}

void answer_level(struct answer *answer, const char *function, const char *file, uint32_t line)
{
    if (answer->level_count == SYMBOLS_MOST_LEVELS)
        return;
    char *readable = function ? prof_demangle(function) : NULL;
    if (function && !readable)
        readable = strdup(function);
    if (readable)
        cut_clone(readable);
    struct symbols_level *level = &answer->levels[answer->level_count++];
    level->function = answer_text(answer, readable);
    level->file = answer_text(answer, file);
    level->line = line;
    free(readable);
}

void answer_frame(struct answer *answer, uint32_t index)
{
    if (answer->level_count)
        append_answer_record(answer, SYMBOLS_FRAME, &index, sizeof index, answer->levels,
                             answer->level_count * sizeof *answer->levels);
    answer->level_count = 0;
}

void answer_state(struct answer *answer, enum symbols_quality quality, const char *text)
{
    uint32_t number = quality;
    append_answer_record(answer, SYMBOLS_STATE, &number, sizeof number, text, strlen(text));
}

bool answer_end(struct answer *answer)
{
    append_answer_record(answer, SYMBOLS_END, NULL, 0, NULL, 0);
    flush_answer(answer);
    prof_names_free(&answer->texts);
    free(answer->buffer);
    return !answer->failed;
}
