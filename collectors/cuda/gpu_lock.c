/* Who counts on a GPU: its hardware serves one at a time, the sampler of one run or the stall
 * reasons of one process. An abstract socket is a lock that leaves no file, holds across users, and
 * ends with its process however that ends. It holds within one network namespace. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "collectors/cuda/profiler_api.h"

#define LOCK_NAME "perfkit-counters-"

size_t cuda_uuid_text(const unsigned char bytes[16], char text[CUDA_UUID_BYTES])
{
    size_t at = (size_t)snprintf(text, CUDA_UUID_BYTES, "GPU-");
    for (unsigned i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            text[at++] = '-';
        at += (size_t)snprintf(text + at, CUDA_UUID_BYTES - at, "%02x", bytes[i]);
    }
    return at;
}

bool gpu_lock_take(const char *uuid, int *lock)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, LOCK_NAME "%s", uuid);
    size_t bytes = offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length;
    *lock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (*lock < 0 || bind(*lock, (struct sockaddr *)&name, (socklen_t)bytes) == 0)
        return true;
    bool others = errno == EADDRINUSE;
    close(*lock);
    *lock = -1;
    return !others;
}

bool gpu_lock_is(int fd)
{
    struct sockaddr_un name = {0};
    socklen_t bytes = sizeof name;
    return getsockname(fd, (struct sockaddr *)&name, &bytes) == 0 &&
           memcmp(name.sun_path + 1, LOCK_NAME, sizeof LOCK_NAME - 1) == 0;
}
