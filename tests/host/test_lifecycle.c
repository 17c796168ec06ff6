/* The whole collector, preloaded into tests/host/targets/ways: what stands in the shared table of
 * processes after each way to start and end, how many spools were made, and that output and status
 * are those of the bare program. Arguments: ways, libperfkit_collector.so. */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/spool/layout.h"
#include "libprof/spool/lifecycle.h"
#include "tests/host/run_way.h"

#define ENTRIES 64u

/* Processes in the order in which they took their entries: s = started (also by exec), f = forked,
 * then how each says that it ended. `spools`: with NVTX injected (every way marks itself). */
static const struct {
    const char *way, *entries;
    int spools;
    const char *quiet; /* the entries without NVTX, where they differ */
} cases[] = {
    {"return", "s exit", 1, NULL},
    {"exit", "s exit", 1, NULL},
    {"exit_handler", "s exit", 1, NULL},
    {"exit_in_handler", "s _exit", 1, NULL},
    {"exit_thread", "s exit", 1, NULL},
    {"last_thread", "s exit", 1, NULL},
    {"fast", "s _exit", 1, NULL},
    {"Fast", "s _exit", 1, NULL},
    {"quick", "s quick_exit", 1, NULL},
    {"raw", "s unseen", 1, NULL},
    {"abort", "s unseen", 1, NULL},
    {"crash", "s unseen", 1, NULL},
    {"kill", "s unseen", 1, NULL},
    {"exec", "s exec, s exit", 2, NULL},
    {"exec_fails", "s exit", 1, NULL},
    {"exec_cleared", "s exec, s exit", 2, NULL},
    {"exec_null", "s exec, s exit", 2, NULL},
    {"fork", "s exit, f exit", 2, NULL},
    {"fork_fast", "s exit, f _exit", 1, NULL}, /* the child has no event */
    {"fork_exec", "s exit, f exec, s exit", 2, NULL},
    {"vfork_exec", "s exit, s exit", 2, NULL},
    {"vfork_fails", "s exit", 1, NULL}, /* the child is no process of its own yet */
    {"spawn", "s exit, s exit", 2, NULL},
    {"clone", "s exit, f _exit", 2, "s exit"}, /* without fork handlers it is seen by its events */
    {"daemon", "s exit, f _exit, f _exit", 2, NULL},
};
#define CASES (sizeof cases / sizeof *cases)

/* Injected by NVTX_INJECTION64_PATH alone, nothing preloaded: records all the same, but the ends
 * that only a hook sees go unseen. */
static const struct {
    const char *way, *entries;
    int spools;
} injected[] = {
    {"return", "s exit", 1},         {"exit_handler", "s exit", 1}, {"fast", "s unseen", 1},
    {"exec", "s unseen, s exit", 2}, {"fork", "s exit, f exit", 2},
};

static char directory[] = "/tmp/perfkit-lifecycle-XXXXXX";

static struct lifecycle_header *make_table(void)
{
    char path[128];
    size_t bytes = LIFECYCLE_HEADER_BYTES + ENTRIES * sizeof(struct lifecycle_entry);
    snprintf(path, sizeof path, "%s/" LIFECYCLE_FILE, directory);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || posix_fallocate(fd, 0, (off_t)bytes) != 0)
        return NULL;
    struct lifecycle_header *header = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (header == MAP_FAILED)
        return NULL;
    header->magic = LIFECYCLE_MAGIC;
    header->version = LIFECYCLE_VERSION;
    header->entry_bytes = sizeof(struct lifecycle_entry);
    atomic_store(&header->reserved, ENTRIES);
    return header;
}

static void describe(const struct lifecycle_header *header, char *to, size_t size)
{
    static const char *const names[] = {
#define X(name, text) text,
        LIFECYCLE_END_MAP(X)
#undef X
    };
    const struct lifecycle_entry *entries =
        (const struct lifecycle_entry *)(const void *)((const char *)header +
                                                       LIFECYCLE_HEADER_BYTES);
    *to = '\0';
    for (uint32_t i = 0; i < atomic_load(&header->next) && i < ENTRIES; i++) {
        const struct lifecycle_entry *entry = &entries[i];
        bool ended = atomic_load(&entry->state) == LIFECYCLE_ENDED;
        size_t used = strlen(to);
        snprintf(to + used, size - used, "%s%s %s", i ? ", " : "",
                 entry->birth == LIFECYCLE_BIRTH_FORK ? "f" : "s",
                 ended ? names[atomic_load(&entry->how)] : names[LIFECYCLE_UNSEEN]);
    }
}

/* Counts the spools and removes what the run left. */
static int count_spools(void)
{
    int n = 0;
    char path[512];
    DIR *folder = opendir(directory);
    for (struct dirent *at; folder && (at = readdir(folder));) {
        size_t length = strlen(at->d_name), suffix = strlen(SPOOL_SUFFIX);
        n += length > suffix && strcmp(at->d_name + length - suffix, SPOOL_SUFFIX) == 0;
        snprintf(path, sizeof path, "%s/%s", directory, at->d_name);
        if (at->d_name[0] != '.')
            unlink(path);
    }
    if (folder)
        closedir(folder);
    return n;
}

static int check(const char *ways, const char *way, char *const *bare, char *const *under,
                 const char *expected, int expected_spools)
{
    static char before[65536], after[65536];
    char seen[512] = "";
    int wrong = 0, status = run_way(ways, way, bare, before, sizeof before);
    struct lifecycle_header *table = make_table();
    if (!table) {
        printf("no process table\n");
        return 1;
    }
    int status_under = run_way(ways, way, under, after, sizeof after);
    describe(table, seen, sizeof seen);
    munmap(table, LIFECYCLE_HEADER_BYTES + ENTRIES * sizeof(struct lifecycle_entry));
    int spools = count_spools();
    if (status != status_under) {
        printf("%s: status %#x, bare %#x\n", way, (unsigned)status_under, (unsigned)status);
        wrong = 1;
    }
    /* What prints its environment shows perfkit's variables: test_ways.c compares those. */
    if (!strstr(before, "env\n") && strcmp(before, after) != 0) {
        printf("%s: output\n%s\nbare\n%s\n", way, after, before);
        wrong = 1;
    }
    if (strcmp(seen, expected) != 0) {
        printf("%s: processes %s, expected %s\n", way, seen, expected);
        wrong = 1;
    }
    if (spools != expected_spools) {
        printf("%s: %d spools, expected %d\n", way, spools, expected_spools);
        wrong = 1;
    }
    return wrong;
}

int main(int argc, char **argv)
{
    char preload[512], place[128], nvtx[512];
    int wrong = 0;
    if (argc != 3 || !mkdtemp(directory))
        return 2;
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", argv[2]);
    snprintf(nvtx, sizeof nvtx, "NVTX_INJECTION64_PATH=%s", argv[2]);
    snprintf(place, sizeof place, "PERFKIT_DIR=%s", directory);
    char *bare[] = {(char[]){"PATH=/usr/bin:/bin"}, NULL};
    char *host_only[] = {bare[0], preload, place, NULL};
    char *nvtx_only[] = {bare[0], place, nvtx, NULL};
    char *both[] = {bare[0], preload, place, nvtx, NULL};
    for (size_t i = 0; i < CASES; i++) {
        const char *quiet = cases[i].quiet ? cases[i].quiet : cases[i].entries;
        wrong |= check(argv[1], cases[i].way, bare, host_only, quiet, 0);
        wrong |= check(argv[1], cases[i].way, bare, both, cases[i].entries, cases[i].spools);
    }
    for (size_t i = 0; i < sizeof injected / sizeof *injected; i++)
        wrong |= check(argv[1], injected[i].way, bare, nvtx_only, injected[i].entries,
                       injected[i].spools);
    rmdir(directory);
    return wrong;
}
