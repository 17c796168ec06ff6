/* A capture that grows in a test, as ingest would write it: kernels with their rollup, copies,
 * allocations that are freed later. Failures end the test. */
#ifndef PERFKIT_TESTS_TUI_SCENE_H
#define PERFKIT_TESTS_TUI_SCENE_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/include/prof.h"
#include "libprof/store/store.h"
#include "tests/check_main.h"

struct scene {
    char path[160];
    struct prof_store *store;
};

/* Two processes (pids 100, 101), a device each of one GPU, streams 1 and 2 of the first and 3 of
 * the second, kernels alpha (configurations 1, 2), beta (3) and one whose name is hostile (4).
 * capture.state is 'recording', its start long ago. */
void scene_make(struct scene *scene, const char *name);
void scene_sql(struct scene *scene, const char *sql);
void scene_kernel(struct scene *scene, int64_t start, int64_t duration, int stream, int config,
                  bool rollup);
/* Some of everything in the given second, different from second to second. */
void scene_second(struct scene *scene, int second, bool rollup);
void scene_state(struct scene *scene, const char *state, int64_t duration);
/* One plain file; the writer is closed. */
void scene_publish(struct scene *scene);
void scene_remove(struct scene *scene);

#define SCENE_HOSTILE                                                                              \
    "evil\033]0;owned\007\033[31m<b>\xff\xe2\x80\xae"                                              \
    "name"

#define ck_ok(call)                                                                                \
    do {                                                                                           \
        struct prof_error err_ = {0}, *err = &err_;                                                \
        ck_assert_msg((call) == PROF_OK, "%s: %s", #call, err_.message);                           \
    } while (0)

#endif
