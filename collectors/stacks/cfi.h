/* Call frame information: what .eh_frame says of where a function's caller and its registers are.
 *
 * No state, no allocation, no system call: usable in a signal handler, and outside of the process
 * whose tables they are. Tables and registers may be anything (garbled, cut short, hostile): every
 * read of a table lies within the segment that is given, every loop ends. Format: Linux Standard
 * Base, "Exception Frames" (.eh_frame, .eh_frame_hdr), and DWARF 4, chapters 2.5 and 6.4; registers
 * by the numbers of the x86-64 psABI. */
#ifndef PERFKIT_COLLECTORS_STACKS_CFI_H
#define PERFKIT_COLLECTORS_STACKS_CFI_H

#include <stdbool.h>
#include <stdint.h>

enum cfi_register_number {
    CFI_RAX,
    CFI_RDX,
    CFI_RCX,
    CFI_RBX,
    CFI_RSI,
    CFI_RDI,
    CFI_RBP,
    CFI_RSP,
    CFI_R8,
    CFI_R9,
    CFI_R10,
    CFI_R11,
    CFI_R12,
    CFI_R13,
    CFI_R14,
    CFI_R15,
    CFI_RIP, /* the return address */
    CFI_REGISTERS,
};

/* The segment that holds .eh_frame_hdr and .eh_frame. Addresses are those of the process that the
 * object is loaded in; low..high can be read here at `memory`. */
struct cfi_tables {
    const unsigned char *memory;
    uint64_t low, high;
    uint64_t header; /* address of .eh_frame_hdr */
};

enum cfi_where {
    CFI_UNSAID,     /* the table says nothing: as the ABI has it for a call */
    CFI_SAME,       /* not changed by the function */
    CFI_UNDEFINED,  /* lost; as the return address: there is no caller */
    CFI_SAVED,      /* in memory at CFA + value */
    CFI_OFFSET,     /* it is CFA + value */
    CFI_REGISTER,   /* in register `value` */
    CFI_SAVED_BY,   /* in memory where the expression says; value: offset of its block from low */
    CFI_EXPRESSION, /* it is what the expression says */
};

/* Where everything is at one instruction. */
struct cfi_row {
    int64_t value[CFI_REGISTERS];
    uint8_t where[CFI_REGISTERS];
    uint8_t cfa_where;    /* CFI_REGISTER or CFI_EXPRESSION */
    uint8_t cfa_register; /* CFA = register + cfa_value; for an expression cfa_value is its block */
    bool signal;          /* called by the kernel: the caller was interrupted, not left by a call */
    int64_t cfa_value;
};

/* The row of the instruction at `pc`. False: no function there, or none that is understood. */
bool cfi_find(const struct cfi_tables *tables, uint64_t pc, struct cfi_row *row);

/* The record at `address` of .eh_frame, for callers without a search table (`header` is not read):
 * the function that it describes (0 = none: what functions share) and where the next record begins.
 * False: there is none, or it cannot be understood. */
bool cfi_record(const struct cfi_tables *tables, uint64_t address, uint64_t *function,
                uint64_t *next);

struct cfi_registers {
    uint64_t value[CFI_REGISTERS];
    uint32_t known; /* a bit each */
};

/* Read eight bytes of the stack. False: cannot be read. */
typedef bool cfi_read(void *context, uint64_t address, uint64_t *value);

enum cfi_stepped {
    CFI_STEPPED,
    CFI_OUTERMOST, /* there is no caller */
    CFI_FAILED,    /* a register or memory that is needed is not known */
};

/* From a frame's registers to its caller's. On CFI_STEPPED rsp and rip are known; rsp is the CFA
 * but in signal frames. Whether the caller's rsp makes sense is for the caller to judge. */
enum cfi_stepped cfi_step(const struct cfi_tables *tables, const struct cfi_row *row,
                          struct cfi_registers *registers, cfi_read *read, void *context);

/* The expression block (its length and its bytes) of a row lies at tables->low + offset: a pointer
 * to its first operation and its length, or NULL. For callers that recognize common expressions. */
const unsigned char *cfi_block(const struct cfi_tables *tables, int64_t offset, uint64_t *bytes);

/* ---- expression.c: DWARF expressions --------------------------------------------------------- */

/* The value of `bytes` of operations at `code`, begun with `initial` on its stack (NULL = nothing).
 * False: not understood, or needs what is not known. */
bool cfi_evaluate(const unsigned char *code, uint64_t bytes, const uint64_t *initial,
                  const struct cfi_registers *registers, cfi_read *read, void *context,
                  uint64_t *value);

#endif
