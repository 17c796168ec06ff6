// Compiles perfkit/annotate.h as nvcc sees it, next to the vendor's own NVTX.
#include <nvtx3/nvToolsExt.h>

#include "perfkit/annotate.h"

void annotate_from_cuda()
{
    perfkit_range_push("cuda");
    perfkit_work_push("kernel", 1, 2, 3);
    perfkit_work_pop();
    perfkit_range_pop();
}
