/* Makes, locks, reads and removes spool folders. The lock, not the pid, says whether the owner
 * lives: it works across pid namespaces and cannot be fooled by a reused pid; the pid is for the
 * message. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/process.h"
#include "cli/spool_folder.h"
#include "libprof/base/regular.h"
#include "libprof/spool/control.h"
#include "libprof/spool/layout.h"
#include "libprof/spool/lifecycle.h"
#include "libprof/spool/owner.h"

#define CAPTURE_FILE "capture"
#define INNER_FILE "inner"
#define COLLECTOR_FILE "libperfkit_collector.so"
#define LIVE_FILE "capture.sqlite" /* where a capture bound for a network file system grows */
/* The collector copies PERFKIT_DIR into a buffer of 200 bytes. */
#define PATH_LIMIT 190

static bool join_spool_path(char out[PATH_MAX], const char *folder, const char *name)
{
    int length = snprintf(out, PATH_MAX, "%s/%s", folder, name);
    return length > 0 && length < PATH_MAX;
}

static uint64_t free_bytes(const char *folder)
{
    struct statvfs info;
    if (access(folder, W_OK | X_OK) < 0 || statvfs(folder, &info) < 0)
        return 0;
    return (uint64_t)info.f_bavail * info.f_frsize;
}

const char *const *spool_bases(void)
{
    static const char *bases[SPOOL_BASES] = {"/dev/shm", NULL, "/tmp"};
    bases[1] = getenv("TMPDIR");
    return bases;
}

static const char *choose_base(uint64_t room_bytes)
{
    const char *best = NULL;
    uint64_t best_bytes = 0;
    for (size_t i = 0; i < SPOOL_BASES; i++) {
        const char *base = spool_bases()[i];
        if (!base || base[0] != '/')
            continue;
        uint64_t bytes = free_bytes(base);
        if (bytes >= room_bytes)
            return base;
        if (bytes > best_bytes) {
            best_bytes = bytes;
            best = base;
        }
    }
    return best;
}

static enum prof_status lock_owner(struct spool_folder *folder, int flags, struct prof_error *err)
{
    char path[PATH_MAX];
    if (!join_spool_path(path, folder->path, SPOOL_OWNER_FILE))
        return prof_fail(err, PROF_INVALID, "%s is too long a path", folder->path);
    int fd = prof_open_regular(AT_FDCWD, path, O_RDWR | O_NOFOLLOW | flags);
    bool read_only = fd < 0 && (errno == EROFS || errno == EACCES);
    if (read_only)
        fd = prof_open_regular(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return prof_fail(err, PROF_FORMAT,
                         "%s is not a spool folder of perfkit run: give the folder that its "
                         "message named",
                         folder->path);
    if (fd < 0)
        return prof_fail_errno(err, PROF_IO, "cannot open %s", path);
    char text[64] = "";
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        ssize_t length = pread(fd, text, sizeof text - 1, 0);
        long pid = length > 0 ? strtol(text, NULL, 10) : 0;
        close(fd);
        return prof_fail(err, PROF_BUSY,
                         "%s is in use by perfkit with pid %ld: let it finish (it writes the "
                         "capture itself)",
                         folder->path, pid);
    }
    if (!read_only) {
        int length = snprintf(text, sizeof text, "%ld %llu\n", (long)getpid(),
                              (unsigned long long)process_start_ticks(getpid()));
        if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)length, 0) != length) {
            prof_fail_errno(err, PROF_IO, "cannot write %s", path);
            close(fd);
            return err ? err->status : PROF_IO;
        }
    }
    folder->owner_fd = fd;
    return PROF_OK;
}

enum prof_status spool_folder_make(struct spool_folder *folder, const char *base,
                                   uint64_t room_bytes, struct prof_error *err)
{
    char real[PATH_MAX];
    *folder = (struct spool_folder){.owner_fd = -1};
    if (!base)
        base = choose_base(room_bytes);
    if (!base)
        return prof_fail(err, PROF_FULL,
                         "no folder for the spool: /dev/shm, TMPDIR and /tmp are full or not "
                         "writable, give one with --spool-dir");
    if (!realpath(base, real))
        return prof_fail_errno(err, PROF_IO,
                               "cannot use %s for the spool (give a folder that exists with "
                               "--spool-dir)",
                               base);
    int length = snprintf(folder->path, PATH_LIMIT, "%s/perfkit-XXXXXX", real);
    if (length >= PATH_LIMIT) {
        folder->path[0] = '\0';
        return prof_fail(err, PROF_INVALID, "%s is too long for a spool folder: use --spool-dir",
                         real);
    }
    if (!mkdtemp(folder->path)) {
        folder->path[0] = '\0';
        return prof_fail_errno(err, PROF_IO,
                               "cannot make a spool folder in %s (choose another with --spool-dir)",
                               real);
    }
    enum prof_status status = lock_owner(folder, O_CREAT | O_EXCL, err);
    if (status)
        spool_folder_remove(folder);
    return status;
}

enum prof_status spool_folder_adopt(struct spool_folder *folder, const char *path,
                                    struct prof_error *err)
{
    *folder = (struct spool_folder){.owner_fd = -1};
    struct stat info;
    if (!realpath(path, folder->path) || stat(folder->path, &info) < 0) {
        folder->path[0] = '\0';
        return prof_fail_errno(err, PROF_NOTFOUND,
                               "cannot open %s (a finished capture leaves none)", path);
    }
    if (!S_ISDIR(info.st_mode))
        return prof_fail(err, PROF_FORMAT,
                         "%s is not a folder: give the spool folder that perfkit run named", path);
    return lock_owner(folder, 0, err);
}

/* Paths may hold any byte; a newline would end the line. */
static void write_spool_path(FILE *out, const char *key, const char *path)
{
    fprintf(out, "%s ", key);
    for (; *path; path++)
        if (*path == '\n' || *path == '%')
            fprintf(out, "%%%02X", (unsigned)(unsigned char)*path);
        else
            fputc(*path, out);
    fputc('\n', out);
}

static bool read_path(const char *line, const char *key, char out[PATH_MAX])
{
    size_t length = strlen(key);
    if (strncmp(line, key, length) != 0 || line[length] != ' ')
        return false;
    size_t used = 0;
    for (line += length + 1; *line && *line != '\n' && used < PATH_MAX - 1; line++) {
        unsigned byte;
        if (*line == '%' && sscanf(line + 1, "%2X", &byte) == 1) {
            out[used++] = (char)byte;
            line += 2;
        } else {
            out[used++] = *line;
        }
    }
    out[used] = '\0';
    return used > 0;
}

enum prof_status spool_folder_write_capture(const struct spool_folder *folder, const char *live,
                                            const char *final, uint64_t start_ns,
                                            struct prof_error *err)
{
    char path[PATH_MAX];
    if (!join_spool_path(path, folder->path, CAPTURE_FILE))
        return prof_fail(err, PROF_INVALID, "%s is too long a path", folder->path);
    FILE *out = fopen(path, "we");
    if (!out)
        return prof_fail_errno(err, PROF_IO, "cannot write %s", path);
    write_spool_path(out, "live", live);
    write_spool_path(out, "final", final);
    fprintf(out, "start %" PRIu64 "\n", start_ns);
    if (!prof_close_stream(out))
        return prof_fail_errno(err, PROF_IO, "cannot write %s", path);
    return PROF_OK;
}

enum prof_status spool_folder_read_capture(const struct spool_folder *folder,
                                           struct spool_capture *capture, struct prof_error *err)
{
    char path[PATH_MAX];
    capture->live[0] = capture->final[0] = '\0';
    capture->start_ns = 0;
    if (!join_spool_path(path, folder->path, CAPTURE_FILE))
        return prof_fail(err, PROF_INVALID, "%s is too long a path", folder->path);
    PROF_FILE_CLOSED FILE *in = prof_read_regular(path);
    if (!in && errno == ENOENT)
        return prof_fail(err, PROF_NOTFOUND,
                         "%s holds no recording: perfkit ended before the program was started; "
                         "remove the folder",
                         folder->path);
    if (!in)
        return prof_fail_errno(err, PROF_IO, "cannot read %s", path);
    PROF_FREED char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, in) > 0)
        if (!read_path(line, "live", capture->live) && !read_path(line, "final", capture->final))
            sscanf(line, "start %" SCNu64, &capture->start_ns);
    int reason = feof(in) ? 0 : errno;
    errno = reason;
    if (reason)
        return prof_fail_errno(err, PROF_IO, "cannot read %s", path);
    if (!capture->live[0] || !capture->final[0])
        return prof_fail(err, PROF_CORRUPT, "%s does not name the capture: give it with -o", path);
    return PROF_OK;
}

/* Separators of LD_PRELOAD and OPENCL_LAYERS, and what the loader expands ($ORIGIN, $LIB). */
bool spool_folder_plain_collector(const struct spool_folder *folder, char collector[PATH_MAX])
{
    static const char special[] = " :$";
    char path[PATH_MAX];
    if (!strpbrk(collector, special))
        return true;
    if (!join_spool_path(path, folder->path, COLLECTOR_FILE) || strpbrk(path, special) ||
        symlink(collector, path) < 0)
        return false;
    strcpy(collector, path);
    return true;
}

/* Appended with one write, by whichever perfkit; the reader takes whole lines. */
void spool_folder_note_in_outer(const char *outer, const char *final)
{
    char path[PATH_MAX], line[PATH_MAX + 1];
    struct stat info;
    if (!outer || outer[0] != '/' || strpbrk(final, "\n\r") || lstat(outer, &info) < 0 ||
        !S_ISDIR(info.st_mode) || info.st_uid != geteuid() ||
        !join_spool_path(path, outer, SPOOL_OWNER_FILE) || access(path, F_OK) < 0 ||
        !join_spool_path(path, outer, INNER_FILE))
        return;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    int length = snprintf(line, sizeof line, "%s\n", final);
    if (length > 0 && (size_t)length < sizeof line && write(fd, line, (size_t)length) < 0) {
        /* the outer one then says nothing */
    }
    close(fd);
}

unsigned spool_folder_inner(const struct spool_folder *folder, char first[PATH_MAX])
{
    char path[PATH_MAX];
    PROF_FILE_CLOSED FILE *in =
        join_spool_path(path, folder->path, INNER_FILE) ? prof_read_regular(path) : NULL;
    unsigned count = 0;
    first[0] = '\0';
    for (char line[PATH_MAX + 1]; in && fgets(line, sizeof line, in); count++)
        if (count == 0)
            snprintf(first, PATH_MAX, "%.*s", (int)strcspn(line, "\n"), line);
    return count;
}

unsigned spool_folder_users(const struct spool_folder *folder)
{
    return process_count_with("PERFKIT_DIR", folder->path);
}

static const char *const fixed_names[] = {SPOOL_OWNER_FILE, CAPTURE_FILE, LIFECYCLE_FILE,
                                          CONTROL_FILE,     INNER_FILE,   COLLECTOR_FILE};

/* Only files that perfkit or its collector makes: a folder named by mistake loses nothing else. */
static bool is_spool_file(const char *name)
{
    for (size_t i = 0; i < sizeof fixed_names / sizeof fixed_names[0]; i++)
        if (strcmp(name, fixed_names[i]) == 0)
            return true;
    return strncmp(name, LIVE_FILE, strlen(LIVE_FILE)) == 0 || prof_ends_with(name, SPOOL_SUFFIX) ||
           prof_ends_with(name, ".blocks") || prof_ends_with(name, ".blocks.tmp") ||
           prof_ends_with(name, ".cubin");
}

/* By which `recover` knows what the folder is of: they go last, so that it still sees that all is
 * done where perfkit is killed while it removes the rest. */
static bool is_needed_last(const char *name)
{
    return strcmp(name, CAPTURE_FILE) == 0 || strcmp(name, SPOOL_OWNER_FILE) == 0;
}

bool spool_folder_has_more(const char *path)
{
    PROF_DIR_CLOSED DIR *dir = opendir(path);
    struct dirent *entry;
    bool more = !dir;
    while (dir && !more && (entry = readdir(dir)))
        more = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
               strcmp(entry->d_name, SPOOL_OWNER_FILE) != 0;
    return more;
}

void spool_folder_remove(struct spool_folder *folder)
{
    DIR *dir = folder->path[0] ? opendir(folder->path) : NULL;
    if (dir) {
        struct dirent *entry;
        while ((entry = readdir(dir)))
            if (is_spool_file(entry->d_name) && !is_needed_last(entry->d_name))
                unlinkat(dirfd(dir), entry->d_name, 0);
        unlinkat(dirfd(dir), CAPTURE_FILE, 0);
        unlinkat(dirfd(dir), SPOOL_OWNER_FILE, 0);
        closedir(dir);
    } else if (folder->path[0]) { /* no descriptor is left to list it with */
        char path[PATH_MAX];
        for (size_t i = 0; i < sizeof fixed_names / sizeof fixed_names[0]; i++)
            if (join_spool_path(path, folder->path, fixed_names[i]))
                unlink(path);
    }
    if (folder->path[0])
        rmdir(folder->path);
    spool_folder_leave(folder);
}

void spool_folder_leave(struct spool_folder *folder)
{
    if (folder->owner_fd >= 0)
        close(folder->owner_fd);
    folder->owner_fd = -1;
    folder->path[0] = '\0';
}
