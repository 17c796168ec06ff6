/* Parts that JSON documents share: the capture, its trust block, its devices. */
#include "report/writers.h"

static const char *state_word(enum prof_state state)
{
    static const char *const words[] = {
        [PROF_STATE_RECORDING] = "recording", [PROF_STATE_CLOSING] = "closing",
        [PROF_STATE_COMPLETE] = "complete",   [PROF_STATE_RECOVERED] = "recovered",
        [PROF_STATE_MERGED] = "merged",       [PROF_STATE_IMPORTED] = "imported",
    };
    return (size_t)state < sizeof words / sizeof *words ? words[state] : NULL;
}

void prof_report_json_capture(struct prof_json *json, const struct prof_report_data *data)
{
    const struct prof_info *info = data->info;
    char ending[96], when[32];
    prof_report_ending(info, ending, sizeof ending);
    prof_report_when(info->start_realtime_ns, when, sizeof when);
    prof_json_object(json, "capture");
    prof_json_string(json, "path", info->path);
    prof_json_known(json, "file_bytes", info->file_bytes);
    prof_json_int(json, "format_version", info->format_version);
    prof_json_string(json, "state", state_word(info->state));
    prof_json_string(json, "perfkit_version", info->perfkit_version);
    prof_json_string(json, "command", info->command);
    prof_json_string(json, "directory", info->directory);
    prof_json_string(json, "host", info->host);
    prof_json_string(json, "boot_id", info->boot_id);
    prof_json_string(json, "kernel", info->kernel);
    prof_json_string(json, "cpu", info->cpu);
    prof_json_known(json, "cpu_count", info->cpu_count);
    prof_json_known(json, "start_realtime_ns", info->start_realtime_ns);
    prof_json_string(json, "start_utc", info->start_realtime_ns == PROF_UNKNOWN ? NULL : when);
    prof_json_known(json, "start_mono_ns", info->start_mono_ns);
    prof_json_known(json, "duration_ns", info->duration_ns);
    prof_json_known(json, "exit_status", info->exit_status);
    prof_json_known(json, "exit_signal", info->exit_signal);
    prof_json_string(json, "ending", ending);
    prof_json_string(json, "trace", info->trace);
    prof_json_string(json, "kernel_filter", info->kernel_filter);
    prof_json_bool(json, "summary", info->summary);
    prof_json_end(json);
}

static void put_balances(struct prof_json *json, const char *key, const struct prof_balance *rows,
                         size_t count)
{
    prof_json_array(json, key);
    for (size_t i = 0; i < count; i++) {
        const struct prof_balance *row = &rows[i];
        prof_json_object(json, NULL);
        prof_json_string(json, "subject", row->subject);
        if (row->process)
            prof_json_int(json, "process", row->process);
        else
            prof_json_null(json, "process");
        prof_json_known(json, "called", row->called);
        prof_json_known(json, "recorded", row->recorded);
        prof_json_known(json, "failed", row->failed);
        prof_json_known(json, "captured", row->captured);
        prof_json_known(json, "dropped", row->dropped);
        prof_json_known(json, "outstanding", row->outstanding);
        prof_json_known(json, "filtered", row->filtered);
        prof_json_known(json, "uncalled", row->uncalled);
        prof_json_known(json, "unanswered", row->unanswered);
        prof_json_known(json, "unreturned", row->unreturned);
        prof_json_known(json, "remainder", row->remainder);
        prof_json_end(json);
    }
    prof_json_end(json);
}

/* A capture of an earlier version does not count it, one without graphs neither. */
static void put_graph_work(struct prof_json *json, const struct prof_graph_work *work)
{
    if (!(work->launched | work->kernels | work->memcpys | work->memsets | work->whole |
          work->filtered)) {
        prof_json_null(json, "graphs");
        return;
    }
    prof_json_object(json, "graphs");
    prof_json_int(json, "launched", work->launched);
    prof_json_int(json, "kernels", work->kernels);
    prof_json_int(json, "memcpys", work->memcpys);
    prof_json_int(json, "memsets", work->memsets);
    prof_json_int(json, "whole", work->whole);
    prof_json_int(json, "filtered", work->filtered);
    prof_json_end(json);
}

void prof_report_json_trust(struct prof_json *json, const struct prof_report_data *data)
{
    static const char *const levels[] = {[PROF_TRUST_NOTE] = "note",
                                         [PROF_TRUST_WARNING] = "warning",
                                         [PROF_TRUST_RISK] = "risk",
                                         [PROF_TRUST_LOSS] = "loss"};
    const struct prof_trust *trust = &data->trust;
    prof_json_object(json, "trust");
    prof_json_string(json, "status", prof_trust_status_name(trust->status));
    prof_json_bool(json, "complete", trust->complete);
    prof_json_int(json, "calls_without_records", trust->lacking);
    prof_json_known(json, "clock_error_ns", trust->clock_error_ns);
    prof_json_int(json, "windows", trust->windows);
    prof_json_known(json, "recorded_ns", trust->recorded_ns);
    put_balances(json, "totals", trust->totals, trust->total_count);
    put_balances(json, "balances", trust->balances, trust->balance_count);
    put_graph_work(json, &trust->graphs);
    prof_json_array(json, "statements");
    for (size_t i = 0; i < trust->statement_count; i++) {
        const struct prof_statement *statement = &trust->statements[i];
        prof_json_object(json, NULL);
        prof_json_string(json, "level", levels[statement->level]);
        prof_json_string(json, "code", statement->code);
        if (statement->process)
            prof_json_int(json, "process", statement->process);
        else
            prof_json_null(json, "process");
        prof_json_string(json, "text", statement->text);
        prof_json_end(json);
    }
    prof_json_end(json);
    prof_json_end(json);
}

void prof_report_json_devices(struct prof_json *json, const struct prof_report_data *data)
{
    const struct prof_device *devices;
    size_t count = prof_devices(data->capture, &devices);
    prof_json_array(json, "devices_seen");
    for (size_t i = 0; i < count; i++) {
        const struct prof_device *device = &devices[i];
        const char *label = prof_report_device_label(device);
        prof_json_object(json, NULL);
        prof_json_int(json, "id", device->id);
        prof_json_int(json, "process", device->process);
        prof_json_int(json, "physical", device->physical);
        prof_json_string(json, "label", label);
        prof_json_string(json, "given_name", device->label);
        prof_json_string(json, "api", device->api);
        prof_json_known(json, "ordinal", device->ordinal);
        prof_json_string(json, "name", device->name);
        prof_json_string(json, "vendor", device->vendor);
        prof_json_string(json, "driver", device->driver);
        prof_json_string(json, "uuid", device->uuid);
        prof_json_string(json, "kind", device->kind);
        prof_json_known(json, "units", device->units);
        prof_json_known(json, "clock_khz", device->clock_khz);
        prof_json_known(json, "memory_bytes", device->memory_bytes);
        prof_json_known(json, "memory_bandwidth_bytes_per_s", device->memory_bandwidth);
        prof_json_end(json);
    }
    prof_json_end(json);
}
