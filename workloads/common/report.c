/* The parts of the output that all workloads share; see report.h. */
#include "workloads/common/report.h"

#include <stdio.h>

void report_title(const char *workload, const struct dev_info *info)
{
    printf("%s on %s: %s (%s), %u compute units\n", workload, dev_backend_name(info->backend),
           info->name, info->platform, info->compute_units);
}

void report_json_begin(struct json *json, const char *workload, const struct dev_info *info,
                       const struct common_options *common)
{
    *json = (struct json){.file = stdout};
    json_object_begin(json, NULL);
    json_text(json, "workload", workload);
    json_text(json, "backend", dev_backend_name(info->backend));
    json_text(json, "device", info->name);
    json_text(json, "platform", info->platform);
    json_integer(json, "compute_units", info->compute_units);
    json_text(json, "preset", preset_names[common->preset]);
    json_integer(json, "iterations", common->iterations);
    json_integer(json, "warmup", common->warmup);
    json_integer(json, "seed", common->seed);
}

void stats_json(struct json *json, const char *key, const struct stats *s)
{
    json_object_begin(json, key);
    json_number(json, "mean", s->mean);
    json_number(json, "median", s->median);
    json_number(json, "min", s->min);
    json_number(json, "max", s->max);
    json_number(json, "mad", s->mad);
    json_integer(json, "count", s->count);
    json_object_end(json);
}

void measurement_json(struct json *json, const struct measurement *m)
{
    stats_json(json, "kernel_ns", &m->kernel);
    stats_json(json, "transfer_ns", &m->transfer);
    stats_json(json, "host_ns", &m->host);
    stats_json(json, "wall_ns", &m->wall);
    json_integer(json, "launches", m->tally.launches);
    json_integer(json, "transfers", m->tally.transfers);
    json_integer(json, "allocations", m->tally.allocations);
    json_integer(json, "transfer_bytes", m->tally.transfer_bytes);
    json_number(json, "flop", m->tally.flop);
    json_number(json, "bytes_read", m->tally.bytes_read);
    json_number(json, "bytes_written", m->tally.bytes_written);
}

void components_json(struct json *json, const char *const *names, const double *mean_ns,
                     size_t count)
{
    double total = 0;

    for (size_t i = 0; i < count; i++)
        total += mean_ns[i];
    json_array_begin(json, "components");
    for (size_t i = 0; i < count; i++) {
        json_object_begin(json, NULL);
        json_text(json, "component", names[i]);
        json_number(json, "mean_ns", mean_ns[i]);
        json_number(json, "share", mean_ns[i] / total);
        json_object_end(json);
    }
    json_array_end(json);
    json_number(json, "components_total_ns", total);
}

void check_json(struct json *json, const struct check *check)
{
    if (!check->done)
        return;
    json_number(json, "relative_error", check->error);
    json_number(json, "tolerance", check->tolerance);
    json_bool(json, "verified", check_passed(check));
}

void check_cell(struct table *table, const struct check *check)
{
    table_cell(table, "%.1e %s", check->error, check_passed(check) ? "ok" : "FAILED");
}

bool check_failed(const char *workload, const char *variant, const struct check *check)
{
    if (!check->done || check_passed(check))
        return false;
    fprintf(stderr, "%s: %s: relative error %g, allowed %g\n", workload, variant, check->error,
            check->tolerance);
    return true;
}
