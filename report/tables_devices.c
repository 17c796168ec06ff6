/* The tables of devices: how busy each was, and when it had nothing to do. */
#include <stdio.h>

#include "report/columns.h"

static struct prof_report_value share_value(int64_t part, int64_t whole)
{
    bool known = part != PROF_UNKNOWN && whole > 0;
    return prof_report_real(known ? (double)part / (double)whole : (double)NAN);
}

#define UTIL(row) ((const struct prof_utilisation_row *)(row))

CELL(util_busy, share_value(UTIL(row)->busy_ns, UTIL(row)->window_ns))

static const struct prof_report_column device_columns[] = {
    COMPUTED("busy_share", "Busy", SHARE, 1, util_busy),
    INT64("busy_ns", "Busy time", NS, 1, prof_utilisation_row, busy_ns),
    INT64("idle_ns", "Idle", NS, 2, prof_utilisation_row, idle_ns),
    INT64("late_ns", "Busy while off", NS, 0, prof_utilisation_row, late_ns),
    INT64("kernel_ns", "Kernels", NS, 3, prof_utilisation_row, kernel_ns),
    INT64("memcpy_memset_ns", "Memcpy, memset", NS, 4, prof_utilisation_row, memcpy_memset_ns),
    INT64("overlap_ns", "Overlap", NS, 5, prof_utilisation_row, overlap_ns),
    ENERGY("Energy", 2, prof_utilisation_row, energy),
    INT64("energy_ns", "Energy read for", NS, 0, prof_utilisation_row, energy_ns),
    INT64("gap_ns", "Gaps", NS, 0, prof_utilisation_row, gap_ns),
    INT64("gap_count", "Gap count", COUNT, 0, prof_utilisation_row, gap_count),
    INT64("lead_ns", "Idle before first", NS, 0, prof_utilisation_row, lead_ns),
    INT64("tail_ns", "Idle after last", NS, 0, prof_utilisation_row, tail_ns),
    INT64("kernel_sum_ns", "Kernel sum", NS, 0, prof_utilisation_row, kernel_sum_ns),
    INT64("memcpy_memset_sum_ns", "Memcpy, memset sum", NS, 0, prof_utilisation_row,
          memcpy_memset_sum_ns),
    INT64("kernels", "Kernel count", COUNT, 0, prof_utilisation_row, kernels),
    INT64("memcpys", "Memcpys", COUNT, 0, prof_utilisation_row, memcpys),
    INT64("memsets", "Memsets", COUNT, 0, prof_utilisation_row, memsets),
    INT64("unfinished", "Unfinished", COUNT, 0, prof_utilisation_row, unfinished),
    INT64("graphs", "Graph count", COUNT, 0, prof_utilisation_row, graphs),
    INT64("max_concurrent_kernels", "Most at once", COUNT, 6, prof_utilisation_row,
          max_concurrent_kernels),
    INT64("first_ns", "First", MOMENT, 0, prof_utilisation_row, first_ns),
    INT64("last_ns", "Last", MOMENT, 0, prof_utilisation_row, last_ns),
    INT64("window_ns", "Window", NS, 0, prof_utilisation_row, window_ns),
    INT64("device", "Device id", NUMBER, 0, prof_utilisation_row, device),
    BY_ID(INT64, "ordinal", "Ordinal", NUMBER, 0, prof_utilisation_row, device, device, ordinal),
    BY_ID(STRING, "api", "API", WORD, 4, prof_utilisation_row, device, device, api),
    BY_ID(STRING, "title", "Device", NAME, 1, prof_utilisation_row, device, device, title),
    BY_ID(STRING, "name", "Name", NAME, 1, prof_utilisation_row, device, device, name),
    {0},
};

const struct prof_report_table prof_report_devices_table = {
    .name = "devices",
    .part = PROF_PART_DEVICES,
    .title = "Devices",
    .none = "no device work was recorded",
    .help =
        "Busy is the union of kernels, whole graphs, memcpys and memsets; overlap is the time "
        "when kernels and memcpys or memsets ran at once; idle is the rest of the recorded "
        "time: before the first operation, in the gaps, and after the last one. Busy while off: "
        "recorded work that ran while recording was off. Energy is that of "
        "the whole board, by the driver's counter, while it was read.",
    .not_in_text = true,
    ROWS(prof_utilisation_row, device, utilisation.rows, utilisation.count),
};

static const struct prof_report_column gap_columns[] = {
    INT64("duration_ns", "Idle for", NS, 1, prof_report_gap, gap.duration_ns),
    INT64("start_ns", "From", MOMENT, 1, prof_report_gap, gap.start_ns),
    INT64("before_ns", "Busy before", NS, 3, prof_report_gap, gap.before_ns),
    INT64("device", "Device id", NUMBER, 0, prof_report_gap, device),
    OF_ID("name", "Device", NAME, 1, prof_report_gap, device, prof_report_device_name),
    {0},
};

const struct prof_report_table prof_report_gaps_table = {
    .name = "gaps",
    .part = PROF_PART_DEVICES,
    .title = "Longest idle times",
    .none = "no gaps",
    .help = "Times between the first and the last operation of a device when it had nothing to do.",
    .screen_rows = 3,
    .not_in_text = true,
    ROWS(prof_report_gap, gap, gaps, gap_count),
};

#define STATE(row) ((const struct prof_report_state *)(row))

CELL(state_share, share_value(STATE(row)->ns, data->findings.window_ns))
CELL(state_key, prof_report_text(prof_slice_name(STATE(row)->slice)))
CELL(state_idle, prof_report_int(STATE(row)->slice >= PROF_SLICE_FIRST_IDLE))
CELL(state_name, prof_report_text(prof_slice_text(STATE(row)->slice)))

static struct prof_report_value state_device(const struct prof_report_data *data, const void *row)
{
    const struct prof_device *device = prof_device(data->capture, STATE(row)->device);
    return prof_report_text(prof_report_device_label(device));
}

static const struct prof_report_column state_columns[] = {
    INT64("time_ns", "Time", NS, 1, prof_report_state, ns),
    COMPUTED("share", "Share", SHARE, 1, state_share),
    COMPUTED("state", "State", WORD, 0, state_key),
    COMPUTED("idle", "Idle", NUMBER, 0, state_idle),
    INT64("device", "Device id", NUMBER, 0, prof_report_state, device),
    COMPUTED("title", "Device", WORD, 2, state_device),
    COMPUTED("name", "What it did", NAME, 1, state_name),
    {0},
};

static void state_totals(const struct prof_report_data *data, char *out, size_t size)
{
    snprintf(out, size, "%s analysed, from %s on", prof_duration_ns(data->findings.window_ns).text,
             prof_duration_ns(data->findings.begin_ns).text);
}

const struct prof_report_table prof_report_states_table = {
    .name = "states",
    .part_order = 2,
    .title = "Where the device's time went",
    .none = "n/a, no device work was analysed",
    .help = "Each instant of the analysed interval has one state, so they add up to it: what ran, "
            "or what the host did until the next operation came.",
    .totals = state_totals,
    ROWS(prof_report_state, state, states, state_count),
};
