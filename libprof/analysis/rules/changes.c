/* Reads changes for the replay: WHAT[=VALUE]. What they are about is chosen by the names of kernels
 * and the kinds of memcpys in the capture. */
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "libprof/analysis/rules/replay.h"
#include "libprof/analysis/rules/judge.h"
#include "libprof/base/cxx_name.h"
#include "libprof/gpu/names.h"
#include "libprof/include/prof_roofline.h"

/* ---- values ---------------------------------------------------------------------------------- */

/* "0.5x" leaves that share, "12us" is what one takes, "0" is gone. */
struct value {
    bool given, is_share;
    double number; /* share or ns */
};

#define MOST_SHARE 1e6
#define MOST_NS 1e13

static bool read_change_value(const char *text, struct value *value)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end;
    double number = strtod(text, &end);
    *value = (struct value){.given = true, .number = number};
    if (end == text || !(number >= 0 && number < 1e18))
        return false;
    value->is_share = !strcmp(end, "x") || (!*end && number == 0);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (!strcmp(end, units[i].unit)) {
            value->number = number * units[i].ns;
            value->is_share = number == 0;
            return (value->number >= 1 && value->number <= MOST_NS) || number == 0;
        }
    return value->is_share && number <= MOST_SHARE;
}

/* ---- operations ------------------------------------------------------------------------------ */

static bool fits_name(const char *pattern, const char *name)
{
    char brief[1024];
    const char *start = prof_name_without_type(name);
    size_t length = prof_name_without_arguments(start);
    if (!fnmatch(pattern, name, 0))
        return true;
    if (length >= sizeof brief)
        return false;
    memcpy(brief, start, length);
    brief[length] = 0;
    return !fnmatch(pattern, brief, 0);
}

static const char *behind_prefix(const char *text, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(text, prefix, length) ? NULL : text + length;
}

/* "HtoD" fits "h2d" too. */
static bool fits_copy_kind(const char *word, const char *kind)
{
    const char brief[] = {kind[0], '2', strlen(kind) == 4 ? kind[3] : 0, 0};
    return !strcasecmp(word, kind) || !strcasecmp(word, brief);
}

/* "kernel:GLOB", "memcpy", "memcpy:h2d", "h2d", "memset"; any other word is a GLOB of kernels. */
static bool fits_operation(const char *word, const struct prof_shape *shape)
{
    const char *kernel = behind_prefix(word, "kernel:"), *kind = behind_prefix(word, "memcpy:");
    bool is_memset = shape->copy_kind == PROF_COPY_MEMSET, is_copy = prof_is_copy(shape);
    if (is_copy && !kernel)
        return fits_copy_kind(kind ? kind : word, prof_copy_kind_text(shape->copy_kind)) ||
               (!strcmp(word, "memcpy") && !is_memset);
    return !is_copy && !kind && fits_name(kernel ? kernel : word, prof_shape_name(shape));
}

/* Words separated by commas. */
static bool fits_one_of(const char *words, const struct prof_shape *shape)
{
    bool fits = false;
    for (const char *end; *words && !fits; words = *end ? end + 1 : end) {
        end = words + strcspn(words, ",");
        char *word = strndup(words, (size_t)(end - words));
        fits = word && *word && fits_operation(word, shape);
        free(word);
    }
    return fits;
}

static bool has_shapes(struct prof_change *change, const struct prof_facts *f)
{
    if (!change->edit.ops)
        change->edit.ops = calloc(f->shapes.count + 1, sizeof *change->edit.ops);
    return change->edit.ops != NULL;
}

static struct prof_op_edit *op_edit_slot(struct prof_change *change, size_t shape)
{
    return (struct prof_op_edit *)(uintptr_t)&change->edit.ops[shape];
}

static struct prof_op_edit op_edit(const struct value *value)
{
    struct prof_op_edit edit = {0};
    if (value->given && value->is_share)
        edit.cut = 1 - value->number;
    else if (value->given)
        edit.each_ns = (int64_t)value->number;
    edit.cut = value->given && value->number == 0 ? 1 : edit.cut;
    return edit;
}

/* Two changes of one operation are both made; of two values the later one holds. */
static void combine_edits(struct prof_op_edit *own, const struct prof_op_edit *other)
{
    bool values = other->cut != 0 || other->each_ns;
    own->cut = values ? other->cut : own->cut;
    own->each_ns = values ? other->each_ns : own->each_ns;
    own->async |= other->async;
    own->beside |= other->beside;
    if (other->fused) {
        own->fused = other->fused;
        own->most = other->most;
        own->batched = other->batched;
        own->together = other->together;
    }
}

/* The rank of the process that launches them, by shape; SEVERAL where several do. To be freed. */
#define SEVERAL (-2)
static int64_t *ranks_of_shapes(const struct prof_facts *f)
{
    int64_t *ranks = malloc((f->shapes.count + 1) * sizeof *ranks);
    for (size_t i = 0; ranks && i < f->shapes.count; i++)
        ranks[i] = INT64_MAX;
    for (size_t i = 0; ranks && i < f->places.count; i++) {
        const struct prof_thread *thread = prof_thread(f->capture, f->places.data[i].thread);
        const struct prof_process *process =
            thread ? prof_process(f->capture, thread->process) : NULL;
        int64_t *rank = &ranks[f->places.data[i].shape], own = process ? process->rank : SEVERAL;
        *rank = *rank == INT64_MAX || *rank == own ? own : SEVERAL;
    }
    return ranks;
}

/* Of all that fit; how many shapes do. rank_of: by shape; NULL = of any rank. */
static size_t edit_shapes(struct prof_change *change, const struct prof_facts *f, const char *words,
                          bool one_word, const int64_t *rank_of, int64_t rank,
                          struct prof_op_edit edit)
{
    size_t found = 0;
    for (size_t i = 0; i < f->shapes.count; i++) {
        const struct prof_shape *shape = &f->shapes.data[i];
        if ((rank_of && rank_of[i] != rank) ||
            (one_word ? !fits_operation(words, shape) : !fits_one_of(words, shape)))
            continue;
        combine_edits(op_edit_slot(change, i), &edit);
        found++;
    }
    change->shapes = true;
    return found;
}

/* ---- devices --------------------------------------------------------------------------------- */

/* Published: name, compute capability, SMs, MHz of the boost clock, GB/s of the memory. */
static const struct {
    const char *name;
    int64_t major, minor, units, mhz, bandwidth;
} published[] = {
    {"T4", 7, 5, 40, 1590, 320},     {"V100", 7, 0, 80, 1530, 900},
    {"A100", 8, 0, 108, 1410, 2039}, {"A10", 8, 6, 72, 1695, 600},
    {"L4", 8, 9, 58, 2040, 300},     {"L40S", 8, 9, 142, 2520, 864},
    {"H100", 9, 0, 132, 1980, 3352}, {"H100-PCIe", 9, 0, 114, 1755, 2039},
    {"H200", 9, 0, 132, 1980, 4814}, {"B200", 10, 0, 148, 1965, 8000},
};

/* Products of matrices by arithmetic of the kind that their name shows, all else by memory. */
static enum prof_ceiling_kind limit_of_kernel(const struct prof_shape *shape)
{
    const char *name = prof_shape_name(shape);
    if (!prof_name_is_matmul(name))
        return PROF_CEILING_DRAM_COPY;
    return prof_name_precision(name) == PROF_PRECISION_WIDE ? PROF_CEILING_FP32
                                                            : PROF_CEILING_TENSOR_FP16;
}

static enum prof_status change_device(struct prof_change *change, const struct prof_facts *f,
                                      const char *name, struct prof_error *err)
{
    struct prof_device target = {0};
    char known[256] = "";
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", published[i].name);
        if (!strcasecmp(published[i].name, name))
            target = (struct prof_device){.compute_major = published[i].major,
                                          .compute_minor = published[i].minor,
                                          .units = published[i].units,
                                          .clock_khz = published[i].mhz * 1000,
                                          .memory_bandwidth = published[i].bandwidth * 1000000000};
    }
    if (!target.units)
        return prof_fail(err, PROF_INVALID, "device=%s: its peaks are not known; known are %s",
                         name, known);
    for (size_t i = 0; i < f->shapes.count; i++) {
        const struct prof_shape *shape = &f->shapes.data[i];
        const struct prof_device *own = f->devices.data[shape->device].device;
        enum prof_ceiling_kind kind = limit_of_kernel(shape);
        double ratio = own ? prof_peak(own, kind).value / prof_peak(&target, kind).value : NAN;
        if (!prof_is_kernel(shape) || !shape->config)
            continue;
        if (!isfinite(ratio))
            return prof_fail(err, PROF_INVALID,
                             "device=%s: the recorded device's peaks are not "
                             "known",
                             name);
        combine_edits(op_edit_slot(change, i), &(struct prof_op_edit){.cut = 1 - ratio});
        change->shapes = true;
    }
    return PROF_OK;
}

/* ---- changes --------------------------------------------------------------------------------- */

#define CLASS(name) (1u << WIRE_CLASS_##name)
static const struct {
    const char *name;
    unsigned classes;
} call_words[] = {
    {"sync", CLASS(SYNC)},
    {"alloc", CLASS(ALLOC) | CLASS(FREE) | CLASS(ALLOC_ASYNC) | CLASS(FREE_ASYNC) |
                  CLASS(ALLOC_HOST) | CLASS(FREE_HOST) | CLASS(SUBALLOC)},
    {"build", CLASS(BUILD) | CLASS(GRAPH_MAKE) | CLASS(CREATE)},
};

static bool change_calls(struct prof_change *change, const char *what, const struct value *value)
{
    for (size_t i = 0; i < sizeof call_words / sizeof call_words[0]; i++) {
        if (strcmp(what, call_words[i].name) != 0)
            continue;
        for (unsigned c = 0; c < WIRE_CLASSES; c++)
            if (call_words[i].classes & 1u << c)
                change->edit.cut_calls[c] = 1 - value->number;
        change->classes |= call_words[i].classes;
        return true;
    }
    return false;
}

/* Changes of all launches, of the host, of calls; false: it is none of them. */
static bool change_host(struct prof_change *change, const char *what, const struct value *value)
{
    struct prof_edit *edit = &change->edit;
    bool share = value->given && value->is_share;
    if (!strcmp(what, "graph") && !value->given)
        edit->free_launch = true;
    else if (!strcmp(what, "launch") && value->given) {
        edit->launch_ns = share ? 0 : (int64_t)value->number;
        edit->cut_launch = share ? 1 - value->number : 0;
    } else if (!strcmp(what, "host") && share)
        edit->cut_host = 1 - value->number;
    else if (!strcmp(what, "wait") && !value->given)
        edit->one_wait_a_step = true;
    else
        return share && change_calls(change, what, value);
    return true;
}

static uint8_t next_fused(const struct prof_change *change, const struct prof_facts *f)
{
    uint8_t most = 0;
    for (size_t i = 0; i < f->shapes.count; i++)
        most = change->edit.ops[i].fused > most ? change->edit.ops[i].fused : most;
    return most < UINT8_MAX ? (uint8_t)(most + 1) : most;
}

/* "fuse:WORDS", "fuse/8:WORDS", "batch/8:WORDS": what is behind; NULL: none of them. */
static const char *fused_words(const char *what, struct prof_op_edit *edit)
{
    const char *batch = behind_prefix(what, "batch/"),
               *rest = batch ? batch - 1 : behind_prefix(what, "fuse");
    char *end;
    if (!rest || (*rest != ':' && *rest != '/'))
        return NULL;
    unsigned long many = *rest == '/' ? strtoul(rest + 1, &end, 10) : 0;
    if (*rest == '/' && (*end != ':' || many < 2 || many > UINT32_MAX))
        return NULL;
    edit->most = (uint32_t)many;
    edit->batched = batch != NULL;
    edit->together = edit->each_ns > 0;
    return *rest == '/' ? end + 1 : rest + 1;
}

/* "rank3:WHAT": the number, and what is behind. */
#define ANY_RANK (-1)
static int64_t read_rank(const char **what)
{
    const char *digits = behind_prefix(*what, "rank");
    size_t length = digits ? strspn(digits, "0123456789") : 0;
    if (!length || length > 9 || digits[length] != ':')
        return ANY_RANK;
    *what = digits + length + 1;
    return strtol(digits, NULL, 10);
}

static enum prof_status add_change(struct prof_change *change, const struct prof_facts *f,
                                   const char *what, const char *written, struct prof_error *err)
{
    struct value value = {0};
    const char *words;
    int64_t rank = read_rank(&what);
    if (rank == ANY_RANK && !strcmp(what, "device") && written)
        return change_device(change, f, written, err);
    if (written && !read_change_value(written, &value))
        return prof_fail(err, PROF_INVALID,
                         "%s=%s: not a value: 0.5x is a share that stays, 12us a time, 0 none",
                         what, written);
    if (!strcmp(what, "sync") && value.number != 0)
        return prof_fail(err, PROF_INVALID,
                         "sync=%s: a wait ends when the work does: sync=0 or wait takes it away",
                         written);
    struct prof_op_edit edit = op_edit(&value);
    bool one_word = false;
    if ((words = fused_words(what, &edit))) {
        edit.fused = next_fused(change, f);
    } else if ((words = behind_prefix(what, "overlap:"))) {
        edit.beside = true;
    } else if ((words = behind_prefix(what, "async:"))) {
        edit.async = true;
    } else if (rank == ANY_RANK && change_host(change, what, &value)) {
        return PROF_OK;
    } else if (!written || !(behind_prefix(what, "kernel:") || behind_prefix(what, "mem") ||
                             strchr(what, '2'))) {
        return prof_fail(
            err, PROF_INVALID, "%s%s%s: not a change%s: perfkit what-if --help lists them", what,
            written ? "=" : "", written ? written : "", rank == ANY_RANK ? "" : " of one rank");
    } else {
        words = what;
        one_word = true;
    }
    int64_t *rank_of = rank == ANY_RANK ? NULL : ranks_of_shapes(f);
    if (rank != ANY_RANK && !rank_of)
        return prof_out_of_memory(err);
    size_t found = edit_shapes(change, f, words, one_word, rank_of, rank, edit);
    free(rank_of);
    if (!found && rank != ANY_RANK)
        return prof_fail(err, PROF_INVALID,
                         "rank%lld:%s: no operation of that rank matches: the launcher numbers "
                         "the ranks, and each needs its own GPU",
                         (long long)rank, what);
    if (!found)
        return prof_fail(err, PROF_INVALID, "%s: no operation of the capture fits", what);
    return PROF_OK;
}

enum prof_status prof_change_add(struct prof_change *change, const struct prof_facts *f,
                                 const char *text, struct prof_error *err)
{
    const char *value = strrchr(text, '=');
    char *what = strndup(text, value ? (size_t)(value - text) : strlen(text));
    enum prof_status status = what && has_shapes(change, f) ? PROF_OK : prof_out_of_memory(err);
    if (!status)
        status = add_change(change, f, what, value ? value + 1 : NULL, err);
    free(what);
    return status;
}

void prof_change_free(struct prof_change *change)
{
    free((void *)(uintptr_t)change->edit.ops);
    *change = (struct prof_change){0};
}
