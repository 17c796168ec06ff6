/* The one place that talks to ncurses: keys and clicks in, cells out, signals in between. */
#ifndef PERFKIT_TUI_TERMINAL_H
#define PERFKIT_TUI_TERMINAL_H

#include "tui/app.h"

struct tui_terminal_options {
    int64_t interval_ns; /* between two looks */
    int64_t budget_ns;   /* what a look may take */
    bool colour;
};

/* Show the app until the user leaves it, or a signal ends it: *ended_by is then its number (the
 * terminal is as it was found; the caller may raise it again), else 0. The locale's character type
 * must be set (setlocale). PROF_UNSUPPORTED: this terminal cannot show it. */
enum prof_status tui_terminal_run(struct tui_app *app, const struct tui_terminal_options *options,
                                  int *ended_by, struct prof_error *err);

#endif
