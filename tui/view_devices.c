/* Devices: what the driver tells of the hardware, beside what the capture tells of this program. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "tui/views.h"

enum {
    D_NAME,
    D_API,
    D_KERNELS,
    D_UTIL,
    D_SM,
    D_OCCUPANCY,
    D_TENSOR,
    D_DRAM,
    D_USED,
    D_TOTAL,
    D_POWER,
    D_CLOCK,
    D_TEMP,
    D_THROTTLE,
    D_RX,
    D_TX,
    D_NVLINK_RX,
    D_NVLINK_TX,
    D_FP64,
    D_FP32,
    D_FP16,
    D_MEM,
    D_UNITS,
    D_UUID
};

/* What a driver does not tell takes no room: `if_known`. */
static const struct tui_column device_columns[] = {
    [D_NAME] = {"name", "Device", TUI_NAME, 0, 0},
    [D_API] = {"api", "api", TUI_TEXT, 8, 6},
    [D_KERNELS] = {"kernel_wall_share", "kern%", TUI_SHARE, 7, 0},
    [D_UTIL] = {"gpu_share", "util%", TUI_SHARE, 7, 0},
    [D_SM] = {"sm_share", "SM%", TUI_SHARE, 7, 2, .if_known = true},
    [D_OCCUPANCY] = {"sm_occupancy", "occ%", TUI_SHARE, 7, 3, .if_known = true},
    [D_TENSOR] = {"tensor_share", "tensor%", TUI_SHARE, 7, 2, .if_known = true},
    [D_DRAM] = {"dram_share", "DRAM%", TUI_SHARE, 7, 2, .if_known = true},
    [D_USED] = {"used_bytes", "used", TUI_BYTES, 9, 0, .if_known = true},
    [D_TOTAL] = {"memory_bytes", "memory", TUI_BYTES, 9, 4},
    [D_POWER] = {"power_w", "power W", TUI_TEXT, 9, 1, .if_known = true},
    [D_CLOCK] = {"clock_mhz", "MHz", TUI_TEXT, 9, 3, .if_known = true},
    [D_TEMP] = {"temperature_c", "temp C", TUI_COUNT, 6, 1, .if_known = true},
    [D_THROTTLE] = {"throttle", "throttled", TUI_TEXT, 16, 5, .if_known = true},
    [D_RX] = {"pcie_rx", "PCIe in", TUI_RATE, 10, 7, .if_known = true},
    [D_TX] = {"pcie_tx", "PCIe out", TUI_RATE, 10, 7, .if_known = true},
    [D_NVLINK_RX] = {"nvlink_rx", "NVLink in", TUI_RATE, 10, 8, .if_known = true},
    [D_NVLINK_TX] = {"nvlink_tx", "NVLink out", TUI_RATE, 10, 8, .if_known = true},
    [D_FP64] = {"fp64_share", "FP64%", TUI_SHARE, 7, 9, .if_known = true},
    [D_FP32] = {"fp32_share", "FP32%", TUI_SHARE, 7, 9, .if_known = true},
    [D_FP16] = {"fp16_share", "FP16%", TUI_SHARE, 7, 9, .if_known = true},
    [D_MEM] = {"memory_share", "mem%", TUI_SHARE, 7, 10, .if_known = true},
    [D_UNITS] = {"units", "units", TUI_COUNT, 6, 8},
    [D_UUID] = {"uuid", NULL, TUI_TEXT, 0, 0},
};

static double percent(int64_t value)
{
    return value == PROF_UNKNOWN ? NAN : (double)value / 100;
}

static void of_two(struct tui_table *table, size_t column, int64_t value, int64_t most,
                   int64_t unit)
{
    if (value == PROF_UNKNOWN)
        return;
    if (most == PROF_UNKNOWN)
        tui_table_format(table, column, "%lld", (long long)(value / unit));
    else
        tui_table_format(table, column, "%lld/%lld", (long long)(value / unit),
                         (long long)(most / unit));
}

/* Kernel time of all processes on this hardware. */
static int64_t kernel_time(const struct tui_model *model, int64_t physical)
{
    int64_t sum = 0;
    for (size_t i = 0; i < model->streams.count; i++) {
        const struct tui_stream *s = &model->streams.data[i];
        const struct tui_device *d = tui_model_device(model, s->values.device);
        if (d && d->values.physical == physical)
            sum = prof_add(sum, s->window_ns);
    }
    return sum;
}

static double rate(int64_t bytes_s)
{
    return bytes_s == PROF_UNKNOWN ? NAN : (double)bytes_s;
}

static void add_activity(struct tui_table *table, const struct prof_nvml_activity *a)
{
    tui_table_real(table, D_SM, a->units);
    tui_table_real(table, D_OCCUPANCY, a->occupancy);
    tui_table_real(table, D_TENSOR, a->tensor);
    tui_table_real(table, D_DRAM, a->dram);
    tui_table_real(table, D_FP64, a->fp64);
    tui_table_real(table, D_FP32, a->fp32);
    tui_table_real(table, D_FP16, a->fp16);
    tui_table_real(table, D_NVLINK_RX, a->nvlink_rx);
    tui_table_real(table, D_NVLINK_TX, a->nvlink_tx);
}

static void add_reading(struct tui_table *table, const struct prof_nvml_reading *r)
{
    char reasons[80];
    prof_nvml_throttle_text(r->throttle, reasons, sizeof reasons);
    tui_table_number(table, D_USED, r->used_bytes);
    of_two(table, D_POWER, r->power_mw, r->power_limit_mw, 1000);
    of_two(table, D_CLOCK, r->sm_mhz, r->sm_max_mhz, 1);
    tui_table_number(table, D_TEMP, r->temperature_c);
    tui_table_text(table, D_THROTTLE, r->throttle == PROF_UNKNOWN ? NULL : reasons);
    tui_table_real(table, D_RX, rate(r->pcie_rx_bytes_s));
    tui_table_real(table, D_TX, rate(r->pcie_tx_bytes_s));
    tui_table_real(table, D_MEM, percent(r->memory_percent));
    add_activity(table, &r->activity);
}

static struct prof_nvml_reading
add_device(struct tui_table *table, const struct tui_view_input *input, const struct prof_device *d)
{
    const struct tui_model *model = input->model;
    bool live = tui_model_is_live(model);
    bool is_cpu = live && d->kind && !strcmp(d->kind, "cpu");
    struct prof_nvml_reading r = prof_nvml_read(live ? input->nvml : NULL, d->uuid);
    char name[120];
    tui_table_row(table, d->id, 0, TUI_NORMAL);
    tui_device_name(model, d->id, name, sizeof name);
    tui_table_text(table, D_NAME, name);
    tui_table_text(table, D_API, d->api);
    tui_table_real(table, D_KERNELS, tui_wall_share(model, kernel_time(model, d->id)));
    tui_table_real(table, D_UTIL, is_cpu ? input->health->machine_cpu : percent(r.gpu_percent));
    add_reading(table, &r);
    tui_table_number(table, D_TOTAL,
                     r.total_bytes == PROF_UNKNOWN ? d->memory_bytes : r.total_bytes);
    tui_table_number(table, D_UNITS, d->units);
    tui_table_text(table, D_UUID, d->uuid);
    return r;
}

static void explain_missing_metrics(struct tui_table *table, const struct tui_view_input *input,
                                    bool has_activity)
{
    if (!table->rows.count) {
        if (input->model->ever_read)
            tui_table_note(table, "No device was used so far.");
        return;
    }
    tui_table_note(table,
                   "kern%%: kernel time of this program over wall time; the rest is what the "
                   "driver reports for the whole device (of a processor: its load)%s",
                   !tui_model_is_live(input->model) ? ", while a program runs"
                   : input->nvml                    ? ""
                                                    : " (NVML: not here, n/a)");
    if (has_activity)
        tui_table_note(table, "SM%%: multiprocessors at work. occ%%: their warps, of all that fit. "
                              "tensor%%, FP%%: pipes at work. DRAM%%: of its bandwidth");
}

void tui_fill_devices(struct tui_table *table, const struct tui_view_input *input)
{
    const struct tui_model *model = input->model;
    bool has_activity = false;
    tui_table_begin(table, device_columns, sizeof device_columns / sizeof *device_columns);
    table->sort = D_KERNELS;
    for (size_t i = 0; i < model->devices.count; i++) {
        const struct prof_device *d = &model->devices.data[i].values;
        if (d->physical == d->id) /* else the same hardware, seen by another process */
            has_activity |= add_device(table, input, d).has_activity;
    }
    explain_missing_metrics(table, input, has_activity);
}
