/* The table of metric sets. One row per counter, one column per chip family; a new set is a new array
 * of rows and a line in counter_sets. Names with a "Triage" namespace are counted by the hardware's
 * streaming monitor and all fit one pass; plain names were added as far as the pass held. */
#include <string.h>

#include "collectors/counters/sets.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TC "TPC.TriageCompute."

static const struct counter_row roofline[] = {
    {"sm_cycles", "cycle", "cycles that passed on an SM", NULL,
     {[COUNTER_GH100] = "sm__cycles_elapsed.max"}},
    {"dram_cycles", "cycle", "cycles that passed on a memory controller", NULL,
     {[COUNTER_GH100] = "dram__cycles_elapsed.max"}},
    {"dram_read_bytes", "byte", "bytes read from device memory", "dram_cycles",
     {[COUNTER_GH100] = "dram__bytes_read.sum"}},
    {"dram_write_bytes", "byte", "bytes written to device memory", "dram_cycles",
     {[COUNTER_GH100] = "dram__bytes_write.sum"}},
    {"l2_bytes", "byte", "bytes through the L2 cache", NULL,
     {[COUNTER_GH100] = "lts__t_bytes.sum"}},
    {"pcie_read_bytes", "byte", "bytes the GPU received over PCIe", NULL,
     {[COUNTER_GH100] = "pcie__read_bytes.sum"}},
    {"pcie_write_bytes", "byte", "bytes the GPU sent over PCIe", NULL,
     {[COUNTER_GH100] = "pcie__write_bytes.sum"}},
    {"nvlink_receive_bytes", "byte", "bytes the GPU received over NVLink", NULL,
     {[COUNTER_GH100] = "nvlrx__bytes.sum"}},
    {"nvlink_transmit_bytes", "byte", "bytes the GPU sent over NVLink", NULL,
     {[COUNTER_GH100] = "nvltx__bytes.sum"}},
    {"sm_active", "cycle", "cycles with a warp on the SM, all SMs", "sm_cycles",
     {[COUNTER_GH100] = TC "sm__cycles_active.sum"}},
    {"warps_active", "warp-cycle", "warps resident, summed over cycles and SMs", "sm_cycles",
     {[COUNTER_GH100] = TC "tpc__warps_active_shader_cs_realtime.sum"}},
    {"instructions", "instruction", "warp instructions executed", "sm_cycles",
     {[COUNTER_GH100] = TC "sm__inst_executed_realtime.sum"}},
    {"fma", "instruction", "warp instructions of the FMA pipe (FP32 and integer multiply)",
     "sm_cycles", {[COUNTER_GH100] = TC "sm__inst_executed_pipe_fma_realtime.sum"}},
    {"fma_fp16", "instruction", "warp instructions of packed half precision in the FMA pipe",
     "sm_cycles", {[COUNTER_GH100] = "sm__inst_executed_pipe_fma_type_fp16.sum"}},
    {"alu", "instruction", "warp instructions of the integer and logic pipe", "sm_cycles",
     {[COUNTER_GH100] = TC "sm__inst_executed_pipe_alu_realtime.sum"}},
    {"fp64", "cycle", "cycles the FP64 pipe was busy, all SMs", "sm_cycles",
     {[COUNTER_GH100] = TC "sm__pipe_fp64_cycles_active_realtime.sum"}},
    {"tensor", "cycle", "cycles the tensor pipe was busy, all SMs", "sm_cycles",
     {[COUNTER_GH100] = TC "sm__pipe_tensor_cycles_active_realtime.sum"}},
    {"tensor_half", "cycle", "cycles of half-precision tensor work (also packed half arithmetic)",
     "sm_cycles", {[COUNTER_GH100] = TC "sm__pipe_tensor_op_hmma_cycles_active_realtime.sum"}},
    {"tensor_integer", "cycle", "cycles of integer tensor work", "sm_cycles",
     {[COUNTER_GH100] = TC "sm__pipe_tensor_op_imma_cycles_active_realtime.sum"}},
};

const struct counter_set counter_sets[] = {
    {"roofline", "bytes of each memory level and activity of each pipe", roofline, COUNT(roofline)},
};
const size_t counter_set_count = COUNT(counter_sets);

const struct counter_set *counter_set_find(const char *name)
{
    for (size_t i = 0; i < counter_set_count; i++) {
        if (strcmp(counter_sets[i].name, name) == 0)
            return &counter_sets[i];
    }
    return NULL;
}

static const char *const families[COUNTER_CHIPS] = {
    [COUNTER_GA100] = "GA100",
    [COUNTER_AD102] = "AD102",
    [COUNTER_GH100] = "GH100",
    [COUNTER_GB100] = "GB100",
};

enum counter_chip counter_chip_find(const char *chip)
{
    for (enum counter_chip i = 0; i < COUNTER_CHIPS; i++) {
        if (strcmp(families[i], chip) == 0)
            return i;
    }
    return COUNTER_CHIPS;
}

const char *counter_chip_name(enum counter_chip chip)
{
    return chip < COUNTER_CHIPS ? families[chip] : NULL;
}
