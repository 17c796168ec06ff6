/* What a reader of the roofline's tables has to know: which roofs, from where, and what is missing.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "libprof/base/format.h"
#include "report/roofline.h"

struct note {
    char *out;
    size_t used;
};

static void append_note(struct note *note, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void append_note(struct note *note, const char *format, ...)
{
    va_list ap;
    size_t room = PROF_REPORT_NOTE_BYTES - note->used;
    va_start(ap, format);
    int wrote = vsnprintf(note->out + note->used, room, format, ap);
    va_end(ap);
    if (wrote > 0)
        note->used += (size_t)wrote < room ? (size_t)wrote : room - 1;
}

bool prof_report_roof_source(const struct prof_ceilings *ceilings, int64_t device, char *out,
                             size_t size)
{
    bool measured = false, theoretical = false;
    int64_t newest = PROF_UNKNOWN;
    for (size_t i = 0; i < ceilings->count; i++) {
        const struct prof_ceiling *c = &ceilings->rows[i];
        if (c->device != device || prof_ceiling_find(ceilings, device, c->kind) != c)
            continue;
        measured |= c->measured;
        theoretical |= !c->measured;
        if (c->measured && c->date_s > newest)
            newest = c->date_s;
    }
    char date[32] = "";
    struct tm parts;
    time_t seconds = (time_t)newest;
    if (newest > 0 && gmtime_r(&seconds, &parts))
        strftime(date, sizeof date, " %Y-%m-%d", &parts);
    snprintf(out, size, "%s%s%s%s", measured ? "measured" : "", date,
             measured && theoretical ? ", some theoretical" : "",
             measured      ? ""
             : theoretical ? "theoretical: perfkit device --measure gives real ones"
                           : "");
    return measured || theoretical;
}

static void append_roof(struct note *note, const char *word, struct prof_text value, bool *first)
{
    if (value.text[0] == 'n') /* n/a */
        return;
    append_note(note, "%s%s %s", *first ? ": " : ", ", word, value.text);
    *first = false;
}

#define SLOWED 0.97 /* of a burst: below, what is sustained is worth a word */

static void append_rate(struct note *note, const struct prof_ceiling *c)
{
    append_note(note, " %s", prof_flop_rate(c->value).text);
    if (c->sustained < SLOWED * c->value)
        append_note(note, " (%s sustained)", prof_flop_rate(c->sustained).text);
}

static void append_pipe(struct note *note, const struct prof_ceilings *ceilings, int64_t device,
                        enum prof_ceiling_kind kind, const char *word, bool *first)
{
    const struct prof_ceiling *c = prof_ceiling_find(ceilings, device, kind);
    if (!c)
        return;
    append_note(note, "%s%s", *first ? ": " : ", ", word);
    append_rate(note, c);
    *first = false;
}

/* Devices of which the same is to be said. */
struct alike {
    char roofs[PROF_REPORT_NOTE_BYTES]; /* "measured: DRAM 3 TB/s, ..."; "" = none are known */
    int64_t devices[3];                 /* those that are named */
    size_t count;
};

/* The pipes that points of the device are held against; FP32 and, of what is faster, FP16 in any
 * case. */
static bool pipe_is_listed(const struct prof_roofline *roofline, int64_t device,
                           enum prof_ceiling_kind pipe)
{
    bool told = pipe == PROF_CEILING_FP32 || pipe == PROF_CEILING_TENSOR_FP16;
    for (size_t i = 0; !told && i < roofline->count; i++)
        told = roofline->points[i].device == device && roofline->points[i].pipe == pipe;
    return told;
}

/* "tensor FP16", "FP32": without what is done. */
static const char *pipe_word(enum prof_ceiling_kind pipe)
{
    return pipe == PROF_CEILING_FP64   ? "FP64"
           : pipe == PROF_CEILING_FP32 ? "FP32"
           : pipe == PROF_CEILING_FP16 ? "FP16"
                                       : prof_ceiling_of(pipe).text;
}

/* What the vendor's library makes of those pipes: "; matrix products reach FP32 51 TFLOP/s". */
static void append_products(struct note *note, const struct prof_roofline *roofline, int64_t device)
{
    bool first = true;
    for (enum prof_ceiling_kind k = PROF_CEILING_FP64; k <= PROF_CEILING_TENSOR_FP8; k++) {
        const struct prof_ceiling *c =
            pipe_is_listed(roofline, device, k)
                ? prof_ceiling_find(&roofline->ceilings, device, prof_matmul_of_pipe(k))
                : NULL;
        if (!c)
            continue;
        append_note(note, "%s %s", first ? "; matrix products reach" : ",", pipe_word(k));
        append_rate(note, c);
        first = false;
    }
}

static void describe_roofs(const struct prof_roofline *roofline, int64_t id, char *out)
{
    const struct prof_ceilings *ceilings = &roofline->ceilings;
    struct note note = {.out = out};
    char source[64];
    bool first = true;
    out[0] = 0;
    if (!prof_report_roof_source(ceilings, id, source, sizeof source))
        return;
    append_note(&note, "%s", source);
    for (enum prof_roof_level level = PROF_ROOF_DRAM; level <= PROF_ROOF_L2; level++)
        append_roof(&note, prof_roof_level_text(level),
                    prof_rate(prof_roof_ceiling(ceilings, id, level)), &first);
    for (enum prof_ceiling_kind k = PROF_CEILING_FP64; k <= PROF_CEILING_TENSOR_FP8; k++)
        if (pipe_is_listed(roofline, id, k))
            append_pipe(&note, ceilings, id, k, pipe_word(k), &first);
    append_products(&note, roofline, id);
}

/* Puts the device with those of which the same is true, while there is room for another kind. */
static void group_device(const struct prof_report_data *data, int64_t id, struct alike *groups,
                         size_t *count, size_t most)
{
    char roofs[PROF_REPORT_NOTE_BYTES];
    size_t at = 0;
    describe_roofs(&data->roofline, id, roofs);
    while (at < *count && strcmp(groups[at].roofs, roofs) != 0)
        at++;
    if (at == most)
        return;
    if (at == *count) {
        groups[(*count)++] = (struct alike){.count = 0};
        memcpy(groups[at].roofs, roofs, sizeof roofs);
    }
    if (groups[at].count < sizeof groups[at].devices / sizeof groups[at].devices[0])
        groups[at].devices[groups[at].count] = id;
    groups[at].count++;
}

static void append_group(const struct prof_report_data *data, const struct alike *group, char *out)
{
    struct note note = {.out = out};
    const size_t room = sizeof group->devices / sizeof group->devices[0];
    size_t named = group->count <= room ? group->count : room - 1;
    append_note(&note, group->roofs[0] ? "Roofs of " : "No roofs are known of ");
    for (size_t i = 0; i < named; i++)
        append_note(&note, "%s%s",
                    !i                      ? ""
                    : i + 1 == group->count ? " and "
                                            : ", ",
                    prof_report_device_label(prof_device(data->capture, group->devices[i])));
    if (named < group->count)
        append_note(&note, " and %zu more", group->count - named);
    if (group->roofs[0])
        append_note(&note, ", %s", group->roofs);
    else
        append_note(&note, ": perfkit device --measure, then record again");
}

#define REASONS 16 /* there are not so many */

/* The reason that most of the time without a place has, and how much of it. */
static bool describe_missing(const struct prof_roofline *roofline, const char *what, char *out)
{
    struct {
        const char *why;
        double ns;
    } reasons[REASONS] = {{0}};
    double all_ns = 0, sum_ns = 0;
    size_t most = 0;
    for (size_t i = 0; i < roofline->count; i++) {
        const struct prof_roofline_point *p = &roofline->points[i];
        size_t r = 0;
        sum_ns += p->busy_ns ? (double)p->time_ns : 0;
        while (p->why && r < REASONS - 1 && reasons[r].why && reasons[r].why != p->why)
            r++;
        if (!p->why || !p->busy_ns) /* a range without device work: no wonder */
            continue;
        reasons[r].why = p->why;
        reasons[r].ns += (double)p->time_ns;
        all_ns += (double)p->time_ns;
        if (reasons[r].ns > reasons[most].ns)
            most = r;
    }
    if (!reasons[most].why)
        return false;
    snprintf(out, PROF_REPORT_NOTE_BYTES, "Not placed: %s of the %s time%s: %s",
             prof_percent(all_ns / sum_ns).text, what,
             reasons[most].ns < all_ns ? ", most of it" : "", reasons[most].why);
    return true;
}

static bool device_is_listed(const struct prof_roofline *roofline, size_t before, int64_t device)
{
    for (size_t i = 0; i < before; i++)
        if (roofline->points[i].device == device)
            return true;
    return false;
}

void prof_report_roofline_notes(const struct prof_report_data *data,
                                struct prof_report_notes *notes)
{
    const struct prof_roofline *roofline = &data->roofline;
    struct alike groups[PROF_REPORT_NOTES - 3];
    size_t group_count = 0;
    bool assumed = false, latency = false;
    notes->count = 0;
    for (size_t i = 0; i < roofline->count; i++) {
        const struct prof_roofline_point *p = &roofline->points[i];
        assumed |= p->pipe_assumed && p->bound == PROF_BOUND_COMPUTE;
        latency |= p->bound == PROF_BOUND_LATENCY;
        if (!device_is_listed(roofline, i, p->device))
            group_device(data, p->device, groups, &group_count, PROF_REPORT_NOTES - 3);
    }
    for (size_t i = 0; i < group_count; i++)
        append_group(data, &groups[i], notes->text[notes->count++]);
    notes->count += describe_missing(roofline, "kernel", notes->text[notes->count]);
    if (latency)
        snprintf(notes->text[notes->count++], PROF_REPORT_NOTE_BYTES,
                 "Latency: near no roof; dependent work, too few threads, or imbalance");
    if (assumed)
        snprintf(notes->text[notes->count++], PROF_REPORT_NOTE_BYTES,
                 "The precision of declared FLOP is not known: they are held against FP32, or the "
                 "next roof above what was reached");
}

void prof_report_range_notes(const struct prof_report_data *data, struct prof_report_notes *notes)
{
    notes->count = describe_missing(&data->roofline_ranges, "ranges'", notes->text[0]);
}
