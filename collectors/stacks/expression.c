/* DWARF expressions, as far as call frame information uses them (DWARF 4, 2.5): the address of a
 * frame whose stack was realigned, registers that a signal frame saved, the two shapes of PLT
 * entries. The stack is small and the number of operations limited: a hostile expression ends soon.
 */
#include "collectors/stacks/cfi.h"
#include "collectors/stacks/cursor.h"

#define DEPTH 16u
#define MAX_OPERATIONS 256u

enum operation {
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08,
    OP_CONST1S,
    OP_CONST2U,
    OP_CONST2S,
    OP_CONST4U,
    OP_CONST4S,
    OP_CONST8U,
    OP_CONST8S,
    OP_CONSTU,
    OP_CONSTS,
    OP_DUP,
    OP_DROP,
    OP_OVER,
    OP_PICK,
    OP_SWAP,
    OP_ROT,
    OP_ABS = 0x19,
    OP_AND,
    OP_DIV,
    OP_MINUS,
    OP_MOD,
    OP_MUL,
    OP_NEG,
    OP_NOT,
    OP_OR,
    OP_PLUS,
    OP_PLUS_UCONST,
    OP_SHL,
    OP_SHR,
    OP_SHRA,
    OP_XOR,
    OP_BRA,
    OP_EQ,
    OP_GE,
    OP_GT,
    OP_LE,
    OP_LT,
    OP_NE,
    OP_SKIP,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
    OP_BREGX = 0x92,
    OP_NOP = 0x96,
};

struct machine {
    uint64_t stack[DEPTH];
    unsigned depth;
    bool bad;
};

static void push_operand(struct machine *machine, uint64_t value)
{
    if (machine->depth == DEPTH)
        machine->bad = true;
    else
        machine->stack[machine->depth++] = value;
}

static uint64_t pop_operand(struct machine *machine)
{
    if (machine->depth == 0) {
        machine->bad = true;
        return 0;
    }
    return machine->stack[--machine->depth];
}

static uint64_t peek(struct machine *machine, uint64_t down)
{
    if (down >= machine->depth) {
        machine->bad = true;
        return 0;
    }
    return machine->stack[machine->depth - 1 - down];
}

static void push_register(struct machine *machine, const struct cfi_registers *registers,
                          uint64_t number, int64_t offset)
{
    if (number >= CFI_REGISTERS || !(registers->known & 1u << number))
        machine->bad = true;
    else
        push_operand(machine, registers->value[number] + (uint64_t)offset);
}

static bool is_binary(unsigned operation)
{
    return operation == OP_AND || (operation >= OP_DIV && operation <= OP_MUL) ||
           operation == OP_OR || operation == OP_PLUS ||
           (operation >= OP_SHL && operation <= OP_XOR) ||
           (operation >= OP_EQ && operation <= OP_NE);
}

static uint64_t shift_signed(uint64_t a, uint64_t b)
{
    uint64_t fill = a >> 63 ? ~0ull : 0;
    return b == 0 ? a : b > 63 ? fill : a >> b | fill << (64 - b);
}

static uint64_t divide_signed(struct machine *machine, uint64_t a, uint64_t b)
{
    if (b == 0 || (b == ~0ull && a == 1ull << 63)) {
        machine->bad = true;
        return 0;
    }
    return (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t binary(struct machine *machine, unsigned operation, uint64_t a, uint64_t b)
{
    int64_t x = (int64_t)a, y = (int64_t)b;
    switch (operation) {
    case OP_AND:
        return a & b;
    case OP_DIV:
        return divide_signed(machine, a, b);
    case OP_MINUS:
        return a - b;
    case OP_MOD:
        machine->bad |= b == 0;
        return b ? a % b : 0;
    case OP_MUL:
        return a * b;
    case OP_OR:
        return a | b;
    case OP_PLUS:
        return a + b;
    case OP_SHL:
        return b > 63 ? 0 : a << b;
    case OP_SHR:
        return b > 63 ? 0 : a >> b;
    case OP_SHRA:
        return shift_signed(a, b);
    case OP_XOR:
        return a ^ b;
    case OP_EQ:
        return x == y;
    case OP_GE:
        return x >= y;
    case OP_GT:
        return x > y;
    case OP_LE:
        return x <= y;
    case OP_LT:
        return x < y;
    default:
        return x != y;
    }
}

static void rotate(struct machine *machine)
{
    uint64_t top = pop_operand(machine), second = pop_operand(machine),
             third = pop_operand(machine);
    push_operand(machine, top);
    push_operand(machine, third);
    push_operand(machine, second);
}

static void stack_operation(struct machine *machine, struct cursor *code, unsigned operation)
{
    uint64_t top, second;
    switch (operation) {
    case OP_DUP:
        push_operand(machine, peek(machine, 0));
        break;
    case OP_DROP:
        pop_operand(machine);
        break;
    case OP_OVER:
        push_operand(machine, peek(machine, 1));
        break;
    case OP_PICK:
        push_operand(machine, peek(machine, cursor_take(code, 1)));
        break;
    case OP_SWAP:
        top = pop_operand(machine);
        second = pop_operand(machine);
        push_operand(machine, top);
        push_operand(machine, second);
        break;
    default:
        rotate(machine);
    }
}

static void unary(struct machine *machine, struct cursor *code, unsigned operation)
{
    uint64_t top = pop_operand(machine);
    switch (operation) {
    case OP_ABS:
        push_operand(machine, top >> 63 ? 0 - top : top);
        break;
    case OP_NEG:
        push_operand(machine, 0 - top);
        break;
    case OP_NOT:
        push_operand(machine, ~top);
        break;
    default:
        push_operand(machine, top + cursor_uleb(code));
    }
}

static void constant(struct machine *machine, struct cursor *code, unsigned operation)
{
    unsigned bytes = 1u << (operation - OP_CONST1U) / 2;
    if (operation == OP_CONSTU)
        push_operand(machine, cursor_uleb(code));
    else if (operation == OP_CONSTS)
        push_operand(machine, (uint64_t)cursor_sleb(code));
    else
        push_operand(machine,
                     operation & 1 ? cursor_signed(code, bytes) : cursor_take(code, bytes));
}

static void jump(struct machine *machine, struct cursor *code, const unsigned char *start,
                 unsigned operation)
{
    int64_t distance = (int64_t)cursor_signed(code, 2);
    if (code->bad || (operation == OP_BRA && pop_operand(machine) == 0))
        return;
    if (distance < start - code->at || distance > code->end - code->at)
        machine->bad = true;
    else
        code->at += distance;
}

/* One operation that needs neither registers nor memory nor a jump. */
static void compute(struct machine *machine, struct cursor *code, unsigned operation)
{
    if (operation >= OP_LIT0 && operation <= OP_LIT31) {
        push_operand(machine, operation - OP_LIT0);
    } else if (operation >= OP_CONST1U && operation <= OP_CONSTS) {
        constant(machine, code, operation);
    } else if (operation >= OP_DUP && operation <= OP_ROT) {
        stack_operation(machine, code, operation);
    } else if (is_binary(operation)) {
        uint64_t b = pop_operand(machine), a = pop_operand(machine);
        push_operand(machine, binary(machine, operation, a, b));
    } else if (operation == OP_ABS || operation == OP_NEG || operation == OP_NOT ||
               operation == OP_PLUS_UCONST) {
        unary(machine, code, operation);
    } else if (operation != OP_NOP) {
        machine->bad = true;
    }
}

bool cfi_evaluate(const unsigned char *code, uint64_t bytes, const uint64_t *initial,
                  const struct cfi_registers *registers, cfi_read *read, void *context,
                  uint64_t *value)
{
    struct cursor at = {code, code + bytes, false};
    struct machine machine = {.depth = 0};
    if (initial)
        push_operand(&machine, *initial);
    for (unsigned n = 0; cursor_left(&at) > 0 && !machine.bad; n++) {
        unsigned operation = (unsigned)cursor_take(&at, 1);
        uint64_t word = 0;
        if (n == MAX_OPERATIONS)
            return false;
        if (operation >= OP_BREG0 && operation <= OP_BREG31) {
            push_register(&machine, registers, operation - OP_BREG0, cursor_sleb(&at));
        } else if (operation == OP_BREGX) {
            uint64_t number = cursor_uleb(&at);
            push_register(&machine, registers, number, cursor_sleb(&at));
        } else if (operation == OP_DEREF) {
            machine.bad |= !read(context, pop_operand(&machine), &word);
            push_operand(&machine, word);
        } else if (operation == OP_BRA || operation == OP_SKIP) {
            jump(&machine, &at, code, operation);
        } else {
            compute(&machine, &at, operation);
        }
    }
    *value = peek(&machine, 0);
    return !machine.bad && !at.bad;
}
