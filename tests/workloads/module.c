/* The second annotated module of the annotate test: a shared object with its own attachment. */
#include "perfkit/annotate.h"
#include "tests/workloads/module.h"

void module_annotate(void)
{
    perfkit_range_push("from the module");
    perfkit_work_push("module work", 1, 2, 3);
    perfkit_work_pop();
    perfkit_range_pop();
}
