/* Runs tests/host/targets/ways in every way, bare and with the host part preloaded: output and
 * status must be the same, and the core must have been told what happened. Arguments: ways, the
 * library (host part over fake_log.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check_main.h"
#include "tests/host/run_way.h"

#define EXIT(status) " a end exit 0 a end exit " #status
/* What perfkit's variables look like in a program that was started without them. */
#define PASSED                                                                                     \
    "LD_PRELOAD=$LIB\nPERFKIT_DIR=$DIR\nPERFKIT_OPTIONS=o=1\nCUDA_INJECTION64_PATH=/c.so\n"        \
    "NVTX_INJECTION64_PATH=/n.so\nOPENCL_LAYERS=/l.so\n"

static const struct {
    const char *way;
    const char *calls;  /* to the core, processes as letters in order of appearance */
    const char *output; /* NULL = as without perfkit */
} cases[] = {
    {"return", "a hello return 2" EXIT(7), NULL},
    {"exit", "a hello exit 2" EXIT(200), NULL},
    {"exit_big", "a hello exit_big 2" EXIT(259), NULL},
    {"exit_handler", "a hello exit_handler 2" EXIT(4), NULL},
    {"exit_in_handler", "a hello exit_in_handler 2 a end _exit 9", NULL},
    {"exit_thread", "a hello exit_thread 2" EXIT(5), NULL},
    {"last_thread", "a hello last_thread 2" EXIT(0), NULL},
    {"fast", "a hello fast 2 a end _exit 6", NULL},
    {"Fast", "a hello Fast 2 a end _exit 8", NULL},
    {"quick", "a hello quick 2 a end quick_exit 11", NULL},
    {"raw", "a hello raw 2", NULL},
    {"abort", "a hello abort 2", NULL},
    {"crash", "a hello crash 2", NULL},
    {"term", "a hello term 2", NULL},
    {"kill", "a hello kill 2", NULL},
    {"exec", "a hello exec 2 a end exec 0 a hello return 2" EXIT(7), NULL},
    {"exec_fails",
     "a hello exec_fails 2 a end exec 0 a revive - 0 a end exec 0 a revive - 0" EXIT(3), NULL},
    {"exec_null", "a hello exec_null 2 a end exec 0 a hello env 2" EXIT(0),
     "exec_null\nenv\n" PASSED "0 others\n"},
    {"exec_clean", "a hello exec_clean 2 a end exec 0 a hello env 2" EXIT(0),
     "exec_clean\nenv\nONLY=this\n" PASSED "0 others\n"},
    {"exec_cleared", "a hello exec_cleared 2 a end exec 0 a hello env 2" EXIT(0),
     "exec_cleared\nenv\n" PASSED "0 others\n"},
    {"exec_overwritten", "a hello exec_overwritten 2 a end exec 0 a hello env 2" EXIT(0),
     "exec_overwritten\nenv\nLD_PRELOAD=$LIB\nPERFKIT_DIR=$DIR\nPERFKIT_OPTIONS=o=1\n"
     "CUDA_INJECTION64_PATH=/c.so\nNVTX_INJECTION64_PATH=/somebody/elses.so\n"
     "OPENCL_LAYERS=/l.so\n1 others\n"},
    {"exec_other_perfkit", "a hello exec_other_perfkit 2 a end exec 0", NULL},
    {"exec_many", "a hello exec_many 2 a end exec 0 a hello env 2" EXIT(0),
     "exec_many\nenv\n" PASSED "5000 others\n"},
    {"execl", "a hello execl 2 a end exec 0 a hello 3 5" EXIT(0), NULL},
    {"execlp", "a hello execlp 2 a end exec 0 a hello 1 3" EXIT(0), NULL},
    {"execle", "a hello execle 2 a end exec 0 a hello env 2" EXIT(0),
     "execle\nenv\nONLY=this\n" PASSED "0 others\n"},
    {"execvp", "a hello execvp 2 a end exec 0 a hello return 2" EXIT(7), NULL},
    {"execvpe", "a hello execvpe 2 a end exec 0 a hello env 2" EXIT(0),
     "execvpe\nenv\nONLY=this\n" PASSED "0 others\n"},
    {"fexecve", "a hello fexecve 2 a end exec 0 a hello return 2" EXIT(7), NULL},
    {"execveat", "a hello execveat 2 a end exec 0 a hello return 2" EXIT(7), NULL},
    {"fork", "a hello fork 2 b end exit 0 b end exit 21" EXIT(0), NULL},
    {"fork_fast", "a hello fork_fast 2 b end _exit 22" EXIT(0), NULL},
    {"fork_exec",
     "a hello fork_exec 2 b end exec 0 b hello return 2 b end exit 0 b end exit 7" EXIT(0), NULL},
    {"vfork_exec",
     "a hello vfork_exec 2 b borrowed exec 0 b hello return 2 b end exit 0 b end exit 7" EXIT(0),
     NULL},
    {"vfork_clean",
     "a hello vfork_clean 2 b borrowed exec 0 b hello env 2 b end exit 0 b end exit 0" EXIT(0),
     "vfork_clean\nenv\n" PASSED "0 others\nchild: exit 0\n"},
    {"vfork_fails", "a hello vfork_fails 2 b borrowed exec 0 b borrowed _exit 127" EXIT(0), NULL},
    {"spawn", "a hello spawn 2 b hello return 2 b end exit 0 b end exit 7" EXIT(0), NULL},
    {"spawnp_clean", "a hello spawnp_clean 2 b hello env 2 b end exit 0 b end exit 0" EXIT(0),
     "spawnp_clean\nenv\nONLY=this\n" PASSED "0 others\nchild: exit 0\n"},
    {"spawn_fails", "a hello spawn_fails 2" EXIT(0), NULL},
    {"system", NULL, NULL}, /* the shell decides */
    {"clone", "a hello clone 2 b borrowed _exit 23" EXIT(0), NULL},
    {"daemon", "a hello daemon 2 b end _exit 0 c end _exit 0" EXIT(0), NULL},
};
#define CASES ((int)(sizeof cases / sizeof *cases))

static const char *ways, *library;
static char directory[64], log_path[96];

static int run(const char *way, char *const *environment, char *output, size_t size)
{
    return run_way(ways, way, environment, output, size);
}

/* The log as one line, pids as letters. */
static void read_log(char *to, size_t size)
{
    char line[256];
    long pids[8];
    int seen = 0;
    *to = '\0';
    FILE *log = fopen(log_path, "r");
    while (log && fgets(line, sizeof line, log)) {
        char *rest;
        long pid = strtol(line, &rest, 10);
        int i = 0;
        while (i < seen && pids[i] != pid)
            i++;
        ck_assert_int_lt(i, 8);
        if (i == seen)
            pids[seen++] = pid;
        rest[strcspn(rest, "\n")] = '\0';
        size_t used = strlen(to);
        snprintf(to + used, size - used, "%s%c%s", used ? " " : "", 'a' + i, rest);
    }
    if (log)
        fclose(log);
}

static void expand(char *to, size_t size, const char *from)
{
    size_t used = 0;
    while (*from && used < size - 256) {
        const char *put = strncmp(from, "$LIB", 4) == 0   ? library
                          : strncmp(from, "$DIR", 4) == 0 ? directory
                                                          : NULL;
        if (put)
            used += (size_t)snprintf(to + used, size - used, "%s", put);
        else
            to[used++] = *from;
        from += put ? 4 : 1;
    }
    to[used] = '\0';
}

START_TEST(behaves_the_same)
{
    static char bare[65536], preloaded[65536], expected[65536], calls[4096];
    char variable[2][512];
    snprintf(variable[0], sizeof variable[0], "LD_PRELOAD=%s", library);
    snprintf(variable[1], sizeof variable[1], "PERFKIT_DIR=%s", directory);
    char path[] = "PATH=/usr/bin:/bin", *without[] = {path, NULL};
    char *with[] = {path,
                    variable[0],
                    variable[1],
                    (char[]){"PERFKIT_OPTIONS=o=1"},
                    (char[]){"CUDA_INJECTION64_PATH=/c.so"},
                    (char[]){"NVTX_INJECTION64_PATH=/n.so"},
                    (char[]){"OPENCL_LAYERS=/l.so"},
                    NULL};
    unlink(log_path);
    int status = run(cases[_i].way, without, bare, sizeof bare);
    ck_assert_int_eq(access(log_path, F_OK), -1);
    ck_assert_msg(run(cases[_i].way, with, preloaded, sizeof preloaded) == status, "%s: status",
                  cases[_i].way);
    expand(expected, sizeof expected, cases[_i].output ? cases[_i].output : bare);
    ck_assert_msg(strcmp(preloaded, expected) == 0, "%s: output\n%s\nexpected\n%s", cases[_i].way,
                  preloaded, expected);
    read_log(calls, sizeof calls);
    if (cases[_i].calls)
        ck_assert_msg(strcmp(calls, cases[_i].calls) == 0, "%s: calls\n%s\nexpected\n%s",
                      cases[_i].way, calls, cases[_i].calls);
    /* Preloaded without perfkit's variables: as if it were not there. */
    unlink(log_path);
    char *only[] = {path, variable[0], NULL};
    ck_assert_int_eq(run(cases[_i].way, only, preloaded, sizeof preloaded), status);
    ck_assert_int_eq(access(log_path, F_OK), -1);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    ways = argv[1];
    library = argv[2];
    snprintf(directory, sizeof directory, "/tmp/perfkit-ways-XXXXXX");
    if (!mkdtemp(directory))
        return 2;
    snprintf(log_path, sizeof log_path, "%s/log", directory);
    int failed = CHECK_RUN("ways to start and end", NULL, NULL, {behaves_the_same, CASES});
    unlink(log_path);
    rmdir(directory);
    return failed;
}
