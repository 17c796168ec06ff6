/* What becomes of `--pytorch` in this process: the hook (pytorch/_perfkit_pytorch.py) says how far
 * it came, and a process that has PyTorch without the hook's word had Python started in a way in
 * which it does not look for it. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/python/pytorch.h"

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

static const struct collector_source source = {.source = WIRE_SOURCE_PYTHON,
                                               .at_exit = pytorch_at_exit};

void pytorch_start(void)
{
    char names[64];
    if (collector_option("pytorch", names, sizeof names) && !atomic_exchange(&requested, true))
        collector_register(&source);
}
