/* From one frame's registers to its caller's by a row of the tables (cfi.c): the frame's address,
 * then each register from where the row says it is. */
#include <stddef.h>

#include "collectors/stacks/cfi.h"
#include "collectors/stacks/expression.h"

static bool evaluate_block(const struct cfi_tables *tables, int64_t offset, const uint64_t *initial,
                           const struct cfi_registers *registers, cfi_read *read, void *context,
                           uint64_t *value)
{
    uint64_t bytes;
    const unsigned char *code = cfi_block(tables, offset, &bytes);
    return code && cfi_evaluate(code, bytes, initial, registers, read, context, value);
}

/* What a call leaves as it was (System V ABI). */
#define KEPT_BY_CALLS                                                                              \
    (1u << CFI_RBX | 1u << CFI_RBP | 1u << CFI_R12 | 1u << CFI_R13 | 1u << CFI_R14 | 1u << CFI_R15)

/* The caller's value of one register; false when it is not known. */
static bool recover(const struct cfi_tables *tables, const struct cfi_row *row, unsigned number,
                    uint64_t cfa, const struct cfi_registers *registers, cfi_read *read,
                    void *context, uint64_t *value)
{
    int64_t rule = row->value[number];
    uint64_t from = number;
    switch (row->where[number]) {
    case CFI_UNSAID:
        if (!(KEPT_BY_CALLS & 1u << number))
            return false;
        break;
    case CFI_SAME:
        break;
    case CFI_SAVED:
        return read(context, cfa + (uint64_t)rule, value);
    case CFI_OFFSET:
        *value = cfa + (uint64_t)rule;
        return true;
    case CFI_REGISTER:
        from = (uint64_t)rule;
        break;
    case CFI_SAVED_BY:
        return evaluate_block(tables, rule, &cfa, registers, read, context, value) &&
               read(context, *value, value);
    case CFI_EXPRESSION:
        return evaluate_block(tables, rule, &cfa, registers, read, context, value);
    default:
        return false;
    }
    if (from >= CFI_REGISTERS || !(registers->known & 1u << from))
        return false;
    *value = registers->value[from];
    return true;
}

static bool find_cfa(const struct cfi_tables *tables, const struct cfi_row *row,
                     const struct cfi_registers *registers, cfi_read *read, void *context,
                     uint64_t *cfa)
{
    if (row->cfa_where == CFI_EXPRESSION)
        return evaluate_block(tables, row->cfa_value, NULL, registers, read, context, cfa);
    if (row->cfa_register >= CFI_REGISTERS || !(registers->known & 1u << row->cfa_register))
        return false;
    *cfa = registers->value[row->cfa_register] + (uint64_t)row->cfa_value;
    return true;
}

enum cfi_stepped cfi_step(const struct cfi_tables *tables, const struct cfi_row *row,
                          struct cfi_registers *registers, cfi_read *read, void *context)
{
    struct cfi_registers caller = {.known = 0};
    uint64_t cfa;
    if (row->where[CFI_RIP] == CFI_UNDEFINED)
        return CFI_OUTERMOST;
    if (!find_cfa(tables, row, registers, read, context, &cfa))
        return CFI_FAILED;
    for (unsigned i = 0; i < CFI_REGISTERS; i++) {
        if (recover(tables, row, i, cfa, registers, read, context, &caller.value[i]))
            caller.known |= 1u << i;
    }
    if (row->where[CFI_RSP] == CFI_UNSAID) {
        caller.value[CFI_RSP] = cfa;
        caller.known |= 1u << CFI_RSP;
    }
    if ((caller.known & (1u << CFI_RSP | 1u << CFI_RIP)) != (1u << CFI_RSP | 1u << CFI_RIP))
        return CFI_FAILED;
    *registers = caller;
    return CFI_STEPPED;
}
