/* One walk over samples and device work, both in order of time: what ran in each sample, and
 * whether it ran there alone. Only times are read; the values come later and only for samples that
 * matter.
 *
 * What a capture has no row of (kernels that --kernel leaves out, or of a time that was not
 * recorded) looks idle, and counted all the same: where that can be, a sample must be full of known
 * kernels.
 *
 * Memory: 32 bytes a sample and 24 a kernel in it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/capture.h"
#include "libprof/analysis/counters.h"
#include "libprof/analysis/events.h"
#include "libprof/analysis/group.h"
#include "libprof/base/saturate.h"

/* A sample this much longer than the interval spans a pause: its counts cannot be placed. */
#define LONGEST_INTERVALS 8
/* Kernels or copies side by side for less than this share of a sample's busy time are taken as one
 * after the other: ends of kernels overlap a little on any busy device. */
#define TOGETHER_SHARE 0.05

/* A copy or fill of fewer bytes is as if nothing ran: cuBLAS clears a word before each matrix
 * product, and without the samples between two products their beginnings and ends would be missing.
 */
#define FEW_BYTES 65536

struct op {
    int64_t start_ns, end_ns;
    double warps; /* counter_touch.warps, of all of it */
    uint32_t group, launch;
    bool touched;
};

struct ops {
    PROF_ARRAY(struct op) list; /* those that may touch the next sample, by start */
    size_t window;              /* the last window in which something ran in a sample, + 1 */
};

struct walk {
    struct counter_work *work;
    struct prof_recorded recorded;
    struct prof_event_cursor *ops;
    const struct prof_event_row *next;
    struct ops *active; /* per source */
    bool no_memory;
};

void counter_samples_sql(const struct counter_work *work, const char *columns, char *out,
                         size_t size)
{
    snprintf(out, size, "SELECT counter_device, start, duration%s FROM counter_sample ORDER BY %s",
             columns, work->disordered ? "start, id" : "id");
}

size_t counter_source_of(const struct counter_work *work, int64_t counter_device)
{
    for (size_t i = 0; i < work->sources.count; i++) {
        if (work->sources.data[i].id == counter_device)
            return i;
    }
    return SIZE_MAX;
}

/* ---- device work ----------------------------------------------------------------------------- */

static size_t source_of_stream(const struct counter_work *work, int64_t stream)
{
    const struct prof_stream *s = prof_stream(work->capture, stream);
    const struct prof_device *d = s ? prof_device(work->capture, s->device) : NULL;
    for (size_t i = 0; d && i < work->sources.count; i++) {
        if (work->sources.data[i].physical == d->physical)
            return i;
    }
    return SIZE_MAX;
}

/* CUPTI adds to the warps of kernels; those of OpenCL are not its own. */
static double traced_warps(const struct counter_work *work, const struct prof_event_row *row)
{
    const struct prof_stream *s = prof_stream(work->capture, row->stream);
    const struct prof_device *d = s ? prof_device(work->capture, s->device) : NULL;
    const struct prof_config *c = prof_config(work->capture, row->config);
    if (!d || !d->api || strcmp(d->api, "cuda") != 0 || !c)
        return 0;
    double blocks = 1, threads = 1;
    for (int i = 0; i < 3; i++) {
        if (c->grid[i] <= 0 || c->block[i] <= 0)
            return 0;
        blocks *= (double)c->grid[i];
        threads *= (double)c->block[i];
    }
    return blocks * ceil(threads / (d->warp > 0 ? (double)d->warp : 32));
}

/* Of a kernel; false when out of memory. */
static bool kernel_touch_group(struct walk *walk, const struct prof_event_row *row, size_t source,
                               uint32_t *group)
{
    struct counter_work *work = walk->work;
    size_t config = prof_config_index(work->capture, row->config);
    bool known = config != SIZE_MAX, fresh;
    uint64_t number = known ? work->kernel_of_config[config] + 1u : 0;
    uint64_t key = (number * work->sources.count + source) << 1 | row->in_scope;
    *group = prof_group_number(&work->group_of, key, &fresh);
    struct counter_group *slot =
        *group != PROF_NO_GROUP && fresh ? prof_array_add(&work->groups) : NULL;
    if (*group == PROF_NO_GROUP || (fresh && !slot))
        return false;
    const struct prof_config *its = known ? &work->capture->configs.data[config] : NULL;
    if (fresh)
        *slot = (struct counter_group){
            .config = its, .source = (uint16_t)source, .wanted = row->in_scope};
    struct counter_group *g = &work->groups.data[*group];
    g->several_configs |= g->config != its;
    return true;
}

/* Takes the next operation to its device's list, unless it ended before `begin`. */
static void take_op(struct walk *walk, int64_t begin)
{
    const struct prof_event_row *row = walk->next;
    size_t source = source_of_stream(walk->work, row->stream);
    struct op op = {
        .start_ns = row->start_ns,
        .end_ns = prof_add(row->start_ns, row->duration_ns),
        .group = COUNTER_OTHER,
    };
    if (source != SIZE_MAX && row->kind == PROF_OP_KERNEL) {
        if (!kernel_touch_group(walk, row, source, &op.group)) {
            walk->no_memory = true;
            return;
        }
        struct counter_group *g = &walk->work->groups.data[op.group];
        g->time_ns = prof_add(g->time_ns, op.end_ns - op.start_ns);
        op.launch = (uint32_t)g->launches++;
        op.warps = traced_warps(walk->work, row);
    }
    bool unseen = row->bytes >= 0 && row->bytes < FEW_BYTES;
    if (source != SIZE_MAX && !unseen && op.end_ns > begin) {
        struct op *slot = prof_array_add(&walk->active[source].list);
        if (slot)
            *slot = op;
        walk->no_memory |= !slot;
    }
}

/* Everything that begins before `end`, for a sample that begins at `begin`. */
static void take_ops_until(struct walk *walk, int64_t begin, int64_t end)
{
    for (; walk->next && walk->next->start_ns < end && !walk->no_memory;
         walk->next = prof_event_cursor_next(walk->ops)) {
        if (walk->next->duration_ns != PROF_UNKNOWN)
            take_op(walk, begin);
    }
}

/* What ended before `begin` touches no further sample. */
static void drop_ended(struct ops *ops, int64_t begin)
{
    size_t kept = 0;
    for (size_t i = 0; i < ops->list.count; i++) {
        if (ops->list.data[i].end_ns > begin)
            ops->list.data[kept++] = ops->list.data[i];
    }
    ops->list.count = kept;
}

/* ---- one sample ------------------------------------------------------------------------------ */

/* Adds up, over operations in order of their start, the union of kernels and how long different
 * groups ran side by side. Of what still runs, the latest end of two different groups is enough. */
struct overlap {
    int64_t busy_ns, together_ns;
    int64_t covered; /* end of the union of kernels so far */
    struct {
        uint32_t group;
        int64_t end;
    } latest[2];
};

static void note_end(struct overlap *o, uint32_t group, int64_t end)
{
    int same = o->latest[0].group == group ? 0 : o->latest[1].group == group ? 1 : -1;
    int at = same >= 0 ? same : o->latest[0].end <= o->latest[1].end ? 0 : 1;
    if (end > o->latest[at].end || same < 0) {
        o->latest[at].group = group;
        o->latest[at].end = end;
    }
}

static void overlap_add(struct overlap *o, uint32_t group, int64_t begin, int64_t end)
{
    int64_t other = INT64_MIN;
    for (int i = 0; i < 2; i++) {
        if (o->latest[i].group != group && o->latest[i].end > other)
            other = o->latest[i].end;
    }
    if (other > begin)
        o->together_ns += (other < end ? other : end) - begin;
    note_end(o, group, end);
    if (group == COUNTER_OTHER)
        return;
    int64_t from = begin > o->covered ? begin : o->covered;
    if (end > from) {
        o->busy_ns += end - from;
        o->covered = end;
    }
}

static bool touch(struct counter_work *work, struct counter_sampled *sampled, struct op *op,
                  int64_t overlap_ns)
{
    struct counter_touch *slot = NULL;
    if (op->group != COUNTER_OTHER) {
        struct counter_group *g = &work->groups.data[op->group];
        g->covered += !op->touched;
        g->covered_ns += overlap_ns;
        op->touched = true;
    }
    for (uint32_t i = 0; i < sampled->count && !slot; i++) {
        if (work->touches.data[sampled->first + i].group == op->group)
            slot = &work->touches.data[sampled->first + i];
    }
    if (!slot) {
        slot = prof_array_add(&work->touches);
        if (!slot)
            return false;
        *slot = (struct counter_touch){.group = op->group};
        sampled->count++;
    }
    uint64_t sum = (uint64_t)slot->overlap_ns + (uint64_t)overlap_ns;
    slot->overlap_ns = sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
    double share = (double)overlap_ns / (double)(op->end_ns - op->start_ns);
    slot->launches += share;
    slot->warps += share * op->warps;
    slot->launch = op->launch;
    return true;
}

/* Copies that were over at once change nothing that could be seen. */
static void forget_short_copies(struct counter_work *work, struct counter_sampled *sampled)
{
    for (uint32_t i = 0; i < sampled->count; i++) {
        struct counter_touch *t = &work->touches.data[sampled->first + i];
        if (t->group != COUNTER_OTHER ||
            (double)t->overlap_ns >= TOGETHER_SHARE * (double)sampled->length_ns)
            continue;
        *t = work->touches.data[--work->touches.count];
        sampled->count--;
        return;
    }
}

static enum counter_sample_kind classify_sample(const struct counter_work *work,
                                                const struct counter_sampled *sampled,
                                                const struct overlap *overlap, bool idle_is_idle)
{
    if (sampled->busy_ns == 0)
        return COUNTER_IDLE;
    if (!idle_is_idle &&
        sampled->length_ns - sampled->busy_ns > TOGETHER_SHARE * sampled->length_ns)
        return COUNTER_UNKNOWN;
    for (uint32_t i = 0; i < sampled->count; i++) {
        if (work->touches.data[sampled->first + i].group == COUNTER_OTHER)
            return COUNTER_TOGETHER;
    }
    if (sampled->count == 1)
        return COUNTER_ALONE;
    return (double)overlap->together_ns > TOGETHER_SHARE * (double)overlap->busy_ns
               ? COUNTER_TOGETHER
               : COUNTER_SEQUENCE;
}

/* Index of the burst that the moment lies in; UINT32_MAX = in none that is known. */
static uint32_t burst_at(const struct counter_source *source, int64_t begin)
{
    size_t low;
    PROF_FIND_FIRST(low, at, source->bursts.count, source->bursts.data[at].end_ns > begin);
    bool inside = low < source->bursts.count && source->bursts.data[low].start_ns <= begin;
    return inside ? (uint32_t)low : UINT32_MAX;
}

/* Number of the window of recording that [begin, end) lies in, from 1; 0 = in none as a whole. */
static size_t window_of(const struct prof_recorded *recorded, int64_t begin, int64_t end)
{
    size_t low;
    PROF_FIND_FIRST(low, at, recorded->spans.count, recorded->spans.data[at].end > begin);
    bool inside = low < recorded->spans.count && recorded->spans.data[low].begin <= begin &&
                  recorded->spans.data[low].end >= end;
    return inside ? low + 1 : 0;
}

/* Has everything a row that ran in this sample, in which something ran? What was launched before a
 * window may still run at its beginning, up to the first kernel that has a row. */
static bool idle_is_idle(const struct walk *walk, struct ops *ops, int64_t begin, int64_t end)
{
    if (walk->work->capture->info.kernel_filter)
        return false;
    if (!walk->recorded.in_part)
        return true;
    size_t window = window_of(&walk->recorded, begin, end), before = ops->window;
    ops->window = window;
    return window && window == before;
}

static bool classify_touched_sample(struct walk *walk, size_t source, int64_t begin, int64_t end)
{
    struct counter_work *work = walk->work;
    struct ops *ops = &walk->active[source];
    struct overlap overlap = {.covered = INT64_MIN,
                              .latest = {{COUNTER_OTHER, INT64_MIN}, {COUNTER_OTHER, INT64_MIN}}};
    struct counter_sampled *sampled = &work->samples.data[work->samples.count - 1];
    drop_ended(ops, begin);
    for (size_t i = 0; i < ops->list.count; i++) {
        struct op *op = &ops->list.data[i];
        int64_t from = op->start_ns > begin ? op->start_ns : begin;
        int64_t to = op->end_ns < end ? op->end_ns : end;
        if (to <= from)
            continue;
        overlap_add(&overlap, op->group, from, to);
        if (!touch(work, sampled, op, to - from))
            return false;
    }
    sampled->busy_ns = (uint32_t)overlap.busy_ns;
    sampled->burst = burst_at(&work->sources.data[source], begin);
    sampled->others = sampled->burst != UINT32_MAX &&
                      work->sources.data[source].bursts.data[sampled->burst].others;
    forget_short_copies(work, sampled);
    bool known = sampled->busy_ns && idle_is_idle(walk, ops, begin, end);
    sampled->kind = (uint8_t)classify_sample(work, sampled, &overlap, known);
    return true;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static bool add_touched_sample(void *user, sqlite3_stmt *row)
{
    struct walk *walk = user;
    struct counter_work *work = walk->work;
    struct counter_sampled *sampled = prof_array_add(&work->samples);
    if (!sampled)
        return false;
    *sampled = (struct counter_sampled){.first = work->touches.count};
    size_t source = counter_source_of(work, prof_column_id(row, 0));
    int64_t start = prof_column_int(row, 1), duration = prof_column_int(row, 2);
    if (start == PROF_UNKNOWN || duration <= 0 || duration > INT32_MAX)
        return true;
    work->count++;
    work->sampled_ns = prof_add(work->sampled_ns, duration);
    if (source == SIZE_MAX)
        return true;
    int64_t interval = work->sources.data[source].interval_ns;
    if (interval > 0 && duration / LONGEST_INTERVALS > interval)
        return true;
    sampled->source = (uint16_t)source;
    sampled->length_ns = (uint32_t)duration;
    take_ops_until(walk, start, prof_add(start, duration));
    return !walk->no_memory &&
           classify_touched_sample(walk, source, start, prof_add(start, duration));
}

/* Ids are by time but in captures that were put together. */
static enum prof_status look_at_order(struct counter_work *work, struct prof_error *err)
{
    sqlite3_stmt *row;
    PROF_TRY(prof_query(work->capture,
                        "SELECT EXISTS(SELECT 1 FROM counter_sample a JOIN counter_sample b "
                        "ON b.id = a.id + 1 WHERE b.start < a.start)",
                        &row, err));
    if (prof_row(row))
        work->disordered = sqlite3_column_int(row, 0) != 0;
    return prof_query_end(work->capture, row, err);
}

enum prof_status counter_touches(struct counter_work *work, struct prof_error *err)
{
    struct walk walk = {.work = work};
    const struct prof_event_query query = {.tables = PROF_OPS_DEVICE,
                                           .fields = PROF_FIELD(DURATION) | PROF_FIELD(STREAM) |
                                                     PROF_FIELD(CONFIG) | PROF_FIELD(BYTES),
                                           .scope = &work->scope,
                                           .mark = true,
                                           .started = true,
                                           .in_order = true};
    char sql[160];
    work->kernel_of_config = prof_kernel_of_configs(work->capture, work->by == PROF_BY_CONFIG);
    if (!work->kernel_of_config)
        return prof_out_of_memory(err);
    walk.active = calloc(work->sources.count + 1, sizeof *walk.active);
    enum prof_status status = walk.active ? look_at_order(work, err) : prof_out_of_memory(err);
    status = status ?: prof_recorded(work->capture, NULL, &walk.recorded, err);
    status = status ?: prof_event_cursor_open(work->capture, &query, &walk.ops, err);
    if (!status)
        walk.next = prof_event_cursor_next(walk.ops);
    counter_samples_sql(work, "", sql, sizeof sql);
    status = status ?: prof_scan(work->capture, sql, add_touched_sample, &walk, err);
    if (!status)
        take_ops_until(&walk, INT64_MAX, INT64_MAX); /* the launches that no sample saw count too */
    if (walk.no_memory)
        status = prof_out_of_memory(err);
    enum prof_status end = prof_event_cursor_close(walk.ops, status ? NULL : err);
    status = status ?: end;
    for (size_t i = 0; walk.active && i < work->sources.count; i++)
        prof_array_free(&walk.active[i].list);
    free(walk.active);
    prof_recorded_free(&walk.recorded);
    return status;
}
