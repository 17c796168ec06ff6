/* The machine code of kernels that were sampled (--stalls), kept for the lines of their source: when
 * a cubin is loaded CUPTI calls for a checksum, and its address is remembered; once a function of it
 * was sampled, the helper thread writes it to a file in the spool folder, at the latest before it is
 * unloaded. perfkit reads the file after the run. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/map.h"
#include "collectors/cuda/parts.h"

#define CUBINS 16384u                  /* loaded, that are remembered */
#define MOST_CUBINS_BYTES (1ull << 30) /* written by a process */
#define COPIED_BYTES (64u << 20)       /* of cubins, which may be gone when they are wanted */
#define MOST_COPY_BYTES (4u << 20)     /* of one: larger ones lie in the files of libraries */

struct loaded_cubin {
    _Atomic uint64_t hash;
    const void *_Atomic at;
    _Atomic size_t bytes;
    bool written; /* helper thread */
};

static struct loaded_cubin *cubins; /* [CUBINS], by their hash */
static unsigned char *copies;       /* [COPIED_BYTES]; memory that is not used is not there */
static _Atomic size_t copied_bytes;
static uint64_t written_bytes; /* helper thread */

static struct loaded_cubin *cubin_find(uint64_t hash, bool add)
{
    for (uint32_t i = 0; i < 64; i++) {
        struct loaded_cubin *cubin = &cubins[(hash + i) % CUBINS];
        uint64_t there = atomic_load(&cubin->hash);
        if (there == hash)
            return cubin;
        if (!there && !add)
            return NULL;
        if (!there && atomic_compare_exchange_strong(&cubin->hash, &there, hash))
            return cubin;
        if (there == hash)
            return cubin;
    }
    return NULL;
}

/* What a program compiles as it runs (NVRTC) may be in memory that it frees when it is loaded. */
static const void *copy_cubin(const void *cubin, size_t bytes)
{
    size_t at = bytes <= MOST_COPY_BYTES ? atomic_fetch_add(&copied_bytes, bytes) : COPIED_BYTES;
    return at <= COPIED_BYTES - MOST_COPY_BYTES ? memcpy(copies + at, cubin, bytes) : cubin;
}

/* A cubin is being loaded, on the program's thread. */
static void cubin_loaded(const void *cubin, size_t bytes, uint64_t *crc)
{
    int saved = errno;
    *crc = wire_cubin_hash(cubin, bytes);
    struct loaded_cubin *kept = cubin_find(*crc, true);
    if (kept) {
        const void *before = atomic_load(&kept->at);
        bool copied =
            before >= (const void *)copies && before < (const void *)(copies + COPIED_BYTES);
        atomic_store(&kept->bytes, bytes);
        if (!copied)
            atomic_store(&kept->at, copy_cubin(cubin, bytes));
    }
    errno = saved;
}

/* write() answers with an error where the memory is gone. */
static bool write_cubin(const char *path, const struct loaded_cubin *cubin)
{
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return errno == EEXIST;
    const char *at = cubin->at;
    size_t left = cubin->bytes;
    while (left) {
        ssize_t n = write(file, at, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        at += n;
        left -= (size_t)n;
    }
    close(file);
    if (left)
        unlink(path);
    return left == 0;
}

void cuda_cubins_keep(uint64_t hash)
{
    char path[448];
    const char *folder = collector_directory();
    struct loaded_cubin *cubin = cubin_find(hash, false);
    if (!folder || !cubin || cubin->written || !atomic_load(&cubin->at) ||
        cubin->bytes > WIRE_CUBIN_BYTES || cubin->bytes > MOST_CUBINS_BYTES - written_bytes)
        return;
    cubin->written = true;
    snprintf(path, sizeof path, "%s/%016llx.cubin", folder, (unsigned long long)hash);
    if (!write_cubin(path, cubin))
        return;
    written_bytes += cubin->bytes;
    cuda_dump_cubin(path, cubin->bytes);
}

bool cuda_cubins_reserve(void)
{
    return (cubins || (cubins = cuda_reserve(sizeof *cubins * CUBINS))) &&
           (copies || (copies = cuda_reserve(COPIED_BYTES)));
}

void cuda_cubins_start(void)
{
    if (cupti.RegisterComputeCrcCallback)
        CUPTI(RegisterComputeCrcCallback, cubin_loaded);
}

void cuda_cubins_forked(void)
{
    cuda_wipe(cubins, sizeof *cubins * CUBINS);
    cuda_wipe(copies, COPIED_BYTES);
    atomic_store(&copied_bytes, 0);
    written_bytes = 0;
}
