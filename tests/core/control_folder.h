/* A spool folder with a control page of the test's own, and what the collector's core published in
 * it. Every test runs in a process of its own (Check forks), which is the collector's process. */
#ifndef PERFKIT_TESTS_CORE_CONTROL_FOLDER_H
#define PERFKIT_TESTS_CORE_CONTROL_FOLDER_H

#include "collectors/core/collector.h"
#include "collectors/core/state.h"
#include "libprof/base/clock.h"
#include "libprof/spool/control.h"
#include "tests/check_main.h"

extern char folder[64]; /* its path */
extern struct control_page *page;

/* For Check: a new folder in PERFKIT_DIR, no options. */
void setup(void);
void remove_folder(void);

/* A page as perfkit run makes it, of `bytes`; fewer than CONTROL_BYTES: no page can be mapped. */
void make_page(bool open_now, bool limited, off_t bytes);
/* As `perfkit ctl` does. */
void flip(void);
/* Options with a capture range. */
void ranged(void);

struct seen {
    unsigned count;
    struct wire_window window[4096];
};

/* The windows of the process `pid`, by time. Static. */
struct seen *published(pid_t pid);

/* They alternate, beginning with `first`. */
void assert_alternate(const struct seen *seen, unsigned count, bool first);

#endif
