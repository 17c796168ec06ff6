/* Display width, cleaning and shortening of names; see utf8.h. The C library's wcwidth is not used:
 * it obeys the locale, and a report made by cron (LC_ALL=C) must align like one made by hand. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/error.h"
#include "libprof/base/cxx_name.h"
#include "libprof/base/utf8.h"

struct span {
    uint32_t first, last;
};

/* Blocks of combining marks and other characters without width. */
static const struct span zero_width[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489},   {0x0591, 0x05bd}, {0x0610, 0x061a}, {0x064b, 0x065f},
    {0x06d6, 0x06dc}, {0x0730, 0x074a},   {0x0900, 0x0902}, {0x093c, 0x093c}, {0x0941, 0x0948},
    {0x0e31, 0x0e31}, {0x0e34, 0x0e3a},   {0x0e47, 0x0e4e}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},
    {0x200b, 0x200d}, {0x20d0, 0x20ff},   {0x302a, 0x302d}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
    {0xfeff, 0xfeff}, {0xe0100, 0xe01ef},
};

/* Blocks that East Asian Width calls wide or full width, and emoji. */
static const struct span double_width[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x23e9, 0x23ec},   {0x2e80, 0x303e},
    {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xa000, 0xa4cf},
    {0xa960, 0xa97c},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
    {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x16fe0, 0x18cff}, {0x1b000, 0x1b2ff},
    {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1faff}, {0x20000, 0x3fffd},
};

/* Reorder or break lines; shown as escapes. */
static const struct span unsafe[] = {
    {0x0000, 0x001f}, {0x007f, 0x009f}, {0x061c, 0x061c}, {0x200e, 0x200f},
    {0x2028, 0x202e}, {0x2066, 0x206f}, {0xfff9, 0xfffb},
};

#define IN(spans, code) in_spans(spans, sizeof(spans) / sizeof *(spans), code)

static bool in_spans(const struct span *spans, size_t count, uint32_t code)
{
    for (size_t i = 0; i < count && code >= spans[i].first; i++)
        if (code <= spans[i].last)
            return true;
    return false;
}

size_t prof_report_utf8(const char *text, size_t left, uint32_t *code)
{
    const unsigned char *s = (const unsigned char *)text;
    if (!left)
        return 0;
    *code = s[0];
    if (s[0] < 0x80)
        return 1;
    size_t length = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (!length || length > left)
        return 0;
    uint32_t value = s[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (s[i] & 0x3f);
    }
    if ((length == 3 && value < 0x800) || (length == 4 && value < 0x10000) || value > 0x10ffff ||
        (value >= 0xd800 && value < 0xe000))
        return 0;
    *code = value;
    return length;
}

/* Bytes of the sequence at text[i], 0 when there is none. */
static size_t sequence_at(const char *text, size_t length, size_t i)
{
    uint32_t code;
    return (unsigned char)text[i] < 0x80 ? 1 : prof_report_utf8(text + i, length - i, &code);
}

bool prof_is_utf8(const char *text, size_t length)
{
    size_t bytes, i = 0;
    while (i < length && (bytes = sequence_at(text, length, i)))
        i += bytes;
    return i == length;
}

char *prof_escape_utf8(const char *text, size_t length)
{
    char *copy = malloc(4 * length + 1), *to = copy;
    for (size_t i = 0, bytes; copy && i < length; i += bytes ? bytes : 1) {
        bytes = sequence_at(text, length, i);
        if (bytes)
            to = mempcpy(to, text + i, bytes);
        else
            to += sprintf(to, "\\x%02x", (unsigned char)text[i]);
    }
    if (copy)
        *to = '\0';
    return copy;
}

int prof_report_head(const char *text, size_t most)
{
    size_t length = strnlen(text, most), start = length;
    uint32_t code;
    if (length < most || !text[length])
        return (int)length; /* nothing is cut */
    while (start && length - start < 3 && (text[start] & 0xc0) == 0x80)
        start--;
    size_t bytes = prof_report_utf8(text + start, strnlen(text + start, 4), &code);
    return (int)(start + bytes > length ? start : length);
}

static size_t cells_of(uint32_t code)
{
    if (code < 0x300)
        return 1;
    return IN(zero_width, code) ? 0 : IN(double_width, code) ? 2 : 1;
}

static size_t cells_between(const char *text, const char *end)
{
    size_t cells = 0;
    while (text < end) {
        uint32_t code;
        size_t bytes = prof_report_utf8(text, (size_t)(end - text), &code);
        cells += bytes ? cells_of(code) : 1;
        text += bytes ? bytes : 1;
    }
    return cells;
}

size_t prof_report_cells(const char *text)
{
    return cells_between(text, text + strlen(text));
}

#define CLEAN_MAX 16 /* bytes that a character becomes: "\xNN", "\u{NNNNNN}" */

size_t prof_report_clean_into(const char *text, char *clean, size_t room)
{
    size_t length = strlen(text), n = 0;
    for (size_t i = 0; i < length && n + CLEAN_MAX < room;) {
        uint32_t code;
        size_t bytes = prof_report_utf8(text + i, length - i, &code);
        if (!bytes)
            n += (size_t)sprintf(clean + n, "\\x%02x", (unsigned)(unsigned char)text[i]);
        else if (code == '\n' || code == '\t' || code == '\r')
            n += (size_t)sprintf(clean + n, "\\%c", code == '\n' ? 'n' : code == '\t' ? 't' : 'r');
        else if (!IN(unsafe, code))
            memcpy(clean + n, text + i, bytes), n += bytes;
        else
            n += (size_t)sprintf(clean + n, code < 0x80 ? "\\x%02x" : "\\u{%x}", code);
        i += bytes ? bytes : 1;
    }
    clean[n] = 0;
    return n;
}

char *prof_report_clean(const char *text)
{
    if (!text)
        text = "n/a";
    else if (!*text)
        text = "(empty)";
    size_t room = strlen(text) * 4 + CLEAN_MAX + 1; /* one byte makes at most 4, three 8 */
    char *clean = malloc(room);
    if (clean)
        prof_report_clean_into(text, clean, room);
    else
        prof_note(PROF_NOMEM);
    return clean;
}

/* First byte after as many whole characters from `text` as fit `cells`. */
static const char *copy_head(const char *text, const char *end, size_t cells)
{
    size_t used = 0;
    while (text < end) {
        uint32_t code;
        size_t bytes = prof_report_utf8(text, (size_t)(end - text), &code);
        size_t wide = bytes ? cells_of(code) : 1;
        if (used + wide > cells)
            break;
        used += wide;
        text += bytes ? bytes : 1;
    }
    return text;
}

/* First byte of the longest tail that fits `cells`. */
static const char *copy_tail(const char *text, const char *end, size_t cells)
{
    const char *at = text;
    size_t left = cells_between(text, end);
    while (left > cells && at < end) {
        uint32_t code;
        size_t bytes = prof_report_utf8(at, (size_t)(end - at), &code);
        left -= bytes ? cells_of(code) : 1;
        at += bytes ? bytes : 1;
    }
    uint32_t code;
    size_t bytes; /* no combining mark without its letter */
    while (at < end && (bytes = prof_report_utf8(at, (size_t)(end - at), &code)) != 0 &&
           !cells_of(code))
        at += bytes;
    return at;
}

/* How much of `room` the end of a cut text gets: two fifths, or all of " (train.py:36)" where a
 * function has enough left to be known by. */
static size_t tail_room(const char *name, size_t room)
{
    enum { LEAST_FUNCTION = 6 };
    const char *file = strrchr(name, ' ');
    size_t cells = file ? prof_report_cells(file) : 0;
    bool whole = file && file[1] == '(' && file[strlen(file) - 1] == ')';
    return whole && cells + LEAST_FUNCTION <= room && cells > room * 2 / 5 ? cells : room * 2 / 5;
}

/* Cut a clean text in place of the caller's: frees it and returns the shorter one. */
static char *cut_middle(char *clean, char *name, size_t cells)
{
    static const char dots[] = "...";
    if (prof_report_cells(name) <= cells) {
        memmove(clean, name, strlen(name) + 1);
        return clean;
    }
    size_t room = cells - strlen(dots), tail_cells = tail_room(name, room);
    const char *end = name + strlen(name);
    const char *head = copy_head(name, end, room - tail_cells);
    const char *tail = copy_tail(head, end, tail_cells);
    while (head > name && head[-1] == '.') /* the text was cut before: its dots and ours are one */
        head--;
    while (*tail == '.')
        tail++;
    size_t head_bytes = (size_t)(head - name), tail_bytes = (size_t)(end - tail);
    char *cut = malloc(head_bytes + sizeof dots + tail_bytes);
    if (cut) {
        memcpy(cut, name, head_bytes);
        memcpy(cut + head_bytes, dots, strlen(dots));
        memcpy(cut + head_bytes + strlen(dots), tail, tail_bytes + 1);
    } else {
        prof_note(PROF_NOMEM);
    }
    free(clean);
    return cut;
}

char *prof_report_cut(const char *text, size_t cells)
{
    char *clean = prof_report_clean(text);
    return clean ? cut_middle(clean, clean, cells < 8 ? 8 : cells) : NULL;
}

char *prof_report_fit(const char *text, size_t cells)
{
    char *clean = prof_report_clean(text);
    if (!clean)
        return NULL;
    if (cells < 8)
        cells = 8;
    char *name = clean;
    if (prof_report_cells(name) > cells)
        name += prof_name_without_type(name) - name;
    if (prof_report_cells(name) > cells)
        name[prof_name_without_arguments(name)] = 0;
    char *reduced = prof_report_cells(name) > cells ? prof_name_reduced(name, cells) : NULL;
    if (reduced) {
        free(clean);
        clean = name = reduced;
    }
    return cut_middle(clean, name, cells);
}

char *prof_report_fit_apart(const char *text, const char *other, size_t cells)
{
    enum { DOTS = 3, BEFORE = 4 };
    PROF_FREED char *clean = prof_report_clean(text), *against = prof_report_clean(other);
    if (!clean || !against)
        return NULL;
    size_t same = 0;
    while (clean[same] && clean[same] == against[same])
        same++;
    while (same && ((unsigned char)clean[same] & 0xc0) == 0x80) /* to where the character starts */
        same--;
    const char *differ = clean + same, *end = clean + strlen(clean);
    const char *name = prof_name_without_type(clean);
    if (name > differ)
        name = clean;
    cells = cells < 4 * DOTS ? 4 * DOTS : cells;
    const char *head = copy_head(name, differ, cells / 3);
    const char *from = copy_tail(head, differ, BEFORE);
    size_t room = cells - cells_between(name, head) - (from > head ? DOTS : 0);
    const char *to = copy_head(from, end, room);
    if (to < end)
        to = copy_head(from, end, room - DOTS);
    else
        from = copy_tail(head, end, room);
    size_t bytes = (size_t)(head - name) + (size_t)(to - from) + 2 * DOTS + 1;
    char *cut = malloc(bytes);
    if (!cut)
        prof_note(PROF_NOMEM);
    else
        snprintf(cut, bytes, "%.*s%s%.*s%s", (int)(head - name), name, from > head ? "..." : "",
                 (int)(to - from), from, to < end ? "..." : "");
    return cut;
}

#define MOST_PATTERN_BYTES 1000u
#define MOST_COPIES 1000u /* of a part of the pattern, by {n} within {n} */

/* The pattern is read as regcomp reads it, or more strictly: a list that has a class in it ends
 * here at the class. */
const char *prof_pattern_excess(const char *pattern)
{
    unsigned long long copies = 1;
    bool in_list = false;
    if (strlen(pattern) > MOST_PATTERN_BYTES)
        return "it is longer than 1000 bytes";
    for (const char *at = pattern; *at; at++) {
        if (in_list) { /* between [ and ], where a ] in front means itself */
            in_list = *at != ']';
        } else if (*at == '[') {
            in_list = true;
            at += at[1] == '^';
            at += at[1] == ']';
        } else if (*at == '\\' && at[1]) {
            at++;
            if (*at >= '1' && *at <= '9')
                return "it has a back-reference";
        } else if (*at == '{') {
            unsigned long least = strtoul(at + 1, NULL, 10), most = least;
            const char *comma = at + 1 + strspn(at + 1, "0123456789");
            if (*comma == ',')
                most = strtoul(comma + 1, NULL, 10);
            most = most > least ? most : least;
            if (most > MOST_COPIES || (copies *= most ? most : 1) > MOST_COPIES)
                return "it repeats too often";
        }
    }
    return NULL;
}
