/* Hardware counters: one table for people, a row a kernel with what a roofline needs, one with
 * every counter that was sampled, for programs, and one of launches that were counted one by one.
 */
#include <math.h>
#include <stdio.h>

#include "report/columns.h"

#define COUNTERS(row) ((const struct prof_counter_row *)(row))

/* The value of a counter in a row; NULL when this capture has no such counter. */
static const struct prof_counter_value *row_counter_value(const struct prof_report_data *data,
                                                          const void *row, const char *counter)
{
    int at = prof_counter_find(&data->counters, counter);
    return at < 0 ? NULL : &COUNTERS(row)->values[at];
}

#define MEMBER_OF(name, counter, member)                                                           \
    static struct prof_report_value counter_##name(const struct prof_report_data *data,            \
                                                   const void *row)                                \
    {                                                                                              \
        const struct prof_counter_value *value = row_counter_value(data, row, counter);            \
        return prof_report_real(value ? value->member : NAN);                                      \
    }
MEMBER_OF(dram_read, "dram_read_bytes", rate)
MEMBER_OF(dram_read_error, "dram_read_bytes", rate_error)
MEMBER_OF(dram_write, "dram_write_bytes", rate)
MEMBER_OF(dram_write_error, "dram_write_bytes", rate_error)
MEMBER_OF(l2, "l2_bytes", rate)
MEMBER_OF(l2_error, "l2_bytes", rate_error)
MEMBER_OF(pcie_read, "pcie_read_bytes", rate)
MEMBER_OF(pcie_write, "pcie_write_bytes", rate)
MEMBER_OF(nvlink_receive, "nvlink_receive_bytes", rate)
MEMBER_OF(nvlink_transmit, "nvlink_transmit_bytes", rate)
MEMBER_OF(sm_active, "sm_active", share)
MEMBER_OF(instructions, "instructions", share)
MEMBER_OF(fma, "fma", share)
MEMBER_OF(alu, "alu", share)
MEMBER_OF(fp64, "fp64", share)
MEMBER_OF(tensor, "tensor", share)

/* Reads and writes share the bus. */
static struct prof_report_value counter_dram_busy(const struct prof_report_data *data,
                                                  const void *row)
{
    const struct prof_counter_value *in = row_counter_value(data, row, "dram_read_bytes");
    const struct prof_counter_value *out = row_counter_value(data, row, "dram_write_bytes");
    return prof_report_real(in && out ? in->share + out->share : NAN);
}

CELL(counter_ran, prof_report_text(!COUNTERS(row)->known   ? "too few"
                                   : COUNTERS(row)->joint  ? "joint"
                                   : COUNTERS(row)->shared ? "shared"
                                                           : "alone"))

static const struct prof_report_column counter_columns[] = {
    INT64("time_ns", "Time", NS, 1, prof_counter_row, time_ns),
    REAL("coverage", "Sampled", SHARE, 5, prof_counter_row, coverage),
    INT64("samples", "Samples", COUNT, 4, prof_counter_row, samples),
    INT64("launches", "Launches", COUNT, 0, prof_counter_row, launches),
    INT64("covered", "Covered", COUNT, 0, prof_counter_row, covered),
    INT64("covered_ns", "Covered time", NS, 0, prof_counter_row, covered_ns),
    REAL("joint_share", "Joint", SHARE, 0, prof_counter_row, joint_share),
    COMPUTED("dram_busy_share", "DRAM", SHARE, 1, counter_dram_busy),
    COMPUTED("dram_read_bytes_per_s", "DRAM read", RATE, 2, counter_dram_read),
    COMPUTED("dram_read_bytes_per_s_error", "Error", RATE, 0, counter_dram_read_error),
    COMPUTED("dram_write_bytes_per_s", "DRAM write", RATE, 3, counter_dram_write),
    COMPUTED("dram_write_bytes_per_s_error", "Error", RATE, 0, counter_dram_write_error),
    COMPUTED("l2_bytes_per_s", "L2", RATE, 4, counter_l2),
    COMPUTED("l2_bytes_per_s_error", "Error", RATE, 0, counter_l2_error),
    COMPUTED("pcie_read_bytes_per_s", "PCIe read", RATE, 0, counter_pcie_read),
    COMPUTED("pcie_write_bytes_per_s", "PCIe write", RATE, 0, counter_pcie_write),
    COMPUTED("nvlink_receive_bytes_per_s", "NVLink in", RATE, 0, counter_nvlink_receive),
    COMPUTED("nvlink_transmit_bytes_per_s", "NVLink out", RATE, 0, counter_nvlink_transmit),
    COMPUTED("sm_active_share", "SM", SHARE, 2, counter_sm_active),
    COMPUTED("instruction_share", "Issue", SHARE, 6, counter_instructions),
    COMPUTED("fma_share", "FMA", SHARE, 3, counter_fma),
    COMPUTED("alu_share", "ALU", SHARE, 7, counter_alu),
    COMPUTED("fp64_share", "FP64", SHARE, 4, counter_fp64),
    COMPUTED("tensor_share", "Tensor", SHARE, 3, counter_tensor),
    COMPUTED("ran", "Ran", WORD, 2, counter_ran),
    INDIRECT(INT64, "config", "Config id", NUMBER, 0, prof_counter_row, config, id),
    INT64("device", "Device id", NUMBER, 0, prof_counter_row, device),
    STRING("name", "Kernel", NAME, 1, prof_counter_row, name),
    {0},
};

/* What was taken off the values: "; less what tracing adds to each warp: 8 instructions, 4 alu". */
static void add_traced(const struct prof_counter_summary *all, char *out, size_t size)
{
    const char *before = "; less what tracing adds to each warp: ";
    for (size_t i = 0; i < all->counter_count; i++) {
        if (!(all->counters[i].traced > 0))
            continue;
        prof_append(out, size, "%s%g %s", before, all->counters[i].traced, all->counters[i].name);
        before = ", ";
    }
}

static void counter_totals(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_counter_summary *all = &data->counters;
    double share = all->wall_ns > 0 ? (double)all->sampled_ns / (double)all->wall_ns : NAN;
    snprintf(out, size, "%s sample%s in %s burst%s, %s of the wall time",
             prof_count(all->samples).text, all->samples == 1 ? "" : "s",
             prof_count(all->bursts).text, all->bursts == 1 ? "" : "s", prof_percent(share).text);
    add_traced(all, out, size);
}

const struct prof_report_table prof_report_counters_table = {
    .name = "counters",
    .part = PROF_PART_KERNELS,
    .part_order = 1,
    .title = "Hardware counters",
    .none = "none were sampled",
    .help = "Bytes a second and shares of the pipes' peaks while the kernel ran; joint: of all "
            "that ran with it, shared: other programs used the device too.",
    .screen_rows = 10,
    .optional = true,
    .totals = counter_totals,
    ROWS(prof_counter_row, counter, counters.rows, counters.count),
};

/* ---- every counter --------------------------------------------------------------------------- */

#define OF_VALUE(kind, key, title, unit, pointer, member)                                          \
    INDIRECT(kind, key, title, unit, 0, prof_report_counter_value, pointer, member)

ROW_CELL(value_config, prof_report_counter_value, value,
         prof_report_int(value->row->config ? value->row->config->id : PROF_UNKNOWN))

static const struct prof_report_column counter_value_columns[] = {
    OF_VALUE(STRING, "counter", "Counter", WORD, counter, name),
    OF_VALUE(STRING, "unit", "Unit", WORD, counter, unit),
    OF_VALUE(DOUBLE, "rate", "Per second", NUMBER, value, rate),
    OF_VALUE(DOUBLE, "rate_error", "Error", NUMBER, value, rate_error),
    OF_VALUE(DOUBLE, "per_launch", "Per launch", NUMBER, value, per_launch),
    OF_VALUE(DOUBLE, "per_launch_error", "Error", NUMBER, value, per_launch_error),
    OF_VALUE(DOUBLE, "share", "Of peak", SHARE, value, share),
    OF_VALUE(INT64, "samples", "Samples", COUNT, row, samples),
    OF_VALUE(STRING, "metric", "Metric", WORD, counter, metric),
    COMPUTED("config", "Config id", NUMBER, 0, value_config),
    OF_VALUE(INT64, "device", "Device id", NUMBER, row, device),
    OF_VALUE(STRING, "name", "Kernel", NAME, row, name),
    {0},
};

const struct prof_report_table prof_report_counter_values_table = {
    .name = "counter_values",
    .part = PROF_PART_KERNELS,
    .part_order = 1,
    .title = "Every counter",
    .none = "none were sampled",
    .help = "Every counter of every kernel, per second of kernel time and per launch.",
    .optional = true,
    .for_programs = true, /* people have the table above */
    .not_in_text = true,
    ROWS(prof_report_counter_value, counter_value, counter_values, counter_value_count),
};

/* ---- exact counts of single launches --------------------------------------------------------- */

#define EXACT(row) ((const struct prof_exact_row *)(row))

CELL(exact_error,
     prof_report_real(EXACT(row)->flop > 0 ? EXACT(row)->flop_error / EXACT(row)->flop : NAN))

/* FLOP of one roof are those of the launch as a whole, or not known either. */
#define EXACT_PIPE(name, kind)                                                                     \
    ROW_CELL(exact_##name, prof_exact_row, exact,                                                  \
             prof_report_real(exact->complete ? exact->pipe[PROF_CEILING_##kind] : NAN))
EXACT_PIPE(fp64, FP64)
EXACT_PIPE(fp32, FP32)
EXACT_PIPE(fp16, FP16)
EXACT_PIPE(tensor_fp64, TENSOR_FP64)
EXACT_PIPE(tensor_tf32, TENSOR_TF32)
EXACT_PIPE(tensor_fp16, TENSOR_FP16)
EXACT_PIPE(tensor_bf16, TENSOR_BF16)
EXACT_PIPE(tensor_fp8, TENSOR_FP8)

static const struct prof_report_column exact_columns[] = {
    INT64("launches", "Counted", COUNT, 3, prof_exact_row, launches),
    REAL("flop", "FLOP", RATIO, 1, prof_exact_row, flop),
    COMPUTED("flop_error", "Error", SHARE, 4, exact_error),
    COMPUTED("fp64_flop", "FP64", RATIO, 0, exact_fp64),
    COMPUTED("fp32_flop", "FP32", RATIO, 5, exact_fp32),
    COMPUTED("fp16_flop", "FP16", RATIO, 0, exact_fp16),
    COMPUTED("tensor_fp64_flop", "Tensor FP64", RATIO, 0, exact_tensor_fp64),
    COMPUTED("tensor_tf32_flop", "TF32", RATIO, 0, exact_tensor_tf32),
    COMPUTED("tensor_fp16_flop", "Tensor FP16", RATIO, 6, exact_tensor_fp16),
    COMPUTED("tensor_bf16_flop", "BF16", RATIO, 6, exact_tensor_bf16),
    COMPUTED("tensor_fp8_flop", "FP8", RATIO, 0, exact_tensor_fp8),
    REAL("dram_read_bytes", "DRAM read", BYTES, 2, prof_exact_row, dram_read),
    REAL("dram_write_bytes", "DRAM write", BYTES, 2, prof_exact_row, dram_write),
    REAL("l2_bytes", "L2", BYTES, 5, prof_exact_row, l2),
    INDIRECT(INT64, "config", "Config id", NUMBER, 0, prof_exact_row, config, id),
    INT64("device", "Device id", NUMBER, 0, prof_exact_row, device),
    INDIRECT(STRING, "name", "Kernel", NAME, 1, prof_exact_row, config, name),
    {0},
};

const struct prof_report_table prof_report_exact_counts_table = {
    .name = "exact_counts",
    .part = PROF_PART_KERNELS,
    .part_order = 1,
    .title = "Counted launches",
    .none = "none were counted one by one",
    .help = "FLOP and bytes of a launch, by counting some of each configuration. Error: of the "
            "FLOP; n/a: not everything that they are made of was counted.",
    .screen_rows = 10,
    .optional = true,
    .not_in_text = true,
    ROWS(prof_exact_row, exact, exact.rows, exact.count),
};
