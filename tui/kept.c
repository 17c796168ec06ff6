/* See kept.h. */
#include "tui/kept.h"

#include <stdlib.h>
#include <string.h>

#include "libprof/include/prof_stack.h"

#define MOST_WANTED 64 /* at a time */

static void forget_places(struct tui_kept *kept)
{
    for (size_t i = 0; i < kept->places.count; i++)
        free(kept->places.data[i]);
    prof_array_free(&kept->places);
    prof_map_free(&kept->stacks);
    prof_array_free(&kept->wanted);
}

static void forget_bounds(struct tui_kept *kept)
{
    prof_names_free(&kept->kernels);
    prof_array_free(&kept->bounds);
    kept->has_bounds = false;
}

void tui_kept_free(struct tui_kept *kept)
{
    forget_places(kept);
    forget_bounds(kept);
    *kept = (struct tui_kept){0};
}

void tui_kept_check(struct tui_kept *kept, int64_t start_mono_ns, bool finished)
{
    if (kept->start_mono_ns == start_mono_ns && kept->of_finished == finished)
        return;
    tui_kept_free(kept);
    kept->start_mono_ns = start_mono_ns;
    kept->of_finished = finished;
}

/* ---- what bounds kernels ----------------------------------------------------------------------
 */

const struct tui_bound *tui_kept_bound(const struct tui_kept *kept, const char *kernel)
{
    const uint32_t *known = prof_names_get(&kept->kernels, kernel, strlen(kernel));
    return known ? &kept->bounds.data[*known] : NULL;
}

/* A kernel of several devices: as on the one that it spent most time on, which comes first. */
static void keep_point(struct tui_kept *kept, const struct prof_roofline_point *point)
{
    size_t length = point->name ? strlen(point->name) : 0;
    if (point->bound == PROF_BOUND_NONE || !point->name ||
        prof_names_get(&kept->kernels, point->name, length))
        return;
    struct tui_bound *bound = prof_array_add(&kept->bounds);
    if (!bound)
        return;
    *bound = (struct tui_bound){point->bound, point->roof_share};
    if (!prof_names_put(&kept->kernels, point->name, length, (uint32_t)kept->bounds.count - 1))
        kept->bounds.count--;
}

void tui_kept_ask_bounds(struct tui_kept *kept, struct prof_capture *tail,
                         const struct prof_filter *filter)
{
    struct prof_roofline roofline;
    if (prof_roofline(tail, filter, PROF_ROOFLINE_KERNELS, &roofline, NULL))
        return;
    forget_bounds(kept);
    for (size_t i = 0; i < roofline.count; i++)
        keep_point(kept, &roofline.points[i]);
    kept->has_bounds = true;
    prof_roofline_free(&roofline);
}

void tui_kept_take_bounds(struct tui_kept *kept, struct tui_kept *from)
{
    forget_bounds(kept);
    kept->kernels = from->kernels;
    memcpy(&kept->bounds, &from->bounds, sizeof kept->bounds);
    kept->has_bounds = true; /* also when it could not be read: the next look would not either */
    memset(&from->kernels, 0, sizeof from->kernels);
    memset(&from->bounds, 0, sizeof from->bounds);
}

/* ---- which lines stacks are of ----------------------------------------------------------------
 */

const char *tui_kept_place(struct tui_kept *kept, int64_t stack)
{
    const uint64_t *known = stack > 0 ? prof_map_get(&kept->stacks, (uint64_t)stack) : NULL;
    if (known)
        return kept->places.data[*known];
    bool asked = kept->wanted.count >= MOST_WANTED;
    int64_t *wanted = stack > 0 && !asked ? prof_array_add(&kept->wanted) : NULL;
    if (wanted)
        *wanted = stack;
    return NULL;
}

static void keep_stack_line(struct tui_kept *kept, struct prof_capture *tail, int64_t stack)
{
    char text[400] = "";
    const struct prof_frame *place, *via;
    if (!prof_stack_callers(tail, PROF_STACK_MEMORY, stack, &place, &via))
        place = NULL;
    if (prof_map_get(&kept->stacks, (uint64_t)stack))
        return;
    if (place)
        prof_frame_text(place, text, sizeof text);
    char **slot = prof_array_add(&kept->places);
    if (!slot)
        return;
    *slot = place ? strdup(text) : NULL;
    prof_map_put(&kept->stacks, (uint64_t)stack, kept->places.count - 1);
}

void tui_kept_ask_places(struct tui_kept *kept, struct prof_capture *tail)
{
    for (size_t i = 0; i < kept->wanted.count; i++)
        keep_stack_line(kept, tail, kept->wanted.data[i]);
    kept->wanted.count = 0;
}
