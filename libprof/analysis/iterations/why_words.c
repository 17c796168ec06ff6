/* Why an iteration is slow, in words: what the first part that deviates did more or longer than is
 * usual, what ran or was waited for meanwhile, and where that is. */
#include <stdio.h>
#include <string.h>

#include "libprof/analysis/iterations/iterations.h"
#include "libprof/analysis/rules/judge.h"
#include "libprof/base/format.h"
#include "libprof/base/saturate.h"

static const struct prof_words kinds[] = {PROF_ITERATION_PARTS(PROF_WORDS)};

const char *prof_part_kind_name(enum prof_part_kind kind)
{
    return kinds[kind].name;
}

const char *prof_part_kind_text(enum prof_part_kind kind)
{
    return kinds[kind].text;
}

/* The device's clock is read ten times a second: most iterations have no sample of their own. Then
 * the last one before and the first one after, where they are near, say what it may have been. */
#define CLOCK_NEAR_NS INT64_C(200000000)

struct clock_means {
    const struct prof_explaining *w;
    int64_t device, begin, end;
    double own, others;
    int64_t own_count, other_count;
    int64_t before, after, before_mhz, after_mhz; /* distances; of the nearest samples outside */
};

static bool add_clock_mean(void *user, sqlite3_stmt *row)
{
    struct clock_means *m = user;
    const struct prof_device *device = prof_device(m->w->facts->capture, prof_column_id(row, 0));
    int64_t start = prof_column_int(row, 1), mhz = prof_column_int(row, 2);
    if (!device || device->physical != m->device || mhz <= 0 || mhz > 1000000)
        return true;
    if (start >= m->begin && start < m->end) {
        m->own += (double)mhz;
        m->own_count++;
        return true;
    }
    m->others += (double)mhz;
    m->other_count++;
    bool later = start >= m->end;
    int64_t distance = later ? prof_subtract(start, m->end) : prof_subtract(m->begin, start);
    int64_t *nearest = later ? &m->after : &m->before;
    if (distance < *nearest) {
        *nearest = distance;
        *(later ? &m->after_mhz : &m->before_mhz) = mhz;
    }
    return true;
}

#define LOWER_CLOCK 0.95

/* Kernels that are slower where the clock is lower. */
static bool say_clock(const struct prof_explaining *w, const struct prof_dissected *one,
                      struct prof_iteration_why *why)
{
    struct clock_means m = {.w = w,
                            .device = one->row->device,
                            .begin = one->row->start_ns,
                            .end = prof_add(one->row->start_ns, one->row->duration_ns),
                            .before = CLOCK_NEAR_NS,
                            .after = CLOCK_NEAR_NS};
    if (prof_scan(w->facts->capture, "SELECT device, start, sm_mhz FROM device_clock",
                  add_clock_mean, &m, NULL) ||
        m.other_count < 2)
        return false;
    bool after = m.after_mhz && (!m.before_mhz || m.after_mhz < m.before_mhz);
    double near = (double)(after ? m.after_mhz : m.before_mhz);
    double own = m.own_count ? m.own / (double)m.own_count : near;
    double others = m.own_count ? m.others / (double)m.other_count
                                : (m.others - near) / (double)(m.other_count - 1);
    if (own <= 0 || own >= LOWER_CLOCK * others)
        return false;
    PROF_SAY_WHY(why, "; the device ran at %.0f MHz%s%s%s, usually at %.0f MHz", own,
                 m.own_count ? "" : ", read ",
                 m.own_count ? "" : prof_duration_ns(after ? m.after : m.before).text,
                 m.own_count ? ""
                 : after     ? " after it"
                             : " before it",
                 others);
    return true;
}

/* Work of another stream at the same time, that the others do not have. */
static void say_beside(const struct prof_explaining *w, const struct prof_dissected *one,
                       size_t cause, const struct prof_usual *u, struct prof_iteration_why *why)
{
    double most = 0;
    size_t other = SIZE_MAX;
    for (size_t p = 0; p < one->cells.count; p++) {
        const struct prof_part_key *key = &w->parts.parts.data[p];
        double more = (double)one->cells.data[p].work_ns - u->work[p];
        bool device = key->kind <= PROF_PART_OF_MEMSET;
        if (p == cause || !device || more <= most ||
            (double)one->cells.data[p].count <= u->counts[p])
            continue;
        most = more;
        other = p;
    }
    if (other == SIZE_MAX)
        return;
    const struct prof_part_key *key = &w->parts.parts.data[other];
    PROF_SAY_WHY(why, "; beside it ran %s %s, which usually does not",
                 prof_part_kind_text(key->kind), key->name ? key->name : "");
}

/* The rank whose part in the operation, or where it was not matched in one of the same name, began
 * last while this one waited, if that is most of what the collective takes more. */
static void say_late_rank(const struct prof_explaining *w, const struct prof_dissected *one,
                          const struct prof_part_piece *piece, int64_t more,
                          struct prof_iteration_why *why)
{
    const struct prof_facts *f = w->facts;
    const struct prof_shape *shape = &f->shapes.data[piece->shape];
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    int64_t latest = piece->begin;
    const struct prof_process *late = NULL;
    uint32_t joined = prof_rank_operation(&w->ranks, why->place.start_ns, why->place.stream);
    bool others = false;
    prof_facts_seek(f, &walk, one->row->start_ns);
    while ((op = prof_facts_next(f, &walk, &kind)) && op->start < piece->end) {
        const struct prof_shape *its = &f->shapes.data[op->shape];
        const struct prof_thread *thread = prof_thread(f->capture, op->thread);
        if (its->device == shape->device || !its->collective ||
            prof_add(op->start, op->duration) <= piece->begin ||
            (joined ? prof_rank_operation(&w->ranks, op->start, op->stream) != joined
                    : strcmp(prof_shape_name(its), prof_shape_name(shape)) != 0))
            continue;
        others = true;
        if (op->start <= latest)
            continue;
        latest = op->start;
        late = thread ? prof_process(f->capture, thread->process) : NULL;
    }
    if (others && latest - piece->begin < more / 2)
        PROF_SAY_WHY(why, "; the last rank came after %s: the collective itself took longer",
                     prof_duration_ns(latest - piece->begin).text);
    else if (late && late->rank != PROF_UNKNOWN)
        PROF_SAY_WHY(why, "; it waited for rank %lld, which came %s later", (long long)late->rank,
                     prof_duration_ns(latest - piece->begin).text);
    else
        PROF_SAY_WHY(why, "; a collective that takes longer waits for a late rank");
}

/* "never", "once", "2.5 times": on average. */
static struct prof_text how_often(double count)
{
    struct prof_text text = {"once"};
    if (count == 0)
        strcpy(text.text, "never");
    else if (count != 1)
        snprintf(text.text, sizeof text.text, "%.3g times", count);
    return text;
}

static void say_kernels(const struct prof_explaining *w, const struct prof_dissected *one, size_t p,
                        const struct prof_usual *u, const struct prof_part_piece *piece,
                        struct prof_iteration_why *why)
{
    struct prof_part_cell cell = prof_part_cell(one, p);
    const struct prof_part_key *key = &w->parts.parts.data[p];
    double usual = u->counts[p] > 0 ? u->work[p] / u->counts[p] : 0;
    bool more = (double)cell.count > u->counts[p] + 0.5;
    bool longer = cell.count > 0 && (double)cell.work_ns / (double)cell.count > 1.2 * usual;
    PROF_SAY_WHY(why, "%s%s%s: ", prof_part_kind_text(key->kind), key->name ? " " : "",
                 key->name ? key->name : "");
    if (more && u->counts[p] <= 0)
        PROF_SAY_WHY(why, "%s of %s each, usually none", prof_count(cell.count).text,
                     prof_duration_ns(cell.work_ns / cell.count).text);
    else if (more && !longer)
        PROF_SAY_WHY(why, "%s times, usually %s", prof_count(cell.count).text,
                     how_often(u->counts[p]).text);
    else if (more)
        PROF_SAY_WHY(why, "%s times and %s each, usually %s and %s", prof_count(cell.count).text,
                     prof_duration_ns(cell.work_ns / cell.count).text, how_often(u->counts[p]).text,
                     prof_duration_ns((int64_t)usual).text);
    else
        PROF_SAY_WHY(why, "%s each, usually %s",
                     prof_duration_ns(cell.count ? cell.work_ns / cell.count : 0).text,
                     prof_duration_ns((int64_t)usual).text);
    if (key->kind == PROF_PART_OF_COLLECTIVE)
        say_late_rank(w, one, piece, why->parts[p].more_ns, why);
    else if (key->kind == PROF_PART_OF_KERNEL && !more && !say_clock(w, one, why))
        say_beside(w, one, p, u, why);
}

#define SEARCHED_PIECES 64

/* Where the host was in the first piece; if no sample lies in that, in the next one that has some.
 */
static bool place_of_part(const struct prof_explaining *w, const struct prof_dissected *one,
                          const struct prof_part_piece *piece, char *out, size_t size)
{
    const struct prof_part_piece *end = one->pieces.data + one->pieces.count;
    int searched = 0;
    for (const struct prof_part_piece *next = piece; next < end && searched < SEARCHED_PIECES;
         next++)
        if (next->part == piece->part && ++searched &&
            prof_overlays_place(w->parts.overlays, w->facts->capture, next->thread, next->begin,
                                next->end, out, size))
            return true;
    return false;
}

static void say_faults(const struct prof_part_cell *cell, double usual,
                       struct prof_iteration_why *why)
{
    PROF_SAY_WHY(why, "%s page faults, ", prof_count(cell->count).text);
    if (cell->major)
        PROF_SAY_WHY(why, "%s of them from a disk or swap, ", prof_count(cell->major).text);
    if (usual == 0)
        PROF_SAY_WHY(why, "usually none");
    else
        PROF_SAY_WHY(why, "usually %.3g", usual);
}

/* A page fault takes no less: the way into the kernel and back, and clearing a page. */
#define MIN_FAULT_NS 100

/* Faults that are more than in any iteration compared, and enough to matter, where no sample says
 * how long they took. */
static void say_faults_beside(const struct prof_explaining *w, const struct prof_dissected *one,
                              const struct prof_usual *u, size_t cause,
                              struct prof_iteration_why *why)
{
    for (size_t p = 0; p < one->cells.count; p++) {
        const struct prof_part_cell *cell = &one->cells.data[p];
        double more = (double)cell->count - u->counts[p];
        if (w->parts.parts.data[p].kind != PROF_PART_OF_FAULTS || cell->count <= u->most_count[p] ||
            10 * MIN_FAULT_NS * more < (double)why->parts[cause].more_ns)
            continue;
        PROF_SAY_WHY(why, "; ");
        say_faults(cell, u->counts[p], why);
    }
}

void prof_say_cause(const struct prof_explaining *w, const struct prof_dissected *one,
                    struct prof_iteration_why *why, size_t p, const struct prof_usual *u,
                    const struct prof_part_piece *piece)
{
    const struct prof_part_key *key = &w->parts.parts.data[p];
    struct prof_part_cell cell = prof_part_cell(one, p);
    if (key->kind <= PROF_PART_OF_MEMSET) {
        say_kernels(w, one, p, u, piece, why);
        return;
    }
    if (key->kind == PROF_PART_OF_FAULTS)
        say_faults(&cell, u->counts[p], why);
    else
        PROF_SAY_WHY(why, "%s%s%s", prof_part_kind_text(key->kind),
                     !key->name                       ? ""
                     : key->kind == PROF_PART_OF_HOST ? " in range "
                                                      : ": ",
                     key->name ? key->name : "");
    if (key->counts && key->kind != PROF_PART_OF_FAULTS && (double)cell.count > u->counts[p] + 0.5)
        PROF_SAY_WHY(why, ", called %s times, usually %s", prof_count(cell.count).text,
                     how_often(u->counts[p]).text);
    else if (key->counts && piece->call)
        PROF_SAY_WHY(why, ", in one call of %s", prof_duration_ns(why->place.duration_ns).text);
    if (!key->name && piece->shape != PROF_NO_SHAPE)
        PROF_SAY_WHY(why, "%s before %s", key->kind == PROF_PART_OF_FAULTS ? "," : "",
                     prof_shape_name(&w->facts->shapes.data[piece->shape]));
    char place[320];
    if (place_of_part(w, one, piece, place, sizeof place))
        PROF_SAY_WHY(why, ", in %s", place);
    if (key->kind == PROF_PART_OF_HOST || key->kind == PROF_PART_OF_BLOCKED)
        say_faults_beside(w, one, u, p, why);
}

/* When the host's own work ends that a piece is part of: with the call that has a line. What else
 * the thread did meanwhile, as a wait for a lock, is cut out of that work. */
static int64_t end_of_own_work(const struct prof_explaining *w, const struct prof_dissected *one,
                               const struct prof_part_piece *piece)
{
    const struct prof_part_piece *end = one->pieces.data + one->pieces.count;
    while (piece + 1 < end && piece[1].begin == piece->end && piece[1].thread == piece->thread &&
           !piece[1].call && w->parts.parts.data[piece[1].part].kind > PROF_PART_OF_MEMSET)
        piece++;
    return piece->end;
}

void prof_place_piece(const struct prof_explaining *w, const struct prof_dissected *one,
                      const struct prof_part_piece *piece, enum prof_part_kind kind,
                      struct prof_place *place)
{
    const struct prof_facts *f = w->facts;
    *place = (struct prof_place){.stream = piece->stream,
                                 .thread = piece->thread,
                                 .start_ns = piece->begin,
                                 .duration_ns = piece->end - piece->begin};
    if (kind <= PROF_PART_OF_MEMSET && piece->shape != PROF_NO_SHAPE) {
        struct prof_op_walk walk = {0};
        const struct prof_op *op;
        enum prof_op_kind op_kind;
        place->name = prof_shape_name(&f->shapes.data[piece->shape]);
        prof_facts_seek(f, &walk, one->row->start_ns);
        while ((op = prof_facts_next(f, &walk, &op_kind)) && op->start < piece->end) {
            if (op->shape != piece->shape || op->start + op->duration <= piece->begin)
                continue;
            place->start_ns = op->start;
            place->duration_ns = op->duration;
            place->stream = op->stream;
            place->thread = op->thread;
        }
    } else if (piece->call) {
        size_t count, low;
        const struct prof_call *calls = prof_facts_calls(f, piece->thread, &count);
        place->name = prof_string(f->capture, piece->call, NULL);
        place->stream = 0;
        PROF_FIND_FIRST(low, at, count, calls[at].start >= piece->end);
        if (low && calls[low - 1].name == piece->call) {
            place->start_ns = calls[low - 1].start;
            place->duration_ns = calls[low - 1].duration;
        }
    } else {
        place->duration_ns = end_of_own_work(w, one, piece) - piece->begin;
    }
    prof_range_path_text(f, (uint32_t)place->thread, piece->begin, place->path, sizeof place->path);
}
