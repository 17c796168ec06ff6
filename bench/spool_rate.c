/* Records per second that threads push through the spool while a reader takes them out and gives
 * the chunks back: 48-byte API calls, the commonest record.
 *
 *     bench_spool_rate [THREADS [MILLIONS]]      prints JSON, one line */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "libprof/base/clock.h"
#include "libprof/spool/reader.h"
#include "libprof/store/ingest.h"

static uint64_t per_thread;

static void *write_calls(void *out)
{
    struct wire_call call = {.head = {sizeof call, WIRE_CALL, WIRE_SOURCE_CUDA, 0}, .name = 1};
    collector_active();
    uint64_t start = prof_now_ns();
    for (uint64_t i = 0; i < per_thread; i++) {
        call.correlation = i;
        collector_emit(&call);
    }
    *(uint64_t *)out = prof_now_ns() - start;
    return NULL;
}

/* Take everything out without looking at it: the spool's own limit, not the store's. */
static uint64_t drain(struct prof_spool *spool)
{
    _Alignas(8) static unsigned char buffer[SPOOL_CHUNK_BYTES];
    const struct prof_spool_span *spans;
    size_t count;
    uint64_t bytes = 0;
    if (prof_spool_poll(spool, &spans, &count, NULL) != PROF_OK)
        return 0;
    for (size_t i = 0; i < count; i++) {
        bytes += prof_spool_load(spool, &spans[i], buffer);
        prof_spool_advance(spool, &spans[i], spans[i].tid);
    }
    prof_spool_recycle(spool);
    return bytes;
}

int main(int argc, char **argv)
{
    unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    per_thread = (argc > 2 ? (uint64_t)atoll(argv[2]) : 20) * 1000000u;
    if (threads == 0 || threads > 64)
        return 2;
    char directory[] = "/dev/shm/perfkit-bench-XXXXXX";
    if (!mkdtemp(directory) || prof_ingest_prepare(directory, NULL) != PROF_OK)
        return 1;
    setenv("PERFKIT_DIR", directory, 1);

    int ready[2];
    if (pipe(ready) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        pthread_t ids[64];
        uint64_t ns[64], slowest = 0;
        collector_active();
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        usleep(50000);
        for (unsigned i = 0; i < threads; i++)
            pthread_create(&ids[i], NULL, write_calls, &ns[i]);
        for (unsigned i = 0; i < threads; i++) {
            pthread_join(ids[i], NULL);
            slowest = ns[i] > slowest ? ns[i] : slowest;
        }
        printf("{\"threads\": %u, \"records\": %llu, \"ns_per_record\": %.2f, "
               "\"million_per_second_per_thread\": %.2f}\n",
               threads, (unsigned long long)(per_thread * threads),
               (double)slowest / (double)per_thread, (double)per_thread * 1e3 / (double)slowest);
        fflush(stdout);
        _exit(0);
    }
    char c, path[128], command[256];
    if (read(ready[0], &c, 1) != 1)
        return 1;
    snprintf(command, sizeof command, "ls %s/*.spool", directory);
    FILE *list = popen(command, "r");
    struct prof_spool *spool = NULL;
    if (list && fgets(path, sizeof path, list)) {
        path[strcspn(path, "\n")] = '\0';
        prof_spool_open(path, true, &spool, NULL);
    }
    if (list)
        pclose(list);
    uint64_t bytes = 0;
    while (spool && waitpid(child, NULL, WNOHANG) == 0) {
        uint64_t got = drain(spool);
        bytes += got;
        if (!got)
            usleep(100);
    }
    bytes += spool ? drain(spool) : 0;
    uint64_t dropped = spool ? prof_spool_dropped(spool, WIRE_CALL) : 0;
    fprintf(stderr, "read %llu records, dropped %llu\n",
            (unsigned long long)(bytes / sizeof(struct wire_call)), (unsigned long long)dropped);
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command) != 0;
}
