/* What is wrong with the set of files: the same one twice, a rank that no file has, two files of
 * one rank, files of different runs. A merged capture that looks whole and is not would be
 * believed. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libprof/store/merge/parts.h"

#define MOST_RANKS (1 << 20)
#define MOST_NAMED 8 /* in a sentence */

/* ---- lists of numbers as text ---------------------------------------------------------------- */

/* "0-3,7" of sorted numbers, cut with "..." after `most` ranges. */
static char *format_rank_ranges(const int64_t *numbers, size_t count, int most)
{
    char *text = NULL;
    size_t size;
    FILE *out = prof_open_memory(&text, &size);
    int ranges = 0;
    for (size_t i = 0; out && i < count;) {
        size_t last = i;
        while (last + 1 < count && numbers[last + 1] - numbers[last] <= 1)
            last++;
        if (ranges++ == most) {
            fprintf(out, ", ...");
            break;
        }
        fprintf(out, "%s%lld", i ? "," : "", (long long)numbers[i]);
        if (numbers[last] > numbers[i])
            fprintf(out, "-%lld", (long long)numbers[last]);
        i = last + 1;
    }
    if (out && prof_close_stream(out))
        return text;
    free(text);
    return NULL;
}

static enum prof_status note_file_ranks(struct merge *m, struct merge_input *in)
{
    PROF_FREED PROF_ARRAY(int64_t) ranks = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < in->processes.count; i++) {
        const struct merge_process *p = &in->processes.data[i];
        int64_t *slot = p->rank >= 0 && p->has_events ? prof_array_add(&ranks) : NULL;
        ok = slot || p->rank < 0 || !p->has_events;
        if (slot)
            *slot = p->rank;
    }
    if (ranks.count) {
        prof_array_sort(&ranks, prof_ascending_int64);
        in->part->ranks = format_rank_ranges(ranks.data, ranks.count, 1000);
        ok = ok && in->part->ranks;
    }
    return ok ? PROF_OK : prof_out_of_memory(m->err);
}

/* ---- the same file, or the same processes ---------------------------------------------------- */

static void leave_out(struct merge_input *in, const char *why, const char *other)
{
    in->gone = in->part->left_out = in->part->twice = true;
    merge_lacks(in->part, why, other);
}

/* The first file with this inode, or NULL. */
static const char *same_inode(struct prof_names *seen, const struct merge *m, size_t at, bool *ok)
{
    struct stat info;
    uint64_t key[2] = {0, 0};
    if (stat(m->inputs[at].path, &info))
        return NULL;
    key[0] = (uint64_t)info.st_dev;
    key[1] = (uint64_t)info.st_ino;
    uint32_t *known = prof_names_get(seen, (const char *)key, sizeof key);
    *ok = known || prof_names_put(seen, (const char *)key, sizeof key, (uint32_t)at);
    return known ? m->inputs[*known].path : NULL;
}

/* A process is known by its kernel, its number there and when it began. */
static char *process_key(const struct merge_input *in, const struct merge_process *p)
{
    char *key;
    return asprintf(&key, "%s %lld %lld", in->boot_id, (long long)p->pid, (long long)p->start_ns) <
                   0
               ? NULL
               : key;
}

/* How many of the processes are in an earlier file, and in which one (the last found). */
static bool count_known(struct prof_names *seen, const struct merge_input *in, size_t at,
                        size_t *known, size_t *other)
{
    bool ok = true;
    for (size_t i = 0; ok && i < in->processes.count; i++) {
        char *key = process_key(in, &in->processes.data[i]);
        uint32_t *found = key ? prof_names_get(seen, key, strlen(key)) : NULL;
        if (found && *found != at) {
            ++*known;
            *other = *found;
        }
        ok = key && (found || prof_names_put(seen, key, strlen(key), (uint32_t)at));
        free(key);
    }
    return ok;
}

/* Beside events a summary would look like a program that did nothing, or its parts as its copies.
 */
static enum prof_status refuse_mixture(struct merge *m)
{
    const struct merge_input *summary = NULL;
    bool events = false;
    for (size_t i = 0; i < m->count; i++) {
        const struct merge_input *in = &m->inputs[i];
        if (!in->gone && in->summary)
            summary = in;
        events |= !in->gone && !in->summary;
    }
    if (!summary || !events || m->options->summary)
        return PROF_OK;
    return prof_fail(m->err, PROF_INVALID,
                     "%s is a summary and has no events, others have: give the captures that it "
                     "was made of, or --summary",
                     summary->path);
}

static enum prof_status leave_out_copies(struct merge *m)
{
    struct prof_names inodes = {0}, processes = {0};
    enum prof_status status = PROF_OK;
    bool ok = true;
    for (size_t i = 0; ok && !status && i < m->count; i++) {
        struct merge_input *in = &m->inputs[i];
        const char *first = in->gone ? NULL : same_inode(&inodes, m, i, &ok);
        size_t known = 0, other = 0;
        if (first)
            leave_out(in, "it is given twice: the same file as %s", first);
        if (in->gone || !in->boot_id || in->start_mono_ns == PROF_MERGE_UNKNOWN)
            continue;
        ok = ok && count_known(&processes, in, i, &known, &other);
        if (known && known == in->processes.count)
            leave_out(in, "it is given twice: a copy of %s", m->inputs[other].path);
        else if (known)
            status = prof_fail(m->err, PROF_INVALID,
                               "%s and %s hold the same processes: give one of them",
                               m->inputs[other].path, in->path);
    }
    prof_names_free(&inodes);
    prof_names_free(&processes);
    return ok ? status : prof_out_of_memory(m->err);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

struct ranks {
    uint32_t *file; /* by rank: index of the first file that has it, + 1 */
    int64_t world, smallest_world;
    PROF_ARRAY(int64_t) twice;
    char *example; /* of a rank that is there twice */
    bool failed;
};

static void add_file_rank(struct ranks *r, const struct merge *m, size_t at, int64_t rank)
{
    if (!r->file[rank])
        r->file[rank] = (uint32_t)at + 1;
    size_t first = r->file[rank] - 1;
    if (first == at)
        return;
    int64_t *slot = prof_array_add(&r->twice);
    if (slot)
        *slot = rank;
    if (!r->example &&
        asprintf(&r->example, "%s and %s", m->inputs[first].path, m->inputs[at].path) < 0)
        r->example = NULL;
    r->failed |= !slot;
}

static void add_file_ranks(struct ranks *r, const struct merge *m)
{
    for (size_t i = 0; i < m->count; i++) {
        const struct merge_input *in = &m->inputs[i];
        for (size_t j = 0; !in->gone && j < in->processes.count; j++) {
            const struct merge_process *p = &in->processes.data[j];
            if (!p->has_events || p->rank < 0 || p->rank >= MOST_RANKS)
                continue;
            add_file_rank(r, m, i, p->rank);
            if (p->world <= 0 || p->world > MOST_RANKS)
                continue;
            if (!r->smallest_world || p->world < r->smallest_world)
                r->smallest_world = p->world;
            r->world = p->world > r->world ? p->world : r->world;
        }
    }
}

static bool note_missing_ranks(struct merge *m, const struct ranks *r)
{
    PROF_FREED PROF_ARRAY(int64_t) missing = {0};
    bool ok = true;
    for (int64_t rank = 0; ok && rank < r->world; rank++) {
        int64_t *slot = r->file[rank] ? NULL : prof_array_add(&missing);
        ok = slot || r->file[rank];
        if (slot)
            *slot = rank;
    }
    if (ok && missing.count) {
        char *list = format_rank_ranges(missing.data, missing.count, MOST_NAMED);
        ok =
            list &&
            merge_note(m, m->options->subset ? PROF_HEALTH_part_subset : PROF_HEALTH_part_missing,
                       "rank%s %s of %lld %s in none of the files%s", missing.count == 1 ? "" : "s",
                       list, (long long)r->world, missing.count == 1 ? "is" : "are",
                       m->options->subset ? ", as requested" : "");
        free(list);
        m->result->complete &= m->options->subset;
    }
    return ok;
}

static bool note_duplicate_ranks(struct merge *m, struct ranks *r)
{
    if (!r->twice.count)
        return true;
    prof_array_sort(&r->twice, prof_ascending_int64);
    PROF_FREED char *list = format_rank_ranges(r->twice.data, r->twice.count, MOST_NAMED);
    return list &&
           merge_note(m, PROF_HEALTH_part_twice, "rank%s %s %s in more than one file, as in %s",
                      strpbrk(list, ",-") ? "s" : "", list, strpbrk(list, ",-") ? "are" : "is",
                      r->example ? r->example : "two of them");
}

static enum prof_status check_ranks(struct merge *m)
{
    struct ranks r = {.file = calloc(MOST_RANKS, sizeof *r.file)};
    bool ok = r.file != NULL;
    if (ok)
        add_file_ranks(&r, m);
    ok = ok && !r.failed && note_missing_ranks(m, &r) && note_duplicate_ranks(m, &r);
    if (ok && r.smallest_world < r.world)
        ok = merge_note(m, PROF_HEALTH_part_mixed,
                        "files of runs of different sizes: of %lld and %lld ranks",
                        (long long)r.smallest_world, (long long)r.world);
    free(r.file);
    free(r.example);
    prof_array_free(&r.twice);
    return ok ? PROF_OK : prof_out_of_memory(m->err);
}

/* What all files that say it say alike: the first that does not is named. `offset`: of the text. */
static enum prof_status check_alike(struct merge *m, size_t offset, const char *what)
{
    const struct merge_input *first = NULL;
    const char *said = NULL;
    for (size_t i = 0; i < m->count; i++) {
        const struct merge_input *in = &m->inputs[i];
        const char *text = *(char *const *)(const void *)((const char *)in + offset);
        if (in->gone || !text)
            continue;
        if (first && strcmp(text, said) != 0)
            return merge_note(m, PROF_HEALTH_part_mixed,
                              "files of different %s: %s of %s, %s of %s", what, first->path, said,
                              in->path, text)
                       ? PROF_OK
                       : prof_out_of_memory(m->err);
        first = first ? first : in;
        said = said ? said : text;
    }
    return PROF_OK;
}

/* ---- each file ------------------------------------------------------------------------------- */

static enum prof_status check_state(struct merge *m, struct merge_input *in)
{
    bool ok = true;
    if (!in->state)
        ok = merge_lacks(in->part, "it does not say how it ended");
    else if (!strcmp(in->state, "recording") || !strcmp(in->state, "closing"))
        ok = merge_lacks(in->part, "it is still being recorded, or perfkit was killed: wait, or "
                                   "finish it with perfkit recover");
    else if (!strcmp(in->state, "recovered"))
        ok = merge_note(m, PROF_HEALTH_part_recovered, "%s was finished by perfkit recover",
                        in->path);
    return ok ? PROF_OK : prof_out_of_memory(m->err);
}

enum prof_status merge_check(struct merge *m)
{
    enum prof_status status = refuse_mixture(m);
    status = status ?: leave_out_copies(m);
    for (size_t i = 0; !status && i < m->count; i++) {
        struct merge_input *in = &m->inputs[i];
        if (in->gone)
            continue;
        status = check_state(m, in);
        status = status ?: note_file_ranks(m, in);
    }
    status = status ?: check_ranks(m);
    status = status ?: check_alike(m, offsetof(struct merge_input, job), "jobs");
    return status ? status
                  : check_alike(m, offsetof(struct merge_input, version), "versions of perfkit");
}
