/* How fast spools become a capture file, and how many bytes an event takes there: launches as CUDA
 * makes them (an API call and a kernel record, two events), in the OpenCL manner (call, command,
 * times: two events as well), and the kernels of replayed CUDA graphs of 1,000 nodes (an event
 * each).
 *
 *     bench_ingest_rate [cuda|opencl|graph [MILLIONS_OF_KERNELS]]     prints JSON, one line */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/device_scene.h"
#include "collectors/core/collector.h"
#include "libprof/base/clock.h"
#include "libprof/store/ingest.h"
#include "libprof/store/store.h"

static uint32_t configs[5];

/* Times as a graph's replays have them: a node about every 1.1 us, kernels of 0.7 to 0.9 us. */
static void emit_graphs(uint64_t kernels)
{
    enum { NODES = 1000, GRAPH = 7 };
    uint64_t now = prof_now_ns(), node = (uint64_t)GRAPH << 32;
    uint32_t stream = define_stream_and_kernels(configs, 5),
             api = collector_text("cudaGraphLaunch");
    for (uint32_t i = 1; i <= NODES; i++) {
        struct wire_graph_node made = {.head = {sizeof made, WIRE_GRAPH_NODE, WIRE_CLASS_LAUNCH, 0},
                                       .time = now,
                                       .node = node | i,
                                       .graph = GRAPH,
                                       .original = (GRAPH - 1ull) << 32 | i};
        collector_emit(&made);
    }
    for (uint64_t i = 0; i < kernels; i++) {
        uint64_t t = now + i * 1100, jitter = i * 2654435761u % 200, launch = i / NODES + 1;
        if (i % NODES == 0) {
            struct wire_call call = {.head = {sizeof call, WIRE_CALL, WIRE_SOURCE_CUDA, 0},
                                     .correlation = launch,
                                     .start = t,
                                     .end = t + 9000,
                                     .name = api,
                                     .expects = WIRE_EXPECTS_MANY,
                                     .klass = WIRE_CLASS_GRAPH_LAUNCH};
            collector_emit(&call);
        }
        struct wire_kernel kernel = {.head = {sizeof kernel, WIRE_KERNEL, 0, stream},
                                     .correlation = launch,
                                     .times = {0, 0, t + 10000 + jitter, t + 10700 + 2 * jitter},
                                     .config = configs[i % 5],
                                     .graph = GRAPH,
                                     .graph_node = node | (i % NODES + 1)};
        collector_emit(&kernel);
    }
}

/* Times as a launch loop on a real device has them: a launch every 4 us, kernels of 2 to 3 us. */
static void emit_launches(bool opencl, uint64_t launches)
{
    uint64_t now = prof_now_ns();
    uint32_t stream = define_stream_and_kernels(configs, 5),
             api = collector_text("cudaLaunchKernel");
    uint8_t flags = opencl ? WIRE_OPENCL : 0;
    for (uint64_t i = 1; i <= launches; i++) {
        uint64_t t = now + i * 4000, jitter = i * 2654435761u % 1000;
        struct wire_call call = {
            .head = {sizeof call, WIRE_CALL, opencl ? WIRE_SOURCE_OPENCL : WIRE_SOURCE_CUDA, 0},
            .correlation = i,
            .start = t,
            .end = t + 2000 + jitter,
            .name = api,
            .expects = WIRE_EXPECTS_ONE,
            .klass = WIRE_CLASS_LAUNCH};
        struct wire_times times = {0, 0, t + 5000 + jitter, t + 7000 + 2 * jitter};
        if (opencl) {
            times.queued = t + 100;
            times.submitted = t + 900 + jitter;
        }
        struct wire_kernel kernel = {.head = {sizeof kernel, WIRE_KERNEL,
                                              (uint8_t)(flags | (opencl ? WIRE_PENDING : 0)),
                                              stream},
                                     .correlation = i,
                                     .config = configs[i % 5]};
        if (!opencl)
            kernel.times = times;
        collector_count(WIRE_COUNT_LAUNCH_CALLED, 1);
        collector_emit(&call);
        collector_emit(&kernel);
        if (opencl) {
            struct wire_done done = {.head = {sizeof done, WIRE_DONE, WIRE_OPENCL, stream},
                                     .correlation = i,
                                     .times = times};
            collector_emit(&done);
        }
    }
}

int main(int argc, char **argv)
{
    const char *manner = argc > 1 ? argv[1] : "cuda";
    bool opencl = strcmp(manner, "opencl") == 0, graph = strcmp(manner, "graph") == 0;
    uint64_t launches = (argc > 2 ? (uint64_t)atoll(argv[2]) : 1) * 1000000u;
    char directory[] = "/dev/shm/perfkit-bench-XXXXXX", path[128], command[256];
    if (!mkdtemp(directory) || prof_ingest_prepare(directory, NULL) != PROF_OK)
        return 1;
    setenv("PERFKIT_DIR", directory, 1);
    setenv("PERFKIT_OPTIONS", "spool-limit=4294967296", 1);
    snprintf(path, sizeof path, "%s/../perfkit-bench-%d.sqlite", directory, (int)getpid());

    struct prof_error err = {0};
    struct prof_store *store;
    struct prof_ingest *ingest;
    struct prof_ingest_about about = {.command = "bench", .start_mono_ns = prof_now_ns()};
    if (prof_store_create(path, true, &store, &err) != PROF_OK ||
        prof_ingest_open(store, directory, &about, &ingest, &err) != PROF_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    pid_t child = fork();
    if (child == 0) {
        if (graph)
            emit_graphs(launches);
        else
            emit_launches(opencl, launches);
        _exit(0);
    }
    waitpid(child, NULL, 0); /* all of it stands in the spool: the ingest runs alone */
    uint64_t start = prof_now_ns();
    struct prof_ingest_progress progress = {0};
    enum prof_status status;
    do
        status = prof_ingest_step(ingest, &progress, &err);
    while (status == PROF_OK && progress.records > 0);
    if (status == PROF_OK)
        status = prof_ingest_finish(ingest, "complete", false, &err);
    uint64_t read_ns = prof_now_ns() - start;
    if (status == PROF_OK)
        status = prof_store_publish(store, &err);
    uint64_t all_ns = prof_now_ns() - start;
    if (status != PROF_OK)
        fprintf(stderr, "%s\n", err.message);
    prof_ingest_close(ingest);
    prof_store_close(store);
    struct stat st = {0};
    stat(path, &st);
    double events = (graph ? 1.0 : 2.0) * (double)launches;
    printf("{\"manner\": \"%s\", \"events\": %.0f, \"million_events_per_second\": %.3f, "
           "\"seconds_to_finished_file\": %.3f, \"bytes_per_event\": %.1f, \"records\": %llu}\n",
           manner, events, events * 1e3 / (double)read_ns, (double)all_ns / 1e9,
           (double)st.st_size / events, (unsigned long long)progress.total);
    snprintf(command, sizeof command, "rm %s && rm -r %s", path, directory);
    return status != PROF_OK || system(command) != 0;
}
