/* The file perfkit.gate: what a project wants compared, and how strictly. docs/guide/gate.md
 * describes it for users. */
#ifndef PERFKIT_CLI_GATE_CONFIG_H
#define PERFKIT_CLI_GATE_CONFIG_H

#include <limits.h>

#include "libprof/include/prof_compare.h"

#define GATE_CONFIG_NAME "perfkit.gate"
#define GATE_FOLDER ".perfkit"
#define GATE_BASELINES GATE_FOLDER "/baselines.sqlite"

struct gate_config {
    char path[PATH_MAX];      /* of the file; "" = none was read */
    char baselines[PATH_MAX]; /* of the baselines */
    char iteration[256];      /* "" = found */
    unsigned skip;            /* iterations, as warm-up; CLI_NO_SKIP = found */
    double alpha;             /* 0 = the default */
    bool strict, allow_single;
    unsigned sessions;               /* of a baseline, the last so many; 0 = all */
    struct prof_override *overrides; /* in the order in which they apply */
    size_t override_count, override_room;
    /* Overrides that have expired: told, and not applied. */
    struct gate_expired {
        unsigned line;
        char *match, *date;
    } * expired;
    size_t expired_count, expired_room;
    char **texts; /* what the overrides borrow */
    size_t text_count, text_room;
};

/* Read `path`, or, when it is NULL, the perfkit.gate of this folder or of the project around it (up
 * to the folder that holds .git); without one everything has its default. `baselines` (NULL: as the
 * file says, else .perfkit/baselines.sqlite of the project) names the file of baselines.
 * PROF_FORMAT: "perfkit.gate:7: ..." */
enum prof_status gate_config_read(const char *path, const char *baselines,
                                  struct gate_config *config, struct prof_error *err);
void gate_config_free(struct gate_config *config);

#endif
