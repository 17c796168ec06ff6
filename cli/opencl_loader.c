/* CUDA toolkits bring a libOpenCL.so.1 of their own that knows no layers, and put it before the
 * distribution's in the loader's cache: OpenCL programs then run, and nothing of them is recorded.
 * No API tells, so the library is asked for the name of the variable it would have to read. */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/opencl_loader.h"
#include "cli/probe.h"

static const char *const usual_folders[] = {
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
};

static void probe_path(void *context, char *reply, size_t size)
{
    (void)context;
    struct link_map *map;
    void *library = dlopen(OPENCL_LOADER_NAME, RTLD_LAZY | RTLD_LOCAL);
    if (library && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0)
        snprintf(reply, size, "%s", map->l_name);
}

static bool knows_layers(const char *path)
{
    static const char variable[] = "OPENCL_LAYERS";
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool found = false;
    if (fstat(fd, &info) == 0 && info.st_size > 0) {
        size_t size = (size_t)info.st_size;
        void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED) {
            found = memmem(bytes, size, variable, sizeof variable - 1) != NULL;
            munmap(bytes, size);
        }
    }
    close(fd);
    return found;
}

void opencl_loader_find(struct opencl_loader *loader)
{
    char reply[PROBE_REPLY];
    *loader = (struct opencl_loader){0};
    if (!probe_run(probe_path, NULL, reply, sizeof reply) || !*reply)
        return;
    snprintf(loader->path, sizeof loader->path, "%s", reply);
    loader->layers = knows_layers(loader->path);
    for (size_t i = 0; i < sizeof usual_folders / sizeof usual_folders[0] && !loader->layers; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/" OPENCL_LOADER_NAME, usual_folders[i]);
        if (!knows_layers(path))
            continue;
        snprintf(loader->better, sizeof loader->better, "%s", usual_folders[i]);
        return;
    }
}
