/* Errors of CUPTI that have a remedy of their own, for the sampler and for the collector. */
#include <stddef.h>

#include "collectors/cuda/profiler_api.h"

#define HELD "another tool holds the GPU's counters: end it, or pause DCGM (dcgmi profile --pause)"

static const struct {
    enum pm_result result;
    const char *text;
} known[] = {
    {PM_NO_PRIVILEGE,
     "this user may not read the GPU's counters: run as root or with CAP_SYS_ADMIN, or load the "
     "driver with NVreg_RestrictProfilingToAdminUsers=0"},
    {PM_VIRTUAL_NO_PRIVILEGE, "this virtual GPU does not allow profiling: its host must enable it "
                              "(vGPU plugin parameter enable_profiling)"},
    {PM_HARDWARE_BUSY, HELD},
    {PM_INVALID_OPERATION, HELD},
    {PM_NOT_SUPPORTED, "this GPU or driver has no such counters"},
    {PM_CONFIDENTIAL, "the GPU's counters are off in confidential computing mode"},
    {PM_MIG, "the GPU's counters cannot be had while it is divided (MIG)"},
    {PM_WSL, "the GPU's counters cannot be had under WSL"},
};

const char *counter_remedy(int result)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if ((int)known[i].result == result)
            return known[i].text;
    }
    return NULL;
}
