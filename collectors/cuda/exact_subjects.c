/* See exact_subjects.h. Changing the pass takes the device a sixth of a second, so launches of all
 * kernels that need the same pass are counted together, as far as they come by. */
#include <string.h>

#include "collectors/cuda/exact_subjects.h"
#include "collectors/cuda/map.h"

#define SUBJECTS 4096u /* a power of 2; half of them are used at most */

static struct exact_subject *subjects; /* [SUBJECTS] */
static uint32_t subject_count, passed_over;

bool exact_subjects_start(void)
{
    return subjects || (subjects = cuda_reserve(sizeof *subjects * SUBJECTS));
}

struct exact_subject *exact_subject_of(uint32_t name, const struct exact_shape *shape, bool *fresh)
{
    uint32_t words[sizeof *shape / sizeof(uint32_t)], hash = name;
    memcpy(words, shape, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        hash = (hash ^ words[i]) * 0x9E3779B1u;
    *fresh = false;
    for (uint32_t at = hash >> 7;; at++) {
        struct exact_subject *s = &subjects[at % SUBJECTS];
        if (s->name == name && memcmp(&s->shape, shape, sizeof *shape) == 0)
            return s;
        if (s->name)
            continue;
        if (!name || subject_count >= SUBJECTS / 2)
            return NULL;
        subject_count++;
        *s = (struct exact_subject){.name = name, .shape = *shape};
        *fresh = true;
        return s;
    }
}

static bool needs(const struct exact_subject *s, const struct exact_pass *passes, size_t pass)
{
    bool tensor = passes[pass].tensor;
    return s->wanted && !s->given_up && (!tensor || s->tensor) &&
           s->done[pass] < (tensor ? EXACT_TENSOR_REPEATS : EXACT_REPEATS);
}

static size_t first_needed(const struct exact_subject *s, const struct exact_pass *passes,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (needs(s, passes, i))
            return i;
    }
    return SIZE_MAX;
}

static bool others_need(const struct exact_pass *passes, size_t pass)
{
    for (size_t i = 0; i < SUBJECTS; i++) {
        if (subjects[i].name && needs(&subjects[i], passes, pass))
            return true;
    }
    return false;
}

size_t exact_choose(const struct exact_subject *subject, const struct exact_pass *passes,
                    size_t count, size_t ready)
{
    size_t next = first_needed(subject, passes, count);
    if (next == SIZE_MAX)
        return next;
    if (ready < count && needs(subject, passes, ready))
        next = ready;
    else if (ready < count && others_need(passes, ready) && ++passed_over < EXACT_PATIENCE)
        return SIZE_MAX;
    passed_over = 0;
    return next;
}

static bool uses_tensors(const struct exact_pass *pass, const double *values)
{
    for (size_t i = 0; i < pass->count; i++) {
        if (strcmp(pass->counters[i].name, EXACT_TENSOR) == 0)
            return values[i] > 0;
    }
    return false;
}

bool exact_counted(struct exact_subject *s, const struct exact_pass *passes, size_t count,
                   size_t pass, const double *values)
{
    s->done[pass]++;
    s->tensor |= uses_tensors(&passes[pass], values);
    if (s->complete)
        return false;
    s->complete = true;
    for (size_t i = 0; i < count; i++)
        s->complete &= s->done[i] > 0 || (passes[i].tensor && !s->tensor);
    return s->complete;
}

bool exact_anybody_needs(const struct exact_pass *passes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (others_need(passes, i))
            return true;
    }
    return false;
}

void exact_subjects_give_up(uint32_t name)
{
    for (size_t i = 0; i < SUBJECTS; i++)
        subjects[i].given_up |= subjects[i].name == name;
}

void exact_subjects_forget(void)
{
    subject_count = passed_over = 0;
    cuda_wipe(subjects, sizeof *subjects * SUBJECTS);
}
