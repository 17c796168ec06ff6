/* What PyTorch's profiler puts into the texts of its ranges (`perfkit run --pytorch` switches it
 * on): "aten::addmm, seq = 17, op_id = 93". Kept whole, every call would be a text of its own; so
 * the name becomes the range's text and the sequence number a field of it. By that number a
 * backward operator finds the forward one that it belongs to; the other number adds nothing to the
 * order. */
#include <string.h>

#include "collectors/nvtx/nvtx.h"

bool nvtx_torch;

void nvtx_torch_start(void)
{
    char names[64];
    nvtx_torch = collector_option("pytorch", names, sizeof names);
}

/* Does text[0..length) end with `label` and a number? Then it is taken off. */
static bool take_number(const char *text, size_t *length, const char *label, uint64_t *number)
{
    size_t digits = *length, name = strlen(label);
    while (digits > 0 && text[digits - 1] >= '0' && text[digits - 1] <= '9')
        digits--;
    if (digits == *length || *length - digits > 19 || digits <= name ||
        memcmp(text + digits - name, label, name) != 0)
        return false;
    *number = 0;
    for (size_t i = digits; i < *length; i++)
        *number = *number * 10 + (uint64_t)(text[i] - '0');
    *length = digits - name;
    return true;
}

size_t nvtx_torch_name(const char *text, struct nvtx_event *event)
{
    size_t length = strlen(text);
    uint64_t operation;
    take_number(text, &length, ", op_id = ", &operation);
    event->has_sequence = take_number(text, &length, ", seq = ", &event->sequence);
    return length;
}
