/* Callers found from outside: this program's own registers and stack, handed over as the kernel
 * would, against the return addresses that the compiler knows. */
#include <check.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "samplers/cpu/unwind.h"
#include "tests/check_main.h"

#define STACK_BYTES 8192u
#define STANDS_ALONE static __attribute__((noinline, noclone))

#ifdef __x86_64__

struct taken {
    struct cpu_copy copy;
    unsigned char stack[STACK_BYTES];
    uint64_t callers[3]; /* return addresses of innermost, middle, outer */
};

static struct taken taken;
static volatile int sink;

/* From the stack pointer of the registers on. */
STANDS_ALONE __attribute__((no_sanitize("address"))) void copy_stack(void)
{
    const unsigned char *from =
        (const unsigned char *)(uintptr_t)taken.copy.registers.value[CFI_RSP];
    for (size_t i = 0; i < STACK_BYTES; i++)
        taken.stack[i] = ((const volatile unsigned char *)from)[i];
}

STANDS_ALONE void innermost(void)
{
    static const int numbers[CFI_REGISTERS] = {
        [CFI_RAX] = REG_RAX, [CFI_RDX] = REG_RDX, [CFI_RCX] = REG_RCX, [CFI_RBX] = REG_RBX,
        [CFI_RSI] = REG_RSI, [CFI_RDI] = REG_RDI, [CFI_RBP] = REG_RBP, [CFI_RSP] = REG_RSP,
        [CFI_R8] = REG_R8,   [CFI_R9] = REG_R9,   [CFI_R10] = REG_R10, [CFI_R11] = REG_R11,
        [CFI_R12] = REG_R12, [CFI_R13] = REG_R13, [CFI_R14] = REG_R14, [CFI_R15] = REG_R15,
        [CFI_RIP] = REG_RIP};
    ucontext_t context;
    taken.callers[0] = (uint64_t)(uintptr_t)__builtin_return_address(0);
    getcontext(&context);
    for (int i = 0; i < CFI_REGISTERS; i++)
        taken.copy.registers.value[i] = (uint64_t)context.uc_mcontext.gregs[numbers[i]];
    taken.copy.registers.known = (1u << CFI_REGISTERS) - 1;
    copy_stack();
    sink++;
}

STANDS_ALONE void middle(void)
{
    taken.callers[1] = (uint64_t)(uintptr_t)__builtin_return_address(0);
    innermost();
    sink++;
}

STANDS_ALONE void outer(volatile char *room)
{
    room[0] = 1;
    taken.callers[2] = (uint64_t)(uintptr_t)__builtin_return_address(0);
    middle();
    sink++;
}

/* What this program has mapped for execution; `instead`: another file's path for its own, or NULL.
 */
static void add_mappings(struct cpu_tasks *tasks, struct cpu_process *process, const char *instead)
{
    char own[256] = "";
    ck_assert_int_gt(readlink("/proc/self/exe", own, sizeof own - 1), 0);
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512], path[256];
    unsigned long long start, end, offset;
    char rights[8];
    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%llx-%llx %7s %llx %*s %*s %255s", &start, &end, rights, &offset, path) ==
                5 &&
            rights[2] == 'x' && path[0] == '/') {
            struct cpu_mapping mapping = {start, end - start, offset, 0, 0};
            const char *file = instead && strcmp(path, own) == 0 ? instead : path;
            cpu_tasks_map(tasks, process, file, (const unsigned char *)"", 0, &mapping);
        }
    }
    fclose(maps);
}

struct scene {
    struct cpu_tasks tasks;
    struct cpu_process *process;
    struct cpu_unwinder unwinder;
};

static struct scene begin_with(const char *program)
{
    struct scene scene = {.tasks = {.period_ns = 1}};
    char room[STACK_BYTES * 2]; /* the copy ends inside of it, above all frames that count */
    scene.process = cpu_tasks_process(&scene.tasks, (uint32_t)getpid(), 0);
    add_mappings(&scene.tasks, scene.process, program);
    taken = (struct taken){.copy = {.stack = taken.stack}};
    outer(room);
    taken.copy.bytes = STACK_BYTES;
    return scene;
}

static struct scene begin(void)
{
    return begin_with(NULL);
}

static void end(struct scene *scene)
{
    cpu_unwinder_free(&scene->unwinder);
    cpu_tasks_free(&scene->tasks);
}

START_TEST(callers_are_found)
{
    struct scene scene = begin();
    struct cpu_chain chain = {.count = 0};
    cpu_unwind(&scene.unwinder, &scene.tasks, scene.process, &taken.copy, &chain);
    ck_assert_uint_ge(chain.count, 4);
    ck_assert_uint_eq(chain.frames[0], taken.copy.registers.value[CFI_RIP]);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(chain.frames[i + 1], taken.callers[i] - 1);
    end(&scene);
}
END_TEST

/* CPython's trampolines (-X perf): code of no file, without tables and without a frame pointer. */
static void (*stub)(void (*function)(void));

STANDS_ALONE void outer_by_stub(volatile char *room)
{
    room[0] = 1;
    taken.callers[2] = (uint64_t)(uintptr_t)__builtin_return_address(0);
    stub(middle);
    sink++;
}

static void make_stub(void)
{
    static const unsigned char code[] = {0x48, 0x83, 0xec, 0x08, /* sub $8, %rsp */
                                         0xff, 0xd7,             /* call *%rdi */
                                         0x48, 0x83, 0xc4, 0x08, /* add $8, %rsp */
                                         0xc3};                  /* ret */
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(page != MAP_FAILED);
    memcpy(page, code, sizeof code);
    ck_assert_int_eq(mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
    memcpy(&stub, &page, sizeof stub);
}

START_TEST(callers_are_found_through_a_stub)
{
    struct scene scene = begin();
    struct cpu_chain chain = {.count = 0};
    char room[STACK_BYTES * 2];
    make_stub();
    taken = (struct taken){.copy = {.stack = taken.stack}};
    outer_by_stub(room);
    taken.copy.bytes = STACK_BYTES;
    cpu_unwind(&scene.unwinder, &scene.tasks, scene.process, &taken.copy, &chain);
    ck_assert_uint_eq(chain.frames[1], taken.callers[0] - 1);
    ck_assert_uint_eq(chain.frames[2], taken.callers[1] - 1); /* in the stub */
    bool found = false;
    for (uint32_t i = 3; i < chain.count; i++)
        found |= chain.frames[i] == taken.callers[2] - 1;
    ck_assert(found);
    end(&scene);
}
END_TEST

static unsigned char bytes[16 << 20]; /* of this program */

static size_t read_self(void)
{
    FILE *self = fopen("/proc/self/exe", "r");
    size_t size = self ? fread(bytes, 1, sizeof bytes, self) : 0;
    ck_assert_uint_gt(size, 4096);
    fclose(self);
    return size;
}

/* As linkers leave it out of static programs. */
static void hide_search_table(void)
{
    Elf64_Ehdr header;
    memcpy(&header, bytes, sizeof header);
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        unsigned char *at = bytes + header.e_phoff + i * sizeof segment;
        memcpy(&segment, at, sizeof segment);
        segment.p_type = segment.p_type == PT_GNU_EH_FRAME ? PT_NULL : segment.p_type;
        memcpy(at, &segment, sizeof segment);
    }
}

START_TEST(callers_are_found_without_a_search_table)
{
    char name[] = "/tmp/perfkit-unwind-XXXXXX";
    int out = mkstemp(name);
    size_t size = read_self();
    hide_search_table();
    ck_assert(out >= 0 && write(out, bytes, size) == (ssize_t)size);
    struct scene scene = begin_with(name);
    struct cpu_chain chain = {.count = 0};
    cpu_unwind(&scene.unwinder, &scene.tasks, scene.process, &taken.copy, &chain);
    ck_assert_uint_ge(chain.count, 4);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(chain.frames[i + 1], taken.callers[i] - 1);
    end(&scene);
    close(out);
    unlink(name);
}
END_TEST

/* With the search table that is made: it is more than the file has. */
START_TEST(no_more_is_kept_than_there_is_room)
{
    char name[] = "/tmp/perfkit-unwind-XXXXXX";
    int out = mkstemp(name);
    size_t size = read_self();
    hide_search_table();
    ck_assert(out >= 0 && write(out, bytes, size) == (ssize_t)size);
    struct cpu_tables whole = {0}, cut = {0};
    uint64_t kept = cpu_tables_read(&whole, out, UINT64_MAX);
    ck_assert_uint_gt(kept, 8);
    ck_assert_uint_eq(cpu_tables_read(&cut, out, kept - 1), 0);
    ck_assert_ptr_null(cut.memory);
    ck_assert_uint_eq(cpu_tables_read(&cut, out, kept), kept);
    free(whole.memory);
    free(cut.memory);
    close(out);
    unlink(name);
}
END_TEST

/* Code of a file without tables: what rbp leads to must be a call from code. */
START_TEST(no_caller_but_code)
{
    char name[] = "/tmp/perfkit-unwind-XXXXXX";
    close(mkstemp(name)); /* no program at all */
    struct scene scene = begin_with(name);
    uint64_t words[2] = {0, 0x6578742e2e2e2e72};
    memcpy(taken.stack + 64, words, sizeof words);
    taken.copy.registers.value[CFI_RBP] = taken.copy.registers.value[CFI_RSP] + 64;
    for (int right = 0; right < 2; right++) {
        struct cpu_chain chain = {.count = 0};
        memcpy(taken.stack + 72, right ? &taken.callers[2] : &words[1], 8);
        cpu_unwind(&scene.unwinder, &scene.tasks, scene.process, &taken.copy, &chain);
        ck_assert_uint_eq(chain.count, right ? 2 : 1);
        ck_assert(chain.cut);
    }
    end(&scene);
    unlink(name);
}
END_TEST

START_TEST(a_short_copy_goes_on_by_frame_pointers)
{
    struct scene scene = begin();
    uint64_t first = taken.callers[0] - 1;
    struct cpu_chain chain = {.count = 3,
                              .frames = {taken.copy.registers.value[CFI_RIP], first, 0x1234}};
    uint64_t words[STACK_BYTES / 8];
    memcpy(words, taken.stack, sizeof words);
    for (taken.copy.bytes = 0; words[taken.copy.bytes / 8] != taken.callers[0];)
        taken.copy.bytes += 8;
    taken.copy.bytes += 8; /* up to the first return address */
    cpu_unwind(&scene.unwinder, &scene.tasks, scene.process, &taken.copy, &chain);
    ck_assert_uint_eq(chain.count, 3);
    ck_assert_uint_eq(chain.frames[1], first);
    ck_assert_uint_eq(chain.frames[2], 0x1234);
    ck_assert(chain.cut);
    ck_assert_uint_eq(scene.unwinder.cut, 1);
    end(&scene);
}
END_TEST

START_TEST(nonsense_ends)
{
    struct scene scene = begin();
    srandom(7);
    for (int round = 0; round < 20000; round++) {
        struct taken garbled = taken;
        struct cpu_chain chain = {.count = 0};
        garbled.copy.stack = garbled.stack;
        garbled.copy.bytes = (size_t)random() % STACK_BYTES;
        for (int i = 0; i < 20; i++)
            garbled.stack[random() % STACK_BYTES] = (unsigned char)random();
        garbled.copy.registers.value[random() % CFI_REGISTERS] ^= 1ull << (random() % 48);
        cpu_unwind(&scene.unwinder, &scene.tasks, scene.process, &garbled.copy, &chain);
        ck_assert_uint_le(chain.count, CPU_MOST_FRAMES);
    }
    end(&scene);
}
END_TEST

/* Files that are no programs, or whose tables are cut or garbled. */
START_TEST(broken_files_end_a_stack)
{
    char name[] = "/tmp/perfkit-unwind-XXXXXX";
    int out = mkstemp(name);
    size_t size = read_self();
    ck_assert_int_ge(out, 0);
    srandom(3);
    for (int round = 0; round < 60; round++) {
        struct cpu_tasks tasks = {.period_ns = 1};
        struct cpu_unwinder unwinder = {.table_bytes = 0};
        struct cpu_chain chain = {.count = 0};
        struct cpu_process *process = cpu_tasks_process(&tasks, (uint32_t)getpid(), 0);
        struct cpu_mapping mapping = {0x400000, size, 0, 0, 0};
        if (round == 20) {
            read_self();
            hide_search_table();
        }
        for (int i = 0; i < 40; i++)
            bytes[random() % (round % 2 ? 1024 : (long)size)] = (unsigned char)random();
        size_t kept = round % 3 ? size : (size_t)random() % size;
        ck_assert(ftruncate(out, 0) == 0 && pwrite(out, bytes, kept, 0) == (ssize_t)kept);
        cpu_tasks_map(&tasks, process, name, (const unsigned char *)"", 0, &mapping);
        taken = (struct taken){.copy = {.stack = taken.stack, .bytes = STACK_BYTES}};
        taken.copy.registers.known = (1u << CFI_REGISTERS) - 1;
        taken.copy.registers.value[CFI_RSP] = 0x7000;
        taken.copy.registers.value[CFI_RIP] = 0x400000 + (uint64_t)random() % size;
        cpu_unwind(&unwinder, &tasks, process, &taken.copy, &chain);
        ck_assert_uint_ge(chain.count, 1);
        cpu_unwinder_free(&unwinder);
        cpu_tasks_free(&tasks);
    }
    close(out);
    unlink(name);
}
END_TEST

CHECK_MAIN("cpu unwind", callers_are_found, callers_are_found_through_a_stub,
           callers_are_found_without_a_search_table, no_more_is_kept_than_there_is_room,
           no_caller_but_code, a_short_copy_goes_on_by_frame_pointers, nonsense_ends,
           broken_files_end_a_stack)

#else
int main(void)
{
    return 77; /* frame pointers only */
}
#endif
