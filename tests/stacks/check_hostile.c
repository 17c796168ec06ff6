/* Tables and stacks that are wrong: whatever stands in them, the unwinder ends, and reads nothing
 * that is not there (the address sanitizer and pages that cannot be read see to that). Random, but
 * the same in every run. */
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collectors/stacks/cfi.h"
#include "collectors/stacks/unwind.h"
#include "tests/check_main.h"
#include "tests/stacks/chain.h"
#include "tests/stacks/fake_core.h"

static struct unwind_rules rules;
static struct stacks_modules modules;
static struct unwound seen;

static uint64_t random_state = 88172645463325252u;
static uint64_t any(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static uint64_t below(uint64_t limit)
{
    return any() % limit;
}

/* ---- tables */

/* The program's own tables, in memory of their own whose ends the sanitizer guards. */
struct copy {
    struct cfi_tables tables;
    unsigned char *memory;
    uint64_t bytes;
    uint64_t text, text_end;
};

static int look_at_program(struct dl_phdr_info *info, size_t size, void *data)
{
    struct copy *copy = data;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const Elf64_Phdr *at = &info->dlpi_phdr[i];
        if (at->p_type == PT_GNU_EH_FRAME)
            copy->tables.header = info->dlpi_addr + at->p_vaddr;
        if (at->p_type == PT_LOAD && at->p_flags & PF_X) {
            copy->text = info->dlpi_addr + at->p_vaddr;
            copy->text_end = copy->text + at->p_memsz;
        }
    }
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const Elf64_Phdr *at = &info->dlpi_phdr[i];
        uint64_t low = info->dlpi_addr + at->p_vaddr;
        if (at->p_type == PT_LOAD && copy->tables.header - low < at->p_filesz) {
            copy->tables.low = copy->tables.header; /* before it are variables, which are guarded */
            copy->tables.high = low + at->p_filesz;
        }
    }
    return 1; /* the program comes first */
}

static struct copy copy_tables(void)
{
    struct copy copy = {0};
    dl_iterate_phdr(look_at_program, &copy);
    copy.bytes = copy.tables.high - copy.tables.low;
    copy.memory = malloc(copy.bytes);
    memcpy(copy.memory, (const void *)(uintptr_t)copy.tables.low, copy.bytes);
    copy.tables.memory = copy.memory;
    return copy;
}

static bool read_anything(void *context, uint64_t address, uint64_t *value)
{
    uint64_t *budget = context;
    *value = any() & 1 ? address + below(64) : any();
    return (*budget)-- > 0 && address % 5 != 0;
}

/* Returns whether there was a row. */
static bool try(const struct cfi_tables *tables, uint64_t pc)
{
    struct cfi_row row;
    struct cfi_registers registers = {.known = (uint32_t)any() & ((1u << CFI_REGISTERS) - 1)};
    uint64_t budget = 1000;
    if (!cfi_find(tables, pc, &row))
        return false;
    for (unsigned i = 0; i < CFI_REGISTERS; i++)
        registers.value[i] = any();
    cfi_step(tables, &row, &registers, read_anything, &budget);
    return true;
}

START_TEST(good_tables)
{
    struct copy copy = copy_tables();
    unsigned found = 0, asked = 0;
    for (uint64_t pc = copy.text; pc < copy.text_end; pc += 16, asked++)
        found += try(&copy.tables, pc);
    ck_assert_uint_gt(found, asked / 2);
    ck_assert(!try(&copy.tables, copy.text - 1));
    ck_assert(!try(&copy.tables, 0));
    ck_assert(!try(&copy.tables, UINT64_MAX));
    free(copy.memory);
}
END_TEST

START_TEST(garbled_tables)
{
    struct copy copy = copy_tables();
    unsigned char *good = malloc(copy.bytes);
    memcpy(good, copy.memory, copy.bytes);
    unsigned found = 0;
    for (unsigned round = 0; round < 600; round++) {
        uint64_t from = copy.tables.header - copy.tables.low; /* the header, and tables behind it */
        unsigned changes = 1 + (unsigned)below(400);
        for (unsigned i = 0; i < changes; i++)
            copy.memory[from + below(copy.bytes - from)] ^= (unsigned char)any();
        if (round % 4 == 0)
            copy.memory[from + below(16)] = (unsigned char)any();
        for (unsigned i = 0; i < 100; i++)
            found += try(&copy.tables, copy.text + below(copy.text_end - copy.text));
        if (round % 3 == 2)
            memcpy(copy.memory, good, copy.bytes);
    }
    ck_assert_uint_gt(found, 1000); /* not all was refused at the door */
    free(good);
    free(copy.memory);
}
END_TEST

/* The segment ends anywhere. */
START_TEST(cut_tables)
{
    struct copy copy = copy_tables();
    uint64_t header = copy.tables.header - copy.tables.low;
    for (unsigned round = 0; round < 300; round++) {
        uint64_t bytes = round < 40 ? header + round : header + below(copy.bytes - header);
        unsigned char *part = malloc(bytes ? bytes : 1);
        memcpy(part, copy.memory, bytes);
        struct cfi_tables tables = copy.tables;
        tables.memory = part;
        tables.high = tables.low + bytes;
        for (unsigned i = 0; i < 100; i++)
            try(&tables, copy.text + below(copy.text_end - copy.text));
        free(part);
    }
    free(copy.memory);
}
END_TEST

START_TEST(expressions)
{
    struct cfi_registers registers = {.known = UINT32_MAX >> 15};
    unsigned valued = 0;
    for (unsigned round = 0; round < 200000; round++) {
        uint64_t bytes = 1 + below(24), budget = 100, value, initial = any();
        unsigned char *code = malloc(bytes);
        for (uint64_t i = 0; i < bytes; i++)
            code[i] = (unsigned char)any();
        valued += cfi_evaluate(code, bytes, round % 2 ? &initial : NULL, &registers, read_anything,
                               &budget, &value);
        free(code);
    }
    ck_assert_uint_gt(valued, 100);
}
END_TEST

/* Known answers: DWARF 4, 2.5.1 */
START_TEST(expression_values)
{
    static const struct {
        unsigned char code[12];
        uint64_t bytes, value;
    } cases[] = {
        {{0x31, 0x35, 0x22}, 3, 6},                   /* lit1 lit5 plus */
        {{0x09, 0xff, 0x1f}, 3, 1},                   /* const1s -1 neg */
        {{0x77, 0x08}, 2, 1008},                      /* breg7 8 */
        {{0x10, 0x80, 0x01, 0x23, 0x02}, 5, 130},     /* constu 128 plus_uconst 2 */
        {{0x38, 0x34, 0x16, 0x1c}, 4, (uint64_t)-4},  /* lit8 lit4 swap minus */
        {{0x31, 0x32, 0x33, 0x17, 0x1c, 0x1c}, 6, 4}, /* rot: 3 1 2; 1 - 2; 3 - -1 */
        {{0x31, 0x28, 0x01, 0x00, 0x13, 0x35}, 6, 5}, /* a branch over a drop */
        {{0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, 11, 1008},
        /* what GNU ld writes for PLT entries: rsp + 8 + ((rip & 15) >= 11) * 8; rip is 3 */
    };
    struct cfi_registers registers = {.known = 1u << CFI_RSP | 1u << CFI_RIP};
    registers.value[CFI_RSP] = 1000;
    registers.value[CFI_RIP] = 3;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t value = 0, budget = 0;
        ck_assert_msg(cfi_evaluate(cases[i].code, cases[i].bytes, NULL, &registers, read_anything,
                                   &budget, &value),
                      "case %zu", i);
        ck_assert_msg(value == cases[i].value, "case %zu: %lu", i, (unsigned long)value);
    }
}
END_TEST

/* ---- stacks */

#define ROOM (64u << 10)

static uint64_t places[CHAIN_MOST];
static unsigned place_count;

static void keep_places(struct chain *chain)
{
    memcpy(places, chain->returns, chain->count * sizeof places[0]);
    place_count = chain->count;
}

/* A word as it could stand in a stack. */
static uint64_t word(const uint64_t *from, size_t words)
{
    switch (below(6)) {
    case 0:
        return any();
    case 1:
        return below(100);
    case 2:
        return (uint64_t)(uintptr_t)(from + below(words + 4));
    default:
        return places[below(place_count)] + (below(8) == 0 ? below(40) : 0);
    }
}

static void walk_garbage(uint64_t *from, size_t words)
{
    struct unwind_start start = {.pc = places[below(place_count)]};
    for (size_t i = 0; i < words; i++)
        from[i] = word(from, words);
    start.sp = (uint64_t)(uintptr_t)(from + below(words));
    start.frame = below(3) ? (uint64_t)(uintptr_t)(from + below(words)) : any();
    start.rbx = start.r12 = word(from, words);
    unwind(&rules, &modules, &start, 1 + (uint32_t)below(UNWIND_DEPTH), &seen);
    ck_assert_uint_le(seen.count, UNWIND_DEPTH);
}

static void begin(void)
{
    struct chain chain = {.innermost = keep_places, .left = 60};
    stacks_modules_start();
    chain_plain(&chain);
    struct chain vectors = {.innermost = keep_places, .left = 60};
    chain_vectors(&vectors);
    memcpy(places + place_count, chain.returns, chain.count * sizeof places[0]);
    place_count += chain.count;
}

/* Another stack than the thread's, with nothing behind it. */
START_TEST(garbage_on_another_stack)
{
    unsigned deep = 0;
    char *room =
        mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_int_eq(mprotect(room + ROOM, 4096, PROT_NONE), 0);
    begin();
    for (unsigned round = 0; round < 3000; round++) {
        size_t words = 1 + below(round % 2 ? 512 : ROOM / 8);
        walk_garbage((uint64_t *)(void *)(room + ROOM) - words, words);
        deep += seen.count > 1;
    }
    ck_assert_uint_gt(deep, 50);
}
END_TEST

/* The thread's own, far below where it is now: behind the garbage come true frames and then its
 * end. */
static __attribute__((no_sanitize("address"))) void *on_own_stack(void *unused)
{
    uint64_t *here = __builtin_frame_address(0);
    (void)unused;
    for (unsigned round = 0; round < 3000; round++)
        walk_garbage(here - 24000, 4096);
    return NULL;
}

START_TEST(garbage_on_own_stack)
{
    pthread_attr_t attributes;
    pthread_t thread;
    begin();
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 20);
    pthread_create(&thread, &attributes, on_own_stack, NULL);
    pthread_join(thread, NULL);
}
END_TEST

START_TEST(bounds_of_stacks)
{
    char *room = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t at = (uint64_t)(uintptr_t)room;
    ck_assert_int_eq(munmap(room + 2 * 4096, 4096), 0);
    stack_bounds_start();
    ck_assert(stack_readable(at));
    ck_assert(!stack_readable(at + 2 * 4096));
    ck_assert(!stack_readable(0));
    ck_assert(!stack_readable(UINT64_MAX - 7));
    struct stack_bounds bounds = stack_bounds_at(at + 16);
    ck_assert(bounds.grows);
    ck_assert(stack_bounds_hold(&bounds, at + 16, 8));
    ck_assert(stack_bounds_hold(&bounds, at + 4096, 8));
    ck_assert(stack_bounds_hold(&bounds, at + 2 * 4096 - 8, 8));
    ck_assert(!stack_bounds_hold(&bounds, at + 2 * 4096 - 4, 8));
    ck_assert(!stack_bounds_hold(&bounds, at + 2 * 4096, 8));
    ck_assert(!stack_bounds_hold(&bounds, at - 8, 8));
    ck_assert(!stack_bounds_hold(&bounds, UINT64_MAX - 3, 8));
    uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    bounds = stack_bounds_at(here);
    ck_assert(!bounds.grows);
    ck_assert(stack_bounds_hold(&bounds, here, 8));
    ck_assert(!stack_bounds_hold(&bounds, bounds.high, 8));
    ck_assert(!stack_bounds_hold(&bounds, bounds.high - 4, 8));
    ck_assert(!stack_bounds_hold(&bounds, 0, 8));
}
END_TEST

/* ---- how often the kernel is asked */

static _Thread_local unsigned asked;

long __real_syscall(long number, long a, long b, long c, long d);
long __wrap_syscall(long number, long a, long b, long c, long d);

long __wrap_syscall(long number, long a, long b, long c, long d)
{
    asked++;
    return __real_syscall(number, a, b, c, d);
}

#define COROUTINES 16u
#define COROUTINE_BYTES (128u << 10)

/* A thread right above a block of coroutines' stacks, which have no guards between them, as from a
 * pool: what lies there is asked for once, however the thread goes to and fro. */
static void *among_coroutines(void *block)
{
    uint64_t low = (uint64_t)(uintptr_t)block;
    asked = 0;
    for (unsigned round = 0; round < 100; round++) {
        for (unsigned i = COROUTINES; i-- > 0;) {
            uint64_t sp = low + i * COROUTINE_BYTES + COROUTINE_BYTES / 2;
            struct stack_bounds bounds = stack_bounds_at(sp);
            ck_assert(bounds.grows);
            ck_assert(stack_bounds_hold(&bounds, sp, 8));
        }
    }
    ck_assert_uint_gt(asked, 0);
    ck_assert_uint_le(asked, COROUTINES * COROUTINE_BYTES / 4096 + 1);
    ck_assert(!stack_bounds_at((uint64_t)(uintptr_t)__builtin_frame_address(0)).grows);
    return NULL;
}

START_TEST(many_coroutines)
{
    size_t bytes = COROUTINES * COROUTINE_BYTES, own = 1 << 20;
    pthread_attr_t attributes;
    pthread_t thread;
    char *block =
        mmap(NULL, bytes + 4096 + own, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_int_eq(mprotect(block + bytes, 4096, PROT_NONE), 0);
    stack_bounds_start();
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, block + bytes + 4096, own);
    ck_assert_int_eq(pthread_create(&thread, &attributes, among_coroutines, block), 0);
    pthread_join(thread, NULL);
}
END_TEST

int main(void)
{
    const struct check_test tests[] = {
        {bounds_of_stacks, 1},
        {many_coroutines, 1},
#if defined(__x86_64__)
        {good_tables, 1},
        {garbled_tables, 1},
        {cut_tables, 1},
        {expressions, 1},
        {expression_values, 1},
#endif
        {garbage_on_another_stack, 1},
        {garbage_on_own_stack, 1},
    };
    return check_run("hostile", NULL, NULL, tests, sizeof tests / sizeof tests[0]);
}
