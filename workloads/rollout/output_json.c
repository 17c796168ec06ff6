/* The results as one JSON object. */
#include "workloads/common/report.h"
#include "workloads/rollout/workload.h"

static void errors_json(struct json *json, const char *key, const struct errors *errors)
{
    if (!errors->done)
        return;
    json_object_begin(json, key);
    json_number(json, "max_absolute", errors->max_absolute);
    json_number(json, "mean_absolute", errors->mean_absolute);
    json_number(json, "mean_relative", errors->mean_relative);
    json_number(json, "norm_relative", errors->norm);
    json_object_end(json);
}

static void parts_json(struct json *json, const struct result *row, double ceiling)
{
    json_object_begin(json, "parts");
    for (int part = 0; part < PART_KINDS; part++) {
        const struct tally *tally = &row->tally[part];

        json_object_begin(json, part_names[part]);
        json_number(json, "step_ns", row->part_ns[part]);
        json_integer(json, "launches", tally->launches);
        json_number(json, "flop", tally->flop);
        json_number(json, "bytes_read", tally->bytes_read);
        json_number(json, "bytes_written", tally->bytes_written);
        if (part == PART_NORM || part == PART_ACTIVATION || part == PART_NOISE)
            json_number(json, "share_of_copy_bandwidth",
                        part_bandwidth(row, (enum part)part) / ceiling);
        json_object_end(json);
    }
    json_object_end(json);
}

static void result_json(struct json *json, const struct result *row, double ceiling)
{
    json_object_begin(json, NULL);
    json_text(json, "variant", row->variant->name);
    json_text(json, "storage", storage_name(row->storage));
    json_integer(json, "images", row->images);
    json_integer(json, "batch", row->batch);
    if (row->skipped[0]) {
        json_text(json, "skipped", row->skipped);
        json_object_end(json);
        return;
    }
    json_integer(json, "steps", row->steps);
    stats_json(json, "wall_ns", &row->wall);
    stats_json(json, "device_ns", &row->device);
    json_number(json, "image_steps_per_s", 1e9 / image_step_ns(row));
    parts_json(json, row, ceiling);
    json_number(json, "empty_launch_ns", row->empty_ns);
    json_object_begin(json, "memory_bytes");
    for (int kind = 0; kind < MEMORY_KINDS; kind++)
        json_integer(json, memory_names[kind], row->memory[kind]);
    json_object_end(json);
    if (row->variant->graph)
        json_number(json, "compile_ns", row->compile_ns);
    errors_json(json, "errors_against_fp32", &row->fp32);
    errors_json(json, "errors_against_reference", &row->reference);
    if (row->reference.done) {
        json_number(json, "tolerance", row->tolerance);
        json_bool(json, "verified", result_passed(row));
    }
    json_object_end(json);
}

void print_json(const struct rollout_options *options, const struct dev_info *info,
                const struct results *results, const struct claims *claims)
{
    struct json json;

    report_json_begin(&json, "rollout", info, &options->common);
    json_integer(&json, "grid", options->grid);
    json_integer(&json, "channels", options->channels);
    json_integer(&json, "layers", options->layers);
    json_integer(&json, "realisations", options->realisations);
    json_integer(&json, "capacity_bytes", results->capacity);
    json_number(&json, "copy_bytes_per_s", results->ceiling);
    json_text(&json, "arithmetic", arithmetic(info));
    json_array_begin(&json, "results");
    for (size_t i = 0; i < results->count; i++)
        result_json(&json, &results->rows[i], results->ceiling);
    json_array_end(&json);
    claims_json(&json, claims);
    json_object_end(&json);
}
