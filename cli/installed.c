/* Where perfkit's own files are, and what the OpenCL loader of this machine is. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/installed.h"
#include "libprof/base/clock.h"

/* ---- files beside perfkit -------------------------------------------------------------------- */

/* What is special in a pattern means itself. */
static void quote_pattern(const char *text, char *out, size_t size)
{
    size_t used = 0;
    for (; *text && used + 3 < size; text++) {
        if (strchr("*?[\\", *text))
            out[used++] = '\\';
        out[used++] = *text;
    }
    out[used] = '\0';
}

bool beside_self(const char *const *places, char out[PATH_MAX])
{
    char self[PATH_MAX], folder[2 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length < 0 ? 0 : length] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    quote_pattern(self, folder, sizeof folder);
    int reason = ENOENT;
    for (size_t i = 0; *self && places[i]; i++) {
        char pattern[sizeof folder + 64];
        glob_t found;
        snprintf(pattern, sizeof pattern, "%s/%s", folder, places[i]);
        int failed = glob(pattern, 0, NULL, &found);
        if (failed) {
            reason = failed == GLOB_NOSPACE ? ENOMEM : failed == GLOB_ABORTED ? EIO : reason;
            continue;
        }
        bool ok = realpath(found.gl_pathv[0], out) && access(out, R_OK) == 0;
        reason = ok ? reason : errno;
        globfree(&found);
        if (ok)
            return true;
    }
    snprintf(out, PATH_MAX, "%s", self);
    if (*self)
        errno = reason;
    return false;
}

/* ---- the collector --------------------------------------------------------------------------- */

/* Found beside perfkit's own executable, so that an installed perfkit works from any prefix and
 * after the prefix was moved. Loaders ignore a path that is wrong without a word, so it is checked
 * here. */

#define NAME "libperfkit_collector.so"

enum prof_status collector_path(char out[PATH_MAX], struct prof_error *err)
{
    static const char *const places[] = {"../lib/" NAME, "../lib*/perfkit/" NAME,
                                         "../lib/*/perfkit/" NAME, NULL};
    const char *given = getenv("PERFKIT_COLLECTOR");
    if (given && *given) {
        struct stat info;
        if (realpath(given, out) && access(out, R_OK) == 0 && stat(out, &info) == 0) {
            if (S_ISREG(info.st_mode))
                return PROF_OK;
            errno = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
        }
        return prof_fail_errno(
            err, PROF_NOTFOUND,
            "PERFKIT_COLLECTOR names %s, which cannot be read (unset it, or give the path of " NAME
            ")",
            given);
    }
    char place[PATH_MAX];
    if (beside_self(places, place)) {
        memcpy(out, place, sizeof place);
        return PROF_OK;
    }
    if (!*place)
        return prof_fail_errno(err, PROF_SYSTEM, "cannot read /proc/self/exe (is /proc mounted?)");
    if (errno != ENOENT)
        return prof_fail_errno(err, PROF_SYSTEM, "cannot look for the collector beside %s", place);
    return prof_fail(err, PROF_NOTFOUND,
                     "the collector " NAME " is not beside this perfkit (%s/../lib): install "
                     "perfkit again, or name it with PERFKIT_COLLECTOR",
                     place);
}

/* ---- questions to libraries ------------------------------------------------------------------ */

/* Vendor libraries are queried in a child process: what is loaded may crash, hang, print, start
 * threads or change signal handlers, and nothing of that may reach perfkit. */

#define PROBE_MS 10000

static _Noreturn void probe_child(void (*probe)(void *context, char *reply, size_t size),
                                  void *context, int out, size_t size)
{
    char reply[PROBE_REPLY] = "";
    /* Drivers talk to stderr, and some to stdout. */
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
        _exit(1);
    size = size < sizeof reply ? size : sizeof reply;
    probe(context, reply, size);
    size_t length = strnlen(reply, size - 1);
    _exit(write(out, reply, length) == (ssize_t)length ? 0 : 1);
}

bool probe_run(void (*probe)(void *context, char *reply, size_t size), void *context, char *reply,
               size_t size)
{
    int ends[2];
    reply[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        probe_child(probe, context, ends[1], size);
    }
    close(ends[1]);
    size_t used = 0;
    uint64_t deadline = prof_now_ns() + PROBE_MS * 1000000ull;
    bool timed_out = false;
    while (pid > 0 && used + 1 < size) {
        uint64_t now = prof_now_ns();
        struct pollfd waiting = {.fd = ends[0], .events = POLLIN};
        timed_out =
            now >= deadline || poll(&waiting, 1, (int)((deadline - now) / 1000000u) + 1) == 0;
        if (timed_out)
            break;
        ssize_t got = read(ends[0], reply + used, size - 1 - used);
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    reply[used] = '\0';
    close(ends[0]);
    if (timed_out)
        kill(pid, SIGKILL);
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return false;
    if (timed_out)
        snprintf(reply, size, "did not answer within %d s", PROBE_MS / 1000);
    else if (WIFSIGNALED(status))
        snprintf(reply, size, "crashed (%s)", strsignal(WTERMSIG(status)));
    return !timed_out && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- the OpenCL loader ----------------------------------------------------------------------- */

/* CUDA toolkits bring a libOpenCL.so.1 of their own that knows no layers, and put it before the
 * distribution's in the loader's cache: OpenCL programs then run, and nothing of them is recorded.
 * No API reports it, so the library is searched for the name of the variable it would have to read.
 */

static const char *const usual_folders[] = {
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
};

const char *opencl_load(struct opencl_calls *calls)
{
    void *library = dlopen(OPENCL_LOADER_NAME, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return dlerror();
    *(void **)&calls->platforms = dlsym(library, "clGetPlatformIDs");
    *(void **)&calls->devices = dlsym(library, "clGetDeviceIDs");
    *(void **)&calls->info = dlsym(library, "clGetDeviceInfo");
    return calls->platforms && calls->devices && calls->info ? NULL
                                                             : OPENCL_LOADER_NAME
               " lacks clGetPlatformIDs or its friends";
}

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
