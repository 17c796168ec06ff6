/* A core that writes down how it is called, one line a call, into PERFKIT_DIR/log: the harness of
 * the host tests. Like the real core it knows a vfork child, which borrows its parent's memory
 * ("borrowed"). */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "libprof/spool/lifecycle.h"

static char path[256];
static long owner;

static long pid(void)
{
    return syscall(SYS_getpid);
}

static void say(const char *what, const char *how, int status)
{
    char line[256];
    if (!path[0])
        return;
    int n = snprintf(line, sizeof line, "%ld %s %s %d\n", pid(), what, how, status);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && write(fd, line, (size_t)n) < 0)
        path[0] = '\0';
    close(fd);
}

static void forked(void)
{
    owner = pid();
}

void collector_hooked(void)
{
}

void collector_hello(int argc, char *const *argv)
{
    const char *directory = getenv("PERFKIT_DIR");
    if (!directory)
        return;
    owner = pid();
    pthread_atfork(NULL, NULL, forked);
    snprintf(path, sizeof path, "%s/log", directory);
    say("hello", argv[argc - 1], argc);
}

void collector_end(unsigned how, int status)
{
    static const char *const names[] = {
#define X(name, text) text,
        LIFECYCLE_END_MAP(X)
#undef X
    };
    say(owner == pid() ? "end" : "borrowed", names[how], status);
}

void collector_revive(void)
{
    if (owner == pid())
        say("revive", "-", 0);
}

/* No spool is ever made here, so nothing is armed. */
void collector_register(const struct collector_source *source)
{
    (void)source;
}

void collector_death(void)
{
    say("death", "-", 0);
}

bool collector_is_helper(void)
{
    return false;
}

void collector_unloaded(void)
{
}

void collector_note_fact(uint32_t facts)
{
    if (facts)
        say("fact", "-", (int)facts);
}

void collector_check_reach(void)
{
}

bool collector_attached(enum wire_source source)
{
    (void)source;
    return false;
}

/* Nothing is injected here: what becomes of it is tested in test_environment.c. */
bool collector_option(const char *name, char *value, size_t size)
{
    (void)name;
    (void)value;
    (void)size;
    return false;
}
