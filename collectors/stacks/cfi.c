/* .eh_frame: from an instruction's address to the row that says where its caller is (cfi.h). The
 * binary search table of .eh_frame_hdr leads to the function's entry (FDE), that to what it shares
 * with others (CIE), and the instructions of both are run up to the address. */
#include <stddef.h>

#include "collectors/stacks/cfi.h"
#include "collectors/stacks/cursor.h"

#define REMEMBERED 4u          /* rows on the stack of remember_state; compilers nest one deep */
#define MAX_BYTES (256u << 10) /* of instructions that are run for one address */
#define MAX_LETTERS 32u        /* of an augmentation, which is read again for every function */

/* How a pointer is written (DW_EH_PE_*). */
enum encoding {
    ENCODED_FORMAT = 0x0f,
    ENCODED_ABSOLUTE = 0x00,
    ENCODED_ULEB = 0x01,
    ENCODED_U2 = 0x02,
    ENCODED_U4 = 0x03,
    ENCODED_U8 = 0x04,
    ENCODED_SLEB = 0x09,
    ENCODED_S2 = 0x0a,
    ENCODED_S4 = 0x0b,
    ENCODED_S8 = 0x0c,
    ENCODED_BASE = 0xf0,
    ENCODED_FROM_HERE = 0x10,
    ENCODED_FROM_HEADER = 0x30,
    ENCODED_TABLE = ENCODED_FROM_HEADER | ENCODED_S4, /* what every linker writes */
    ENCODED_OMIT = 0xff,
};

static struct cursor cursor_from(const struct cfi_tables *tables, uint64_t address)
{
    const unsigned char *memory = tables->memory;
    if (address < tables->low || address >= tables->high)
        return (struct cursor){memory, memory, true};
    return (struct cursor){memory + (address - tables->low), memory + (tables->high - tables->low),
                           false};
}

static uint64_t address_of(const struct cfi_tables *tables, const struct cursor *cursor)
{
    return tables->low + (uint64_t)(cursor->at - tables->memory);
}

static uint64_t take_encoded(const struct cfi_tables *tables, struct cursor *cursor,
                             unsigned encoding)
{
    uint64_t base = 0;
    if ((encoding & ENCODED_BASE) == ENCODED_FROM_HERE)
        base = address_of(tables, cursor);
    else if ((encoding & ENCODED_BASE) == ENCODED_FROM_HEADER)
        base = tables->header;
    else if (encoding & ENCODED_BASE)
        cursor->bad = true;
    switch (encoding & ENCODED_FORMAT) {
    case ENCODED_ULEB:
        return base + cursor_uleb(cursor);
    case ENCODED_SLEB:
        return base + (uint64_t)cursor_sleb(cursor);
    case ENCODED_U2:
        return base + cursor_take(cursor, 2);
    case ENCODED_U4:
        return base + cursor_take(cursor, 4);
    case ENCODED_ABSOLUTE:
    case ENCODED_U8:
    case ENCODED_S8:
        return base + cursor_take(cursor, 8);
    case ENCODED_S2:
        return base + cursor_signed(cursor, 2);
    case ENCODED_S4:
        return base + cursor_signed(cursor, 4);
    default:
        cursor->bad = true;
        return 0;
    }
}

/* Both columns of the search table are distances from the header. */
static uint64_t table_entry(const struct cfi_tables *tables, const unsigned char *at)
{
    int32_t distance;
    memcpy(&distance, at, sizeof distance);
    return tables->header + (uint64_t)(int64_t)distance;
}

/* The address of the FDE whose function begins last at or before pc, 0 = none. */
static uint64_t search(const struct cfi_tables *tables, uint64_t pc)
{
    struct cursor header = cursor_from(tables, tables->header);
    uint64_t version = cursor_take(&header, 1);
    unsigned frame_encoding = (unsigned)cursor_take(&header, 1);
    unsigned count_encoding = (unsigned)cursor_take(&header, 1);
    unsigned encoding = (unsigned)cursor_take(&header, 1);
    take_encoded(tables, &header, frame_encoding);
    uint64_t count = take_encoded(tables, &header, count_encoding);
    if (header.bad || version != 1 || encoding != ENCODED_TABLE ||
        count > cursor_left(&header) / 8 || count == 0 || pc < table_entry(tables, header.at))
        return 0;
    uint64_t first = 0;
    while (count > 1) {
        uint64_t half = count / 2;
        if (table_entry(tables, header.at + (first + half) * 8) <= pc)
            first += half;
        count -= half;
    }
    return table_entry(tables, header.at + first * 8 + 4);
}

/* What an FDE and its CIE say. */
struct entry {
    uint64_t code_factor;
    int64_t data_factor;
    uint64_t begin;            /* of the function */
    struct cursor common, own; /* instructions */
    uint8_t encoding;
    bool augmented; /* its parts say how long they are */
    bool signal;
};

/* The body of the record at `address`: everything after its length. */
static struct cursor cfi_record_at(const struct cfi_tables *tables, uint64_t address)
{
    struct cursor record = cursor_from(tables, address);
    uint64_t bytes = cursor_take(&record, 4);
    if (bytes == UINT32_MAX)
        bytes = cursor_take(&record, 8);
    if (bytes == 0 || bytes > cursor_left(&record))
        record.bad = true;
    else
        record.end = record.at + bytes;
    return record;
}

static void augmentation(const struct cfi_tables *tables, struct cursor *record,
                         const char *letters, struct entry *entry)
{
    uint64_t bytes = cursor_uleb(record);
    struct cursor data = *record;
    cursor_skip(record, bytes);
    if (record->bad)
        return;
    data.end = record->at;
    for (; *letters; letters++) {
        if (*letters == 'R') {
            entry->encoding = (uint8_t)cursor_take(&data, 1);
        } else if (*letters == 'S') {
            entry->signal = true;
        } else if (*letters == 'L') {
            cursor_take(&data, 1);
        } else if (*letters == 'P') { /* an indirect pointer is as long as a direct one */
            unsigned encoding = (unsigned)cursor_take(&data, 1) & 0x7f;
            take_encoded(tables, &data, encoding);
        } else if (*letters != 'B') {
            break; /* of a later time; the rest of the data is passed over */
        }
    }
    record->bad |= data.bad;
}

static bool read_common(const struct cfi_tables *tables, uint64_t address, struct entry *entry)
{
    struct cursor record = cfi_record_at(tables, address);
    uint64_t id = cursor_take(&record, 4), version = cursor_take(&record, 1);
    const char *letters = (const char *)record.at;
    const uint64_t left = cursor_left(&record);
    const unsigned char *end = memchr(record.at, 0, left < MAX_LETTERS ? left : MAX_LETTERS);
    if (record.bad || id != 0 || (version != 1 && version != 3) || !end)
        return false;
    cursor_skip(&record, (uint64_t)(end - record.at) + 1);
    entry->code_factor = cursor_uleb(&record);
    entry->data_factor = cursor_sleb(&record);
    uint64_t return_column = version == 1 ? cursor_take(&record, 1) : cursor_uleb(&record);
    entry->augmented = letters[0] == 'z';
    if (entry->augmented)
        augmentation(tables, &record, letters + 1, entry);
    entry->common = record;
    return !record.bad && return_column == CFI_RIP && (entry->augmented || letters[0] == '\0');
}

static bool read_cfi_entry(const struct cfi_tables *tables, uint64_t address, uint64_t pc,
                           struct entry *entry)
{
    struct cursor record = cfi_record_at(tables, address);
    uint64_t here = address_of(tables, &record);
    uint64_t distance = cursor_take(&record, 4);
    *entry = (struct entry){0};
    if (record.bad || distance == 0 || !read_common(tables, here - distance, entry))
        return false;
    entry->begin = take_encoded(tables, &record, entry->encoding);
    uint64_t bytes = take_encoded(tables, &record, entry->encoding & ENCODED_FORMAT);
    if (entry->augmented)
        cursor_skip(&record, cursor_uleb(&record));
    entry->own = record;
    return !record.bad && pc >= entry->begin && pc - entry->begin < bytes;
}

bool cfi_record(const struct cfi_tables *tables, uint64_t address, uint64_t *function,
                uint64_t *next)
{
    struct cursor record = cfi_record_at(tables, address);
    uint64_t here = address_of(tables, &record);
    uint64_t distance = cursor_take(&record, 4);
    struct entry entry = {0};
    if (record.bad)
        return false;
    *next = tables->low + (uint64_t)(record.end - tables->memory);
    *function = distance != 0 && read_common(tables, here - distance, &entry)
                    ? take_encoded(tables, &record, entry.encoding)
                    : 0;
    return !record.bad;
}

/* Instructions. The first three have an operand in their low six bits. */
enum instruction {
    ADVANCE_SMALL = 0x40,
    OFFSET_SMALL = 0x80,
    RESTORE_SMALL = 0xc0,
    NOP = 0x00,
    SET_LOC,
    ADVANCE_1,
    ADVANCE_2,
    ADVANCE_4,
    OFFSET,
    RESTORE,
    UNDEFINED,
    SAME,
    REGISTER,
    REMEMBER,
    RESTORE_STATE,
    DEF_CFA,
    DEF_CFA_REGISTER,
    DEF_CFA_OFFSET,
    DEF_CFA_EXPRESSION,
    EXPRESSION,
    OFFSET_SIGNED,
    DEF_CFA_SIGNED,
    DEF_CFA_OFFSET_SIGNED,
    VALUE_OFFSET,
    VALUE_OFFSET_SIGNED,
    VALUE_EXPRESSION,
    GNU_ARGS_SIZE = 0x2e,
    GNU_NEGATIVE_OFFSET = 0x2f,
};

struct run {
    const struct cfi_tables *tables;
    const struct entry *entry;
    struct cfi_row row;
    struct cfi_row initial; /* after the common instructions */
    struct cfi_row remembered[REMEMBERED];
    unsigned depth;
    uint64_t at, pc;
    bool bad;
};

/* A register we do not follow (vectors) is passed over. */
static void set_register_rule(struct run *run, uint64_t number, enum cfi_where where, int64_t value)
{
    if (number < CFI_REGISTERS) {
        run->row.where[number] = (uint8_t)where;
        run->row.value[number] = value;
    }
}

static void restore(struct run *run, uint64_t number)
{
    if (number < CFI_REGISTERS)
        set_register_rule(run, number, run->initial.where[number], run->initial.value[number]);
}

static int64_t scale_data_offset(const struct run *run, uint64_t offset)
{
    return (int64_t)(offset * (uint64_t)run->entry->data_factor);
}

static void set_cfa(struct run *run, uint64_t number, uint64_t offset)
{
    run->bad |= number >= CFI_REGISTERS;
    run->row.cfa_where = CFI_REGISTER;
    run->row.cfa_register = (uint8_t)number;
    run->row.cfa_value = (int64_t)offset;
}

/* Keep where the block is and pass over it. */
static int64_t skip_expression_block(const struct run *run, struct cursor *code)
{
    int64_t offset = code->at - run->tables->memory;
    cursor_skip(code, cursor_uleb(code));
    return offset;
}

static void remember_rules(struct run *run)
{
    if (run->depth == REMEMBERED)
        run->bad = true;
    else
        run->remembered[run->depth++] = run->row;
}

static void restore_rules(struct run *run)
{
    if (run->depth == 0)
        run->bad = true;
    else
        run->row = run->remembered[--run->depth];
}

/* Instructions that say where a register is. */
static void register_rule(struct run *run, struct cursor *code, unsigned instruction)
{
    uint64_t number = cursor_uleb(code);
    switch (instruction) {
    case OFFSET:
        set_register_rule(run, number, CFI_SAVED, scale_data_offset(run, cursor_uleb(code)));
        break;
    case OFFSET_SIGNED:
        set_register_rule(run, number, CFI_SAVED,
                          scale_data_offset(run, (uint64_t)cursor_sleb(code)));
        break;
    case GNU_NEGATIVE_OFFSET:
        set_register_rule(run, number, CFI_SAVED, scale_data_offset(run, 0 - cursor_uleb(code)));
        break;
    case VALUE_OFFSET:
        set_register_rule(run, number, CFI_OFFSET, scale_data_offset(run, cursor_uleb(code)));
        break;
    case VALUE_OFFSET_SIGNED:
        set_register_rule(run, number, CFI_OFFSET,
                          scale_data_offset(run, (uint64_t)cursor_sleb(code)));
        break;
    case RESTORE:
        restore(run, number);
        break;
    case UNDEFINED:
        set_register_rule(run, number, CFI_UNDEFINED, 0);
        break;
    case SAME:
        set_register_rule(run, number, CFI_SAME, 0);
        break;
    case REGISTER:
        set_register_rule(run, number, CFI_REGISTER, (int64_t)cursor_uleb(code));
        break;
    case EXPRESSION:
        set_register_rule(run, number, CFI_SAVED_BY, skip_expression_block(run, code));
        break;
    default:
        set_register_rule(run, number, CFI_EXPRESSION, skip_expression_block(run, code));
    }
}

/* Instructions that say where the frame is, and the rest. */
static void frame_rule(struct run *run, struct cursor *code, unsigned instruction)
{
    uint64_t number;
    switch (instruction) {
    case NOP:
        break;
    case REMEMBER:
        remember_rules(run);
        break;
    case RESTORE_STATE:
        restore_rules(run);
        break;
    case DEF_CFA:
        number = cursor_uleb(code);
        set_cfa(run, number, cursor_uleb(code));
        break;
    case DEF_CFA_SIGNED:
        number = cursor_uleb(code);
        set_cfa(run, number, (uint64_t)scale_data_offset(run, (uint64_t)cursor_sleb(code)));
        break;
    case DEF_CFA_REGISTER:
        set_cfa(run, cursor_uleb(code), (uint64_t)run->row.cfa_value);
        break;
    case DEF_CFA_OFFSET:
        run->row.cfa_value = (int64_t)cursor_uleb(code);
        break;
    case DEF_CFA_OFFSET_SIGNED:
        run->row.cfa_value = scale_data_offset(run, (uint64_t)cursor_sleb(code));
        break;
    case DEF_CFA_EXPRESSION:
        run->row.cfa_where = CFI_EXPRESSION;
        run->row.cfa_value = skip_expression_block(run, code);
        break;
    case GNU_ARGS_SIZE:
        cursor_uleb(code);
        break;
    default:
        run->bad = true;
    }
}

/* Does the instruction move on to a later place? Then it is run. */
static bool advance_location(struct run *run, struct cursor *code, unsigned instruction)
{
    uint64_t units;
    if ((instruction & 0xc0) == ADVANCE_SMALL) {
        units = instruction & 0x3f;
    } else if (instruction == SET_LOC) {
        run->at = take_encoded(run->tables, code, run->entry->encoding);
        return true;
    } else if (instruction >= ADVANCE_1 && instruction <= ADVANCE_4) {
        units = cursor_take(code, 1u << (instruction - ADVANCE_1));
    } else {
        return false;
    }
    run->at += units * run->entry->code_factor;
    return true;
}

static bool is_register_rule(unsigned instruction)
{
    return (instruction >= OFFSET && instruction <= REGISTER) ||
           (instruction >= EXPRESSION && instruction <= OFFSET_SIGNED) ||
           (instruction >= VALUE_OFFSET && instruction <= VALUE_EXPRESSION) ||
           instruction == GNU_NEGATIVE_OFFSET;
}

static void run_until(struct run *run, struct cursor code)
{
    if (cursor_left(&code) > MAX_BYTES)
        run->bad = true;
    while (cursor_left(&code) > 0 && !run->bad) {
        unsigned instruction = (unsigned)cursor_take(&code, 1);
        if (advance_location(run, &code, instruction)) {
            if (run->at > run->pc)
                break;
        } else if ((instruction & 0xc0) == OFFSET_SMALL) {
            set_register_rule(run, instruction & 0x3f, CFI_SAVED,
                              scale_data_offset(run, cursor_uleb(&code)));
        } else if ((instruction & 0xc0) == RESTORE_SMALL) {
            restore(run, instruction & 0x3f);
        } else if (is_register_rule(instruction)) {
            register_rule(run, &code, instruction);
        } else {
            frame_rule(run, &code, instruction);
        }
        run->bad |= code.bad;
    }
}

bool cfi_find(const struct cfi_tables *tables, uint64_t pc, struct cfi_row *row)
{
    struct entry entry;
    uint64_t address = search(tables, pc);
    if (address == 0 || !read_cfi_entry(tables, address, pc, &entry))
        return false;
    struct run run = {.tables = tables, .entry = &entry, .at = entry.begin, .pc = pc};
    run_until(&run, entry.common);
    run.initial = run.row;
    run.at = entry.begin;
    run_until(&run, entry.own);
    *row = run.row;
    row->signal = entry.signal;
    return !run.bad && row->cfa_where != CFI_UNSAID;
}

const unsigned char *cfi_block(const struct cfi_tables *tables, int64_t offset, uint64_t *bytes)
{
    struct cursor block = cursor_from(tables, tables->low + (uint64_t)offset);
    *bytes = cursor_uleb(&block);
    return *bytes <= cursor_left(&block) && !block.bad ? block.at : NULL;
}

/* ---- From a frame to its caller's -------------------------------------------------------------
 *
 * By a row of the tables: the frame's address, then each register from where the row says it is. */

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
