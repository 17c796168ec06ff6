/* Devices and health: what the machine and perfkit itself are doing. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libprof/base/clock.h"
#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "tui/views.h"

/* ---- devices ------------------------------------------------------------------------------- */

enum {
    D_NAME,
    D_API,
    D_KERNELS,
    D_UTIL,
    D_USED,
    D_TOTAL,
    D_POWER,
    D_CLOCK,
    D_TEMP,
    D_THROTTLE,
    D_RX,
    D_TX,
    D_MEM,
    D_UNITS,
    D_UUID
};

static const struct tui_column device_columns[] = {
    [D_NAME] = {"name", "Device", TUI_NAME, 0, 0},
    [D_API] = {"api", "api", TUI_TEXT, 8, 3},
    [D_KERNELS] = {"kernel_wall_share", "kern%", TUI_SHARE, 6, 0},
    [D_UTIL] = {"gpu_share", "util%", TUI_SHARE, 6, 0},
    [D_USED] = {"used_bytes", "used", TUI_BYTES, 9, 0},
    [D_TOTAL] = {"memory_bytes", "memory", TUI_BYTES, 9, 2},
    [D_POWER] = {"power_w", "power W", TUI_TEXT, 9, 1},
    [D_CLOCK] = {"clock_mhz", "MHz", TUI_TEXT, 9, 1},
    [D_TEMP] = {"temperature_c", "temp C", TUI_COUNT, 6, 1},
    [D_THROTTLE] = {"throttle", "throttled", TUI_TEXT, 16, 4},
    [D_RX] = {"pcie_rx", "PCIe in", TUI_RATE, 10, 5},
    [D_TX] = {"pcie_tx", "PCIe out", TUI_RATE, 10, 6},
    [D_MEM] = {"memory_share", "mem%", TUI_SHARE, 6, 7},
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

void tui_fill_devices(struct tui_table *table, const struct tui_view_input *input)
{
    const struct tui_model *model = input->model;
    tui_table_begin(table, device_columns, sizeof device_columns / sizeof *device_columns);
    table->sort = D_KERNELS;
    for (size_t i = 0; i < model->devices.count; i++) {
        const struct prof_device *d = &model->devices.data[i].values;
        char reasons[80];
        if (d->physical != d->id)
            continue; /* the same hardware, seen by another process */
        struct prof_nvml_reading r =
            prof_nvml_read(tui_model_is_live(model) ? input->nvml : NULL, d->uuid);
        prof_nvml_throttle_text(r.throttle, reasons, sizeof reasons);
        tui_table_row(table, d->id, 0, TUI_NORMAL);
        tui_table_text(table, D_NAME, d->label ? d->label : d->name);
        tui_table_text(table, D_API, d->api);
        tui_table_real(table, D_KERNELS, tui_wall_share(model, kernel_time(model, d->id)));
        bool is_cpu = d->kind && !strcmp(d->kind, "cpu") && tui_model_is_live(model);
        tui_table_real(table, D_UTIL, is_cpu ? input->health->machine_cpu : percent(r.gpu_percent));
        tui_table_number(table, D_USED, r.used_bytes);
        tui_table_number(table, D_TOTAL,
                         r.total_bytes == PROF_UNKNOWN ? d->memory_bytes : r.total_bytes);
        of_two(table, D_POWER, r.power_mw, r.power_limit_mw, 1000);
        of_two(table, D_CLOCK, r.sm_mhz, r.sm_max_mhz, 1);
        tui_table_number(table, D_TEMP, r.temperature_c);
        tui_table_text(table, D_THROTTLE, r.throttle == PROF_UNKNOWN ? NULL : reasons);
        tui_table_real(table, D_RX,
                       r.pcie_rx_bytes_s == PROF_UNKNOWN ? NAN : (double)r.pcie_rx_bytes_s);
        tui_table_real(table, D_TX,
                       r.pcie_tx_bytes_s == PROF_UNKNOWN ? NAN : (double)r.pcie_tx_bytes_s);
        tui_table_real(table, D_MEM, percent(r.memory_percent));
        tui_table_number(table, D_UNITS, d->units);
        tui_table_text(table, D_UUID, d->uuid);
    }
    tui_table_note(table,
                   "kern%%: kernel time of this program over wall time; the rest is what the "
                   "driver tells of the whole device (of a processor: its load)%s",
                   !tui_model_is_live(model) ? ", while a program runs"
                   : input->nvml             ? ""
                                             : " (NVML: not here, n/a)");
}

/* ---- health -------------------------------------------------------------------------------- */

enum { H_WHAT, H_VALUE };

static const struct tui_column health_columns[] = {
    [H_WHAT] = {"what", "Health", TUI_TEXT, 30, 0},
    [H_VALUE] = {"value", "", TUI_NAME, 0, 0},
};

static void item(struct tui_table *table, enum tui_style style, const char *what, const char *value)
{
    tui_table_row(table, (int64_t)table->rows.count, 0, style);
    tui_table_text(table, H_WHAT, what);
    tui_table_text(table, H_VALUE, value);
}

static const char *phase_text(const struct tui_model *model)
{
    switch (model->phase) {
    case TUI_OPENING:
        return "nothing read yet";
    case TUI_WATCHING:
        return "being recorded";
    case TUI_LET_GO:
        return "its recorder is finishing it";
    case TUI_FINISHED:
        return model->state == PROF_STATE_RECOVERED ? "recovered" : "complete";
    case TUI_GONE:
        return "the file was deleted; shown is what was read until then";
    case TUI_ABANDONED:
        return "interrupted: nobody records into it any more, `perfkit recover` completes it";
    }
    return "n/a";
}

static void own_state(struct tui_table *table, const struct tui_view_input *input)
{
    const struct tui_model *model = input->model;
    bool bad = model->phase == TUI_GONE || model->phase == TUI_ABANDONED;
    char line[200];
    item(table, bad ? TUI_WARN : TUI_GOOD, "capture", phase_text(model));
    if (model->error.message[0])
        item(table, TUI_WARN, "last look", model->error.message);
    item(table, TUI_NORMAL, "age of what is shown",
         model->looked_ns && tui_model_is_live(model)
             ? prof_duration_ns((int64_t)(prof_now_ns() - model->looked_ns)).text
             : "n/a");
    if (tui_model_is_live(model))
        snprintf(line, sizeof line, "%s of all; %s new rows/s", prof_percent(model->progress).text,
                 prof_count((int64_t)model->events_per_s).text);
    else
        snprintf(line, sizeof line, "%s of all", prof_percent(model->progress).text);
    item(table, model->caught_up ? TUI_NORMAL : TUI_WARN, "read of the capture", line);
    snprintf(line, sizeof line, "%s the last, %s the longest",
             prof_duration_ns(model->look_cost_ns).text,
             prof_duration_ns(model->worst_look_ns).text);
    item(table, TUI_NORMAL, "time of a look", line);
    item(table, TUI_NORMAL, "kernels are read from",
         model->from_rollup ? "rollup (sums by second)" : "kernel (no rollup in this capture)");
}

static void recorder_state(struct tui_table *table, const struct tui_health *health)
{
    char line[200];
    if (!health)
        return;
    item(table, health->dropped > 0 ? TUI_BAD : TUI_NORMAL, "records dropped",
         prof_count(health->dropped).text);
    if (health->recorder_pid == PROF_UNKNOWN)
        snprintf(line, sizeof line, "n/a");
    else
        snprintf(line, sizeof line, "%s of a core, %s (pid %lld)",
                 prof_percent(health->recorder_cpu).text,
                 prof_bytes_of(health->recorder_bytes).text, (long long)health->recorder_pid);
    item(table, TUI_NORMAL, "perfkit run", line);
    snprintf(line, sizeof line, "%s of a core, %s", prof_percent(health->own_cpu).text,
             prof_bytes_of(health->own_bytes).text);
    item(table, TUI_NORMAL, "perfkit top", line);
    if (health->spools == PROF_UNKNOWN)
        snprintf(line, sizeof line, "n/a");
    else
        snprintf(line, sizeof line, "%s in %s", prof_bytes_of(health->spool_bytes).text,
                 prof_counted(health->spools, "spool", "spools").text);
    item(table, TUI_NORMAL, "memory of the recording", line);
}

static void trust_block(struct tui_table *table, const struct tui_view_input *input)
{
    struct prof_trust trust;
    if (input->model->phase != TUI_FINISHED) {
        item(table, TUI_DIM, "complete", "known when the capture has ended");
        return;
    }
    if (!input->tail || prof_trust(input->tail, &trust, NULL))
        return;
    item(table, trust.complete ? TUI_GOOD : TUI_BAD, "complete",
         trust.complete ? "yes: every call is accounted for" : "no");
    for (size_t i = 0; i < trust.statement_count && i < 50; i++)
        item(table,
             trust.statements[i].level == PROF_TRUST_LOSS      ? TUI_BAD
             : trust.statements[i].level == PROF_TRUST_WARNING ? TUI_WARN
                                                               : TUI_DIM,
             "", trust.statements[i].text);
    prof_trust_free(&trust);
}

void tui_fill_health(struct tui_table *table, const struct tui_view_input *input)
{
    tui_table_begin(table, health_columns, sizeof health_columns / sizeof *health_columns);
    table->in_order = true;
    own_state(table, input);
    recorder_state(table, input->health);
    trust_block(table, input);
}
