/* Copies and fills, row by row as they come: there is no summary of them in the file. Grouped by
 * direction and memory kinds as `perfkit report` does, with sizes in a few classes. */
#include <math.h>
#include <string.h>

#include "libprof/base/clock.h"
#include "libprof/base/saturate.h"
#include "tui/model.h"

#define CHUNK 4096

struct reading {
    struct tui_model *model;
    int64_t last;
    size_t rows;
};

static uint32_t copies_group(struct tui_model *model, const struct prof_live_copy *copy)
{
    for (size_t i = 0; i < model->copies.count; i++) {
        const struct tui_copies *g = &model->copies.data[i];
        if (g->kind == copy->kind && g->source_kind == copy->source_kind &&
            g->target_kind == copy->target_kind)
            return (uint32_t)i;
    }
    struct tui_copies *fresh = prof_array_add(&model->copies);
    if (!fresh)
        return UINT32_MAX;
    *fresh = (struct tui_copies){.kind = copy->kind,
                                 .source_kind = copy->source_kind,
                                 .target_kind = copy->target_kind,
                                 .ceiling = NAN};
    return (uint32_t)(model->copies.count - 1);
}

static unsigned size_class(int64_t bytes)
{
    unsigned class = 0;
    for (int64_t limit = 4096; bytes >= limit && class + 1 < TUI_SIZE_CLASSES; limit *= 16)
        class ++;
    return class;
}

/* Rows come nearly in order of time: what a second of a stream did is among the last entries. */
static struct tui_copy_second *second_of(struct tui_model *model, int64_t second, int64_t stream,
                                         uint32_t group)
{
    size_t count = model->copy_seconds.count, from = count > 64 ? count - 64 : 0;
    for (size_t i = count; i > from; i--) {
        struct tui_copy_second *s = &model->copy_seconds.data[i - 1];
        if (s->second == second && s->stream == stream && s->group == group)
            return s;
    }
    struct tui_copy_second *fresh = prof_array_add(&model->copy_seconds);
    if (fresh)
        *fresh = (struct tui_copy_second){.second = second, .stream = stream, .group = group};
    return fresh;
}

static bool add_live_copy(void *context, const struct prof_live_copy *copy)
{
    struct reading *reading = context;
    struct tui_model *model = reading->model;
    reading->last = copy->id;
    reading->rows++;
    uint32_t number = copies_group(model, copy);
    if (number == UINT32_MAX)
        return false;
    struct tui_copies *group = &model->copies.data[number];
    int64_t bytes = copy->bytes == PROF_UNKNOWN ? 0 : copy->bytes;
    group->bytes = prof_add(group->bytes, bytes);
    if (copy->start_ns == PROF_UNKNOWN || copy->duration_ns == PROF_UNKNOWN) {
        group->unfinished++;
        return true;
    }
    bool rated = copy->bytes != PROF_UNKNOWN && copy->duration_ns > 0 &&
                 prof_copy_moves(model->capture, copy->kind, copy->stream);
    group->count++;
    group->ns = prof_add(group->ns, copy->duration_ns);
    if (copy->bytes != PROF_UNKNOWN)
        group->classes[size_class(bytes)]++;
    if (rated) {
        group->rated_bytes = prof_add(group->rated_bytes, bytes);
        group->rated_ns = prof_add(group->rated_ns, copy->duration_ns);
    }
    struct tui_stream *stream = (struct tui_stream *)tui_model_stream(model, copy->stream);
    if (stream) {
        stream->copies++;
        stream->copy_ns = prof_add(stream->copy_ns, copy->duration_ns);
    }
    struct tui_process *process =
        stream ? (struct tui_process *)tui_model_process(model, stream->values.process) : NULL;
    if (process && copy->kind != PROF_COPY_MEMSET)
        process->copy_bytes = prof_add(process->copy_bytes, bytes);
    int64_t second = copy->start_ns / 1000000000;
    if (second < tui_last_second(model) - TUI_RING_SECONDS)
        return true;
    struct tui_copy_second *s = second_of(model, second, copy->stream, number);
    if (!s)
        return false;
    s->count++;
    s->bytes = prof_add(s->bytes, bytes);
    s->ns = prof_add(s->ns, copy->duration_ns);
    s->rated_bytes = prof_add(s->rated_bytes, rated ? bytes : 0);
    s->rated_ns = prof_add(s->rated_ns, rated ? copy->duration_ns : 0);
    return true;
}

static bool read_live_copies(struct tui_model *model, bool fills, int64_t *mark, int64_t deadline,
                             enum prof_status *status, struct prof_error *err)
{
    struct reading reading = {.model = model};
    do {
        reading.rows = 0;
        reading.last = *mark;
        *status =
            prof_live_copies(model->capture, fills, *mark, CHUNK, add_live_copy, &reading, err);
        *mark = reading.last;
    } while (!*status && reading.rows == CHUNK && (int64_t)prof_now_ns() < deadline);
    return reading.rows < CHUNK;
}

static void drop_old_copy_seconds(struct tui_model *model)
{
    int64_t oldest = tui_last_second(model) - TUI_RING_SECONDS;
    size_t kept = 0;
    for (size_t i = 0; i < model->copy_seconds.count; i++) {
        if (model->copy_seconds.data[i].second >= oldest)
            model->copy_seconds.data[kept++] = model->copy_seconds.data[i];
    }
    model->copy_seconds.count = kept;
}

/* What the links can do at best: measured on this machine, else by attributes. */
static double ceiling_of(const struct prof_ceilings *ceilings, const struct tui_copies *group)
{
    bool pageable = group->source_kind == 1 || group->target_kind == 1;
    enum prof_ceiling_kind kind = PROF_CEILINGS;
    if (group->kind == 1)
        kind = pageable ? PROF_CEILING_HTOD_PAGEABLE : PROF_CEILING_HTOD_PINNED;
    else if (group->kind == 2)
        kind = pageable ? PROF_CEILING_DTOH_PAGEABLE : PROF_CEILING_DTOH_PINNED;
    double best = NAN;
    for (size_t i = 0; kind != PROF_CEILINGS && i < ceilings->count; i++) {
        if (ceilings->rows[i].kind == kind && !(ceilings->rows[i].value <= best))
            best = ceilings->rows[i].value;
    }
    return best;
}

static void find_ceilings(struct tui_model *model)
{
    struct prof_ceilings ceilings;
    bool wanted = false;
    for (size_t i = 0; i < model->copies.count; i++)
        wanted |= isnan(model->copies.data[i].ceiling);
    if (!wanted || prof_ceilings(model->capture, &ceilings, NULL))
        return;
    for (size_t i = 0; i < model->copies.count; i++)
        model->copies.data[i].ceiling = ceiling_of(&ceilings, &model->copies.data[i]);
    prof_ceilings_free(&ceilings);
}

bool tui_copies_feed(struct tui_model *model, int64_t deadline, enum prof_status *status,
                     struct prof_error *err)
{
    bool over = read_live_copies(model, false, &model->marks.copies, deadline, status, err);
    if (!*status)
        over &= read_live_copies(model, true, &model->marks.fills, deadline, status, err);
    drop_old_copy_seconds(model);
    if (!*status)
        find_ceilings(model);
    return over;
}

static void add_copy_second(struct tui_model *model, const struct tui_copy_second *s)
{
    struct tui_copies *group = &model->copies.data[s->group];
    struct tui_stream *stream = (struct tui_stream *)tui_model_stream(model, s->stream);
    struct tui_process *process =
        stream ? (struct tui_process *)tui_model_process(model, stream->values.process) : NULL;
    group->window_count = prof_add(group->window_count, s->count);
    group->window_bytes = prof_add(group->window_bytes, s->bytes);
    group->window_ns = prof_add(group->window_ns, s->ns);
    group->window_rated_bytes = prof_add(group->window_rated_bytes, s->rated_bytes);
    group->window_rated_ns = prof_add(group->window_rated_ns, s->rated_ns);
    if (stream) {
        stream->window_copies = prof_add(stream->window_copies, s->count);
        stream->window_copy_ns = prof_add(stream->window_copy_ns, s->ns);
    }
    if (process && group->kind != PROF_COPY_MEMSET)
        process->window_copy_bytes = prof_add(process->window_copy_bytes, s->bytes);
}

static void add_copy_sparkline(struct tui_model *model, const struct tui_copy_second *s)
{
    struct tui_stream *stream = (struct tui_stream *)tui_model_stream(model, s->stream);
    int64_t age = tui_last_second(model) - s->second;
    if (!stream)
        return;
    if (stream->last_second == PROF_UNKNOWN || s->second > stream->last_second)
        stream->last_second = s->second;
    if (age < 0 || age >= TUI_SPARK)
        return;
    uint32_t *slot = &stream->spark_us[TUI_SPARK - 1 - age];
    int64_t sum = (int64_t)*slot + s->ns / 1000;
    *slot = sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
}

static void sum_copies_of_run(struct tui_model *model)
{
    for (size_t i = 0; i < model->copies.count; i++) {
        struct tui_copies *g = &model->copies.data[i];
        g->window_count = g->count;
        g->window_bytes = g->bytes;
        g->window_ns = g->ns;
        g->window_rated_bytes = g->rated_bytes;
        g->window_rated_ns = g->rated_ns;
    }
    for (size_t i = 0; i < model->streams.count; i++) {
        model->streams.data[i].window_copies = model->streams.data[i].copies;
        model->streams.data[i].window_copy_ns = model->streams.data[i].copy_ns;
    }
    for (size_t i = 0; i < model->processes.count; i++)
        model->processes.data[i].window_copy_bytes = model->processes.data[i].copy_bytes;
}

void tui_copies_window(struct tui_model *model)
{
    model->moved = (struct prof_memory_operations){0};
    for (size_t i = 0; i < model->copies.count; i++) {
        struct tui_copies *g = &model->copies.data[i];
        g->window_count = g->window_bytes = g->window_ns = 0;
        g->window_rated_bytes = g->window_rated_ns = 0;
        prof_memory_operations_add(&model->moved, g->kind, g->count + g->unfinished, g->bytes,
                                   g->ns);
    }
    for (size_t i = 0; i < model->streams.count; i++)
        model->streams.data[i].window_copies = model->streams.data[i].window_copy_ns = 0;
    for (size_t i = 0; i < model->processes.count; i++)
        model->processes.data[i].window_copy_bytes = 0;
    for (size_t i = 0; i < model->copy_seconds.count; i++) {
        const struct tui_copy_second *s = &model->copy_seconds.data[i];
        add_copy_sparkline(model, s);
        if (model->window_s && s->second >= tui_first_second(model))
            add_copy_second(model, s);
    }
    if (!model->window_s)
        sum_copies_of_run(model);
}
