/* The table of metric sets. One row per counter, one column per chip family; a new set is a new
 * array of rows and a line in counter_sets. Names with a "Triage" namespace are counted by the
 * hardware's streaming monitor and all fit one pass; plain names were added as far as the pass
 * held. */
#include <string.h>

#include "samplers/counters/sets.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
/* The metrics: GA100, AD102, GH100, GB100 */
#define ROW(name, unit, kind, clock, what, ...)                                                    \
    {                                                                                              \
        name, unit, what, WIRE_COUNTER_##kind, clock,                                              \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define MEMORY_ROWS 8 /* of the table, from its beginning */
#define ALL(metric) metric, metric, metric, metric
#define TC "TPC.TriageCompute."

/* The bytes come first: they are a set of their own. */
static const struct counter_row roofline[] = {
    ROW("dram_cycles", "cycle", CLOCK, NULL, "cycles that passed at the device memory",
        ALL("dram__cycles_elapsed.max")),
    ROW("dram_read_bytes", "byte", SUM, "dram_cycles", "bytes read from device memory",
        ALL("dram__bytes_read.sum")),
    ROW("dram_write_bytes", "byte", SUM, "dram_cycles", "bytes written to device memory",
        ALL("dram__bytes_write.sum")),
    ROW("l2_bytes", "byte", SUM, NULL, "bytes through the L2 cache", ALL("lts__t_bytes.sum")),
    ROW("pcie_read_bytes", "byte", SUM, NULL, "bytes that the GPU received over PCIe",
        "pcie__read_bytes.sum", "pcie__read_bytes.sum", "pcie__read_bytes.sum",
        "PCI.TriageCompute.pcie__read_bytes.sum"),
    ROW("pcie_write_bytes", "byte", SUM, NULL, "bytes that the GPU sent over PCIe",
        "pcie__write_bytes.sum", "pcie__write_bytes.sum", "pcie__write_bytes.sum",
        "PCI.TriageCompute.pcie__write_bytes.sum"),
    ROW("nvlink_receive_bytes", "byte", SUM, NULL, "bytes that the GPU received over NVLink",
        "nvlrx__bytes.sum", NULL, "nvlrx__bytes.sum", "nvlrx__bytes.sum"),
    ROW("nvlink_transmit_bytes", "byte", SUM, NULL, "bytes that the GPU sent over NVLink",
        "nvltx__bytes.sum", NULL, "nvltx__bytes.sum", "nvltx__bytes.sum"),
    ROW("sm_cycles", "cycle", CLOCK, NULL, "cycles that passed on an SM",
        ALL("sm__cycles_elapsed.max")),
    ROW("sm_active", "cycle", SUM, "sm_cycles", "cycles with a warp on the SM, all SMs",
        "sm__cycles_active.sum", "sm__cycles_active.sum", TC "sm__cycles_active.sum",
        TC "sm__cycles_active.sum"),
    ROW("warps_active", "warp-cycle", SUM, "sm_cycles",
        "resident warps, summed over cycles and SMs", "sm__warps_active_shader_cs_realtime.sum",
        "tpc__warps_active_shader_cs_realtime.sum", TC "tpc__warps_active_shader_cs_realtime.sum",
        TC "tpc__warps_active_shader_cs_realtime.sum"),
    ROW("instructions", "instruction", SUM, "sm_cycles", "warp instructions executed",
        "sm__inst_executed_realtime.sum", "sm__inst_executed_realtime.sum",
        TC "sm__inst_executed_realtime.sum", TC "sm__inst_executed_realtime.sum"),
    ROW("fma", "instruction", SUM, "sm_cycles",
        "warp instructions of the FMA pipe: FP32, and integer multiplication",
        "sm__inst_executed_pipe_fma_realtime.sum", NULL,
        TC "sm__inst_executed_pipe_fma_realtime.sum", NULL),
    ROW("fma_heavy", "instruction", SUM, "sm_cycles",
        "warp instructions of one half of the FMA pipe, which also multiplies integers", NULL,
        "sm__inst_executed_pipe_fmaheavy_realtime.sum", NULL, NULL),
    ROW("fma_lite", "instruction", SUM, "sm_cycles",
        "warp instructions of the other half of the FMA pipe", NULL,
        "sm__inst_executed_pipe_fmalite_realtime.sum", NULL, NULL),
    ROW("fma_busy", "cycle", SUM, "sm_cycles", "cycles that the FMA pipe was busy, all SMs", NULL,
        NULL, NULL, TC "sm__pipe_fma_cycles_active_realtime.sum"),
    ROW("fma_fp16", "instruction", SUM, "sm_cycles",
        "warp instructions of half precision in the FMA pipe", NULL, NULL,
        "sm__inst_executed_pipe_fma_type_fp16.sum", "sm__inst_executed_pipe_fma_type_fp16.sum"),
    ROW("alu", "instruction", SUM, "sm_cycles",
        "warp instructions of the pipe for integers and logic",
        "sm__inst_executed_pipe_alu_realtime.sum", "sm__inst_executed_pipe_alu_realtime.sum",
        TC "sm__inst_executed_pipe_alu_realtime.sum", TC "sm__inst_executed_pipe_alu_realtime.sum"),
    ROW("fp64", "cycle", SUM, "sm_cycles", "cycles that the FP64 pipe was busy, all SMs",
        "sm__pipe_fp64_cycles_active.sum", NULL, TC "sm__pipe_fp64_cycles_active_realtime.sum",
        TC "sm__pipe_fp64_cycles_active_realtime.sum"),
    ROW("fp64_instructions", "instruction", SUM, "sm_cycles", "warp instructions of the FP64 pipe",
        NULL, "sm__inst_executed_pipe_fp64.sum", NULL, NULL),
    ROW("tensor", "cycle", SUM, "sm_cycles", "cycles that the tensor pipe was busy, all SMs",
        "sm__pipe_tensor_cycles_active_realtime.sum", "sm__pipe_tensor_cycles_active_realtime.sum",
        TC "sm__pipe_tensor_cycles_active_realtime.sum",
        TC "sm__pipe_tensor_cycles_active_realtime.sum"),
    ROW("tensor_half", "cycle", SUM, "sm_cycles",
        "cycles of floating-point tensor work; packed half arithmetic counts too", NULL, NULL,
        TC "sm__pipe_tensor_op_hmma_cycles_active_realtime.sum",
        TC "sm__pipe_tensor_subpipe_hmma_cycles_active_realtime.sum"),
    ROW("tensor_integer", "cycle", SUM, "sm_cycles", "cycles of integer tensor work", NULL, NULL,
        TC "sm__pipe_tensor_op_imma_cycles_active_realtime.sum",
        TC "sm__pipe_tensor_subpipe_imma_cycles_active_realtime.sum"),
};

const struct counter_set counter_sets[] = {
    {"roofline", "bytes through each level of memory and activity of each pipe", roofline,
     COUNT(roofline)},
    {"memory", "bytes through each level of memory only, which costs less to read", roofline,
     MEMORY_ROWS},
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

/* Seen on an H200 with CUPTI 13.0 and driver 580: eight instructions, four of them of the ALU pipe,
 * in each warp of every kernel whose times are recorded, nodes of graphs too (bench/counters.py
 * shows it). One warp of each launch has five more, which are left: beside some hundred warps they
 * are nothing. Other chips have not been looked at. */
#define TRACED_SINCE 130000u

uint32_t counter_traced(enum counter_family family, const char *name, uint32_t cupti_version)
{
    static const struct {
        enum counter_family family;
        const char *name;
        uint32_t count;
    } rows[] = {{COUNTER_GH100, "instructions", 8}, {COUNTER_GH100, "alu", 4}};
    for (size_t i = 0; i < COUNT(rows) && cupti_version >= TRACED_SINCE; i++) {
        if (rows[i].family == family && strcmp(rows[i].name, name) == 0)
            return rows[i].count;
    }
    return 0;
}

const struct counter_chip_row counter_chips[] = {
    {"GA100", COUNTER_GA100}, {"AD102", COUNTER_AD102}, {"AD103", COUNTER_AD102},
    {"AD104", COUNTER_AD102}, {"AD106", COUNTER_AD102}, {"AD107", COUNTER_AD102},
    {"GA102", COUNTER_AD102}, {"GA103", COUNTER_AD102}, {"GA104", COUNTER_AD102},
    {"GA106", COUNTER_AD102}, {"GA107", COUNTER_AD102}, {"GH100", COUNTER_GH100},
    {"GB100", COUNTER_GB100}, {"GB102", COUNTER_GB100},
};
const size_t counter_chip_count = COUNT(counter_chips);

enum counter_family counter_family_of(const char *chip)
{
    for (size_t i = 0; i < counter_chip_count; i++) {
        if (strcmp(counter_chips[i].name, chip) == 0)
            return counter_chips[i].family;
    }
    return COUNTER_FAMILIES;
}
