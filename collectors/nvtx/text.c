/* Wide strings to UTF-8. The W forms of NVTX take wchar_t, which on Linux is one 32-bit code point;
 * what is no code point (a surrogate, a value above U+10FFFF) becomes U+FFFD, so that everything
 * that reaches the capture is valid UTF-8. Allocates nothing from the heap. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "collectors/nvtx/nvtx.h"
#include "libprof/wire/operator_name.h"

static uint32_t code_point(wchar_t wide)
{
    uint32_t code = (uint32_t)wide;
    return code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0xfffd : code;
}

static size_t encoded_bytes(uint32_t code)
{
    return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

static char *encode_nvtx_utf8(char *at, uint32_t code)
{
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t bytes = encoded_bytes(code);

    if (bytes == 1) {
        *at = (char)code;
        return at + 1;
    }
    for (size_t i = bytes - 1; i > 0; i--) {
        at[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    at[0] = (char)(lead[bytes] | code);
    return at + bytes;
}

void nvtx_narrow(struct nvtx_text *text, const wchar_t *wide)
{
    text->text = NULL;
    text->length = 0;
    text->mapping = NULL;
    if (!wide)
        return;
    size_t bytes = 0;
    for (const wchar_t *at = wide; *at; at++)
        bytes += encoded_bytes(code_point(*at));
    char *out = text->buffer;
    if (bytes > sizeof text->buffer) {
        int saved = errno;
        out = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        errno = saved;
        if (out == MAP_FAILED)
            return;
        text->mapping = out;
        text->mapping_bytes = bytes;
    }
    /* Another thread may be changing the string: never write more than was measured. */
    char *at = out;
    for (const wchar_t *from = wide; *from; from++) {
        uint32_t code = code_point(*from);
        if (encoded_bytes(code) > bytes - (size_t)(at - out))
            break;
        at = encode_nvtx_utf8(at, code);
    }
    text->text = out;
    text->length = (size_t)(at - out);
}

void nvtx_narrow_done(struct nvtx_text *text)
{
    int saved = errno;
    if (text->mapping)
        munmap(text->mapping, text->mapping_bytes);
    errno = saved;
}

/* ---- Texts of PyTorch's profiler -------------------------------------------------------------
 *
 * What PyTorch's profiler puts into the texts of its ranges (`perfkit run --pytorch` switches it
 * on), as libprof/wire/operator_name.h says. The name becomes the range's text, the sequence number
 * a field of it, and the sizes of the inputs (--pytorch=shapes) are sent once for all calls with the
 * same; the other numbers add nothing. */

bool nvtx_torch;

void nvtx_torch_start(void)
{
    char names[64];
    nvtx_torch = collector_option("pytorch", names, sizeof names);
}

size_t nvtx_torch_name(const char *text, struct nvtx_event *event)
{
    struct wire_operator_name name = wire_operator_name(text, strlen(text));
    char inputs[WIRE_INPUTS_BYTES];
    event->has_sequence = name.has_sequence;
    event->sequence = name.sequence;
    if (name.sizes)
        event->inputs = collector_string(inputs, wire_operator_inputs(&name, inputs));
    return name.length;
}
