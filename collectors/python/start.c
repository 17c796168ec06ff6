/* Where Python frames come into stacks: with --stacks, when the library is loaded or, where an
 * interpreter is loaded later, when the helper thread sees it. And what becomes of --pytorch in
 * this process. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/python/interpreter.h"
#include "collectors/stacks/stacks.h"

#define TICKS_BETWEEN_LOOKS 10u /* about a second */

static void python_tick(void)
{
    static unsigned ticks; /* of the helper thread alone */
    if (ticks++ % TICKS_BETWEEN_LOOKS == 0)
        python_look();
}

/* What another thread of the parent was doing, no thread does in the child. */
static void python_after_fork(void)
{
    python_look_forget();
    python_code_forget();
}

static const struct collector_source python_source = {
    .source = WIRE_SOURCE_PYTHON,
    .tick = python_tick,
    .forked = python_after_fork,
};

/* --pytorch: the hook (pytorch/_perfkit_pytorch.py) says how far
 * it came, and a process that has PyTorch without the hook's word had Python started in a way in
 * which it does not look for it. */

static _Atomic bool heard, requested, reported;

/* Called by the hook, through ctypes. `named`: all that was requested is named. */
__attribute__((visibility("default"))) void perfkit_pytorch_note(const char *text, int named);

__attribute__((visibility("default"))) void perfkit_pytorch_note(const char *text, int named)
{
    atomic_store(&heard, true);
    if (text)
        collector_health(WIRE_SOURCE_PYTHON, named ? WIRE_HEALTH_RUNNING : WIRE_HEALTH_NOTE, text,
                         0);
}

/* By the kernel's list: a process may end by _exit while another thread of it is inside of dlopen,
 * perhaps forever, with the loader's lock held. */
static bool torch_is_loaded(void)
{
    static const char name[] = "/libtorch_python.so";
    const size_t overlap = sizeof name - 2;
    char text[4096];
    size_t kept = 0;
    bool found = false;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && !found) {
        ssize_t n = read(fd, text + kept, sizeof text - kept);
        if (n <= 0)
            break;
        size_t length = kept + (size_t)n;
        found = memmem(text, length, name, sizeof name - 1) != NULL;
        kept = length < overlap ? length : overlap;
        memmove(text, text + length - kept, kept);
    }
    if (fd >= 0)
        close(fd);
    return found;
}

static void pytorch_at_exit(void)
{
    int saved = errno;
    if (!atomic_load(&heard) && torch_is_loaded() && !atomic_exchange(&reported, true))
        collector_health(WIRE_SOURCE_PYTHON, WIRE_HEALTH_NOTE,
                         "PyTorch's operators and modules are not named: Python ran without "
                         "perfkit's hook (started with -I, -E or -S, or with another PYTHONPATH)",
                         0);
    errno = saved;
}

static const struct collector_source pytorch_source = {.source = WIRE_SOURCE_PYTHON,
                                                       .at_exit = pytorch_at_exit};

static void start_pytorch(void)
{
    char names[64];
    if (collector_option("pytorch", names, sizeof names) && !atomic_exchange(&requested, true))
        collector_register(&pytorch_source);
}

__attribute__((constructor)) static void start(void)
{
    char stacks[256];
    start_pytorch();
    if (!collector_option("stacks", stacks, sizeof stacks))
        return;
    collector_register(&python_source);
    python_look();
    stacks_set_merge(python_merge);
}
