/* The OpenCL layer against real programs on a real driver (PoCL where there is no GPU): the target
 * programs count what they do, the log of fake_core.c says what was recorded, and the two must
 * agree. argv: directory of the targets, the layer with the fake core. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check_main.h"
#include "tests/opencl/read_log.h"
#include "tests/opencl/targets/common.h"

static const char *targets, *layer;
static char folder[] = "/tmp/ocl_layer_XXXXXX";

static const char *in_folder(const char *name)
{
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* A sanitizer's library must come first in a process, so a sanitized layer is not preloaded, and
 * not put beneath a program that was built without. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { BARE = 0, LAYER = 1, PRELOAD = 2, NO_TICK = 4 };

/* Run a command line (words separated by blanks); stdout to a file. Returns the wait status. */
static int run(unsigned how, const char *output, const char *log, const char *line)
{
    char words[1024], *argv[64];
    int argc = 0;
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    pid_t pid = fork();
    if (pid == 0) {
        setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* the driver's */
        setenv("TSAN_OPTIONS", "die_after_fork=0:suppressions=" TSAN_SUPPRESSIONS, 1);
        int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, 1);
        if (how & LAYER) {
            setenv("OPENCL_LAYERS", layer, 1);
            setenv("OCL_TEST_LOG", log, 1);
            if ((how & PRELOAD) && !SANITIZED)
                setenv("LD_PRELOAD", layer, 1);
            if (how & NO_TICK)
                setenv("OCL_TEST_NO_TICK", "1", 1);
        }
        execvp(argv[0], argv);
        _exit(127);
    }
    int status = -1;
    for (int i = 0; i < 60000; i++) { /* ten minutes: a hang fails before Check ends the test */
        if (waitpid(pid, &status, WNOHANG) == pid)
            return status;
        usleep(10000);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    ck_abort_msg("hangs: %s", line);
    return -1;
}

static char *contents(const char *path)
{
    static char text[2][1 << 20];
    static unsigned next;
    char *to = text[next++ % 2];
    FILE *in = fopen(path, "r");
    ck_assert_msg(in != NULL, "cannot read %s", path);
    to[fread(to, 1, sizeof text[0] - 1, in)] = '\0';
    fclose(in);
    return to;
}

static struct tally read_tally(const char *json)
{
    struct tally tally = {0};
    char key[64];
    const char *at;
#define X(name)                                                                                    \
    snprintf(key, sizeof key, "\"%s\": ", #name);                                                  \
    at = strstr(json, key);                                                                        \
    ck_assert_msg(at != NULL, "no %s in %s", #name, json);                                         \
    tally.name = strtoull(at + strlen(key), NULL, 10);
    TALLY(X)
#undef X
    return tally;
}

static void add_transfer(struct tally *t, const struct wire_transfer *r)
{
    switch (r->copy_kind) {
#define KIND(kind, name)                                                                           \
    case WIRE_COPY_##kind:                                                                         \
        t->name++;                                                                                 \
        t->name##_bytes += r->bytes;                                                               \
        break;
        KIND(HTOD, htod)
        KIND(DTOH, dtoh)
        KIND(DTOD, dtod)
        KIND(HTOA, htoa)
        KIND(ATOH, atoh)
        KIND(ATOA, atoa)
        KIND(ATOD, atod)
        KIND(DTOA, dtoa)
        KIND(MAP, map)
        KIND(UNMAP, unmap)
        KIND(MIGRATE, migrate)
#undef KIND
    default:
        ck_abort_msg("copy kind %u", r->copy_kind);
    }
}

static bool is_native(const struct log *log, const struct wire_kernel *kernel)
{
    char name[64];
    const union record *config = log_find(log, WIRE_CONFIG, kernel->config);
    log_text(log, config->config.name, name, sizeof name);
    return strcmp(name, "native") == 0;
}

static struct tally count(const struct log *log)
{
    struct tally t = {0};
    uint64_t live = 0;
    for (size_t i = 0; i < log->count; i++) {
        const union record *r = log->list[i].record;
        switch (r->head.type) {
        case WIRE_CALL:
            t.build += r->call.klass == WIRE_CLASS_BUILD;
            t.other += r->call.klass == WIRE_CLASS_OTHER;
            t.launch_failed += r->call.klass == WIRE_CLASS_LAUNCH && r->call.result != 0;
            t.transfer_failed += r->call.klass == WIRE_CLASS_TRANSFER && r->call.result != 0;
            t.alloc_failed += r->call.klass == WIRE_CLASS_ALLOC && r->call.result != 0;
            break;
        case WIRE_KERNEL:
            if (is_native(log, &r->kernel))
                t.native++;
            else
                t.launch++;
            break;
        case WIRE_TRANSFER:
            add_transfer(&t, &r->transfer);
            break;
        case WIRE_MEMSET:
            t.fill++;
            t.fill_bytes += r->memset.bytes;
            break;
        case WIRE_DONE:
            t.command_failed += (r->head.flags & WIRE_FAILED) != 0;
            t.abandoned += (r->head.flags & WIRE_ABANDONED) != 0;
            break;
        case WIRE_SYNC:
            t.sync++;
            break;
        case WIRE_STREAM:
            t.queues++;
            break;
        case WIRE_ALLOC:
            t.alloc++;
            t.alloc_bytes += r->alloc.bytes;
            live += r->alloc.bytes;
            for (size_t j = 0; j < log->count; j++) {
                const union record *end = log->list[j].record;
                if (end->head.type == WIRE_FREE && end->free.id == r->alloc.id) {
                    t.freed++;
                    live -= r->alloc.bytes;
                }
            }
            break;
        default:
            break;
        }
    }
    t.leak_bytes = live;
    return t;
}

static void same(const char *what, const struct tally *did, struct tally *recorded)
{
    /* A failed command that the driver called complete for a moment (NVIDIA's does). */
    if (recorded->command_failed < did->command_failed &&
        recorded->command_failed + 2 >= did->command_failed)
        recorded->command_failed = did->command_failed;
#define X(name)                                                                                    \
    ck_assert_msg(did->name == recorded->name, "%s: %s: did %llu, recorded %llu", what, #name,     \
                  (unsigned long long)did->name, (unsigned long long)recorded->name);
    TALLY(X)
#undef X
}

static void exactly(unsigned how, const char *arguments)
{
    char line[512];
    struct log log;
    snprintf(line, sizeof line, "%s/exact %s --json -", targets, arguments);
    ck_assert_int_eq(run(how, in_folder("out"), in_folder("log"), line), 0);
    struct tally did = read_tally(contents(in_folder("out")));
    ck_assert(log_open(&log, in_folder("log")));
    const char *wrong = log_sound(&log, true);
    ck_assert_msg(!wrong, "%s: %s", arguments, wrong);
    struct tally recorded = count(&log);
    same(arguments, &did, &recorded);
    log_close(&log);
}

static const char *const exact_cases[] = {
    "--threads 1",
    "--threads 1 --order out --events 1",
    "--threads 1 --profile 1 --events 1",
    "--threads 1 --fail 1",
    "--threads 1 --gate 1 --order out",
    "--threads 8 --rounds 4",
    "--threads 8 --rounds 4 --order out --gate 1 --events 1",
    "--threads 8 --rounds 4 --share 1",
    "--threads 8 --rounds 4 --share 1 --order out --events 1 --profile 1",
    "--threads 8 --rounds 2 --fail 1 --gate 1",
};
#define EXACT_CASES (int)(sizeof exact_cases / sizeof exact_cases[0])

START_TEST(exact)
{
    exactly(LAYER, exact_cases[_i]);
}
END_TEST

START_TEST(exact_preloaded)
{
    exactly(LAYER | PRELOAD, exact_cases[_i]);
}
END_TEST

START_TEST(exact_without_helper)
{
    exactly(LAYER | NO_TICK, exact_cases[_i]);
}
END_TEST

/* ---- what is recorded of a kernel ------------------------------------------------------------ */

START_TEST(configurations)
{
    static const struct {
        const char *name;
        uint32_t grid[3], block[3], flags, shared;
        int launches;
    } expected[] = {
        {"scale", {256, 1, 1}, {0, 0, 0}, WIRE_CONFIG_RUNTIME_CHOSEN, 0, 10},
        {"sum_rows", {8, 1, 1}, {32, 1, 1}, 0, 128, 5},
        {"plane", {1, 1, 1}, {8, 4, 1}, 0, 0, 1},
        {"plane", {1, 1, 1}, {1, 1, 1}, 0, 0, 1},
    };
    char line[512], name[64];
    struct log log;
    snprintf(line, sizeof line, "%s/exact --rounds 1", targets);
    ck_assert_int_eq(run(LAYER, in_folder("out"), in_folder("log"), line), 0);
    ck_assert(log_open(&log, in_folder("log")));
    for (size_t e = 0; e < sizeof expected / sizeof expected[0]; e++) {
        int launches = 0;
        for (size_t i = 0; i < log.count; i++) {
            if (log.list[i].record->head.type != WIRE_KERNEL)
                continue;
            const union record *r = log_find(&log, WIRE_CONFIG, log.list[i].record->kernel.config);
            log_text(&log, r->config.name, name, sizeof name);
            const uint32_t known = WIRE_CONFIG_RUNTIME_CHOSEN | WIRE_CONFIG_RAGGED;
            launches += strcmp(name, expected[e].name) == 0 &&
                        memcmp(r->config.grid, expected[e].grid, sizeof r->config.grid) == 0 &&
                        memcmp(r->config.block, expected[e].block, sizeof r->config.block) == 0 &&
                        (r->head.flags & known) == expected[e].flags &&
                        (!(r->head.flags & WIRE_CONFIG_HAS_SHARED) ||
                         r->config.shared_static >= expected[e].shared);
        }
        ck_assert_msg(launches == expected[e].launches, "%s: %d", expected[e].name, launches);
    }
    log_close(&log);
}
END_TEST

/* ---- transparency ---------------------------------------------------------------------------- */

static void transparent(const char *line)
{
    int bare = run(BARE, in_folder("bare"), NULL, line);
    int with = run(LAYER | PRELOAD, in_folder("with"), in_folder("log"), line);
    ck_assert_int_eq(bare, with);
    ck_assert_str_eq(contents(in_folder("bare")), contents(in_folder("with")));
}

static const char *const curious_cases[] = {"", "--profile 1", "--order out",
                                            "--profile 1 --order out"};
START_TEST(unnoticed)
{
    char line[512];
    snprintf(line, sizeof line, "%s/curious %s", targets, curious_cases[_i]);
    transparent(line);
}
END_TEST

START_TEST(unnoticed_by_clinfo)
{
    if (SANITIZED || WEXITSTATUS(run(BARE, in_folder("bare"), NULL, "clinfo --version")) == 127)
        return;
    transparent("clinfo --raw");
}
END_TEST

/* ---- deaths ---------------------------------------------------------------------------------- */

static const struct death {
    const char *how;
    bool hooks; /* exit hooks run, so every command has its DONE */
} deaths[] = {
    {"return", true},   {"exit", true},  {"_exit", false},    {"quick_exit", false},
    {"abort", false},   {"segv", false}, {"term", false},     {"kill", false},
    {"exec", false},    {"fork", true},  {"fork_exit", true}, {"callback", true},
    {"handler", false},
};
#define DEATHS (int)(sizeof deaths / sizeof deaths[0])

static void die(const struct death *death, const char *more)
{
    char line[512];
    struct log log;
    struct tally recorded;
    snprintf(line, sizeof line, "%s/deaths --how %s --progress %s %s", targets, death->how,
             in_folder("progress"), more);
    int bare = run(BARE, in_folder("out"), NULL, line);
    int status = run(LAYER | PRELOAD, in_folder("out"), in_folder("log"), line);
    ck_assert_msg(bare == status, "%s: %#x bare, %#x", line, (unsigned)bare, (unsigned)status);
    uint64_t made = 0;
    memcpy(&made, contents(in_folder("progress")), sizeof made);
    ck_assert(log_open(&log, in_folder("log")));
    const char *wrong = log_sound(&log, death->hooks);
    ck_assert_msg(!wrong, "%s: %s", line, wrong);
    memset(&recorded, 0, sizeof recorded);
    uint64_t finished = 0;
    for (size_t i = 0; i < log.count; i++) {
        recorded.launch += log.list[i].record->head.type == WIRE_KERNEL;
        finished += log.list[i].record->head.type == WIRE_DONE;
        recorded.abandoned += log.list[i].record->head.type == WIRE_DONE &&
                              (log.list[i].record->head.flags & WIRE_ABANDONED) != 0;
    }
    ck_assert_msg(recorded.launch == made || recorded.launch == made + 1,
                  "%s: made %llu, recorded %llu", line, (unsigned long long)made,
                  (unsigned long long)recorded.launch);
    if (death->hooks)
        ck_assert_uint_eq(finished, recorded.launch);
    if (strstr(more, "--gate 1") && death->hooks)
        ck_assert_uint_eq(recorded.abandoned, 1);
    else if (strstr(more, "--finish 1") && death->hooks && strcmp(death->how, "callback") != 0)
        ck_assert_uint_eq(recorded.abandoned, 0);
    log_close(&log);
}

START_TEST(death)
{
    die(&deaths[_i], "");
    if (strcmp(deaths[_i].how, "handler") == 0) {
        for (int i = 0; i < 20; i++)
            die(&deaths[_i], "");
        return;
    }
    die(&deaths[_i], "--finish 1");
    if (strncmp(deaths[_i].how, "fork", 4) != 0 && strcmp(deaths[_i].how, "callback") != 0)
        die(&deaths[_i], "--launches 100 --gate 1");
}
END_TEST

static void make_folder(void)
{
    ck_assert(mkdtemp(folder) != NULL);
}

static void remove_folder(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    targets = argv[1];
    layer = argv[2];
    char line[512];
    snprintf(line, sizeof line, "%s/exact --rounds 0", targets);
    int status = run(BARE, "/dev/null", NULL, line);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        puts("no OpenCL device: skipped");
        return 77;
    }
    /* PoCL compiles a kernel when it first runs and keeps it on disk; a process that exits in the
     * middle of that crashes, layer or not. */
    snprintf(line, sizeof line, "%s/deaths --finish 1", targets);
    run(BARE, "/dev/null", NULL, line);
    return CHECK_RUN("opencl layer", make_folder, remove_folder, {exact, EXACT_CASES},
                     {exact_preloaded, EXACT_CASES}, {exact_without_helper, EXACT_CASES},
                     {configurations, 1}, {unnoticed, 4}, {unnoticed_by_clinfo, 1},
                     {death, DEATHS});
}
