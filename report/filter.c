/* Says what a report was restricted to; see filter.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "libprof/base/format.h"
#include "report/data.h"
#include "report/filter.h"
#include "libprof/base/utf8.h"

#define NAME_CELLS 80

struct words {
    char *out;
    size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void say(struct words *words, const char *format, ...)
{
    va_list arguments;
    if (words->used) {
        int comma = snprintf(words->out + words->used, words->size - words->used, ", ");
        words->used += (size_t)comma;
    }
    if (words->used >= words->size)
        return;
    va_start(arguments, format);
    int wrote = vsnprintf(words->out + words->used, words->size - words->used, format, arguments);
    va_end(arguments);
    words->used += wrote > 0 ? (size_t)wrote : 0;
    if (words->used >= words->size)
        words->used = words->size - 1;
}

static void append_named_filter(struct words *words, const char *format, const char *name)
{
    char *clean = prof_report_cut(name, NAME_CELLS);
    say(words, format, clean ? clean : "");
    free(clean);
}

static void append_stream_filter(struct words *words, const struct prof_capture *capture,
                                 int64_t id)
{
    const struct prof_stream *stream = prof_stream(capture, id);
    if (stream && stream->native != PROF_UNKNOWN)
        say(words, "stream %lld", (long long)stream->native);
    else
        say(words, "stream n/a");
}

static void append_device_filter(struct words *words, const struct prof_capture *capture,
                                 int64_t id)
{
    const struct prof_device *device = prof_device(capture, id);
    const char *label = prof_report_device_label(device);
    say(words, "%s", label);
    if (device && device->name)
        append_named_filter(words, "%s", device->name);
}

void prof_report_filter_words(const struct prof_capture *capture, const struct prof_filter *filter,
                              char *out, size_t size)
{
    struct words words = {out, size, 0};
    out[0] = 0;
    if (!filter)
        return;
    if (filter->begin_ns || filter->end_ns)
        say(&words, "from %s to %s", prof_duration_ns(filter->begin_ns).text,
            filter->end_ns ? prof_duration_ns(filter->end_ns).text : "the end");
    if (filter->process) {
        const struct prof_process *process = prof_process(capture, filter->process);
        say(&words, "process %lld", process ? (long long)process->pid : 0);
    }
    if (filter->device)
        append_device_filter(&words, capture, filter->device);
    if (filter->stream)
        append_stream_filter(&words, capture, filter->stream);
    for (size_t i = 0; i < filter->stream_count && i < 3; i++)
        append_stream_filter(&words, capture, filter->streams[i]);
    if (filter->stream_count > 3)
        say(&words, "and %zu more streams", filter->stream_count - 3);
    if (filter->thread) {
        const struct prof_thread *thread = prof_thread(capture, filter->thread);
        say(&words, "thread %lld", thread ? (long long)thread->tid : 0);
    }
    if (filter->kernel)
        append_named_filter(&words, "kernels with \"%s\"", filter->kernel);
    if (filter->kernel_pattern)
        append_named_filter(&words, "kernels matching \"%s\"", filter->kernel_pattern);
    if (filter->range)
        append_named_filter(&words, "inside NVTX range \"%s\"", filter->range);
    if (filter->range_domain)
        append_named_filter(&words, "of domain \"%s\"", filter->range_domain);
}

static void put_id(struct prof_json *json, const char *key, int64_t id)
{
    prof_json_known(json, key, id ? id : PROF_UNKNOWN);
}

void prof_report_json_filter(struct prof_json *json, const struct prof_filter *filter)
{
    static const struct prof_filter all;
    if (!filter)
        filter = &all;
    prof_json_object(json, "filter");
    prof_json_int(json, "begin_ns", filter->begin_ns);
    put_id(json, "end_ns", filter->end_ns);
    put_id(json, "process", filter->process);
    put_id(json, "device", filter->device);
    put_id(json, "stream", filter->stream);
    put_id(json, "thread", filter->thread);
    prof_json_string(json, "kernel", filter->kernel);
    prof_json_string(json, "kernel_pattern", filter->kernel_pattern);
    prof_json_string(json, "range", filter->range);
    prof_json_string(json, "range_domain", filter->range_domain);
    prof_json_array(json, "streams");
    for (size_t i = 0; i < filter->stream_count; i++)
        prof_json_int(json, NULL, filter->streams[i]);
    prof_json_end(json);
    prof_json_end(json);
}
