/* The flame graph for speedscope (https://www.speedscope.app/file-format-schema.json): one sampled
 * profile for each thing that stacks can weigh. The values are totals of the capture, not samples
 * over time: "left heavy" and "sandwich" are the views for them. */
#include "libprof/base/json.h"
#include "libprof/base/saturate.h"
#include "report/flame_samples.h"
#include "report/writers.h"

static const struct profile {
    const char *name, *unit;
    enum prof_report_weight weight;
} profiles[] = {
    {"device time", "nanoseconds", PROF_REPORT_WEIGHT_DEVICE_NS},
    {"bytes of memcpys and memsets", "bytes", PROF_REPORT_WEIGHT_BYTES},
    {"kernels, memcpys and memsets", "none", PROF_REPORT_WEIGHT_COUNT},
    {"device idle before", "nanoseconds", PROF_REPORT_WEIGHT_IDLE_NS},
    {"host on a processor", "nanoseconds", PROF_REPORT_WEIGHT_CPU_NS},
    {"host blocked", "nanoseconds", PROF_REPORT_WEIGHT_BLOCKED_NS},
};
enum { PROFILES = sizeof profiles / sizeof profiles[0] };

static void put_speedscope_frames(struct prof_json *json, const struct prof_report_samples *samples)
{
    prof_json_object(json, "shared");
    prof_json_array(json, "frames");
    for (size_t i = 0; i < samples->frame_count; i++) {
        prof_json_object(json, NULL);
        prof_json_string(json, "name", samples->frames[i].name);
        prof_json_string(json, "file", samples->frames[i].file);
        if (samples->frames[i].line != PROF_UNKNOWN)
            prof_json_int(json, "line", samples->frames[i].line);
        prof_json_end(json);
    }
    prof_json_end(json);
    prof_json_end(json);
}

static void put_stack(struct prof_json *json, const struct prof_report_samples *samples,
                      size_t index)
{
    uint32_t frames[PROF_REPORT_STACK];
    prof_json_array(json, NULL);
    for (size_t depth = prof_report_sample_stack(samples, index, frames); depth--;)
        prof_json_uint(json, NULL, frames[depth]);
    prof_json_end(json);
}

static void put_profile(struct prof_json *json, const struct profile *profile,
                        const struct prof_report_samples *samples)
{
    int64_t total = 0;
    prof_json_object(json, NULL);
    prof_json_string(json, "type", "sampled");
    prof_json_string(json, "name", profile->name);
    prof_json_string(json, "unit", profile->unit);
    prof_json_array(json, "samples");
    for (size_t i = 0; i < samples->count; i++) {
        if (prof_report_sample_weight(samples, i, profile->weight) > 0)
            put_stack(json, samples, i);
    }
    prof_json_end(json);
    prof_json_array(json, "weights");
    for (size_t i = 0; i < samples->count; i++) {
        int64_t weight = prof_report_sample_weight(samples, i, profile->weight);
        if (weight <= 0)
            continue;
        total = prof_add(total, weight);
        prof_json_int(json, NULL, weight);
    }
    prof_json_end(json);
    prof_json_int(json, "startValue", 0);
    prof_json_int(json, "endValue", total);
    prof_json_end(json);
}

enum prof_status prof_report_write_speedscope(struct prof_capture *capture,
                                              const struct prof_report_options *options, FILE *out,
                                              struct prof_error *err)
{
    struct prof_report_samples samples;
    struct prof_json json;
    enum prof_status status = prof_report_samples(capture, options, &samples, err);
    if (!status) {
        const struct prof_info *info = prof_info(capture);
        prof_json_to_file(&json, out, 0);
        prof_json_object(&json, NULL);
        prof_json_string(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
        prof_json_string(&json, "name", info->command ? info->command : info->path);
        prof_json_string(&json, "exporter", "perfkit");
        prof_json_int(&json, "activeProfileIndex", 0);
        put_speedscope_frames(&json, &samples);
        prof_json_array(&json, "profiles");
        for (int i = 0; i < PROFILES; i++) {
            if (profiles[i].weight < PROF_REPORT_WEIGHT_CPU_NS || samples.has_host)
                put_profile(&json, &profiles[i], &samples);
        }
        prof_json_end(&json);
        prof_json_end(&json);
        status = prof_json_finish(&json, err);
    }
    prof_report_samples_free(&samples);
    return status;
}
