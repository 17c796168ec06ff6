/* Loading of what the rules look at; see facts.h. */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/capture.h"
#include "libprof/analysis/facts/facts.h"
#include "libprof/analysis/facts/iteration_parts.h"
#include "libprof/analysis/roofline.h"
#include "libprof/base/saturate.h"
#include "libprof/gpu/collective_name.h"
#include "libprof/gpu/names.h"
#include "libprof/wire/command.h"
#include "libprof/wire/memory.h"

/* ---- shapes and devices ---------------------------------------------------------------------- */

static uint32_t facts_device_number(struct prof_facts *f, int64_t stream)
{
    const struct prof_stream *s = prof_stream(f->capture, stream);
    const struct prof_device *device = s ? prof_device(f->capture, s->device) : NULL;
    int64_t id = device ? device->physical : 0;
    bool fresh;
    uint32_t number = prof_group_number(&f->device_index, (uint64_t)id, &fresh);
    if (number == PROF_NO_GROUP || !fresh)
        return number;
    struct prof_device_facts *d = prof_array_add(&f->devices);
    if (!d)
        return PROF_NO_GROUP;
    *d = (struct prof_device_facts){.id = id, .device = prof_device(f->capture, id)};
    return number;
}

/* In CUDA the function's name shows whether its call waits, in OpenCL an argument does. What goes
 * to pageable memory CUDA waits for always (CUDA driver API, "API synchronization behavior"). */
static bool call_waits(const struct prof_facts *f, const struct prof_event_row *op)
{
    const char *name = prof_string(f->capture, op->name, NULL);
    bool cuda = name && !strncmp(name, "cu", 2);
    if (cuda && op->copy_kind == WIRE_COPY_DTOH && op->target_kind == WIRE_MEMORY_PAGEABLE)
        return true;
    if (op->blocking != PROF_UNKNOWN)
        return op->blocking == 1;
    return cuda && !wire_call_is_asynchronous(name);
}

/* Alike by a 64-bit key: that two of some thousands share one by chance is as good as impossible.
 * Above SHAPES copies of similar size count as one. */
#define SHAPES (1u << 16)

static int64_t bytes_of(const struct prof_facts *f, const struct prof_event_row *op)
{
    return f->shapes.count >= SHAPES && op->bytes > 0
               ? INT64_C(1) << (63 - __builtin_clzll((uint64_t)op->bytes))
               : op->bytes;
}

static bool has_same_flag(const struct prof_event_row *op, enum prof_op_kind kind)
{
    return op->kind == kind && op->flags > 0 && op->flags & PROF_FLAG_SAME;
}

/* All but the device, which the stream shows. */
static uint64_t shape_key(const struct prof_facts *f, const struct prof_event_row *op)
{
    uint64_t key =
        prof_map_mix(prof_map_mix((uint64_t)op->kind << 1 | op->in_graph, op->config), op->name);
    if (op->kind == PROF_OP_KERNEL || op->kind == PROF_OP_GRAPH)
        return key;
    key = prof_map_mix(prof_map_mix(prof_map_mix(key, bytes_of(f, op)), op->copy_kind),
                       op->source_kind);
    key = prof_map_mix(prof_map_mix(key, op->target_kind), op->blocking);
    return prof_map_mix(key, has_same_flag(op, PROF_OP_TRANSFER));
}

static uint32_t shape_of(struct prof_facts *f, const struct prof_event_row *op, uint64_t key)
{
    uint32_t device = facts_device_number(f, op->stream);
    if (device == PROF_NO_GROUP)
        return PROF_NO_GROUP;
    int64_t bytes = bytes_of(f, op);
    bool fresh;
    uint32_t number = prof_group_number(&f->shape_index, prof_map_mix(key, device), &fresh);
    if (number == PROF_NO_GROUP || !fresh)
        return number;
    struct prof_shape *shape = prof_array_add(&f->shapes);
    if (!shape)
        return PROF_NO_GROUP;
    *shape = (struct prof_shape){
        .kind = op->kind,
        .config = prof_config(f->capture, op->config),
        .copy_kind = op->copy_kind,
        .source_kind = op->source_kind,
        .target_kind = op->target_kind,
        .waits = op->kind == PROF_OP_TRANSFER && call_waits(f, op),
        .in_graph = op->in_graph,
        .same_bytes = has_same_flag(op, PROF_OP_TRANSFER),
        .bytes = bytes,
        .api_name = op->name,
        .device = device,
        .first_call_ns = INT64_MAX,
        .last_call_ns = INT64_MIN,
    };
    shape->collective = shape->config && prof_collective_kernel(shape->config->name);
    return number;
}

/* Operations of a shape, a stream and a thread: looked up once for each operation. */
static uint32_t operation_place_number(struct prof_facts *f, const struct prof_event_row *op)
{
    uint64_t key = shape_key(f, op);
    bool fresh, again = has_same_flag(op, PROF_OP_KERNEL);
    uint64_t place_key = prof_map_mix(prof_map_mix(key, op->stream), op->thread);
    uint32_t number = prof_group_number(&f->place_index,
                                        again ? prof_map_mix(place_key, again) : place_key, &fresh);
    if (number == PROF_NO_GROUP || !fresh)
        return number;
    uint32_t shape = shape_of(f, op, key);
    struct prof_op_place *place =
        shape == PROF_NO_GROUP || number >= PROF_LONG_OP ? NULL : prof_array_add(&f->places);
    if (!place)
        return PROF_NO_GROUP;
    *place = (struct prof_op_place){shape, (uint32_t)op->stream, (uint32_t)op->thread, again};
    return number;
}

/* ---- operations ------------------------------------------------------------------------------ */

static bool add_facts_call(struct prof_facts *f, struct prof_call call, int64_t duration)
{
    if (call.start < 0 || call.start >= f->end_ns)
        return true;
    duration = prof_min(duration, f->end_ns - call.start);
    call.duration = prof_min(duration, PROF_LONGEST_CALL_NS) & PROF_LONGEST_CALL_NS;
    f->total_ns = prof_add(f->total_ns, duration);
    struct prof_call *slot = prof_array_add(&f->calls);
    if (slot)
        *slot = call;
    return slot != NULL;
}

static bool keep_op(struct prof_facts *f, enum prof_op_kind kind, const struct prof_op *op,
                    uint32_t place)
{
    struct prof_op_kept *kept = prof_array_add(&f->ops[kind]);
    if (!kept)
        return false;
    bool called = op->call != PROF_UNKNOWN;
    *kept =
        (struct prof_op_kept){.start = op->start,
                              .before = called ? (uint32_t)(op->start - op->call) : PROF_NO_CALL,
                              .duration = (uint32_t)op->duration,
                              .call_duration = op->call_duration,
                              .place = place};
    if (op->duration <= UINT32_MAX && (!called || op->start - op->call < PROF_NO_CALL))
        return true;
    struct prof_op *slot = f->long_ops.count < PROF_LONG_OP ? prof_array_add(&f->long_ops) : NULL;
    if (!slot)
        return false;
    *slot = *op;
    kept->place = PROF_LONG_OP | (uint32_t)(f->long_ops.count - 1);
    return true;
}

static bool is_merged(const struct prof_facts *f, const struct prof_event_row *op)
{
    const struct prof_config *config = f->kept ? prof_config(f->capture, op->config) : NULL;
    return config && !f->kept[config - f->capture->configs.data];
}

static bool add_facts_operation(void *user, const struct prof_event_row *op)
{
    struct prof_facts *f = user;
    struct prof_event_row merged;
    if (is_merged(f, op)) {
        merged = *op;
        merged.config = 0;
        op = &merged;
    }
    if (op->start_ns == PROF_UNKNOWN || op->duration_ns == PROF_UNKNOWN) {
        uint32_t *slot = prof_array_add(&f->unfinished);
        if (slot)
            *slot = (uint32_t)op->stream;
        int64_t *call = op->call_ns < 0 ? NULL : prof_array_add(&f->untimed);
        if (call)
            *call = op->call_ns;
        return slot && (call || op->call_ns < 0);
    }
    if (op->duration_ns < 0 || op->start_ns < f->begin_ns || op->start_ns >= f->end_ns) {
        f->left_out += op->start_ns < f->end_ns;
        return true;
    }
    uint32_t number = operation_place_number(f, op);
    if (number == PROF_NO_GROUP)
        return false;
    const struct prof_op_place *place = &f->places.data[number];
    struct prof_shape *shape = &f->shapes.data[place->shape];
    int64_t longest = f->end_ns - op->start_ns;
    int64_t call_duration = op->call_duration_ns > 0 ? op->call_duration_ns : 0;
    struct prof_op whole = {
        .start = op->start_ns,
        .duration = op->duration_ns < longest ? op->duration_ns : longest,
        .call = op->call_ns < 0              ? PROF_UNKNOWN
                : op->call_ns > op->start_ns ? op->start_ns
                                             : op->call_ns,
        .call_duration = call_duration > UINT32_MAX ? UINT32_MAX : (uint32_t)call_duration,
        .shape = place->shape,
        .stream = place->stream,
        .thread = place->thread,
        .again = place->again,
    };
    if (!keep_op(f, op->kind, &whole, number))
        return false;
    f->total_ns = prof_add(f->total_ns, whole.duration);
    f->total_bytes = prof_add(f->total_bytes, op->bytes > 0 ? op->bytes : 0);
    int64_t call = whole.call == PROF_UNKNOWN ? whole.start : whole.call;
    shape->total++;
    shape->first_call_ns = call < shape->first_call_ns ? call : shape->first_call_ns;
    shape->last_call_ns = call > shape->last_call_ns ? call : shape->last_call_ns;
    if (!shape->waits || whole.call == PROF_UNKNOWN)
        return true;
    return add_facts_call(f,
                          (struct prof_call){.start = whole.call,
                                             .thread = whole.thread,
                                             .name = (uint32_t)op->name,
                                             .class_ = WIRE_CLASS_TRANSFER},
                          call_duration);
}

/* Rows lie nearly in order: each moves a few places. What is in no order at all is sorted. */
PROF_ORDER(by_operation_start, struct prof_op_kept, PROF_ASCENDING(start))

static void sort_ops(struct prof_ops *ops)
{
    size_t moves = 0, most = 64 * ops->count;
    for (size_t i = 1; i < ops->count; i++) {
        struct prof_op_kept op = ops->data[i];
        size_t k = i;
        for (; k && ops->data[k - 1].start > op.start && moves < most; k--, moves++)
            ops->data[k] = ops->data[k - 1];
        ops->data[k] = op;
        if (moves >= most) {
            prof_array_sort(ops, by_operation_start);
            return;
        }
    }
}

/* Row numbers of a damaged capture promise more rows than there are. */
#define MOST_RESERVED (INT64_C(1) << 24)

/* Operations are read once, for the facts and for the roofline, which wants all of them. */
struct readers {
    struct prof_facts *facts;
    struct prof_roofline_gather *roofs;
};

static bool gather_and_add_operation(void *user, const struct prof_event_row *op)
{
    const struct readers *readers = user;
    return prof_roofline_gather_op(readers->roofs, op) &&
           (!op->in_scope || add_facts_operation(readers->facts, op));
}

static enum prof_status read_ops(struct prof_facts *f, const struct prof_filter *filter,
                                 const struct prof_scope *scope, struct prof_error *err)
{
    struct readers readers = {f, NULL};
    struct prof_event_query query = {
        .tables = PROF_OPS_DEVICE,
        .fields = PROF_FIELD(START) | PROF_FIELD(DURATION) | PROF_FIELD(STREAM) |
                  PROF_FIELD(THREAD) | PROF_FIELD(NAME) | PROF_FIELD(CALL_DURATION) |
                  PROF_FIELD(CONFIG) | PROF_FIELD(BYTES) | PROF_FIELD(COPY_KIND) |
                  PROF_FIELD(SOURCE_KIND) | PROF_FIELD(TARGET_KIND) | PROF_FIELD(BLOCKING) |
                  PROF_FIELD(LAUNCH) | PROF_FIELD(FLAGS) | PROF_FIELDS_ROOFLINE,
        .scope = scope};
    if (prof_scope_only_kernels(scope) || f->kept || f->without_roofs)
        return prof_event_rows(f->capture, &query, add_facts_operation, f, err);
    enum prof_status status =
        prof_roofline_gather_open(&readers.roofs, f->capture, filter, PROF_ROOFLINE_CONFIGS, err);
    if (!status) {
        query.mark = true;
        status = prof_event_rows(f->capture, &query, gather_and_add_operation, &readers, err);
    }
    if (!status)
        status = prof_roofline_gather_finish(readers.roofs, &f->roofs, err);
    f->has_roofs = !status;
    prof_roofline_gather_close(readers.roofs);
    return status;
}

struct config_use {
    int64_t count, ns;
};

struct config_uses {
    struct prof_facts *facts;
    struct config_use *of; /* by place in capture.configs */
    int64_t ns;
};

static bool add_config_use(void *user, const struct prof_event_row *row)
{
    struct config_uses *uses = user;
    const struct prof_capture *capture = uses->facts->capture;
    const struct prof_config *config = prof_config(capture, row->config);
    int64_t ns = row->duration_ns;
    if (!config)
        return true;
    uses->of[config - capture->configs.data].count++;
    if (ns != PROF_UNKNOWN) {
        uses->of[config - capture->configs.data].ns += ns;
        uses->ns = prof_add(uses->ns, ns);
    }
    return true;
}

/* Configurations launched so often are at most PROF_FACTS_CONFIGS. Of those launched as often all
 * or none are kept: which they are does not depend on their order. */
static int64_t least_count(const struct config_use *uses, size_t count)
{
    enum { CLASSES = 1024 };
    size_t with[CLASSES] = {0}, kept = 0;
    for (size_t i = 0; i < count; i++)
        with[uses[i].count < CLASSES ? uses[i].count : CLASSES - 1]++;
    int64_t least = CLASSES;
    while (least > 0 && kept + with[least - 1] <= PROF_FACTS_CONFIGS)
        kept += with[--least];
    return least;
}

#define KEPT_SHARE 0.0005 /* of the kernels' time */

static enum prof_status choose_kept_configs(struct prof_facts *f, struct prof_error *err)
{
    size_t count = f->capture->configs.count;
    static const struct prof_event_query kernels = {
        .tables = PROF_OPS(KERNEL), .fields = PROF_FIELD(CONFIG) | PROF_FIELD(DURATION)};
    struct config_uses uses = {.facts = f, .of = calloc(count, sizeof *uses.of)};
    f->kept = calloc(count, sizeof *f->kept);
    enum prof_status status = uses.of && f->kept ? PROF_OK : prof_out_of_memory(err);
    if (!status)
        status = prof_event_rows(f->capture, &kernels, add_config_use, &uses, err);
    int64_t least = status ? 0 : least_count(uses.of, count);
    for (size_t i = 0; !status && i < count; i++)
        f->kept[i] =
            uses.of[i].count >= least || (double)uses.of[i].ns >= KEPT_SHARE * (double)uses.ns;
    free(uses.of);
    return status;
}

static enum prof_status load_ops(struct prof_facts *f, const struct prof_filter *filter,
                                 const struct prof_scope *scope, struct prof_error *err)
{
    static const enum prof_event_kind kinds[] = {PROF_EVENT_KERNEL, PROF_EVENT_TRANSFER,
                                                 PROF_EVENT_MEMSET, PROF_EVENT_GRAPH};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        int64_t rows = prof_events_estimate(f->capture, PROF_EVENTS(kinds[i]));
        if (rows > 0 && rows <= MOST_RESERVED && !prof_array_reserve(&f->ops[i], rows))
            return prof_out_of_memory(err);
    }
    enum prof_status status = read_ops(f, filter, scope, err);
    for (size_t i = 0; !status && i < sizeof kinds / sizeof kinds[0]; i++)
        sort_ops(&f->ops[i]);
    return status;
}

#define BEFORE 256 /* operations of each kind */

void prof_facts_seek(const struct prof_facts *facts, struct prof_op_walk *walk, int64_t time)
{
    for (enum prof_op_kind k = PROF_OP_KERNEL; k <= PROF_OP_GRAPH; k++) {
        const struct prof_ops *ops = &facts->ops[k];
        size_t low;
        PROF_FIND_FIRST(low, at, ops->count, ops->data[at].start >= time);
        walk->of[k].at = low > BEFORE ? low - BEFORE : 0;
    }
}

/* The kind that is next, and up to when it stays so: before the first of the others. Of those that
 * start at the same time, the lower kind comes first. */
static bool choose_kind(const struct prof_facts *facts, struct prof_op_walk *walk)
{
    bool any = false;
    int64_t first = 0;
    for (int k = PROF_OP_GRAPH; k >= PROF_OP_KERNEL; k--) {
        const struct prof_ops *ops = &facts->ops[k];
        size_t at = walk->of[k].at;
        if (at == ops->count)
            continue;
        int64_t start = ops->data[at].start;
        if (!any || start <= first) {
            walk->until = any ? first + 1 : INT64_MAX;
            walk->kind = (enum prof_op_kind)k;
            first = start;
        } else if (start < walk->until) {
            walk->until = start;
        }
        any = true;
    }
    return any;
}

const struct prof_op *prof_facts_next(const struct prof_facts *facts, struct prof_op_walk *walk,
                                      enum prof_op_kind *kind)
{
    const struct prof_ops *ops = &facts->ops[walk->kind];
    size_t at = walk->of[walk->kind].at;
    bool goes_on = at < ops->count && ops->data[at].start > 0 && ops->data[at].start < walk->until;
    if (!goes_on && !choose_kind(facts, walk))
        return NULL;
    struct prof_op *op = &walk->of[walk->kind].op;
    *op = prof_facts_op(facts, walk->kind, walk->of[walk->kind].at++);
    *kind = walk->kind;
    return op;
}

/* ---- host calls ------------------------------------------------------------------------------ */

/* May a call of this class stand in the way of a device? Those with a device record, whose class is
 * LAUNCH, TRANSFER or MEMSET, are known from there. */
static bool is_in_the_way(enum wire_class class_)
{
    return class_ == WIRE_CLASS_SYNC || class_ == WIRE_CLASS_BUILD ||
           class_ == WIRE_CLASS_GRAPH_MAKE || class_ == WIRE_CLASS_GRAPH_LAUNCH ||
           class_ == WIRE_CLASS_CREATE || wire_class_allocates(class_) || wire_class_frees(class_);
}

/* Of a call of its own, or of a synchronization. */
static bool add_facts_call_row(void *user, const struct prof_event_row *row)
{
    bool is_sync = row->kind == PROF_OP_SYNC;
    int64_t start = is_sync ? prof_sync_begin(row) : row->start_ns;
    int64_t duration =
        row->call_duration_ns == PROF_UNKNOWN ? row->duration_ns : row->call_duration_ns;
    enum wire_class class_ = is_sync ? WIRE_CLASS_SYNC : (enum wire_class)row->class_;
    if (class_ == WIRE_CLASS_HOST_REGISTER) /* costs what the allocation does */
        class_ = WIRE_CLASS_ALLOC_HOST;
    else if (class_ == WIRE_CLASS_HOST_UNREGISTER)
        class_ = WIRE_CLASS_FREE_HOST;
    if (row->start_ns == PROF_UNKNOWN || start < 0 || duration < 0 || !is_in_the_way(class_) ||
        (is_sync && (!row->name || row->what == WIRE_SYNC_STREAM_WAIT_EVENT))) {
        ((struct prof_facts *)user)->other_calls++;
        return true;
    }
    return add_facts_call(user,
                          (struct prof_call){.start = start,
                                             .thread = (uint32_t)row->thread,
                                             .name = (uint32_t)row->name,
                                             .class_ = (uint8_t)class_},
                          duration);
}

PROF_ORDER(by_facts_call_start, struct prof_call, PROF_ASCENDING(thread), PROF_ASCENDING(start))

static enum prof_status load_calls(struct prof_facts *f, struct prof_error *err)
{
    static const struct prof_event_query query = {
        .tables = PROF_OPS(CALL) | PROF_OPS(SYNC),
        .fields = PROF_FIELD(DURATION) | PROF_FIELD(THREAD) | PROF_FIELD(NAME) | PROF_FIELD(CALL) |
                  PROF_FIELD(CALL_DURATION) | PROF_FIELD(CLASS) | PROF_FIELD(KIND),
    };
    enum prof_status status = prof_event_rows(f->capture, &query, add_facts_call_row, f, err);
    if (!status && f->calls.count)
        prof_array_sort(&f->calls, by_facts_call_start);
    return status;
}

const struct prof_call *prof_facts_calls(const struct prof_facts *f, uint32_t thread, size_t *count)
{
    size_t low, end;
    PROF_FIND_FIRST(low, at, f->calls.count, f->calls.data[at].thread >= thread);
    PROF_FIND_FIRST(end, at, f->calls.count, f->calls.data[at].thread > thread);
    *count = end - low;
    return f->calls.data + low;
}

/* ---- allocations ----------------------------------------------------------------------------- */

static bool add_lifetime(void *user, const struct prof_event_row *row)
{
    struct prof_facts *f = user;
    const struct prof_device *device = prof_device(f->capture, row->device);
    if (row->bytes < 0)
        return true;
    f->total_bytes = prof_add(f->total_bytes, row->bytes);
    struct prof_lifetime *slot = prof_array_add(&f->lifetimes);
    if (slot)
        *slot = (struct prof_lifetime){
            .start = row->start_ns,
            .end = row->other_ns == PROF_UNKNOWN ? INT64_MAX : row->other_ns,
            .bytes = row->bytes,
            .kind = row->target_kind & 0xff,
            .thread = (uint32_t)row->thread,
            .device = device ? (uint32_t)device->physical : 0,
            .end_thread = (uint32_t)row->end_thread,
            .process = (uint32_t)row->process,
            .id = row->id,
            .stack = row->stack,
        };
    return slot != NULL;
}

/* ---- all ------------------------------------------------------------------------------------- */

static uint32_t range_group(void *user, const struct prof_event_row *row)
{
    struct prof_facts *f = user;
    return prof_facts_note_range(f, row) ? prof_texts_number(&f->range_texts, f->capture, row->name)
                                         : PROF_NO_GROUP;
}

void prof_spots_add(struct prof_spots *spots, struct prof_spot spot)
{
    for (int i = 0; i < PROF_PLACES; i++) {
        if (spot.duration <= spots->worst[i].duration)
            continue;
        struct prof_spot less = spots->worst[i];
        spots->worst[i] = spot;
        spot = less;
    }
}

static enum prof_status scan_facts(struct prof_facts *f, const struct prof_filter *filter,
                                   const struct prof_scope *scope, struct prof_error *err)
{
    static const struct prof_event_query allocations = {
        .tables = PROF_OPS(ALLOCATION),
        .fields = PROF_FIELDS_ALLOCATION | PROF_FIELD(END_THREAD) | PROF_FIELD(STACK),
        .started = true,
        .in_order = true,
    };
    enum prof_status status =
        prof_range_index_open(&f->ranges, f->capture, scope, range_group, f, err);
    if (!status)
        status = load_ops(f, filter, scope, err);
    if (!status)
        status = load_calls(f, err);
    if (!status)
        status = prof_event_rows(f->capture, &allocations, add_lifetime, f, err);
    return status;
}

/* Between stretches of recording it is not known what happened. */
static enum prof_status recorded_stretches(struct prof_facts *f, struct prof_error *err)
{
    struct prof_recorded recorded;
    struct prof_intervals asked = {.data = &(struct prof_interval){f->begin_ns, f->end_ns},
                                   .count = 1};
    enum prof_status status = prof_recorded(f->capture, NULL, &recorded, err);
    if (!status && !prof_intervals_intersection(&asked, recorded.in_part ? &recorded.spans : &asked,
                                                &f->recorded))
        status = prof_out_of_memory(err);
    prof_recorded_free(&recorded);
    return status;
}

/* Sums of everything stay below this, so that no rule has to watch for overflow; a real run would
 * need seventy years of device time for it. */
#define MOST (INT64_C(1) << 61)

/* What is known of another phase goes. */
static void clear_phase(struct prof_facts *f)
{
    size_t known = offsetof(struct prof_shape, count); /* what is not of the window stands before */
    for (size_t i = 0; i < f->shapes.count; i++)
        memset((char *)&f->shapes.data[i] + known, 0, sizeof f->shapes.data[i] - known);
    for (size_t i = 0; i < f->devices.count; i++) {
        const struct prof_device_facts whole = f->devices.data[i];
        f->devices.data[i] = (struct prof_device_facts){
            .id = whole.id,
            .device = whole.device,
            .launch_way_ns = whole.launch_way_ns,
            .dispatch_floor_ns = whole.dispatch_floor_ns,
        };
    }
    prof_map_clear(&f->launchers);
}

static bool note_operators(struct prof_facts *f)
{
    f->is_operator = calloc(f->range_texts.list.count + 1, sizeof *f->is_operator);
    for (size_t i = 0; f->is_operator && i < f->range_texts.list.count; i++) {
        const char *text = f->range_texts.list.data[i];
        f->is_operator[i] = text && prof_range_name_is_operator(text);
        f->has_operators |= f->is_operator[i];
    }
    return f->is_operator != NULL;
}

enum prof_status prof_facts_phase(struct prof_facts *f, size_t phase, struct prof_error *err)
{
    if (!f->is_operator) {
        PROF_TRY(prof_facts_read_clocks(f, err));
        PROF_TRY(prof_facts_read_cupti(f, err));
        if (!note_operators(f))
            return prof_out_of_memory(err);
    }
    clear_phase(f);
    f->phase = &f->phases.list.data[phase];
    f->begin = f->phase->begin;
    f->end = f->phase->end;
    f->step_name = f->phase->iterations.name;
    f->steps = f->phase->iterations.source == PROF_ITERATION_RUN ? 0 : f->phase->iterations.steady;
    if (!prof_facts_waterfall(f) || !prof_facts_devices(f))
        return prof_out_of_memory(err);
    prof_facts_clocks(f);
    return prof_overhead_estimate(f, &f->phases.list.data[phase], err);
}

static enum prof_status load_facts(struct prof_facts *f, struct prof_capture *capture,
                                   const struct prof_filter *filter, bool few, bool phase,
                                   struct prof_error *err)
{
    struct prof_scope scope;
    *f = (struct prof_facts){
        .capture = capture, .end_ns = prof_end_ns(capture), .without_roofs = !phase};
    enum prof_status status = prof_scope_open(&scope, capture, filter, err);
    if (!status) {
        if (f->end_ns == PROF_UNKNOWN)
            f->end_ns = 0;
        f->end_ns = scope.end_ns < f->end_ns ? scope.end_ns : f->end_ns;
        f->begin_ns = scope.begin_ns < f->end_ns ? scope.begin_ns : f->end_ns;
        status = recorded_stretches(f, err);
        status = status ? status : prof_pauses_read(capture, &f->pauses, err);
        status = status ? status : prof_sampled_read(capture, &f->sampled, err);
        if (!status && few && capture->configs.count > PROF_FACTS_CONFIGS)
            status = choose_kept_configs(f, err);
        if (!status)
            status = scan_facts(f, filter, &scope, err);
    }
    prof_scope_close(&scope);
    f->impossible = f->total_ns > MOST || f->total_bytes > MOST || f->end_ns > MOST;
    if (status || f->impossible)
        return status;
    if (!prof_facts_library(f) || !prof_facts_ways(f, phase))
        return prof_out_of_memory(err);
    status = prof_phases_find(&f->phases, f, filter, err);
    if (status || !phase)
        return status;
    status = prof_facts_phase(f, f->phases.main, err);
    return status ? status : prof_facts_missing(f, err);
}

enum prof_status prof_facts_load(struct prof_facts *f, struct prof_capture *capture,
                                 const struct prof_filter *filter, struct prof_error *err)
{
    return load_facts(f, capture, filter, false, true, err);
}

enum prof_status prof_facts_load_few(struct prof_facts *f, struct prof_capture *capture,
                                     const struct prof_filter *filter, struct prof_error *err)
{
    return load_facts(f, capture, filter, true, true, err);
}

enum prof_status prof_facts_load_phases(struct prof_facts *f, struct prof_capture *capture,
                                        const struct prof_filter *filter, struct prof_error *err)
{
    return load_facts(f, capture, filter, true, false, err);
}

void prof_facts_free(struct prof_facts *f)
{
    free(f->kept);
    prof_phases_free(&f->phases);
    prof_facts_free_index(f);
    prof_array_free(&f->recorded);
    prof_array_free(&f->pauses);
    prof_sampled_free(&f->sampled);
    prof_range_index_close(&f->ranges);
    prof_texts_free(&f->range_texts);
    free(f->is_operator);
    prof_array_free(&f->clocks);
    prof_array_free(&f->cupti);
    for (enum prof_op_kind kind = PROF_OP_KERNEL; kind <= PROF_OP_GRAPH; kind++)
        prof_array_free(&f->ops[kind]);
    prof_array_free(&f->places);
    prof_map_free(&f->place_index);
    prof_array_free(&f->long_ops);
    prof_array_free(&f->unfinished);
    prof_array_free(&f->untimed);
    prof_roofline_free(&f->roofs);
    prof_array_free(&f->shapes);
    prof_map_free(&f->shape_index);
    prof_array_free(&f->devices);
    prof_map_free(&f->device_index);
    prof_array_free(&f->calls);
    prof_map_free(&f->launchers);
    prof_array_free(&f->lifetimes);
    prof_array_free(&f->compiles);
    prof_array_free(&f->process_compiles);
    prof_map_free(&f->launching);
    *f = (struct prof_facts){0};
}
