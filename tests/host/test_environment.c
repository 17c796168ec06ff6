/* What a started program's environment becomes, and which programs are given our library: the
 * pure parts of the host collector, in process, so that sanitizers see them. */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/host/host.h"
#include "libprof/spool/lifecycle.h"
#include "tests/check_main.h"

#define LIB "/opt/perfkit/lib/libperfkit_collector.so"

static uint32_t noted, facts;
static bool attached; /* the collectors have */
struct host_real host_real = {.setenv = NULL};

void host_real_find(void)
{
    void *real = dlsym(RTLD_NEXT, "setenv");
    memcpy(&host_real.setenv, &real, sizeof real);
}

void collector_note_fact(uint32_t more)
{
    noted |= more;
}

bool collector_attached(enum wire_source source)
{
    (void)source;
    return attached;
}

bool collector_option(const char *name, char *value, size_t size)
{
    ck_assert_str_eq(name, "inject");
    snprintf(value, size, "nvtx+opencl");
    return true;
}

static char *const *list(const char *first, ...)
{
    static const char *entries[32];
    size_t n = 0;
    va_list rest;
    va_start(rest, first);
    for (const char *at = first; at; at = va_arg(rest, const char *))
        entries[n++] = at;
    va_end(rest);
    entries[n] = NULL;
    return (char *const *)(uintptr_t)entries;
}

static void start(void)
{
    ck_assert(host_environment_remember(list("HOME=/root", "PERFKIT_DIR=/d", "PERFKIT_OPTIONS=a=1",
                                             "LD_PRELOAD=/x.so:" LIB, "NVTX_INJECTION64_PATH=" LIB,
                                             "OPENCL_LAYERS=" LIB, NULL),
                                        LIB, &facts));
    ck_assert_uint_eq(facts, 0);
}

/* The new environment as one text, "(same)" when it is handed on as it is. In a heap block of just
 * the size asked for, so that ASan sees a byte too many. */
static const char *planned(char *const *envp, bool preload)
{
    static char text[4096];
    struct host_plan plan;
    host_plan_make(&plan, envp, preload);
    if (plan.bytes == 0)
        return "(same)";
    void *room = malloc(plan.bytes);
    text[0] = '\0';
    for (char *const *at = host_plan_apply(&plan, envp, room); *at; at++) {
        strcat(text, *at);
        strcat(text, "\n");
    }
    free(room);
    return text;
}

#define REST                                                                                       \
    "PERFKIT_DIR=/d\nPERFKIT_OPTIONS=a=1\nNVTX_INJECTION64_PATH=" LIB "\nOPENCL_LAYERS=" LIB "\n"
#define ALL                                                                                        \
    "PERFKIT_DIR=/d", "PERFKIT_OPTIONS=a=1", "NVTX_INJECTION64_PATH=" LIB, "OPENCL_LAYERS=" LIB

START_TEST(complete_is_left_alone)
{
    start();
    ck_assert_str_eq(planned(list(ALL, "LD_PRELOAD=" LIB, NULL), true), "(same)");
    ck_assert_str_eq(planned(list("A=1", ALL, "LD_PRELOAD=/y.so " LIB ":/z.so", NULL), true),
                     "(same)");
}
END_TEST

START_TEST(missing_is_added)
{
    start();
    ck_assert_str_eq(planned(NULL, true), "LD_PRELOAD=" LIB "\n" REST);
    ck_assert_str_eq(planned(list("A=1", NULL), true), "A=1\nLD_PRELOAD=" LIB "\n" REST);
    ck_assert_str_eq(planned(list("PERFKIT_DIR=/d", "LD_PRELOAD=" LIB, "", NULL), true),
                     "PERFKIT_DIR=/d\nLD_PRELOAD=" LIB "\n\nPERFKIT_OPTIONS=a=1\n"
                     "NVTX_INJECTION64_PATH=" LIB "\nOPENCL_LAYERS=" LIB "\n");
}
END_TEST

START_TEST(preload_is_a_list)
{
    start();
    ck_assert_str_eq(planned(list("LD_PRELOAD=/jemalloc.so", ALL, NULL), true),
                     "LD_PRELOAD=/jemalloc.so:" LIB "\n" REST);
    ck_assert_str_eq(planned(list("LD_PRELOAD=", ALL, NULL), true), "LD_PRELOAD=" LIB "\n" REST);
    /* a longer name that contains ours is not ours */
    ck_assert_str_eq(planned(list("LD_PRELOAD=" LIB ".1", ALL, NULL), true),
                     "LD_PRELOAD=" LIB ".1:" LIB "\n" REST);
}
END_TEST

START_TEST(preload_is_taken_out_for_programs_that_cannot_have_it)
{
    start();
    ck_assert_str_eq(planned(list("LD_PRELOAD=" LIB, ALL, NULL), false), REST);
    ck_assert_str_eq(planned(list("LD_PRELOAD=/a.so:" LIB, ALL, NULL), false),
                     "LD_PRELOAD=/a.so\n" REST);
    ck_assert_str_eq(planned(list("LD_PRELOAD=" LIB ":/a.so", ALL, NULL), false),
                     "LD_PRELOAD=/a.so\n" REST);
    ck_assert_str_eq(planned(list("LD_PRELOAD=/a.so " LIB ":/b.so", ALL, NULL), false),
                     "LD_PRELOAD=/a.so /b.so\n" REST);
    ck_assert_str_eq(planned(list("A=1", ALL, NULL), false), "(same)");
    ck_assert_str_eq(planned(list("A=1", NULL), false), "A=1\n" REST);
}
END_TEST

START_TEST(other_values_stay_and_are_noted)
{
    start();
    char *const *envp = list("PERFKIT_DIR=/d", "PERFKIT_OPTIONS=a=1", "LD_PRELOAD=" LIB,
                             "NVTX_INJECTION64_PATH=/nsys.so", "OPENCL_LAYERS=" LIB, NULL);
    ck_assert_str_eq(planned(envp, true), "(same)");
    ck_assert_uint_eq(noted, 0); /* the program says it itself */
    planned(envp, false);
    ck_assert_uint_eq(noted, LIFECYCLE_OTHER_NVTX);
}
END_TEST

START_TEST(our_layer_joins_those_of_the_program)
{
    start();
#define OTHERS "PERFKIT_DIR=/d", "PERFKIT_OPTIONS=a=1", "NVTX_INJECTION64_PATH=" LIB
#define OTHERS_TEXT "PERFKIT_DIR=/d\nPERFKIT_OPTIONS=a=1\nNVTX_INJECTION64_PATH=" LIB "\n"
    ck_assert_str_eq(planned(list(OTHERS, "OPENCL_LAYERS=/l.so", "LD_PRELOAD=" LIB, NULL), true),
                     OTHERS_TEXT "OPENCL_LAYERS=/l.so:" LIB "\nLD_PRELOAD=" LIB "\n");
    ck_assert_str_eq(planned(list("OPENCL_LAYERS=", "LD_PRELOAD=/x.so", OTHERS, NULL), true),
                     "OPENCL_LAYERS=" LIB "\nLD_PRELOAD=/x.so:" LIB "\n" OTHERS_TEXT);
    ck_assert_str_eq(
        planned(list(OTHERS, "OPENCL_LAYERS=" LIB ":/l.so", "LD_PRELOAD=" LIB, NULL), true),
        "(same)");
    ck_assert_uint_eq(noted, 0);
    /* in the program's own environment */
    setenv("OPENCL_LAYERS", "/l.so", 1);
    ck_assert_str_eq(getenv("OPENCL_LAYERS"), "/l.so:" LIB);
    setenv("OPENCL_LAYERS", LIB, 1);
    ck_assert_str_eq(getenv("OPENCL_LAYERS"), LIB);
    setenv("OPENCL_LAYERS", "/other.so", 0);
    ck_assert_str_eq(getenv("OPENCL_LAYERS"), LIB);
    setenv("SOMETHING", "/l.so", 1);
    ck_assert_str_eq(getenv("SOMETHING"), "/l.so");
}
END_TEST

START_TEST(what_a_wrapper_changed_is_mended_or_said)
{
    /* a static program has no hooks: what it starts finds this */
    ck_assert(
        host_environment_remember(list("PERFKIT_DIR=/d", "LD_PRELOAD=" LIB, "OPENCL_LAYERS=/l.so",
                                       "NVTX_INJECTION64_PATH=/n.so", NULL),
                                  LIB, &facts));
    ck_assert_uint_eq(facts, LIFECYCLE_OTHER_NVTX);
    host_environment_repair();
    ck_assert_str_eq(getenv("OPENCL_LAYERS"), "/l.so:" LIB);
    ck_assert_ptr_null(getenv("NVTX_INJECTION64_PATH"));
    /* the programs that it starts are given ours where they have none */
    ck_assert_str_eq(planned(list("PERFKIT_DIR=/d", "LD_PRELOAD=" LIB, NULL), true),
                     "PERFKIT_DIR=/d\nLD_PRELOAD=" LIB "\nNVTX_INJECTION64_PATH=" LIB
                     "\nOPENCL_LAYERS=/l.so:" LIB "\n");
}
END_TEST

START_TEST(what_the_program_changed_itself_is_said)
{
    start();
    unsetenv("NVTX_INJECTION64_PATH");
    unsetenv("OPENCL_LAYERS"); /* libOpenCL is not loaded here */
    ck_assert_uint_eq(host_environment_changed(), 0);
    setenv("NVTX_INJECTION64_PATH", "/n.so", 1);
    ck_assert_uint_eq(host_environment_changed(), LIFECYCLE_OTHER_NVTX);
    attached = true; /* before it was changed */
    ck_assert_uint_eq(host_environment_changed(), 0);
}
END_TEST

START_TEST(another_perfkit_is_left_alone)
{
    start();
    ck_assert_str_eq(planned(list("PERFKIT_DIR=/other", NULL), true), "(same)");
}
END_TEST

START_TEST(without_perfkit_nothing_happens)
{
    ck_assert(!host_environment_remember(list("HOME=/root", "LD_PRELOAD=" LIB, NULL), LIB, &facts));
    ck_assert_str_eq(planned(list("A=1", NULL), true), "(same)");
    ck_assert(!host_environment_preloads());
}
END_TEST

START_TEST(a_variable_too_long_to_keep_is_given_up)
{
    static char huge[20000] = "PERFKIT_OPTIONS=";
    memset(huge + 16, 'x', sizeof huge - 17);
    ck_assert(host_environment_remember(list(huge, "PERFKIT_DIR=/d", NULL), NULL, &facts));
    ck_assert_str_eq(planned(list("A=1", NULL), true), "A=1\nPERFKIT_DIR=/d\n");
}
END_TEST

/* ---- programs -------------------------------------------------------------------------------- */

static char scratch[64];

static void write_file(const void *data, size_t bytes)
{
    int fd = open(scratch, O_CREAT | O_TRUNC | O_WRONLY, 0700);
    ck_assert_int_eq(write(fd, data, bytes), (ssize_t)bytes);
    close(fd);
}

START_TEST(programs_are_looked_at)
{
    ck_assert(host_elf_takes_preload("/bin/sh"));
    ck_assert(host_elf_takes_preload_file("sh"));
    ck_assert(host_elf_takes_preload("/nonexistent"));
    ck_assert(host_elf_takes_preload_file("no-such-program-anywhere"));
    ck_assert(host_elf_takes_preload_file(""));
    ck_assert(host_elf_takes_preload(NULL));
    ck_assert(host_elf_takes_preload("/"));
    write_file("#!/bin/sh\n", 10);
    ck_assert(host_elf_takes_preload(scratch));
    unsigned char small[64] = {0x7f, 'E', 'L', 'F', ELFCLASS32, 1, 1};
    write_file(small, sizeof small);
    ck_assert(!host_elf_takes_preload(scratch));
    small[EI_CLASS] = ELFCLASS64; /* machine 0 */
    write_file(small, sizeof small);
    ck_assert(!host_elf_takes_preload(scratch));
    unlink(scratch);
}
END_TEST

struct tiny {
    Elf64_Ehdr header;
    Elf64_Phdr load, dynamic_segment;
    Elf64_Dyn dynamic[4];
    char strings[64];
};

static struct tiny needing(const char *library)
{
    Elf64_Ehdr ours;
    int fd = open("/proc/self/exe", O_RDONLY);
    ck_assert_int_eq(read(fd, &ours, sizeof ours), sizeof ours);
    close(fd);
    struct tiny tiny = {
        .header = ours,
        .load = {.p_type = PT_LOAD, .p_vaddr = 0x400000, .p_filesz = sizeof tiny},
        .dynamic_segment = {.p_type = PT_DYNAMIC,
                            .p_offset = offsetof(struct tiny, dynamic),
                            .p_filesz = sizeof tiny.dynamic},
        .dynamic = {{DT_NEEDED, {0}},
                    {DT_NEEDED, {8}},
                    {DT_STRTAB, {0x400000 + offsetof(struct tiny, strings)}},
                    {DT_NULL, {0}}},
    };
    tiny.header.e_phoff = offsetof(struct tiny, load);
    tiny.header.e_phnum = 2;
    tiny.header.e_phentsize = sizeof(Elf64_Phdr);
    memcpy(tiny.strings, "libm.so", 8);
    strcpy(tiny.strings + 8, library);
    return tiny;
}

START_TEST(sanitized_programs_are_spared)
{
    struct tiny tiny = needing("libasan.so.8");
    write_file(&tiny, sizeof tiny);
    ck_assert(!host_elf_takes_preload(scratch));
    tiny = needing("libc.so.6");
    write_file(&tiny, sizeof tiny);
    ck_assert(host_elf_takes_preload(scratch));
    unlink(scratch);
    /* broken files: any answer, no harm */
    int fd = memfd_create("elf", MFD_CLOEXEC);
    unsigned seed = 1;
    for (int i = 0; i < 50000; i++) {
        tiny = needing("libasan.so.8");
        for (int k = 0; k < 4; k++)
            ((unsigned char *)&tiny)[16 + (size_t)rand_r(&seed) % (sizeof tiny - 16)] =
                (unsigned char)rand_r(&seed);
        ck_assert_int_eq(pwrite(fd, &tiny, sizeof tiny, 0), sizeof tiny);
        if (i % 8 == 0)
            ck_assert_int_eq(ftruncate(fd, (off_t)((size_t)rand_r(&seed) % sizeof tiny)), 0);
        host_elf_takes_preload_fd(fd);
    }
    close(fd);
}
END_TEST

/* A dynamic program by its loader's name. */
static struct tiny loaded_by(const char *loader)
{
    struct tiny tiny = needing("libc.so.6");
    tiny.load = (Elf64_Phdr){.p_type = PT_INTERP,
                             .p_offset = offsetof(struct tiny, strings),
                             .p_filesz = strlen(loader) + 1};
    strcpy(tiny.strings, loader);
    return tiny;
}

START_TEST(programs_of_another_c_library_are_spared)
{
    char own[64] = "", line[128];
    Elf64_Ehdr header;
    int fd = open("/proc/self/exe", O_RDONLY);
    ck_assert_int_eq(read(fd, &header, sizeof header), sizeof header);
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        off_t at = (off_t)(header.e_phoff + i * sizeof segment);
        ck_assert_int_eq(pread(fd, &segment, sizeof segment, at), sizeof segment);
        if (segment.p_type == PT_INTERP && segment.p_filesz < sizeof own)
            ck_assert_int_gt(pread(fd, own, segment.p_filesz, (off_t)segment.p_offset), 0);
    }
    close(fd);
    host_elf_find_loader();
    struct tiny tiny = loaded_by("/lib/ld-musl-x86_64.so.1");
    write_file(&tiny, sizeof tiny);
    ck_assert(!host_elf_takes_preload(scratch));
    /* a script is its interpreter's */
    char script[96];
    snprintf(script, sizeof script, "%s-script", scratch);
    int length = snprintf(line, sizeof line, "#! %s -x\nrest\n", scratch);
    fd = open(script, O_CREAT | O_TRUNC | O_WRONLY, 0700);
    ck_assert_int_eq(write(fd, line, (size_t)length), length);
    close(fd);
    ck_assert(!host_elf_takes_preload(script));
    tiny = loaded_by(own);
    write_file(&tiny, sizeof tiny);
    ck_assert(host_elf_takes_preload(scratch));
    ck_assert(host_elf_takes_preload(script));
    /* of the same name elsewhere (Nix, Spack) */
    snprintf(line, sizeof line, "/elsewhere/%s", strrchr(own, '/') + 1);
    tiny = loaded_by(line);
    write_file(&tiny, sizeof tiny);
    ck_assert(host_elf_takes_preload(scratch));
    unlink(script);
    unlink(scratch);
    ck_assert(host_elf_takes_preload("/bin/sh"));
}
END_TEST

int main(void)
{
    snprintf(scratch, sizeof scratch, "/tmp/perfkit-test-elf-%ld", (long)getpid());
    return CHECK_RUN(
        "host: environment and programs", NULL, NULL, {complete_is_left_alone, 1},
        {missing_is_added, 1}, {preload_is_a_list, 1},
        {preload_is_taken_out_for_programs_that_cannot_have_it, 1},
        {other_values_stay_and_are_noted, 1}, {our_layer_joins_those_of_the_program, 1},
        {what_a_wrapper_changed_is_mended_or_said, 1}, {what_the_program_changed_itself_is_said, 1},
        {another_perfkit_is_left_alone, 1}, {without_perfkit_nothing_happens, 1},
        {a_variable_too_long_to_keep_is_given_up, 1}, {programs_are_looked_at, 1},
        {sanitized_programs_are_spared, 1}, {programs_of_another_c_library_are_spared, 1});
}
