/* What becomes of `--pytorch` in this process: the hook (pytorch/_perfkit_pytorch.py) says how far
 * it came, and a process that has PyTorch without the hook's word had Python started in a way in
 * which it does not look for it. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>

#include "collectors/core/collector.h"
#include "collectors/python/pytorch.h"

static _Atomic bool heard, asked, told;

/* By the hook, through ctypes. `named`: everything that was asked for is. */
__attribute__((visibility("default"))) void perfkit_pytorch_note(const char *text, int named);

__attribute__((visibility("default"))) void perfkit_pytorch_note(const char *text, int named)
{
    atomic_store(&heard, true);
    if (text)
        collector_health(WIRE_SOURCE_PYTHON, named ? WIRE_HEALTH_RUNNING : WIRE_HEALTH_NOTE, text, 0);
}

static void at_exit(void)
{
    int saved = errno;
    if (!atomic_load(&heard) && dlopen("libtorch_python.so", RTLD_LAZY | RTLD_NOLOAD) &&
        !atomic_exchange(&told, true))
        collector_health(WIRE_SOURCE_PYTHON, WIRE_HEALTH_NOTE,
                         "PyTorch's operators and modules are not named: Python ran without "
                         "perfkit's hook (started with -I, -E or -S, or with another PYTHONPATH)",
                         0);
    errno = saved;
}

static const struct collector_source source = {.source = WIRE_SOURCE_PYTHON, .at_exit = at_exit};

void pytorch_start(void)
{
    char names[64];
    if (collector_option("pytorch", names, sizeof names) && !atomic_exchange(&asked, true))
        collector_register(&source);
}
