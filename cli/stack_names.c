/* See stack_names.h. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/beside.h"
#include "cli/stack_names.h"
#include "libprof/base/clock.h"
#include "libprof/base/format.h"

#define QUIET_NS 1000000000ull /* what takes less needs no progress */
#define LINE_NS 200000000ull

bool stack_names_helper(char out[PATH_MAX])
{
    static const char *const places[] = {SYMBOLIZER, "../lib*/perfkit/" SYMBOLIZER,
                                         "../lib/*/perfkit/" SYMBOLIZER, NULL};
    return beside_self(places, out) && access(out, X_OK) == 0;
}

struct shown {
    const char *command;
    bool (*stop)(void);
    bool quiet, drawn;
    uint64_t start_ns, last_ns;
};

static bool show_symbol_progress(void *user, uint64_t done, uint64_t all, const char *path)
{
    struct shown *shown = user;
    uint64_t now = prof_now_ns();
    const char *base = strrchr(path, '/');
    if (!shown->quiet && now - shown->start_ns >= QUIET_NS && now - shown->last_ns >= LINE_NS) {
        shown->last_ns = now;
        shown->drawn = true;
        fprintf(stderr, "\r\033[Kperfkit %s: naming stacks: %s (%.60s)", shown->command,
                prof_percent(all ? (double)done / (double)all : 1.0).text, base ? base + 1 : path);
        fflush(stderr);
    }
    return !shown->stop || !shown->stop();
}

enum prof_status stack_names(const char *command, struct prof_store *store,
                             const char *const *folders, bool quiet, bool (*stop)(void),
                             struct prof_symbolize_result *result, struct prof_error *err)
{
    char helper[PATH_MAX];
    struct shown shown = {.command = command,
                          .stop = stop,
                          .quiet = quiet || !isatty(STDERR_FILENO),
                          .start_ns = prof_now_ns()};
    const struct prof_symbolize_options options = {
        .helper = helper, .folders = folders, .progress = show_symbol_progress, .user = &shown};
    *result = (struct prof_symbolize_result){0};
    if (!prof_symbolize_has(store))
        return PROF_OK;
    if (!stack_names_helper(helper))
        return prof_fail(err, PROF_NOTFOUND, "%s is not beside perfkit (%s): install perfkit whole",
                         SYMBOLIZER, helper);
    enum prof_status status = prof_symbolize(store, &options, result, err);
    if (shown.drawn)
        fputs("\r\033[K", stderr);
    return status;
}
