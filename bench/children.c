/* What perfkit costs a program that starts many short children (`perfkit run -- make -j`): the time
 * from vfork to the child's death and the processor time of the children, bare and with the
 * collector preloaded, in turns. On a busy machine only the processor time says much.
 *
 *     bench_children COLLECTOR.so [CHILDREN] [JOBS]
 *
 * The child is this program itself, which returns at once; it links only libc. The process table
 * is real, so each child takes and fills its entry; nobody reads it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libprof/spool/lifecycle.h"

#define ROUNDS 10

static char *self;
static char directory[] = "/dev/shm/perfkit-children-XXXXXX";

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static double children_cpu(void)
{
    struct rusage use;
    getrusage(RUSAGE_CHILDREN, &use);
    return (double)use.ru_utime.tv_sec + (double)use.ru_stime.tv_sec +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

struct cost {
    double wall, cpu; /* seconds */
};

static struct lifecycle_header *make_table(unsigned entries)
{
    char path[128];
    size_t bytes = LIFECYCLE_HEADER_BYTES + (size_t)entries * sizeof(struct lifecycle_entry);
    snprintf(path, sizeof path, "%s/" LIFECYCLE_FILE, directory);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || posix_fallocate(fd, 0, (off_t)bytes) != 0)
        return NULL;
    struct lifecycle_header *header =
        mmap(NULL, LIFECYCLE_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (header == MAP_FAILED)
        return NULL;
    header->magic = LIFECYCLE_MAGIC;
    header->version = LIFECYCLE_VERSION;
    header->entry_bytes = sizeof(struct lifecycle_entry);
    atomic_store(&header->reserved, entries);
    return header;
}

static __attribute__((noinline)) void start_child(char *const *environment)
{
    char *argv[] = {self, NULL};
    if (vfork() == 0) {
        execve(self, argv, environment);
        _exit(127);
    }
}

/* `children` children, `jobs` at a time. */
static void round_of(struct cost *cost, unsigned children, unsigned jobs, char *const *environment)
{
    unsigned running = 0;
    double start = now(), cpu = children_cpu();
    for (unsigned started = 0; started < children || running > 0;) {
        if (started < children && running < jobs) {
            start_child(environment);
            started++;
            running++;
            continue;
        }
        int status;
        if (wait(&status) > 0) {
            running--;
            if (status != 0)
                exit(1);
        }
    }
    cost->wall += now() - start;
    cost->cpu += children_cpu() - cpu;
}

static void print(const char *what, double wall, double cpu)
{
    printf("%-13s %8.1f us each, %8.1f us of processor\n", what, wall, cpu);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 0; /* a child */
    unsigned children = argc > 2 ? (unsigned)atoi(argv[2]) : 10000;
    unsigned jobs = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
    char preload[1024], place[128];
    self = realpath("/proc/self/exe", NULL);
    if (!self || !mkdtemp(directory)) {
        fprintf(stderr, "bench_children: %s\n", strerror(errno));
        return 1;
    }
    struct lifecycle_header *table = make_table(children + 1000);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", argv[1]);
    snprintf(place, sizeof place, "PERFKIT_DIR=%s", directory);
    char *bare[] = {(char[]){"PATH=/bin"}, NULL};
    char *preloaded[] = {bare[0], preload, place, (char[]){"PERFKIT_OPTIONS=trace=nvtx"}, NULL};
    struct cost cost[2] = {{0, 0}, {0, 0}};

    for (int i = 0; table && i < ROUNDS; i++) {
        round_of(&cost[0], children / ROUNDS, jobs, bare);
        round_of(&cost[1], children / ROUNDS, jobs, preloaded);
    }
    double each = 1e6 / (double)(children / ROUNDS * ROUNDS);
    printf("children %u, %u at a time\n", children, jobs);
    print("bare", cost[0].wall * each, cost[0].cpu * each);
    print("with perfkit", cost[1].wall * each, cost[1].cpu * each);
    print("difference", (cost[1].wall - cost[0].wall) * each, (cost[1].cpu - cost[0].cpu) * each);
    printf("entries taken %8u, dropped %u\n", table ? atomic_load(&table->next) : 0,
           table ? atomic_load(&table->dropped) : 0);
    snprintf(place, sizeof place, "%s/" LIFECYCLE_FILE, directory);
    unlink(place);
    rmdir(directory);
    return 0;
}
