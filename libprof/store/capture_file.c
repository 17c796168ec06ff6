/* The files of a capture as files, before SQLite and after it; see store.h. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <sqlite3.h>

#include "libprof/base/regular.h"
#include "libprof/store/schema.h"
#include "libprof/store/store.h"

/* Of SQLite's file format ("The Database Header"): offsets of the fields that are checked, most
 * significant byte first. */
enum {
    HEAD_PAGE_BYTES = 16, /* 2 bytes; 1 = 65536 */
    HEAD_WRITE_VERSION = 18,
    HEAD_READ_VERSION = 19,
    HEAD_WAL = 2, /* of these two */
    HEAD_USER_VERSION = 60,
    HEAD_APPLICATION_ID = 68,
};
#define HEAD_MAGIC "SQLite format 3" /* with its NUL */

/* The captures that this process writes. */
static struct capture_written *written;
static pthread_mutex_t written_lock = PTHREAD_MUTEX_INITIALIZER;

void capture_written_add(struct capture_written *file, const char *path)
{
    struct stat info;
    if (file->fd < 0)
        file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0 || fstat(file->fd, &info))
        return;
    capture_lock(file->fd);
    file->device = info.st_dev;
    file->inode = info.st_ino;
    pthread_mutex_lock(&written_lock);
    file->next = written;
    written = file;
    pthread_mutex_unlock(&written_lock);
}

void capture_written_remove(struct capture_written *file)
{
    pthread_mutex_lock(&written_lock);
    for (struct capture_written **at = &written; *at; at = &(*at)->next) {
        if (*at == file) {
            *at = file->next;
            break;
        }
    }
    pthread_mutex_unlock(&written_lock);
    if (file->fd >= 0) {
        flock(file->fd, LOCK_UN);
        prof_look_close(file->fd);
    }
    file->fd = -1;
}

bool capture_lock(int fd)
{
    return !flock(fd, LOCK_EX | LOCK_NB) || errno != EBADF;
}

bool prof_store_is_written(const char *path)
{
    if (capture_is_written_here(path))
        return true;
    int fd = prof_look_open(AT_FDCWD, path);
    bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
    if (fd >= 0) {
        flock(fd, LOCK_UN);
        prof_look_close(fd);
    }
    return locked;
}

bool capture_is_written_here(const char *path)
{
    struct stat info;
    bool found = false;
    if (stat(path, &info))
        return false;
    pthread_mutex_lock(&written_lock);
    for (const struct capture_written *at = written; at && !found; at = at->next)
        found = at->device == info.st_dev && at->inode == info.st_ino;
    pthread_mutex_unlock(&written_lock);
    return found;
}

static const char *const side_files[] = {"-wal", "-shm", "-journal"};

static char *joined(const char *a, const char *b)
{
    char *text;
    return asprintf(&text, "%s%s", a, b) < 0 ? NULL : text;
}

int64_t capture_side_bytes(const char *path, const char *suffix)
{
    PROF_FREED char *name = joined(path, suffix);
    struct stat info;
    return name && !stat(name, &info) ? info.st_size : -1;
}

void capture_remove_side_files(const char *path)
{
    for (size_t i = 0; i < sizeof side_files / sizeof side_files[0]; i++) {
        char *name = joined(path, side_files[i]);
        if (name)
            unlink(name);
        free(name);
    }
}

int capture_open_database(const char *path, sqlite3 **db, int flags)
{
    prof_look_hold();
    int code = sqlite3_open_v2(path, db, flags, NULL);
    prof_look_release();
    return code;
}

char *capture_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? sqlite3_mprintf("%.*s", slash == path ? 1 : (int)(slash - path), path)
                 : sqlite3_mprintf(".");
}

int capture_new_file(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

int capture_nameless_file(const char *path)
{
    PROF_SQL_FREED char *folder = capture_folder(path);
    return folder ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666) : -1;
}

bool capture_sync_file(const char *path)
{
    int fd = prof_look_open(AT_FDCWD, path);
    bool ok = fd >= 0 && !fsync(fd);
    if (fd >= 0)
        prof_look_close(fd);
    return ok;
}

char *capture_uri(const char *path, const char *how)
{
    sqlite3_str *uri = sqlite3_str_new(NULL);
    sqlite3_str_appendall(uri, "file:");
    for (; *path; path++) {
        if (strchr("%?#", *path))
            sqlite3_str_appendf(uri, "%%%02X", (unsigned)(unsigned char)*path);
        else
            sqlite3_str_appendchar(uri, 1, *path);
    }
    sqlite3_str_appendf(uri, "?%s", how);
    return sqlite3_str_finish(uri);
}

/* ---- the header ------------------------------------------------------------------------------ */

enum prof_status capture_read_head(const char *path, struct capture_head *head,
                                   struct prof_error *err)
{
    struct stat info;
    *head = (struct capture_head){.got = 0};
    int fd = prof_look_open(AT_FDCWD, path);
    if (fd < 0 && (errno == EINVAL || errno == EISDIR))
        return prof_fail(err, PROF_FORMAT, "%s is not a regular file", path);
    if (fd < 0)
        return errno == ENOENT ? prof_fail(err, PROF_NOTFOUND, "%s: no such file", path)
                               : prof_fail_errno(err, PROF_ACCESS, "cannot read %s", path);
    ssize_t got = fstat(fd, &info) ? -1 : pread(fd, head->bytes, sizeof head->bytes, 0);
    prof_look_close(fd);
    if (got < 0)
        return prof_fail_errno(err, PROF_IO, "cannot read %s", path);
    head->got = (size_t)got;
    head->file_bytes = (uint64_t)info.st_size;
    return PROF_OK;
}

bool capture_head_is_sqlite(const struct capture_head *head)
{
    return !memcmp(head->bytes, HEAD_MAGIC, sizeof HEAD_MAGIC);
}

static uint32_t head_number(const struct capture_head *head, int at)
{
    const unsigned char *b = head->bytes + at;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

uint32_t capture_head_application(const struct capture_head *head)
{
    return head_number(head, HEAD_APPLICATION_ID);
}

/* Does the file end within a page? SQLite reads such a page as if zeros followed. While a file is
 * written (it has a -wal beside it) this may be so for a moment. */
static bool ends_within_page(const char *path, const struct capture_head *head)
{
    uint32_t page = head_number(head, HEAD_PAGE_BYTES) >> 16;
    page = page == 1 ? 65536 : page;
    return page >= 512 && head->file_bytes % page != 0 && capture_side_bytes(path, "-wal") < 0;
}

/* Is it a file of another tool that perfkit import reads? */
static bool is_importable(const char *path, const unsigned char *head)
{
    const char *dot = strrchr(path, '.');
    return (dot && !strcmp(dot, ".nsys-rep")) || head[0] == '{' || head[0] == '[' ||
           (head[0] == 0x1f && head[1] == 0x8b);
}

enum prof_status capture_check_header(const char *path, struct prof_error *err)
{
    if (capture_is_written_here(path))
        return PROF_OK;
    struct capture_head head;
    PROF_TRY(capture_read_head(path, &head, err));
    if (!head.got)
        return prof_fail(err, PROF_FORMAT,
                         "%s is empty (in a network folder, until its run ends): else record anew",
                         path);
    if (!capture_head_is_sqlite(&head))
        return is_importable(path, head.bytes)
                   ? prof_fail(err, PROF_FORMAT,
                               "%s is a file of another tool: `perfkit import %s` makes a capture "
                               "of it",
                               path, path)
                   : prof_fail(err, PROF_FORMAT,
                               "%s is not a perfkit capture (not an SQLite file): give the file "
                               "that perfkit run wrote",
                               path);
    if (head.got < sizeof head.bytes)
        return prof_fail(err, PROF_CORRUPT, "%s is cut short: copy it again, or record anew", path);
    uint32_t version = head_number(&head, HEAD_USER_VERSION);
    if (capture_head_application(&head) != PROF_APPLICATION_ID)
        return prof_fail(err, PROF_FORMAT,
                         "%s is an SQLite file of another program: `perfkit import %s` makes a "
                         "capture of it if Nsight Systems or rocprofv3 wrote it",
                         path, path);
    if (version > PROF_FORMAT_VERSION)
        return prof_fail(err, PROF_VERSION,
                         "%s was written by a newer perfkit (format %u, this one reads up to %d): "
                         "update perfkit",
                         path, version, PROF_FORMAT_VERSION);
    if (ends_within_page(path, &head))
        return prof_fail(err, PROF_CORRUPT, "%s is cut short: copy it again, or record anew", path);
    return PROF_OK;
}

bool capture_file_is_wal(const char *path)
{
    struct capture_head head;
    return !capture_read_head(path, &head, NULL) && head.bytes[HEAD_WRITE_VERSION] == HEAD_WAL;
}

void capture_image_to_wal(unsigned char *image)
{
    image[HEAD_WRITE_VERSION] = image[HEAD_READ_VERSION] = HEAD_WAL;
}
