/* What the model adds up from single events: memcpys, memsets and live memory. */
#include <math.h>

#include "libprof/base/clock.h"
#include "libprof/base/saturate.h"
#include "tui/model.h"

/* ---- memcpys and memsets --------------------------------------------------------------------- */

/* Memcpys and memsets, row by row as they come: there is no summary of them in the file. Grouped by
 * direction and memory kinds as `perfkit report` does, with sizes in a few classes. */

#define COPY_CHUNK 4096

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

/* Rows come nearly in order of time: what a second of a stream did is among the last entries.
 * False: out of memory. */
static bool add_to_second(struct tui_model *model, struct tui_event_seconds *seconds,
                          const struct tui_event_second *what)
{
    size_t count = seconds->count, from = count > 64 ? count - 64 : 0;
    if (what->second < tui_last_second(model) - TUI_RING_SECONDS)
        return true;
    for (size_t i = count; i > from; i--) {
        struct tui_event_second *s = &seconds->data[i - 1];
        if (s->second != what->second || s->stream != what->stream || s->group != what->group)
            continue;
        tui_work_add(&s->work, &what->work);
        return true;
    }
    return prof_array_push(seconds, *what);
}

/* The seconds that no window reaches any more. */
static void drop_old_seconds(const struct tui_model *model, struct tui_event_seconds *seconds)
{
    int64_t oldest = tui_last_second(model) - TUI_RING_SECONDS;
    size_t kept = 0;
    for (size_t i = 0; i < seconds->count; i++)
        if (seconds->data[i].second >= oldest)
            seconds->data[kept++] = seconds->data[i];
    seconds->count = kept;
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
    if (copy->start_ns == PROF_UNKNOWN || copy->duration_ns == PROF_UNKNOWN) {
        group->all.bytes = prof_add(group->all.bytes, bytes);
        group->unfinished++;
        return true;
    }
    bool rated = copy->bytes != PROF_UNKNOWN && copy->duration_ns > 0 &&
                 prof_copy_moves(model->capture, copy->kind, copy->stream);
    const struct tui_event_second second = {.second = copy->start_ns / 1000000000,
                                            .stream = copy->stream,
                                            .group = number,
                                            .work = {.count = 1,
                                                     .ns = copy->duration_ns,
                                                     .bytes = bytes,
                                                     .rated_bytes = rated ? bytes : 0,
                                                     .rated_ns = rated ? copy->duration_ns : 0}};
    struct tui_process *process;
    struct tui_stream *stream = tui_stream_of(model, copy->stream, &process);
    if (copy->bytes != PROF_UNKNOWN)
        group->classes[size_class(bytes)]++;
    tui_work_add(&group->all, &second.work);
    if (stream)
        tui_work_add(&stream->copies, &second.work);
    if (process && copy->kind != PROF_COPY_MEMSET)
        tui_work_add(&process->copies, &second.work);
    return add_to_second(model, &model->copy_seconds, &second);
}

static bool read_live_copies(struct tui_model *model, bool fills, int64_t *mark, int64_t deadline,
                             enum prof_status *status, struct prof_error *err)
{
    struct reading reading = {.model = model};
    do {
        reading.rows = 0;
        reading.last = *mark;
        *status = prof_live_copies(model->capture, fills, *mark, COPY_CHUNK, add_live_copy,
                                   &reading, err);
        *mark = reading.last;
    } while (!*status && reading.rows == COPY_CHUNK && (int64_t)prof_now_ns() < deadline);
    return reading.rows < COPY_CHUNK;
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
    drop_old_seconds(model, &model->copy_seconds);
    if (!*status)
        find_ceilings(model);
    return over;
}

static void add_copy_second(struct tui_model *model, const struct tui_event_second *s)
{
    struct tui_copies *group = &model->copies.data[s->group];
    struct tui_process *process;
    struct tui_stream *stream = tui_stream_of(model, s->stream, &process);
    if (stream) {
        tui_spark_add(model, stream->spark_us, s->second, s->work.ns);
        if (stream->last_second == PROF_UNKNOWN || s->second > stream->last_second)
            stream->last_second = s->second;
    }
    if (!model->window_s || s->second < tui_first_second(model))
        return;
    tui_work_add(&group->window, &s->work);
    if (stream)
        tui_work_add(&stream->window_copies, &s->work);
    if (process && group->kind != PROF_COPY_MEMSET)
        tui_work_add(&process->window_copies, &s->work);
}

void tui_copies_window(struct tui_model *model)
{
    static const struct tui_work none;
    model->moved = (struct prof_memory_operations){0};
    for (size_t i = 0; i < model->copies.count; i++) {
        struct tui_copies *g = &model->copies.data[i];
        g->window = model->window_s ? none : g->all;
        prof_memory_operations_add(&model->moved, g->kind, g->all.count + g->unfinished,
                                   g->all.bytes, g->all.ns);
    }
    for (size_t i = 0; i < model->streams.count; i++) {
        struct tui_stream *stream = &model->streams.data[i];
        stream->window_copies = model->window_s ? none : stream->copies;
    }
    for (size_t i = 0; i < model->processes.count; i++) {
        struct tui_process *process = &model->processes.data[i];
        process->window_copies = model->window_s ? none : process->copies;
    }
    for (size_t i = 0; i < model->copy_seconds.count; i++)
        add_copy_second(model, &model->copy_seconds.data[i]);
}

/* ---- live memory ----------------------------------------------------------------------------- */

/* Live memory: allocations as they come, in order of time with the ends of those that are known to
 * have been freed. A row is written when memory is allocated and completed when it is freed: live
 * ones are read again at each look. */

#define ALLOCATION_CHUNK 2048
#define MOST_READ 16384u /* live ones read again in one look; the rest in the next ones */

/* ---- the heap of ends ------------------------------------------------------------------------ */

static bool push_allocation_end(struct tui_model *model, struct tui_end end)
{
    if (!prof_array_reserve(&model->ends, 1))
        return false;
    struct tui_end *heap = model->ends.data;
    size_t at = model->ends.count++;
    for (; at > 0 && heap[(at - 1) / 2].end_ns > end.end_ns; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = end;
    return true;
}

static struct tui_end pop_allocation_end(struct tui_model *model)
{
    struct tui_end *heap = model->ends.data, first = heap[0];
    struct tui_end last = heap[--model->ends.count];
    size_t count = model->ends.count, at = 0;
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heap[child + 1].end_ns < heap[child].end_ns)
            child++;
        if (heap[child].end_ns >= last.end_ns)
            break;
        heap[at] = heap[child];
    }
    if (count)
        heap[at] = last;
    return first;
}

/* ---- changes in order of time ---------------------------------------------------------------- */

/* A sum that was cut off above and is subtracted from again. */
static int64_t at_least_0(int64_t bytes)
{
    return bytes < 0 ? 0 : bytes;
}

static void change_live_bytes(struct tui_model *model, uint32_t number, int64_t time, int64_t bytes,
                              int count)
{
    struct tui_memory *group = &model->memory.data[number];
    group->live_bytes = at_least_0(prof_add(group->live_bytes, bytes));
    group->live_count += count;
    if (count < 0)
        group->freed++;
    model->live_bytes = at_least_0(prof_add(model->live_bytes, bytes));
    if (group->live_bytes > group->peak_bytes) {
        group->peak_bytes = group->live_bytes;
        group->peak_ns = time;
    }
    if (model->live_bytes > model->peak_bytes) {
        model->peak_bytes = model->live_bytes;
        model->peak_ns = time;
    }
}

static void end_until(struct tui_model *model, int64_t time)
{
    while (model->ends.count && model->ends.data[0].end_ns <= time) {
        struct tui_end end = pop_allocation_end(model);
        change_live_bytes(model, end.group, end.end_ns, -end.bytes, -1);
    }
}

/* A device's row is of one process. */
static uint32_t memory_group(struct tui_model *model, const struct prof_allocation *a)
{
    uint64_t key = (uint64_t)(a->device > 0 ? a->device : a->process) << 9 |
                   (uint64_t)(a->device > 0) << 8 | (uint64_t)(a->kind & 255);
    uint64_t *known = prof_map_get(&model->memory_keys, key);
    if (known)
        return (uint32_t)*known;
    struct tui_memory *fresh = prof_array_add(&model->memory);
    if (!fresh || !prof_map_put(&model->memory_keys, key, model->memory.count - 1))
        return UINT32_MAX;
    *fresh = (struct tui_memory){.process = a->process,
                                 .device = a->device > 0 ? a->device : 0,
                                 .kind = a->kind,
                                 .peak_ns = PROF_UNKNOWN};
    return (uint32_t)(model->memory.count - 1);
}

struct read_allocation {
    struct prof_allocation values;
    int64_t stack;
};

static bool allocate(struct tui_model *model, const struct read_allocation *read)
{
    const struct prof_allocation *a = &read->values;
    int64_t bytes = a->bytes == PROF_UNKNOWN || a->bytes < 0 ? 0 : a->bytes;
    uint32_t number = memory_group(model, a);
    if (number == UINT32_MAX)
        return false;
    const struct tui_event_second second = {
        .second = a->start_ns / 1000000000, .group = number, .work = {.count = 1, .bytes = bytes}};
    end_until(model, a->start_ns);
    tui_work_add(&model->memory.data[number].all, &second.work);
    change_live_bytes(model, number, a->start_ns, bytes, 1);
    if (!add_to_second(model, &model->memory_seconds, &second))
        return false;
    if (a->end_ns != PROF_UNKNOWN)
        return push_allocation_end(model, (struct tui_end){a->end_ns, bytes, number});
    struct tui_allocation *live = prof_array_add(&model->live);
    if (live)
        *live = (struct tui_allocation){a->id,       a->process, a->start_ns, bytes,
                                        read->stack, a->kind,    number};
    return live;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct chunk {
    struct read_allocation rows[ALLOCATION_CHUNK];
    size_t count;
    int64_t last;
    size_t seen;
};

static bool keep_read_allocation(void *context, const struct prof_allocation *allocation,
                                 int64_t stack)
{
    struct chunk *chunk = context;
    chunk->last = allocation->id;
    chunk->seen++;
    if (allocation->start_ns != PROF_UNKNOWN && chunk->count < ALLOCATION_CHUNK)
        chunk->rows[chunk->count++] = (struct read_allocation){*allocation, stack};
    return true;
}

PROF_ORDER(by_allocation_start, struct read_allocation, PROF_ASCENDING(values.start_ns),
           PROF_ASCENDING(values.id))

static bool read_live_allocations(struct tui_model *model, struct chunk *chunk, int64_t deadline,
                                  enum prof_status *status, struct prof_error *err)
{
    do {
        chunk->count = chunk->seen = 0;
        chunk->last = model->marks.allocations;
        *status = prof_live_allocations(model->capture, model->marks.allocations, ALLOCATION_CHUNK,
                                        keep_read_allocation, chunk, err);
        qsort(chunk->rows, chunk->count, sizeof *chunk->rows, by_allocation_start);
        for (size_t i = 0; !*status && i < chunk->count; i++) {
            if (!allocate(model, &chunk->rows[i]))
                *status = prof_out_of_memory(err);
        }
        model->marks.allocations = chunk->last;
    } while (!*status && chunk->seen == ALLOCATION_CHUNK && (int64_t)prof_now_ns() < deadline);
    return chunk->seen < ALLOCATION_CHUNK;
}

/* Those of the live ones that were freed meanwhile. True when all were read. */
static bool read_live_again(struct tui_model *model, enum prof_status *status,
                            struct prof_error *err)
{
    size_t count = model->live.count, from = model->next_live < count ? model->next_live : 0;
    size_t count_read = count - from < MOST_READ ? count - from : MOST_READ, kept = from;
    PROF_FREED int64_t *ids = malloc((count_read + 1) * sizeof *ids),
                       *ends = malloc((count_read + 1) * sizeof *ends);
    for (size_t i = 0; ids && i < count_read; i++)
        ids[i] = model->live.data[from + i].id;
    *status = ids && ends ? prof_live_ends(model->capture, ids, count_read, ends, err)
                          : prof_out_of_memory(err);
    for (size_t i = 0; !*status && i < count - from; i++) {
        struct tui_allocation a = model->live.data[from + i];
        if (i >= count_read || ends[i] == PROF_UNKNOWN)
            model->live.data[kept++] = a;
        else if (!push_allocation_end(model, (struct tui_end){ends[i], a.bytes, a.group}))
            *status = prof_out_of_memory(err);
    }
    if (!*status) {
        model->next_live = from + count_read < count ? from + count_read - (count - kept) : 0;
        model->live.count = kept;
    }
    return !*status && model->next_live == 0;
}

/* What is live after the end was never freed, but for variables: these end with the program. */
static void end_static(struct tui_model *model)
{
    size_t kept = 0;
    for (size_t i = 0; i < model->live.count; i++) {
        const struct tui_allocation *a = &model->live.data[i];
        struct tui_memory *group = &model->memory.data[a->group];
        if (!prof_memory_is_static(a->kind)) {
            model->live.data[kept++] = *a;
            continue;
        }
        group->live_bytes = at_least_0(group->live_bytes - a->bytes);
        group->live_count--;
        model->live_bytes = at_least_0(model->live_bytes - a->bytes);
    }
    model->live.count = kept;
}

bool tui_memory_feed(struct tui_model *model, int64_t deadline, enum prof_status *status,
                     struct prof_error *err)
{
    bool over = true;
    PROF_FREED struct chunk *chunk = malloc(sizeof *chunk);
    if (!chunk)
        *status = prof_out_of_memory(err);
    if (!*status && model->live.count)
        over = read_live_again(model, status, err);
    if (!*status)
        over &= read_live_allocations(model, chunk, deadline, status, err);
    if (!*status && over)
        end_until(model, model->state == PROF_STATE_RECORDING && model->now_ns != PROF_UNKNOWN
                             ? model->now_ns
                             : INT64_MAX);
    if (!*status && over && model->state != PROF_STATE_RECORDING)
        end_static(model);
    drop_old_seconds(model, &model->memory_seconds);
    return over;
}

void tui_memory_window(struct tui_model *model)
{
    for (size_t i = 0; i < model->processes.count; i++)
        model->processes.data[i].live_bytes = 0;
    for (size_t i = 0; i < model->memory.count; i++) {
        struct tui_memory *g = &model->memory.data[i];
        struct tui_process *process = (struct tui_process *)tui_model_process(model, g->process);
        g->window = model->window_s ? (struct tui_work){0} : g->all;
        if (process)
            process->live_bytes = prof_add(process->live_bytes, g->live_bytes);
    }
    for (size_t i = 0; model->window_s && i < model->memory_seconds.count; i++) {
        const struct tui_event_second *s = &model->memory_seconds.data[i];
        if (s->second >= tui_first_second(model))
            tui_work_add(&model->memory.data[s->group].window, &s->work);
    }
}
