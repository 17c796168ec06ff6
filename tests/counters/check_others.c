/* Whose the processes on a GPU are, with NVML's list made up (fake_nvml.c). Skips in a container,
 * where nothing is known of them: that is tested there. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "samplers/counters/sampler.h"
#include "tests/check_main.h"

#define DIRECTORY "/dev/shm/perfkit-x"

/* A process with or without the run's environment. That is known of it once the program has begun:
 * exec closes descriptors before it sets the environment. It dies with the test. */
static pid_t process(const char *directory, int *end)
{
    int ends[2];
    char text[64], byte;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    snprintf(text, sizeof text, "PERFKIT_DIR=%s", directory);
    pid_t pid = fork();
    if (pid == 0) {
        char *const arguments[] = {"sh", "-c", "echo; read line", NULL}, *const environment[] = {
                                                                             "A=b", text, NULL};
        dup2(ends[1], STDIN_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        execve("/bin/sh", arguments, environment);
        _exit(1);
    }
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    *end = ends[0];
    return pid;
}

static void finish(pid_t pid, int end)
{
    close(end);
    waitpid(pid, NULL, 0);
}

static struct others look_from(const char *directory, const char *pids)
{
    setenv("FAKE_NVML", pids, 1);
    void *device = others_device("GPU-1");
    ck_assert_ptr_nonnull(device);
    return others_look(device, directory);
}

static struct others look(const char *pids)
{
    return look_from(DIRECTORY, pids);
}

START_TEST(ours_and_others_are_told_apart)
{
    char list[64];
    int end, other_end;
    pid_t ours = process(DIRECTORY, &end), another = process("/dev/shm/perfkit-y", &other_end);
    ck_assert(others_open());
    snprintf(list, sizeof list, "%d,%d,%d", (int)ours, (int)another, (int)getpid());
    struct others others = look(list);
    finish(ours, end);
    finish(another, other_end);
    ck_assert(others.known);
    ck_assert_uint_eq(others.ours, 1);
    ck_assert_uint_eq(others.others, 1); /* this process, as the sampler, is neither */
}
END_TEST

/* As one that has written its title over its environment. */
START_TEST(a_spool_makes_it_ours)
{
    char directory[] = "/tmp/perfkit-others-XXXXXX", path[80], list[32];
    int end;
    pid_t pid = process("", &end);
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert(others_open());
    snprintf(list, sizeof list, "%d", (int)pid);
    snprintf(path, sizeof path, "%s/%d7-123.spool", directory, (int)pid); /* another's */
    close(open(path, O_CREAT | O_WRONLY, 0600));
    struct others before = look_from(directory, list);
    unlink(path);
    snprintf(path, sizeof path, "%s/%d-123.spool", directory, (int)pid);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    struct others after = look_from(directory, list);
    unlink(path);
    rmdir(directory);
    finish(pid, end);
    ck_assert(before.known && after.known);
    ck_assert_uint_eq(before.others, 1);
    ck_assert_uint_eq(after.ours, 1);
    ck_assert_uint_eq(after.others, 0);
}
END_TEST

START_TEST(nobody_is_known)
{
    ck_assert(others_open());
    struct others others = look("");
    ck_assert(others.known);
    ck_assert_uint_eq(others.ours + others.others, 0);
}
END_TEST

START_TEST(pids_that_mean_nothing_say_nothing)
{
    ck_assert(others_open());
    ck_assert(!look("0").known);
    ck_assert(!look("4194305").known); /* above the kernel's largest pid */
}
END_TEST

START_TEST(without_a_device_nothing_is_known)
{
    ck_assert(others_open());
    ck_assert_ptr_null(others_device("nothing"));
    ck_assert(!others_look(NULL, DIRECTORY).known);
    unsetenv("FAKE_NVML");
    ck_assert(!others_look(others_device("GPU-1"), DIRECTORY).known);
}
END_TEST

static int in_container(void)
{
    if (others_open())
        return 0;
    printf("skipped: not in the first pid namespace, where nothing is said of others\n");
    return others_look(&(int){0}, DIRECTORY).known ? 1 : 77;
}

int check_main(void);
#define main check_main
CHECK_MAIN("others", ours_and_others_are_told_apart, a_spool_makes_it_ours, nobody_is_known,
           pids_that_mean_nothing_say_nothing, without_a_device_nothing_is_known)
#undef main

int main(void)
{
    int skip = in_container();
    return skip ? skip : check_main();
}
