/* See launch_wrappers.h. */
#include <stdlib.h>

#include "libprof/analysis/launch_wrappers.h"

void prof_launch_wrappers_init(struct prof_launch_wrappers *w, struct prof_stacks *stacks)
{
    *w = (struct prof_launch_wrappers){.stacks = stacks};
}

void prof_launch_wrappers_free(struct prof_launch_wrappers *w)
{
    prof_names_free(&w->seen);
    prof_array_free(&w->callers);
}

static bool make_room(struct prof_launch_wrappers *w)
{
    const struct prof_frame *places;
    size_t count = prof_stacks_places(w->stacks, &places);
    while (w->callers.count < count) {
        struct launch_caller *caller = prof_array_add(&w->callers);
        if (!caller)
            return false;
        *caller = (struct launch_caller){0};
    }
    return true;
}

static bool count_name(struct prof_launch_wrappers *w, uint32_t place, uint32_t name)
{
    uint32_t key[2] = {place, name};
    if (prof_names_get(&w->seen, (const char *)key, sizeof key))
        return true;
    w->callers.data[place].names++;
    return prof_names_put(&w->seen, (const char *)key, sizeof key, 0);
}

static void note_caller(struct launch_caller *of, uint32_t caller)
{
    if (of->caller && of->caller != caller + 1)
        of->has_several = true;
    of->caller = caller + 1;
}

bool prof_launch_wrappers_add(struct prof_launch_wrappers *w, int64_t stack, uint32_t name)
{
    const struct prof_frame *frames;
    if (!make_room(w))
        return false;
    size_t count = prof_stack_near(w->stacks, stack, &frames);
    for (size_t i = 0; i < count; i++) {
        if (!count_name(w, frames[i].number, name))
            return false;
        if (i + 1 < count)
            note_caller(&w->callers.data[frames[i].number], frames[i + 1].number);
    }
    return true;
}

/* Who reached the line `at`, through callers that are its only ones; `at` where that tells no more.
 */
static size_t step_out(const struct prof_launch_wrappers *w, const struct prof_frame *frames,
                       size_t count, size_t at)
{
    const struct launch_caller *callers = w->callers.data;
    for (size_t i = at; i + 1 < count; i++) {
        if (callers[frames[i].number].has_several)
            return callers[frames[i + 1].number].names < callers[frames[at].number].names ? i + 1
                                                                                          : at;
    }
    return at;
}

bool prof_launch_wrappers_find(const struct prof_launch_wrappers *w, int64_t stack,
                               struct prof_launch_place *found)
{
    const struct prof_frame *frames;
    size_t count = prof_stack_near(w->stacks, stack, &frames), at = 0, next;
    if (!count)
        return false;
    while ((next = step_out(w, frames, count, at)) != at)
        at = next;
    *found = (struct prof_launch_place){frames[at].number, frames[0].number};
    return true;
}
