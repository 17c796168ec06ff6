/* See control_folder.h. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/core/control_folder.h"

char folder[64];
struct control_page *page;

void remove_folder(void)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(folder);
}

void make_page(bool open_now, bool limited, off_t bytes)
{
    char path[96];
    snprintf(path, sizeof path, "%s/" CONTROL_FILE, folder);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, bytes), 0);
    if (bytes < CONTROL_BYTES) {
        close(fd);
        return;
    }
    page = mmap(NULL, CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(page, MAP_FAILED);
    close(fd);
    page->version = CONTROL_VERSION;
    page->limited = limited;
    page->start_ns = prof_now_ns();
    atomic_store(&page->change[0], page->start_ns << 8 | WIRE_WINDOW_CONTROL);
    atomic_store(&page->state, open_now);
    atomic_store(&page->magic, CONTROL_MAGIC);
}

void flip(void)
{
    control_flip(page, prof_now_ns(), WIRE_WINDOW_CONTROL);
}

void setup(void)
{
    snprintf(folder, sizeof folder, "/tmp/perfkit-window-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("PERFKIT_DIR", folder, 1);
    unsetenv("PERFKIT_OPTIONS");
}

void ranged(void)
{
    setenv("PERFKIT_OPTIONS", "trace=nvtx,capture=nvtx,capture-name=x", 1);
}

static void read_spool(const char *path, struct seen *seen)
{
    int fd = open(path, O_RDONLY);
    struct stat info;
    ck_assert_int_ge(fd, 0);
    fstat(fd, &info);
    unsigned char *base = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(base, MAP_FAILED);
    const struct spool_header *header = (const void *)base;
    for (uint32_t i = 0; i < header->reserved; i++) {
        unsigned char *at = base + SPOOL_FIRST_CHUNK + (size_t)i * SPOOL_CHUNK_BYTES;
        const struct spool_chunk *chunk = (const void *)at;
        if (chunk->state != SPOOL_EVENTS && chunk->state != SPOOL_EVENTS_FULL &&
            chunk->state != SPOOL_PARTIAL)
            continue;
        for (uint32_t offset = 0; offset < chunk->committed;) {
            const struct wire_head *head = (const void *)(at + SPOOL_CHUNK_HEADER_BYTES + offset);
            if (head->type == WIRE_WINDOW && seen->count < 4096)
                memcpy(&seen->window[seen->count++], head, sizeof(struct wire_window));
            offset += head->size;
        }
    }
    munmap(base, (size_t)info.st_size);
    close(fd);
}

static int by_time(const void *a, const void *b)
{
    const struct wire_window *x = a, *y = b;
    return x->time != y->time ? (x->time < y->time ? -1 : 1)
                              : (int)x->head.flags - (int)y->head.flags;
}

struct seen *published(pid_t pid)
{
    static struct seen seen;
    char start[32];
    snprintf(start, sizeof start, "%d-", (int)pid);
    seen.count = 0;
    DIR *dir = opendir(folder);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        char path[400];
        if (strncmp(entry->d_name, start, strlen(start)) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        read_spool(path, &seen);
    }
    closedir(dir);
    qsort(seen.window, seen.count, sizeof seen.window[0], by_time);
    return &seen;
}

void assert_alternate(const struct seen *seen, unsigned count, bool first)
{
    ck_assert_uint_eq(seen->count, count);
    for (unsigned i = 0; i < count; i++)
        ck_assert_int_eq(seen->window[i].head.flags, first ^ (i & 1));
}
