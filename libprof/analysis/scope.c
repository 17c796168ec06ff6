/* Filters; see scope.h. Conditions are tested in C on the few columns every query reads anyway:
 * event tables carry no index, so SQL could not skip rows either. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/scope.h"

enum prof_status prof_scope_open(struct prof_scope *scope, struct prof_capture *capture,
                                 const struct prof_filter *filter, struct prof_error *err)
{
    *scope = (struct prof_scope){.capture = capture, .end_ns = INT64_MAX};
    if (!filter)
        return PROF_OK;
    scope->filter = *filter;
    scope->begin_ns = filter->begin_ns;
    if (filter->end_ns)
        scope->end_ns = filter->end_ns;
    if (scope->end_ns < scope->begin_ns)
        return prof_fail(err, PROF_INVALID, "the time range ends before it begins");
    scope->by_time = filter->begin_ns || filter->end_ns;
    scope->by_device = filter->device || filter->stream;
    scope->by_place = scope->by_device || filter->process || filter->thread;
    if (!filter->kernel)
        return PROF_OK;
    scope->configs = calloc(capture->configs.count + 1, sizeof *scope->configs);
    if (!scope->configs)
        return prof_out_of_memory(err);
    for (size_t i = 0; i < capture->configs.count; i++) {
        const char *name = capture->configs.data[i].name;
        scope->configs[i] = name && strstr(name, filter->kernel);
    }
    return PROF_OK;
}

void prof_scope_close(struct prof_scope *scope)
{
    free(scope->configs);
    scope->configs = NULL;
}

bool prof_scope_place_slow(const struct prof_scope *scope, int64_t stream, int64_t thread,
                           int64_t process, int64_t device)
{
    const struct prof_filter *f = &scope->filter;
    const struct prof_stream *s = prof_stream(scope->capture, stream);
    const struct prof_thread *t = prof_thread(scope->capture, thread);
    if (f->stream && stream != f->stream)
        return false;
    if (f->thread && thread != f->thread)
        return false;
    if (f->process) {
        int64_t its = s ? s->process : t ? t->process : process;
        if (its != f->process)
            return false;
    }
    if (f->device) {
        const struct prof_device *its = prof_device(scope->capture, s ? s->device : device);
        const struct prof_device *wanted = prof_device(scope->capture, f->device);
        if (!its || !wanted || its->physical != wanted->physical)
            return false;
    }
    return true;
}

bool prof_scope_config(const struct prof_scope *scope, int64_t config)
{
    if (!scope->configs)
        return true;
    size_t i = prof_index_of(&scope->capture->configs, config);
    return i != SIZE_MAX && scope->configs[i];
}
