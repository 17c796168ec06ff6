/* Copies of the small tables, so that views need no open file: processes, devices, streams, launch
 * configurations, and what the capture says of itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/model.h"

static char *copy_text_or_null(const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy)
        prof_note(PROF_NOMEM);
    return copy;
}

/* Texts of our own look like borrowed ones to readers. */
static void free_const_text(const char *text)
{
    free((char *)(uintptr_t)text);
}

const struct tui_stream *tui_model_stream(const struct tui_model *model, int64_t id)
{
    size_t i = prof_index_of(&model->streams, id);
    return i == SIZE_MAX ? NULL : &model->streams.data[i];
}

const struct tui_process *tui_model_process(const struct tui_model *model, int64_t id)
{
    size_t i = prof_index_of(&model->processes, id);
    return i == SIZE_MAX ? NULL : &model->processes.data[i];
}

const struct tui_config *tui_model_config(const struct tui_model *model, int64_t id)
{
    size_t i = prof_index_of(&model->configs, id);
    return i == SIZE_MAX ? NULL : &model->configs.data[i];
}

const struct tui_device *tui_model_device(const struct tui_model *model, int64_t id)
{
    size_t i = prof_index_of(&model->devices, id);
    return i == SIZE_MAX ? NULL : &model->devices.data[i];
}

static void free_info(struct prof_info *info)
{
    free_const_text(info->state_text);
    free_const_text(info->perfkit_version);
    free_const_text(info->command);
    free_const_text(info->host);
    free_const_text(info->kernel);
    free_const_text(info->cpu);
    free_const_text(info->trace);
    free_const_text(info->kernel_filter);
    free_const_text(info->spool);
}

static void take_info(struct tui_model *model)
{
    const struct prof_info *given = prof_info(model->capture);
    struct prof_info *info = &model->info;
    if (model->own_info)
        free_info(info);
    *info = *given;
    info->path = model->path;
    info->directory = info->boot_id = NULL;
    info->state_text = copy_text_or_null(given->state_text);
    info->perfkit_version = copy_text_or_null(given->perfkit_version);
    info->command = copy_text_or_null(given->command);
    info->host = copy_text_or_null(given->host);
    info->kernel = copy_text_or_null(given->kernel);
    info->cpu = copy_text_or_null(given->cpu);
    info->trace = copy_text_or_null(given->trace);
    info->kernel_filter = copy_text_or_null(given->kernel_filter);
    info->spool = copy_text_or_null(given->spool);
    model->own_info = true;
}

/* What was summed for a row stays with its id. The lists only grow, at their end. */
static bool take_streams(struct tui_model *model)
{
    const struct prof_stream *list;
    size_t count = prof_streams(model->capture, &list);
    for (size_t i = 0; i < count; i++) {
        if (i == model->streams.count) {
            struct tui_stream *fresh = prof_array_add(&model->streams);
            if (!fresh)
                return false;
            *fresh = (struct tui_stream){.last_second = PROF_UNKNOWN};
        }
        struct tui_stream *stream = &model->streams.data[i];
        free_const_text(stream->values.name);
        stream->values = list[i];
        stream->values.name = copy_text_or_null(list[i].name);
        stream->values.clock = NULL;
        stream->values.api = !list[i].api                     ? NULL
                             : !strcmp(list[i].api, "cuda")   ? "cuda"
                             : !strcmp(list[i].api, "opencl") ? "opencl"
                                                              : NULL;
    }
    return true;
}

static bool take_processes(struct tui_model *model)
{
    const struct prof_process *list;
    size_t count = prof_processes(model->capture, &list);
    for (size_t i = 0; i < count; i++) {
        if (i == model->processes.count) {
            struct tui_process *fresh = prof_array_add(&model->processes);
            if (!fresh)
                return false;
            *fresh = (struct tui_process){0};
        }
        struct prof_process *values = &model->processes.data[i].values;
        free_const_text(values->command);
        free_const_text(values->end_reason);
        free_const_text(values->host);
        *values = list[i];
        values->birth = NULL;
        values->command = copy_text_or_null(list[i].command);
        values->end_reason = copy_text_or_null(list[i].end_reason);
        values->host = copy_text_or_null(list[i].host);
    }
    return true;
}

static void free_device(struct prof_device *values)
{
    free_const_text(values->api);
    free_const_text(values->name);
    free_const_text(values->vendor);
    free_const_text(values->driver);
    free_const_text(values->uuid);
    free_const_text(values->kind);
    free_const_text(values->label);
    free_const_text(values->title);
    free_const_text(values->full_name);
}

static bool take_devices(struct tui_model *model)
{
    const struct prof_device *list;
    size_t count = prof_devices(model->capture, &list);
    for (size_t i = 0; i < count; i++) {
        if (i == model->devices.count) {
            struct tui_device *fresh = prof_array_add(&model->devices);
            if (!fresh)
                return false;
            *fresh = (struct tui_device){0};
        }
        struct prof_device *values = &model->devices.data[i].values;
        free_device(values);
        *values = list[i];
        values->api = copy_text_or_null(list[i].api);
        values->name = copy_text_or_null(list[i].name);
        values->vendor = copy_text_or_null(list[i].vendor);
        values->driver = copy_text_or_null(list[i].driver);
        values->uuid = copy_text_or_null(list[i].uuid);
        values->kind = copy_text_or_null(list[i].kind);
        values->label = copy_text_or_null(list[i].label);
        values->title = copy_text_or_null(list[i].title);
        values->full_name = copy_text_or_null(list[i].full_name);
    }
    return true;
}

/* Configurations never change once they are defined, until there are so many that the last one
 * stands for the rest. */
static bool take_configs(struct tui_model *model)
{
    const struct prof_config *list;
    size_t count = prof_configs(model->capture, &list);
    if (count && list[count - 1].id == PROF_OTHER_CONFIGS && model->configs.count != count)
        model->configs.count = 0;
    for (size_t i = model->configs.count; i < count; i++) {
        struct tui_config *fresh = prof_array_add(&model->configs);
        if (!fresh)
            return false;
        *fresh = (struct tui_config){.values = list[i]};
        fresh->values.name = fresh->values.full_name = NULL;
    }
    return true;
}

enum prof_status tui_lookups_take(struct tui_model *model, struct prof_error *err)
{
    take_info(model);
    return take_streams(model) && take_processes(model) && take_devices(model) &&
                   take_configs(model)
               ? PROF_OK
               : prof_fail(err, PROF_NOMEM, "out of memory");
}

void tui_lookups_free(struct tui_model *model)
{
    if (model->own_info)
        free_info(&model->info);
    for (size_t i = 0; i < model->streams.count; i++)
        free_const_text(model->streams.data[i].values.name);
    for (size_t i = 0; i < model->processes.count; i++) {
        free_const_text(model->processes.data[i].values.command);
        free_const_text(model->processes.data[i].values.end_reason);
        free_const_text(model->processes.data[i].values.host);
    }
    for (size_t i = 0; i < model->devices.count; i++)
        free_device(&model->devices.data[i].values);
    prof_array_free(&model->streams);
    prof_array_free(&model->processes);
    prof_array_free(&model->devices);
    prof_array_free(&model->configs);
}
