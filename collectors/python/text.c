/* Names of Python: str objects in their compact forms. */
#include "collectors/python/interpreter.h"

/* One character as UTF-8; the interpreter's stand-ins for bytes of undecodable file names become
 * those bytes again. Returns the bytes written, at most 4. */
static size_t encode_code_utf8(uint32_t c, char *to)
{
    if (c < 0x80 || (c >= 0xdc80 && c <= 0xdcff)) {
        to[0] = (char)(c & 0xff);
        return 1;
    }
    size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    to[0] = (char)(lead[more] | c >> (6 * more));
    for (size_t i = 1; i <= more; i++)
        to[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
    return more + 1;
}

size_t python_text(const struct python_interpreter *it, python_reader read, uint64_t object,
                   char *text, size_t room)
{
    uint32_t state;
    uint64_t length;
    if (!python_is(read, object, it->text_type) ||
        !python_load(read, object + PYTHON_TEXT_STATE, &state, sizeof state) ||
        !python_load(read, object + PYTHON_TEXT_LENGTH, &length, sizeof length))
        return 0;
    unsigned width = state >> 2 & 7;
    bool compact = state >> 5 & 1, ascii = state >> 6 & 1;
    if (!compact || (width != 1 && width != 2 && width != 4))
        return 0;
    uint64_t at = object + (ascii ? it->layout->text_ascii : it->layout->text_compact);
    size_t used = 0;
    for (uint64_t i = 0; i < length && used + 4 <= room; i++) {
        uint32_t c = 0; /* little-endian, as every machine perfkit runs on */
        if (!python_load(read, at + i * width, &c, width))
            return 0;
        used += encode_code_utf8(c, text + used);
    }
    return used;
}
