/* What views show beside the model and is asked of the end of the capture now and then: what bounds
 * each kernel, which lines hold memory. Kept between looks, so that asking costs little. */
#ifndef PERFKIT_TUI_KEPT_H
#define PERFKIT_TUI_KEPT_H

#include "libprof/base/array.h"
#include "libprof/base/map.h"
#include "libprof/include/prof.h"

struct tui_bound {
    enum prof_bound bound;
    double roof_share; /* of the nearest roof; NaN */
};

struct tui_kept {
    int64_t start_mono_ns; /* of the capture that all this is of */
    bool of_finished;
    struct prof_names kernels; /* name -> number in bounds */
    PROF_ARRAY(struct tui_bound) bounds;
    bool has_bounds;
    struct prof_map stacks;                /* stack.id -> number in places */
    PROF_ARRAY(char *) places;             /* owned */
    PROF_ARRAY(int64_t) wanted;            /* stacks that were asked for and are not known */
    uint64_t bounds_due_ns, places_due_ns; /* when to ask again */
};

void tui_kept_free(struct tui_kept *kept);
/* Forget what is of another capture, or of this one before its end named its stacks. */
void tui_kept_check(struct tui_kept *kept, int64_t start_mono_ns, bool finished);

/* NULL: not known. */
const struct tui_bound *tui_kept_bound(const struct tui_kept *kept, const char *kernel);
/* "step (train.c:36)"; NULL: not known, perhaps next time. */
const char *tui_kept_place(struct tui_kept *kept, int64_t stack);

/* Ask. `tail` as in struct tui_view_input. */
void tui_kept_ask_bounds(struct tui_kept *kept, struct prof_capture *tail,
                         const struct prof_filter *filter);
/* Move what `from` knows of kernels. */
void tui_kept_take_bounds(struct tui_kept *kept, struct tui_kept *from);
void tui_kept_ask_places(struct tui_kept *kept, struct prof_capture *tail);

#endif
