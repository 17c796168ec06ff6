/* The walk. Almost every frame is described by one of a few rules: the caller's frame is at a
 * distance from the stack pointer or from rbp, and rbp is unchanged or saved in the frame. Such a
 * rule fits into a word and is kept by the instruction's address, so a frame that was seen before
 * costs some nanoseconds; the tables (cfi.c) are read once per address. Frames with other rules
 * (signals, functions that realign the stack by another register) are stepped over by the tables
 * each time.
 *
 * Code without tables (generated, assembler) is passed by its frame pointer, if what rbp points to
 * looks like a frame; on aarch64 all code is, whose ABI has frame pointers. What is followed must
 * lead upwards within the stack (bounds.c): a wrong turn ends the walk. */
#include "collectors/stacks/unwind.h"
#include "libprof/wire/definition.h"

#define OTHER_STACKS 4u /* that one walk may change over to, through signal frames */

/* This stack's memory is ours to read, whatever a sanitizer thinks lies in it. */
#define READS_STACK __attribute__((no_sanitize("address", "thread", "undefined")))

/* A rule, from the low bits: kind (4), module (12), saved rbp / 8 from the CFA (16, signed, 0 = not
 * saved), distance of the CFA (32, signed). */
enum rule_kind {
    RULE_NONE,
    RULE_STACK,     /* CFA = rsp + distance */
    RULE_FRAME,     /* CFA = rbp + distance */
    RULE_REALIGNED, /* CFA in memory at rbp + distance, rbp at rbp */
    RULE_TABLES,    /* look it up in the tables */
    RULE_OUTERMOST,
    RULE_NO_TABLES, /* a module without a word about this function */
    RULE_NO_SLOT,   /* a module without a slot: its unloading would not be noticed */
    RULE_UNKNOWN,   /* no module; not kept */
};
_Static_assert(MODULES < MODULE_BEYOND && MODULE_BEYOND < 1u << 12, "in a rule, and in a frame");

struct rule {
    enum rule_kind kind;
    uint32_t module;
    int32_t saved;
    int32_t distance;
};

static uint64_t pack(const struct rule *rule)
{
    return (uint64_t)rule->kind | (uint64_t)rule->module << 4 |
           (uint64_t)(uint16_t)rule->saved << 16 | (uint64_t)(uint32_t)rule->distance << 32;
}

static inline struct rule unpack(uint64_t word)
{
    return (struct rule){
        .kind = (enum rule_kind)(word & 15),
        .module = word >> 4 & 0xfff,
        .saved = (int16_t)(word >> 16),
        .distance = (int32_t)(word >> 32),
    };
}

struct walk {
    struct unwind_rules *rules;
    struct stacks_modules *modules;
    const struct unwind_start *start;
    struct unwound *out;
    struct stack_bounds bounds;
    uint64_t pc, sp, frame;
    uint64_t salt; /* of the rules that count now */
    uint32_t depth;
    uint32_t sure;   /* the module that was last seen to be there still */
    unsigned stacks; /* changes of stack so far */
    bool exact;      /* pc is an instruction, not a return address */
};

/* What to look up: a return address may be that of the next function. */
static inline uint64_t lookup_address(const struct walk *walk)
{
    return walk->exact ? walk->pc : walk->pc - 1;
}

READS_STACK static inline bool load(struct walk *walk, uint64_t address, uint64_t *value)
{
    if (address % 8 != 0 || !stack_bounds_hold(&walk->bounds, address, 8))
        return false;
    *value = *(const uint64_t *)(uintptr_t)address;
    return true;
}

#if defined(__x86_64__)
static bool read_walked_stack(void *context, uint64_t address, uint64_t *value)
{
    return load(context, address, value);
}

/* Compilers describe a realigned frame by two expressions: the CFA is what is stored at rbp +
 * distance, and the caller's rbp is stored at rbp. */
static bool is_realigned(const struct cfi_tables *tables, const struct cfi_row *row,
                         int64_t *distance)
{
    enum { BREG_RBP = 0x70 + CFI_RBP, DEREF = 0x06 };
    uint64_t bytes;
    if (row->cfa_where != CFI_EXPRESSION || row->where[CFI_RBP] != CFI_SAVED_BY)
        return false;
    const unsigned char *code = cfi_block(tables, row->cfa_value, &bytes);
    if (!code || bytes != 3 || code[0] != BREG_RBP || code[1] & 0x80 || code[2] != DEREF)
        return false;
    *distance = (code[1] & 0x3f) - (code[1] & 0x40);
    code = cfi_block(tables, row->value[CFI_RBP], &bytes);
    return code && bytes == 2 && code[0] == BREG_RBP && code[1] == 0;
}

static bool row_fits_rule(const struct cfi_row *row, struct rule *rule)
{
    if (row->cfa_where != CFI_REGISTER || row->cfa_value % 8 != 0 ||
        row->cfa_value != (int32_t)row->cfa_value)
        return false;
    if (row->where[CFI_RBP] == CFI_SAVED) {
        int64_t slot = row->value[CFI_RBP] / 8;
        if (row->value[CFI_RBP] % 8 != 0 || slot != (int16_t)slot || slot == 0)
            return false;
        rule->saved = (int32_t)slot;
    } else if (row->where[CFI_RBP] != CFI_UNSAID && row->where[CFI_RBP] != CFI_SAME) {
        return false;
    }
    rule->distance = (int32_t)row->cfa_value;
    rule->kind = row->cfa_register == CFI_RSP   ? RULE_STACK
                 : row->cfa_register == CFI_RBP ? RULE_FRAME
                                                : RULE_TABLES;
    return rule->kind != RULE_TABLES;
}

/* The rule of the instruction at pc by the tables of its module. */
static struct rule rule_from_tables(const struct cfi_tables *tables, uint64_t pc, uint32_t module)
{
    struct rule rule = {.kind = RULE_NO_TABLES, .module = module};
    struct cfi_row row;
    int64_t distance;
    if (!tables->header || !cfi_find(tables, pc, &row))
        return rule;
    rule.kind = RULE_TABLES;
    if (row.where[CFI_RIP] == CFI_UNDEFINED)
        rule.kind = RULE_OUTERMOST;
    else if (row.signal || row.where[CFI_RIP] != CFI_SAVED || row.value[CFI_RIP] != -8 ||
             row.where[CFI_RSP] != CFI_UNSAID)
        return rule;
    else if (is_realigned(tables, &row, &distance))
        rule = (struct rule){RULE_REALIGNED, module, 0, (int32_t)distance};
    else if (!row_fits_rule(&row, &rule))
        rule = (struct rule){RULE_TABLES, module, 0, 0};
    return rule;
}
#else
static struct rule rule_from_tables(const struct cfi_tables *tables, uint64_t pc, uint32_t module)
{
    (void)tables;
    (void)pc;
    return (struct rule){.kind = RULE_NO_TABLES, .module = module};
}
#endif

static __attribute__((noinline)) struct rule learn_rule(struct walk *walk, uint64_t pc,
                                                        uint64_t key, uint32_t slot)
{
    uint32_t module = stacks_module_at(walk->modules, pc);
    if (module == 0)
        return (struct rule){.kind = RULE_UNKNOWN};
    struct rule rule = {.kind = RULE_NO_SLOT, .module = module};
    if (module != MODULE_BEYOND)
        rule = rule_from_tables(&walk->modules->slots[module - 1].tables, pc, module);
    uint64_t word = pack(&rule);
    atomic_store_explicit(&walk->rules->slots[slot].rule, word, memory_order_relaxed);
    /* Release: a thread that finds the rule also sees the module that it names. */
    atomic_store_explicit(&walk->rules->slots[slot].key, key ^ word, memory_order_release);
    return rule;
}

static uint64_t salt_of(const struct stacks_modules *modules)
{
    return (uint64_t)atomic_load_explicit(&modules->generation, memory_order_relaxed) << 48;
}

/* Unloading is not reported here: is the module that a rule was learned of still there? Checked for
 * each run of frames in one module, 30 ns. */
static __attribute__((noinline)) bool module_is_loaded(struct walk *walk, uint32_t module,
                                                       uint64_t pc)
{
    if (module == walk->sure || module == MODULE_BEYOND || module == 0)
        return true;
    if (!stacks_module_is_at(walk->modules, module, pc))
        return false;
    walk->sure = module;
    return true;
}

static inline struct rule known_rule(struct walk *walk)
{
    uint64_t pc = lookup_address(walk), key = pc ^ walk->salt;
    uint32_t slot = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 49);
    _Static_assert(UNWIND_RULES == 1u << (64 - 49), "slot");
    uint64_t word = atomic_load_explicit(&walk->rules->slots[slot].rule, memory_order_relaxed);
    uint64_t check = atomic_load_explicit(&walk->rules->slots[slot].key, memory_order_acquire);
    if (__builtin_expect((word ^ check) == key && word != 0, 1))
        return unpack(word);
    return learn_rule(walk, pc, key, slot);
}

static inline struct rule rule_of(struct walk *walk)
{
    struct rule rule = known_rule(walk);
    if (__builtin_expect(stacks_unloads_seen, 1) ||
        module_is_loaded(walk, rule.module, lookup_address(walk)))
        return rule;
    stacks_module_at(walk->modules,
                     lookup_address(walk)); /* sees that it is gone: another generation */
    walk->salt = salt_of(walk->modules);
    return known_rule(walk);
}

/* Go on in the caller, whose return address is in memory just below its frame. */
static inline bool return_to(struct walk *walk, uint64_t cfa)
{
    uint64_t pc;
    if (cfa <= walk->sp || !load(walk, cfa - 8, &pc) || pc > UNWIND_ADDRESS)
        return false;
    walk->pc = pc;
    walk->sp = cfa;
    walk->exact = false;
    return true;
}

static inline bool step_by_distance(struct walk *walk, const struct rule *rule)
{
    uint64_t cfa =
        (rule->kind == RULE_STACK ? walk->sp : walk->frame) + (uint64_t)(int64_t)rule->distance;
    uint64_t frame = walk->frame;
    if (rule->saved && !load(walk, cfa + (uint64_t)((int64_t)rule->saved * 8), &frame))
        return false;
    walk->frame = frame;
    return return_to(walk, cfa);
}

static bool step_from_realigned(struct walk *walk, const struct rule *rule)
{
    uint64_t cfa, frame;
    if (!load(walk, walk->frame + (uint64_t)(int64_t)rule->distance, &cfa) ||
        !load(walk, walk->frame, &frame))
        return false;
    walk->frame = frame;
    return return_to(walk, cfa);
}

static bool is_code(struct walk *walk, uint64_t pc, bool generated)
{
    if (pc < 4096 || pc > UNWIND_ADDRESS)
        return false;
    return generated ? stack_readable(pc) : stacks_module_at(walk->modules, pc - 1) != 0;
}

/* No tables: what the frame pointer leads to, if that is a frame. In generated code the caller may
 * be generated too; of assembler in a module the caller must be in one. */
static bool step_to_frame_pointer(struct walk *walk, bool generated)
{
    uint64_t frame, pc, at = walk->frame;
    if (at < walk->sp || !load(walk, at, &frame) || !load(walk, at + 8, &pc))
        return false;
#if defined(__aarch64__)
    pc &= UNWIND_ADDRESS; /* without the signature */
#endif
    bool outermost = frame == 0 && pc == 0;
    if (!outermost && !is_code(walk, pc, generated))
        return false;
    walk->frame = frame;
    walk->sp = at + 16;
    walk->pc = pc;
    walk->exact = false;
    return true;
}

#if defined(__x86_64__)
/* After a step by tables: a signal frame may lead to another stack. */
static bool continue_at(struct walk *walk, const struct cfi_registers *registers, bool signal)
{
    uint64_t sp = registers->value[CFI_RSP];
    if ((!signal && sp <= walk->sp) || registers->value[CFI_RIP] > UNWIND_ADDRESS)
        return false;
    if (signal && !stack_bounds_hold(&walk->bounds, sp, 8)) {
        if (++walk->stacks > OTHER_STACKS || !stack_readable(sp & ~7ull))
            return false;
        walk->bounds = stack_bounds_at(sp);
    }
    walk->sp = sp;
    walk->pc = registers->value[CFI_RIP];
    walk->frame = registers->known & 1u << CFI_RBP ? registers->value[CFI_RBP] : 0;
    walk->exact = signal;
    return true;
}

static enum cfi_stepped step_by_tables(struct walk *walk, uint32_t module,
                                       struct cfi_registers *registers)
{
    struct cfi_row row;
    const struct cfi_tables *tables = &walk->modules->slots[module - 1].tables;
    /* Unloaded by the C library itself, perhaps: its tables are not memory any more. */
    if (!stacks_module_is_at(walk->modules, module, lookup_address(walk)) ||
        !cfi_find(tables, lookup_address(walk), &row))
        return CFI_FAILED;
    enum cfi_stepped result = cfi_step(tables, &row, registers, read_walked_stack, walk);
    return result == CFI_STEPPED && !continue_at(walk, registers, row.signal) ? CFI_FAILED : result;
}

/* A frame whose rule needs more than the stack pointer and rbp, of which nothing else is known. */
static enum cfi_stepped step_by_tables_from_pointers(struct walk *walk, uint32_t module)
{
    struct cfi_registers registers = {
        .known = 1u << CFI_RSP | 1u << CFI_RBP | 1u << CFI_RIP,
        .value = {[CFI_RSP] = walk->sp, [CFI_RBP] = walk->frame, [CFI_RIP] = walk->pc},
    };
    return step_by_tables(walk, module, &registers);
}
#endif

static inline void put_stack_entry(struct walk *walk, uint32_t module)
{
    uint64_t kind = walk->exact ? WIRE_ENTRY_PC : WIRE_ENTRY_RETURN;
    walk->out->frame[walk->out->count] =
        kind << WIRE_ENTRY_SHIFT | (uint64_t)module << UNWIND_MODULE_SHIFT | walk->pc;
}

/* The frame that was put is complete: its caller's stack pointer is known. */
static inline void close_frame(struct walk *walk)
{
    struct unwound *out = walk->out;
    out->cfa[out->count++] = walk->sp;
}

static void begin_walk(struct walk *walk)
{
    walk->pc = walk->start->pc;
    walk->sp = walk->start->sp;
    walk->frame = walk->start->frame;
    walk->exact = true;
    walk->stacks = 0;
    walk->sure = 0;
    walk->bounds = stack_bounds_at(walk->sp);
    walk->out->count = 0;
    walk->out->cut = walk->out->ended = walk->out->no_slot = false;
}

enum stopped { STOPPED_DONE, STOPPED_LOST, STOPPED_NEEDS_REGISTERS };

/* One frame; false when it was the last one, and why. */
static inline bool advance_walk(struct walk *walk, enum stopped *why)
{
    struct rule rule = rule_of(walk);
    bool ok;
    put_stack_entry(walk, rule.module);
    switch (rule.kind) {
    case RULE_STACK:
    case RULE_FRAME:
        ok = step_by_distance(walk, &rule);
        break;
    case RULE_REALIGNED:
        ok = step_from_realigned(walk, &rule);
        break;
    case RULE_OUTERMOST:
        *why = STOPPED_DONE;
        return false;
    case RULE_NO_SLOT:
        walk->out->no_slot = true;
        *why = STOPPED_LOST;
        return false;
#if defined(__x86_64__)
    case RULE_TABLES: {
        enum cfi_stepped stepped = step_by_tables_from_pointers(walk, rule.module);
        *why = stepped == CFI_OUTERMOST ? STOPPED_DONE : STOPPED_NEEDS_REGISTERS;
        return stepped == CFI_STEPPED;
    }
#endif
    default:
        ok = step_to_frame_pointer(walk, rule.kind == RULE_UNKNOWN);
    }
    *why = STOPPED_LOST;
    return ok;
}

static enum stopped walk_by_rules(struct walk *walk)
{
    enum stopped why = STOPPED_DONE;
    begin_walk(walk);
    while (walk->out->count < walk->depth) {
        if (!advance_walk(walk, &why)) {
            walk->out->cfa[walk->out->count++] = 0;
            return why;
        }
        close_frame(walk);
        if (walk->pc == 0) /* some first functions have no caller in this way */
            return STOPPED_DONE;
    }
    walk->out->cut = true;
    return STOPPED_DONE;
}

#if defined(__x86_64__)
/* From the start again, with all registers, by the tables alone: dear, and rare. */
static enum stopped walk_by_tables(struct walk *walk)
{
    const struct unwind_start *start = walk->start;
    struct cfi_registers registers = {
        .known = 1u << CFI_RSP | 1u << CFI_RBP | 1u << CFI_RIP | 1u << CFI_RBX | 1u << CFI_R12 |
                 1u << CFI_R13 | 1u << CFI_R14 | 1u << CFI_R15,
        .value = {[CFI_RSP] = start->sp,
                  [CFI_RBP] = start->frame,
                  [CFI_RIP] = start->pc,
                  [CFI_RBX] = start->rbx,
                  [CFI_R12] = start->r12,
                  [CFI_R13] = start->r13,
                  [CFI_R14] = start->r14,
                  [CFI_R15] = start->r15},
    };
    begin_walk(walk);
    while (walk->out->count < walk->depth) {
        struct rule rule = rule_of(walk);
        enum cfi_stepped stepped = CFI_FAILED;
        put_stack_entry(walk, rule.module);
        if (rule.kind == RULE_NO_SLOT) {
            walk->out->no_slot = true;
        } else if (rule.kind == RULE_NO_TABLES || rule.kind == RULE_UNKNOWN) {
            if (step_to_frame_pointer(walk, rule.kind == RULE_UNKNOWN)) {
                registers.value[CFI_RSP] = walk->sp;
                registers.value[CFI_RBP] = walk->frame;
                registers.value[CFI_RIP] = walk->pc;
                stepped = CFI_STEPPED;
            }
        } else {
            stepped = step_by_tables(walk, rule.module, &registers);
        }
        if (stepped != CFI_STEPPED) {
            walk->out->cfa[walk->out->count++] = 0;
            return stepped == CFI_OUTERMOST ? STOPPED_DONE : STOPPED_LOST;
        }
        close_frame(walk);
        if (walk->pc == 0)
            return STOPPED_DONE;
    }
    walk->out->cut = true;
    return STOPPED_DONE;
}
#else
static enum stopped walk_by_tables(struct walk *walk)
{
    (void)walk;
    return STOPPED_LOST;
}
#endif

void unwind(struct unwind_rules *rules, struct stacks_modules *modules,
            const struct unwind_start *start, uint32_t depth, struct unwound *out)
{
    struct walk walk = {
        .rules = rules,
        .modules = modules,
        .start = start,
        .out = out,
        .salt = salt_of(modules),
        .depth = depth < 1              ? 1
                 : depth < UNWIND_DEPTH ? depth
                                        : UNWIND_DEPTH,
    };
    enum stopped stopped = walk_by_rules(&walk);
    if (stopped == STOPPED_NEEDS_REGISTERS)
        stopped = walk_by_tables(&walk);
    out->ended = stopped != STOPPED_DONE;
    /* What was taken for an address in generated code, and is none. */
    uint64_t last = out->frame[out->count - 1];
    if (out->ended && unwind_module(last) == 0 && !stack_readable(last & UNWIND_ADDRESS))
        out->count--;
}
