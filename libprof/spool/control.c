/* The reading side of the control page, for the processes that it controls: those of the target,
 * and the sampler of hardware counters. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/spool/control.h"

struct control_page *control_map(const char *directory)
{
    char path[240];
    struct stat info;
    int length = snprintf(path, sizeof path, "%s/" CONTROL_FILE, directory);
    if (length < 0 || (size_t)length >= sizeof path)
        return NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    struct control_page *page = MAP_FAILED;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size >= CONTROL_BYTES)
        page = mmap(NULL, CONTROL_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED)
        return NULL;
    if (atomic_load_explicit(&page->magic, memory_order_acquire) == CONTROL_MAGIC &&
        page->version == CONTROL_VERSION)
        return page;
    munmap(page, CONTROL_BYTES);
    return NULL;
}
