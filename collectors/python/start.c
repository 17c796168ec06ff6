/* Where Python frames come into stacks: with --stacks, when the library is loaded or, where an
 * interpreter is loaded later, when the helper thread sees it. */
#include "collectors/core/collector.h"
#include "collectors/python/interpreter.h"
#include "collectors/python/python.h"
#include "collectors/python/pytorch.h"
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

static const struct collector_source source = {
    .source = WIRE_SOURCE_PYTHON,
    .tick = python_tick,
    .forked = python_after_fork,
};

__attribute__((constructor)) static void start(void)
{
    char stacks[256];
    pytorch_start();
    if (!collector_option("stacks", stacks, sizeof stacks))
        return;
    collector_register(&source);
    python_look();
    stacks_set_merge(python_merge);
}
