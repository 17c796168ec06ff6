/* NVTX ranges for programs that load libprof.so.0 while they run, as Python does: what is compiled
 * includes perfkit/annotate.h, whose functions are inline. Part of libprof.so.0 only. */
#include "perfkit/annotate.h"

void prof_annotate_push(const char *name);
void prof_annotate_pop(void);

void prof_annotate_push(const char *name)
{
    perfkit_range_push(name);
}

void prof_annotate_pop(void)
{
    perfkit_range_pop();
}
