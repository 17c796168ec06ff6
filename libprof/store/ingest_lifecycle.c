/* The lifecycle table (libprof/spool/lifecycle.h), the file in the spool directory by which the
 * processes of the target announce themselves: made before the target starts, mapped, and read
 * entry by entry. An entry is one process; what is known of it is kept in ingest_process.c. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/regular.h"
#include "libprof/store/ingest_private.h"

#define RESERVE_AHEAD 2048u /* entries: 512 KiB */

#define LIFECYCLE_MAP_BYTES                                                                        \
    (LIFECYCLE_HEADER_BYTES + (size_t)LIFECYCLE_MAX_ENTRIES * sizeof(struct lifecycle_entry))

static char *join_lifecycle_path(const char *directory, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path;
}

static bool reserve_entries(int fd, struct lifecycle_header *header, uint32_t entries)
{
    uint32_t have = atomic_load(&header->reserved);
    if (entries > LIFECYCLE_MAX_ENTRIES)
        entries = LIFECYCLE_MAX_ENTRIES;
    if (entries <= have)
        return true;
    off_t from = (off_t)(LIFECYCLE_HEADER_BYTES + (uint64_t)have * sizeof(struct lifecycle_entry));
    off_t bytes = (off_t)((uint64_t)(entries - have) * sizeof(struct lifecycle_entry));
    if (fallocate(fd, 0, from, bytes) != 0 && posix_fallocate(fd, from, bytes) != 0)
        return false;
    atomic_store(&header->reserved, entries);
    return true;
}

enum prof_status prof_ingest_prepare(const char *directory, struct prof_error *err)
{
    PROF_FREED char *path = join_lifecycle_path(directory, LIFECYCLE_FILE);
    if (!path)
        return prof_out_of_memory(err);
    enum prof_status status = PROF_OK;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    void *page = MAP_FAILED;
    int failed = fd >= 0 ? posix_fallocate(fd, 0, LIFECYCLE_HEADER_BYTES) : errno;
    if (failed)
        errno = failed;
    else
        page = mmap(NULL, LIFECYCLE_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        status = prof_fail_errno(err, PROF_IO, "cannot prepare the spool directory %s", directory);
    else {
        struct lifecycle_header *header = page;
        header->version = LIFECYCLE_VERSION;
        header->entry_bytes = sizeof(struct lifecycle_entry);
        header->magic = LIFECYCLE_MAGIC;
        for (uint32_t ahead = RESERVE_AHEAD; ahead && !reserve_entries(fd, header, ahead);)
            ahead /= 2;
        munmap(page, LIFECYCLE_HEADER_BYTES);
    }
    if (fd >= 0)
        close(fd);
    return status;
}

/* As far as it may grow; where address space is short (the spools need most of it), as far as it is
 * now at least. */
static bool map_table(struct prof_ingest *ingest, size_t least)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    getrlimit(RLIMIT_AS, &limit);
    for (size_t bytes = LIFECYCLE_MAP_BYTES; bytes >= least; bytes /= 2) {
        if (bytes / 2 >= least && bytes > limit.rlim_cur / 16)
            continue;
        void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                          ingest->lifecycle_fd, 0);
        if (base == MAP_FAILED)
            continue;
        ingest->lifecycle = base;
        ingest->lifecycle_bytes = bytes;
        return true;
    }
    return false;
}

/* How many there are, of those that are mapped. */
static uint32_t entries_in(const struct prof_ingest *ingest, const struct stat *st)
{
    uint64_t bytes = (uint64_t)st->st_size, entries = 0;
    if (bytes > ingest->lifecycle_bytes)
        bytes = ingest->lifecycle_bytes;
    if (bytes > LIFECYCLE_HEADER_BYTES)
        entries = (bytes - LIFECYCLE_HEADER_BYTES) / sizeof(struct lifecycle_entry);
    return entries < LIFECYCLE_MAX_ENTRIES ? (uint32_t)entries : LIFECYCLE_MAX_ENTRIES;
}

enum prof_status ingest_lifecycle_open(struct prof_ingest *ingest)
{
    char *path = join_lifecycle_path(ingest->directory, LIFECYCLE_FILE);
    if (!path)
        return ingest_no_memory(ingest, "a file's name");
    ingest->lifecycle_fd = prof_open_regular(AT_FDCWD, path, O_RDWR | O_NOFOLLOW);
    free(path);
    struct stat st;
    if (ingest->lifecycle_fd < 0 || fstat(ingest->lifecycle_fd, &st) != 0 ||
        st.st_size < (off_t)LIFECYCLE_HEADER_BYTES) {
        /* recover of a spool directory that lost its table: the spools speak for themselves */
        if (ingest->lifecycle_fd >= 0)
            close(ingest->lifecycle_fd);
        ingest->lifecycle_fd = -1;
        return PROF_OK;
    }
    size_t least = (size_t)st.st_size;
    if (!map_table(ingest, least < LIFECYCLE_MAP_BYTES ? least : LIFECYCLE_MAP_BYTES))
        return prof_fail_errno(&ingest->error, PROF_NOMEM,
                               "cannot map the table of processes in %s", ingest->directory);
    ingest->lifecycle_entries = entries_in(ingest, &st);
    const struct lifecycle_header *header = (const void *)ingest->lifecycle;
    if (header->magic != LIFECYCLE_MAGIC || header->version != LIFECYCLE_VERSION ||
        header->entry_bytes != sizeof(struct lifecycle_entry))
        return prof_fail(&ingest->error, PROF_CORRUPT, "%s: damaged table of processes",
                         ingest->directory);
    return PROF_OK;
}

void ingest_lifecycle_close(struct prof_ingest *ingest)
{
    prof_array_free(&ingest->lifecycle_gaps);
    if (ingest->lifecycle)
        munmap(ingest->lifecycle, ingest->lifecycle_bytes);
    if (ingest->lifecycle_fd >= 0)
        close(ingest->lifecycle_fd);
    ingest->lifecycle = NULL;
    ingest->lifecycle_fd = -1;
}

struct lifecycle_entry *ingest_lifecycle_entry(const struct prof_ingest *ingest, uint32_t number)
{
    if (!ingest->lifecycle || number >= ingest->lifecycle_entries)
        return NULL;
    return (struct lifecycle_entry *)(void *)(ingest->lifecycle + LIFECYCLE_HEADER_BYTES +
                                              (size_t)number * sizeof(struct lifecycle_entry));
}

/* False only on failure; *published says whether the entry was there to be taken. */
static enum prof_status take_entry(struct prof_ingest *ingest, uint32_t number, bool *published)
{
    const struct lifecycle_entry *entry = ingest_lifecycle_entry(ingest, number);
    *published =
        entry && atomic_load_explicit(&entry->state, memory_order_acquire) != LIFECYCLE_EMPTY;
    if (!*published)
        return PROF_OK;
    uint32_t bytes = entry->command_bytes;
    if (bytes > sizeof entry->command)
        bytes = sizeof entry->command;
    return ingest_process_add(ingest, number, entry->pid, entry->parent,
                              entry->birth == LIFECYCLE_BIRTH_FORK, entry->start_ns, entry->command,
                              bytes)
               ? PROF_OK
               : ingest->error.status;
}

static enum prof_status add_lifecycle_gap(struct prof_ingest *ingest, uint32_t number)
{
    uint32_t *gap = prof_array_add(&ingest->lifecycle_gaps);
    if (!gap)
        return ingest_no_memory(ingest, "the table of processes");
    *gap = number;
    return PROF_OK;
}

enum prof_status ingest_lifecycle_gaps(struct prof_ingest *ingest)
{
    uint32_t seen = ingest->lifecycle_next;
    if (seen > ingest->lifecycle_entries)
        seen = ingest->lifecycle_entries;
    PROF_FREED bool *known = calloc(seen + 1u, sizeof *known);
    enum prof_status status = ingest_memory(ingest, known != NULL, "the table of processes");
    for (size_t i = 0; !status && i < ingest->processes.count; i++) {
        if (ingest->processes.data[i].entry < seen)
            known[ingest->processes.data[i].entry] = true;
    }
    for (uint32_t number = 0; !status && number < seen; number++)
        status = known[number] ? PROF_OK : add_lifecycle_gap(ingest, number);
    return status;
}

enum prof_status ingest_lifecycle_look(struct prof_ingest *ingest)
{
    struct lifecycle_header *header = (struct lifecycle_header *)(void *)ingest->lifecycle;
    struct stat st;
    if (!header || fstat(ingest->lifecycle_fd, &st) != 0)
        return PROF_OK;
    uint32_t end = atomic_load(&header->next), reserved = atomic_load(&header->reserved);
    ingest->lifecycle_entries = entries_in(ingest, &st);
    if (reserved > ingest->lifecycle_entries)
        reserved = ingest->lifecycle_entries;
    if (end > reserved)
        end = reserved;
    /* Numbers taken but not yet filled are looked at again; a killed process never fills its. */
    size_t kept = 0;
    for (size_t i = 0; i < ingest->lifecycle_gaps.count; i++) {
        bool published;
        PROF_TRY(take_entry(ingest, ingest->lifecycle_gaps.data[i], &published));
        if (!published)
            ingest->lifecycle_gaps.data[kept++] = ingest->lifecycle_gaps.data[i];
    }
    ingest->lifecycle_gaps.count = kept;
    for (; ingest->lifecycle_next < end; ingest->lifecycle_next++) {
        bool published;
        PROF_TRY(take_entry(ingest, ingest->lifecycle_next, &published));
        if (!published)
            PROF_TRY(add_lifecycle_gap(ingest, ingest->lifecycle_next));
    }
    uint32_t room = (uint32_t)((ingest->lifecycle_bytes - LIFECYCLE_HEADER_BYTES) /
                               sizeof(struct lifecycle_entry));
    uint32_t wanted = ingest->lifecycle_next + RESERVE_AHEAD;
    reserve_entries(ingest->lifecycle_fd, header, wanted < room ? wanted : room);
    ingest->lifecycle_dropped = atomic_load(&header->dropped);
    return PROF_OK;
}
