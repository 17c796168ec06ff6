/* Names of Python, which are str objects in their compact forms, and prints of code objects. */
#include "collectors/python/interpreter.h"

/* One character as UTF-8; the interpreter's stand-ins for bytes of undecodable file names become
 * those bytes again. Returns the bytes written, at most 4. */
static size_t encode_code_utf8(uint32_t c, char *to)
{
    if (c < 0x80 || (c >= 0xdc80 && c <= 0xdcff)) {
        to[0] = (char)(c & 0xff);
        return 1;
    }
    if (c > 0x10ffff)
        c = 0xfffd; /* of memory that is no text */
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

/* ---- prints of code -------------------------------------------------------------------------- */

/* A polynomial in an odd constant: prints are compared whole, so its weak low bits do no harm. */
static inline uint64_t mix_code_hash(uint64_t hash, uint64_t word)
{
    return (hash + word) * 0x9e3779b97f4a7c15ull;
}

static inline uint64_t load_code_word(python_reader read, uint64_t base, unsigned offset)
{
    uint64_t word = 0;
    python_load(read, base + offset, &word, sizeof word);
    return word;
}

/* The contents of a bytes object: the first 1024 and the last 8 bytes of them. */
static uint64_t mix_bytes(uint64_t hash, python_reader read, uint64_t object)
{
    uint64_t size = load_code_word(read, object, PYTHON_OBJECT_SIZE);
    hash = mix_code_hash(hash, size);
    uint64_t whole = size < 1024 ? size & ~7ull : 1024;
    for (uint64_t at = 0; at < whole; at += 8)
        hash = mix_code_hash(hash, load_code_word(read, object + at, PYTHON_BYTES_DATA));
    return size < 8
               ? hash
               : mix_code_hash(hash, load_code_word(read, object + size - 8, PYTHON_BYTES_DATA));
}

uint64_t python_code_print(const struct python_layout *layout, python_reader read, uint64_t code)
{
    uint64_t lines = load_code_word(read, code, layout->code_lines);
    uint64_t hash =
        mix_code_hash(lines, load_code_word(read, code, layout->code_first_line) & UINT32_MAX);
    if (layout->code_version != PYTHON_NONE) {
        uint32_t version = 0;
        python_load(read, code + layout->code_version, &version, sizeof version);
        if (version) /* 0 when the numbers are used up */
            return mix_code_hash(hash, version);
    }
    uint64_t name = load_code_word(read, code, layout->code_name),
             file = load_code_word(read, code, layout->code_file);
    hash = mix_code_hash(mix_code_hash(hash, name), load_code_word(read, name, PYTHON_TEXT_HASH));
    hash = mix_code_hash(mix_code_hash(hash, file), load_code_word(read, file, PYTHON_TEXT_HASH));
    hash = mix_code_hash(hash, load_code_word(read, file, PYTHON_TEXT_LENGTH));
    hash = mix_code_hash(hash, load_code_word(read, code, layout->code_constants));
    hash = mix_code_hash(hash, load_code_word(read, code, layout->code_names));
    return mix_bytes(hash, read, lines);
}
