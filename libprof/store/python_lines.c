/* CPython keeps lines as a list of stretches of code, each with its line as a difference from the
 * one before. The collector copies that list and perfkit walks it here, after the fact: the traced
 * program pays for an instruction's offset only. */
#include <stdbool.h>

#include "libprof/store/python_lines.h"

#define VERSION_3_11 0x030bu

struct table {
    const uint8_t *at, *end;
};

static uint32_t line_or_zero(int64_t line)
{
    return line > 0 && line < UINT32_MAX ? (uint32_t)line : 0;
}

/* Pairs: bytes of code, difference of lines (-128 = no line). */
static uint32_t line_of_pairs(struct table table, uint32_t first_line, uint32_t offset)
{
    int64_t line = first_line;
    for (uint64_t end = 0; table.end - table.at >= 2; table.at += 2) {
        int difference = (int8_t)table.at[1];
        end += table.at[0];
        if (difference != -128)
            line += difference;
        if (offset < end)
            return difference == -128 ? 0 : line_or_zero(line);
    }
    return 0;
}

/* Six bits a byte, the lowest first; a set seventh bit says that more follow. */
static bool read_varint_six(struct table *table, uint32_t *value)
{
    *value = 0;
    for (unsigned shift = 0; table->at < table->end && shift < 30; shift += 6) {
        uint8_t byte = *table->at++;
        *value |= (uint32_t)(byte & 63u) << shift;
        if (!(byte & 64u))
            return true;
    }
    return false;
}

enum {
    SHORT_LAST = 9,
    ONE_LINE_FIRST = 10,
    ONE_LINE_LAST = 12,
    NO_COLUMN = 13,
    LONG = 14,
    NONE = 15
};

/* What an entry's first byte says of the bytes that follow: the difference of lines is read,
 * columns are skipped. */
static bool read_difference(struct table *table, unsigned kind, int64_t *difference)
{
    *difference = 0;
    if (kind <= SHORT_LAST || (kind >= ONE_LINE_FIRST && kind <= ONE_LINE_LAST)) {
        ptrdiff_t columns = kind <= SHORT_LAST ? 1 : 2;
        if (table->end - table->at < columns)
            return false;
        table->at += columns;
        *difference = kind <= SHORT_LAST ? 0 : (int64_t)kind - ONE_LINE_FIRST;
        return true;
    }
    uint32_t value;
    if (kind == NONE)
        return true;
    if (!read_varint_six(table, &value))
        return false;
    *difference = value & 1u ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
    for (unsigned i = 0; kind == LONG && i < 3; i++) {
        if (!read_varint_six(table, &value))
            return false;
    }
    return true;
}

static uint32_t line_of_entries(struct table table, uint32_t first_line, uint32_t offset)
{
    int64_t line = first_line;
    for (uint64_t end = 0; table.at < table.end;) {
        uint8_t head = *table.at++;
        unsigned kind = head >> 3 & 15u;
        int64_t difference;
        if (!(head & 128u) || !read_difference(&table, kind, &difference))
            return 0;
        line += difference;
        end += ((head & 7u) + 1) * 2;
        if (offset < end)
            return kind == NONE ? 0 : line_or_zero(line);
    }
    return 0;
}

uint32_t prof_python_line(uint32_t version, const uint8_t *table, size_t bytes, uint32_t first_line,
                          uint32_t offset)
{
    struct table whole = {table, table + bytes};
    if (offset == UINT32_MAX)
        return first_line;
    return version < VERSION_3_11 ? line_of_pairs(whole, first_line, offset)
                                  : line_of_entries(whole, first_line, offset);
}
