/* From what a user calls things (a pid, "GPU 0", stream 7, an NVTX range) to the ids of one
 * capture. A name that fits nothing is an error that lists what there is: an empty report would
 * look like a capture without work. */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/filter.h"
#include "libprof/base/array.h"
#include "libprof/base/format.h"
#include "libprof/include/prof_iterations.h"

/* A list for a message, cut when it grows long. */
struct list {
    char text[240];
    bool cut;
};

static void list_add(struct list *list, const char *item)
{
    bool cut = list->cut || strlen(list->text) + strlen(item) + 8 > sizeof list->text;
    if (!list->cut)
        prof_append(list->text, sizeof list->text, "%s%s", *list->text ? ", " : "",
                    cut ? "..." : item);
    list->cut = cut;
}

static const char *list_text(const struct list *list)
{
    return *list->text ? list->text : "none";
}

/* The whole of `text` as a number, or PROF_UNKNOWN. */
static int64_t parse_whole_number(const char *text)
{
    char *end;
    if (*text < '0' || *text > '9')
        return PROF_UNKNOWN;
    unsigned long long value = strtoull(text, &end, 0);
    return *end || value > INT64_MAX ? PROF_UNKNOWN : (int64_t)value;
}

/* ---- process --------------------------------------------------------------------------------- */

static bool same_text_or_null(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static enum prof_status find_filter_process(struct prof_capture *capture, const char *text,
                                            struct prof_filter *filter, struct prof_error *err)
{
    const struct prof_process *all, *found = NULL;
    struct list list = {0};
    size_t count = prof_processes(capture, &all);
    int64_t pid = parse_whole_number(text);
    for (size_t i = 0; i < count; i++) {
        char item[32];
        snprintf(item, sizeof item, "%lld", (long long)all[i].pid);
        if (all[i].has_events)
            list_add(&list, item);
        if (pid == PROF_UNKNOWN || all[i].pid != pid)
            continue;
        if (found && !same_text_or_null(found->host, all[i].host))
            return prof_fail(err, PROF_INVALID, "--process %s: processes of several hosts have it",
                             text);
        if (!found || all[i].has_events)
            found = &all[i];
    }
    if (!found)
        return prof_fail(err, PROF_NOTFOUND,
                         "--process %s: no such process in this capture; those with events: %s",
                         text, list_text(&list));
    filter->process = found->id;
    return PROF_OK;
}

/* ---- device ---------------------------------------------------------------------------------- */

/* An exact name of a device, or 2 for a part of its name, 0 for neither. */
static int device_match(const struct prof_device *device, const char *text)
{
    int64_t ordinal = parse_whole_number(text);
    if (ordinal != PROF_UNKNOWN)
        return device->ordinal == ordinal;
    const char *colon = strchr(text, ':');
    if (colon && device->api && strlen(device->api) == (size_t)(colon - text) &&
        !strncmp(device->api, text, (size_t)(colon - text)) &&
        parse_whole_number(colon + 1) != PROF_UNKNOWN)
        return device->ordinal == parse_whole_number(colon + 1);
    if ((device->uuid && !strcmp(device->uuid, text)) || !strcmp(device->title, text))
        return 1;
    return *text && device->name && strstr(device->name, text) ? 2 : 0;
}

static void list_device(struct list *list, const struct prof_device *device)
{
    char item[256];
    snprintf(item, sizeof item, "'%s' (%s:%lld, %.60s%s%.48s)", device->title,
             device->api ? device->api : "?",
             device->ordinal == PROF_UNKNOWN ? -1ll : (long long)device->ordinal,
             device->name ? device->name : "?", device->uuid ? ", " : "",
             device->uuid ? device->uuid : "");
    list_add(list, item);
}

static enum prof_status find_device(struct prof_capture *capture, const char *text,
                                    struct prof_filter *filter, struct prof_error *err)
{
    const struct prof_device *all;
    struct list list = {0}, fitting = {0};
    size_t count = prof_devices(capture, &all), fits = 0;
    for (size_t i = 0; i < count; i++) {
        const struct prof_device *d = &all[i];
        const struct prof_process *wanted = prof_process(capture, filter->process);
        const struct prof_process *its = prof_process(capture, d->process);
        if (d->id == d->physical)
            list_device(&list, d);
        /* Each process counts devices for itself: 0 of one may be 3 of another. */
        if ((wanted && its && its->pid != wanted->pid) || !device_match(d, text))
            continue;
        const struct prof_device *before = prof_device(capture, filter->device);
        if (before && before->physical == d->physical)
            continue;
        list_device(&fitting, d);
        filter->device = d->id;
        fits++;
    }
    if (fits == 1)
        return PROF_OK;
    filter->device = 0;
    if (fits)
        return prof_fail(err, PROF_INVALID, "--device %s: fits several: %s", text,
                         list_text(&fitting));
    return prof_fail(err, PROF_NOTFOUND, "--device %s: no such device in this capture; it has: %s",
                     text, list_text(&list));
}

/* ---- streams --------------------------------------------------------------------------------- */

static bool stream_candidate(const struct prof_capture *capture, const struct prof_stream *stream,
                             const struct prof_filter *filter)
{
    const struct prof_process *wanted = prof_process(capture, filter->process);
    const struct prof_process *its = prof_process(capture, stream->process);
    const struct prof_device *device = prof_device(capture, filter->device);
    const struct prof_device *of = prof_device(capture, stream->device);
    return (!wanted || (its && its->pid == wanted->pid)) &&
           (!device || (of && of->physical == device->physical));
}

static enum prof_status find_streams(struct prof_capture *capture, const char *text,
                                     struct cli_filter *out, struct prof_error *err)
{
    const struct prof_stream *all;
    struct list list = {0};
    size_t count = prof_streams(capture, &all);
    int64_t native = parse_whole_number(text);
    out->streams = calloc(count + 1, sizeof *out->streams);
    if (!out->streams)
        return prof_out_of_memory(err);
    for (size_t i = 0; i < count; i++) {
        char item[96];
        if (!stream_candidate(capture, &all[i], &out->filter))
            continue;
        snprintf(item, sizeof item, "%lld%s%.60s%s", (long long)all[i].native,
                 all[i].name ? " (" : "", all[i].name ? all[i].name : "", all[i].name ? ")" : "");
        list_add(&list, item);
        if ((native != PROF_UNKNOWN && all[i].native == native) ||
            (all[i].name && !strcmp(all[i].name, text)))
            out->streams[out->filter.stream_count++] = all[i].id;
    }
    out->filter.streams = out->streams;
    if (!out->filter.stream_count)
        return prof_fail(err, PROF_NOTFOUND, "--stream %s: no such stream; there are: %s", text,
                         list_text(&list));
    return PROF_OK;
}

/* ---- NVTX ranges and kernels ----------------------------------------------------------------- */

/* NAME[@DOMAIN], split at the first @ without a backslash before it. */
static enum prof_status split_range_filter(const char *text, struct cli_filter *out,
                                           struct prof_error *err)
{
    char *at = out->range = malloc(strlen(text) + 1), *domain = NULL;
    if (!at)
        return prof_out_of_memory(err);
    for (; *text; text++) {
        if (*text == '\\' && (text[1] == '@' || text[1] == '\\'))
            *at++ = *++text;
        else if (*text == '@' && !domain)
            *at++ = 0, domain = at;
        else
            *at++ = *text;
    }
    *at = 0;
    out->filter.range = out->range;
    out->filter.range_domain = domain;
    return PROF_OK;
}

/* Of a pattern that is known to be good. */
static bool any_kernel(const struct prof_capture *capture, const char *text)
{
    const struct prof_config *all;
    size_t count = prof_configs(capture, &all);
    bool found = prof_other_kernels(capture) > 0; /* maybe among them */
    regex_t pattern;
    if (regcomp(&pattern, text, REG_EXTENDED | REG_NOSUB))
        return false;
    for (size_t i = 0; !found && i < count; i++)
        found = all[i].name && !regexec(&pattern, all[i].name, 0, NULL, 0);
    regfree(&pattern);
    return found;
}

/* Whether there is such a range; a bad kernel pattern is found here too, before any output. */
static enum prof_status check_filter_matches(struct prof_capture *capture,
                                             const struct prof_filter *filter,
                                             struct prof_error *err)
{
    struct prof_filter only = {.range = filter->range,
                               .range_domain = filter->range_domain,
                               .kernel_pattern = filter->kernel_pattern};
    struct prof_events *events;
    struct prof_event event;
    PROF_TRY(prof_events_open(capture, &only, PROF_EVENTS(PROF_EVENT_RANGE), &events, err));
    bool found = prof_events_next(events, &event);
    enum prof_status status = prof_events_close(events, err);
    if (!status && filter->range && !found)
        return prof_fail(err, PROF_NOTFOUND,
                         "--nvtx: no NVTX range of that name%s in this capture: `perfkit report "
                         "--stats nvtx_sum` lists them",
                         filter->range_domain ? " and domain" : "");
    if (!status && filter->kernel_pattern && !any_kernel(capture, filter->kernel_pattern))
        return prof_fail(err, PROF_NOTFOUND,
                         "--kernel: no kernel of this capture matches '%.80s': `perfkit report "
                         "--stats cuda_gpu_kern_sum` lists them",
                         filter->kernel_pattern);
    return status;
}

static enum prof_status set_filter_times(const struct prof_capture *capture,
                                         const struct cli_filter_options *options,
                                         struct prof_filter *filter, struct prof_error *err)
{
    uint64_t from = options->from == CLI_NO_TIME ? 0 : options->from;
    int64_t length = prof_info(capture)->duration_ns; /* not known while it is recorded */
    if (from >= options->to || from > INT64_MAX)
        return prof_fail(err, PROF_INVALID, "--to must be later than --from");
    if (length > 0 && from > (uint64_t)length)
        return prof_fail(err, PROF_NOTFOUND, "--from %s: the capture is over after %s",
                         prof_duration_ns((int64_t)from).text, prof_duration_ns(length).text);
    filter->begin_ns = (int64_t)from;
    if (options->to != CLI_NO_TIME)
        filter->end_ns = options->to > INT64_MAX ? INT64_MAX : (int64_t)options->to;
    return PROF_OK;
}

PROF_ORDER(slowest_iteration_first, struct prof_iteration_row, PROF_ASCENDING(warm_up),
           PROF_DESCENDING(duration_ns), PROF_ASCENDING(number))

static int64_t count_after_warm_up(const struct prof_iteration_list *list)
{
    int64_t count = 0;
    for (size_t i = 0; i < list->count; i++)
        count += !list->rows[i].warm_up;
    return count;
}

/* The time of one iteration instead of --from and --to. */
static enum prof_status set_filter_iteration(struct prof_capture *capture,
                                             const struct cli_filter_options *options,
                                             struct prof_filter *filter, struct prof_error *err)
{
    bool slowest = options->slowest != 0;
    size_t wanted = slowest ? options->slowest : options->number;
    const struct prof_filter all = {.process = filter->process,
                                    .device = filter->device,
                                    .iteration = filter->iteration,
                                    .skips = filter->skips,
                                    .skip = filter->skip};
    struct prof_iteration_list list;
    if (options->from != CLI_NO_TIME || options->to != CLI_NO_TIME ||
        (options->number && options->slowest))
        return prof_fail(err, PROF_INVALID,
                         "--iteration-number, --slowest, and --from with --to: give one of them");
    enum prof_status status = prof_iteration_list(capture, &all, NULL, &list, err);
    if (status)
        return status;
    if (slowest && list.count)
        qsort(list.rows, list.count, sizeof *list.rows, slowest_iteration_first);
    if (list.why_none)
        status = prof_fail(err, PROF_NOTFOUND, "%s: not available: %s",
                           slowest ? "--slowest" : "--iteration-number", list.why_none);
    else if (!slowest && wanted > list.count)
        status =
            prof_fail(err, PROF_NOTFOUND, "there is no iteration %zu: they are numbered 1 to %zu",
                      wanted, list.count);
    else if (slowest && (wanted > list.count || list.rows[wanted - 1].warm_up))
        status = prof_fail(err, PROF_NOTFOUND, "--slowest %zu: there are %s", wanted,
                           prof_counted(count_after_warm_up(&list), "iteration after warm-up",
                                        "iterations after warm-up")
                               .text);
    if (!status) {
        const struct prof_iteration_row *row = &list.rows[wanted - 1];
        filter->begin_ns = row->start_ns;
        filter->end_ns = row->start_ns + row->duration_ns;
    }
    prof_iteration_list_free(&list);
    return status;
}

bool cli_filter_any(const struct cli_filter_options *options)
{
    return options->from != CLI_NO_TIME || options->to != CLI_NO_TIME || options->nvtx ||
           options->process || options->device || options->stream || options->kernel ||
           options->iteration || options->skip != CLI_NO_SKIP || options->number ||
           options->slowest;
}

enum prof_status cli_filter_find(struct prof_capture *capture,
                                 const struct cli_filter_options *options, struct cli_filter *out,
                                 struct prof_error *err)
{
    *out = (struct cli_filter){0};
    out->any = cli_filter_any(options);
    enum prof_status status = set_filter_times(capture, options, &out->filter, err);
    if (!status && options->process)
        status = find_filter_process(capture, options->process, &out->filter, err);
    if (!status && options->device)
        status = find_device(capture, options->device, &out->filter, err);
    if (!status && options->stream)
        status = find_streams(capture, options->stream, out, err);
    if (!status && options->nvtx)
        status = split_range_filter(options->nvtx, out, err);
    out->filter.kernel_pattern = options->kernel;
    out->filter.iteration = options->iteration;
    out->filter.skips = options->skip != CLI_NO_SKIP;
    out->filter.skip = out->filter.skips ? (int64_t)options->skip : 0;
    if (!status && (options->nvtx || options->kernel))
        status = check_filter_matches(capture, &out->filter, err);
    if (!status && (options->number || options->slowest))
        status = set_filter_iteration(capture, options, &out->filter, err);
    else if (!status && (options->iteration || options->skip != CLI_NO_SKIP))
        status = prof_iterations_check(capture, &out->filter, err);
    return status;
}

void cli_filter_free(struct cli_filter *filter)
{
    free(filter->streams);
    free(filter->range);
    *filter = (struct cli_filter){0};
}
