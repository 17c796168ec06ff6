/* NVTX ranges for the stand-in of PyTorch: a client as PyTorch's own library is one. */
#include "perfkit/annotate.h"

__attribute__((visibility("default"))) void client_push(const char *text);
__attribute__((visibility("default"))) void client_pop(void);

__attribute__((visibility("default"))) void client_push(const char *text)
{
    perfkit_range_push(text);
}

__attribute__((visibility("default"))) void client_pop(void)
{
    perfkit_range_pop();
}
