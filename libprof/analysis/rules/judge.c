/* Drafts of findings; see judge.h. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/rules/judge.h"
#include "libprof/base/cxx_name.h"
#include "libprof/base/saturate.h"

struct prof_draft *prof_found(struct prof_judge *judge, double confidence)
{
    static _Thread_local struct prof_draft thrown_away;
    struct prof_draft *draft = prof_array_add(&judge->drafts);
    if (!draft) {
        judge->failed = true;
        draft = &thrown_away;
    }
    *draft = (struct prof_draft){
        .finding = {.rule = &judge->rule->page,
                    .fix = judge->rule->page.fix,
                    .device = judge->device ? judge->device->id : 0,
                    .devices = judge->device ? 1 : 0,
                    .confidence = confidence,
                    .bytes = PROF_UNKNOWN,
                    .whatif_ns = PROF_UNKNOWN},
        .device = judge->device_index,
        .most = PROF_SEVERITY_CRITICAL,
    };
    return draft;
}

/* ---- figures --------------------------------------------------------------------------------- */

static struct prof_number *find_number(struct prof_finding *finding, const char *name,
                                       size_t length)
{
    for (size_t i = 0; i < finding->number_count; i++)
        if (!strncmp(finding->numbers[i].name, name, length) && !finding->numbers[i].name[length])
            return &finding->numbers[i];
    return NULL;
}

void prof_number(struct prof_draft *draft, const char *name, double value,
                 enum prof_number_unit unit)
{
    struct prof_finding *finding = &draft->finding;
    struct prof_number *number = find_number(finding, name, strlen(name));
    if (!number && finding->number_count < PROF_FINDING_NUMBERS)
        number = &finding->numbers[finding->number_count++];
    if (number)
        *number = (struct prof_number){name, value, unit, 0};
}

void prof_add_figures(struct prof_draft *draft, const struct prof_figure *figures)
{
    static const struct {
        const char *ending;
        enum prof_number_unit unit;
    } units[] = {{"ns", PROF_NUMBER_NS},
                 {"bytes", PROF_NUMBER_BYTES},
                 {"rate", PROF_NUMBER_RATE},
                 {"share", PROF_NUMBER_SHARE},
                 {"factor", PROF_NUMBER_PLAIN}};
    for (; figures->name; figures++) {
        const char *last = strrchr(figures->name, '_');
        enum prof_number_unit unit = PROF_NUMBER_COUNT;
        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
            if (!strcmp(last ? last + 1 : figures->name, units[i].ending))
                unit = units[i].unit;
        prof_number(draft, figures->name, figures->value, unit);
    }
}

struct prof_text prof_number_text(const struct prof_number *number)
{
    switch (number->unit) {
    case PROF_NUMBER_COUNT:
        return prof_count(number->value < 9e18 ? (int64_t)(number->value + 0.5) : INT64_MAX);
    case PROF_NUMBER_NS:
        return prof_duration(number->value);
    case PROF_NUMBER_BYTES:
        return prof_bytes(number->value);
    case PROF_NUMBER_RATE:
        return prof_rate(number->value);
    case PROF_NUMBER_SHARE:
        return prof_percent(number->value);
    default:
        return prof_ratio(number->value);
    }
}

void prof_number_label(const struct prof_number *number, char *out, size_t size)
{
    static const char *const endings[] = {"_ns", "_bytes", "_share"};
    size_t length = strlen(number->name), i;
    for (size_t k = 0; k < sizeof endings / sizeof endings[0]; k++) {
        size_t ending = strlen(endings[k]);
        if (length > ending && !strcmp(number->name + length - ending, endings[k]))
            length -= ending;
    }
    for (i = 0; i < length && i + 1 < size; i++)
        out[i] = number->name[i] == '_' ? ' ' : number->name[i];
    out[i] = 0;
}

void prof_finding_formula(const struct prof_finding *finding, char *out, size_t size)
{
    out[0] = 0;
    for (size_t i = 0; i < finding->number_count; i++) {
        const struct prof_number *number = &finding->numbers[i];
        if (number->term)
            prof_append(out, size, "%s%s",
                        number->term < 0 ? " - "
                        : *out           ? " + "
                                         : "",
                        number->name);
    }
}

/* ---- the sentence ---------------------------------------------------------------------------- */

/* "{launches}" or "{launches|launch|launches}" at *format, moved behind it. A name that is no
 * number of the draft stays as it is. */
static struct prof_text placeholder(struct prof_draft *draft, const char **format)
{
    const char *name = *format + 1;
    size_t length = strcspn(name, "}|"), whole = strcspn(*format, "}") + 1;
    const struct prof_number *number = find_number(&draft->finding, name, length);
    struct prof_text text;
    if (!number) {
        snprintf(text.text, sizeof text.text, "%.*s", (int)whole, *format);
    } else {
        const char *noun = name + length;
        text = prof_number_text(number);
        if (*noun == '|') {
            bool one = !strcmp(text.text, "1");
            const char *many = noun + 1 + strcspn(noun + 1, "|") + 1;
            const char *word = one ? noun + 1 : many;
            prof_append(text.text, sizeof text.text, " %.*s", (int)strcspn(word, "|}"), word);
        }
    }
    *format += whole;
    return text;
}

void prof_say(struct prof_draft *draft, const char *format, ...)
{
    char out[sizeof draft->finding.seen];
    size_t used = 0, before = strlen(draft->finding.seen);
    va_list texts;
    va_start(texts, format);
    while (*format) {
        struct prof_text figure;
        const char *piece = figure.text;
        if (*format == '{') {
            figure = placeholder(draft, &format);
        } else if (format[0] == '%' && format[1] == 's') {
            piece = va_arg(texts, const char *);
            format += 2;
        } else {
            format += format[0] == '%' && format[1] == '%';
            figure.text[0] = *format++;
            figure.text[1] = 0;
        }
        size_t length = strlen(piece);
        if (length >= sizeof out - used)
            length = sizeof out - 1 - used;
        memcpy(out + used, piece, length);
        used += length;
    }
    va_end(texts);
    if (!before || used < sizeof draft->finding.seen - before) {
        memcpy(draft->finding.seen + before, out, used);
        draft->finding.seen[before + used] = 0;
    }
}

void prof_say_per_iteration(struct prof_judge *judge, struct prof_draft *draft, const char *name,
                            const char *of)
{
    const struct prof_number *all = find_number(&draft->finding, of, strlen(of));
    if (!all || prof_steps(judge) <= 0)
        return;
    prof_number(draft, name, all->value / (double)prof_steps(judge), all->unit);
    const struct prof_number *number = find_number(&draft->finding, name, strlen(name));
    if (number)
        prof_say(draft, ", %s per iteration", prof_number_text(number).text);
}

/* ---- claims ---------------------------------------------------------------------------------- */

void prof_term(struct prof_draft *draft, const char *name, int64_t ns, int sign)
{
    struct prof_number *number = find_number(&draft->finding, name, strlen(name));
    double before = number ? number->value : 0;
    prof_number(draft, name, before + (double)ns, PROF_NUMBER_NS);
    number = find_number(&draft->finding, name, strlen(name));
    if (number)
        number->term = sign;
}

void prof_claim(struct prof_judge *judge, struct prof_draft *draft, const char *term,
                enum prof_slice slice, int64_t ns)
{
    int64_t left = judge->facts->devices.data[draft->device].slice_ns[slice] - draft->claims[slice];
    ns = ns < left ? ns : left;
    ns = ns > 0 ? ns : 0;
    draft->claims[slice] += ns;
    prof_term(draft, term, ns, 1);
}

void prof_claim_kernel(struct prof_judge *judge, struct prof_draft *draft,
                       const struct prof_shape *shape, double part)
{
    if (judge->failed || !(part > 0) || shape->alone_ns <= 0)
        return;
    struct prof_least *slot = prof_array_add(&draft->least);
    if (!slot) {
        judge->failed = true;
        return;
    }
    double left = part < 1 ? (double)shape->alone_ns * (1 - part) : 0;
    *slot = (struct prof_least){(uint32_t)(shape - judge->facts->shapes.data), (int64_t)left};
}

struct timed_kernel {
    uint32_t shape;
    int64_t ns;
};

PROF_ORDER(by_shape_and_time, struct timed_kernel, PROF_ASCENDING(shape), PROF_ASCENDING(ns))

/* Fewer have no fastest tenth. */
#define LEAST_ALIKE 10

/* By what part the kernels of each shape would take less, were none slower than the fastest tenth.
 */
static double *slowed_parts(const struct prof_facts *f)
{
    PROF_ARRAY(struct timed_kernel) kernels = {0};
    double *parts = calloc(f->shapes.count + 1, sizeof *parts);
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    while (parts && (op = prof_facts_next_in_phase(f, &walk, &kind))) {
        const struct prof_device_facts *device = &f->devices.data[f->shapes.data[op->shape].device];
        if (kind != PROF_OP_KERNEL || !prof_device_is_host(device->device) ||
            !prof_facts_has(f, op->start))
            continue;
        struct timed_kernel *slot = prof_array_add(&kernels);
        if (!slot) {
            free(parts);
            parts = NULL;
        } else {
            *slot = (struct timed_kernel){op->shape, op->duration};
        }
    }
    if (parts && kernels.count)
        qsort(kernels.data, kernels.count, sizeof *kernels.data, by_shape_and_time);
    for (size_t first = 0, end; parts && first < kernels.count; first = end) {
        double sum = 0, more = 0;
        for (end = first;
             end < kernels.count && kernels.data[end].shape == kernels.data[first].shape; end++)
            sum += (double)kernels.data[end].ns;
        if (end - first < LEAST_ALIKE)
            continue;
        int64_t fast = kernels.data[first + (end - first) / 10].ns;
        for (size_t i = first; i < end; i++)
            more += kernels.data[i].ns > fast ? (double)(kernels.data[i].ns - fast) : 0;
        parts[kernels.data[first].shape] = sum > 0 ? more / sum : 0;
    }
    prof_array_free(&kernels);
    return parts;
}

void prof_claim_slowed(struct prof_judge *judge, struct prof_draft *draft)
{
    const struct prof_facts *f = judge->facts;
    const struct prof_shape *shape;
    int64_t beside = 0;
    double slowed = 0;
    if (judge->failed || !prof_is_host(judge))
        return;
    if (!judge->slowed)
        judge->slowed = slowed_parts(f);
    judge->failed |= !judge->slowed;
    for (size_t at = 0; judge->slowed && (shape = prof_next_shape(judge, &at));)
        slowed += (double)shape->alone_ns * judge->slowed[shape - f->shapes.data];
    for (int i = 0; i < PROF_SLICES; i++)
        beside += i == PROF_SLICE_KERNEL || i == PROF_SLICE_BOTH ? 0 : draft->claims[i];
    draft->slowed_in_all_ns = (int64_t)slowed;
    draft->slowed_ns = prof_min(draft->slowed_in_all_ns, beside);
}

void prof_mend(struct prof_draft *draft, struct prof_edit edit)
{
    draft->edit = edit;
    draft->has_edit = true;
}

/* What two drafts claim of the same states and kernels; `saved`: of each shape, by the first. */
static int64_t shared_claims(const struct prof_draft *draft, const struct prof_draft *other,
                             const int64_t *saved, const struct prof_facts *f)
{
    int64_t sum = 0;
    for (int i = 0; i < PROF_SLICES; i++)
        sum = prof_add(sum, prof_min(draft->claims[i], other->claims[i]));
    for (size_t i = 0; i < other->least.count; i++) {
        const struct prof_least *least = &other->least.data[i];
        int64_t own = f->shapes.data[least->shape].alone_ns - least->ns;
        sum = prof_add(sum, prof_min(saved[least->shape], own));
    }
    return sum;
}

bool prof_find_same_cause(const struct prof_judge *judge, size_t at)
{
    const struct prof_facts *f = judge->facts;
    struct prof_draft *draft = &judge->drafts.data[at];
    int64_t *saved = calloc(f->shapes.count + 1, sizeof *saved), most = 0;
    for (size_t i = 0; saved && i < draft->least.count; i++) {
        const struct prof_least *least = &draft->least.data[i];
        saved[least->shape] = f->shapes.data[least->shape].alone_ns - least->ns;
    }
    for (size_t i = 0; saved && i < at; i++) {
        const struct prof_draft *other = &judge->drafts.data[i];
        int64_t shared = other->about_memory || other->device != draft->device ||
                                 other->finding.rule == draft->finding.rule
                             ? 0
                             : shared_claims(draft, other, saved, f);
        if (shared > most) {
            most = shared;
            draft->finding.same_cause = other->finding.rule;
        }
    }
    bool ok = saved != NULL;
    free(saved);
    return ok;
}

/* ---- places ---------------------------------------------------------------------------------- */

#define DEPTH 12

static bool by_lane_depth(const struct prof_range_node *a, const struct prof_range_node *b)
{
    return a->begin < b->begin || (a->begin == b->begin && a->end > b->end);
}

void prof_range_path_text(const struct prof_facts *f, uint32_t thread, int64_t time, char *out,
                          size_t size)
{
    /* Searching moves a lane's hint only: the index stays what it is. */
    struct prof_range_index *ranges = (struct prof_range_index *)(uintptr_t)&f->ranges;
    struct prof_range_thread *lanes = prof_range_thread(ranges, thread);
    const struct prof_range_node *around[DEPTH];
    size_t depth = 0;
    for (size_t l = 0; lanes && l < lanes->lanes.count; l++) {
        uint32_t at = prof_range_at(ranges, &lanes->lanes.data[l], time);
        for (; at != PROF_NO_RANGE && depth < DEPTH; at = ranges->nodes.data[at].parent) {
            const struct prof_range_node *node = &ranges->nodes.data[at];
            size_t k = depth++;
            for (; k && by_lane_depth(node, around[k - 1]); k--)
                around[k] = around[k - 1];
            around[k] = node;
        }
    }
    out[0] = 0;
    for (size_t i = 0; i < depth; i++) {
        const char *name = f->range_texts.list.data[around[i]->group];
        prof_append(out, size, "%s%s", i ? "/" : "", name ? name : "?");
    }
}

void prof_place(struct prof_judge *judge, struct prof_draft *draft, const struct prof_spot *spot)
{
    struct prof_finding *finding = &draft->finding;
    const struct prof_facts *f = judge->facts;
    if (finding->place_count == PROF_FINDING_PLACES || spot->duration <= 0)
        return;
    struct prof_place *place = &finding->places[finding->place_count++];
    *place = (struct prof_place){
        .name = spot->stream && spot->shape < f->shapes.count
                    ? prof_shape_name(&f->shapes.data[spot->shape])
                    : NULL,
        .stream = spot->stream,
        .thread = spot->thread,
        .start_ns = spot->start,
        .duration_ns = spot->duration,
    };
    prof_range_path_text(f, spot->thread, spot->start, place->path, sizeof place->path);
}

void prof_places(struct prof_judge *judge, struct prof_draft *draft, const struct prof_spots *spots)
{
    for (int i = 0; i < PROF_PLACES; i++)
        prof_place(judge, draft, &spots->worst[i]);
}

struct prof_spot prof_longest_spot(const struct prof_judge *judge, const struct prof_shape *shape)
{
    return (struct prof_spot){shape->longest.start, shape->longest.duration, shape->longest.stream,
                              shape->longest.thread, (uint32_t)(shape - judge->facts->shapes.data)};
}

/* ---- small things ---------------------------------------------------------------------------- */

void prof_abstain(struct prof_judge *judge, const char *why)
{
    for (size_t i = 0; i < judge->abstentions.count; i++) {
        struct prof_abstention *told = &judge->abstentions.data[i];
        if (told->rule == &judge->rule->page && told->why == why) {
            if (!judge->device || told->device != judge->device->id)
                told->device = 0; /* of several */
            return;
        }
    }
    struct prof_abstention *slot = prof_array_add(&judge->abstentions);
    if (slot)
        *slot = (struct prof_abstention){&judge->rule->page, judge->device ? judge->device->id : 0,
                                         why};
    else
        judge->failed = true;
}

bool prof_misses_work(struct prof_judge *judge)
{
    if (judge->facts->missing_share < PROF_MISSING_WORK)
        return false;
    prof_abstain(judge, "work of the device was not recorded (Trust): what looks idle may be that");
    return true;
}

int64_t prof_steps(const struct prof_judge *judge)
{
    return judge->device ? judge->device->steps : judge->facts->steps;
}

bool prof_in_loop(const struct prof_judge *judge, int64_t count, int64_t distinct)
{
    int64_t most = 0;
    if (count < 3 || prof_steps(judge) > 0)
        return count >= 3 && 2 * distinct >= prof_steps(judge);
    for (size_t i = 0; i < judge->facts->shapes.count; i++) {
        const struct prof_shape *shape = &judge->facts->shapes.data[i];
        if (prof_is_kernel(shape) && shape->device == judge->device_index && shape->count > most)
            most = shape->count;
    }
    return 2 * count >= most;
}

/* 1: the first of it in its iteration. */
static int64_t note_iteration(const struct prof_facts *f, bool *seen, uint32_t thread, int64_t time)
{
    size_t at = prof_facts_called(f, time)
                    ? prof_iteration_since(&f->phase->iterations, thread, time)
                    : PROF_NO_ITERATION;
    if (at == PROF_NO_ITERATION || seen[at])
        return 0;
    seen[at] = true;
    return 1;
}

int64_t prof_iterations_with(struct prof_judge *judge, unsigned classes)
{
    const struct prof_facts *f = judge->facts;
    bool *seen = calloc(f->phase->iterations.list.count + 1, sizeof *seen);
    int64_t distinct = 0;
    judge->failed |= !seen;
    if (!seen)
        return 0;
    for (size_t at = 0, i; prof_facts_next_item(f, &f->phase_calls, f->calls.count, &at, &i);) {
        const struct prof_call *call = &f->calls.data[i];
        if (classes & 1u << call->class_)
            distinct += note_iteration(f, seen, call->thread, call->start);
    }
    bool builds = classes & 1u << WIRE_CLASS_BUILD;
    for (size_t i = 0; builds && i < f->compiles.count; i++)
        distinct += note_iteration(f, seen, f->compiles.data[i].thread, f->compiles.data[i].begin);
    free(seen);
    return distinct;
}

double prof_of_window(const struct prof_judge *judge, int64_t ns)
{
    int64_t window = prof_facts_window_ns(judge->facts);
    return window > 0 ? (double)ns / (double)window : 0;
}

bool prof_is_cuda(const struct prof_judge *judge)
{
    const struct prof_device *device = judge->device->device;
    return device && device->api && !strcmp(device->api, "cuda");
}

/* "/usr/bin/python3.12 -u train.py", but not "pythonic" */
static bool begins_python(const char *command)
{
    static const char name[] = "python";
    size_t path = strcspn(command, " "), length = sizeof name - 1;
    while (path && command[path - 1] != '/')
        path--;
    return !strncmp(command + path, name, length) &&
           strchr(" .-0123456789", command[path + length]);
}

bool prof_is_python(const struct prof_judge *judge)
{
    const struct prof_facts *f = judge->facts;
    size_t at = 0;
    uint64_t key, launches;
    while (prof_map_next(&f->launchers, &at, &key, &launches)) {
        const struct prof_thread *thread = prof_thread(f->capture, (int64_t)(key >> 32));
        const struct prof_process *process =
            thread ? prof_process(f->capture, thread->process) : NULL;
        if ((uint32_t)key == judge->device_index && process && process->command &&
            begins_python(process->command))
            return true;
    }
    return false;
}

bool prof_is_host(const struct prof_judge *judge)
{
    return prof_device_is_host(judge->device ? judge->device->device : NULL);
}

bool prof_shares_memory(const struct prof_judge *judge)
{
    return prof_device_shares_memory(judge->device ? judge->device->device : NULL);
}

#define PLAIN 40 /* bytes; a longer name loses what its place in a report loses too */

struct prof_short prof_short_name(const char *name)
{
    struct prof_short cut;
    if (!name || !*name)
        name = name ? "(empty)" : "n/a";
    size_t length = strlen(name);
    if (length > PLAIN) {
        name = prof_name_without_type(name);
        length = prof_name_without_arguments(name);
    }
    if (length < sizeof cut.text) {
        memcpy(cut.text, name, length);
        cut.text[length] = 0;
        return cut;
    }
    length = sizeof cut.text - 4;
    while (length && ((unsigned char)name[length] & 0xc0) == 0x80)
        length--; /* not within a character */
    memcpy(cut.text, name, length);
    memcpy(cut.text + length, "...", 4);
    return cut;
}

struct prof_shape *prof_next_shape(const struct prof_judge *judge, size_t *at)
{
    for (; *at < judge->facts->shapes.count; ++*at) {
        struct prof_shape *shape = &judge->facts->shapes.data[*at];
        if (shape->device != judge->device_index || !shape->count || shape->collective)
            continue;
        ++*at;
        return shape;
    }
    return NULL;
}

int64_t prof_kernel_start_ns(const struct prof_judge *judge, int64_t most_ns)
{
    const struct prof_shape *shape;
    int64_t start = most_ns;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));)
        start = prof_is_kernel(shape) && shape->min_ns < start ? shape->min_ns : start;
    return start > 0 ? start : 0;
}

int64_t prof_collective_ns(const struct prof_judge *judge)
{
    int64_t sum = 0;
    for (size_t i = 0; i < judge->facts->shapes.count; i++) {
        const struct prof_shape *shape = &judge->facts->shapes.data[i];
        if (shape->device == judge->device_index && shape->collective)
            sum = prof_add(sum, shape->sum_ns);
    }
    return sum;
}

const char *prof_shape_name(const struct prof_shape *shape)
{
    if (shape->kind == PROF_OP_KERNEL)
        return shape->config && shape->config->name ? shape->config->name : "kernel";
    return shape->kind == PROF_OP_GRAPH ? "CUDA graph" : prof_copy_kind_text(shape->copy_kind);
}

/* ---- roofs ----------------------------------------------------------------------------------- */

static uint64_t roof_key(const struct prof_config *config, int64_t device)
{
    return (uint64_t)(config ? config->id : 0) << 16 ^ (uint64_t)device;
}

bool prof_index_roofs(struct prof_judge *judge)
{
    for (size_t i = 0; i < judge->roofs->count; i++) {
        const struct prof_roofline_point *point = &judge->roofs->points[i];
        if (!prof_map_put(&judge->roof_index, roof_key(point->config, point->device), i))
            return false;
    }
    return true;
}

const struct prof_roofline_point *prof_roof_of(const struct prof_judge *judge,
                                               const struct prof_shape *shape)
{
    int64_t device = judge->device->id;
    if (shape->kind != PROF_OP_KERNEL)
        return NULL;
    const uint64_t *at = prof_map_get(&judge->roof_index, roof_key(shape->config, device));
    const struct prof_roofline_point *point = at ? &judge->roofs->points[*at] : NULL;
    return point && point->config == shape->config && point->device == device ? point : NULL;
}
