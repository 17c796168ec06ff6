/* Views of the machine: devices, the host, and the health of the recording. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libprof/base/clock.h"
#include "libprof/base/format.h"
#include "libprof/base/regular.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_cpu.h"
#include "libprof/include/prof_stack.h"
#include "tui/views.h"

/* ---- devices --------------------------------------------------------------------------------- */

/* Devices: what the driver reports of the hardware, beside what the capture says of this program.
 */

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

/* What a driver does not report takes no room: `if_known`. */
static const struct tui_column device_columns[] = {
    [D_NAME] = TUI_COLUMN("name", "Device", NAME, 0, 0),
    [D_API] = TUI_COLUMN("api", "api", WORD, 8, 6),
    [D_KERNELS] = TUI_COLUMN("kernel_wall_share", "kern%", SHARE, 7, 0),
    [D_UTIL] = TUI_COLUMN("gpu_share", "util%", SHARE, 7, 0, .if_known = true),
    [D_SM] = TUI_COLUMN("sm_share", "SM%", SHARE, 7, 2, .if_known = true),
    [D_OCCUPANCY] = TUI_COLUMN("sm_occupancy", "occ%", SHARE, 7, 3, .if_known = true),
    [D_TENSOR] = TUI_COLUMN("tensor_share", "tensor%", SHARE, 7, 2, .if_known = true),
    [D_DRAM] = TUI_COLUMN("dram_share", "DRAM%", SHARE, 7, 2, .if_known = true),
    [D_USED] = TUI_COLUMN("used_bytes", "used", BYTES, 9, 0, .if_known = true),
    [D_TOTAL] = TUI_COLUMN("memory_bytes", "memory", BYTES, 9, 4, .if_known = true),
    [D_POWER] = TUI_COLUMN("power_w", "power W", WORD, 9, 1, .if_known = true),
    [D_CLOCK] = TUI_COLUMN("clock_mhz", "MHz", WORD, 9, 3, .if_known = true),
    [D_TEMP] = TUI_COLUMN("temperature_c", "temp C", COUNT, 6, 1, .if_known = true),
    [D_THROTTLE] = TUI_COLUMN("throttle", "throttled", WORD, 16, 5, .if_known = true),
    [D_RX] = TUI_COLUMN("pcie_rx_bytes_per_s", "PCIe in", RATE, 10, 7, .if_known = true),
    [D_TX] = TUI_COLUMN("pcie_tx_bytes_per_s", "PCIe out", RATE, 10, 7, .if_known = true),
    [D_NVLINK_RX] = TUI_COLUMN("nvlink_rx_bytes_per_s", "NVLink in", RATE, 10, 8, .if_known = true),
    [D_NVLINK_TX] =
        TUI_COLUMN("nvlink_tx_bytes_per_s", "NVLink out", RATE, 10, 8, .if_known = true),
    [D_FP64] = TUI_COLUMN("fp64_share", "FP64%", SHARE, 7, 9, .if_known = true),
    [D_FP32] = TUI_COLUMN("fp32_share", "FP32%", SHARE, 7, 9, .if_known = true),
    [D_FP16] = TUI_COLUMN("fp16_share", "FP16%", SHARE, 7, 9, .if_known = true),
    [D_MEM] = TUI_COLUMN("memory_share", "mem%", SHARE, 7, 10, .if_known = true),
    [D_UNITS] = TUI_COLUMN("units", "units", COUNT, 6, 8),
    [D_UUID] = TUI_COLUMN("uuid", NULL, WORD, 0, 0),
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
        const struct prof_device *d = tui_model_device(model, s->values.device);
        if (d && d->physical == physical)
            sum = prof_add(sum, s->window_kernels.ns);
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
                                                    : " (not here: NVML is not available)");
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
        const struct prof_device *d = &model->devices.data[i];
        if (d->physical == d->id) /* else the same hardware, seen by another process */
            has_activity |= add_device(table, input, d).has_activity;
    }
    explain_missing_metrics(table, input, has_activity);
}

/* ---- the host -------------------------------------------------------------------------------- */

/* The host: where its threads are (samples of the processors), and which lines launch the devices'
 * work (call stacks). Of the end of the capture that a look can afford. */

#define COLUMNS(COLUMN)                                                                            \
    COLUMN(H_WHERE, "where", "Host", NAME, 26, 0)                                                  \
    COLUMN(H_CPU, "running_ns", "cpu", NS, 8, 0, .if_known = true)                                 \
    COLUMN(H_SHARE, "cpu_share", "cpu%", SHARE, 7, 1, .if_known = true)                            \
    COLUMN(H_IDLE, "idle_ns", "GPU idle", NS, 8, 0, .if_known = true)                              \
    COLUMN(H_BLOCKED, "blocked_ns", "blocked", NS, 8, 2, .if_known = true)                         \
    COLUMN(H_WAITING, "preempted_ns", "queued", NS, 8, 5, .if_known = true)                        \
    COLUMN(H_LAUNCHED, "launched_ns", "launched", NS, 8, 0, .if_known = true)                      \
    COLUMN(H_COUNT, "count", "operations", COUNT, 10, 4, .if_known = true)                         \
    COLUMN(H_WORK, "most", "most of it", WORD, 24, 3, .if_known = true)                            \
    COLUMN(H_THREADS, "thread", "threads", WORD, 9, 6, .if_known = true)
TUI_COLUMNS(columns, COLUMNS)

#define MOST_ROWS 200

/* Functions of one text: those without a name yet are shown by their module. */
struct place {
    char where[200];
    bool launches;
    int64_t cpu_ns, idle_ns, blocked_ns, waiting_ns;
};

struct places {
    struct prof_names known; /* text and whether the thread launches -> number */
    PROF_ARRAY(struct place) list;
};

static void name_place(const struct prof_cpu_function *f, char *out, size_t size)
{
    const char *module = f->module ? prof_file_name(f->module) : NULL;
    size_t length = module ? strlen(module) : 0;
    if (length && !strncmp(f->function, module, length) && !strncmp(f->function + length, "+0x", 3))
        snprintf(out, size, "%s", module);
    else
        snprintf(out, size, "%.*s", (int)size - 1, f->where);
}

static bool add_function(struct places *places, const struct prof_cpu_function *f)
{
    const int64_t *ns = f->times.ns;
    char key[201] = {f->launches ? 'l' : 'o'};
    name_place(f, key + 1, sizeof key - 1);
    uint32_t *known = prof_names_get(&places->known, key, strlen(key));
    struct place *place = known ? &places->list.data[*known] : prof_array_add(&places->list);
    if (!place)
        return false;
    if (!known) {
        *place = (struct place){.launches = f->launches};
        memcpy(place->where, key + 1, sizeof place->where);
        if (!prof_names_put(&places->known, key, strlen(key), (uint32_t)places->list.count - 1))
            return false;
    }
    place->cpu_ns = prof_add(place->cpu_ns, prof_add(ns[PROF_CPU_USER], ns[PROF_CPU_KERNEL]));
    place->idle_ns = prof_add(place->idle_ns, prof_cpu_total(f->times.idle_ns));
    place->blocked_ns = prof_add(place->blocked_ns, ns[PROF_CPU_BLOCKED]);
    place->waiting_ns = prof_add(place->waiting_ns, ns[PROF_CPU_PREEMPTED]);
    return true;
}

static void add_place(struct tui_table *table, const struct place *place, int64_t all_ns)
{
    tui_table_row(table, (int64_t)table->rows.count, 0, place->launches ? TUI_NORMAL : TUI_DIM);
    tui_table_text(table, H_WHERE, place->where);
    tui_table_number(table, H_CPU, place->cpu_ns);
    tui_table_real(table, H_SHARE, all_ns > 0 ? (double)place->cpu_ns / (double)all_ns : NAN);
    tui_table_number(table, H_IDLE, place->idle_ns);
    tui_table_number(table, H_BLOCKED, place->blocked_ns);
    tui_table_number(table, H_WAITING, place->waiting_ns);
    tui_table_text(table, H_THREADS, place->launches ? "launching" : "others");
    for (size_t column = H_LAUNCHED; column <= H_WORK; column++)
        tui_table_blank(table, column);
}

/* Returns how many rows there are of it. */
static size_t add_samples(struct tui_table *table, const struct tui_view_input *input)
{
    struct prof_cpu cpu;
    struct prof_error err = {0};
    struct places places = {0};
    int64_t all = 0;
    if (prof_cpu(input->tail, &input->filter, &cpu, &err)) {
        tui_table_failure(table, &err);
        return 0;
    }
    for (size_t i = 0; i < cpu.function_count && places.list.count < MOST_ROWS; i++)
        table->failed |= !add_function(&places, &cpu.functions[i]);
    for (size_t i = 0; i < places.list.count; i++)
        all = prof_add(all, places.list.data[i].cpu_ns);
    for (size_t i = 0; i < places.list.count; i++)
        add_place(table, &places.list.data[i], all);
    size_t rows = places.list.count;
    prof_names_free(&places.known);
    prof_array_free(&places.list);
    prof_cpu_free(&cpu);
    return rows;
}

static size_t add_launches(struct tui_table *table, const struct tui_view_input *input)
{
    struct prof_launch_lines lines;
    struct prof_error err = {0};
    if (prof_launch_lines(input->tail, &input->filter, &lines, &err)) {
        tui_table_failure(table, &err);
        return 0;
    }
    size_t rows = lines.count < MOST_ROWS ? lines.count : MOST_ROWS;
    for (size_t i = 0; i < rows; i++) {
        const struct prof_launch_line *line = &lines.rows[i];
        tui_table_row(table, (int64_t)table->rows.count, 0, TUI_NORMAL);
        tui_table_text(table, H_WHERE, line->where);
        tui_table_number(table, H_LAUNCHED, line->device_ns);
        tui_table_number(table, H_COUNT, line->count);
        tui_table_text(table, H_WORK, line->work);
        for (size_t column = H_CPU; column <= H_WAITING; column++)
            tui_table_blank(table, column);
        tui_table_blank(table, H_THREADS);
    }
    prof_launch_lines_free(&lines);
    return rows;
}

void tui_fill_host(struct tui_table *table, const struct tui_view_input *input)
{
    tui_table_begin(table, columns, sizeof columns / sizeof *columns);
    if (!tui_has_events(table, input))
        return;
    size_t samples = add_samples(table, input), launches = add_launches(table, input);
    table->sort = samples ? H_CPU : H_LAUNCHED;
    if (samples)
        tui_table_note(table, "cpu: on a processor; blocked: waiting, GPU idle: of both, while no "
                              "device worked; queued: for a processor. By function");
    else
        tui_table_note(table, "Where threads are: not recorded (perfkit run --cpu-sample)");
    if (launches)
        tui_table_note(table, "launched: device time of the work that a line launched");
    else
        tui_table_note(table, "Which lines launch: not recorded (perfkit run --stacks)");
    if ((samples || launches) && tui_model_is_live(input->model))
        tui_table_note(table, "Native functions get their names when the run has ended");
    tui_note_extent(table, input, "Of");
}

/* ---- health: how far the look has come, and what the recording and the watching cost --------- */

#define HEALTH_COLUMNS(COLUMN)                                                                     \
    COLUMN(H_WHAT, "what", "Health", WORD, 30, 0)                                                  \
    COLUMN(H_VALUE, "value", "", NAME, 0, 0)
TUI_COLUMNS(health_columns, HEALTH_COLUMNS)

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
        return model->state == PROF_STATE_RECOVERED ? "recovered" : "finished";
    case TUI_GONE:
        return "the file was deleted; shown is what was read until then";
    case TUI_ABANDONED:
        return "interrupted: perfkit no longer records into it; `perfkit recover` finishes it";
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
    if (model->looked_ns && tui_model_is_live(model))
        item(table, TUI_NORMAL, "age of what is shown",
             prof_duration_ns((int64_t)(prof_now_ns() - model->looked_ns)).text);
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
    if (health->dropped != PROF_UNKNOWN)
        item(table, health->dropped > 0 ? TUI_BAD : TUI_NORMAL, "records dropped",
             prof_count(health->dropped).text);
    if (health->recorder_pid != PROF_UNKNOWN) {
        snprintf(line, sizeof line, "%s of a core, %s (pid %lld)",
                 prof_percent(health->recorder_cpu).text,
                 prof_bytes_of(health->recorder_bytes).text, (long long)health->recorder_pid);
        item(table, TUI_NORMAL, "perfkit run", line);
    }
    snprintf(line, sizeof line, "%s of a core, %s", prof_percent(health->own_cpu).text,
             prof_bytes_of(health->own_bytes).text);
    item(table, TUI_NORMAL, "perfkit top", line);
    if (health->spools == PROF_UNKNOWN)
        return;
    snprintf(line, sizeof line, "%s in %s", prof_bytes_of(health->spool_bytes).text,
             prof_counted(health->spools, "spool", "spools").text);
    item(table, TUI_NORMAL, "memory of the recording", line);
}

static void trust_block(struct tui_table *table, const struct tui_view_input *input)
{
    struct prof_trust trust;
    if (input->model->phase != TUI_FINISHED) {
        item(table, TUI_DIM, "status", "known when the capture has ended");
        return;
    }
    if (!input->tail || prof_trust(input->tail, &trust, NULL))
        return;
    item(table, trust.complete ? TUI_GOOD : TUI_BAD, "status",
         prof_trust_status_words(trust.status));
    for (size_t i = 0; i < trust.statement_count && i < 50; i++)
        item(table,
             trust.statements[i].level >= PROF_TRUST_RISK      ? TUI_BAD
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
