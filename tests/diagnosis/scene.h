/* Small programs as captures: a host with its clock, streams with theirs, and the calls between
 * them. A scene is run in order; each call takes the host some time, device work starts when it was
 * asked for and its stream is free, and what happened is written as rows of a capture. So a program
 * and its mended version have true running times that a bound can be compared with, the same on
 * every machine. */
#ifndef PERFKIT_TESTS_DIAGNOSIS_SCENE_H
#define PERFKIT_TESTS_DIAGNOSIS_SCENE_H

#include "libprof/include/prof.h"
#include "libprof/store/store.h"

#define SCENE_STREAMS 8

/* Who runs the program: a thread with its streams on one device. */
struct scene_side {
    int64_t host, stream[SCENE_STREAMS];
    int process, thread, device, first_stream; /* row ids */
};

struct scene {
    struct prof_store *store;
    char path[64];
    int64_t host;                  /* the thread's clock, ns */
    int64_t stream[SCENE_STREAMS]; /* when each stream is free */
    int64_t launch_ns, wake_ns, gap_ns, latency_ns;
    int64_t ranges[16]; /* starts of open ranges */
    int names[16];      /* and their strings */
    int depth, correlation, strings;
    const char *api;              /* "cuda", "opencl" */
    int64_t loop_begin, loop_end; /* of the part under test */
    struct scene_side sides[2];   /* the clocks of the one that runs are above */
    int side;
};

/* device: "gpu" with 132 units (compute capability 9.0), or "cpu" with 2. */
void scene_open(struct scene *scene, const char *api, const char *device);
/* Another thread, of a process of its own or not, that launches on a device of its own or on the
 * first one. */
void scene_second(struct scene *scene, bool own_process, bool own_device);
/* What follows is done by the first thread (0) or by the second (1). */
void scene_as(struct scene *scene, int side);
/* Ends the capture and opens it. */
struct prof_capture *scene_close(struct scene *scene);
/* The same, with its findings. */
struct prof_capture *scene_findings(struct scene *scene, struct prof_findings *findings);
void scene_done(struct prof_capture *capture, struct prof_findings *findings);
/* Ends the capture, runs `sql` on it and leaves it at `path`. */
bool scene_save(struct scene *scene, const char *path, const char *sql);

/* A launch configuration, by number; blocks of `threads` threads. */
int scene_config(struct scene *scene, const char *name, int64_t blocks, int64_t threads,
                 int64_t registers);

void scene_host(struct scene *scene, int64_t ns); /* the host works */
void scene_kernel(struct scene *scene, int stream, int config, int64_t ns);
/* One call that runs `count` kernels as nodes of a graph. */
void scene_graph(struct scene *scene, int stream, const int *configs, const int64_t *ns, int count);

enum scene_memory { SCENE_PAGEABLE = 1, SCENE_PINNED = 2 };
enum scene_direction { SCENE_UP = 1, SCENE_DOWN = 2 };
void scene_copy(struct scene *scene, int stream, enum scene_direction direction,
                enum scene_memory memory, int64_t bytes, int64_t ns, bool waits);
void scene_fill(struct scene *scene, int stream, int64_t bytes, int64_t ns);
void scene_sync(struct scene *scene); /* until all streams are done */
/* A call of the host alone. */
void scene_call(struct scene *scene, const char *name, int64_t ns);
/* The allocation's row; freed_ns PROF_UNKNOWN = never. */
void scene_lifetime(struct scene *scene, int64_t start_ns, int64_t freed_ns, int64_t bytes,
                    int kind);
void scene_push(struct scene *scene, const char *name);
void scene_pop(struct scene *scene);
/* FLOP and bytes of one launch, for the range just closed. */
void scene_work(struct scene *scene, double flop, double bytes);

/* As sqlite3_mprintf: %Q quotes a text. */
void scene_sql(struct scene *scene, const char *format, ...);

#endif
