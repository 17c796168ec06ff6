/* The flame graph as a pprof profile (github.com/google/pprof, proto/profile.proto), compressed as
 * its tools expect. A sample is a distinct stack with four values: how many kernels, copies and
 * fills ended there, their time on the device, the bytes that they moved, and how long the device
 * had idled before them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/json.h"
#include "libprof/base/map.h"
#include "libprof/base/saturate.h"
#include "libprof/base/utf8.h"
#include "report/writers.h"
#include "report/flame.h"
#include "report/pack.h"
#include "report/protobuf.h"

/* Field numbers of profile.proto. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_TIME_NANOS = 9,
    PROFILE_DURATION_NANOS = 10,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_SAMPLE_TYPE = 14,
    VALUE_TYPE = 1,
    VALUE_UNIT = 2,
    SAMPLE_LOCATION = 1,
    SAMPLE_VALUE = 2,
    LOCATION_ID = 1,
    LOCATION_LINE = 4,
    LINE_FUNCTION = 1,
    LINE_LINE = 2,
    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_SYSTEM_NAME = 3,
    FUNCTION_FILE = 4,
};

struct work {
    struct prof_report_samples samples;
    struct prof_names numbers; /* of the texts in the string table */
    struct prof_protobuf strings, profile;
    uint32_t string_count;
    bool failed;
};

/* The number of a text in the string table. Names become clean: the format wants UTF-8, and pprof
 * prints them to terminals as they are. */
static int64_t pprof_string(struct work *w, const char *raw)
{
    char *clean = prof_report_clean(raw);
    if (!clean) {
        w->failed = true;
        return 0;
    }
    size_t length = strlen(clean);
    uint32_t *known = prof_names_get(&w->numbers, clean, length);
    uint32_t number = known ? *known : w->string_count;
    if (!known) {
        prof_protobuf_bytes(&w->strings, PROFILE_STRING, clean, length);
        w->failed |= !prof_names_put(&w->numbers, clean, length, w->string_count++);
    }
    free(clean);
    return number;
}

static const struct {
    const char *name, *unit;
    enum prof_report_weight weight;
} types[] = {
    {"operations", "count", PROF_REPORT_WEIGHT_COUNT},
    {"device_time", "nanoseconds", PROF_REPORT_WEIGHT_DEVICE_NS},
    {"moved", "bytes", PROF_REPORT_WEIGHT_BYTES},
    {"idle_before", "nanoseconds", PROF_REPORT_WEIGHT_IDLE_NS},
    {"cpu", "nanoseconds", PROF_REPORT_WEIGHT_CPU_NS}, /* these two with has_host only */
    {"blocked", "nanoseconds", PROF_REPORT_WEIGHT_BLOCKED_NS},
};

static size_t type_count(const struct work *w)
{
    return w->samples.has_host ? sizeof types / sizeof types[0] : PROF_REPORT_WEIGHT_CPU_NS;
}

static void put_sample_types(struct work *w)
{
    for (size_t i = 0; i < type_count(w); i++) {
        struct prof_protobuf type = {0};
        prof_protobuf_int(&type, VALUE_TYPE, pprof_string(w, types[i].name));
        prof_protobuf_int(&type, VALUE_UNIT, pprof_string(w, types[i].unit));
        prof_protobuf_message(&w->profile, PROFILE_SAMPLE_TYPE, &type);
        prof_protobuf_free(&type);
    }
    prof_protobuf_int(&w->profile, PROFILE_DEFAULT_SAMPLE_TYPE, pprof_string(w, "device_time"));
}

/* A location for each frame, with one line of one function: all three under the frame's number. */
static void put_frame(struct work *w, size_t frame)
{
    struct prof_protobuf function = {0}, location = {0}, line = {0};
    int64_t id = (int64_t)frame + 1, name = pprof_string(w, w->samples.frames[frame].name);
    prof_protobuf_int(&function, FUNCTION_ID, id);
    prof_protobuf_int(&function, FUNCTION_NAME, name);
    prof_protobuf_int(&function, FUNCTION_SYSTEM_NAME, name);
    prof_protobuf_int(&function, FUNCTION_FILE, pprof_string(w, w->samples.frames[frame].file));
    prof_protobuf_message(&w->profile, PROFILE_FUNCTION, &function);
    prof_protobuf_int(&line, LINE_FUNCTION, id);
    if (w->samples.frames[frame].line != PROF_UNKNOWN)
        prof_protobuf_int(&line, LINE_LINE, w->samples.frames[frame].line);
    prof_protobuf_int(&location, LOCATION_ID, id);
    prof_protobuf_message(&location, LOCATION_LINE, &line);
    prof_protobuf_message(&w->profile, PROFILE_LOCATION, &location);
    prof_protobuf_free(&function);
    prof_protobuf_free(&line);
    prof_protobuf_free(&location);
}

static void put_samples(struct work *w)
{
    struct prof_protobuf sample = {0}, packed = {0};
    for (size_t i = 0; i < w->samples.count; i++) {
        uint32_t frames[PROF_REPORT_STACK];
        size_t depth = prof_report_sample_stack(&w->samples, i, frames);
        prof_protobuf_clear(&sample);
        prof_protobuf_clear(&packed);
        for (size_t k = 0; k < depth; k++)
            prof_protobuf_varint(&packed, (uint64_t)frames[k] + 1);
        prof_protobuf_message(&sample, SAMPLE_LOCATION, &packed);
        prof_protobuf_clear(&packed);
        for (size_t k = 0; k < type_count(w); k++)
            prof_protobuf_varint(
                &packed, (uint64_t)prof_report_sample_weight(&w->samples, i, types[k].weight));
        prof_protobuf_message(&sample, SAMPLE_VALUE, &packed);
        prof_protobuf_message(&w->profile, PROFILE_SAMPLE, &sample);
    }
    prof_protobuf_free(&sample);
    prof_protobuf_free(&packed);
}

static void put_comment(struct work *w, const char *comment)
{
    if (comment && *comment)
        prof_protobuf_int(&w->profile, PROFILE_COMMENT, pprof_string(w, comment));
}

static enum prof_status put_pprof_header(struct work *w, struct prof_capture *capture,
                                         const struct prof_filter *filter, struct prof_error *err)
{
    const struct prof_info *info = prof_info(capture);
    struct prof_trust trust;
    char only[600];
    enum prof_status status = prof_trust(capture, &trust, err);
    int64_t wall_ns = prof_wall_ns(capture, filter);
    if (info->start_realtime_ns != PROF_UNKNOWN)
        prof_protobuf_int(&w->profile, PROFILE_TIME_NANOS, info->start_realtime_ns);
    if (wall_ns != PROF_UNKNOWN)
        prof_protobuf_int(&w->profile, PROFILE_DURATION_NANOS, wall_ns);
    put_comment(w, info->command);
    prof_report_filter_words(capture, filter, only, sizeof only);
    put_comment(w, only);
    if (!status) {
        snprintf(only, sizeof only, "capture: %s", prof_trust_status_words(trust.status));
        put_comment(w, only);
    }
    prof_trust_free(&trust);
    return status;
}

static enum prof_status save_pprof(const struct work *w, FILE *out, struct prof_error *err)
{
    FILE *file = prof_report_gzip(out);
    if (!file || w->failed || w->strings.failed || w->profile.failed) {
        if (file)
            fclose(file);
        return prof_fail(err, PROF_NOMEM, "cannot write the profile: out of memory");
    }
    fwrite(w->profile.data, 1, w->profile.count, file);
    fwrite(w->strings.data, 1, w->strings.count, file);
    bool bad = ferror(file);
    if (fclose(file) || bad)
        return prof_fail_errno(err, PROF_IO, "cannot write the profile");
    return prof_report_flush(out, err);
}

enum prof_status prof_report_write_pprof(struct prof_capture *capture,
                                         const struct prof_report_options *options, FILE *out,
                                         struct prof_error *err)
{
    struct work w = {0};
    enum prof_status status = prof_report_samples(capture, options, &w.samples, err);
    if (!status) {
        prof_protobuf_string(&w.strings, PROFILE_STRING, ""); /* number 0 has to be */
        w.string_count = 1;
        put_sample_types(&w);
        status = put_pprof_header(&w, capture, options ? options->filter : NULL, err);
    }
    if (!status) {
        for (size_t i = 0; i < w.samples.frame_count; i++)
            put_frame(&w, i);
        put_samples(&w);
        status = save_pprof(&w, out, err);
    }
    prof_report_samples_free(&w.samples);
    prof_names_free(&w.numbers);
    prof_protobuf_free(&w.strings);
    prof_protobuf_free(&w.profile);
    return status;
}

/* ---- speedscope ------------------------------------------------------------------------------ */

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
