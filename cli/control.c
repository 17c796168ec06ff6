/* See control.h. The file gets its full length and its room at once and keeps them: the processes
 * of the target read it without looking. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/control.h"
#include "libprof/base/clock.h"

#define PATIENCE_NS 1000000000ull /* for another writer, which needs microseconds */

static enum prof_status map_control(struct control *control, const char *path,
                                    struct prof_error *err)
{
    void *at = mmap(NULL, CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, control->fd, 0);
    if (at == MAP_FAILED) {
        prof_fail_errno(err, PROF_IO, "cannot map %s", path);
        control_close(control);
        return PROF_IO;
    }
    control->page = at;
    return PROF_OK;
}

static bool control_path(const char *folder, char path[PATH_MAX])
{
    int length = snprintf(path, PATH_MAX, "%s/" CONTROL_FILE, folder);
    return length > 0 && length < PATH_MAX;
}

enum prof_status control_make(struct control *control, const char *folder, bool open_now,
                              bool limited, const char *range, struct prof_error *err)
{
    char path[PATH_MAX];
    *control = (struct control){.fd = -1};
    if (!control_path(folder, path))
        return prof_fail(err, PROF_INVALID, "%s is too long a path", folder);
    control->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (control->fd < 0)
        return prof_fail_errno(err, PROF_IO, "cannot make %s", path);
    int failed = posix_fallocate(control->fd, 0, CONTROL_BYTES);
    if (failed) {
        control_close(control);
        errno = failed;
        return prof_fail_errno(err, PROF_IO, "cannot make %s", path);
    }
    enum prof_status status = map_control(control, path, err);
    if (status)
        return status;
    struct control_page *page = control->page;
    page->version = CONTROL_VERSION;
    page->owner = (uint32_t)getpid();
    page->limited = limited;
    page->start_ns = prof_now_ns();
    snprintf(page->range, sizeof page->range, "%s", range ? range : "");
    atomic_store(&page->change[0],
                 page->start_ns << 8 | (open_now ? WIRE_WINDOW_TIME : WIRE_WINDOW_CONTROL));
    atomic_store(&page->state, open_now);
    atomic_store_explicit(&page->magic, CONTROL_MAGIC, memory_order_release);
    return PROF_OK;
}

enum prof_status control_find(struct control *control, const char *folder, struct prof_error *err)
{
    char path[PATH_MAX];
    struct stat info;
    *control = (struct control){.fd = -1};
    if (!control_path(folder, path))
        return prof_fail(err, PROF_INVALID, "%s is too long a path", folder);
    control->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (control->fd < 0 && errno == ENOENT)
        return prof_fail(err, PROF_NOTFOUND,
                         "there is no %s: the capture has just ended, or an older perfkit that "
                         "cannot be controlled records it",
                         path);
    if (control->fd < 0)
        return prof_fail_errno(err, PROF_IO, "cannot open %s", path);
    if (fstat(control->fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid() ||
        info.st_size < CONTROL_BYTES) {
        control_close(control);
        return prof_fail(err, PROF_CORRUPT,
                         "%s is not what perfkit run made: the capture cannot be controlled", path);
    }
    enum prof_status status = map_control(control, path, err);
    if (status)
        return status;
    if (atomic_load_explicit(&control->page->magic, memory_order_acquire) == CONTROL_MAGIC &&
        control->page->version == CONTROL_VERSION)
        return PROF_OK;
    control_close(control);
    return prof_fail(err, PROF_VERSION,
                     "%s is damaged or of another perfkit version: use the perfkit that records",
                     path);
}

static bool lock(int fd)
{
    uint64_t since = prof_now_ns();
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return false;
        if (prof_now_ns() - since > PATIENCE_NS)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return true;
}

uint64_t control_changed_ns(const struct control_page *page)
{
    uint64_t generation = control_generation(atomic_load(&page->state));
    return atomic_load(&page->change[generation % CONTROL_CHANGES]) >> 8;
}

enum prof_status control_set(struct control *control, bool open_now, enum wire_window_reason reason,
                             uint64_t *changed_ns, struct prof_error *err)
{
    if (!control->page || !lock(control->fd))
        return prof_fail(err, PROF_BUSY,
                         "another perfkit holds the control page of the capture: try again");
    if (control_open(atomic_load(&control->page->state)) != open_now)
        control_flip(control->page, prof_now_ns(), reason);
    *changed_ns = control_changed_ns(control->page);
    flock(control->fd, LOCK_UN);
    return PROF_OK;
}

void control_close(struct control *control)
{
    if (control->page)
        munmap(control->page, CONTROL_BYTES);
    if (control->fd >= 0)
        close(control->fd);
    *control = (struct control){.fd = -1};
}
