/* Unwind tables of any content: the rows that come out, and steps by them with any registers and
 * any stack. Input: distance of the search table's header, addresses to ask for, the segment. */
#include <stdlib.h>
#include <string.h>

#include "collectors/stacks/cfi.h"
#include "tests/fuzz/image.h"

#define LOW 0x10000u
#define ASKED 4u

struct input {
    uint16_t header;
    uint16_t asked[ASKED];
    uint16_t known;
    uint32_t values;
};

struct stack {
    uint64_t words;
    unsigned left;
};

static bool read_word(void *context, uint64_t address, uint64_t *value)
{
    struct stack *stack = context;
    if (stack->left == 0 || address % 8 != 0)
        return false;
    stack->left--;
    *value = LOW + (stack->words ^ address) % 0x20000;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input;
    if (size < sizeof input)
        return 0;
    memcpy(&input, data, sizeof input);
    size_t bytes = size - sizeof input;
    unsigned char *segment = malloc(bytes + 1); /* its own, so that its end is guarded */
    if (!segment)
        return 0;
    unsigned char *exact = bytes ? realloc(segment, bytes) : segment;
    memcpy(exact, data + sizeof input, bytes);
    struct cfi_tables tables = {exact, LOW, LOW + bytes, LOW + input.header};
    for (unsigned i = 0; i < ASKED; i++) {
        struct cfi_row row;
        struct cfi_registers registers = {.known = input.known | 1u << CFI_RSP};
        struct stack stack = {input.values, 100};
        for (unsigned r = 0; r < CFI_REGISTERS; r++)
            registers.value[r] = LOW + (uint64_t)input.values * (r + 1) % 0x20000;
        if (cfi_find(&tables, (uint64_t)LOW + input.asked[i] * 4u - 0x8000, &row))
            cfi_step(&tables, &row, &registers, read_word, &stack);
    }
    uint64_t function;
    for (uint64_t at = LOW, next; cfi_record(&tables, at, &function, &next); at = next) {
        if (next <= at || next > tables.high)
            abort();
    }
    free(exact);
    return 0;
}
