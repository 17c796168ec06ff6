/* perfkit's side of the control page (libprof/spool/control.h): made by `run`, changed by its clock
 * and by `ctl`. Writers take turns by a lock on the file. */
#ifndef PERFKIT_CLI_CONTROL_H
#define PERFKIT_CLI_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/base/error.h"
#include "libprof/spool/control.h"

struct control {
    struct control_page *page; /* NULL = none */
    int fd;
};

/* Make the page of a new spool folder. `range`: --capture-range as given, or NULL. */
enum prof_status control_make(struct control *control, const char *folder, bool open, bool limited,
                              const char *range, struct prof_error *err);

/* Open the page of a running capture. */
enum prof_status control_find(struct control *control, const char *folder, struct prof_error *err);

/* Open or close the window. *changed_ns: since when it is so. PROF_BUSY when another writer keeps
 * the lock. */
enum prof_status control_set(struct control *control, bool open, enum wire_window_reason reason,
                             uint64_t *changed_ns, struct prof_error *err);

void control_close(struct control *control);

#endif
