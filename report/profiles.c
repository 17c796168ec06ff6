/* The flame graph as profiles: for pprof (github.com/google/pprof, proto/profile.proto), compressed
 * as its tools expect; as OTLP profiles; for speedscope. A sample is a distinct stack with four
 * values: how many kernels, memcpys and memsets ended there, their time on the device, the bytes
 * that they moved, and how long the device had idled before them. OTLP and speedscope have a
 * profile for each value. */
#include <stdlib.h>
#include <string.h>

#include "libprof/base/array.h"
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

/* Field numbers of opentelemetry-proto 1.11.0, whose profiles are alpha: profiles.proto of
 * v1development (the same fields since 1.10.0), common.proto and resource.proto. */
enum {
    OTLP_RESOURCE_PROFILES = 1,
    OTLP_DICTIONARY = 2,
    RESOURCE_PROFILES_RESOURCE = 1,
    RESOURCE_PROFILES_SCOPE_PROFILES = 2,
    RESOURCE_ATTRIBUTES = 1,
    SCOPE_PROFILES_SCOPE = 1,
    SCOPE_PROFILES_PROFILES = 2,
    SCOPE_NAME = 1,
    SCOPE_VERSION = 2,
    SCOPE_ATTRIBUTES = 3,
    KEY_VALUE_KEY = 1,
    KEY_VALUE_VALUE = 2,
    ANY_VALUE_STRING = 1,
    DICTIONARY_MAPPING = 1,
    DICTIONARY_LOCATION = 2,
    DICTIONARY_FUNCTION = 3,
    DICTIONARY_LINK = 4,
    DICTIONARY_STRING = 5,
    DICTIONARY_ATTRIBUTE = 6,
    DICTIONARY_STACK = 7,
    OTLP_LINK_TRACE_ID = 1, /* 16 bytes */
    OTLP_LINK_SPAN_ID = 2,  /* 8 bytes */
    OTLP_STACK_LOCATIONS = 1,
    OTLP_LOCATION_LINES = 3,
    OTLP_FUNCTION_NAME = 1,
    OTLP_FUNCTION_FILE = 3,
    OTLP_PROFILE_SAMPLE_TYPE = 1,
    OTLP_PROFILE_SAMPLES = 2,
    OTLP_PROFILE_TIME_UNIX_NANO = 3, /* fixed64 */
    OTLP_PROFILE_DURATION_NANO = 4,
    OTLP_SAMPLE_STACK = 1,
    OTLP_SAMPLE_VALUES = 4,
};

struct work {
    struct prof_report_samples samples;
    struct prof_names numbers; /* of the texts in the string table */
    unsigned string_field;
    struct prof_protobuf strings, profile;
    uint32_t string_count;
    PROF_ARRAY(uint32_t) otlp_stacks; /* of the samples: their stacks in the dictionary, less one */
    bool failed;

    /* What is said of the whole: */
    const struct prof_info *info;
    int64_t wall_ns;
    const char *trust;
    char filter[600];
};

/* The number of a text in the string table. Names become clean: the format wants UTF-8, and pprof
 * prints them to terminals as they are. */
static int64_t profile_string(struct work *w, const char *raw)
{
    PROF_FREED char *clean = prof_report_clean(raw);
    if (!clean) {
        w->failed = true;
        return 0;
    }
    size_t length = strlen(clean);
    uint32_t *known = prof_names_get(&w->numbers, clean, length);
    uint32_t number = known ? *known : w->string_count;
    if (!known) {
        prof_protobuf_bytes(&w->strings, w->string_field, clean, length);
        w->failed |= !prof_names_put(&w->numbers, clean, length, w->string_count++);
    }
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

/* In both formats field 1 of a profile, and made of the same fields. */
static void put_value_type(struct work *w, struct prof_protobuf *profile, size_t i)
{
    struct prof_protobuf type = {0};
    prof_protobuf_int(&type, VALUE_TYPE, profile_string(w, types[i].name));
    prof_protobuf_int(&type, VALUE_UNIT, profile_string(w, types[i].unit));
    prof_protobuf_take(profile, PROFILE_SAMPLE_TYPE, &type);
}

/* A location for each frame, with one line of one function: all three under the frame's number. */
static void put_frame(struct work *w, size_t frame)
{
    struct prof_protobuf function = {0}, location = {0}, line = {0};
    int64_t id = (int64_t)frame + 1, name = profile_string(w, w->samples.frames[frame].name);
    prof_protobuf_int(&function, FUNCTION_ID, id);
    prof_protobuf_int(&function, FUNCTION_NAME, name);
    prof_protobuf_int(&function, FUNCTION_SYSTEM_NAME, name);
    prof_protobuf_int(&function, FUNCTION_FILE, profile_string(w, w->samples.frames[frame].file));
    prof_protobuf_take(&w->profile, PROFILE_FUNCTION, &function);
    prof_protobuf_int(&line, LINE_FUNCTION, id);
    if (w->samples.frames[frame].line != PROF_UNKNOWN)
        prof_protobuf_int(&line, LINE_LINE, w->samples.frames[frame].line);
    prof_protobuf_int(&location, LOCATION_ID, id);
    prof_protobuf_take(&location, LOCATION_LINE, &line);
    prof_protobuf_take(&w->profile, PROFILE_LOCATION, &location);
}

static void put_samples(struct work *w)
{
    for (size_t i = 0; i < w->samples.count; i++) {
        struct prof_protobuf sample = {0}, packed = {0};
        uint32_t frames[PROF_REPORT_STACK];
        size_t depth = prof_report_sample_stack(&w->samples, i, frames);
        for (size_t k = 0; k < depth; k++)
            prof_protobuf_varint(&packed, (uint64_t)frames[k] + 1);
        prof_protobuf_take(&sample, SAMPLE_LOCATION, &packed);
        for (size_t k = 0; k < type_count(w); k++)
            prof_protobuf_varint(
                &packed, (uint64_t)prof_report_sample_weight(&w->samples, i, types[k].weight));
        prof_protobuf_take(&sample, SAMPLE_VALUE, &packed);
        prof_protobuf_take(&w->profile, PROFILE_SAMPLE, &sample);
    }
}

static void put_comment(struct work *w, const char *comment)
{
    if (comment && *comment)
        prof_protobuf_int(&w->profile, PROFILE_COMMENT, profile_string(w, comment));
}

static void put_pprof_header(struct work *w)
{
    char trust[60];
    if (w->info->start_realtime_ns != PROF_UNKNOWN)
        prof_protobuf_int(&w->profile, PROFILE_TIME_NANOS, w->info->start_realtime_ns);
    if (w->wall_ns != PROF_UNKNOWN)
        prof_protobuf_int(&w->profile, PROFILE_DURATION_NANOS, w->wall_ns);
    put_comment(w, w->info->command);
    put_comment(w, w->filter);
    snprintf(trust, sizeof trust, "capture: %s", w->trust);
    put_comment(w, trust);
}

/* Free the result whatever the outcome. */
static enum prof_status load_profile(struct work *w, struct prof_capture *capture,
                                     const struct prof_report_options *options,
                                     unsigned string_field, struct prof_error *err)
{
    const struct prof_filter *filter = options ? options->filter : NULL;
    struct prof_trust trust;
    *w = (struct work){.string_field = string_field, .string_count = 1, .info = prof_info(capture)};
    prof_protobuf_string(&w->strings, string_field, ""); /* number 0 has to be */
    enum prof_status status = prof_report_samples(capture, options, &w->samples, err);
    status = status ?: prof_trust(capture, &trust, err);
    if (status)
        return status;
    w->trust = prof_trust_status_words(trust.status);
    prof_trust_free(&trust);
    prof_report_filter_words(capture, filter, w->filter, sizeof w->filter);
    w->wall_ns = prof_wall_ns(capture, filter);
    return PROF_OK;
}

static void free_profile(struct work *w)
{
    prof_report_samples_free(&w->samples);
    prof_names_free(&w->numbers);
    prof_protobuf_free(&w->strings);
    prof_protobuf_free(&w->profile);
    prof_array_free(&w->otlp_stacks);
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
    struct work w;
    enum prof_status status = load_profile(&w, capture, options, PROFILE_STRING, err);
    if (!status) {
        for (size_t i = 0; i < type_count(&w); i++)
            put_value_type(&w, &w.profile, i);
        prof_protobuf_int(&w.profile, PROFILE_DEFAULT_SAMPLE_TYPE,
                          profile_string(&w, "device_time"));
        put_pprof_header(&w);
        for (size_t i = 0; i < w.samples.frame_count; i++)
            put_frame(&w, i);
        put_samples(&w);
        status = save_pprof(&w, out, err);
    }
    free_profile(&w);
    return status;
}

/* ---- OTLP ------------------------------------------------------------------------------------ */

static void put_otlp_attribute(struct prof_protobuf *message, unsigned field, const char *key,
                               const char *value)
{
    struct prof_protobuf pair = {0}, any = {0};
    if (!value || !*value)
        return;
    prof_protobuf_text(&any, ANY_VALUE_STRING, value);
    prof_protobuf_string(&pair, KEY_VALUE_KEY, key);
    prof_protobuf_take(&pair, KEY_VALUE_VALUE, &any);
    prof_protobuf_take(message, field, &pair);
}

/* service.name, which backends want to have: the program without its folder; of Python the script.
 */
static void put_resource(const struct work *w, struct prof_protobuf *resource_profiles)
{
    struct prof_protobuf resource = {0};
    char name[200] = "unknown_service";
    for (const char *word = w->info->command; word && *word && *word != '-';) {
        int end = (int)strcspn(word, " "), begin = end;
        while (begin && word[begin - 1] != '/')
            begin--;
        snprintf(name, sizeof name, "%.*s", end - begin, word + begin);
        word = !strncmp(name, "python", 6) && word[end] ? word + end + 1 : NULL;
    }
    put_otlp_attribute(&resource, RESOURCE_ATTRIBUTES, "service.name", name);
    put_otlp_attribute(&resource, RESOURCE_ATTRIBUTES, "process.command_line", w->info->command);
    put_otlp_attribute(&resource, RESOURCE_ATTRIBUTES, "host.name", w->info->host);
    prof_protobuf_take(resource_profiles, RESOURCE_PROFILES_RESOURCE, &resource);
}

static void put_scope(const struct work *w, struct prof_protobuf *scope_profiles)
{
    struct prof_protobuf scope = {0};
    prof_protobuf_string(&scope, SCOPE_NAME, "perfkit");
    if (w->info->perfkit_version)
        prof_protobuf_text(&scope, SCOPE_VERSION, w->info->perfkit_version);
    put_otlp_attribute(&scope, SCOPE_ATTRIBUTES, "perfkit.trust", w->trust);
    put_otlp_attribute(&scope, SCOPE_ATTRIBUTES, "perfkit.filter", w->filter);
    prof_protobuf_take(scope_profiles, SCOPE_PROFILES_SCOPE, &scope);
}

/* Item 0 of each table stands for "none". */
static void put_zero_items(struct prof_protobuf *dictionary)
{
    static const unsigned tables[] = {DICTIONARY_MAPPING, DICTIONARY_LOCATION, DICTIONARY_FUNCTION,
                                      DICTIONARY_ATTRIBUTE, DICTIONARY_STACK};
    static const unsigned char zeros[16];
    struct prof_protobuf link = {0};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        prof_protobuf_bytes(dictionary, tables[i], zeros, 0);
    prof_protobuf_bytes(&link, OTLP_LINK_TRACE_ID, zeros, 16);
    prof_protobuf_bytes(&link, OTLP_LINK_SPAN_ID, zeros, 8);
    prof_protobuf_take(dictionary, DICTIONARY_LINK, &link);
}

/* The number of a function in its table, where frames that differ in their line share it. */
static int64_t otlp_function(struct work *w, struct prof_protobuf *dictionary,
                             struct prof_map *functions, const struct prof_report_frame *frame)
{
    int64_t name = profile_string(w, frame->name), file = profile_string(w, frame->file);
    uint64_t key = (uint64_t)name << 32 | (uint64_t)file;
    const uint64_t *known = prof_map_get(functions, key);
    if (known)
        return (int64_t)*known;
    struct prof_protobuf function = {0};
    prof_protobuf_int(&function, OTLP_FUNCTION_NAME, name);
    prof_protobuf_int(&function, OTLP_FUNCTION_FILE, file);
    prof_protobuf_take(dictionary, DICTIONARY_FUNCTION, &function);
    w->failed |= !prof_map_put(functions, key, functions->count + 1);
    return (int64_t)functions->count;
}

/* A location for each frame, under its number and one more; stacks, of which samples of the device,
 * of the processors and blocked ones may share one. All but the strings. */
static void put_dictionary(struct work *w, struct prof_protobuf *dictionary)
{
    struct prof_map functions = {0};
    struct prof_names stacks = {0};
    put_zero_items(dictionary);
    for (size_t i = 0; i < w->samples.frame_count; i++) {
        const struct prof_report_frame *frame = &w->samples.frames[i];
        struct prof_protobuf inner = {0}, outer = {0};
        prof_protobuf_int(&inner, LINE_FUNCTION, otlp_function(w, dictionary, &functions, frame));
        if (frame->line != PROF_UNKNOWN)
            prof_protobuf_int(&inner, LINE_LINE, frame->line);
        prof_protobuf_take(&outer, OTLP_LOCATION_LINES, &inner);
        prof_protobuf_take(dictionary, DICTIONARY_LOCATION, &outer);
    }
    for (size_t i = 0; i < w->samples.count; i++) {
        uint32_t frames[PROF_REPORT_STACK];
        struct prof_protobuf inner = {0}, outer = {0};
        bool fresh;
        size_t depth = prof_report_sample_stack(&w->samples, i, frames);
        for (size_t k = 0; k < depth; k++)
            prof_protobuf_varint(&inner, (uint64_t)frames[k] + 1);
        uint32_t number = prof_names_number(&stacks, (const char *)inner.data, inner.count, &fresh);
        w->failed |= number == UINT32_MAX || !prof_array_push(&w->otlp_stacks, number);
        prof_protobuf_take(&outer, OTLP_STACK_LOCATIONS, &inner);
        if (fresh)
            prof_protobuf_take(dictionary, DICTIONARY_STACK, &outer);
        prof_protobuf_free(&outer);
    }
    prof_names_free(&stacks);
    prof_map_free(&functions);
}

/* Of one value; none where no stack has any of it. */
static void put_otlp_profile(struct work *w, struct prof_protobuf *scope_profiles, size_t type)
{
    struct prof_protobuf profile = {0}, samples = {0};
    for (size_t i = 0; i < w->otlp_stacks.count; i++) {
        int64_t weight = prof_report_sample_weight(&w->samples, i, types[type].weight);
        if (weight <= 0)
            continue;
        struct prof_protobuf sample = {0}, value = {0};
        prof_protobuf_varint(&value, (uint64_t)weight);
        prof_protobuf_int(&sample, OTLP_SAMPLE_STACK, (int64_t)w->otlp_stacks.data[i] + 1);
        prof_protobuf_take(&sample, OTLP_SAMPLE_VALUES, &value);
        prof_protobuf_take(&samples, OTLP_PROFILE_SAMPLES, &sample);
    }
    if (samples.count) {
        put_value_type(w, &profile, type);
        prof_protobuf_raw(&profile, samples.data, samples.count);
        if (w->info->start_realtime_ns != PROF_UNKNOWN)
            prof_protobuf_fixed64(&profile, OTLP_PROFILE_TIME_UNIX_NANO,
                                  (uint64_t)w->info->start_realtime_ns);
        if (w->wall_ns != PROF_UNKNOWN)
            prof_protobuf_int(&profile, OTLP_PROFILE_DURATION_NANO, w->wall_ns);
        prof_protobuf_take(scope_profiles, SCOPE_PROFILES_PROFILES, &profile);
    }
    w->failed |= samples.failed;
    prof_protobuf_free(&samples);
}

/* One message, both ProfilesData and the request that a collector takes. Readers show the first
 * profile, which is therefore that of time on the device. */
enum prof_status prof_report_write_otlp(struct prof_capture *capture,
                                        const struct prof_report_options *options, FILE *out,
                                        struct prof_error *err)
{
    struct work w;
    struct prof_protobuf dictionary = {0}, resource_profiles = {0}, scope_profiles = {0};
    enum prof_status status = load_profile(&w, capture, options, DICTIONARY_STRING, err);
    if (!status) {
        put_dictionary(&w, &dictionary);
        put_resource(&w, &resource_profiles);
        put_scope(&w, &scope_profiles);
        put_otlp_profile(&w, &scope_profiles, PROF_REPORT_WEIGHT_DEVICE_NS);
        for (size_t i = 0; i < type_count(&w); i++)
            if (i != PROF_REPORT_WEIGHT_DEVICE_NS)
                put_otlp_profile(&w, &scope_profiles, i);
        prof_protobuf_take(&resource_profiles, RESOURCE_PROFILES_SCOPE_PROFILES, &scope_profiles);
        prof_protobuf_take(&w.profile, OTLP_RESOURCE_PROFILES, &resource_profiles);
        prof_protobuf_raw(&dictionary, w.strings.data, w.strings.count);
        prof_protobuf_take(&w.profile, OTLP_DICTIONARY, &dictionary);
        if (w.failed || w.strings.failed || w.profile.failed)
            status = prof_out_of_memory(err);
        else
            fwrite(w.profile.data, 1, w.profile.count, out);
    }
    free_profile(&w);
    return status ? status : prof_report_flush(out, err);
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
